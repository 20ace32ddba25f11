//! Playing the phone's half hour (§5.2) on a volume. Invariant: all schemes are asked the same, at the same times.

use emulator::Profile;
use flexfs_core::wear::{Controller, Goal};
use flexfs_core::{Policy, Wanted};
use serde::{Deserialize, Serialize};

use crate::experiment::schemes;
use crate::play::{HostCost, PlayError, Response, Setting, Traced};
use crate::trace::{Op, Request, Trace, phone};

const SECOND_NS: u64 = 1_000_000_000;
/// §5.2.2: a lifetime of three years, judged every 10 minutes.
pub const GOAL: Goal = Goal { life_ns: 3 * 365 * 24 * 3600 * SECOND_NS, window_ns: 600 * SECOND_NS };
/// Fig. 16: blocks are counted every 30 s.
const SAMPLE_NS: u64 = 30 * SECOND_NS;

/// How a volume is managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    SlcOnly,
    MlcOnly,
    /// An eighth of the blocks is an SLC buffer, as SSDs have it, under the paper's controller of wear.
    SlcBuffer,
    /// The paper's techniques, and its controller of wear.
    Paper,
    Ours,
}

impl Scheme {
    pub fn name(self) -> &'static str {
        match self {
            Self::SlcOnly => "slc-only",
            Self::MlcOnly => "mlc-only",
            Self::SlcBuffer => "slc-buffer",
            Self::Paper => "paper",
            Self::Ours => "ours",
        }
    }

    /// The paper's chip of 512 MiB under it, with a life of three years.
    pub fn setting(self, host: HostCost) -> Setting {
        self.setting_on(Profile::default(), host, GOAL)
    }

    /// A chip under it.
    pub fn setting_on(self, profile: Profile, host: HostCost, goal: Goal) -> Setting {
        let lasting = |controller| Wanted { goal: Some(goal), controller };
        let (policy, life) = match self {
            Self::SlcOnly => (schemes::SLC_ONLY, Wanted::default()),
            Self::MlcOnly => (Policy::NATIVE_ONLY, Wanted::default()),
            Self::SlcBuffer => (schemes::SLC_BUFFER, lasting(Controller::Paper)),
            Self::Paper => (schemes::LA, lasting(Controller::Paper)),
            Self::Ours => (Policy::DEFAULT, lasting(Controller::WholeLife)),
        };
        Setting { profile, host, policy, life, seed: 1 }
    }
}

/// A volume at one time of the trace.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Sample {
    pub at_s: f64,
    pub slc_blocks: u32,
    pub native_blocks: u32,
    pub alpha: f64,
    pub delta: f64,
}

/// What came of it.
#[derive(Serialize, Deserialize)]
pub struct Played {
    /// Mean response of reads, and of writes with the syncs that belong to them, ns.
    pub read_ns: f64,
    pub write_ns: f64,
    /// What songs were written with, syncs included, bytes a second of response.
    pub song_bytes_s: f64,
    /// The share of callers' pages that went to SLC.
    pub slc_share: f64,
    /// The part of the life's writing budget that was used.
    pub life_share: Option<f64>,
    /// What all operations took, mJ.
    pub energy_mj: f64,
    pub samples: Vec<Sample>,
}

/// Responses of one kind.
#[derive(Default)]
pub struct Responses {
    count: u64,
    bytes: u64,
    total_ns: u64,
}

impl Responses {
    pub fn mean_ns(&self) -> f64 {
        self.total_ns as f64 / self.count.max(1) as f64
    }

    /// Bytes a second of response.
    pub fn bytes_s(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.total_ns.max(1) as f64
    }
}

/// What responses there were.
#[derive(Default)]
pub struct Tally {
    pub reads: Responses,
    /// With the syncs that belong to them.
    pub writes: Responses,
    pub songs: Responses,
}

impl Tally {
    fn count(&mut self, request: &Request, response: Response) {
        let (kind, count, bytes) = match request.op {
            Op::Read { bytes, .. } => (&mut self.reads, 1, bytes),
            Op::Write { bytes, .. } => (&mut self.writes, 1, bytes),
            Op::Sync => (&mut self.writes, 0, 0),
            _ => return,
        };
        let songs = request.file.starts_with("song").then_some(&mut self.songs);
        for responses in [Some(kind), songs].into_iter().flatten() {
            responses.count += count;
            responses.bytes += bytes;
            responses.total_ns += response.time_ns();
        }
    }
}

