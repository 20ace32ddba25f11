//! The array of pages: what stands where, and how programs and erases change it.
//!
//! Invariants: `table` and `store` change together, and neither where the medium refuses. The latest program or erase of
//! each die is kept until it can no longer be undone.

use std::sync::Arc;

use nand::{CellMode, NandError};

use crate::{
    error::medium,
    spec::Spec,
    store::{ErasedContents, Medium, RamStore, Store},
    table::{BlockMeta, PageState, SavedBlock, Table},
};

/// The pages of a chip, and the chip's own traits: its kind and its seed.
#[derive(Debug)]
pub(crate) struct PageArray {
    pub(crate) spec: Arc<Spec>,
    pub(crate) seed: u64,
    pub(crate) table: Table,
    pub(crate) store: Store,
    /// Each die's latest program or erase, which a power cut may undo while the die is busy.
    in_flight: Vec<Option<PostedOperation>>,
}

/// The things it takes to undo a posted operation.
#[derive(Clone, Debug)]
pub(crate) enum PostedOperation {
    Program { block: u32, unit: u32, mode: CellMode, before: BlockMeta },
    Erase { block: u32, saved: SavedBlock, erased: ErasedContents },
}

/// The bytes a unit is programmed with.
pub(crate) struct UnitBytes<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) spare: &'a [u8],
    /// Whether a chip without host data keeps `data` too.
    pub(crate) keep: bool,
}

impl PageArray {
    pub(crate) fn new(spec: Arc<Spec>, seed: u64, table: Table, medium: Medium) -> Self {
        let in_flight = vec![None; spec.geometry.dies() as usize];
        Self { spec, seed, table, store: Store::new(medium), in_flight }
    }

    /// A copy in RAM. Of an array in an image, nothing is in flight in it, and pages that the host fails to read are
    /// uncorrectable.
    pub(crate) fn snapshot(&self) -> Self {
        let mut table = self.table.clone();
        let (medium, in_flight) = match &self.store.medium {
            Medium::Ram(ram) => (Medium::Ram(ram.clone()), self.in_flight.clone()),
            Medium::Spare(store) => (Medium::Spare(store.clone()), self.in_flight.clone()),
            Medium::Image(image) => {
                (Medium::Ram(RamStore::load(image, &self.spec, &mut table)), vec![None; self.in_flight.len()])
            }
        };
        let store = Store { medium, failing: self.store.failing };
        Self { spec: Arc::clone(&self.spec), seed: self.seed, table, store, in_flight }
    }

    pub(crate) fn dies(&self) -> usize {
        self.in_flight.len()
    }

    pub(crate) fn die_of(&self, block: u32) -> usize {
        self.spec.geometry.die_of(block) as usize
    }

    /// The mode of a block; native of a block without one.
    pub(crate) fn mode_of(&self, block: u32) -> CellMode {
        self.table.meta(block).mode.unwrap_or(CellMode::Native)
    }

    /// Counts a read of a block since its erase.
    pub(crate) fn count_read(&mut self, block: u32) {
        let meta = self.table.meta_mut(block);
        meta.reads = meta.reads.saturating_add(1);
        meta.unsaved_reads = true;
    }

