//! A chip that, at each program and erase, also makes the chip that a power cut in it would leave.
//!
//! So one run of a workload gives the state after a cut at every operation, and nothing is run twice. Invariant: the
//! tapped chip itself behaves as if it were not; a torn copy has its power off and is as its own seed decides.

use emulator::{Chip, FaultConfig, InFlightLoss, PairedLoss};
use ftl::BlockMapDrive;
use nand::{Cause, CellMode, Nand, NandError, NandWrapper, PageRead, ReadInfo};

use super::tear::{Tear, reach_drawn, reaches};
use crate::content::mix;

/// A chip with an emulated one inside.
pub trait Emulated: Nand {
    fn emulated(&self) -> &Chip;
    fn emulated_mut(&mut self) -> &mut Chip;

    /// Whether every block of it is erased.
    fn is_blank(&self) -> bool {
        self.emulated().operations() == 0
    }
}

impl Emulated for Chip {
    fn emulated(&self) -> &Chip {
        self
    }

    fn emulated_mut(&mut self) -> &mut Chip {
        self
    }
}

impl<C: Emulated> Emulated for BlockMapDrive<C> {
    fn emulated(&self) -> &Chip {
        self.chip().emulated()
    }

    fn emulated_mut(&mut self) -> &mut Chip {
        self.chip_mut().emulated_mut()
    }

    fn is_blank(&self) -> bool {
        (0..self.geometry().blocks).all(|block| self.physical(block).is_none())
    }
}

impl Emulated for Tap {
    fn emulated(&self) -> &Chip {
        &self.chip
    }

    fn emulated_mut(&mut self) -> &mut Chip {
        &mut self.chip
    }
}

/// A chip whose power went off in one operation, or between two.
#[derive(Debug)]
pub struct Torn {
    pub chip: Chip,
    /// The operation's number since the chip was made.
    pub operation: u64,
    /// What became of the operation; `None` between two.
    pub tear: Option<Tear>,
    /// What became of those in flight on other dies.
    pub reach: InFlightLoss,
}

/// Which torn copies are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    Nothing,
    /// One at each operation whose number is a multiple of this, torn by its seed.
    Every(u64),
    /// At each operation one for everything a cut may leave.
    All,
}

/// Programs and erases after which whoever uses a tapped chip is taken for running in circles.
const FUSE_OPERATIONS: u64 = 50_000;

/// The wrapper.
pub struct Tap {
    chip: Chip,
    faults: FaultConfig,
    record: Record,
    torn: Vec<Torn>,
    /// The operation at which the power goes off for good.
    fuse: Option<u64>,
    /// The block that was read last for a copy elsewhere, until it is erased.
    copied_from: Option<u32>,
}

impl Tap {
    /// Taps a chip; nothing is recorded yet. `faults` is what torn copies go on with; its seed is varied by operation.
    pub fn new(chip: Chip, faults: FaultConfig) -> Self {
        Self { chip, faults, record: Record::Nothing, torn: Vec::new(), fuse: None, copied_from: None }
    }

    /// The same with a fuse.
    pub fn fused(chip: Chip, faults: &FaultConfig) -> Self {
        Self::new(chip, faults.clone()).with_fuse()
    }

    /// Switches the power off for good after many operations, so that an endless loop ends.
    pub fn with_fuse(mut self) -> Self {
        self.fuse = Some(self.chip.operations() + FUSE_OPERATIONS);
        self
    }

    /// What to record from now on.
    pub fn record(&mut self, record: Record) {
        self.record = record;
    }

    /// What was torn since this was last asked.
    pub fn take_torn(&mut self) -> Vec<Torn> {
        std::mem::take(&mut self.torn)
    }

    pub fn into_chip(self) -> Chip {
        self.chip
    }

    pub fn chip_mut(&mut self) -> &mut Chip {
        &mut self.chip
    }

    /// The block that was read last for a copy elsewhere, unless it was erased since.
    pub fn copied_from(&self) -> Option<u32> {
        self.copied_from
    }

    /// The chip as a cut right now, between operations, would leave it.
    pub fn cut_now(&self) -> Result<Torn, NandError> {
        let busy: Vec<u32> = self.chip.busy_dies().collect();
        let reach = reach_drawn(&busy, self.draw());
        let mut torn = self.copy(None, reach);
        torn.chip.cut_power()?;
        Ok(torn)
    }

    /// The dies that will be busy with an operation when this one is free.
    fn busy_beside(&self, die: u32) -> Vec<u32> {
        let wait_ns = self.chip.pending_ns(die);
        self.chip.busy_dies().filter(|&other| other != die && self.chip.pending_ns(other) > wait_ns).collect()
    }

