//! The volumes that torture begins with: on which chip, mounted how, and what is on them.
//!
//! Invariant: a base is prepared without failures and unmounted cleanly, and is the same each time it is made.

use emulator::{BitErrors, FaultConfig};
use flexfs_core::{Compression, Mode, MountOptions, NewNode, ROOT_INO, kind};

use crate::content::{Fill, Texture};
use crate::crash::{Emulated, History, Outcome, Rig, Tap, Twin};
use crate::ops::{Call, Name, Op, Shape, Step};
use emulator::Chip;

/// A chip and how a volume on it is mounted.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub name: &'static str,
    pub about: &'static str,
    profile: &'static str,
    blocks: u32,
    pages_per_block: u32,
    mode: Mode,
    compression: Compression,
    /// What its sequences of operations begin with: on the small tree chips that need no room made do all the same. The
    /// rest of what torture does is enough for a mixture of others.
    pub sequences_on: Option<Ground>,
}

/// What stands on a volume when a script begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ground {
    /// A few files and directories.
    Tree,
    /// The same, and files up to 85 % of the capacity.
    Full,
    /// The same tree on a chip of which one part was written again and again: levelling is due.
    Worn,
    /// The tree and files up to 40 % of the capacity, after a year without power: reading takes most of what the ECC
    /// can do, and renewal is due.
    Faded,
}

impl Ground {
    pub const ALL: [Ground; 4] = [Ground::Tree, Ground::Full, Ground::Worn, Ground::Faded];

    /// The ground of that name.
    pub fn named(name: &str) -> Result<Ground, String> {
        let found = Ground::ALL.into_iter().find(|ground| ground.name() == name);
        found.ok_or(format!("a volume is not \"{name}\"; it is {}", Ground::ALL.map(Ground::name).join(", ")))
    }

    pub fn name(self) -> &'static str {
        match self {
            Ground::Tree => "tree",
            Ground::Full => "full",
            Ground::Worn => "worn",
            Ground::Faded => "faded",
        }
    }
}

const MLC: Setup = Setup {
    name: "slc",
    about: "MLC, written as SLC, migrated when blocks run out",
    profile: "flexfs-mlc",
    blocks: 64,
    pages_per_block: 16,
    mode: Mode::Baseline,
    compression: Compression::None,
    sequences_on: Some(Ground::Tree),
};
const TLC: Setup = Setup {
    name: "tlc",
    about: "3D TLC programmed a word line at a time, written as SLC first",
    profile: "tlc-3d",
    blocks: 42,
    pages_per_block: 24,
    ..MLC
};

/// All there are.
const SETUPS: [Setup; 9] = [
    MLC,
    Setup { name: "native", about: "MLC, data written natively: pages in pairs", mode: Mode::NativeOnly, ..MLC },
    Setup {
        name: "slc-only",
        about: "MLC that never leaves SLC",
        mode: Mode::SlcOnly,
        sequences_on: Some(Ground::Full),
        ..MLC
    },
    Setup { name: "lz4", about: "MLC, data compressed", compression: Compression::Lz4, ..MLC },
    Setup {
        name: "channels",
        about: "MLC of eight channels",
        profile: "codesign-mlc8",
        sequences_on: Some(Ground::Worn),
        ..MLC
    },
    Setup {
        name: "native-lz4",
        about: "MLC, data compressed and written natively",
        mode: Mode::NativeOnly,
        compression: Compression::Lz4,
        sequences_on: None,
        ..MLC
    },
    TLC,
    Setup {
        name: "tlc-lz4",
        about: "3D TLC, data compressed and written as SLC first",
        compression: Compression::Lz4,
        sequences_on: None,
        ..TLC
    },
    Setup {
        name: "tlc-native",
        about: "3D TLC, data written natively: twelve chunks a program",
        mode: Mode::NativeOnly,
        sequences_on: Some(Ground::Worn),
        ..TLC
    },
];

