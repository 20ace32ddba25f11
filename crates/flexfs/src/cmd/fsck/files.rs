//! `flexfs fsck` of a file system: every structure is held against every other.
//!
//! Invariant: a volume too corrupt to mount counts as found corrupt, a chip that cannot be read as not checked.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use emulator::Profile;
use flexfs_core::{CheckReport, Error, Fs};
use nand::{Nand, NandError};
use serde_json::{Value, json};

use super::repair::{self, Repaired};
use super::{ERRORS_CORRECTED, ERRORS_LEFT, summary};
use crate::any_chip::AnyChip;
use crate::image::{self, Content};
use crate::output::{self, grouped};
use crate::tree::{Tree, damage, shown};
use crate::{cli, size};

/// Lost files that are named; of more there is their number.
const NAMED_MAX: usize = 10;

/// The findings of a check, and their meaning for the owner of the volume.
struct FilesVerdict {
    report: CheckReport,
    /// What cannot be read; `None` if the check could read nothing.
    lost: Option<Vec<String>>,
    /// How a new volume of the kind is made.
    anew: String,
}

/// Checks the file system in an image that was probed, after the repairs that were asked for.
pub fn run(mut content: Content, args: &cli::Fsck) -> Result<ExitCode> {
    let path = &args.look.image;
    let mut repaired = None;
    if args.repair.preen || args.repair.yes {
        // Two do not have the image at once.
        drop(content);
        repaired = Some(repair::repair(path, args.repair.yes)?);
        content = image::probe(path)?;
    }
    let verdict = verdict(content, path)?;
    if args.look.json {
        output::say(&to_json(path, &verdict, repaired.as_ref()).to_string())?;
    } else {
        for line in repaired.iter().flat_map(Repaired::lines) {
            output::say(&format!("{}: {line}", path.display()))?;
        }
        print(&path.display().to_string(), &verdict)?;
    }
    Ok(match (verdict.report.findings.is_empty(), repaired.is_some_and(|repaired| repaired.corrected())) {
        (true, false) => ExitCode::SUCCESS,
        (true, true) => ExitCode::from(ERRORS_CORRECTED),
        (false, _) => ExitCode::from(ERRORS_LEFT),
    })
}

fn verdict(content: Content, path: &Path) -> Result<FilesVerdict> {
    match content {
        Content::Unmountable(error @ Error::NotFlexfs(_)) => {
            let path = path.display();
            Err(anyhow!(
                "{path}: {error}; if there was a volume on it, `flexfs fsck -y {path}` builds it again of whatever is \
                 left"
            ))
        }
        Content::Unmountable(error) => {
            let report = found_corrupt(error, path)?;
            Ok(FilesVerdict { report, lost: None, anew: String::new() })
        }
        content => check(&mut content.into_files(path)?, path),
    }
}

fn to_json(path: &Path, verdict: &FilesVerdict, repaired: Option<&Repaired>) -> Value {
    let report = &verdict.report;
    json!({
        "image": path,
        "clean": report.findings.is_empty(),
        "files": report.files,
        "directories": report.directories,
        "chunks": report.chunks,
        "index_pages": report.index_pages,
        "findings": report.findings,
        "lost": verdict.lost,
        "repair": repaired.map(Repaired::to_json),
    })
}

fn check(fs: &mut Fs<AnyChip>, path: &Path) -> Result<FilesVerdict> {
    let report = match fs.check() {
        Ok(report) => report,
        Err(error) => found_corrupt(error, path)?,
    };
    let anew = how_to_make_anew(fs.chip(), path);
    let losses = match (report.findings.is_empty(), report.files + report.directories) {
        (true, _) => Some(Vec::new()),
        (false, 0) => None,
        (false, _) => Some(damage::losses(&mut Tree { fs, image: path })?),
    };
    let lost = losses.map(|losses| losses.iter().map(|path| shown(path)).collect());
    Ok(FilesVerdict { report, lost, anew })
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

fn print(path: &str, verdict: &FilesVerdict) -> Result<()> {
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

/// What is lost, and what can be done.
fn advice(path: &str, verdict: &FilesVerdict) -> String {
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
    format!(
        "{what} out with `flexfs get {path} / DIR`, {}; or let `flexfs fsck -y {path}` put what is left of them into \
         lost+found",
        verdict.anew
    )
}

/// How a new volume is made for the files of one on this chip.
fn how_to_make_anew(chip: &AnyChip, path: &Path) -> String {
    let Some(emulated) = chip.emulated() else {
        return format!("format the chip again with `flexfs mkfs --force {}`", path.display());
    };
    let kind = emulated.profile().name.as_str();
    let kind = if kind == Profile::DEFAULT { String::new() } else { format!(" --profile {kind}") };
    let size = size::typed(emulated.geometry().native_bytes());
    let over = if chip.drive().is_some() { " --over codesign" } else { "" };
    format!("make a new image with `flexfs mkfs NEW --size {size}{kind}{over} --from DIR`")
}
