//! The workloads that FlexFS is measured with, and the figures they give.
//!
//! A workload runs on a fresh emulated chip whose virtual clock is the file system's clock; what it wrote is read back
//! and compared afterwards, on a copy of the chip. Invariant: counts and flash time depend on the configuration alone,
//! never on the machine; only processor time does.

mod bench_chip;
mod capacity;
mod mount;
mod names;
mod step;
mod volume;
mod waits;
mod workloads;

use emulator::{Chip, EmulatorError, Profile, ProfileError};
use flexfs_core::{Compression, Error, Policy};
use ftl::BlockMapDrive;
use nand::NandError;
use serde::Serialize;
use torture::crash::VolumeOver;

use bench_chip::BenchChip;
pub use bench_chip::DriveLoad;
pub use names::{Directory, Growth, Scale, scale_on};
pub use step::Step;
pub use waits::{Distribution, Waits};

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// 1 MiB files until 90 % full, synced each.
    Seq,
    /// 2,000 files of 4 KiB, each created, written, synced and closed.
    Small,
    /// 2,000 synced overwrites of random aligned 4 KiB pages of an 8 MiB file; only these are counted.
    Over,
    /// A chip filled to 75 % natively, then 20,000 such overwrites; only these are counted.
    Gc,
    /// Page reads of a mount after `seq`: after an unmount, and after power cuts.
    Mount,
    /// 1 MiB files until nothing fits.
    Capacity,
    /// 100,000 names made, looked up and removed: in one directory, and in a hundred.
    Directory,
    /// A million files of 200 bytes in a thousand directories, and what a mount and a look-up cost then.
    Scale,
}

impl Workload {
    /// Every workload.
    pub const ALL: [Workload; 8] = [
        Workload::Seq,
        Workload::Small,
        Workload::Over,
        Workload::Gc,
        Workload::Mount,
        Workload::Capacity,
        Workload::Directory,
        Workload::Scale,
    ];

    /// Its name on a command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Seq => "seq",
            Workload::Small => "small",
            Workload::Over => "over",
            Workload::Gc => "gc",
            Workload::Mount => "mount",
            Workload::Capacity => "capacity",
            Workload::Directory => "directory",
            Workload::Scale => "scale",
        }
    }

    /// The workload of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workload| workload.name() == name)
    }

    /// Whether it consists of operations that idle time can come between.
    pub fn has_idle(self) -> bool {
        matches!(self, Workload::Seq | Workload::Small | Workload::Over | Workload::Gc)
    }

    /// The size of chip it is meant for.
    pub fn default_bytes(self) -> u64 {
        match self {
            Workload::Gc => 64 << 20,
            Workload::Scale => 16 << 30,
            _ => 512 << 20,
        }
    }
}

/// Operations between two idle times, where a configuration asks for these.
pub const OPERATIONS_PER_IDLE: u64 = 16;

/// On what to measure it.
#[derive(Clone, Debug)]
pub struct Config {
    /// The kind of chip.
    pub profile: Profile,
    /// Native bytes of the chip; `None`: what the workload is meant for.
    pub bytes: Option<u64>,
    pub policy: Policy,
    pub compression: Compression,
    pub cache_bytes: usize,
    /// Idle time after every [`OPERATIONS_PER_IDLE`] operations, with background work in it as a mount does it; `seq`,
    /// `small`, `over` and `gc` alone have any.
    pub idle_ns: Option<u64>,
    /// What stands between the file system and the chip; `seq`, `small`, `over`, `gc` and `capacity` alone know of it.
    pub over: VolumeOver,
    /// Lanes of each head; `None`: as many as the file system takes on such a chip.
    pub lanes: Option<u8>,
    /// Decides the data, the pages overwritten and the chip's chance events.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            bytes: None,
            policy: Policy::default(),
            compression: Compression::None,
            cache_bytes: 4 << 20,
            idle_ns: None,
            over: VolumeOver::Chip,
            lanes: None,
            seed: 1,
        }
    }
}