/// Part of the capacity that [`Ground::Full`] fills, in percent.
const FULL_PERCENT: u64 = 85;
/// Part of the capacity that [`Ground::Faded`] fills, in percent; for how long it has no power, in days; and what part of
/// what the ECC corrects in a codeword is wrong in one then, on average.
const FADED_PERCENT: u64 = 40;
const FADED_DAYS: u64 = 365;
const FADED_SHARE: f64 = 0.7;
pub(super) const DAY_NS: u64 = 86_400_000_000_000;
/// Erases by which blocks of [`Ground::Worn`] are apart when it is done.
const WORN_ERASES: u32 = 20;
/// Blocks full of what never changes there, and overwrites after which they are ever that far apart.
const COLD_BLOCKS: usize = 4;
const WEAR_ROUNDS_MAX: u64 = 20_000;
/// The endurance its chip has: the gap that levelling allows is a part of it.
const WORN_ENDURANCE: u32 = 400;

/// One mount in so many need not be like the one before.
const OTHER_OPTIONS: u64 = 4;
const MODES: [Mode; 3] = [Mode::Baseline, Mode::SlcOnly, Mode::NativeOnly];
const COMPRESSIONS: [Compression; 2] = [Compression::None, Compression::Lz4];

/// The tree: what sequences of operations work on.
const TREE: &str = "mkdir A; mkdir B; create foo; append foo 10000; setxattr foo 40; create A/bar; append A/bar 4096; \
                    symlink ln; sync";

impl Setup {
    /// Every setup.
    pub fn all() -> &'static [Setup] {
        &SETUPS
    }

    /// The setup of that name.
    pub fn named(name: &str) -> Result<&'static Setup, String> {
        let names: Vec<&str> = SETUPS.iter().map(|setup| setup.name).collect();
        let found = SETUPS.iter().find(|setup| setup.name == name);
        found.ok_or(format!("no chip is named \"{name}\"; there are {}", names.join(", ")))
    }

    /// Whether callers' data goes to native cells at once.
    pub fn writes_native(&self) -> bool {
        self.mode.writes_native()
    }

    /// Chip and mount options, without faults.
    pub(super) fn rig(&self) -> Result<Rig, String> {
        let options = MountOptions {
            mode: self.mode,
            compression: self.compression,
            cache_bytes: 256 << 10,
            ..MountOptions::default()
        };
        let rig = Rig::small(self.profile, self.blocks, self.pages_per_block, options)?;
        Ok(Rig { faults: FaultConfig::default(), ..rig })
    }
}

/// A volume to begin with.
pub struct Base {
    pub rig: Rig,
    pub chip: Chip,
    pub history: History,
    pub now_ns: i64,
    /// What random histories on it look like.
    pub shape: Shape,
}

impl Base {
    /// Prepares a volume.
    pub fn prepare(setup: &Setup, ground: Ground) -> Result<Self, String> {
        let mut rig = setup.rig()?;
        match ground {
            Ground::Worn => rig.profile.endurance.native_erases = WORN_ENDURANCE,
            Ground::Faded => let_fade(&mut rig),
            Ground::Tree | Ground::Full => {}
        }
        let mut twin = rig.format(Tap::new(rig.chip(1)?, rig.faults.clone()), 1)?;
        for (seed, op) in (0..).zip(Op::list(TREE)?) {
            let Some(Step::Call(call)) = op.step(twin.history.live(), seed) else { return Err(format!("tree: {op}")) };
            expect_done(&mut twin, &call)?;
        }
        let stat = twin.fs.statfs().map_err(|error| format!("statfs: {error}"))?;
        let mut filled = |percent| fill(&mut twin, stat.capacity_bytes * percent / 100, u64::from(stat.chunk_bytes));
        match ground {
            Ground::Tree => {}
            Ground::Full => filled(FULL_PERCENT)?,
            Ground::Faded => filled(FADED_PERCENT)?,
            Ground::Worn => wear(&mut twin)?,
        }
        let shape = rig.shape(&mut twin, FULL_PERCENT, 0)?;
        let mut now_ns = twin.now_ns;
        let (tap, mut history) = twin.unmount()?;
        history.forget_handles();
        let mut chip = tap.into_chip();
        if ground == Ground::Faded {
            chip.advance_to_ns(chip.now_ns() + FADED_DAYS * DAY_NS);
            now_ns += (FADED_DAYS * DAY_NS) as i64;
        }
        chip.reset_counters();
        Ok(Self { rig, chip, history, now_ns, shape })
    }

