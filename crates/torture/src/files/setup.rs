//! The chips that torture works on, how a volume on one is mounted, and what may stand on it when it begins.
//!
//! Invariant: a setup and a ground are data; together they give one volume, whoever makes it.

use emulator::FaultConfig;
use flexfs_core::wear::{Controller, Goal};
use flexfs_core::{Admission, Allocate, Compression, MountOptions, Policy, Times, Wanted};
use ftl::DriveFormat;

use crate::crash::{Rig, STEP_NS, VolumeOver};

/// A chip and how a volume on it is mounted.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub name: &'static str,
    pub about: &'static str,
    /// What the volume is over. A drive's chip has more blocks, so that the volume has as many.
    pub over: VolumeOver,
    profile: &'static str,
    blocks: u32,
    pages_per_block: u32,
    page_bytes: u32,
    bits_per_cell: u8,
    cache_bytes: usize,
    /// Lanes of each log head, where they are not left to the chip: on a chip of eight dies.
    lanes: Option<u8>,
    policy: Policy,
    compression: Compression,
    times: Times,
    /// See [`Setup::cost`].
    cost: u64,
    /// A lifetime to be guaranteed, and the cycles that blocks endure.
    life: Option<(Goal, u32)>,
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
    /// The tree and small files up to 85 % of the capacity, on a chip of small pages, so that the index has many. What is
    /// written fades in a year. Random histories find a checkpoint, or the emptying of a block, under way when they begin
    /// and again after every few operations.
    Busy,
    /// The same tree on a chip of which one part was written again and again: levelling is due.
    Worn,
    /// The tree and files up to 40 % of the capacity, after a year without power: reading takes most of what the ECC
    /// can do, and renewal is due.
    Faded,
}

impl Ground {
    pub const ALL: [Ground; 5] = [Ground::Tree, Ground::Full, Ground::Busy, Ground::Worn, Ground::Faded];

    /// The ground of that name.
    pub fn named(name: &str) -> Result<Ground, String> {
        let found = Ground::ALL.into_iter().find(|ground| ground.name() == name);
        found.ok_or(format!("a volume is not \"{name}\"; it is {}", Ground::ALL.map(Ground::name).join(", ")))
    }

    pub fn name(self) -> &'static str {
        match self {
            Ground::Tree => "tree",
            Ground::Full => "full",
            Ground::Busy => "busy",
            Ground::Worn => "worn",
            Ground::Faded => "faded",
        }
    }
}

/// Bytes of the largest page that is one slot.
pub(super) const ONE_SLOT_BYTES_MAX: u32 = 4096;
/// What a look at a busy volume takes where pages are larger.
const BUSY_COST: u64 = 4;

/// A life that calls at the pace of torture's spend too fast if all goes to SLC first, and the cycles of a block.
const LIFE: (Goal, u32) = (Goal { life_ns: 16_000_000_000, window_ns: 20_000_000 }, 20);

/// All is written to SLC, and any background step may migrate.
const MIGRATING: Policy = Policy::BM.collecting_both("migrating").with_times(0, 0);

/// What a volume follows unless told otherwise, but for the time it waits, the size of its windows, and how much is let into SLC
/// without idle time. Calls write some pages each: now and then there is the time to migrate them, now and then not.
const ALLOCATING: Policy = Policy::DEFAULT
    .with_times(0, 0)
    .with_allocation(Allocate { window_pages: 4, erase_page_ns: 600_000 })
    .with_admission(Admission { blocks_percent: 5, ..Admission::DEFAULT });
/// The same, but each call comes after what counts as a long pause.
const PAUSING: Policy = ALLOCATING.with_admission(Admission { blocks_percent: 5, pause_ns: STEP_NS, pause_percent: 1 });

