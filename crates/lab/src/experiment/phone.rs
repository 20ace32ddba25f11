//! Playing the phone's half hour (§5.2) on a volume. Invariant: what is stored is compared with what was asked, on a copy of
//! the chip, so that a figure is one of a volume that works.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use emulator::Profile;
use flexfs_core::wear::{Controller, Goal};
use flexfs_core::{Fs, Ino, MountOptions, Policy, Wanted};
use serde::{Deserialize, Serialize};

use super::schemes;
use crate::content::{Fill, Texture};
use crate::crash::BASE_NS;
use crate::play::{HostCost, PlayError, Player, Response, Setting};
use crate::trace::{Op, Request, Trace, phone};

const SECOND_NS: u64 = 1_000_000_000;
/// §5.2.2: a lifetime of three years, judged every 10 minutes.
const GOAL: Goal = Goal { life_ns: 3 * 365 * 24 * 3600 * SECOND_NS, window_ns: 600 * SECOND_NS };
/// Fig. 16: blocks are counted every 30 s.
const SAMPLE_NS: u64 = 30 * SECOND_NS;

/// How a volume is managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    SlcOnly,
    MlcOnly,
    /// The paper's techniques, and its controller of wear.
    Paper,
    Ours,
}

impl Scheme {
    pub fn name(self) -> &'static str {
        match self {
            Self::SlcOnly => "slc-only",
            Self::MlcOnly => "mlc-only",
            Self::Paper => "paper",
            Self::Ours => "ours",
        }
    }

    /// The paper's chip of 512 MiB under it.
    pub fn setting(self, host: HostCost) -> Setting {
        let lasting = |controller| Wanted { goal: Some(GOAL), controller };
        let (policy, life) = match self {
            Self::SlcOnly => (schemes::SLC_ONLY, Wanted::default()),
            Self::MlcOnly => (Policy::NATIVE_ONLY, Wanted::default()),
            Self::Paper => (schemes::LA, lasting(Controller::Paper)),
            Self::Ours => (Policy::DEFAULT, lasting(Controller::WholeLife)),
        };
        Setting { profile: Profile::default(), host, policy, life, seed: 1 }
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
    pub samples: Vec<Sample>,
}

/// Responses of one kind.
#[derive(Default)]
struct Responses {
    count: u64,
    bytes: u64,
    total_ns: u64,
}

impl Responses {
    fn mean_ns(&self) -> f64 {
        self.total_ns as f64 / self.count.max(1) as f64
    }
}

/// A file, and what it must hold.
struct File {
    ino: Ino,
    content: Vec<u8>,
    /// Of what was written last.
    seed: u64,
}

/// The volume while the trace is played.
struct Phone {
    player: Player,
    files: BTreeMap<String, File>,
}

/// Plays the trace.
pub fn play(scheme: Scheme, host: HostCost, trace: &Trace) -> Result<Played, PlayError> {
    let player = Player::new(&scheme.setting(host))?;
    let mut phone = Phone { player, files: BTreeMap::new() };
    for (file, bytes) in &trace.before {
        phone.request(0, file, Op::Write { offset: 0, bytes: *bytes })?;
        phone.request(0, file, Op::Sync)?;
    }
    let start_ns = phone.player.now_ns();
    let before = *phone.player.look().chip().counters();
    let [mut reads, mut writes, mut songs] = [(); 3].map(|()| Responses::default());
    let mut samples = Vec::new();
    for Request { at_ns, file, op } in &trace.requests {
        phone.sample_until(start_ns, *at_ns, &mut samples)?;
        let response = phone.request(start_ns + at_ns, file, *op)?;
        let (kind, count, bytes) = match op {
            Op::Read { bytes, .. } => (&mut reads, 1, *bytes),
            Op::Write { bytes, .. } => (&mut writes, 1, *bytes),
            Op::Sync => (&mut writes, 0, 0),
        };
        for responses in [Some(kind), file.starts_with("song").then_some(&mut songs)].into_iter().flatten() {
            responses.count += count;
            responses.bytes += bytes;
            responses.total_ns += response.time_ns();
        }
    }
    phone.sample_until(start_ns, trace.lasts_ns, &mut samples)?;
    let after = *phone.player.look().chip().counters();
    let slc = (after.programs.slc.host - before.programs.slc.host) as f64;
    let native = (after.programs.native.host - before.programs.native.host) as f64;
    phone.verify()?;
    let song_bytes_s = songs.bytes as f64 * 1e9 / songs.total_ns.max(1) as f64;
    let slc_share = slc / (slc + native);
    Ok(Played { read_ns: reads.mean_ns(), write_ns: writes.mean_ns(), song_bytes_s, slc_share, samples })
}