    /// What a later mount is told: of what may be drawn, most of it says what the setup does, and the rest any mode and
    /// compression.
    pub(super) fn options(&self, drawn: u64) -> MountOptions {
        let mut options = self.rig.options.clone();
        if drawn.is_multiple_of(OTHER_OPTIONS) {
            options.mode = MODES[(drawn >> 8) as usize % MODES.len()];
            options.compression = COMPRESSIONS[(drawn >> 16) as usize % COMPRESSIONS.len()];
        }
        options
    }
}

fn expect_done(twin: &mut Twin<Tap>, call: &Call) -> Result<(), String> {
    match twin.call(call)? {
        Outcome::Done => Ok(()),
        other => Err(format!("{call:?}: {other:?}")),
    }
}

fn new_file(twin: &mut Twin<Tap>, name: String) -> Result<u64, String> {
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let name = Name(name.into_bytes());
    expect_done(twin, &Call::Create { parent: ROOT_INO, name: name.clone(), node, attributes: Vec::new() })?;
    twin.history.live().child(ROOT_INO, &name).map_err(|_| "a file just made is not there".to_string())
}

/// Lets bits of what is written go wrong with time, none at first.
fn let_fade(rig: &mut Rig) {
    let ecc = &rig.profile.ecc;
    let wrong_bits = FADED_SHARE * f64::from(ecc.correctable_bits) / FADED_DAYS as f64;
    let rate = wrong_bits / (8 * ecc.codeword_bytes) as f64;
    for errors in [&mut rig.profile.errors.slc, &mut rig.profile.errors.native] {
        (errors.fresh, errors.wear, errors.per_read, errors.retention_per_day) = (0.0, 0.0, 0.0, rate);
    }
    rig.faults.bit_errors = BitErrors::Correctable;
}

/// Writes files until so many bytes are stored.
fn fill(twin: &mut Twin<Tap>, bytes: u64, chunk_bytes: u64) -> Result<(), String> {
    for number in 0u64.. {
        if twin.history.live().stored_bytes() >= bytes {
            break;
        }
        let ino = new_file(twin, format!("fill{number}"))?;
        let len = (chunk_bytes * (1 + number % 13)) as usize;
        let fill = Fill { seed: number, start: 0, texture: Texture::Noise };
        expect_done(twin, &Call::Write { ino, offset: 0, len, fill })?;
        expect_done(twin, &Call::Sync)?;
    }
    Ok(())
}

/// Overwrites a file until the blocks that take part are well ahead of those that hold another.
fn wear(twin: &mut Twin<Tap>) -> Result<(), String> {
    let cold = new_file(twin, "cold".into())?;
    let len = COLD_BLOCKS * twin.fs.chip().emulated().profile().block_bytes() as usize;
    expect_done(
        twin,
        &Call::Write { ino: cold, offset: 0, len, fill: Fill { seed: 0, start: 0, texture: Texture::Noise } },
    )?;
    expect_done(twin, &Call::Sync)?;
    let ino = new_file(twin, "hot".into())?;
    for round in 0..WEAR_ROUNDS_MAX {
        let info = twin.fs.info().map_err(|error| format!("info: {error}"))?;
        if info.erases_max >= info.erases_min + WORN_ERASES {
            return Ok(());
        }
        let fill = Fill { seed: round, start: 0, texture: Texture::Noise };
        expect_done(twin, &Call::Write { ino, offset: 0, len: 16 * 4096, fill })?;
        expect_done(twin, &Call::Sync)?;
    }
    Err("blocks do not wear unevenly".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setup_and_ground_can_be_prepared() {
        for setup in Setup::all() {
            for ground in Ground::ALL {
                let base = Base::prepare(setup, ground).unwrap_or_else(|error| panic!("{}: {error}", setup.name));
                assert!(base.history.live().child(ROOT_INO, b"foo").is_ok() && base.history.pending().is_empty());
            }
        }
    }
}
