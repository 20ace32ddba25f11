//! The block table in memory: what every block is used for, how much of it is still needed, and when it may be
//! erased again.
//!
//! Invariant (reuse): a block is reusable only if nothing in it is needed, replay from the last checkpoint never
//! reads it, every record that emptied it is durable and counts, and every copy taken from it stands on completed
//! word lines. Blocks of each class are counted as they change, so that asking how many are free costs little however
//! large the chip is.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::{Deref, DerefMut};

use nand::CellMode;

use super::dies::HomeDies;
use crate::format::anchor::ANCHOR_BLOCKS;
use crate::format::table::{BlockEntry, Use};

/// What a block that is not known to be fully erased was found to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Found {
    /// Something: a cycle has begun that its next erase ends.
    #[default]
    Pages,
    /// Nothing has been found yet: it was erased, or about to be, before a cut.
    Unknown,
    /// Nothing: to erase it once more ends no cycle.
    Nothing,
}

/// A block. Open to other rooms as a plain value, but for what only its table may know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    pub entry: BlockEntry,
    /// A log head stands in it.
    pub open: bool,
    /// The last era in which a head stood in it, or that it must be kept for; 0 before this mount.
    pub era: u64,
    /// Sequence number of the last record that took something live from it.
    pub kill_seq: u64,
    /// Number of the last copy taken from it.
    pub copy_no: u64,
    /// Something live in it cannot be read: it is never emptied.
    pub stuck: bool,
    /// Reading it takes much of what the ECC can do: it is to be written anew elsewhere.
    pub fading: bool,
    /// What it holds, where its entry does not say that it is erased.
    pub found: Found,
    /// When this mount opened it, ns by a clock that never jumps, unless an earlier one did.
    pub opened_ns: Option<i64>,
    /// Known to be reusable, which only a change of the block can end.
    ready: bool,
}

/// Which of the blocks that are free is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    LeastWorn,
    /// For content that stays: at the end of a life that is to be guaranteed one that has a single cycle left; else the least
    /// worn.
    Settling,
    /// For content that has not changed for long: the most worn that has a cycle left.
    MostWorn,
}

/// Blocks kept for anchors among those that are free: should one of the pair fail, so may the first in its place.
const ANCHORS_KEPT: usize = 2;

impl Block {
    /// One that has just been erased, `erases` times in all.
    pub fn erased(erases: u32) -> Self {
        let entry = BlockEntry { used_as: Use::Free, erased: true, erases, ..BlockEntry::default() };
        Self { entry, ..Self::default() }
    }

    /// Program/erase cycles begun in it.
    pub fn cycles(&self) -> u32 {
        let begun = !self.entry.erased && self.found == Found::Pages;
        self.entry.erases.saturating_add(u32::from(begun))
    }

    /// The cell mode it is programmed in.
    pub fn mode(&self) -> CellMode {
        if self.entry.native { CellMode::Native } else { CellMode::Slc }
    }

    /// Whether it can be erased and used for something new.
    fn is_reusable(&self, horizon: Horizon) -> bool {
        match self.entry.used_as {
            Use::Free => !self.open,
            Use::Meta => self.entry.live_bytes == 0 && !self.open && self.era < horizon.era,
            Use::Log => self.ready || (self.is_emptied(horizon) && self.era < horizon.era),
            Use::Anchor | Use::Bad => false,
        }
    }

    fn is_emptied(&self, horizon: Horizon) -> bool {
        self.entry.live_bytes == 0
            && !self.open
            && self.kill_seq < horizon.committed_seq
            && self.copy_no <= horizon.safe_copy
    }

    /// Whether it holds a part of the log in SLC cells, or is being filled with it.
    fn is_slc(&self) -> bool {
        self.entry.used_as == Use::Log && !self.entry.native && (self.open || self.entry.live_bytes > 0)
    }
}

/// How far the log has got, for the reuse rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Horizon {
    /// The era the last durable checkpoint began: what was programmed in earlier ones is of no use to replay.
    pub era: u64,
    /// Everything below is durable, in complete groups, and out of reach of a torn program.
    pub committed_seq: u64,
    /// Every copy up to this number stands on a completed word line.
    pub safe_copy: u64,
}

/// What matters of a block to whoever looks for one that is free.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// It can be taken.
    Free,
    /// Nothing in it is needed; whether it can be taken depends on how far the log has got.
    Emptied,
    /// It has failed a program or an erase, and waits for its test.
    Failing,
    Other,
}

