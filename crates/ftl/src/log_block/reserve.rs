//! The reserve: free blocks that the pool's fragment has no room for. They stand in fragments of their own, behind those of
//! the block map, and take the places of blocks that go bad.
//!
//! A page of the map carries the pool's fragment and the reserve's, so that blocks go from one to the other with one program.
//! Invariant: the pool's fragment lists no more blocks than it has room for.

use alloc::vec::Vec;

use nand::Nand;

use super::LogBlock;
use super::fragment::{Shape, Standing};
use super::map_blocks::{Books, MapBlocks};
use super::table::Table;
use crate::flash::{Flash, Outcome};
use crate::{Error, Result};

impl LogBlock {
    /// Brings blocks from the reserve to the pool, as many as have gone bad.
    pub(super) fn refill(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        let Table::Mapped(map) = &mut self.table else { return Ok(()) };
        if map.reserve_left == 0 {
            return Ok(());
        }
        let borrowed = map.record.ring.len().saturating_sub(map.ring_len);
        let known = self.logs.len() + flash.pool.listed().count() + borrowed;
        let most = Shape::listed_max(flash.page_bytes(), flash.blocks()) as usize;
        let books = &Books { logs: &self.logs, resolved: None };
        map.refill(flash, books, most.saturating_sub(known))
    }
}

impl MapBlocks {
    /// Writes a fragment of a new volume's reserve.
    pub(super) fn format_reserve<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        books: &Books<'_>,
        fragment: u32,
        blocks: &[u32],
    ) -> Result<()> {
        self.make_room(flash, books, 1)?;
        self.fetch(flash, fragment)?;
        for (at, &block) in blocks.iter().enumerate() {
            self.shape.set_entry(&mut self.cache, at, Standing { block, is_empty: false });
        }
        self.put_at_last(flash, books, fragment)
    }

    /// Moves so many blocks from the reserve to the pool, or all that there are.
    fn refill<N: Nand>(&mut self, flash: &mut Flash<N>, books: &Books<'_>, wanted: usize) -> Result<()> {
        let mut wanted = wanted;
        while wanted > 0 && self.reserve_left > 0 {
            let fragment = self.shape.count + self.reserve_left - 1;
            self.make_room(flash, books, 1)?;
            let waiting = self.waiting(flash, fragment)?;
            if waiting.is_empty() {
                self.reserve_left -= 1;
                continue;
            }
            for (at, block) in waiting.into_iter().take(wanted) {
                self.shape.set_entry(&mut self.cache, at, Standing { block, is_empty: true });
                if !flash.is_bad(block) {
                    flash.pool.release(block);
                    wanted -= 1;
                }
            }
            self.put_at_last(flash, books, fragment)?;
        }
        Ok(())
    }

    /// The blocks of a fragment of the reserve, and their places in it; none where it cannot be read.
    fn waiting<N: Nand>(&mut self, flash: &mut Flash<N>, fragment: u32) -> Result<Vec<(usize, u32)>> {
        match self.fetch(flash, fragment) {
            Err(Error::Unreadable { .. }) => return Ok(Vec::new()),
            fetched => fetched?,
        }
        let entries =
            (0..self.shape.entries() as usize).filter_map(|at| Some((at, self.shape.entry(&self.cache, at)?)));
        Ok(entries.filter(|(_, standing)| !standing.is_empty).map(|(at, standing)| (at, standing.block)).collect())
    }

    /// Programs the cache as a fragment, in another map block where that fails.
    fn put_at_last<N: Nand>(&mut self, flash: &mut Flash<N>, books: &Books<'_>, fragment: u32) -> Result<()> {
        flash.counts_mut().map_writes += 1;
        while self.put(flash, books, fragment, true, 0)? == Outcome::Failed {
            self.replace_current(flash)?;
        }
        Ok(())
    }

    /// Names every block of the reserve.
    pub(super) fn visit_reserve<N: Nand>(&mut self, flash: &mut Flash<N>, visit: &mut dyn FnMut(u32)) -> Result<()> {
        for fragment in self.shape.count..self.shape.fragments() {
            self.waiting(flash, fragment)?.into_iter().for_each(|(_, block)| visit(block));
        }
        Ok(())
    }
}
