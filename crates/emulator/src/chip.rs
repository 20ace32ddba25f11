//! The chip itself: how one is looked at and switched.
//!
//! How one is made and copied is in `make`, the operations are in `ops`, the cut of its power in `power`. Invariant:
//! pages, costs and faults are three parts, each with rules of its own, and none of them holds another.

use nand::{CellMode, Failure};

use crate::{
    account::OperationAccount,
    array::PageArray,
    counters::Counters,
    error::EmulatorError,
    fault_plan::FaultPlan,
    injector::FaultInjector,
    profile::Profile,
    store::Medium,
    table::PageState,
    trace::{Recorder, Trace},
};

/// An emulated NAND chip, in RAM or in an image file.
///
/// Time is virtual: operations advance [`Chip::now_ns`] by what they cost, none sleeps. `clone()` takes a snapshot.
#[derive(Debug)]
pub struct Chip {
    pub(crate) array: PageArray,
    pub(crate) account: OperationAccount,
    pub(crate) plan: FaultPlan,
    pub(crate) powered: bool,
    /// Posted operations that failed and were not reported yet.
    pub(crate) failures: Vec<Failure>,
}

impl Chip {
    /// Makes everything done so far last even if the host loses power. Does nothing for a chip in RAM.
    pub fn sync_image(&mut self) -> Result<(), EmulatorError> {
        let now_ns = self.now_ns();
        match &mut self.array.store.medium {
            Medium::Ram(_) | Medium::Spare(_) => Ok(()),
            Medium::Image(image) => {
                image.save_reads(&mut self.array.table, now_ns)?;
                image.sync()
            }
        }
    }

    /// Keeps reads out of the image, those so far and those to come: a chip that has done nothing else since it was
    /// opened leaves every byte of its image as it was. Programs, erases and marks are kept as ever, with the reads of
    /// their blocks.
    pub fn forget_reads(&mut self) {
        if let Medium::Image(image) = &mut self.array.store.medium {
            image.forget_reads();
        }
    }

    /// Whether it keeps the data of all pages, which only a chip made by [`Chip::without_data`] does not.
    pub fn keeps_data(&self) -> bool {
        !matches!(self.array.store.medium, Medium::Spare(_))
    }

    /// The profile it was made from.
    pub fn profile(&self) -> &Profile {
        &self.array.spec.profile
    }

    /// The seed it was made with.
    pub fn seed(&self) -> u64 {
        self.array.seed
    }

    /// The virtual clock, in nanoseconds since the chip was made.
    pub fn now_ns(&self) -> u64 {
        self.account.clock.now_ns()
    }

    /// Lets time pass until `ns`; a time gone by changes nothing.
    pub fn advance_to_ns(&mut self, ns: u64) {
        self.account.clock.advance_to(ns);
    }

    /// A call of one of several callers begins, which arrived at `arrival_ns`: that is the time now, though calls before it
    /// may end later. What it does is queued on each die behind the calls before it, and its waits keep no other waiting.
    pub fn begin_call(&mut self, arrival_ns: u64) {
        self.account.clock.begin_call(arrival_ns);
    }

    /// When everything ends that the call under way has waited for or posted so far; its arrival, if it did nothing.
    pub fn call_end_ns(&self) -> u64 {
        self.account.clock.call_end_ns()
    }

    /// When the last operation ends that is under way on any die; now, if none is.
    pub fn busy_until_ns(&self) -> u64 {
        self.account.clock.busy_until_ns()
    }

    /// Time since the counters began, until the last operation ends.
    pub fn elapsed_ns(&self) -> u64 {
        self.busy_until_ns().saturating_sub(self.account.counted_from_ns)
    }

    /// How long operations have kept each die busy since the counters began: together they are the flash time.
    pub fn busy_ns(&self) -> &[u64] {
        &self.account.busy_ns
    }

    /// The longest that any one call has made its caller wait since this was last asked, in nanoseconds.
    pub fn take_worst_op_ns(&mut self) -> u64 {
        self.account.clock.take_worst_op_ns()
    }

    /// What was counted since the chip was made or opened, or the counters were reset.
    pub fn counters(&self) -> &Counters {
        &self.account.counters
    }

