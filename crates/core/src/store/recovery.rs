//! What a recovery, or whoever mends a volume, does to its records; and how it becomes a checkpoint.
//!
//! Invariant: what is written in a recovery counts only with its checkpoint.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::Store;
use super::collector::Collector;
use super::records::Records;
use crate::error::{Error, Result};
use crate::flash::block_test::{ReadsBack, Tester};
use crate::flash::head::Tail;
use crate::flash::slots::Release;
use crate::flash::{Phase, newest};
use crate::format::anchor::ANCHOR_BLOCKS;
use crate::format::inode::{Ino, Inode};
use crate::format::key::Key;
use crate::format::table::Use;
use crate::index::delta::Change;
use crate::index::{Relocation, Replaced};
use crate::policy::budget::Call;

/// The records of a volume to which a log is applied, or which is mended.
pub struct Recovery<'a, N: Nand> {
    records: &'a mut Records<N>,
}

impl<N: Nand> Records<N> {
    /// The records, to apply a log to them or to mend them.
    pub fn recovery(&mut self) -> Recovery<'_, N> {
        Recovery { records: self }
    }
}

impl<N: Nand> Recovery<'_, N> {
    /// Changes what keys map to; `release` says what that makes of what they mapped to.
    pub fn set(&mut self, key: Key, change: Change, release: Release) -> Result<Replaced> {
        self.records.index.set(self.records.log.slots_mut(), key, change, release, false)
    }

    /// Changes what keys map to, whatever that was: it is not counted as gone.
    pub fn overlay(&mut self, key: Key, change: Change) {
        self.records.index.overlay(self.records.log.slots_mut(), key, change);
    }

    /// Makes a key point to a copy, if it points to the original. Whether it did.
    pub fn relocate(&mut self, relocation: Relocation, release: Release) -> Result<bool> {
        self.records.index.relocate(self.records.log.slots_mut(), relocation, release)
    }

    /// Counts the blocks again, by what they are, after their entries were changed.
    pub fn recount_blocks(&mut self) {
        self.records.log.slots_mut().blocks_mut().recount();
    }

    /// The log goes on with this sequence number.
    pub fn go_on_with(&mut self, seq: u64) {
        self.records.log.flash_mut().numbers_mut().go_on_with(seq);
    }

    /// Something of the log was dropped: what follows is another story.
    pub fn begin_epoch(&mut self) {
        self.records.volume.epoch += 1;
    }

    /// New inodes get numbers beyond this one.
    pub fn note_ino(&mut self, ino: Ino) {
        let volume = &mut self.records.volume;
        volume.next_ino = volume.next_ino.max(ino + 1);
    }

    /// Counts inodes as come and gone.
    pub fn count_files(&mut self, came: u64, gone: u64) {
        let volume = &mut self.records.volume;
        volume.files = (volume.files + came).saturating_sub(gone);
    }

    /// There are so many inodes.
    pub fn set_files(&mut self, files: u64) {
        self.records.volume.files = files;
    }

    /// Forgets an inode that is in memory.
    pub fn drop_inode(&mut self, ino: Ino) {
        self.records.inodes.remove(ino);
    }

    /// Holds an inode in memory as if it had been read, for as long as the mount lasts.
    pub fn stand_in(&mut self, ino: Ino, inode: Inode) {
        self.records.inodes.insert(ino, inode);
        self.records.inodes.count_open(ino, 1);
    }

    /// The volume goes on to another part of its life.
    pub fn enter(&mut self, phase: Phase) {
        self.records.log.flash_mut().enter(phase);
    }

    /// What there is of the volume is in memory: from here on callers' changes are logged, unless nothing is to be written.
    pub fn begin_mount(&mut self) {
        let read_only = self.records.options.read_only;
        let flash = self.records.log.flash_mut();
        flash.hold_head_blocks();
        if flash.phase() == Phase::Recovering {
            flash.enter(if read_only { Phase::ReadOnly } else { Phase::Mounted });
        }
    }

    /// The mount is complete: the managers look at the wear for the first time.
    pub fn begin_life(&mut self) {
        self.records.review_wear_now();
    }

    /// Tests all blocks that failed, at once.
    pub fn test_blocks(&mut self, reads_back: ReadsBack) -> Result<()> {
        Tester(self.records.log.flash_mut()).finish_all(reads_back)
    }

    /// Makes two blocks the pair for anchors. The one with the newest anchor is left for when another counts.
    pub fn take_anchor_pair(&mut self, newest: Option<u32>) -> Result<()> {
        let slots = self.records.log.slots_mut();
        let free = |block: &u32| {
            let entry = slots.blocks().get(*block).entry;
            entry.used_as == Use::Free || (entry.used_as == Use::Log && entry.live_bytes == 0 && !entry.failing)
        };
        let mut free: Vec<u32> = (0..ANCHOR_BLOCKS.min(slots.blocks().len())).filter(free).collect();
        // Last the newest anchor, and before it what may hold records of deletions.
        let held = |block: u32| slots.blocks().get(block).entry.used_as == Use::Log;
        let held: BTreeSet<u32> = free.iter().copied().filter(|&block| held(block)).collect();
        free.sort_by_key(|block| (Some(*block) == newest, held.contains(block)));
        let second = free.pop();
        let mut first = None;
        for block in free {
            // What looks like an anchor anywhere must not be found instead of the new one.
            let wanted = first.is_none() || !held.contains(&block);
            if wanted && slots.erase(block, Cause::Metadata)? {
                first = first.or(Some(block));
            }
        }
        let (Some(first), Some(second)) = (first, second) else { return Err(Error::NoSpace) };
        self.records.log.flash_mut().begin_anchors([first, second]);
        Ok(())
    }

    /// Makes the pair of blocks for anchors whole again.
    pub fn complete_anchor_pair(&mut self) -> Result<()> {
        self.records.log.flash_mut().complete_pair()
    }

    /// Where the unmount before was cut short, one page says where everything stands. Makes it two, if there is room.
    pub fn rest_on_two_pages(&mut self) -> Result<()> {
        let flash = self.records.log.flash_mut();
        let (pair, shape) = (flash.anchors().pair(), flash.shape().clone());
        if flash.broken().is_some() || newest::stands_twice(flash.slots_mut().nand_mut(), &shape, pair)? {
            return Ok(());
        }
        let Some(anchor) = flash.anchors().last().cloned() else { return Ok(()) };
        while !flash.anchors().is_own() {
            match flash.write_anchor(anchor.clone()) {
                Err(Error::NoSpace) => break,
                outcome => outcome?,
            }
        }
        Ok(())
    }
}

