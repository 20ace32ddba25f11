//! The pair of blocks anchors are written to, and finding the newest one.
//!
//! Invariants: the block that holds the newest anchor is never erased; after a mount that found the volume in use, the
//! first anchor goes to the other block, since the last page of this one may have been torn.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Nand, NandError};

use super::Flash;
use super::shape::Shape;
use crate::error::{Error, Result};
use crate::format::anchor::{Anchor, NotAnchor};
use crate::format::table::{BlockEntry, Use};
use crate::format::tag::{Kind, TAG_BYTES, Tag, is_blank};

/// Anchors stand somewhere in the first so many blocks.
pub const ANCHOR_BLOCKS: u32 = 16;
/// Erases an anchor block may be ahead of the average before another takes its place.
const WEAR_MARGIN: u32 = 64;

/// Where anchors are written.
#[derive(Default)]
pub struct AnchorLog {
    pub pair: [u32; 2],
    /// Which of the pair holds the newest anchor.
    pub current: usize,
    /// The unit to write next there; past the end: go to the other block.
    pub unit: u32,
    pub serial: u64,
    /// The newest anchor.
    pub last: Option<Anchor>,
    /// Blocks named since the checkpoint: head, block, sequence number.
    pub names: Vec<(u8, u32, u64)>,
    /// Whether this mount has written an anchor: only then is the newest known to be stable.
    pub own: bool,
}

/// An anchor found at mount.
pub struct Found {
    pub anchor: Anchor,
    pub block: u32,
}

/// The newest anchor on a chip.
pub fn find<N: Nand>(nand: &mut N, shape: &Shape) -> Result<Found> {
    let mut newest: Option<Found> = None;
    let mut newer_version = None;
    let mut holders = Vec::new();
    let mut seen = [false; ANCHOR_BLOCKS as usize];
    let mut next = Some(0);
    while let Some(block) = next {
        if let Some(flag) = seen.get_mut(block as usize) {
            *flag = true;
        }
        if !nand.is_bad(block) {
            match newest_in(nand, shape, block)? {
                Ok(Some(anchor)) => {
                    holders.push(block);
                    if newest.as_ref().is_none_or(|found| found.anchor.serial < anchor.serial) {
                        newest = Some(Found { anchor, block });
                    }
                }
                Ok(None) => {}
                Err(version) => newer_version = Some(version),
            }
        }
        let unseen = |block: &u32| seen.get(*block as usize) == Some(&false) && *block < shape.geometry.blocks;
        let in_pair = newest.as_ref().and_then(|found| found.anchor.pair.iter().copied().find(unseen));
        // Where a block of the pair holds no anchor it may have been replaced: the newest could stand anywhere.
        let settled =
            newest.as_ref().is_some_and(|found| found.anchor.pair.iter().all(|block| holders.contains(block)));
        next = in_pair.or_else(|| (0..ANCHOR_BLOCKS).find(unseen).filter(|_| !settled));
    }
    match (newest, newer_version) {
        (_, Some(found)) => Err(Error::Version { found, supported: crate::format::anchor::VERSION }),
        (Some(found), None) => Ok(found),
        (None, None) => Err(Error::NotFlexfs("none of its first 16 blocks holds an anchor; format it with mkfs")),
    }
}

enum Page {
    Blank,
    Anchor(Box<Anchor>),
    Newer(u32),
    Other,
}

/// The newest anchor in a block; `Err` is a version too new for this program.
fn newest_in<N: Nand>(nand: &mut N, shape: &Shape, block: u32) -> Result<core::result::Result<Option<Anchor>, u32>> {
    match read_page(nand, shape, block, 0)? {
        Page::Blank => return Ok(Ok(None)),
        Page::Newer(version) => return Ok(Err(version)),
        Page::Anchor(_) | Page::Other => {}
    }
    let (mut written, mut blank) = (0, shape.slc.units);
    while written + 1 < blank {
        let middle = written + (blank - written) / 2;
        match read_page(nand, shape, block, middle)? {
            Page::Blank => blank = middle,
            _ => written = middle,
        }
    }
    for unit in (0..=written).rev() {
        match read_page(nand, shape, block, unit)? {
            Page::Anchor(anchor) => return Ok(Ok(Some(*anchor))),
            Page::Newer(version) => return Ok(Err(version)),
            Page::Blank | Page::Other => {}
        }
    }
    Ok(Ok(None))
}

fn read_page<N: Nand>(nand: &mut N, shape: &Shape, block: u32, unit: u32) -> Result<Page> {
    let Some(&page) = nand.layout(CellMode::Slc).unit_pages(unit).first() else { return Ok(Page::Other) };
    let mut data = vec![0; shape.slot_bytes];
    let mut raw = [0; TAG_BYTES];
    match nand.read(block, page, 0, &mut data, &mut raw, Cause::Metadata) {
        Ok(_) => {}
        Err(NandError::Uncorrectable { .. }) => return Ok(Page::Other),
        Err(error) => return Err(error.into()),
    }
    if is_blank(&raw) && is_blank(&data) {
        return Ok(Page::Blank);
    }
    match Tag::decode(&raw, 0, &data) {
        Some(tag) if tag.kind == Kind::Anchor => Ok(match Anchor::decode(&data) {
            Ok(anchor) => Page::Anchor(Box::new(anchor)),
            Err(NotAnchor::Version(version)) => Page::Newer(version),
            Err(NotAnchor::Foreign) => Page::Other,
        }),
        _ => Ok(Page::Other),
    }
}

