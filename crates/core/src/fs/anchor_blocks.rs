//! Blocks for anchors: a pair that is whole, and where blocks fail one more, emptied in time.
//!
//! Invariant: between operations anchors have two blocks to go on in, unless nothing can be emptied.

use nand::Nand;

use super::Fs;
use crate::error::{Error, Result};
use crate::flash::anchors::Other;
use crate::format::anchor::ANCHOR_BLOCKS;
use crate::format::table::Use;

impl<N: Nand> Fs<N> {
    /// Sees to the blocks for anchors, if that can be done now: where the pair has lost one it gets another, and where
    /// blocks have failed, one is emptied for the next that does.
    pub(super) fn keep_anchor_blocks(&mut self) -> Result<()> {
        let outcome = match self.flash.anchors.other {
            Other::Missing => self.complete_anchor_pair(),
            Other::Old | Other::Ready if self.lacks_spare_anchor_block() => self.keep_spare_anchor_block(),
            Other::Old | Other::Ready => Ok(()),
        };
        match outcome {
            Err(Error::NoSpace) => Ok(()),
            outcome => outcome,
        }
    }

    fn complete_anchor_pair(&mut self) -> Result<()> {
        self.take_free_anchor_block()?;
        if self.flash.anchors.other == Other::Missing {
            self.empty_anchor_block()?;
            self.take_free_anchor_block()?;
        }
        Ok(())
    }

    fn take_free_anchor_block(&mut self) -> Result<()> {
        let outcome = self.flash.complete_pair();
        // What was gathered before has been programmed, or failed to be.
        self.follow_moved()?;
        outcome
    }

    /// Whether blocks fail on this chip, none that anchors may stand in is free, and emptying one takes nothing from
    /// what a recovery needs.
    fn lacks_spare_anchor_block(&self) -> bool {
        self.has_failed() && !self.flash.has_spare_anchor_block() && self.flash.free_blocks() >= self.recovery_floor()
    }

    fn keep_spare_anchor_block(&mut self) -> Result<()> {
        let found = self.empty_anchor_block()?;
        // A recovery that cannot rely on the last pages is to find it empty, too.
        if found && !self.flash.has_spare_anchor_block() { self.checkpoint_now() } else { Ok(()) }
    }

    /// Empties the block that anchors may stand in which costs least; whether there was one.
    fn empty_anchor_block(&mut self) -> Result<bool> {
        while self.collector.is_some() {
            self.collect_step()?;
        }
        let log = self.flash.blocks.iter().take(ANCHOR_BLOCKS as usize).filter(|(_, block)| {
            block.entry.used_as == Use::Log && !block.open && !block.stuck && !block.entry.failing
        });
        let Some((live_bytes, number)) = log.map(|(number, block)| (block.entry.live_bytes, number)).min() else {
            return Ok(false);
        };
        if live_bytes > 0 {
            self.start_collecting(number, true);
        }
        while self.collector.is_some() {
            self.collect_step()?;
        }
        self.release_waiting()?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use emulator::Profile;

    use super::super::reserve::tests::{formatted, formatted_as, mounted};
    use super::*;
    use crate::{Mode, NewNode, ROOT_INO, kind};

    /// The block kept for the next that fails counted as free as soon as the last pages had emptied it. A recovery, which
    /// cannot rely on those, had none; anchors went on in the only block left, and the next cut used up its pages.
    #[test]
    fn the_block_kept_for_anchors_is_free_for_a_recovery() {
        let mut fs = mounted(formatted(), Mode::Baseline);
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        let ino = fs.create(ROOT_INO, b"file", node, 1).unwrap().ino;
        let chunks = fs.statfs().unwrap().free_bytes * 8 / 10 / 4096;
        let mut lacked = 0;
        for chunk in 0..2 * chunks {
            fs.write(ino, (chunk * chunk + chunk / 3) % chunks * 4096, &[2; 4096], 1).and_then(|_| fs.sync(1)).unwrap();
            if chunk > chunks && chunk.is_multiple_of(chunks / 4) {
                fs.checkpoint_now().unwrap();
                let horizon = fs.flash.horizon();
                let free: Vec<u32> = fs.flash.blocks.free_for_anchors(horizon).map(|(block, _)| block).collect();
                free.into_iter().for_each(|block| fs.flash.retire(block).unwrap());
                lacked += u32::from(fs.lacks_spare_anchor_block());
            }
            fs.make_room(true).unwrap();
            assert!(!fs.lacks_spare_anchor_block(), "write {chunk}");
        }
        assert!(lacked > 2, "there was one whenever one was asked for");
    }

    /// An anchor follows what was gathered before it. Where that failed to be programmed and went elsewhere, the index
    /// went on pointing to the failed page until the next commit: what was written could not be read.
    #[test]
    fn what_fails_to_be_programmed_before_an_anchor_of_a_new_pair_is_read_from_its_new_place() {
        let mut profile = Profile::builtin("tlc-3d").unwrap();
        (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 24);
        let mut fs = mounted(formatted_as(&profile), Mode::Baseline);
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        let ino = fs.create(ROOT_INO, b"file", node, 1).unwrap().ino;
        fs.sync(1).unwrap();
        fs.write(ino, 0, &[7; 4096], 1).unwrap();
        fs.flash.retire(fs.flash.anchors.pair[1 - fs.flash.anchors.newest]).unwrap();
        fs.flash.anchors.other = Other::Missing;
        fs.flash.nand.fail_program_at(0);
        fs.keep_anchor_blocks().unwrap();
        assert_eq!(fs.flash.blocks.failing_count(), 1, "that of the chunk");
        let mut found = [0; 4096];
        fs.read(ino, 0, &mut found).unwrap();
        assert_eq!(found, [7; 4096]);
    }

    /// It once took one more unit of the only block left, of the few that a recovery may need there.
    #[test]
    fn a_pair_that_is_whole_again_goes_on_in_its_new_block() {
        let mut fs = mounted(formatted(), Mode::Baseline);
        fs.sync(1).unwrap();
        fs.flash.own_anchor().unwrap();
        let newest = fs.flash.anchors.newest;
        let left = fs.flash.anchors.pair[newest];
        fs.flash.retire(fs.flash.anchors.pair[1 - newest]).unwrap();
        fs.flash.anchors.other = Other::Missing;
        fs.keep_anchor_blocks().unwrap();
        assert_eq!((fs.flash.anchors.newest, fs.flash.anchors.end), (1 - newest, 1));
        assert_eq!(fs.flash.anchors.pair[newest], left);
    }
}
