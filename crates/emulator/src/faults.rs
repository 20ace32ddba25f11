//! The faults that a chip can show, as values.
//!
//! Invariant: the default value of each turns the fault off, but for the kind of a tear and its reach, which are then drawn
//! by seed.

use crate::table::PageState;

/// What a power cut leaves of the operation it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TornKind {
    /// Nothing happened: pages being programmed stay erased, a block being erased keeps its contents.
    Old,
    /// Really mixed bytes that read without complaint, or pages that do not read, by seed.
    Garbage,
    /// It was complete, though nobody was told.
    Full,
    /// Pages read well once (as programmed; as before the erase), then never again.
    Unstable,
    /// Pages do not read.
    Uncorrectable,
    /// Pages read as erased, but what is programmed there without another erase is lost.
    Weak,
    /// One of the others, by seed.
    #[default]
    Seeded,
}

impl TornKind {
    /// The kinds that [`TornKind::Seeded`] chooses from.
    pub const CERTAIN: [TornKind; 6] =
        [TornKind::Old, TornKind::Garbage, TornKind::Full, TornKind::Unstable, TornKind::Uncorrectable, TornKind::Weak];
}

/// What a torn program does to the units it endangers ([`nand::Layout::endangers`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PairedLoss {
    /// Nothing.
    #[default]
    Off,
    /// Destroys them or not, by seed.
    Seeded,
    /// Destroys them.
    Always,
}

/// Which operations a power cut tears that are in flight on other dies than the one that it hits. The others are complete,
/// though nobody was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum InFlightLoss {
    /// Each or not, by seed.
    #[default]
    Seeded,
    /// None.
    Off,
    /// All.
    Always,
    /// Those of the dies whose bit is set: of die `n` bit `n % 64`.
    Dies(u64),
}

/// Whether reads show bit errors by wear, age and reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BitErrors {
    /// None.
    #[default]
    Off,
    /// As many as are drawn, but in no codeword more than the ECC corrects.
    Correctable,
    /// As many as are drawn: the ECC may give up.
    Drawn,
}

/// The faults a chip shows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FaultConfig {
    /// Chooses among outcomes, together with the chip's own seed.
    pub seed: u64,
    /// What a power cut leaves of the operation it hits.
    pub torn: TornKind,
    /// What it does to paired pages.
    pub paired_loss: PairedLoss,
    /// What it does to operations in flight on other dies.
    pub in_flight_loss: InFlightLoss,
    /// Whether a cut counts reads as operations too.
    pub cut_counts_reads: bool,
    /// The bit errors that reads show.
    pub bit_errors: BitErrors,
    /// Whether blocks used past their endurance begin to fail.
    pub wear_failures: bool,
    /// Whether failures are reported by the failing call instead of the next barrier.
    pub fail_at_once: bool,
    /// Makes every write to the medium under the chip fail with this `errno`, as a full disk would.
    pub medium_errno: Option<i32>,
}

impl FaultConfig {
    /// What a tester of power cuts wants: every kind of tear, paired pages lost or not, all by seed.
    pub fn power_cuts(seed: u64) -> Self {
        Self { seed, paired_loss: PairedLoss::Seeded, ..Self::default() }
    }
}

/// How a test damages a page behind everyone's back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Corruption {
    /// That many different data bits are flipped and no read notices.
    FlipBits(u32),
    /// That many different bits of the spare bytes are flipped and no read notices.
    FlipSpareBits(u32),
    /// Reads fail.
    Uncorrectable,
    /// The next read succeeds, later ones fail.
    Unstable,
}

impl Corruption {
    /// The state the page is left in.
    pub(crate) fn state(self) -> PageState {
        match self {
            Corruption::FlipBits(_) | Corruption::FlipSpareBits(_) => PageState::Programmed,
            Corruption::Uncorrectable => PageState::Uncorrectable,
            Corruption::Unstable => PageState::Unstable,
        }
    }
}