/// What was measured. Fields that a workload has nothing to say about are left out of its JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    pub workload: &'static str,
    pub chip: String,
    pub chip_bytes: u64,
    pub mode: String,
    /// Bytes the workload wrote while it was counted.
    pub host_bytes: u64,
    /// Program operations, read operations (those of spare bytes alone included) and erases.
    pub programs: u64,
    pub reads: u64,
    pub erases: u64,
    /// Units of all blocks that are programmed or left out in the end, since the last erase of each.
    pub used_units: u64,
    /// Bytes programmed for each byte written; 0 where nothing was written.
    pub write_amplification: f64,
    /// The sum of the prices of all operations, each by the cell mode and page type it really used.
    pub flash_s: f64,
    /// From the beginning of the counting until the last operation had ended: what overlaps on several dies counts once, idle
    /// time counts too.
    pub elapsed_s: f64,
    /// Of a chip of several dies: how long operations kept each busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dies: Option<DieLoad>,
    /// `over`, `gc`, of a chip of several dies: free blocks of each in the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub free_blocks: Vec<u32>,
    /// Over a drive: what that did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<DriveLoad>,
    /// The longest a single call made its caller wait for the chip; an unmount is not among them.
    pub worst_op_us: f64,
    /// Processor time of the counted phase, the emulator's included.
    pub cpu_s: f64,
    /// Of that, in the process itself, and in the kernel for it: page faults of the emulated chip's memory above all.
    pub user_s: f64,
    pub system_s: f64,
    /// `seq`, `small`, `over`, `gc`: how long the chip kept a whole operation waiting, a file or a synced overwrite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Distribution>,
    /// With idle time: how long background steps took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Distribution>,
    /// `mount`: page reads of a mount after an unmount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_clean: Option<u64>,
    /// `mount`: page reads of the worst mount after a power cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_after_cut: Option<u64>,
    /// `mount`: how long the chip took for the slowest mount after a power cut, what it wrote included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_after_cut_s: Option<f64>,
    /// `mount`: how long it took for the slowest one that only read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_after_cut_s: Option<f64>,
    /// `capacity`: what was written in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<Directory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
}

/// How long operations kept the dies of a chip busy, seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DieLoad {
    pub least_s: f64,
    pub mean_s: f64,
    pub greatest_s: f64,
}

impl DieLoad {
    /// Of a chip of several dies, since its counters began.
    pub fn of(chip: &Chip) -> Option<Self> {
        let busy_ns = chip.busy_ns();
        let seconds = |ns: u64| ns as f64 / 1e9;
        let (least_ns, greatest_ns) = (busy_ns.iter().min()?, busy_ns.iter().max()?);
        let mean_s = seconds(busy_ns.iter().sum()) / busy_ns.len() as f64;
        let load = Self { least_s: seconds(*least_ns), mean_s, greatest_s: seconds(*greatest_ns) };
        (busy_ns.len() > 1).then_some(load)
    }
}

/// What fits on a chip.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// Files of 1 MiB completely written.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Native bytes of the blocks that are good.
    pub native_bytes: u64,
    /// `bytes / native_bytes`.
    pub fraction: f64,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Chip(#[from] EmulatorError),
    #[error(transparent)]
    Nand(#[from] NandError),
    /// The file system refused what the workload needs.
    #[error("while {doing}: {source}")]
    Fs { doing: &'static str, source: Error },
    /// No drive can be made of the chip.
    #[error("the drive: {0}")]
    Drive(ftl::Error),
    /// The workload knows nothing of drives.
    #[error("{0} runs on a bare chip alone")]
    BareOnly(&'static str),
    /// The chip is too small for the workload.
    #[error("the workload needs a larger chip: {0}")]
    TooSmall(String),
    /// What was read back is not what was written.
    #[error("{0}")]
    Wrong(String),
}

/// Tells how far a workload has come: done, and in total, in units of its own.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Runs a workload.
pub fn run(workload: Workload, config: &Config, progress: Progress) -> Result<Report, BenchError> {
    match (workload, config.over) {
        (_, VolumeOver::Codesign) => on::<BlockMapDrive<Chip>>(workload, config, progress),
        (Workload::Mount, VolumeOver::Chip) => mount::mount(config, progress),
        (Workload::Directory, VolumeOver::Chip) => names::directory(config, progress),
        (Workload::Scale, VolumeOver::Chip) => names::scale(config, progress),
        (_, VolumeOver::Chip) => on::<Chip>(workload, config, progress),
    }
}

/// Runs a workload that knows of drives.
fn on<N: BenchChip>(workload: Workload, config: &Config, progress: Progress) -> Result<Report, BenchError> {
    match workload {
        Workload::Seq => workloads::seq::<N>(config, progress),
        Workload::Small => workloads::small::<N>(config, progress),
        Workload::Over => workloads::over::<N>(config, progress),
        Workload::Gc => workloads::gc::<N>(config, progress),
        Workload::Capacity => capacity::capacity::<N>(config, progress),
        Workload::Mount | Workload::Directory | Workload::Scale => Err(BenchError::BareOnly(workload.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_workloads() {
        for workload in Workload::ALL {
            assert_eq!(Workload::from_name(workload.name()), Some(workload));
        }
        assert_eq!(Workload::from_name("fast"), None);
    }

    #[test]
    fn a_broken_size_is_refused() {
        let config = Config { bytes: Some(1000), ..Config::default() };
        assert!(run(Workload::Small, &config, &mut |_, _| {}).unwrap_err().to_string().contains("multiple"));
    }
}
