//! The round of map blocks: cleaning the next one, going on in it, and exchanging one that is worn or bad.
//!
//! Invariant: a map block is erased only when no page of it counts, and the anchor names a block before the first page of
//! the map is written to it.

use nand::{Cause, Nand};

use super::map_blocks::{Books, MapBlocks};
use crate::flash::{Flash, Outcome, Place};
use crate::{Error, Result};

/// Pages kept beyond those that cleaning takes: a mount after a power cut uses up two.
const SLACK_PAGES: u32 = 4;
/// A sequence takes one of so many pages of a map block at most,
const SEQUENCE_SHARE: u32 = 4;
/// or two where that is less: a request that is undone has log blocks at its both ends.
const SEQUENCE_MIN: u32 = 2;

impl MapBlocks {
    /// Pages of a sequence at most: so few that a map block whose next one is clean has room for them.
    pub fn sequence_max<N: Nand>(flash: &Flash<N>) -> u32 {
        (flash.pages_per_block() / SEQUENCE_SHARE).max(SEQUENCE_MIN)
    }

    /// Sees to it that a sequence of so many pages can be written, and the next map block be cleaned after it.
    pub fn make_room<N: Nand>(&mut self, flash: &mut Flash<N>, books: &Books<'_>, pages: u32) -> Result<()> {
        if pages > Self::sequence_max(flash) {
            return Err(Error::MapFull { pages });
        }
        self.fill_suspect(flash)?;
        // A turn of the round packs all that counts, and leaves the blocks after it clean.
        let mut blocks_left = 2 * (self.record.ring.len() + 1);
        loop {
            let remaining = flash.pages_per_block().saturating_sub(self.next_page);
            let (valid, fragment) = self.valid_in_next(flash);
            if remaining >= pages + valid + SLACK_PAGES.min(flash.pages_per_block() / 8) {
                return Ok(());
            }
            match fragment {
                Some(fragment) if remaining > 0 => {
                    self.fetch(flash, fragment)?;
                    flash.counts_mut().map_copies += 1;
                    if self.put(flash, books, fragment, true, 0)? == Outcome::Failed {
                        self.replace_current(flash)?;
                    }
                }
                begun => {
                    blocks_left = blocks_left.checked_sub(1).ok_or(Error::MapFull { pages })?;
                    match begun {
                        // Repeated power cuts can use up the pages that were kept for it.
                        Some(_) => self.extend(flash)?,
                        None => self.advance(flash)?,
                    }
                }
            }
        }
    }

    /// Pages that count in the next map block, and the fragment of one of them.
    fn valid_in_next<N: Nand>(&self, flash: &Flash<N>) -> (u32, Option<u32>) {
        let first = self.block_at(self.next()) * flash.pages_per_block();
        let its = first..first + flash.pages_per_block();
        let mut valid = self
            .directory
            .iter()
            .zip(0..)
            .filter(|(place, _)| place.is_some_and(|place| its.contains(&place)))
            .map(|(_, at)| at);
        let fragment = valid.next();
        (valid.count() as u32 + u32::from(fragment.is_some()), fragment)
    }

    /// The page that may have been half programmed at a power cut is used up.
    fn fill_suspect<N: Nand>(&mut self, flash: &mut Flash<N>) -> Result<()> {
        if core::mem::take(&mut self.is_suspect) && self.next_page < flash.pages_per_block() {
            flash.use_up(Place { block: self.block_at(self.current), page: self.next_page })?;
            self.next_page += 1;
        }
        Ok(())
    }

    /// Goes on in the next map block of the round, of which no page counts.
    fn advance<N: Nand>(&mut self, flash: &mut Flash<N>) -> Result<()> {
        let next = self.next();
        let block = self.block_at(next);
        if flash.is_bad(block) || self.record.ring.len() > self.ring_len {
            return self.drop_from_ring(flash, next);
        }
        self.turns += 1;
        let swap = self.swap_every > 0 && self.turns.is_multiple_of(self.swap_every) && flash.pool.free() > 2;
        if swap {
            self.exchange(flash, next)?;
            flash.pool.release(block);
            flash.counts_mut().swaps += 1;
        } else if !self.next_is_erased && flash.erase(block, Cause::Metadata)? == Outcome::Failed {
            flash.mark_bad(block)?;
            self.exchange(flash, next)?;
        }
        (self.current, self.next_page, self.next_is_erased) = (next, 0, false);
        Ok(())
    }

