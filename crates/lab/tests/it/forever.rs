//! Volumes at nine tenths of the space that `statfs` gives, overwritten for ever: there is always space, each call waits
//! for a bounded time, and a background step is one of the few things it may be.
//!
//! Invariant: every byte that was synced is there in the end.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use emulator::{Chip, FaultConfig, Profile};
use flexfs_core::{Fs, Ino, MountOptions, NewNode, Policy, ROOT_INO, kind};
use lab::bench::Step;
use torture::content::{Fill, Texture, mix};
use torture::crash::{Rig, VolumeOver};

/// Synced overwrites of each volume, unless the environment asks for more: `FLEXFS_FOREVER_WRITES=100000`.
const WRITES: u64 = 6_000;
/// Flash time that any call may take, ns.
const CALL_NS: u64 = 250_000_000;
/// Background steps after an overwrite, on the volumes that have any.
const STEPS: u64 = 2;

/// What the volume stands on: SLC cells only, or the paper's chip with one of its policies.
#[derive(Clone, Copy, Debug)]
enum Cells {
    OneBit,
    Paper(Policy),
}

/// One of the combinations.
#[derive(Clone, Copy, Debug)]
struct Combination {
    cells: Cells,
    page_bytes: u32,
    cache_bytes: usize,
    background: bool,
}

impl Combination {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        let cells = [
            (Cells::OneBit, 4096),
            (Cells::OneBit, 2048),
            (Cells::Paper(Policy::BASELINE), 4096),
            (Cells::Paper(Policy::NATIVE_ONLY), 4096),
        ];
        for (cells, page_bytes) in cells {
            for cache_bytes in [0, 64 << 10, 1 << 20] {
                for background in [false, true] {
                    all.push(Self { cells, page_bytes, cache_bytes, background });
                }
            }
        }
        all
    }

    /// A chip of 64 MiB.
    fn rig(self) -> Rig {
        let mut profile = Profile::builtin("flexfs-mlc").unwrap();
        let geometry = &mut profile.geometry;
        let policy = match self.cells {
            Cells::OneBit => {
                (geometry.bits_per_cell, geometry.pages_per_block) = (1, 64);
                profile.programming = Profile::builtin("k9f5608u0m").unwrap().programming;
                profile.timing.native = profile.timing.slc.clone();
                Policy::BASELINE
            }
            Cells::Paper(policy) => policy,
        };
        geometry.page_bytes = self.page_bytes;
        geometry.blocks = (64 << 20) / (geometry.pages_per_block * self.page_bytes);
        let options = MountOptions { policy, cache_bytes: self.cache_bytes, ..MountOptions::default() };
        Rig { profile, faults: FaultConfig::default(), options, over: VolumeOver::Chip }
    }
}

/// A full volume, and the versions of its one file's chunks.
struct Full {
    fs: Fs<Chip>,
    ino: Ino,
    versions: Vec<u64>,
    now_ns: i64,
    longest_call_ns: u64,
    longest_step_ns: u64,
}

impl Full {
    fn new(combination: Combination) -> Self {
        let rig = combination.rig();
        let mut fs = rig.format(rig.chip(1).unwrap(), 1).unwrap().fs;
        let stat = fs.statfs().unwrap();
        let chunks = stat.free_bytes * 9 / 10 / u64::from(stat.chunk_bytes);
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        let ino = fs.create(ROOT_INO, b"file", node, 0).unwrap().ino;
        let mut full =
            Self { fs, ino, versions: vec![0; chunks as usize], now_ns: 0, longest_call_ns: 0, longest_step_ns: 0 };
        for chunk in 0..chunks {
            full.overwrite(chunk).unwrap();
            if chunk % 64 == 0 {
                full.fs.sync().unwrap();
            }
        }
        (full.longest_call_ns, full.longest_step_ns) = (0, 0);
        full
    }

    fn contents(&self, chunk: u64) -> Vec<u8> {
        let seed = mix(chunk ^ mix(self.versions[chunk as usize]));
        let chunk_bytes = self.fs.chip().profile().geometry.page_bytes as usize;
        Fill { seed, start: 0, texture: Texture::Noise }.bytes(chunk_bytes)
    }

    fn flash_ns(&self) -> u64 {
        self.fs.chip().counters().flash_ns
    }

    fn overwrite(&mut self, chunk: u64) -> Result<(), String> {
        self.versions[chunk as usize] += 1;
        let bytes = self.contents(chunk);
        let before_ns = self.flash_ns();
        let written = self.fs.write(self.ino, chunk * bytes.len() as u64, &bytes, self.now_ns);
        self.longest_call_ns = self.longest_call_ns.max(self.flash_ns() - before_ns);
        match written {
            Ok(count) if count == bytes.len() => Ok(()),
            other => Err(format!("chunk {chunk}: {other:?} of {}", bytes.len())),
        }
    }

    fn sync(&mut self) -> Result<(), String> {
        let before_ns = self.flash_ns();
        let outcome = self.fs.sync().map_err(|error| format!("sync: {error}"));
        self.longest_call_ns = self.longest_call_ns.max(self.flash_ns() - before_ns);
        outcome
    }

    /// A few background steps, each of which must be one.
    fn rest(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            self.now_ns += 2_000_000;
            let before = Step::so_far(self.fs.chip().counters());
            self.fs.background(self.now_ns, self.now_ns).map_err(|error| format!("background: {error}"))?;
            let step = Step::so_far(self.fs.chip().counters()).since(before);
            self.longest_step_ns = self.longest_step_ns.max(step.flash_ns);
            step.bounded(self.fs.chip().profile(), false)?;
        }
        Ok(())
    }

    /// Every chunk holds what was written last.
    fn judge(&mut self) -> Result<(), String> {
        for chunk in 0..self.versions.len() as u64 {
            let expected = self.contents(chunk);
            let mut found = vec![0; expected.len()];
            let count = self.fs.read(self.ino, chunk * expected.len() as u64, &mut found);
            if count != Ok(expected.len()) || found != expected {
                return Err(format!("chunk {chunk} differs: {count:?}"));
            }
        }
        let findings = self.fs.check().map_err(|error| format!("check: {error}"))?.findings;
        if findings.is_empty() { Ok(()) } else { Err(findings.join("; ")) }
    }
}

/// Overwrites a full volume so many times; the longest call and the longest step, ns.
fn overwritten(combination: Combination, writes: u64) -> Result<(u64, u64), String> {
    let mut full = Full::new(combination);
    let chunks = full.versions.len() as u64;
    for turn in 0..writes {
        let at = |error| format!("overwrite {turn}: {error}");
        full.overwrite(mix(turn) % chunks).and_then(|()| full.sync()).map_err(at)?;
        if combination.background {
            full.rest().map_err(at)?;
        }
        if full.longest_call_ns > CALL_NS {
            return Err(at(format!("a call took {} ns of the chip's time", full.longest_call_ns)));
        }
    }
    full.judge()?;
    Ok((full.longest_call_ns, full.longest_step_ns))
}

#[test]
fn a_volume_at_nine_tenths_can_be_overwritten_for_ever_in_calls_and_steps_of_bounded_time() {
    let writes = std::env::var("FLEXFS_FOREVER_WRITES").map_or(WRITES, |value| value.parse().unwrap());
    let (all, next, failed) = (Combination::all(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(&combination) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match overwritten(combination, writes) {
                        Ok((call_ns, step_ns)) => println!("{combination:?}: call {call_ns} ns, step {step_ns} ns"),
                        Err(error) => failed.lock().unwrap().push(format!("{combination:?}: {error}")),
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{failed:#?}");
}