    /// Puts a unit's bytes and states in place, or, where the medium refuses, nothing at all.
    pub(crate) fn program(
        &mut self,
        block: u32,
        unit: u32,
        mode: CellMode,
        bytes: UnitBytes<'_>,
        fails: bool,
        now_ns: u64,
    ) -> Result<(), NandError> {
        let UnitBytes { data, spare, keep } = bytes;
        let before = *self.table.meta(block);
        let saved = self.store.is_image().then(|| self.table.save(block));
        let page_bytes = self.spec.geometry.page_bytes as usize;
        let spare_bytes = self.spec.geometry.spare_bytes as usize;
        let pages = self.spec.layout(mode).unit_pages(unit);
        for (index, &page) in pages.iter().enumerate() {
            let page_data = &data[index * page_bytes..(index + 1) * page_bytes];
            let page_spare =
                &spare[(index * spare_bytes).min(spare.len())..((index + 1) * spare_bytes).min(spare.len())];
            self.store
                .put(block, page, page_data, page_spare, keep)
                .map_err(|error| medium("writing the image", &error))?;
        }
        for &page in pages {
            let lost = fails || self.table.state(block, page) == PageState::Weak;
            let state = if lost { PageState::Uncorrectable } else { PageState::Programmed };
            self.table.set_state(block, page, state);
        }
        let meta = self.table.meta_mut(block);
        if meta.mode.is_none() {
            meta.mode = Some(mode);
            meta.cycles = meta.cycles.saturating_add(1);
            meta.programmed_ns = now_ns;
        }
        meta.next_unit = unit + 1;
        meta.failed |= fails;
        self.commit_or_restore(block, saved.as_ref(), now_ns)?;
        let die = self.die_of(block);
        self.in_flight[die] = Some(PostedOperation::Program { block, unit, mode, before });
        Ok(())
    }

    /// Erases a block and keeps what it held as in flight, or, where the medium refuses, does nothing.
    pub(crate) fn erase(&mut self, block: u32, fails: bool, now_ns: u64) -> Result<(), NandError> {
        let mode = self.mode_of(block);
        let saved = self.table.save(block);
        let meta = self.table.meta_mut(block);
        if fails {
            meta.failed = true;
            return self.commit_or_restore(block, Some(&saved), now_ns);
        }
        meta.erase_count = meta.erase_count.saturating_add(1);
        if mode == CellMode::Slc {
            meta.slc_erases = meta.slc_erases.saturating_add(1);
        }
        meta.mode = None;
        meta.next_unit = 0;
        meta.reads = 0;
        meta.programmed_ns = 0;
        self.table.states_mut(block).fill(PageState::Erased);
        self.commit_or_restore(block, Some(&saved), now_ns)?;
        let erased = self.store.erase(block);
        let die = self.die_of(block);
        self.in_flight[die] = Some(PostedOperation::Erase { block, saved, erased });
        Ok(())
    }

    /// Marks a block bad for good.
    pub(crate) fn mark_bad(&mut self, block: u32, now_ns: u64) -> Result<(), NandError> {
        self.check_page(block, 0)?;
        let was_bad = std::mem::replace(&mut self.table.meta_mut(block).bad, true);
        self.commit(block, now_ns).inspect_err(|_| self.table.meta_mut(block).bad = was_bad)
    }

    /// Whether a die has an operation in flight.
    pub(crate) fn has_in_flight(&self, die: usize) -> bool {
        self.in_flight.get(die).is_some_and(Option::is_some)
    }

    /// Takes the operation that a die has in flight.
    pub(crate) fn take_in_flight(&mut self, die: usize) -> Option<PostedOperation> {
        self.in_flight[die].take()
    }

    /// A die's latest operation has ended and can no longer be undone.
    pub(crate) fn settle_die(&mut self, die: usize) {
        if let Some(PostedOperation::Erase { block, erased, .. }) = self.in_flight[die].take() {
            self.store.forget(block, erased);
        }
    }

    /// The same of every die.
    pub(crate) fn settle(&mut self) {
        for die in 0..self.in_flight.len() {
            self.settle_die(die);
        }
    }

    fn commit_or_restore(&mut self, block: u32, saved: Option<&SavedBlock>, now_ns: u64) -> Result<(), NandError> {
        let result = self.commit(block, now_ns);
        if let (Err(_), Some(saved)) = (&result, saved) {
            self.table.restore(block, saved);
        }
        result
    }

    /// Makes a block's entry in the table last.
    pub(crate) fn commit(&mut self, block: u32, now_ns: u64) -> Result<(), NandError> {
        if !self.store.is_image() && self.store.failing.is_none() {
            return Ok(());
        }
        self.store
            .commit(block, self.table.meta(block), self.table.states(block), now_ns)
            .map_err(|error| medium("writing the image", &error))?;
        self.table.meta_mut(block).unsaved_reads = false;
        Ok(())
    }
}