    /// A free block takes the place of a map block in the round.
    fn exchange<N: Nand>(&mut self, flash: &mut Flash<N>, turn: usize) -> Result<()> {
        let free = flash.take(Cause::WearLevel)?;
        if let Some(slot) = self.record.ring.get_mut(turn) {
            self.record.dropped.push(core::mem::replace(slot, free));
        }
        self.anchors.write(flash, &self.record)?;
        flash.pool.commit(free);
        Ok(())
    }

    fn drop_from_ring<N: Nand>(&mut self, flash: &mut Flash<N>, turn: usize) -> Result<()> {
        let block = self.record.ring.remove(turn);
        self.record.dropped.push(block);
        if turn < self.current {
            self.current -= 1;
        }
        self.anchors.write(flash, &self.record)?;
        if !flash.is_bad(block) {
            flash.pool.release(block);
        }
        if self.record.ring.len() < self.ring_len {
            self.extend(flash)?;
        }
        Ok(())
    }

    /// A free block joins the round and is written next.
    fn extend<N: Nand>(&mut self, flash: &mut Flash<N>) -> Result<()> {
        let free = flash.take(Cause::Metadata)?;
        self.record.ring.insert(self.current + 1, free);
        self.anchors.write(flash, &self.record)?;
        flash.pool.commit(free);
        (self.current, self.next_page, self.next_is_erased) = (self.current + 1, 0, false);
        Ok(())
    }

    /// The current map block has gone bad; what it holds can still be read until it is cleaned.
    pub(super) fn replace_current<N: Nand>(&mut self, flash: &mut Flash<N>) -> Result<()> {
        flash.mark_bad(self.block_at(self.current))?;
        self.extend(flash)
    }
}

#[cfg(test)]
mod tests {
    use emulator::{Chip, Profile};

    use super::*;
    use crate::device::BlockDevice;
    use crate::log_block::{LogBlock, MAPPED};
    use crate::settings::{Format, Options};
    use crate::translation::Translation;

    type Device = Translation<Chip, LogBlock>;

    fn made(profile: &Profile, extra_blocks: u32) -> Device {
        let format = Format { volume: 1, extra_blocks, logs: 8, map_blocks: 3 };
        Device::create(Chip::new(profile, 1).unwrap(), &MAPPED, &format, Options::default()).unwrap()
    }

    /// The round was turned without end.
    #[test]
    fn a_sequence_of_more_pages_than_a_map_block_has_room_for_is_refused() {
        let profile = Profile::builtin("k9f5608u0m").unwrap();
        let Translation { mut flash, mut map } = made(&profile, 32);
        let most = MapBlocks::sequence_max(&flash);
        for pages in [1, most] {
            map.make_map_room(&mut flash, pages, None).unwrap();
        }
        let erases = flash.counts().all_erases();
        for pages in [most + 1, 33, u32::MAX] {
            assert_eq!(map.make_map_room(&mut flash, pages, None), Err(Error::MapFull { pages }));
        }
        assert_eq!(flash.counts().all_erases(), erases);
    }

    /// Whether the directory fits the pool's fragment was decided by fewer blocks than that lists.
    #[test]
    fn map_blocks_that_have_gone_bad_and_are_in_the_round_take_no_block_from_the_pool_s_list() {
        let mut profile = Profile::builtin("k9f5608u0m").unwrap();
        profile.geometry.blocks = 817;
        for extra_blocks in 105..122 {
            let mut device = made(&profile, extra_blocks);
            for _ in 0..2 {
                device.flash.chip_mut().faults_mut().fail_program_at(0);
                device.map.refresh_map(&mut device.flash).unwrap();
            }
            let mut device = Device::recover(device.into_chip(), Options::default()).unwrap();
            for turn in 0..100 {
                let written = device.write(turn * 4_099 % device.sectors(), &[turn as u8; 512]);
                assert_eq!(written, Ok(()), "{extra_blocks} extra blocks");
            }
            assert_eq!(device.check().unwrap(), alloc::vec::Vec::<alloc::string::String>::new());
        }
    }
}