const MLC: Setup = Setup {
    name: "slc",
    about: "MLC, written as SLC, migrated in the background and when blocks run out",
    over: VolumeOver::Chip,
    profile: "flexfs-mlc",
    blocks: 64,
    pages_per_block: 16,
    page_bytes: 4096,
    bits_per_cell: 2,
    cache_bytes: 256 << 10,
    lanes: None,
    policy: MIGRATING,
    compression: Compression::None,
    times: Times::OfVolume,
    cost: 1,
    life: None,
    sequences_on: Some(Ground::Tree),
};
const TLC: Setup = Setup {
    name: "tlc",
    about: "3D TLC programmed a word line at a time, written as SLC first",
    profile: "tlc-3d",
    blocks: 42,
    pages_per_block: 24,
    page_bytes: 16384,
    bits_per_cell: 3,
    cost: 4,
    ..MLC
};

/// Lanes on chips that are too small for as many by themselves.
const LANES_FORCED: u8 = 4;
/// Channels of a chip with lanes, of a die each.
const LANES_CHANNELS: u16 = 8;

const LANES: Setup = Setup { blocks: 192, lanes: Some(LANES_FORCED), cost: 3, ..MLC };

/// Spare bytes of a page for the tag of a drive; one-shot TLC has so many more, as some chips have them.
const DRIVE_SPARE_BYTES: u32 = 16;
const DRIVE_SPARE_BYTES_TLC: u32 = 64;

/// All there are, over bare chips.
const SETUPS: [Setup; 21] = [
    MLC,
    Setup {
        name: "allocating",
        about: "MLC, written as SLC and natively by turns, as there is idle time, hot data in blocks of its own",
        policy: ALLOCATING,
        sequences_on: None,
        ..MLC
    },
    Setup {
        name: "lifetime",
        about: "MLC that is to last: the share of SLC follows the wear, and each call comes after a pause; blocks long enough that anchors go on in one",
        blocks: 48,
        pages_per_block: 32,
        policy: PAUSING,
        life: Some(LIFE),
        ..MLC
    },
    Setup { name: "native", about: "MLC, data written natively: pages in pairs", policy: Policy::NATIVE_ONLY, ..MLC },
    Setup {
        name: "slc-only",
        about: "MLC that never leaves SLC",
        policy: Policy::SLC_ONLY,
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
        policy: Policy::NATIVE_ONLY,
        compression: Compression::Lz4,
        sequences_on: None,
        ..MLC
    },
    Setup {
        name: "many-blocks",
        about: "MLC of 2 KiB pages, migrated when blocks run out, in more blocks than an anchor lists: their table has pages of its own",
        blocks: 150,
        page_bytes: 2048,
        policy: Policy::BASELINE,
        cost: 3,
        sequences_on: None,
        ..MLC
    },
    Setup {
        name: "two-slots",
        about: "MLC of 8 KiB pages, data written natively: pages in pairs, two slots in each",
        blocks: 42,
        page_bytes: 8192,
        policy: Policy::NATIVE_ONLY,
        sequences_on: None,
        ..MLC
    },
    Setup {
        name: "no-cache",
        about: "MLC of 2 KiB pages, mounted without a cache: pages of the index are read whenever they are needed",
        page_bytes: 2048,
        cache_bytes: 0,
        sequences_on: None,
        ..MLC
    },
    Setup {
        name: "one-bit",
        about: "SLC of 2 KiB pages: all blocks are programmed in the same order, and no page endangers another",
        page_bytes: 2048,
        bits_per_cell: 1,
        policy: ALLOCATING,
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
        policy: Policy::NATIVE_ONLY,
        sequences_on: Some(Ground::Worn),
        ..TLC
    },
    Setup {
        name: "callers-slc",
        about: "MLC as the first, but callers keep the times of files and set them after their data",
        times: Times::OfCaller,
        ..MLC
    },
    Setup {
        name: "callers-allocating",
        about: "MLC written to as a mount does by default: SLC and natively by turns, with the callers' times",
        policy: ALLOCATING,
        times: Times::OfCaller,
        ..MLC
    },
    Setup {
        name: "callers-two-slots",
        about: "MLC of 8 KiB pages, two slots in each, written as SLC first, with the callers' times",
        blocks: 42,
        page_bytes: 8192,
        times: Times::OfCaller,
        sequences_on: None,
        ..MLC
    },
    Setup {
        name: "lanes",
        about: "MLC of eight dies: each log head writes to four blocks in turn, each on dies of its own",
        policy: ALLOCATING,
        ..LANES
    },
    Setup {
        name: "lanes-native",
        about: "MLC of eight dies, data written natively to four blocks in turn: pages in pairs",
        policy: Policy::NATIVE_ONLY,
        ..LANES
    },
    Setup {
        name: "lanes-tlc",
        about: "3D TLC of eight dies, written as SLC first, to four blocks in turn",
        blocks: 96,
        lanes: Some(LANES_FORCED),
        ..TLC
    },
];

