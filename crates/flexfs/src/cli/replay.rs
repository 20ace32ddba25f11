//! The words of `flexfs replay`.

use std::path::PathBuf;

use clap::Args;

/// Ask a volume again what a mount recorded, and see whether it decides the same.
#[derive(Args)]
#[command(after_help = "\
Examples:
  cp --sparse=always flash.img before.img      what the recording begins with
  flexfs mount --record-decisions busy.jsonl flash.img mnt
  flexfs replay busy.jsonl before.img          every placement and job, compared

A recording is a line of JSON for each event: when it came by the chip's clock, what was asked, and the programs
and erases that followed, each with its cause. It holds names and attributes, and not what files hold.
The image only says how the chip was; nothing is written to it.
Exit status 0: all the same; 1: not, or it cannot be replayed; 2: wrong usage.")]
pub struct Replay {
    /// The recording
    pub recording: PathBuf,
    /// A copy of the image as it was before it was mounted
    pub image: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
