//! A chip that, at each program and erase, also makes the chip that a power cut in it would leave.
//!
//! So one run of a workload gives the state after a cut at every operation, and nothing is run twice. Invariant: the
//! tapped chip itself behaves as if it were not; a torn copy has its power off and is as its own seed decides.

use std::fmt;
use std::str::FromStr;

use emulator::{Chip, FaultConfig, PairedLoss, TornKind};
use nand::{Cause, CellMode, Nand, NandError, NandWrapper, ReadInfo};

use crate::content::mix;

/// A chip with an emulated one inside.
pub trait Emulated: Nand {
    fn emulated(&self) -> &Chip;
    fn emulated_mut(&mut self) -> &mut Chip;
}

impl Emulated for Chip {
    fn emulated(&self) -> &Chip {
        self
    }

    fn emulated_mut(&mut self) -> &mut Chip {
        self
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

/// What a cut leaves of the operation it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tear {
    pub kind: TornKind,
    /// Whether the pages that share a word line with the one being programmed are lost.
    pub pairs: bool,
}

/// The kinds of tears and their words.
const KINDS: [(TornKind, &str); TornKind::CERTAIN.len()] = [
    (TornKind::Old, "old"),
    (TornKind::Garbage, "garbage"),
    (TornKind::Full, "full"),
    (TornKind::Unstable, "unstable"),
    (TornKind::Uncorrectable, "uncorrectable"),
    (TornKind::Weak, "weak"),
];

impl Tear {
    /// All there are of an operation that does, or does not, put other pages at risk.
    fn all(risks_pairs: bool) -> impl Iterator<Item = Tear> {
        let pairs: &[bool] = if risks_pairs { &[false, true] } else { &[false] };
        KINDS.iter().flat_map(move |&(kind, _)| pairs.iter().map(move |&pairs| Tear { kind, pairs }))
    }

    /// One of them.
    fn drawn(risks_pairs: bool, seed: u64) -> Tear {
        let (kind, _) = KINDS[(mix(seed) % KINDS.len() as u64) as usize];
        Tear { kind, pairs: risks_pairs && mix(!seed).is_multiple_of(2) }
    }
}

impl fmt::Display for Tear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = KINDS.iter().find(|(kind, _)| *kind == self.kind).map_or("", |(_, word)| word);
        write!(f, "{word}{}", if self.pairs { "+pairs" } else { "" })
    }
}

impl FromStr for Tear {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let word = text.strip_suffix("+pairs").unwrap_or(text);
        let words: Vec<&str> = KINDS.iter().map(|(_, word)| *word).collect();
        let known = KINDS.iter().find(|(_, known)| *known == word);
        let &(kind, _) = known.ok_or(format!(
            "no tear is named \"{word}\"; there are {}, each with or without +pairs",
            words.join(", ")
        ))?;
        Ok(Self { kind, pairs: word != text })
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
        let mut torn = self.copy(None);
        torn.chip.cut_power()?;
        Ok(torn)
    }

    fn copy(&self, tear: Option<Tear>) -> Torn {
        let operation = self.chip.operations();
        let mut chip = self.chip.snapshot();
        let mut faults = FaultConfig { seed: self.faults.seed.wrapping_add(operation), ..self.faults.clone() };
        if let Some(tear) = tear {
            faults.torn = tear.kind;
            faults.paired_loss = if tear.pairs { PairedLoss::Always } else { PairedLoss::Off };
        }
        chip.faults_mut().set(faults);
        Torn { chip, operation, tear }
    }

    /// Tears `operation` on copies, as recorded.
    fn tear(&mut self, risks_pairs: bool, operation: impl Fn(&mut Chip) -> Result<(), NandError>) {
        let at = self.chip.operations();
        if self.fuse == Some(at) {
            self.chip.faults_mut().cut_power_at(0);
        }
        let tears: Vec<Tear> = match self.record {
            Record::Every(every) if at.is_multiple_of(every) => {
                vec![Tear::drawn(risks_pairs, self.faults.seed ^ mix(at))]
            }
            Record::All => Tear::all(risks_pairs).collect(),
            Record::Every(_) | Record::Nothing => Vec::new(),
        };
        for tear in tears {
            let mut torn = self.copy(Some(tear));
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
        let copies = matches!(cause, Cause::Gc | Cause::Migration | Cause::WearLevel);
        if copies && !data.is_empty() {
            self.copied_from = Some(block);
        }
        self.chip.read(block, page, column, data, spare, cause)
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
        self.tear(risks_pairs, |chip| chip.program(block, unit, mode, data, spare, cause));
        self.chip.program(block, unit, mode, data, spare, cause)
    }

    fn pass_erase(&mut self, block: u32, cause: Cause) -> Result<(), NandError> {
        self.tear(false, |chip| chip.erase(block, cause));
        self.copied_from = self.copied_from.filter(|&from| from != block);
        self.chip.erase(block, cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emulator::Profile;

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

    #[test]
    fn tears_read_back_as_they_were_printed() {
        for tear in Tear::all(true) {
            assert_eq!(tear.to_string().parse(), Ok(tear));
        }
        assert!("ripped".parse::<Tear>().unwrap_err().contains("garbage"));
    }
}
