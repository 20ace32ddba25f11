//! Reading the log: every head is followed from where the last anchor says it stood, block after block.
//!
//! Invariants: a block belongs to the log only if the anchor or a summary names it and what stands in it is new; what a
//! torn program may have left half readable is kept in memory, as it may not be readable a second time.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use nand::{Cause, CellMode, Nand};

use super::block_log::{BlockLog, OpenBlock, OpenBlocks, endangered};
use crate::error::Result;
use crate::flash::head::{HeadId, Tail};
use crate::flash::read::SlotLook;
use crate::flash::slots::{Slots, Stashed};
use crate::format::anchor::{Anchor, Named};
use crate::format::place::Slot;
use crate::format::summary::Summary;
use crate::format::tag::Tag;

/// A block the log went through.
pub struct Visited {
    pub id: HeadId,
    /// Its erase count, where a slot tells.
    pub erases: Option<u32>,
    pub sealed: bool,
}

/// A chain of blocks, from the block that the anchor gives to its end.
struct HeadChain {
    head: HeadId,
    /// The end of the chain that it may go on from: the head and the block.
    before: Option<(HeadId, u32)>,
    blocks: Vec<BlockLog>,
    /// Its last block, if that has no summary.
    open: Option<OpenBlock>,
}

/// The end of a chain of blocks.
struct ChainEnd {
    head: HeadId,
    /// The block that it ends in.
    block: u32,
    /// The slots of its last block that may not be readable again, if it is the one the power failed in.
    doubtful: Vec<Stashed>,
}

/// What the log holds since the checkpoint.
pub struct Scan {
    pub(super) seq: u64,
    pub(super) slots: Vec<(Tag, Slot)>,
    pub(super) visited: BTreeMap<u32, Visited>,
    /// Recoveries begun before this one: pages that look erased but may be torn.
    recoveries: u32,
    /// Where each head can go on: past what was, or may have been, programmed.
    pub(super) tails: Vec<Tail>,
    /// The greatest sequence number seen, counted or not.
    pub(super) last_seq: u64,
    pub(super) last_ino: u64,
}

impl Scan {
    /// Follows every log head from where the anchor says it stood. What may not be readable again is in the stash.
    pub fn new<N: Nand>(slots: &mut Slots<N>, anchor: &Anchor) -> Result<Self> {
        let mut scan = Self {
            seq: anchor.seq,
            slots: Vec::new(),
            visited: BTreeMap::new(),
            recoveries: anchor.recoveries,
            tails: Vec::new(),
            last_seq: anchor.seq,
            last_ino: 0,
        };
        let mut ends = scan.follow_all(slots, anchor)?;
        ends.sort_by_key(|end| end.head as u8);
        slots.set_stash(ends.into_iter().flat_map(|end| end.doubtful).collect());
        Ok(scan)
    }

    /// Follows every chain of blocks. The ends of the chains that no other chain goes on.
    fn follow_all<N: Nand>(&mut self, slots: &mut Slots<N>, anchor: &Anchor) -> Result<Vec<ChainEnd>> {
        let mut chains = self.chains(slots, anchor)?;
        OpenBlocks(chains.iter_mut().filter_map(|chain| chain.open.as_mut()).collect()).read(slots)?;
        let mut ends = Vec::<ChainEnd>::new();
        for mut chain in chains {
            let layout = slots.nand().layout(chain.head.mode());
            chain.blocks.extend(chain.open.take().map(|open| open.end(slots.shape(), layout)));
            let (head, before) = (chain.head, chain.before);
            let Some(end) = self.take_chain(chain) else { continue };
            let several = anchor.heads.iter().filter(|at| at.head == head as u8).count() > 1;
            // The lane went on to this block: its programs in those before had ended.
            let has_ended = |end: &ChainEnd| match several {
                true => before == Some((end.head, end.block)),
                false => end.head == head,
            };
            if several {
                let ended = ends.iter().filter(|end| has_ended(end));
                ended.for_each(|end| self.tails.retain(|tail| tail.block != end.block));
            }
            ends.retain(|end| !has_ended(end));
            ends.push(end);
        }
        Ok(ends)
    }