    /// A number that follows from the operation to come.
    fn draw(&self) -> u64 {
        self.faults.seed ^ mix(self.chip.operations())
    }

    fn note_read(&mut self, block: u32, data: &[u8], cause: Cause) {
        let copies = matches!(cause, Cause::Gc | Cause::Migration | Cause::WearLevel);
        if copies && !data.is_empty() {
            self.copied_from = Some(block);
        }
    }

    fn copy(&self, tear: Option<Tear>, reach: InFlightLoss) -> Torn {
        let operation = self.chip.operations();
        let mut chip = self.chip.snapshot();
        let seed = self.faults.seed.wrapping_add(operation);
        let mut faults = FaultConfig { seed, in_flight_loss: reach, ..self.faults.clone() };
        if let Some(tear) = tear {
            faults.torn = tear.kind;
            faults.paired_loss = if tear.pairs { PairedLoss::Always } else { PairedLoss::Off };
        }
        chip.faults_mut().set(faults);
        Torn { chip, operation, tear, reach }
    }

    /// Tears `operation`, which is on `block`, on copies, as recorded.
    fn tear(&mut self, block: u32, risks_pairs: bool, operation: impl Fn(&mut Chip) -> Result<(), NandError>) {
        let at = self.chip.operations();
        if self.fuse == Some(at) {
            self.chip.faults_mut().cut_power_at(0);
        }
        let (busy, drawn) = (self.busy_beside(self.chip.geometry().die_of(block)), self.draw());
        let tears: Vec<(Tear, InFlightLoss)> = match self.record {
            Record::Every(every) if at.is_multiple_of(every) => {
                vec![(Tear::drawn(risks_pairs, drawn), reach_drawn(&busy, drawn))]
            }
            Record::All => {
                let reaches = reaches(&busy, drawn);
                Tear::all(risks_pairs).flat_map(|tear| reaches.iter().map(move |&reach| (tear, reach))).collect()
            }
            Record::Every(_) | Record::Nothing => Vec::new(),
        };
        for (tear, reach) in tears {
            let mut torn = self.copy(Some(tear), reach);
            torn.chip.faults_mut().cut_power_at(0);
            // An operation that the chip refuses for another reason than the cut tears nothing.
            if operation(&mut torn.chip) == Err(NandError::PowerOff) {
                self.torn.push(torn);
            }
        }
    }
}

impl NandWrapper for Tap {
    type Inner = Chip;

    fn inner(&self) -> &Chip {
        &self.chip
    }

    fn inner_mut(&mut self) -> &mut Chip {
        &mut self.chip
    }

