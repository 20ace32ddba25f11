//! What `flexfs bench` is told.

use clap::Args;
use emulator::Profile;
use flexfs_core::Policy;
use ftl::Scheme;
use torture::crash::VolumeOver;

use super::values::{Benchmark, benchmark, drive, policy, profile, profile_help, scheme};
use crate::size;

/// Sectors that a write cache holds at most.
const CACHE_MAX: i64 = 1 << 20;

/// Run a workload on a fresh chip in memory: count flash operations, or time calls through the kernel.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs bench small                   2,000 files of 4 KiB, each synced
  flexfs bench over --json             2,000 synced 4 KiB overwrites in an 8 MiB file
  flexfs bench seq --policy mlc-only   1 MiB files until the chip is 90 % full
  flexfs bench gc                      20,000 synced overwrites on a 64 MiB chip three quarters full
  flexfs bench gc --idle 50            the same with 50 ms to work in the background after every 16
  flexfs bench gc --over codesign      the same over a drive that maps only blocks
  flexfs bench mount                   page reads of a mount: clean, and after a power cut
  flexfs bench capacity --size 64MiB   1 MiB files until there is no space left
  flexfs bench directory               what a name costs among 100,000, against among 1,000
  flexfs bench scale                   a million files on 16 GiB: mount, look-up, creation
  flexfs bench fuse                    calls a second, mounted, beside a file system that only keeps bytes
  flexfs bench ftl --ftl log-block     sectors written at random places of a translation layer

Flash time prices every operation by the chip's profile and the page it really used. Only fuse takes the
time of the clock: the best of five rounds, with files of an eighth of the chip; null is that other file system.
ftl fills half of a device on the log-block paper's chip, which keeps no host data, and writes single sectors there until
blocks are reclaimed all the time; then 20,000 more are counted. It checks at the end that every sector stands where
the map says. With --idle merges are done in idle time, as far as the last idle times let it be foreseen.")]
pub struct Bench {
    /// The workload
    #[arg(value_parser = benchmark())]
    pub workload: Benchmark,
    /// Which cells data is written to, and what is moved when
    #[arg(long, visible_alias = "mode", value_name = "POLICY", default_value = Policy::DEFAULT.name(), value_parser = policy())]
    pub policy: Policy,
    /// The chip's native capacity, a multiple of its erase block [default: about what the workload is meant for]
    #[arg(long, value_parser = size::parse)]
    pub size: Option<u64>,
    /// The kind of chip: a built-in profile, or a file that describes one
    #[arg(long, value_parser = profile(), hide_possible_values = true, help = profile_help())]
    pub profile: Option<Profile>,
    /// With so much idle time after every 16 operations, in which the volume works as a mounted one does: seq, small,
    /// over, gc and ftl
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..))]
    pub idle: Option<u32>,
    /// Run over a drive on the chip, which maps only blocks: seq, small, over, gc and capacity
    #[arg(long, value_name = "DRIVE", value_parser = drive())]
    pub over: Option<VolumeOver>,
    /// Blocks that each head fills at once, on a chip of several dies [default: the greatest power of two that has a die and
    /// 64 blocks for each]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=32))]
    pub lanes: Option<u8>,
    /// The scheme that ftl measures
    #[arg(long, value_name = "SCHEME", value_parser = scheme(), required_if_eq("workload", "ftl"))]
    pub ftl: Option<Scheme>,
    /// Sectors that may wait in a write cache before ftl's device
    #[arg(long, value_name = "SECTORS", requires = "ftl", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=CACHE_MAX))]
    pub cache: u32,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
