//! Calls on a volume beside the model, with power cuts, remounts and failing programs and erases: no difference, ever.
//!
//! The steps are drawn by `lab`, from the words of the input. Invariant: what an input arms, the chip's own rules
//! allow, so each difference is the file system's fault.

use std::fmt;

use arbitrary::{Arbitrary, Result, Unstructured};
use emulator::FaultConfig;
use flexfs_core::{Compression, MountOptions, Policy};
use torture::crash::{Rig, Run};
use torture::ops::{Supply, Words};

use crate::record::padded;

/// Steps of an input; more only make it slow.
const STEPS_MAX: usize = 120;
/// Bytes of a step: what is armed before it, and its words.
const STEP_BYTES: usize = 26;
const HEAD_BYTES: usize = 4;
/// Seeded steps that age the volume first, at most.
const AGEING_STEPS: [usize; 4] = [0, 40, 120, 300];
/// Unmounts, and power cuts, of 1,000 steps.
const DISRUPTIONS: usize = 60;
/// Blocks that may fail in one history. The smallest chip has spares for these.
const FAILURES_MAX: usize = 3;

/// A history.
pub struct Input {
    chip: u8,
    seed: u8,
    ageing: usize,
    crowded_percent: u64,
    steps: Vec<Step>,
}

struct Step {
    armed: Armed,
    words: Words,
}

/// What is to fail soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Armed {
    Nothing,
    Program(u64),
    Erase(u64),
    /// The whole volume is compared before the step.
    Comparison,
}

/// A chip cut down, and how it is mounted.
struct Kind {
    profile: &'static str,
    blocks: u32,
    pages: u32,
    policy: Policy,
    compression: Compression,
    cache_bytes: usize,
    /// It has blocks to spare for some that fail.
    may_fail: bool,
}

const KINDS: [Kind; 8] = [
    kind("flexfs-mlc", 40, 16, Policy::BASELINE, Compression::None, 64 << 10, false),
    kind("flexfs-mlc", 96, 16, Policy::BASELINE, Compression::None, 128 << 10, true),
    kind("flexfs-mlc", 48, 16, Policy::NATIVE_ONLY, Compression::None, 64 << 10, false),
    kind("flexfs-mlc", 96, 16, Policy::NATIVE_ONLY, Compression::Lz4, 128 << 10, true),
    kind("flexfs-mlc", 48, 16, Policy::SLC_ONLY, Compression::None, 64 << 10, false),
    kind("flexfs-mlc", 40, 32, Policy::BASELINE, Compression::Lz4, 32 << 10, false),
    kind("tlc-3d", 42, 24, Policy::BASELINE, Compression::None, 128 << 10, false),
    kind("codesign-mlc8", 64, 16, Policy::BASELINE, Compression::Lz4, 64 << 10, false),
];

const fn kind(
    profile: &'static str,
    blocks: u32,
    pages: u32,
    policy: Policy,
    compression: Compression,
    cache_bytes: usize,
    may_fail: bool,
) -> Kind {
    Kind { profile, blocks, pages, policy, compression, cache_bytes, may_fail }
}

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let all = bytes.bytes(bytes.len())?;
        let (head, rest) = all.split_at(HEAD_BYTES.min(all.len()));
        let [chip, seed, ageing, crowded] = padded(head);
        Ok(Self {
            chip,
            seed,
            ageing: AGEING_STEPS[usize::from(ageing) % AGEING_STEPS.len()],
            crowded_percent: [60, 90, 100, 200][usize::from(crowded) % 4],
            steps: rest.chunks(STEP_BYTES).take(STEPS_MAX).map(Step::decode).collect(),
        })
    }
}

impl Step {
    fn decode(bytes: &[u8]) -> Self {
        let bytes: [u8; STEP_BYTES] = padded(bytes);
        let ([what, when], words) = (padded(&bytes[..2]), &bytes[2..]);
        let armed = match what % 16 {
            1 => Armed::Program(u64::from(when % 24)),
            2 => Armed::Erase(u64::from(when % 6)),
            3 => Armed::Comparison,
            _ => Armed::Nothing,
        };
        let mut list: Words = [0; 12];
        for (word, pair) in list.iter_mut().zip(words.chunks_exact(2)) {
            *word = u16::from_le_bytes(padded(pair));
        }
        Self { armed, words: list }
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kind { profile, blocks, pages, policy, .. } = self.kind();
        writeln!(
            f,
            "{profile}, {blocks} blocks of {pages} pages, {}, seed {}, aged {} steps, crowded at {} %",
            policy.name(),
            self.seed,
            self.ageing,
            self.crowded_percent
        )?;
        self.play(&mut |line| {
            let _told = writeln!(f, "  {line}");
        })
        .or_else(|error| writeln!(f, "  {error}"))
    }
}

impl Input {
    /// Runs the history; a difference panics.
    pub fn run(&self) {
        if let Err(difference) = self.play(&mut |_| ()) {
            panic!("{difference}");
        }
    }

    fn kind(&self) -> &'static Kind {
        &KINDS[usize::from(self.chip) % KINDS.len()]
    }

    fn play(&self, tell: &mut dyn FnMut(String)) -> std::result::Result<(), String> {
        let Kind { profile, blocks, pages, policy, compression, cache_bytes, may_fail } = *self.kind();
        let options = MountOptions { policy, compression, cache_bytes, ..MountOptions::default() };
        let mut rig = Rig::small(profile, blocks, pages, options)?;
        let seed = u64::from(self.seed);
        rig.faults = FaultConfig { fail_at_once: self.seed % 2 == 1, ..FaultConfig::power_cuts(seed) };
        let mut run = Run::new(rig, seed, self.crowded_percent, DISRUPTIONS)?;
        let mut supply = Supply::new(seed);
        for _ in 0..self.ageing {
            run.step(&supply.words())?;
        }
        let mut failures_left = if may_fail { FAILURES_MAX } else { 0 };
        for Step { armed, words } in &self.steps {
            if let Some(step) = run.peek(words) {
                tell(format!("{armed:?}, {step:?}"));
            }
            match (*armed, run.chip_mut()) {
                (Armed::Comparison, _) => run.compare()?,
                (Armed::Program(when), Some(chip)) if failures_left > 0 => {
                    failures_left -= 1;
                    chip.faults_mut().fail_program_at(when);
                }
                (Armed::Erase(when), Some(chip)) if failures_left > 0 => {
                    failures_left -= 1;
                    chip.faults_mut().fail_erase_at(when);
                }
                _ => {}
            }
            run.step(words)?;
        }
        run.finish().map(drop)
    }
}
