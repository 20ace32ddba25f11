//! `flexfs mkfs` of a real chip: the one behind an MTD device.
//!
//! Invariant: nothing is erased before every reason to refuse has been looked for.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail, ensure};
use flexfs_core::{CellRecord, FormatOptions, Fs, spare_bytes_needed};
use mtd::{MtdNumber, Occupant, occupant_of};
use nand::{Cause, Nand};

use super::{MadeChip, report};
use crate::any_chip::{AnyChip, set_cells};
use crate::new_image::format_options;
use crate::real_cells::{USUAL_ENDURANCE, of_profile, one_bit};
use crate::{cli, image, output};

/// What Linux cannot be asked.
const UNCOVERED: &str = "Linux does not tell whether the chip's ECC covers spare bytes: where it does not, a wrong bit in a tag costs its \
                         page, which then reads as an error";

pub fn run(args: &cli::Mkfs) -> Result<ExitCode> {
    let path = args.image.as_path();
    check_options(args)?;
    check_unoccupied(path)?;
    let mut chip = image::open_chip_to_format(path)?;
    check_spare(path, &chip)?;
    let cells = told_cells(args, &mut chip)?;
    if !args.force {
        check_blank(path, &mut chip)?;
    }
    output::complain(&format!("{}: {UNCOVERED}", path.display()));
    let usual = format_options(&args.label)?;
    let volume_id = args.volume_id.unwrap_or(usual.volume_id);
    let format = FormatOptions { volume_id, goal: args.lifetime, blank: false, cells, ..usual };
    let formatted = Fs::format(&mut chip, &format);
    formatted.map_err(|error| anyhow!("{}: {}", path.display(), image::explain(&error, path)))?;
    let made = MadeChip {
        name: chip.name().to_owned(),
        bytes: chip.geometry().native_bytes(),
        block_bytes: chip.geometry().block_bytes(),
    };
    drop(chip);
    report(args, &made)
}

/// A device has its size, and is no place to try translation layers on.
fn check_options(args: &cli::Mkfs) -> Result<()> {
    let path = args.image.display();
    if args.layer.ftl.is_some() {
        bail!("{path}: --ftl makes images; leave it out, or name an image file");
    }
    if args.over.is_some() {
        bail!("{path}: --over makes images; leave it out, or name an image file");
    }
    if args.size.is_some() {
        bail!("{path}: a device has a size of its own; leave out --size");
    }
    if args.from.is_some() {
        bail!("{path}: --from makes images; mount the device and copy the files");
    }
    Ok(())
}

/// What is told of the chip's cells; the chip is driven by it from now on.
fn told_cells(args: &cli::Mkfs, chip: &mut AnyChip) -> Result<CellRecord> {
    let path = args.image.display();
    let Some(real) = chip.real_mut() else { bail!("{path}: no device") };
    let mut cells = match (&args.profile, real.is_multi_level()) {
        (None, false) => one_bit(USUAL_ENDURANCE),
        (None, true) => bail!(
            "{path}: its cells hold more than one bit, and Linux does not tell how they are programmed; name a --profile \
             with bits_per_cell, pairing, pairing_stride and endurance (docs/MTD.md)"
        ),
        (Some(profile), multi_level) => {
            let cells = of_profile(profile).map_err(|why| anyhow!("{path}: {}: {why}", profile.name))?;
            ensure!(
                (cells.bits_per_cell > 1) == multi_level,
                "{path}: the driver says {} a cell, the profile {} says {}",
                if multi_level { "more than one bit" } else { "one bit" },
                profile.name,
                cells.bits_per_cell
            );
            cells
        }
    };
    if let Some(erases) = args.endurance {
        let [slc, native] = &mut cells.endurance;
        (*slc, *native) = ((*slc).max(erases), erases);
        if cells.bits_per_cell == 1 {
            *slc = erases;
        }
    }
    set_cells(real, &cells)?;
    Ok(cells)
}

/// The kernel lets a device be erased under whoever uses it by another name.
fn check_unoccupied(path: &Path) -> Result<()> {
    let shown = path.display();
    match MtdNumber::of(path).and_then(|device| occupant_of(device.number)) {
        None => Ok(()),
        Some(Occupant::Ubi(ubi)) => {
            bail!("{shown}: in use: UBI is attached to it as {ubi}; `ubidetach -p {shown}` first")
        }
        Some(Occupant::Mounted { kind, at }) => {
            bail!("{shown}: in use: a file system ({kind}) on it is mounted on {at}; `umount {at}` first")
        }
    }
}

fn check_spare(path: &Path, chip: &AnyChip) -> Result<()> {
    let geometry = chip.geometry();
    let needed = spare_bytes_needed(geometry.page_bytes);
    if geometry.spare_bytes >= needed {
        return Ok(());
    }
    bail!(
        "{}: its driver leaves {} spare bytes free on each page of {} bytes; FlexFS needs {needed} there",
        path.display(),
        geometry.spare_bytes,
        geometry.page_bytes
    )
}

/// Whoever fills a block begins with its first page.
fn check_blank(path: &Path, chip: &mut AnyChip) -> Result<()> {
    let geometry = chip.geometry().clone();
    let (mut data, mut spare) = (vec![0; geometry.page_bytes as usize], vec![0; geometry.spare_bytes as usize]);
    for block in (0..geometry.blocks).filter(|&block| !chip.is_bad(block)).collect::<Vec<_>>() {
        let read = chip.read(block, 0, 0, &mut data, &mut spare, Cause::Metadata);
        if read.is_err() || data.iter().chain(&spare).any(|&byte| byte != 0xFF) {
            bail!(
                "{}: not blank: block {block} holds something; erase the chip for a FlexFS with --force (all on it is lost)",
                path.display()
            );
        }
    }
    Ok(())
}