/// A volume while the trace is played.
pub struct Phone {
    pub traced: Traced,
    pub tally: Tally,
}

/// Plays the trace.
pub fn play(setting: &Setting, trace: &Trace) -> Result<Played, PlayError> {
    let mut phone = Phone::new(setting)?;
    phone.traced.prepare(trace)?;
    let start_ns = phone.traced.player.now_ns();
    let before = *phone.traced.player.look().chip().counters();
    let mut samples = Vec::new();
    for request in &trace.requests {
        phone.sample_until(start_ns, request.at_ns, &mut samples)?;
        phone.request(start_ns, request)?;
    }
    phone.sample_until(start_ns, trace.lasts_ns, &mut samples)?;
    let after = *phone.traced.player.look().chip().counters();
    let slc = (after.programs.slc.host - before.programs.slc.host) as f64;
    let native = (after.programs.native.host - before.programs.native.host) as f64;
    let slc_share = slc / (slc + native);
    let life_share = phone.life_share()?;
    let energy_mj = (after.energy_nj - before.energy_nj) as f64 / 1e6;
    let Tally { reads, writes, songs } = &phone.tally;
    let (read_ns, write_ns, song_bytes_s) = (reads.mean_ns(), writes.mean_ns(), songs.bytes_s());
    phone.traced.verify()?;
    Ok(Played { read_ns, write_ns, song_bytes_s, slc_share, life_share, energy_mj, samples })
}

/// The trace that is played.
pub fn trace() -> Trace {
    phone::trace(1)
}

impl Phone {
    pub fn new(setting: &Setting) -> Result<Self, PlayError> {
        Ok(Self { traced: Traced::new(setting)?, tally: Tally::default() })
    }

    /// Asks something of a trace that began at `start_ns` at its time, and counts the response.
    pub fn request(&mut self, start_ns: u64, request: &Request) -> Result<(), PlayError> {
        let response = self.traced.request(start_ns, request)?;
        self.tally.count(request, response);
        Ok(())
    }

    /// The part of the writing budget that is used, if a life is to be guaranteed.
    pub fn life_share(&mut self) -> Result<Option<f64>, PlayError> {
        let info = self.traced.player.look().info().map_err(failed("looking at the life"))?;
        Ok(info.life.map(|life| 1.0 - life.left_bytes as f64 / life.budget_bytes as f64))
    }

    /// The share that the life allows in SLC now; 1 without a life.
    pub fn wear_index(&mut self) -> Result<f64, PlayError> {
        let info = self.traced.player.look().info().map_err(failed("looking at the life"))?;
        Ok(info.life.map_or(1.0, |life| f64::from(life.wear_index) / 1e6))
    }

    /// Lets time pass until then, and counts the blocks every 30 s.
    fn sample_until(&mut self, start_ns: u64, until_ns: u64, samples: &mut Vec<Sample>) -> Result<(), PlayError> {
        while samples.len() as u64 * SAMPLE_NS <= until_ns {
            let at_ns = samples.len() as u64 * SAMPLE_NS;
            self.traced.player.rest_until(self.traced.player.now_ns().max(start_ns + at_ns))?;
            let info = self.traced.player.look().info().map_err(failed("counting blocks"))?;
            samples.push(Sample {
                at_s: at_ns as f64 / 1e9,
                slc_blocks: info.blocks.slc,
                native_blocks: info.blocks.native,
                alpha: info.alpha().unwrap_or(1.0),
                delta: info.life.map_or(1.0, |life| f64::from(life.wear_index) / 1e6),
            });
        }
        Ok(())
    }
}

fn failed(doing: &'static str) -> impl Fn(flexfs_core::Error) -> PlayError {
    move |source| PlayError::Fs { doing, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head that goes on in a block which an anchor names had another head's copies programmed in the same step.
    #[test]
    fn a_step_of_a_commit_programs_once_where_a_unit_is_gathered_and_a_block_is_to_be_named() {
        let chip = schemes::chip(3).unwrap();
        let mut trace = trace();
        trace.requests.retain(|request| request.at_ns < 100 * SECOND_NS);
        trace.lasts_ns = 100 * SECOND_NS;
        play(&Scheme::Paper.setting_on(chip, HostCost::NONE, GOAL), &trace).unwrap();
    }
}
