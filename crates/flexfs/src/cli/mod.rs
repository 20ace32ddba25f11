//! The command line: what can be asked for, and the help that teaches it.
//!
//! Invariant: a value that reaches a command has been read and is sensible by itself (a size is a number of
//! bytes, a policy one that has a name, a profile a chip that can be made).

mod bench;
mod files;
mod layer;
mod mount;
mod overview;
mod program;
mod replay;
mod repro;
mod serve;
mod settings;
mod top;
mod torture;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use ::torture::crash::VolumeOver;
use clap::{Args, Parser, Subcommand};
use emulator::Profile;
use flexfs_core::wear::Goal;

use crate::size;
pub use bench::Bench;
pub use files::{Get, Ls, Mkdir, Put, Rm};
pub use layer::{Layer, LayerCounts};
pub use mount::{Helper, Mount};
pub use overview::command;
pub use program::{Completions, Man};
pub use replay::Replay;
pub use repro::{Asked, Repro};
pub use serve::Serve;
pub use settings::Settings;
pub use top::Top;
pub use torture::{Formatted, Torture};
pub use values::Benchmark;
use values::{drive, label, lifetime, number, owner, profile, profile_help, uuid};

/// Exit status of a command line that is no order, of every command but `fsck`.
pub const WRONG_USAGE: u8 = 2;

/// FlexFS: a file system for NAND flash that writes at SLC speed and keeps MLC capacity.
///
/// It works on an emulated flash chip in an image file: torn pages, wear and bad blocks included.
#[derive(Parser)]
#[command(name = "flexfs", version, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  flexfs mount --create 512MiB flash.img mnt   make a chip, mount it, serve until Ctrl-C
  flexfs info flash.img                        what is on it
  flexfs top flash.img                         watch it while it is mounted
  flexfs fsck flash.img                        check it, changing nothing
  flexfs ls -l flash.img                       list it without mounting it; get, put, mkdir and rm work so
  flexfs bench small                           what 2,000 small files cost in flash operations

Each command explains itself: flexfs mount --help")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    Mkfs(Mkfs),
    Mount(Mount),
    Serve(Serve),
    Info(Info),
    Top(Top),
    Fsck(Fsck),
    Dump(Dump),
    Ls(Ls),
    Get(Get),
    Put(Put),
    Mkdir(Mkdir),
    Rm(Rm),
    Bench(Bench),
    Torture(Torture),
    Repro(Repro),
    Replay(Replay),
    Completions(Completions),
    Man(Man),
}

/// Make an emulated chip in an image file and format it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs mkfs flash.img --size 512MiB
  flexfs mkfs flash.img --size 2040MiB --profile tlc-3d --label camera
  flexfs mkfs flash.img --size 64MiB --force      replace what flash.img was
  flexfs mkfs flash.img --size 64MiB --from root --owner 0:0
  flexfs mkfs flash.img --size 64MiB --ftl log-block  sectors, not files
  flexfs mkfs flash.img --size 64MiB --over codesign  over a drive
  flexfs mkfs /dev/mtd3                           a real chip (docs/MTD.md)

The image is sparse: it takes on disk what has been written to the chip, and a little more.
With --from the same tree and the same options give the same image, byte for byte: all times are the source's
times of modification, the volume is as old as SOURCE_DATE_EPOCH says or else as the newest of them, and its
identity follows from all that is in it.
With --over codesign the chip becomes a drive whose translation layer maps only blocks, and the file system
stands on that (docs/FTL.md). All other commands find the drive by themselves; info shows its map and its channels. A
mount waits for each operation, as it does on a bare chip, however many channels there are.
With --ftl the chip carries a block device of sectors that can be overwritten (docs/FTL.md): info, fsck and dump show it,
mount does not; --profile may then be a chip of small pages too.
Nothing is changed on any failure; with --force the old file is replaced at the very end.")]
pub struct Mkfs {
    /// The image file to make, or the device of a chip (/dev/mtdN)
    pub image: PathBuf,
    /// The native capacity of an image's chip, a multiple of its erase block
    #[arg(long, value_parser = size::parse)]
    pub size: Option<u64>,
    /// The kind of chip: a built-in profile, or a file that describes one
    #[arg(long, value_parser = profile(), hide_possible_values = true, help = mkfs_profile_help())]
    pub profile: Option<Profile>,
    /// Erases that a block of a device endures natively [default: the profile's, or 100000 with one bit a cell]
    #[arg(long, value_name = "ERASES", value_parser = clap::value_parser!(u32).range(1..1 << 24))]
    pub endurance: Option<u32>,
    /// A name for people, at most 32 bytes
    #[arg(long, default_value = "", value_parser = label, conflicts_with = "ftl")]
    pub label: String,
    /// Guarantee that no block is worn out before this time is over, like 3y (with a wear window: 3y:1d)
    #[arg(long, value_name = "TIME", value_parser = lifetime, conflicts_with = "ftl")]
    pub lifetime: Option<Goal>,
    /// Fill it with what is in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "ftl")]
    pub from: Option<PathBuf>,
    /// With --from, to whom everything shall belong, instead of to whom it does
    #[arg(long, value_name = "UID:GID", value_parser = owner, requires = "from")]
    pub owner: Option<(u32, u32)>,
    /// The volume's identity [default: by chance, or with --from by what is in it]
    #[arg(long, value_name = "UUID", value_parser = uuid, conflicts_with = "ftl")]
    pub volume_id: Option<[u8; 16]>,
    /// Put a drive that maps only blocks between the file system and the chip
    #[arg(long, value_name = "DRIVE", value_parser = drive(), conflicts_with = "ftl")]
    pub over: Option<VolumeOver>,
    /// Replace an existing file; erase a chip that is not blank
    #[arg(long)]
    pub force: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub layer: Layer,
}

