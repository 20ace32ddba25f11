//! Salvage: a volume made again of what can be read on a chip whose index is lost, and mended where only parts are.
//!
//! The log says nearly everything, so the index is only a shortcut: all data and nodes on the chip are applied in the
//! order of their numbers. What the log does not say is what was deleted, where the record of that has been erased since:
//! see `judge`. Invariant: what may have been deleted is never put back into its place.

mod apply;
mod cuts;
mod judge;
mod remains;
mod seed;
mod settle;
mod sums;
mod survey;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use nand::Nand;

pub use judge::Doubt;

use self::judge::{Judgement, judge};
use self::remains::Remains;
use self::survey::{Survey, Witness};
use crate::error::{Error, Result};
use crate::flash::Flash;
use crate::flash::newest;
use crate::flash::shape::Shape;
use crate::format::anchor::{ANCHOR_BLOCKS, Anchor};
use crate::format::key::Key;
use crate::format::table::{BlockEntry, Use};
use crate::fs::types::{MountOptions, ROOT_INO};
use crate::fs::{Fs, Volume};
use crate::index::Index;
use crate::mount::format::{name_seed, volume_seed};
use crate::mount::ongoing::Tables;
use crate::mount::open::{check_anchor, set_log_position};

/// What became of a volume that was salvaged or mended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Files and directories there are now.
    pub files: u64,
    /// What was put into `lost+found`: the path there, and why.
    pub moved: Vec<(Vec<u8>, Doubt)>,
    /// Paths that led to nothing of which anything is left.
    pub lost: Vec<Vec<u8>>,
    /// Remains of deleted files and directories that were left out.
    pub deleted: u64,
    /// Pages of data or metadata (slots) that could not be read.
    pub unreadable: u64,
    /// Slots that a power cut left of operations that never completed.
    pub unfinished: u64,
    /// Attributes left out because they may have been removed.
    pub attributes: u64,
    /// Whether the volume has a new identity because nothing tells its old one.
    pub renamed: bool,
}

impl<N: Nand> Fs<N> {
    /// Makes a volume again of what can be read on a chip, whatever became of its anchors and its index, and mounts it. The
    /// memory this takes grows with what is stored. `volume_id` becomes its identity, but for four bytes, where nothing
    /// tells the old one; `told` hears how many blocks of how many have been read. On failure the chip is given back;
    /// it can be salvaged again.
    pub fn salvage(
        mut nand: N,
        volume_id: [u8; 16],
        options: MountOptions,
        told: &mut dyn FnMut(u32, u32),
    ) -> core::result::Result<(Self, Salvaged), (N, Error)> {
        let anchor = match Shape::of(&nand).map(|shape| (newest::find(&mut nand, &shape), shape)) {
            Ok((Ok(found), shape)) => {
                let sound = check_anchor(&found.anchor, &shape).is_ok() && has_room(&found.anchor);
                Ok((sound.then_some((found.anchor, found.block)), shape))
            }
            Ok((Err(Error::NotFlexfs(_)), shape)) => Ok((None, shape)),
            Ok((Err(error), _)) | Err(error) => Err(error),
        };
        let (anchor, shape) = match anchor {
            Ok(parts) => parts,
            Err(error) => return Err((nand, error)),
        };
        let entries = alloc::vec![BlockEntry::default(); shape.geometry.blocks as usize];
        let cache_slots = options.cache_bytes / 2 / shape.slot_bytes;
        let tables = Tables::empty(shape.geometry.blocks, shape.slot_bytes);
        let flash = Flash::new(nand, shape, 0, entries, cache_slots);
        let volume = Volume {
            id: volume_id,
            label: Default::default(),
            created_ns: options.now_ns,
            epoch: 1,
            checkpoint: 0,
            next_ino: ROOT_INO + 1,
            files: 0,
            hash_seed: 0,
            clean: false,
        };
        let mut fs = Self::assemble(flash, Index::default(), volume, tables, options);
        match fs.salvage_all(anchor, told) {
            Ok(salvaged) => Ok((fs, salvaged)),
            Err(error) => Err((fs.flash.nand, error)),
        }
    }

    fn salvage_all(&mut self, anchor: Option<(Anchor, u32)>, told: &mut dyn FnMut(u32, u32)) -> Result<Salvaged> {
        self.identify(anchor.as_ref().map(|(anchor, _)| anchor))?;
        let remains = Remains::read(&mut self.flash, anchor.as_ref().map(|(anchor, _)| anchor.seq), told)?;
        if remains.slots.is_empty() {
            return Err(Error::NotFlexfs(match anchor {
                Some(_) => "it has anchors, but nothing of a log can be read",
                None => "nothing on it is of a volume",
            }));
        }
        self.list_blocks(&remains);
        let unseen = self.apply_remains(&remains)?;
        self.cut_behind_ends()?;
        let (mut survey, unreadable) = self.survey()?;
        for (ino, unseen) in unseen {
            survey.entry(ino).and_modify(|known| known.unseen = unseen);
        }
        let all_unreadable = unreadable.len() as u64 + remains.unreadable;
        let judgement = judge(&survey, Witness::Log, all_unreadable);
        set_log_position(&mut self.flash, remains.next_seq);
        self.take_anchor_blocks(anchor.as_ref().map(|&(_, block)| block))?;
        let salvaged = self.settle_all((&survey, Witness::Log), &judgement, &unreadable, self.options.now_ns)?;
        // The anchors of before, which a mount might come across first, are not needed any more.
        self.flash.complete_pair()?;
        let (unfinished, renamed) = (remains.dropped, anchor.is_none());
        Ok(Salvaged { unreadable: all_unreadable, unfinished, renamed, ..salvaged })
    }