impl Class {
    fn of(block: &Block) -> Self {
        match block.entry.used_as {
            Use::Anchor | Use::Bad => Class::Other,
            _ if block.entry.failing => Class::Failing,
            _ if block.open => Class::Other,
            Use::Free => Class::Free,
            _ if block.ready => Class::Free,
            Use::Log | Use::Meta if block.entry.live_bytes == 0 => Class::Emptied,
            Use::Log | Use::Meta => Class::Other,
        }
    }
}

/// How many blocks are of which class.
#[derive(Default)]
struct Books {
    free: u32,
    failing: u32,
    fading: u32,
    /// Blocks of the SLC region.
    slc: u32,
    emptied: BTreeSet<u32>,
    /// Cycles begun in all blocks.
    cycles: u64,
}

impl Books {
    fn enter(&mut self, number: u32, class: Class) {
        match class {
            Class::Free => self.free += 1,
            Class::Failing => self.failing += 1,
            Class::Emptied => {
                self.emptied.insert(number);
            }
            Class::Other => {}
        }
    }

    fn strike(&mut self, number: u32, class: Class) {
        match class {
            Class::Free => self.free = self.free.saturating_sub(1),
            Class::Failing => self.failing = self.failing.saturating_sub(1),
            Class::Emptied => {
                self.emptied.remove(&number);
            }
            Class::Other => {}
        }
    }
}

/// A block being changed; the books follow when it is dropped.
pub struct Edit<'a> {
    block: &'a mut Block,
    books: &'a mut Books,
    number: u32,
    before: Class,
    faded: bool,
    was_slc: bool,
    cycles: u32,
}

impl Deref for Edit<'_> {
    type Target = Block;

    fn deref(&self) -> &Block {
        self.block
    }
}

impl DerefMut for Edit<'_> {
    fn deref_mut(&mut self) -> &mut Block {
        self.block
    }
}

impl Drop for Edit<'_> {
    fn drop(&mut self) {
        self.books.fading = (self.books.fading + u32::from(self.block.fading)).saturating_sub(u32::from(self.faded));
        self.books.slc = (self.books.slc + u32::from(self.block.is_slc())).saturating_sub(u32::from(self.was_slc));
        self.books.cycles = (self.books.cycles + u64::from(self.block.cycles())).saturating_sub(u64::from(self.cycles));
        let after = Class::of(self.block);
        if after != self.before {
            self.books.strike(self.number, self.before);
            self.books.enter(self.number, after);
        }
    }
}

/// All blocks.
pub struct BlockTable {
    blocks: Vec<Block>,
    /// Cycles that a block endures.
    endurance: u32,
    /// Where free blocks are taken in turn, whatever their wear: the one taken last.
    last_taken: Option<u32>,
    /// What is settled in a block stays there for the rest of the life that is to be guaranteed.
    settles: bool,
    books: Books,
    live_bytes: u64,
    bad: u32,
}

impl BlockTable {
    /// The table of these entries, of blocks that endure so many cycles.
    pub fn new(entries: Vec<BlockEntry>, endurance: u32) -> Self {
        let blocks = entries.into_iter().map(|entry| Block { entry, ..Block::default() }).collect();
        let mut table = Self {
            blocks,
            endurance,
            last_taken: None,
            settles: false,
            books: Books::default(),
            live_bytes: 0,
            bad: 0,
        };
        table.recount();
        table
    }

    /// Adds everything up once more, after blocks changed their use.
    pub fn recount(&mut self) {
        self.books = Books::default();
        for (number, block) in (0..).zip(&self.blocks) {
            self.books.enter(number, Class::of(block));
            self.books.fading += u32::from(block.fading);
            self.books.slc += u32::from(block.is_slc());
            self.books.cycles += u64::from(block.cycles());
        }
        let log = self.blocks.iter().filter(|block| block.entry.used_as == Use::Log);
        self.live_bytes = log.map(|block| u64::from(block.entry.live_bytes)).sum();
        self.bad = self.blocks.iter().filter(|block| block.entry.used_as == Use::Bad).count() as u32;
    }

    /// Live bytes in the log.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Bad blocks.
    pub fn bad(&self) -> u32 {
        self.bad
    }

    /// Program/erase cycles begun in all blocks.
    pub fn cycles(&self) -> u64 {
        self.books.cycles
    }

    /// Whether a free block was erased before the last cut is to be found out. Its entry says so until it is.
    pub fn doubt(&mut self, number: u32) {
        self.note_found(number, Found::Unknown);
    }

