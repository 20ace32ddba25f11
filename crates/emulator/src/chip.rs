//! The chip itself: how one is looked at and switched.
//!
//! How one is made and copied is in `make`, the operations are in `ops`, the cut of its power in `power`, its bit
//! errors in `reliability`. Invariant: `table`, `store` and `clock` change together, through the last three modules
//! and the tools for tests alone.

use std::sync::Arc;

use nand::{CellMode, Failure};

use crate::{
    clock::Clock,
    counters::Counters,
    error::EmulatorError,
    faults::{Armed, FaultConfig},
    profile::Profile,
    spec::Spec,
    store::{Erased, Medium, Store},
    table::{BlockMeta, Saved, Table},
    trace::{Recorder, Trace},
};

/// An emulated NAND chip, in RAM or in an image file.
///
/// Time is virtual: operations advance [`Chip::now_ns`] by what they cost, none sleeps. `clone()` takes a snapshot.
#[derive(Debug)]
pub struct Chip {
    pub(crate) spec: Arc<Spec>,
    pub(crate) seed: u64,
    pub(crate) table: Table,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    pub(crate) faults: FaultConfig,
    pub(crate) armed: Armed,
    pub(crate) powered: bool,
    pub(crate) programs_done: u64,
    pub(crate) erases_done: u64,
    /// Each die's latest program or erase, which a power cut may undo while the die is busy.
    pub(crate) in_flight: Vec<Option<InFlight>>,
    /// Posted operations that failed and were not reported yet.
    pub(crate) failures: Vec<Failure>,
    pub(crate) recorder: Option<Recorder>,
}

/// What it takes to undo a posted operation.
#[derive(Clone, Debug)]
pub(crate) enum InFlight {
    Program { block: u32, unit: u32, mode: CellMode, before: BlockMeta },
    Erase { block: u32, saved: Saved, erased: Erased },
}

impl Chip {
    /// Makes everything done so far last even if the host loses power. Does nothing for a chip in RAM.
    pub fn sync_image(&mut self) -> Result<(), EmulatorError> {
        let now_ns = self.clock.now_ns();
        match &mut self.store.medium {
            Medium::Ram(_) | Medium::Spare(_) => Ok(()),
            Medium::Image(image) => {
                image.save_reads(&mut self.table, now_ns)?;
                image.sync()
            }
        }
    }

    /// Whether it keeps the data of all pages, which only a chip made by [`Chip::without_data`] does not.
    pub fn keeps_data(&self) -> bool {
        !matches!(self.store.medium, Medium::Spare(_))
    }

    /// The profile it was made from.
    pub fn profile(&self) -> &Profile {
        &self.spec.profile
    }

    /// The seed it was made with.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The virtual clock, in nanoseconds since the chip was made.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Lets time pass until `ns`; a time gone by changes nothing.
    pub fn advance_to_ns(&mut self, ns: u64) {
        self.clock.advance_to(ns);
    }

    /// The longest that any one call has made its caller wait since this was last asked, in nanoseconds.
    pub fn take_worst_op_ns(&mut self) -> u64 {
        self.clock.take_worst_op_ns()
    }

    /// What was counted since the chip was made or opened, or the counters were reset.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Starts counting from zero.
    pub fn reset_counters(&mut self) {
        self.counters = Counters::default();
    }

    /// Programs and erases since the chip was made or opened, one that the power was cut in included.
    pub fn operations(&self) -> u64 {
        self.programs_done + self.erases_done
    }

    /// How often a block was erased; 0 outside the chip.
    pub fn erase_count(&self, block: u32) -> u32 {
        self.meta(block).erase_count
    }

    /// The erase counts of all blocks, in order.
    pub fn erase_counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.table.blocks.iter().map(|meta| meta.erase_count)
    }

    /// Program/erase cycles begun in a block: how often it was programmed for the first time after an erase, or when new.
    pub fn cycles(&self, block: u32) -> u32 {
        self.meta(block).cycles
    }

    /// The cycles begun in all blocks, in order.
    pub fn all_cycles(&self) -> impl Iterator<Item = u32> + '_ {
        self.table.blocks.iter().map(|meta| meta.cycles)
    }

    /// The mode a block was programmed in since its last erase, if it was.
    pub fn block_mode(&self, block: u32) -> Option<CellMode> {
        self.meta(block).mode
    }

    /// The lowest unit of a block that may still be programmed before its next erase.
    pub fn next_unit(&self, block: u32) -> u32 {
        self.meta(block).next_unit
    }

    /// Reads of a block since its last erase.
    pub fn read_count(&self, block: u32) -> u32 {
        self.meta(block).reads
    }

    fn meta(&self, block: u32) -> BlockMeta {
        self.table.blocks.get(block as usize).copied().unwrap_or_default()
    }

    /// Starts recording operations, at most `capacity` of them.
    pub fn start_trace(&mut self, capacity: usize) {
        self.recorder = Some(Recorder::new(capacity));
    }

    /// Stops recording and hands over what was recorded.
    pub fn take_trace(&mut self) -> Trace {
        self.recorder.take().map(Recorder::finish).unwrap_or_default()
    }

    /// Chooses which faults show from now on.
    pub fn set_faults(&mut self, faults: FaultConfig) {
        self.store.failing = faults.medium_errno;
        self.faults = faults;
    }

    /// The faults that show.
    pub fn faults(&self) -> &FaultConfig {
        &self.faults
    }
}

impl Drop for Chip {
    fn drop(&mut self) {
        let now_ns = self.clock.now_ns();
        for die in 0..self.in_flight.len() {
            self.settle_die(die);
        }
        if let Medium::Image(image) = &mut self.store.medium {
            // Read counts and idle time since the last operation are worth keeping, not worth failing for.
            let _ = image.save_reads(&mut self.table, now_ns);
        }
    }
}
