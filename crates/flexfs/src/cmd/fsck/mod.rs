//! `flexfs fsck`: checks the file system or the translation layer in an image, after the repairs that were asked for.
//!
//! The exit status is e2fsck's: 0 clean, 1 errors corrected, 4 errors left as they are; an image that could not be
//! checked at all is an error of the program (8). Invariant: of a damaged volume the last line tells the loss and an
//! action.

mod files;
mod repair;
mod sectors;

use std::process::ExitCode;

use anyhow::Result;

use crate::cli;
use crate::image::{self, Content};
use crate::output::grouped;

const ERRORS_CORRECTED: u8 = 1;
const ERRORS_LEFT: u8 = 4;

pub fn run(args: &cli::Fsck) -> Result<ExitCode> {
    match image::probe(&args.look.image)? {
        Content::Sectors(layer) => sectors::run(*layer, args),
        content => files::run(content, args),
    }
}

/// The findings of a check in a few words.
fn summary(findings: usize) -> String {
    match findings {
        0 => "clean".to_owned(),
        1 => "1 error, left as it is".to_owned(),
        many => format!("{} errors, left as they are", grouped(many as u64)),
    }
}