    /// Starts counting from zero.
    pub fn reset_counters(&mut self) {
        self.account.reset_counters();
    }

    /// Programs and erases since the chip was made or opened, one that the power was cut in included.
    pub fn operations(&self) -> u64 {
        self.plan.operations()
    }

    /// Programs and erases that were [refused](FaultInjector::refuse_writes).
    pub fn refused_writes(&self) -> u64 {
        self.plan.refused
    }

    /// Whether a program or erase of a block has failed, so that all later ones do.
    pub fn has_failed(&self, block: u32) -> bool {
        self.array.table.meta_or_default(block).failed
    }

    /// The blocks that are marked bad.
    pub fn bad_blocks(&self) -> impl Iterator<Item = u32> + '_ {
        let blocks = (0u32..).zip(&self.array.table.blocks);
        blocks.filter(|(_, meta)| meta.bad).map(|(block, _)| block)
    }

    /// How often a block was erased; 0 outside the chip.
    pub fn erase_count(&self, block: u32) -> u32 {
        self.array.table.meta_or_default(block).erase_count
    }

    /// The erase counts of all blocks, in order.
    pub fn erase_counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.array.table.blocks.iter().map(|meta| meta.erase_count)
    }

    /// Program/erase cycles begun in a block: how often it was programmed for the first time after an erase, or when new.
    pub fn cycles(&self, block: u32) -> u32 {
        self.array.table.meta_or_default(block).cycles
    }

    /// The cycles begun in all blocks, in order.
    pub fn all_cycles(&self) -> impl Iterator<Item = u32> + '_ {
        self.array.table.blocks.iter().map(|meta| meta.cycles)
    }

    /// The mode a block was programmed in since its last erase, if it was.
    pub fn block_mode(&self, block: u32) -> Option<CellMode> {
        self.array.table.meta_or_default(block).mode
    }

    /// The lowest unit of a block that may still be programmed before its next erase.
    pub fn next_unit(&self, block: u32) -> u32 {
        self.array.table.meta_or_default(block).next_unit
    }

    /// Reads of a block since its last erase.
    pub fn read_count(&self, block: u32) -> u32 {
        self.array.table.meta_or_default(block).reads
    }

    /// Starts recording operations, at most `capacity` of them.
    pub fn start_trace(&mut self, capacity: usize) {
        self.account.recorder = Some(Recorder::new(capacity));
    }

    /// Stops recording and hands over what was recorded.
    pub fn take_trace(&mut self) -> Trace {
        self.account.recorder.take().map(Recorder::finish).unwrap_or_default()
    }

    /// Whether a page is truly erased: one that merely reads so after a cut is not, nor is one outside the chip.
    pub fn is_erased(&self, block: u32, page: u32) -> bool {
        self.array.check_page(block, page).is_ok() && self.array.table.state(block, page) == PageState::Erased
    }

    /// Every page that is not [erased](Self::is_erased), as block and page.
    pub fn written_pages(&self) -> Vec<(u32, u32)> {
        let shape = &self.array.spec.geometry;
        let all = (0..shape.blocks).flat_map(|block| (0..shape.pages_per_block).map(move |page| (block, page)));
        all.filter(|&(block, page)| !self.is_erased(block, page)).collect()
    }

    /// The part of its endurance a block has used: 1.0 at the end of its rated life, in whatever mix of modes.
    pub fn wear(&self, block: u32) -> f64 {
        self.array.wear(block)
    }

    /// The raw bit error rate of a block's pages now: by wear, time since its first program, and reads.
    pub fn raw_bit_error_rate(&self, block: u32) -> f64 {
        self.array.raw_bit_error_rate(block, self.now_ns())
    }

    /// The faults, to choose and to cause some.
    pub fn faults_mut(&mut self) -> FaultInjector<'_> {
        let now_ns = self.now_ns();
        FaultInjector { plan: &mut self.plan, array: &mut self.array, now_ns }
    }
}

impl Drop for Chip {
    fn drop(&mut self) {
        let now_ns = self.now_ns();
        self.array.settle();
        if let Medium::Image(image) = &mut self.array.store.medium {
            // Reads and idle time since the last operation are worth keeping, not worth failing for.
            let _ = image.save_reads(&mut self.array.table, now_ns);
        }
    }
}
