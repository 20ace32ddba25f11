//! The words of `flexfs replay`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use emulator::Profile;
use flexfs_core::Policy;
use flexfs_core::wear::Goal;
use ftl::Scheme;
use lab::play::HostCost;
use lab::trace::TimeUnit;

use super::LayerCounts;
use super::values::{lifetime, policy, profile, profile_help, scheme};
use crate::size;

/// Ask what was recorded again: on a new chip, in a directory, or of a copy of an image.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs mount --record busy.trace flash.img mnt    record what is asked
  flexfs replay busy.trace                 on a new chip, in its own time
  flexfs replay busy.trace --policy mlc-only --json
  flexfs replay busy.trace mnt2            in a directory, in real time
  strace -f -ttt -o app.trace app; flexfs replay app.trace
  flexfs replay disk.trace --ftl log-block          blocks, not files
  blkparse -i sda > sda.txt; flexfs replay sda.txt --ftl page-greedy
  flexfs replay src1_0.csv.gz --ftl dftl            as it was published
  xz -dc web.csv.xz | flexfs replay - --ftl fast
  flexfs replay card.trace --ftl log-block --as-recorded  of serve --record
  flexfs replay card.trace --ftl dftl --as-recorded --full --warm-up

  cp --sparse=always flash.img before.img
  flexfs mount --record-decisions busy.jsonl flash.img mnt
  flexfs replay busy.jsonl before.img      every decision, compared

A trace says what was asked of which file, when, and not what was written: those bytes are made up. It is what
mount --record writes, what strace -f -ttt prints, or a trace of MobiGen; its first line says which. Played on a new
chip, nothing takes time but the chip and the host as --host says; all that is read is compared with what was written,
and all files once more in the end. In a directory, of any file system, whose root stands for the trace's, each request
comes at its time or when that before it is answered; directories and files that the trace needs are made.

A trace of blocks says what was asked of which sectors of disks. It is what blkparse prints, or a
trace of DiskSim (time in ms with a fraction) or MQSim (in ns), MSR Cambridge, Microsoft's production
servers or SYSTOR '17, or lines of JSON. --ftl plays it on a translation layer on a new chip. What it touches stands
together there; what it reads and did not write is written before. All that is read is compared
with what was written, and all of it once more after the device is opened again.

With --as-recorded the requests go to the sectors that they name, as with flexfs serve: on a recording of that the
programs, erases, merges and switches are those of the server, without its idle merges. --full and --warm-up measure as
ftl-fig5 does: extra erases are those beyond one for each block of sectors written.

A file may be packed by gzip, begin with a byte-order mark, and have lines of comments (# or //). Requests for nothing
are passed over and counted.

A recording of decisions needs a copy of the image as it was when it began. It is a line of JSON for each event:
when it came by the chip's clock, what was asked, and the programs and erases that followed, each with its cause.
It holds names and attributes, and not what files hold. Nothing is written to the image.
Exit status 0: all as it must be; 1: not, or it cannot be replayed; 2: wrong usage.")]
pub struct Replay {
    /// A trace, or a recording of decisions; - for standard input
    pub recording: PathBuf,
    /// The directory for a trace, or the copy of the image for decisions
    #[arg(value_name = "DIR|IMAGE")]
    pub target: Option<PathBuf>,
    /// Ask for the next as soon as the one before it is answered, whatever the times of a trace
    #[arg(long)]
    pub no_pauses: bool,
    /// The new chip's policy, as of mount
    #[arg(long, visible_alias = "mode", value_name = "POLICY", default_value = Policy::DEFAULT.name(), value_parser = policy(), conflicts_with = "target")]
    pub policy: Policy,
    /// The kind of chip: a built-in profile, or a file that describes one
    #[arg(long, value_parser = profile(), hide_possible_values = true, help = chip_help(), conflicts_with = "target")]
    pub profile: Option<Profile>,
    /// The new chip's size [default: about 512MiB; with --ftl what holds the trace]
    #[arg(long, value_parser = size::parse, conflicts_with = "target")]
    pub size: Option<u64>,
    /// Play a trace of blocks on a translation layer of this scheme
    #[arg(long, value_name = "SCHEME", value_parser = scheme(), conflicts_with_all = ["target", "policy", "host", "lifetime"])]
    pub ftl: Option<Scheme>,
    /// Play only so many requests of a trace of blocks
    #[arg(long, value_name = "N", requires = "ftl")]
    pub requests: Option<usize>,
    /// The unit of the times of a trace in DiskSim's columns: ns, us, ms or s [default: ms with a fraction, else ns]
    #[arg(long, value_name = "UNIT", requires = "ftl")]
    pub time_unit: Option<TimeUnit>,
    /// Pass over the calls of a MobiGen trace that are not known, and count them
    #[arg(long, conflicts_with = "ftl")]
    pub skip_unknown: bool,
    /// Let the translation layer merge in idle time, as far as the last idle times let it be foreseen
    #[arg(long, requires = "ftl")]
    pub idle_merges: bool,
    /// Leave addresses as they are and write nothing before; chip and counts are those that the recording tells
    #[arg(long, requires = "ftl")]
    pub as_recorded: bool,
    /// Write every sector before the trace begins
    #[arg(long, requires = "ftl")]
    pub full: bool,
    /// Play the trace once before it counts
    #[arg(long, requires = "ftl")]
    pub warm_up: bool,
    #[command(flatten)]
    pub counts: LayerCounts,
    /// The host's time for each page
    #[arg(long, default_value = HostCost::NONE.name, value_parser = host(), conflicts_with = "target")]
    pub host: HostCost,
    /// No block of the new chip is to be worn out before then, like 3y
    #[arg(long, value_name = "TIME", value_parser = lifetime, conflicts_with = "target")]
    pub lifetime: Option<Goal>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

fn chip_help() -> String {
    format!("{} [default: {}; with --ftl the log-block paper's chip]", profile_help(), Profile::DEFAULT)
}

fn host() -> impl TypedValueParser<Value = HostCost> {
    let names = HostCost::PRESETS.map(|preset| preset.name);
    PossibleValuesParser::new(names).map(|name| HostCost::from_name(&name).unwrap_or(HostCost::NONE))
}