impl<N: Nand> Flash<N> {
    /// Writes an anchor: everything appended before is on flash first.
    pub fn write_anchor(&mut self, mut anchor: Anchor) -> Result<()> {
        self.flush_units()?;
        loop {
            if self.anchors.unit >= self.shape.slc.units {
                self.switch_anchor_block()?;
            }
            anchor.serial = self.anchors.serial + 1;
            anchor.pair = self.anchors.pair;
            anchor.names = self.anchors.names.iter().map(|&(head, block, _)| (head, block)).collect();
            anchor.written_bytes = self.written_bytes;
            let Some(&block) = self.anchors.pair.get(self.anchors.current) else { return Err(Error::NoSpace) };
            let unit = self.anchors.unit;
            self.anchors.unit += 1;
            if self.program_anchor(block, unit, &anchor)? {
                self.anchors.serial = anchor.serial;
                self.anchors.last = Some(anchor);
                self.anchors.own = true;
                return Ok(());
            }
            self.anchors.unit = self.shape.slc.units;
        }
    }

    /// Writes the newest anchor again, with the names given since; no longer clean.
    pub fn rewrite_anchor(&mut self) -> Result<()> {
        match self.anchors.last.clone() {
            Some(anchor) => self.write_anchor(Anchor { clean: false, ..anchor }),
            None => Ok(()),
        }
    }

    /// Records that a recovery begins: the next one, should this be cut short, leaves one more page alone.
    pub fn count_recovery(&mut self) -> Result<()> {
        if let Some(anchor) = self.anchors.last.as_mut() {
            anchor.recoveries += 1;
        }
        self.rewrite_anchor()
    }

    /// Before the first program or erase of a mount, makes sure the newest anchor is stable and not clean.
    pub fn own_anchor(&mut self) -> Result<()> {
        if self.anchors.own { Ok(()) } else { self.rewrite_anchor() }
    }

    fn program_anchor(&mut self, block: u32, unit: u32, anchor: &Anchor) -> Result<bool> {
        let slot_bytes = self.shape.slot_bytes;
        let mut data = anchor.encode(slot_bytes);
        let tag = Tag {
            kind: Kind::Anchor,
            end: true,
            copy: false,
            seq: anchor.seq,
            ino: 0,
            chunk: anchor.checkpoint & 0xffff_ffff,
            len: slot_bytes as u32,
            erases: self.blocks.get(block).entry.erases,
            stamp: 0,
        };
        let raw = tag.encode(0, &data);
        self.written_bytes += data.len() as u64;
        let pages = self.shape.slc.unit_slots / self.shape.slots_per_page;
        data.resize(pages as usize * self.shape.geometry.page_bytes as usize, 0xff);
        let mut spare = vec![0xff; pages as usize * self.shape.geometry.spare_bytes as usize];
        spare.iter_mut().zip(raw).for_each(|(to, from)| *to = from);
        let outcome = self.nand.program(block, unit, CellMode::Slc, &data, &spare, Cause::Metadata);
        let failed = self.wait()?;
        match outcome {
            Ok(()) => Ok(!failed),
            Err(NandError::ProgramFailed { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Goes on in the other block of the pair, or in a fresh one where that has gone bad or is worn.
    fn switch_anchor_block(&mut self) -> Result<()> {
        let other = 1 - self.anchors.current.min(1);
        let Some(&block) = self.anchors.pair.get(other) else { return Err(Error::NoSpace) };
        let replaced = self.anchor_is_worn(block) && self.replace_anchor_block(other)?;
        if !replaced && !self.nand.is_bad(block) && self.erase(block, Cause::Metadata)? {
            if let Some(found) = self.blocks.get_mut(block) {
                found.entry.used_as = Use::Anchor;
                found.entry.erased = false;
            }
        } else if !replaced {
            self.retire(block)?;
            if !self.replace_anchor_block(other)? {
                return Err(Error::NoSpace);
            }
        }
        self.anchors.current = other;
        self.anchors.unit = 0;
        Ok(())
    }

    fn anchor_is_worn(&self, block: u32) -> bool {
        let total: u64 = self.blocks.iter().map(|(_, block)| u64::from(block.entry.erases)).sum();
        let mean = (total / u64::from(self.blocks.len().max(1))) as u32;
        self.blocks.get(block).entry.erases > mean + WEAR_MARGIN
    }

    /// Puts a fresh, less worn block in place of one of the pair, which is erased or retired.
    fn replace_anchor_block(&mut self, which: usize) -> Result<bool> {
        let horizon = self.horizon();
        let old = self.anchors.pair.get(which).copied().unwrap_or(0);
        let fresh = (0..ANCHOR_BLOCKS.min(self.blocks.len()))
            .filter(|&block| self.blocks.reusable(block, horizon) && !self.blocks.get(block).entry.failing)
            .min_by_key(|&block| self.blocks.get(block).entry.erases);
        let Some(fresh) = fresh else { return Ok(false) };
        let retired = self.blocks.get(old).entry.used_as == Use::Bad;
        if !retired && self.blocks.get(fresh).entry.erases >= self.blocks.get(old).entry.erases {
            return Ok(false);
        }
        if !self.erase(fresh, Cause::Metadata)? {
            return Ok(false);
        }
        if !retired {
            self.erase(old, Cause::WearLevel)?;
        }
        if let Some(found) = self.blocks.get_mut(fresh) {
            found.entry = BlockEntry { used_as: Use::Anchor, erased: false, ..found.entry };
        }
        if let Some(to) = self.anchors.pair.get_mut(which) {
            *to = fresh;
        }
        Ok(true)
    }
}
