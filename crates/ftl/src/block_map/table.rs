//! The map of blocks: which physical block stands for a logical one, and the use and the erases of each physical block.
//!
//! Both are kept die by die, so that whatever is done for a die looks at one range of them. Invariants: a logical block and
//! its physical one stand on the same die; a physical block is in use for one logical block at most.

use alloc::vec;
use alloc::vec::Vec;

/// The use of a physical block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PhysicalUse {
    /// Nothing in it is needed; it is erased before it is used.
    Free,
    /// Erased, or being erased.
    Erased,
    /// Erased, and recorded so: it is not taken before a record says otherwise.
    Kept,
    /// It stands for a logical block.
    InUse,
    /// The same, and a program of it has failed.
    Failing,
    /// The same, and an erase of it or its first program has failed: nothing more is programmed in it.
    Closed,
    /// It failed, nothing in it is needed, and no test could be finished.
    Suspect,
    /// It holds records of the drive's own.
    Record,
    /// It is marked bad on the chip.
    Bad,
}

impl PhysicalUse {
    const ALL: [PhysicalUse; 9] = [
        PhysicalUse::Free,
        PhysicalUse::Erased,
        PhysicalUse::Kept,
        PhysicalUse::InUse,
        PhysicalUse::Failing,
        PhysicalUse::Closed,
        PhysicalUse::Suspect,
        PhysicalUse::Record,
        PhysicalUse::Bad,
    ];

    /// Whether it may be taken into use.
    pub fn is_free(self) -> bool {
        matches!(self, PhysicalUse::Free | PhysicalUse::Erased | PhysicalUse::Kept)
    }

    /// Whether it can stand for a logical block, now or later: one that no test could be finished of is not given up.
    fn is_sound(self) -> bool {
        self.is_free() || self.has_failed() || matches!(self, PhysicalUse::InUse | PhysicalUse::Suspect)
    }

    /// The use of a block whose program of a unit has failed. Behind a first page that may be blank nothing is found again.
    pub fn after_failed_program(unit: u32) -> Self {
        if unit == 0 { PhysicalUse::Closed } else { PhysicalUse::Failing }
    }

    /// Whether it stands for a logical block, and is to be tested at the next erase.
    pub fn has_failed(self) -> bool {
        matches!(self, PhysicalUse::Failing | PhysicalUse::Closed)
    }
}

/// Bits of an entry that count erases; the use stands above them.
const ERASE_BITS: u32 = 24;
/// The most erases that are counted.
pub const ERASES_MAX: u32 = (1 << ERASE_BITS) - 1;
/// A logical block without a physical one.
const UNMAPPED: u32 = (1 << 30) - 1;
/// Set where the caller has marked the logical block bad.
const MARKED: u32 = 1 << 31;
/// Set where no physical block is left for the logical one: it fails until the caller marks it.
const WITHDRAWN: u32 = 1 << 30;
const FLAGS: u32 = MARKED | WITHDRAWN;

/// The numbers of a drive's blocks: block *b* stands on die *b* mod dies, as the chip's contract has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveSize {
    pub dies: u32,
    /// Physical blocks of a die, and logical ones.
    pub physical: u32,
    pub logical: u32,
}

impl DriveSize {
    /// The place of a physical block in lists that are kept die by die.
    pub fn at(&self, block: u32) -> usize {
        (block % self.dies * self.physical + block / self.dies) as usize
    }

    /// The physical block at such a place.
    pub fn block(&self, at: usize) -> u32 {
        at as u32 % self.physical * self.dies + at as u32 / self.physical
    }

    /// The place of a logical block in lists that are kept die by die.
    pub fn logical_at(&self, logical: u32) -> usize {
        (logical % self.dies * self.logical + logical / self.dies) as usize
    }

    /// The logical block at such a place, if there is one.
    pub fn logical_block(&self, at: usize) -> Option<u32> {
        let at = u32::try_from(at).ok().filter(|&at| at < self.logical_blocks())?;
        Some(at % self.logical * self.dies + at / self.logical)
    }

    /// The places of a die's physical blocks.
    pub fn places(&self, die: u32) -> core::ops::Range<usize> {
        (die * self.physical) as usize..((die + 1) * self.physical) as usize
    }

    /// All logical blocks.
    pub fn logical_blocks(&self) -> u32 {
        self.dies.saturating_mul(self.logical)
    }

    /// All physical blocks.
    pub fn physical_blocks(&self) -> u32 {
        self.dies.saturating_mul(self.physical)
    }
}

/// The map and the physical blocks.
#[derive(Debug)]
pub struct DriveTable {
    size: DriveSize,
    /// Of each logical block, its physical one.
    map: Vec<u32>,
    /// Of each physical block, its use and its erases.
    entries: Vec<u32>,
}

impl DriveTable {
    /// A table of free blocks that were never erased.
    pub fn new(size: DriveSize) -> Self {
        let (logical, physical) = (size.logical_blocks() as usize, size.physical_blocks() as usize);
        Self { size, map: vec![UNMAPPED; logical], entries: vec![0; physical] }
    }

    pub fn ram_bytes(&self) -> usize {
        (self.map.capacity() + self.entries.capacity()) * size_of::<u32>()
    }

    pub fn size(&self) -> DriveSize {
        self.size
    }

    fn mapped(&self, logical: u32) -> Option<u32> {
        let at = (logical < self.size.logical_blocks()).then(|| self.size.logical_at(logical))?;
        self.map.get(at).copied()
    }