    fn pass_read(
        &mut self,
        block: u32,
        page: u32,
        column: u32,
        data: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<ReadInfo, NandError> {
        self.note_read(block, data, cause);
        self.chip.read(block, page, column, data, spare, cause)
    }

    fn pass_read_many(&mut self, reads: &mut [PageRead<'_>]) {
        reads.iter().for_each(|read| self.note_read(read.block, read.data, read.cause));
        self.chip.read_many(reads);
    }

    fn pass_program(
        &mut self,
        block: u32,
        unit: u32,
        mode: CellMode,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<(), NandError> {
        let risks_pairs = !self.chip.layout(mode).endangers(unit).is_empty();
        self.tear(block, risks_pairs, |chip| chip.program(block, unit, mode, data, spare, cause));
        self.chip.program(block, unit, mode, data, spare, cause)
    }

    fn pass_erase(&mut self, block: u32, cause: Cause) -> Result<(), NandError> {
        self.tear(block, false, |chip| chip.erase(block, cause));
        self.copied_from = self.copied_from.filter(|&from| from != block);
        self.chip.erase(block, cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emulator::{Profile, TornKind};

    fn tapped() -> Tap {
        let profile = Profile::builtin("flexfs-mlc").unwrap().with_capacity(4 << 20).unwrap();
        Tap::new(Chip::new(&profile, 1).unwrap(), FaultConfig::default())
    }

    fn readable(chip: &mut Chip, page: u32) -> bool {
        chip.power_on();
        chip.read(2, page, 0, &mut [0; 16], &mut [], Cause::Host).is_ok()
    }

    #[test]
    fn each_operation_leaves_a_torn_copy_and_the_chip_goes_on() {
        let mut tap = tapped();
        tap.record(Record::All);
        for unit in 0..3 {
            tap.program(2, unit, CellMode::Slc, &[7; 4096], &[], Cause::Host).unwrap();
        }
        tap.erase(3, Cause::Host).unwrap();
        let torn = tap.take_torn();
        let operations: Vec<u64> = torn.iter().map(|torn| torn.operation).collect();
        assert_eq!(operations, [[0; 6], [1; 6], [2; 6], [3; 6]].concat());
        for torn in torn.chunks(TornKind::CERTAIN.len()) {
            let kinds: Vec<TornKind> = torn.iter().map(|torn| torn.tear.unwrap().kind).collect();
            assert!(TornKind::CERTAIN.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
        }
        let dead = Tear { kind: TornKind::Uncorrectable, pairs: false };
        let mut dead = torn.into_iter().find(|torn| torn.operation == 2 && torn.tear == Some(dead)).unwrap();
        let layout = tap.layout(CellMode::Slc).clone();
        let page = |unit| layout.page(unit).unwrap();
        assert!(readable(&mut dead.chip, page(1)) && !readable(&mut dead.chip, page(2)));
        assert!(readable(&mut tap.chip, page(2)));
    }

    #[test]
    fn pairs_are_lost_only_where_an_operation_risks_some() {
        let mut tap = tapped();
        tap.record(Record::All);
        let layout = tap.layout(CellMode::Native).clone();
        let risky = (0..layout.units()).find(|&unit| !layout.endangers(unit).is_empty()).unwrap();
        for unit in [layout.endangers(risky)[0], risky] {
            tap.program(2, unit, CellMode::Native, &[7; 4096], &[], Cause::Host).unwrap();
        }
        let lost: Vec<u64> =
            tap.take_torn().iter().filter(|torn| torn.tear.unwrap().pairs).map(|t| t.operation).collect();
        assert_eq!(lost, [1; 6]);
    }

    #[test]
    fn only_each_nth_operation_is_torn_where_asked() {
        let mut tap = tapped();
        tap.record(Record::Every(2));
        for unit in 0..4 {
            tap.program(2, unit, CellMode::Slc, &[7; 4096], &[], Cause::Host).unwrap();
        }
        assert_eq!(tap.take_torn().len(), 2);
    }

    /// A tapped chip of eight dies, on each of which two programs are posted one after the other.
    fn posted(record: Record) -> Vec<Torn> {
        let profile = Profile::builtin("codesign-mlc8").unwrap().with_capacity(16 << 20).unwrap();
        let mut tap = Tap::new(Chip::new(&profile, 1).unwrap(), FaultConfig::default());
        tap.record(record);
        for unit in 0..2 {
            for block in 0..8 {
                tap.program(block, unit, CellMode::Slc, &[7; 4096], &[], Cause::Host).unwrap();
            }
        }
        tap.take_torn()
    }

    fn bytes(chip: &Chip) -> Vec<Option<Vec<u8>>> {
        let mut chip = chip.clone();
        chip.power_on();
        let layout = chip.layout(CellMode::Slc).clone();
        let places = (0..8).flat_map(|block| (0..2).map(move |unit| (block, unit)));
        let mut page = |(block, unit)| {
            let mut data = vec![0; 4096];
            let page = layout.page(unit).unwrap();
            chip.read(block, page, 0, &mut data, &mut [], Cause::Host).is_ok().then_some(data)
        };
        places.map(&mut page).collect()
    }

    #[test]
    fn of_many_in_flight_none_all_and_some_are_torn() {
        let torn = posted(Record::Every(1));
        assert_eq!(torn.len(), 16);
        assert_eq!(torn[0].reach, InFlightLoss::Off, "nothing else was in flight");
        let reached = |wanted: fn(&InFlightLoss) -> bool| torn.iter().filter(|torn| wanted(&torn.reach)).count();
        assert!(reached(|reach| *reach == InFlightLoss::Always) > 1);
        assert!(reached(|reach| *reach == InFlightLoss::Off) > 1);
        assert!(reached(|reach| matches!(reach, InFlightLoss::Dies(_))) > 1);
        // In full, of each kind: none, all and some of the others in flight, none of which are left when a die is free again.
        assert_eq!(posted(Record::All).len(), 2 * 6 * (1 + 2 + 6 * 3));
    }

    #[test]
    fn a_cut_that_is_told_is_made_again() {
        for (first, again) in posted(Record::All).iter().zip(posted(Record::All)) {
            assert_eq!((first.operation, first.tear, first.reach), (again.operation, again.tear, again.reach));
            assert_eq!(bytes(&first.chip), bytes(&again.chip), "{:?} {:?}", first.tear, first.reach);
        }
        let dead = |reach| {
            let tear = Some(Tear { kind: TornKind::Uncorrectable, pairs: false });
            let found =
                posted(Record::All).into_iter().find(|t| t.operation == 7 && t.tear == tear && t.reach == reach);
            bytes(&found.unwrap().chip).iter().step_by(2).filter(|page| page.is_none()).count()
        };
        assert_eq!([InFlightLoss::Off, InFlightLoss::Always].map(dead), [1, 8]);
    }
}