    /// What a free block that is not known to be erased was found to hold.
    pub fn note_found(&mut self, number: u32, found: Found) {
        if let Some(mut block) = self.get_mut(number) {
            block.found = found;
            block.entry.sealed = found != Found::Pages;
        }
    }

    /// Number of blocks.
    pub fn len(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// A block; a default (free) one outside the chip.
    pub fn get(&self, block: u32) -> Block {
        self.blocks.get(block as usize).copied().unwrap_or_default()
    }

    /// A block, to change it.
    pub fn get_mut(&mut self, number: u32) -> Option<Edit<'_>> {
        let block = self.blocks.get_mut(number as usize)?;
        let (before, faded, was_slc, cycles) = (Class::of(block), block.fading, block.is_slc(), block.cycles());
        block.ready = false;
        Some(Edit { block, books: &mut self.books, number, before, faded, was_slc, cycles })
    }

    /// Notes which blocks are reusable, now that a checkpoint has made more so.
    pub fn settle(&mut self, horizon: Horizon) {
        let reusable: Vec<u32> =
            self.books.emptied.iter().copied().filter(|&number| self.reusable(number, horizon)).collect();
        for number in reusable {
            if let Some(mut block) = self.get_mut(number) {
                block.ready = true;
            }
        }
    }

    /// All blocks with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Block)> + Clone {
        self.blocks.iter().enumerate().map(|(number, block)| (number as u32, block))
    }

    /// Counts `bytes` more (or, where negative, fewer) as needed in `block`. `false`: the books do not balance.
    pub fn add_live(&mut self, block: u32, bytes: i64) -> bool {
        let Some(mut found) = self.get_mut(block) else { return false };
        let now = i64::from(found.entry.live_bytes) + bytes;
        let Ok(live_bytes) = u32::try_from(now) else { return false };
        found.entry.live_bytes = live_bytes;
        let in_log = found.entry.used_as == Use::Log;
        drop(found);
        if in_log {
            self.live_bytes = self.live_bytes.saturating_add_signed(bytes);
        }
        true
    }

    /// Whether a block can be erased and used for something new.
    pub fn reusable(&self, number: u32, horizon: Horizon) -> bool {
        self.blocks.get(number as usize).is_some_and(|block| block.is_reusable(horizon))
    }

    /// Whether a block can be used once the next checkpoint is durable, and not before.
    pub fn waits_for_checkpoint(&self, number: u32, horizon: Horizon) -> bool {
        let block = self.get(number);
        let empty = matches!(block.entry.used_as, Use::Log | Use::Meta) && block.entry.live_bytes == 0 && !block.open;
        empty && !self.reusable(number, horizon)
    }

    /// Blocks that can be used for something new.
    pub fn reusable_count(&self, horizon: Horizon) -> u32 {
        let emptied = self.books.emptied.iter().filter(|&&number| self.reusable(number, horizon));
        self.books.free + emptied.count() as u32
    }

    /// Blocks that went bad, or failed and wait for their test.
    pub fn failed_count(&self) -> u32 {
        self.bad + self.books.failing
    }

    /// Blocks that failed a program or an erase and wait for their test.
    pub fn failing_count(&self) -> u32 {
        self.books.failing
    }

    /// Blocks of the SLC region that hold something, or are being filled.
    pub fn slc_count(&self) -> u32 {
        self.books.slc
    }

    /// Blocks that are to be written anew elsewhere.
    pub fn fading_count(&self) -> u32 {
        self.books.fading
    }

    /// What a block holds is being written anew.
    pub fn forget_fading(&mut self, number: u32) {
        if let Some(mut block) = self.get_mut(number) {
            block.fading = false;
        }
    }

    /// Whether a block has used up its endurance, so that it may fail by itself.
    pub fn is_worn_out(&self, block: u32) -> bool {
        self.get(block).entry.erases >= self.endurance
    }

    /// Whether a block was erased so many times more than blocks are on average.
    pub fn is_ahead(&self, block: u32, erases: u32) -> bool {
        let total: u64 = self.blocks.iter().map(|block| u64::from(block.entry.erases)).sum();
        let mean = (total / u64::from(self.len().max(1))) as u32;
        self.get(block).entry.erases > mean + erases
    }

    /// The reusable block to take next: not failing, least erased, or most, erased ones first. The last
    /// ones that anchors may stand in are kept for them, unless there is no other. A lane takes one of its home, if that has
    /// any; among equal ones one of the die with the most.
    pub fn pick(&self, horizon: Horizon, take: Take, home: HomeDies) -> Option<u32> {
        let turn = self.turns(horizon, take);
        if !home.are_some() {
            return self.free(horizon).min_by_key(|&(number, block)| turn(number, block)).map(|(number, _)| number);
        }
        let of_die = home.count_each(self.free(horizon).map(|(number, _)| number));
        let free_beside = |block: u32| of_die.get(block as usize % of_die.len().max(1)).copied().unwrap_or(0);
        let key = |number, block: &Block| {
            let (kept, wear, unerased, for_anchors) = turn(number, block);
            (kept, !home.hold(number), wear, unerased, for_anchors, Reverse(free_beside(number)))
        };
        self.free(horizon).min_by_key(|&(number, block)| key(number, block)).map(|(number, _)| number)
    }

    /// The first of the so many blocks to be taken next by a lane at home there that is not erased.
    pub fn pick_to_erase(&self, horizon: Horizon, ahead_blocks: u32, home: HomeDies) -> Option<u32> {
        let turn = self.turns(horizon, Take::LeastWorn);
        let free = || self.free(horizon).filter(move |&(number, _)| home.hold(number));
        let unerased = free().filter(|(_, block)| !block.entry.erased);
        let (next, number) = unerased.map(|(number, block)| (turn(number, block), number)).min()?;
        let before = free().filter(|&(number, block)| turn(number, block) < next);
        (before.take(ahead_blocks as usize).count() < ahead_blocks as usize).then_some(number)
    }

    /// From now on free blocks are taken in turn, whatever their wear.
    pub fn take_in_turn(&mut self) {
        self.last_taken = Some(0);
    }

    /// Whether what is settled in a block from now on stays for the rest of a life.
    pub fn set_settling(&mut self, settles: bool) {
        self.settles = settles;
    }

    /// Whether free blocks are taken by their wear.
    pub fn levels(&self) -> bool {
        self.last_taken.is_none()
    }

    /// A block was taken.
    pub fn note_taken(&mut self, number: u32) {
        self.last_taken = self.last_taken.map(|_| number);
    }

    /// When the turn of a block comes to be taken; the least first.
    fn turns(&self, horizon: Horizon, take: Take) -> impl Fn(u32, &Block) -> (bool, u32, bool, bool) + use<> {
        let for_anchors = self.free_for_anchors(horizon).count();
        let (last_taken, blocks, endurance) = (self.last_taken, self.len().max(1), self.endurance);
        let settles = self.settles;
        move |number, block| {
            let kept = for_anchors <= ANCHORS_KEPT && number < ANCHOR_BLOCKS;
            let erases = block.cycles();
            let wear = match last_taken {
                Some(last) => (number + blocks - 1 - last.min(blocks - 1)) % blocks,
                None => match take {
                    Take::LeastWorn => erases,
                    Take::Settling if settles && erases + 1 == endurance => 0,
                    Take::MostWorn if erases < endurance => endurance - 1 - erases,
                    Take::Settling | Take::MostWorn => erases,
                },
            };
            (kept, wear, !block.entry.erased, number < ANCHOR_BLOCKS)
        }
    }

    /// Those of the blocks that can be taken now that anchors may stand in, with their numbers.
    pub fn free_for_anchors(&self, horizon: Horizon) -> impl Iterator<Item = (u32, &Block)> {
        self.free(horizon).take_while(|&(number, _)| number < ANCHOR_BLOCKS)
    }

    /// The blocks that can be taken now, with their numbers: reusable, and not failing.
    pub fn free(&self, horizon: Horizon) -> impl Iterator<Item = (u32, &Block)> {
        self.iter().filter(move |(_, block)| !block.entry.failing && block.is_reusable(horizon))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small seeded numbers.
    fn dice(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        *state >> 33
    }

    #[test]
    fn the_books_say_what_a_look_at_every_block_would() {
        let uses = [Use::Free, Use::Log, Use::Meta, Use::Anchor, Use::Bad];
        let mut table = BlockTable::new(alloc::vec![BlockEntry::default(); 40], 1000);
        let (mut state, mut horizon, mut most_ready) = (1, Horizon::default(), 0);
        for step in 0..20_000u64 {
            let number = (dice(&mut state) % 40) as u32;
            match dice(&mut state) % 8 {
                0..3 => {
                    table.add_live(number, (dice(&mut state) % 3) as i64 - 1);
                }
                3 => horizon.era += 1,
                4 => {
                    horizon.committed_seq = step;
                    horizon.safe_copy = step;
                }
                5 => table.settle(horizon),
                _ => {
                    let Some(mut block) = table.get_mut(number) else { continue };
                    block.entry.used_as = uses[(dice(&mut state) % 5) as usize];
                    block.entry.failing = dice(&mut state).is_multiple_of(8);
                    block.entry.native = dice(&mut state).is_multiple_of(2);
                    block.open = dice(&mut state).is_multiple_of(4);
                    block.fading = dice(&mut state).is_multiple_of(3);
                    block.entry.erased = dice(&mut state).is_multiple_of(2);
                    block.entry.erases += 1;
                    (block.era, block.kill_seq, block.copy_no) = (horizon.era, step, step);
                }
            }
            let sound = table.iter().filter(|(_, block)| !block.entry.failing);
            let slow = sound.filter(|&(number, _)| table.reusable(number, horizon)).count() as u32;
            assert_eq!(table.reusable_count(horizon), slow, "step {step}");
            let failing = table.iter().filter(|(_, block)| Class::of(block) == Class::Failing).count() as u32;
            assert_eq!(table.failing_count(), failing, "step {step}");
            let slc = table.iter().filter(|(_, block)| block.entry.used_as == Use::Log && !block.entry.native);
            let slc = slc.filter(|(_, block)| block.open || block.entry.live_bytes > 0).count() as u32;
            assert_eq!(table.slc_count(), slc, "step {step}");
            let cycles: u64 = table.iter().map(|(_, block)| u64::from(block.cycles())).sum();
            assert_eq!(table.cycles(), cycles, "step {step}");
            assert_eq!(
                table.fading_count(),
                table.iter().filter(|(_, block)| block.fading).count() as u32,
                "step {step}"
            );
            most_ready = most_ready.max(table.iter().filter(|(_, block)| block.ready).count());
        }
        assert!(most_ready > 3, "blocks that became ready: {most_ready}");
    }

    /// One was kept, which is as likely to fail as any: an erase of the pair failed, then the first program of that one,
    /// and anchors had one block of a few pages left.
    #[test]
    fn the_last_two_blocks_that_anchors_may_stand_in_are_taken_last() {
        // The others are more worn: but for anchors they would come last.
        let erases = |number| if number < ANCHOR_BLOCKS { 0 } else { 100 };
        let entries = (0..20).map(|number| BlockEntry { erases: erases(number), ..BlockEntry::default() });
        let mut table = BlockTable::new(entries.collect(), 1000);
        let mut taken = Vec::new();
        while let Some(number) = table.pick(Horizon::default(), Take::LeastWorn, HomeDies::ALL) {
            taken.push(number);
            table.get_mut(number).unwrap().open = true;
        }
        assert_eq!(taken.len(), 20);
        assert!(taken[18..].iter().all(|&number| number < ANCHOR_BLOCKS), "{taken:?}");
    }

    /// Levelling moved content to blocks that had no cycle left, again and again: each was behind the next, more worn one.
    #[test]
    fn what_never_changes_goes_to_the_most_worn_block_that_has_a_cycle_left() {
        let entry = |erases| BlockEntry { erases, erased: true, ..BlockEntry::default() };
        let entries = [7, 10, 9, 8, 12];
        let mut table = BlockTable::new(entries.into_iter().map(entry).collect(), 10);
        let mut taken = |take| {
            let number = table.pick(Horizon::default(), take, HomeDies::ALL).unwrap();
            table.get_mut(number).unwrap().open = true;
            entries[number as usize]
        };
        assert_eq!([(); 5].map(|()| taken(Take::MostWorn)), [9, 8, 7, 10, 12]);
    }

    #[test]
    fn what_stays_for_the_rest_of_a_life_takes_the_last_cycle_of_a_block() {
        let entry = |erases| BlockEntry { erases, erased: true, ..BlockEntry::default() };
        let entries = [10, 8, 9];
        let mut table = BlockTable::new(entries.into_iter().map(entry).collect(), 10);
        let taken = |table: &BlockTable, take| {
            table.pick(Horizon::default(), take, HomeDies::ALL).map(|number| entries[number as usize])
        };
        assert_eq!(taken(&table, Take::Settling), Some(8), "the block is taken again in this life");
        table.set_settling(true);
        assert_eq!(taken(&table, Take::Settling), Some(9));
        assert_eq!(taken(&table, Take::LeastWorn), Some(8));
    }
}
