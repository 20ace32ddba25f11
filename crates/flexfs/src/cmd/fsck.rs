//! `flexfs fsck`: checks every structure against every other, changing nothing.
//!
//! The exit status is e2fsck's: 0 clean, 4 errors left as they are; what could not be checked at all is an error
//! of the program (8). A volume too corrupt to mount counts as found corrupt.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use flexfs_core::{CheckReport, Error};
use nand::NandError;
use serde_json::json;

use crate::cli;
use crate::image::{self, Refused};
use crate::output::{self, grouped};

const ERRORS_LEFT: u8 = 4;

pub fn run(args: &cli::Fsck) -> Result<ExitCode> {
    let path = &args.image;
    let checked = match image::open_to_look(path) {
        Ok(mut fs) => fs.check(),
        Err(Refused::Volume(error)) => Err(error),
        Err(refused) => return Err(refused.into_error(path)),
    };
    let report = match checked {
        Ok(report) => report,
        Err(error @ (Error::Corrupt { .. } | Error::Nand(NandError::Uncorrectable { .. }))) => {
            CheckReport { findings: vec![error.to_string()], ..CheckReport::default() }
        }
        Err(error) => return Err(anyhow!("{}: {}", path.display(), image::explain(&error, path))),
    };
    let clean = report.findings.is_empty();
    if args.json {
        let object = json!({
            "image": path,
            "clean": clean,
            "files": report.files,
            "directories": report.directories,
            "chunks": report.chunks,
            "index_pages": report.index_pages,
            "findings": report.findings,
        });
        output::say(&object.to_string())?;
    } else {
        print(&path.display().to_string(), &report)?;
    }
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::from(ERRORS_LEFT) })
}

fn print(path: &str, report: &CheckReport) -> Result<()> {
    for finding in &report.findings {
        output::say(&format!("{path}: {finding}"))?;
    }
    let verdict = match report.findings.len() {
        0 => "clean".to_owned(),
        1 => "1 error, left as it is".to_owned(),
        many => format!("{} errors, left as they are", grouped(many as u64)),
    };
    output::say(&format!(
        "{path}: {verdict}: {} files, {} directories, {} chunks, {} index pages",
        grouped(report.files),
        grouped(report.directories),
        grouped(report.chunks),
        grouped(report.index_pages),
    ))
}