    fn mapped_mut(&mut self, logical: u32) -> Option<&mut u32> {
        let at = (logical < self.size.logical_blocks()).then(|| self.size.logical_at(logical))?;
        self.map.get_mut(at)
    }

    /// The physical block that stands for a logical one, if one does.
    pub fn physical(&self, logical: u32) -> Option<u32> {
        let entry = self.mapped(logical).map_or(UNMAPPED, |entry| entry & !FLAGS);
        (entry != UNMAPPED).then_some(entry)
    }

    /// Makes a physical block stand for a logical one, or none.
    pub fn set_physical(&mut self, logical: u32, physical: Option<u32>) {
        if let Some(entry) = self.mapped_mut(logical) {
            *entry = *entry & FLAGS | physical.unwrap_or(UNMAPPED);
        }
    }

    /// The logical block that a physical one stands for.
    pub fn logical(&self, physical: u32) -> Option<u32> {
        let die = physical % self.size.dies;
        let on_die = (0..self.size.logical).map(|index| index * self.size.dies + die);
        on_die.into_iter().find(|&logical| self.physical(logical) == Some(physical))
    }

    /// Whether the caller has marked a logical block bad.
    pub fn is_marked(&self, logical: u32) -> bool {
        self.mapped(logical).is_none_or(|entry| entry & MARKED != 0)
    }

    pub fn mark(&mut self, logical: u32) {
        if let Some(entry) = self.mapped_mut(logical) {
            *entry |= MARKED;
        }
    }

    /// Whether a logical block has to do without a physical one.
    pub fn is_withdrawn(&self, logical: u32) -> bool {
        self.mapped(logical).is_some_and(|entry| entry & WITHDRAWN != 0)
    }

    pub fn withdraw(&mut self, logical: u32) {
        if let Some(entry) = self.mapped_mut(logical) {
            *entry |= WITHDRAWN;
        }
    }

    fn entry(&self, block: u32) -> u32 {
        self.entries.get(self.size.at(block)).copied().unwrap_or((PhysicalUse::Bad as u32) << ERASE_BITS)
    }

    pub fn used_as(&self, block: u32) -> PhysicalUse {
        let code = self.entry(block) >> ERASE_BITS;
        PhysicalUse::ALL.into_iter().find(|used_as| *used_as as u32 == code).unwrap_or(PhysicalUse::Bad)
    }

    pub fn erases(&self, block: u32) -> u32 {
        self.entry(block) & ERASES_MAX
    }

    pub fn set(&mut self, block: u32, used_as: PhysicalUse, erases: u32) {
        if let Some(entry) = self.entries.get_mut(self.size.at(block)) {
            *entry = (used_as as u32) << ERASE_BITS | erases.min(ERASES_MAX);
        }
    }

    pub fn set_use(&mut self, block: u32, used_as: PhysicalUse) {
        self.set(block, used_as, self.erases(block));
    }

    /// The physical blocks of a die.
    pub fn on_die(&self, die: u32) -> impl Iterator<Item = u32> + '_ {
        self.size.places(die).map(|at| self.size.block(at))
    }

    /// The least erased block of a die in one of these uses.
    pub fn least_erased(&self, die: u32, uses: &[PhysicalUse]) -> Option<u32> {
        self.on_die(die).filter(|&block| uses.contains(&self.used_as(block))).min_by_key(|&block| self.erases(block))
    }

    /// Whether a die has a sound block for each of its logical blocks that is neither marked bad nor withdrawn.
    pub fn has_enough(&self, die: u32) -> bool {
        let sound = self.on_die(die).filter(|&block| self.used_as(block).is_sound()).count();
        let on_die = (0..self.size.logical).map(|index| index * self.size.dies + die);
        let given_up = |logical: &u32| self.is_marked(*logical) || self.is_withdrawn(*logical);
        let without = on_die.filter(|logical| given_up(logical) && self.physical(*logical).is_none()).count();
        sound + without >= self.size.logical as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: DriveSize = DriveSize { dies: 4, physical: 10, logical: 8 };

    #[test]
    fn places_lead_back_to_blocks_of_the_same_die() {
        for block in 0..SIZE.physical_blocks() {
            let at = SIZE.at(block);
            assert_eq!(SIZE.block(at), block);
            assert!(SIZE.places(block % 4).contains(&at));
        }
    }

    #[test]
    fn a_mark_of_the_caller_stays_whatever_is_mapped() {
        let mut table = DriveTable::new(SIZE);
        table.set_physical(6, Some(10));
        table.mark(6);
        assert_eq!((table.physical(6), table.logical(10), table.is_marked(6)), (Some(10), Some(6), true));
        table.set_physical(6, None);
        assert_eq!((table.physical(6), table.logical(10), table.is_marked(6)), (None, None, true));
        assert!(table.is_marked(32) && table.physical(32).is_none(), "outside");
    }

    #[test]
    fn a_die_has_enough_while_its_spares_last() {
        let mut table = DriveTable::new(SIZE);
        for (bad, enough) in [(1, true), (5, true), (9, false)] {
            table.set(bad, PhysicalUse::Bad, 3);
            assert_eq!((table.has_enough(1), table.has_enough(2)), (enough, true), "{bad}");
        }
        table.mark(13);
        assert!(table.has_enough(1));
        assert_eq!((table.used_as(9), table.erases(9)), (PhysicalUse::Bad, 3));
    }
}
