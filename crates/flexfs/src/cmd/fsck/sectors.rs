//! `flexfs fsck` of a translation layer: every sector is read, every block is held against its use.
//!
//! There is nothing to build again from: what an opening recovers is all that can be. Invariant: a translation layer that
//! cannot be opened counts as damaged, a chip that cannot be read as not checked.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use ftl::{BlockDevice, BlockUse, Counts, Device, Options, PageState};
use nand::Nand;
use serde_json::{Value, json};

use super::{ERRORS_LEFT, summary};
use crate::image::{self, Content};
use crate::output::{self, grouped};
use crate::translation::FtlImage;
use crate::{cli, size};

/// The findings of a check.
struct SectorsVerdict {
    /// Sectors of the device, where it can be opened.
    sectors: Option<u64>,
    findings: Vec<String>,
    /// Pages of blocks in use: a power cut leaves some, and damage cannot be told from that.
    unreadable_pages: u64,
}

pub fn run(mut layer: FtlImage, args: &cli::Fsck) -> Result<ExitCode> {
    let path = &args.look.image;
    let mut written = None;
    if args.repair.preen || args.repair.yes {
        // Two do not have the image at once.
        drop(layer);
        written = recover(path)?;
        layer = probe_again(path)?;
    }
    let verdict = check(&mut layer, path)?;
    if args.look.json {
        output::say(&to_json(path, &layer, &verdict, written.as_ref()).to_string())?;
    } else {
        print(path, &layer, &verdict, written.as_ref())?;
    }
    Ok(if verdict.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(ERRORS_LEFT) })
}

fn to_json(path: &Path, layer: &FtlImage, verdict: &SectorsVerdict, written: Option<&Counts>) -> Value {
    let opened = |written: &Counts| json!({ "kind": "opened", "programs": written.all_programs(), "erases": written.all_erases() });
    json!({
        "image": path,
        "scheme": layer.volume().scheme.name(),
        "clean": verdict.findings.is_empty(),
        "sectors": verdict.sectors,
        "findings": verdict.findings,
        "unreadable_pages": verdict.unreadable_pages,
        "repair": written.map(opened),
    })
}

fn print(path: &Path, layer: &FtlImage, verdict: &SectorsVerdict, written: Option<&Counts>) -> Result<()> {
    let (image, SectorsVerdict { sectors, findings, unreadable_pages }) = (path.display(), verdict);
    if let Some(written) = written {
        output::say(&format!(
            "{image}: opened, which undoes what a power cut left undone: {} programs, {} erases",
            grouped(written.all_programs()),
            grouped(written.all_erases())
        ))?;
    }
    findings.iter().try_for_each(|finding| output::say(&format!("{image}: {finding}")))?;
    let pages = match unreadable_pages {
        0 => None,
        1 => Some("1 page of a block in use".to_owned()),
        many => Some(format!("{} pages of blocks in use", grouped(*many))),
    };
    if let Some(pages) = pages {
        output::say(&format!(
            "{image}: {pages} cannot be read: torn by a power cut, or lost; a sector whose tag is lost reads as it was before"
        ))?;
    }
    let sectors = sectors.map_or_else(|| "no sectors".to_owned(), |count| format!("{} sectors", grouped(count)));
    output::say(&format!("{image}: {}: {}, {sectors}", summary(findings.len()), layer.described()))?;
    if findings.is_empty() { Ok(()) } else { output::say(&format!("{image}: {}", advice(layer, path))) }
}

/// Opens the translation layer in the image itself, which recovers it; what that wrote, where it could be opened.
fn recover(path: &Path) -> Result<Option<Counts>> {
    let chip = image::open_emulated(path, false)?;
    let device = match Device::open(chip, Options::default()) {
        Ok(device) => device,
        Err(error) => return found(error, path).map(|_| None),
    };
    let counts = *device.counts();
    device.into_chip().sync_image().map_err(|error| anyhow!("{error}"))?;
    Ok(Some(counts))
}

/// The same image, known to hold a translation layer.
fn probe_again(path: &Path) -> Result<FtlImage> {
    match image::probe(path)? {
        Content::Sectors(layer) => Ok(*layer),
        Content::Files(_) | Content::Unmountable(_) => {
            bail!("{}: it holds no translation layer any more", path.display())
        }
    }
}

fn check(layer: &mut FtlImage, path: &Path) -> Result<SectorsVerdict> {
    let mut device = match layer.opened() {
        Ok(device) => device,
        Err(error) => {
            let findings = vec![format!("it cannot be opened: {}", found(error, path)?)];
            return Ok(SectorsVerdict { sectors: None, findings, unreadable_pages: 0 });
        }
    };
    let failed = |error| found(error, path).map(|said| vec![said]);
    let findings = device.check().or_else(failed)?;
    let uses = device.uses().map_err(|error| anyhow!("{}: {error}", path.display()))?;
    let unreadable_pages = unreadable_pages(layer, &uses).map_err(|error| anyhow!("{}: {error}", path.display()))?;
    Ok(SectorsVerdict { sectors: Some(device.sectors()), findings, unreadable_pages })
}

fn unreadable_pages(layer: &mut FtlImage, uses: &[BlockUse]) -> Result<u64, ftl::Error> {
    let mut count = 0;
    let in_use = |used: &BlockUse| !matches!(used, BlockUse::Free | BlockUse::Bad | BlockUse::Unknown);
    for (block, _) in (0..).zip(uses).filter(|(_, used)| in_use(used)) {
        layer.pages(block, &mut |_, state| {
            count += u64::from(state == PageState::Unreadable);
            true
        })?;
    }
    Ok(count)
}

/// An error that ended a step, if it is what the check looks for.
fn found(error: ftl::Error, path: &Path) -> Result<String> {
    match error {
        ftl::Error::Nand(error) => Err(anyhow!("{}: {error}", path.display())),
        error => Ok(error.to_string()),
    }
}

/// What can be done.
fn advice(layer: &FtlImage, path: &Path) -> String {
    let (chip, scheme) = (layer.chip().profile(), layer.volume().scheme);
    let size = size::typed(layer.chip().geometry().native_bytes());
    format!(
        "a sector that cannot be read is lost until it is written again; or make the image anew with `flexfs mkfs {} \
         --size {size} --profile {} --ftl {scheme} --force` (all on it is lost)",
        path.display(),
        chip.name
    )
}
