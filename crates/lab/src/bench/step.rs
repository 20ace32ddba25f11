//! What one background step may be, whoever takes it.
//!
//! Invariant: a step is a copy (one read, one program), one program, one erase, or up to four reads, and takes no longer
//! than a copy to the slowest page. Where one of its programs or erases failed it may do the same once more.

use emulator::{Counters, Profile};
use nand::CellMode;

/// Pages that a step reads at most.
const STEP_READS: u64 = 4;

/// What the chip did, so far or in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub reads: u64,
    pub programs: u64,
    pub erases: u64,
    pub flash_ns: u64,
}

impl Step {
    /// What a chip has done so far.
    pub fn so_far(counters: &Counters) -> Self {
        let Counters { reads, programs, erases, flash_ns, .. } = counters;
        Self { reads: reads.total(), programs: programs.total(), erases: erases.total(), flash_ns: *flash_ns }
    }

    /// What it did since then.
    pub fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            programs: self.programs - before.programs,
            erases: self.erases - before.erases,
            flash_ns: self.flash_ns - before.flash_ns,
        }
    }

    /// The step, if it is one on a chip of this kind; its figures, otherwise. `failed`: a program or an erase in it failed.
    pub fn bounded(self, profile: &Profile, failed: bool) -> Result<Self, String> {
        let times = if failed { 2 } else { 1 };
        let one = match (self.programs, self.erases) {
            (0, 0) => self.reads <= STEP_READS,
            (1, 0) => self.reads <= 1,
            (0, 1) => self.reads == 0,
            (programs, erases) => failed && programs <= 2 && erases <= 2 && self.reads <= STEP_READS,
        };
        let most_ns = times * longest_ns(profile);
        match one && self.flash_ns <= most_ns {
            true => Ok(self),
            false => Err(format!("a background step did {self:?}; one may take {} ns", longest_ns(profile))),
        }
    }
}

/// How long the longest step takes: a copy to the slowest page, an erase, or four reads.
fn longest_ns(profile: &Profile) -> u64 {
    let longest = |times: &[u64]| times.iter().copied().max().unwrap_or(0);
    let modes = [CellMode::Slc, CellMode::Native].map(|mode| profile.mode_timing(mode));
    let read_ns = modes.iter().map(|mode| longest(&mode.read_ns)).max().unwrap_or(0);
    let program_ns = modes.iter().map(|mode| longest(&mode.program_ns)).max().unwrap_or(0);
    let page_bytes = u64::from(profile.geometry.page_bytes + profile.geometry.spare_bytes);
    let bus_ns = page_bytes * profile.timing.bus_ps_per_byte / 1000;
    let erase_ns = modes.iter().map(|mode| mode.erase_ns).max().unwrap_or(0);
    (read_ns + program_ns + 2 * bus_ns).max(erase_ns).max(STEP_READS * (read_ns + bus_ns))
}