fn mkfs_profile_help() -> String {
    format!("{} [default: {}; of a device with more than one bit a cell none]", profile_help(), Profile::DEFAULT)
}

/// Show the structures of a volume: checkpoint, block map, tags and nodes, index.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs dump flash.img                  the newest checkpoint, and a map of all blocks
  flexfs dump flash.img --block 12       what each slot of a block holds
  flexfs dump flash.img --ino 42         where what belongs to an inode stands
  flexfs dump flash.img /dir/file        how a file's pages are spread over the channels of the chip
  flexfs dump flash.img --index --json | jq 'select(.kind == \"data\")'
  flexfs dump ftl.img --block 12         the tag of each page, with mkfs --ftl

With --json the overview is one object, everything else an object a line. docs/FORMAT.md says what the words
mean, docs/FTL.md those of a translation layer. Only reads. An image that is mounted is in use and refused; of one
that is served as a disk its server tells.")]
pub struct Dump {
    /// The image file
    pub image: PathBuf,
    /// Show how the pages of this file in it are spread over the channels of the chip
    #[arg(value_name = "FILE", conflicts_with_all = ["block", "index", "ino"])]
    pub path: Option<OsString>,
    /// Show the slots of this block
    #[arg(long, value_name = "NUMBER", value_parser = number::<u32>, conflicts_with_all = ["index", "ino"])]
    pub block: Option<u32>,
    /// Show the whole index
    #[arg(long)]
    pub index: bool,
    /// Show the entries of the index that belong to this inode
    #[arg(long, value_name = "NUMBER", value_parser = number::<u64>)]
    pub ino: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Show what an image holds: capacity, regions, wear, the state it was left in.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs info flash.img
  flexfs info flash.img --json | jq .wear.max
  flexfs info ftl.img  scheme, sectors and blocks, with mkfs --ftl

Only reads. Of an image that is mounted its server tells, to root and to whoever mounted it: the headroom, what idle
time does and did, and the operations by their causes too (`.mounted` in the JSON).")]
pub struct Info {
    #[command(flatten)]
    pub look: Look,
}

/// Check every structure of an image against every other, and repair what is damaged.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs fsck flash.img              only reads
  flexfs fsck flash.img --json | jq .findings
  flexfs fsck -p flash.img           recover after a power cut, correct counts; nothing is taken away
  flexfs fsck -y flash.img           save what can be read, even if nothing of the index is left
  flexfs fsck ftl.img                read every sector, with mkfs --ftl

Of a damaged volume the last line names the files that cannot be read whole, and says how to save the rest.
With -y, what has lost a part, or its name, goes to lost+found, where its path is kept. An index that cannot be read is
built again of all that stands on the chip; what may have been deleted goes to lost+found, too, never back into its
place. Of a translation layer -p and -y open it as its next user does, which recovers it; there is nothing else to repair.
Keep a copy of the image (cp --sparse=always): repairs are made in it. One that was interrupted can be run
again.
Exit status, as e2fsck's: 0 clean; 1 errors corrected; 4 errors left as they are; 8 could not check; 16 wrong usage.")]
pub struct Fsck {
    #[command(flatten)]
    pub look: Look,
    #[command(flatten)]
    pub repair: Repair,
}

/// What may be repaired.
#[derive(Args)]
#[group(multiple = false)]
pub struct Repair {
    /// Only read (default)
    #[arg(short = 'n', long)]
    pub no: bool,
    /// Repair what is safe to repair: recover after a power cut, correct counts
    #[arg(short = 'p', long, short_alias = 'a')]
    pub preen: bool,
    /// Repair everything: what is left of damaged files goes to lost+found
    #[arg(short = 'y', long)]
    pub yes: bool,
}

/// What is looked at as a whole, and for whom.
#[derive(Args)]
pub struct Look {
    /// The image file
    pub image: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        command().debug_assert();
    }
}
