//! The chip itself: how one is made, copied, looked at and switched.
//!
//! The operations are in `ops`, the cut of its power in `power`, its bit errors in `reliability`. Invariant: `table`,
//! `store` and `clock` change together, through those three modules and the tools for tests alone.

use std::{path::Path, sync::Arc};

use nand::{CellMode, Failure};

use crate::{
    clock::Clock,
    counters::Counters,
    error::EmulatorError,
    faults::{Armed, FaultConfig},
    image::{self, ImageStore},
    profile::Profile,
    spec::Spec,
    store::{Erased, Medium, RamStore, Store},
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
    /// A new chip in RAM, every block erased. `seed` decides all its chance events, and nothing else does.
    pub fn new(profile: &Profile, seed: u64) -> Result<Self, EmulatorError> {
        let spec = Arc::new(Spec::new(profile)?);
        let shape = &spec.geometry;
        let table = Table::new(shape.blocks, shape.pages_per_block);
        let ram = RamStore::new(shape.blocks, shape.pages_per_block, shape.page_bytes);
        Ok(Self::assemble(spec, seed, table, Medium::Ram(ram), 0))
    }

    /// A new chip in a new image file, every block erased. A file that exists is refused.
    pub fn create_image(path: impl AsRef<Path>, profile: &Profile, seed: u64) -> Result<Self, EmulatorError> {
        Self::make_image(path.as_ref(), profile, seed, false)
    }

    /// A new chip in an image file, in place of whatever regular file has that name, unless that is in use.
    pub fn replace_image(path: impl AsRef<Path>, profile: &Profile, seed: u64) -> Result<Self, EmulatorError> {
        Self::make_image(path.as_ref(), profile, seed, true)
    }

    fn make_image(path: &Path, profile: &Profile, seed: u64, replace: bool) -> Result<Self, EmulatorError> {
        let spec = Arc::new(Spec::new(profile)?);
        let store = ImageStore::create(path, &spec, seed, replace)?;
        let table = Table::new(spec.geometry.blocks, spec.geometry.pages_per_block);
        Ok(Self::assemble(spec, seed, table, Medium::Image(store), 0))
    }

    /// The chip in an image file, as its last user left it. Its power is on.
    ///
    /// Opened `read_only`, it shares the image with others who only read; programs and erases then fail with
    /// [`nand::NandError::Medium`] and `EROFS`.
    pub fn open_image(path: impl AsRef<Path>, read_only: bool) -> Result<Self, EmulatorError> {
        let image::Opened { spec, seed, table, store, now_ns } = ImageStore::open(path.as_ref(), read_only)?;
        Ok(Self::assemble(Arc::new(spec), seed, table, Medium::Image(store), now_ns))
    }

    fn assemble(spec: Arc<Spec>, seed: u64, table: Table, medium: Medium, now_ns: u64) -> Self {
        let dies = spec.geometry.dies();
        Self {
            clock: Clock::new(dies, spec.geometry.channels, now_ns),
            spec,
            seed,
            table,
            store: Store::new(medium),
            counters: Counters::default(),
            faults: FaultConfig::default(),
            armed: Armed::default(),
            powered: true,
            programs_done: 0,
            erases_done: 0,
            in_flight: vec![None; dies as usize],
            failures: Vec::new(),
            recorder: None,
        }
    }

    /// A copy that changes independently, always in RAM.
    ///
    /// Of a chip in RAM this is cheap: the pages are shared until either side programs. Of a chip in an image it reads
    /// everything that was programmed; pages that the host fails to read are uncorrectable in the copy.
    pub fn snapshot(&self) -> Self {
        let mut table = self.table.clone();
        let (medium, in_flight) = match &self.store.medium {
            Medium::Ram(ram) => (Medium::Ram(ram.clone()), self.in_flight.clone()),
            Medium::Image(image) => {
                (Medium::Ram(RamStore::load(image, &self.spec, &mut table)), vec![None; self.in_flight.len()])
            }
        };
        Self {
            spec: Arc::clone(&self.spec),
            seed: self.seed,
            table,
            store: Store { medium, failing: self.store.failing },
            clock: self.clock.clone(),
            counters: self.counters,
            faults: self.faults.clone(),
            armed: self.armed.clone(),
            powered: self.powered,
            programs_done: self.programs_done,
            erases_done: self.erases_done,
            in_flight,
            failures: self.failures.clone(),
            recorder: self.recorder.clone(),
        }
    }

    /// Makes everything done so far last even if the host loses power. Does nothing for a chip in RAM.
    pub fn sync_image(&mut self) -> Result<(), EmulatorError> {
        let now_ns = self.clock.now_ns();
        match &mut self.store.medium {
            Medium::Ram(_) => Ok(()),
            Medium::Image(image) => {
                image.save_reads(&mut self.table, now_ns)?;
                image.sync()
            }
        }
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

impl Clone for Chip {
    fn clone(&self) -> Self {
        self.snapshot()
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