    /// The chains that the anchor gives, each block in one of them. Those without a summary are still to be read.
    fn chains<N: Nand>(&self, slots: &mut Slots<N>, anchor: &Anchor) -> Result<Vec<HeadChain>> {
        let (mut chains, mut before, mut followed) = (Vec::new(), None, BTreeSet::new());
        let heads = anchor.heads.iter().map(|&at| (Named { head: at.head, block: at.block }, at.unit));
        let names = anchor.names.iter().map(|&named| (named, 0));
        for (named, unit) in heads.chain(names) {
            let Some(head) = HeadId::log_head(named.head) else { continue };
            if let Some(block) = named.chain_end() {
                before = Some((head, block));
                continue;
            }
            let mut chain = HeadChain { head, before: before.take(), blocks: Vec::new(), open: None };
            self.follow(slots, &mut chain, &mut followed, (named.block, unit))?;
            chains.push(chain);
        }
        Ok(chains)
    }

    /// Follows a chain of blocks, some of which belong to the log, from a unit of a block on.
    fn follow<N: Nand>(
        &self,
        slots: &mut Slots<N>,
        chain: &mut HeadChain,
        followed: &mut BTreeSet<u32>,
        (mut block, mut unit): (u32, u32),
    ) -> Result<()> {
        while block < slots.blocks().len() && followed.insert(block) {
            let log = BlockLog::new(chain.head, block, unit, self.seq);
            let Some(summary) = slots.read_summary(block, chain.head.mode(), self.seq, Cause::Metadata)? else {
                chain.open = Some(OpenBlock::new(log, self.recoveries));
                break;
            };
            let (next, log) = (summary.next, self.read_sealed(slots, log, &summary)?);
            chain.blocks.push(log);
            (block, unit) = (next, 0);
        }
        Ok(())
    }

    /// Takes in the blocks of a chain, in order; its end.
    fn take_chain(&mut self, chain: HeadChain) -> Option<ChainEnd> {
        let mut end: Option<ChainEnd> = None;
        for log in chain.blocks {
            let BlockLog { head, block, from, sealed, erases, .. } = log;
            // A block that was named but not written to is not the log's.
            if log.counts() || from > 0 {
                self.visited.insert(block, Visited { id: head, erases, sealed });
            }
            match &mut end {
                _ if log.counts() => end = Some(ChainEnd { head, block, doubtful: log.doubtful }),
                Some(end) => end.block = block,
                None => {}
            }
            self.tails.extend(log.tail);
            for (tag, _) in &log.slots {
                self.last_seq = self.last_seq.max(tag.seq);
                self.last_ino = self.last_ino.max(tag.ino);
            }
            self.slots.extend(log.slots);
        }
        end
    }

    /// Takes a sealed block's tags from its summary. Of the slots that the torn program of the summary may have
    /// destroyed, only what can be read is taken; those are doubtful.
    fn read_sealed<N: Nand>(&self, slots: &mut Slots<N>, mut log: BlockLog, summary: &Summary) -> Result<BlockLog> {
        let mode = log.head.mode();
        let shape = slots.shape().mode(mode).clone();
        let at_risk = match self.went_on(slots, mode, summary.next)? {
            true => Vec::new(),
            false => endangered(slots.nand().layout(mode), shape.content_units..shape.units),
        };
        log.sealed = true;
        for (index, raw) in (0u32..).zip(&summary.tags).skip((log.from * shape.unit_slots) as usize) {
            let Some(tag) = Tag::decode_unchecked(raw) else { continue };
            let slot = slots.shape().slot(log.block, index);
            if at_risk.contains(&(index / shape.unit_slots)) {
                match slots.look_at(&[(slot, mode)])?.pop() {
                    Some(SlotLook::Whole(_, stashed)) => log.doubtful.push(stashed),
                    Some(SlotLook::Blank | SlotLook::Corrupt) | None => continue,
                }
            }
            log.take(tag, slot);
        }
        Ok(log)
    }

    /// Whether the head was seen to write to the block a summary names.
    fn went_on<N: Nand>(&self, slots: &mut Slots<N>, mode: CellMode, next: u32) -> Result<bool> {
        let first = slots.shape().slot(next, 0);
        Ok(
            matches!(slots.look_at(&[(first, mode)])?.pop(), Some(SlotLook::Whole(tag, _)) if tag.seq >= self.seq && !tag.unlogged),
        )
    }
}