impl<N: Nand> Store<N> {
    /// Makes the outcome of replay a checkpoint, `recoveries` having begun before this one. Heads go on in the blocks they
    /// stood in, so that recovery on a full chip needs no fresh ones: the log's at their `tails`, the oldest of a head first,
    /// the index's behind what its `pages` say.
    pub fn recover(&mut self, tails: &[Tail], pages: &[Tail], recoveries: u32) -> Result<()> {
        self.records.log.flash_mut().count_recovery()?;
        // Each recovery that is cut short uses up room in the heads; fresh blocks the next one has again. They must not be
        // all there are: one may fail.
        let spare = self.records.flash().free_blocks() > self.records.space().budget(Call::REMOVAL).recovery;
        let fresh = recoveries > 0 && spare;
        let flash = self.records.log.flash_mut();
        // A head may have left several blocks without a summary: it stood in the last one.
        for &tail in tails.iter().rev().filter(|_| !fresh) {
            flash.slots_mut().reopen(tail);
        }
        for &tail in pages {
            let end = flash.slots_mut().end_of_pages(tail, recoveries)?;
            flash.slots_mut().reopen(end);
        }
        self.open_ahead_for_pair()?;
        let stashed: Vec<_> = self.records.flash().slots().stash().iter().map(|at| at.slot).collect();
        for slot in stashed {
            Collector::move_one(&mut self.records, slot)?;
        }
        self.checkpoint_as(false)?;
        self.records.log.slots_mut().set_stash(Default::default());
        Ok(())
    }
}
