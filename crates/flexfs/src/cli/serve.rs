//! The words of `flexfs serve`.

use std::path::PathBuf;

use card::ListenAddress;
use clap::Args;
use emulator::Profile;

use super::Layer;
use super::values::{profile, profile_help};
use crate::chips;
use crate::size;

/// Sectors that may wait in a write cache.
const CACHE_SECTORS_MAX: i64 = 1 << 20;

/// Give the sectors of a translation layer to hosts, as a disk over NBD.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs serve card.img --create 16MiB --ftl log-block   until Ctrl-C
  flexfs serve card.img                        again, on localhost:10809
  flexfs serve card.img --listen unix:card.sock
  flexfs serve --memory --create 64MiB --ftl dftl    gone afterwards
  flexfs serve card.img --record busy.trace          for flexfs replay

  qemu-system-x86_64 -drive file=nbd://localhost,format=raw,if=virtio ...
  nbd-client localhost /dev/nbd0
  mkdir d; nbdfuse d/card nbd://localhost & mount -o loop d/card mnt

Several clients may use the disk at once. An answer means that the data is durable; with --cache it is once a flush was
answered, or a write that asked for it (FUA). A flush also makes the host write the image to its disk. While clients are
away the card merges and erases ahead of need, as far as the last idle times let idle time be foreseen.
info, dump and top of the image tell what goes on. There is no authentication: whoever reaches the address reads and
writes the disk. Ctrl-C and SIGTERM end it; requests that came before are answered. docs/CARD.md has more.")]
pub struct Serve {
    /// The image file of a translation layer; not needed with --memory and --create
    #[arg(required_unless_present_all = ["memory", "create"])]
    pub image: Option<PathBuf>,
    /// Where to listen: unix:PATH, HOST:PORT, or HOST
    #[arg(long, value_name = "ADDRESS", default_value_t = ListenAddress::default())]
    pub listen: ListenAddress,
    /// Make the image first, with a chip of this size; needs --ftl
    #[arg(long, value_name = "SIZE", value_parser = size::parse, requires = "ftl")]
    pub create: Option<u64>,
    /// The kind of chip to make: a built-in profile, or a file that describes one
    #[arg(long, value_parser = profile(), hide_possible_values = true, requires = "create", help = chip_help())]
    pub profile: Option<Profile>,
    /// Keep everything that is written in memory; the image stays as it is
    #[arg(long)]
    pub memory: bool,
    /// Let clients only read; the image stays as it is
    #[arg(long, conflicts_with = "create")]
    pub read_only: bool,
    /// Let so many sectors wait in a write cache
    #[arg(long, value_name = "SECTORS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=CACHE_SECTORS_MAX))]
    pub cache: u32,
    /// Do nothing while clients are away
    #[arg(long)]
    pub no_idle_merges: bool,
    /// Write each request down in this file, for replay
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    #[command(flatten)]
    pub layer: Layer,
}

fn chip_help() -> String {
    format!("{} [default: {}]", profile_help(), chips::OF_LAYERS)
}