    /// Takes the volume's identity from its anchor; without one, another that the checksums agree with.
    fn identify(&mut self, anchor: Option<&Anchor>) -> Result<()> {
        if let Some(anchor) = anchor {
            let volume = &mut self.volume;
            volume.id = anchor.volume_id;
            volume.label.clone_from(&anchor.label);
            volume.created_ns = anchor.created_ns;
            volume.epoch = anchor.epoch + 1;
            volume.checkpoint = anchor.checkpoint;
            volume.next_ino = volume.next_ino.max(anchor.next_ino);
            self.flash.written_bytes = anchor.written_bytes;
            self.flash.anchors.last = Some(anchor.clone());
        } else {
            let seed = remains::find_seed(&mut self.flash)?;
            let id = seed.and_then(|seed| seed::identity_of(seed, self.volume.id, volume_seed));
            self.volume.id = id.ok_or(Error::NotFlexfs("nothing on it is of a volume"))?;
        }
        self.flash.seed = volume_seed(&self.volume.id);
        self.volume.hash_seed = name_seed(&self.volume.id);
        Ok(())
    }

    /// Fills the block table: what holds data or nodes is of the log, the rest is free or bad. Where no tag tells how often
    /// a block was erased, it counts as erased as often as the others were on average.
    fn list_blocks(&mut self, remains: &Remains) {
        let total: u64 = remains.blocks.iter().map(|found| u64::from(found.erases)).sum();
        let mean = (total / (remains.blocks.len() as u64).max(1)) as u32;
        for block in 0..self.flash.blocks.len() {
            let bad = self.flash.nand.is_bad(block);
            if let Some(mut listed) = self.flash.blocks.get_mut(block) {
                listed.entry.erases = mean;
                listed.entry.used_as = if bad { Use::Bad } else { Use::Free };
            }
        }
        for found in &remains.blocks {
            if let Some(mut listed) = self.flash.blocks.get_mut(found.block) {
                let failing = listed.entry.used_as == Use::Bad;
                let (native, sealed, erases) = (found.native, found.sealed, found.erases);
                listed.entry =
                    BlockEntry { used_as: Use::Log, native, sealed, failing, erases, ..BlockEntry::default() };
            }
        }
        self.flash.blocks.recount();
    }

    /// Makes two blocks the pair for anchors. The one with the newest anchor is left for when another counts.
    fn take_anchor_blocks(&mut self, newest: Option<u32>) -> Result<()> {
        let free = |block: &u32| {
            let entry = self.flash.blocks.get(*block).entry;
            entry.used_as == Use::Free || (entry.used_as == Use::Log && entry.live_bytes == 0 && !entry.failing)
        };
        let mut free: Vec<u32> = (0..ANCHOR_BLOCKS.min(self.flash.blocks.len())).filter(free).collect();
        // Last the newest anchor, and before it what may hold records of deletions.
        let held = |block: u32| self.flash.blocks.get(block).entry.used_as == Use::Log;
        let held: BTreeSet<u32> = free.iter().copied().filter(|&block| held(block)).collect();
        free.sort_by_key(|block| (Some(*block) == newest, held.contains(block)));
        let second = free.pop();
        let mut first = None;
        for block in free {
            // What looks like an anchor anywhere must not be found instead of the new one.
            let wanted = first.is_none() || !held.contains(&block);
            if wanted && self.flash.erase(block, nand::Cause::Metadata)? {
                first = first.or(Some(block));
            }
        }
        let (Some(first), Some(second)) = (first, second) else { return Err(Error::NoSpace) };
        self.flash.anchors.pair = [first, second];
        self.flash.anchors.own = true;
        for block in [first, second] {
            if let Some(mut found) = self.flash.blocks.get_mut(block) {
                (found.entry.used_as, found.entry.erased) = (Use::Anchor, false);
            }
        }
        self.flash.blocks.recount();
        Ok(())
    }

    /// Brings counts up to what is there and, if `all`, takes out of the volume what cannot be read, putting what is left
    /// of it into `lost+found`. `None` if there is something like that, but not `all` was asked for. An index that cannot
    /// be read whole is an error: only [`Fs::salvage`] helps. Nothing may be open.
    pub fn mend(&mut self, all: bool, now_ns: i64) -> Result<Option<Salvaged>> {
        self.begin_removal()?;
        self.checkpoint_now()?;
        let (survey, unreadable) = self.survey()?;
        let judgement = judge(&survey, Witness::Index, unreadable.len() as u64);
        let sound = unreadable.is_empty() && judgement.keeps_all(&survey);
        if !sound && !all {
            return Ok(None);
        }
        self.flash.holding = true;
        let salvaged = self.settle_all((&survey, Witness::Index), &judgement, &unreadable, now_ns)?;
        Ok(Some(Salvaged { unreadable: unreadable.len() as u64, ..salvaged }))
    }

    /// Makes what was judged a checkpoint. As in a recovery, what is written counts only with that.
    fn settle_all(
        &mut self,
        survey: (&Survey, Witness),
        judgement: &Judgement,
        unreadable: &[Key],
        now_ns: i64,
    ) -> Result<Salvaged> {
        self.flash.naming = false;
        let settled = self.settle(survey, judgement, unreadable, now_ns)?;
        self.checkpoint_as(false)?;
        self.flash.naming = true;
        Ok(Salvaged {
            files: self.volume.files,
            moved: settled.moved,
            lost: settled.lost,
            deleted: judgement.dead.len() as u64,
            attributes: settled.attributes,
            ..Salvaged::default()
        })
    }
}

/// Whether an anchor's counters can go on.
fn has_room(anchor: &Anchor) -> bool {
    let counters = [anchor.seq, anchor.serial, anchor.checkpoint, anchor.next_ino];
    counters.iter().all(|&counter| counter < 1 << 39) && anchor.epoch < 1 << 30
}
