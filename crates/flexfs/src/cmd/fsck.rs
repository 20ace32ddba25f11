//! `flexfs fsck`: checks every structure against every other, after the repairs that were asked for.
//!
//! The exit status is e2fsck's: 0 clean, 1 errors corrected, 4 errors left as they are; what could not be checked at all
//! is an error of the program (8). A volume too corrupt to mount counts as found corrupt. Invariant: of a damaged volume the last line
//! says what is lost and what can be done.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use emulator::{Chip, Profile};
use flexfs_core::{CheckReport, Error, Fs};
use nand::{Nand, NandError};
use serde_json::json;

use super::repair::{self, Repaired};
use crate::image::{self, Refused};
use crate::output::{self, grouped};
use crate::tree::{Tree, damage, shown};
use crate::{cli, size, translation};

const ERRORS_CORRECTED: u8 = 1;
pub const ERRORS_LEFT: u8 = 4;

/// Lost files that are named; of more there is their number.
const NAMED_MAX: usize = 10;

/// What was found, and what it means for who owns the volume.
struct Verdict {
    report: CheckReport,
    /// What cannot be read; `None` if the check could read nothing.
    lost: Option<Vec<String>>,
    /// The kind of chip, and its capacity.
    chip: String,
    chip_bytes: u64,
}

pub fn run(args: &cli::Fsck) -> Result<ExitCode> {
    let path = &args.look.image;
    let mut looked = image::open_to_look(path);
    match looked {
        Err(Refused::Translation(held)) => return translation::check::run(*held, args),
        Err(Refused::Image(error)) => return Err(error),
        Ok(_) | Err(Refused::Volume(_)) => {}
    }
    let mut repaired = None;
    if args.repair.preen || args.repair.yes {
        // Two do not have the image at once.
        drop(looked);
        repaired = Some(repair::repair(path, args.repair.yes)?);
        looked = image::open_to_look(path);
    }
    let verdict = match looked {
        Ok(mut fs) => check(&mut fs, path)?,
        Err(Refused::Volume(error @ Error::NotFlexfs(_))) => {
            let path = path.display();
            return Err(anyhow!(
                "{path}: {error}; if there was a volume on it, `flexfs fsck -y {path}` builds it again of whatever is left"
            ));
        }
        Err(Refused::Volume(error)) => {
            Verdict { report: found_corrupt(error, path)?, lost: None, chip: String::new(), chip_bytes: 0 }
        }
        Err(refused) => return Err(refused.into_error(path)),
    };
    let report = &verdict.report;
    let clean = report.findings.is_empty();
    if args.look.json {
        let object = json!({
            "image": path,
            "clean": clean,
            "files": report.files,
            "directories": report.directories,
            "chunks": report.chunks,
            "index_pages": report.index_pages,
            "findings": report.findings,
            "lost": verdict.lost,
            "repair": repaired.as_ref().map(Repaired::to_json),
        });
        output::say(&object.to_string())?;
    } else {
        for line in repaired.iter().flat_map(Repaired::lines) {
            output::say(&format!("{}: {line}", path.display()))?;
        }
        print(&path.display().to_string(), &verdict)?;
    }
    Ok(match (clean, repaired.is_some_and(|repaired| repaired.corrected())) {
        (true, false) => ExitCode::SUCCESS,
        (true, true) => ExitCode::from(ERRORS_CORRECTED),
        (false, _) => ExitCode::from(ERRORS_LEFT),
    })
}

fn check(fs: &mut Fs<Chip>, path: &Path) -> Result<Verdict> {
    let report = match fs.check() {
        Ok(report) => report,
        Err(error) => found_corrupt(error, path)?,
    };
    let (chip, chip_bytes) = (fs.chip().profile().name.clone(), fs.chip().geometry().native_bytes());
    let losses = match (report.findings.is_empty(), report.files + report.directories) {
        (true, _) => Some(Vec::new()),
        (false, 0) => None,
        (false, _) => Some(damage::losses(&mut Tree { fs, image: path })?),
    };
    let lost = losses.map(|losses| losses.iter().map(|path| shown(path)).collect());
    Ok(Verdict { report, lost, chip, chip_bytes })
}

/// An error that ended the check, if it is what the check looks for.
fn found_corrupt(error: Error, path: &Path) -> Result<CheckReport> {
    match error {
        Error::Corrupt { .. } | Error::Nand(NandError::Uncorrectable { .. }) => {
            Ok(CheckReport { findings: vec![error.to_string()], ..CheckReport::default() })
        }
        error => Err(anyhow!("{}: {}", path.display(), image::explain(&error, path))),
    }
}

fn print(path: &str, verdict: &Verdict) -> Result<()> {
    let report = &verdict.report;
    for finding in &report.findings {
        output::say(&format!("{path}: {finding}"))?;
    }
    let summary = summary(report.findings.len());
    output::say(&format!(
        "{path}: {summary}: {} files, {} directories, {} chunks, {} index pages",
        grouped(report.files),
        grouped(report.directories),
        grouped(report.chunks),
        grouped(report.index_pages),
    ))?;
    if report.findings.is_empty() { Ok(()) } else { output::say(&format!("{path}: {}", advice(path, verdict))) }
}

/// What a check found, in a few words.
pub fn summary(findings: usize) -> String {
    match findings {
        0 => "clean".to_owned(),
        1 => "1 error, left as it is".to_owned(),
        many => format!("{} errors, left as they are", grouped(many as u64)),
    }
}

/// What is lost, and what can be done.
fn advice(path: &str, verdict: &Verdict) -> String {
    let Some(lost) = &verdict.lost else {
        return format!(
            "the check could read nothing of it; `flexfs fsck -y {path}` builds it again of whatever is left (keep a copy)"
        );
    };
    let named = lost.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let what = match lost.len() {
        0 => "all that has a name can be read; copy it".to_owned(),
        count if count > NAMED_MAX => {
            format!("cannot be read whole: {named} and {} more; copy the rest", grouped((count - NAMED_MAX) as u64))
        }
        _ => format!("cannot be read whole: {named}; copy the rest"),
    };
    let kind = if verdict.chip == Profile::DEFAULT { String::new() } else { format!(" --profile {}", verdict.chip) };
    let size = size::typed(verdict.chip_bytes);
    format!(
        "{what} out with `flexfs get {path} / DIR`, make a new image with `flexfs mkfs NEW --size {size}{kind} --from \
         DIR`; or let `flexfs fsck -y {path}` put what is left of them into lost+found"
    )
}