/// The trace that is played.
pub fn trace() -> Trace {
    phone::trace(1)
}

impl Phone {
    /// Asks something at its time, or when what was asked before has been answered.
    fn request(&mut self, at_ns: u64, file: &str, op: Op) -> Result<Response, PlayError> {
        let Self { player, files, .. } = self;
        let arrival_ns = at_ns.max(player.now_ns());
        player.request(arrival_ns, |player| ask(player, files, file, op)).map(|(_, response)| response)
    }

    /// Lets time pass until then, and counts the blocks every 30 s.
    fn sample_until(&mut self, start_ns: u64, until_ns: u64, samples: &mut Vec<Sample>) -> Result<(), PlayError> {
        while samples.len() as u64 * SAMPLE_NS <= until_ns {
            let at_ns = samples.len() as u64 * SAMPLE_NS;
            self.player.rest_until(self.player.now_ns().max(start_ns + at_ns))?;
            let info = self.player.look().info().map_err(failed("counting blocks"))?;
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

    /// Compares every file with what a volume on a copy of the chip gives back.
    fn verify(mut self) -> Result<(), PlayError> {
        self.player.sync()?;
        let chip = self.player.look().chip();
        let options = MountOptions { now_ns: BASE_NS + chip.now_ns() as i64, ..MountOptions::default() };
        let mounted = Fs::mount(chip.snapshot(), options);
        let mut fs = mounted.map_err(|(_, source)| PlayError::Fs { doing: "mounting to read back", source })?;
        for (name, file) in &self.files {
            let mut found = vec![0; file.content.len() + 1];
            let count = fs.read(file.ino, 0, &mut found).map_err(failed("reading back"))?;
            if found[..count] != file.content {
                return Err(PlayError::Wrong(format!("{name} does not hold what was written")));
            }
        }
        Ok(())
    }
}

fn ask(player: &mut Player, files: &mut BTreeMap<String, File>, name: &str, op: Op) -> Result<(), PlayError> {
    let count = files.len() as u64;
    let file = match files.entry(name.to_owned()) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => {
            entry.insert(File { ino: player.create(name)?.ino, content: Vec::new(), seed: count << 32 })
        }
    };
    match op {
        Op::Read { offset, bytes } => {
            let mut found = vec![0; bytes as usize];
            let count = player.call("reading", |fs, _| fs.read(file.ino, offset, &mut found))?;
            if file.content.get(offset as usize..(offset + bytes) as usize) != found.get(..count) {
                return Err(PlayError::Wrong(format!("{name} does not hold at {offset} what was written")));
            }
            Ok(())
        }
        Op::Write { offset, bytes } => {
            file.seed += 1;
            let data = Fill { seed: file.seed, start: 0, texture: Texture::Noise }.bytes(bytes as usize);
            let end = (offset + bytes) as usize;
            file.content.resize(file.content.len().max(end), 0);
            file.content[offset as usize..end].copy_from_slice(&data);
            player.write(file.ino, offset, &data)
        }
        Op::Sync => player.sync(),
    }
}

fn failed(doing: &'static str) -> impl Fn(flexfs_core::Error) -> PlayError {
    move |source| PlayError::Fs { doing, source }
}