/// The same over drives.
const DRIVE_SETUPS: [Setup; SETUPS.len()] = {
    let (mut setups, mut at) = (SETUPS, 0);
    while at < setups.len() {
        setups[at].over = VolumeOver::Codesign;
        at += 1;
    }
    setups
};

impl Setup {
    /// Every setup over a bare chip.
    pub fn all() -> &'static [Setup] {
        Self::all_over(VolumeOver::Chip)
    }

    /// Every setup.
    pub fn all_over(over: VolumeOver) -> &'static [Setup] {
        match over {
            VolumeOver::Chip => &SETUPS,
            VolumeOver::Codesign => &DRIVE_SETUPS,
        }
    }

    /// The same setup over something else.
    pub fn on(&'static self, over: VolumeOver) -> &'static Setup {
        Self::all_over(over).iter().find(|setup| setup.name == self.name).unwrap_or(self)
    }

    /// The setup of that name over a bare chip.
    pub fn named(name: &str) -> Result<&'static Setup, String> {
        let names: Vec<&str> = SETUPS.iter().map(|setup| setup.name).collect();
        let found = SETUPS.iter().find(|setup| setup.name == name);
        found.ok_or(format!("no chip is named \"{name}\"; there are {}", names.join(", ")))
    }

    /// What a look at a volume takes, about: so many times what it takes on the first chip. It takes long on a busy
    /// volume of pages of two slots, longest where a block failed: calls there write hundreds of pages.
    pub fn cost(&self, ground: Ground) -> u64 {
        if ground == Ground::Busy && self.page_bytes > ONE_SLOT_BYTES_MAX {
            self.cost.max(BUSY_COST)
        } else {
            self.cost
        }
    }

    /// Whether blocks endure so few cycles that bits flip by wear alone.
    pub fn has_few_cycles(&self) -> bool {
        self.life.is_some()
    }

    /// Whether each log head has several lanes.
    pub fn has_lanes(&self) -> bool {
        self.lanes.is_some()
    }

    /// Whether callers' data goes to native cells at once.
    pub fn writes_native(&self) -> bool {
        self.policy.writes_natively()
    }

    /// Whether callers keep the times of files.
    pub fn keeps_callers_times(&self) -> bool {
        self.times == Times::OfCaller
    }

    /// Chip and mount options, without faults.
    pub(super) fn rig(&self) -> Result<Rig, String> {
        let goal = self.life.map(|(goal, _)| goal);
        let options = MountOptions {
            policy: self.policy,
            compression: self.compression,
            times: self.times,
            cache_bytes: self.cache_bytes,
            lanes: self.lanes,
            life: Wanted { goal, controller: Controller::WholeLife },
            ..MountOptions::default()
        };
        let mut rig = Rig::small(self.profile, self.blocks, self.pages_per_block, options)?;
        rig.profile.geometry.page_bytes = self.page_bytes;
        rig.profile.geometry.bits_per_cell = self.bits_per_cell;
        if self.lanes.is_some() {
            rig.profile.geometry.channels = LANES_CHANNELS;
        }
        if let Some((_, cycles)) = self.life {
            (rig.profile.endurance.slc_erases, rig.profile.endurance.native_erases) = (cycles, cycles);
        }
        if self.over == VolumeOver::Codesign {
            let shape = &mut rig.profile.geometry;
            shape.blocks = DriveFormat::chip_blocks(shape.blocks, shape.dies());
            shape.spare_bytes += if self.bits_per_cell > 2 { DRIVE_SPARE_BYTES_TLC } else { DRIVE_SPARE_BYTES };
        }
        Ok(Rig { faults: FaultConfig::default(), over: self.over, ..rig })
    }
}
