//! `flexfs mkfs --ftl`: a new chip in an image file, with a translation layer on it.
//!
//! Invariant: every sector of what is made reads as zeros.

use std::process::ExitCode;

use anyhow::Result;
use emulator::Profile;
use ftl::{BlockDevice, Scheme};
use serde_json::json;

use crate::cmd::new_layer::{self, NewLayer};
use crate::new_image::{self, NewChip};
use crate::output::grouped;
use crate::translation::described;
use crate::{cli, output, size};

pub fn run(args: &cli::Mkfs, size: u64, scheme: Scheme) -> Result<ExitCode> {
    let image = &args.image;
    let number = new_layer::volume_number()?;
    let layer = NewLayer { image, size_option: "--size", scheme, asked: &args.layer.counts, number };
    let profile = layer.profile(args.profile.as_ref().unwrap_or(&Profile::default()), size)?;
    let new = NewChip { replace: args.force, ..NewChip::unique(&profile)? };
    let (sectors, sector_bytes) = new_image::make_with(image, &new, |chip, _| {
        let device = layer.on_chip(chip)?;
        let made = (device.sectors(), device.sector_bytes() as u64);
        Ok((device.into_chip(), made))
    })?;
    report(args, &profile, scheme, number, (sectors, sector_bytes))
}

fn report(
    args: &cli::Mkfs,
    profile: &Profile,
    scheme: Scheme,
    volume: u32,
    (sectors, sector_bytes): (u64, u64),
) -> Result<ExitCode> {
    let (chip_bytes, bytes) = (profile.capacity_bytes(), sectors * sector_bytes);
    if args.json {
        let object = json!({
            "image": args.image,
            "profile": profile.name,
            "chip_bytes": chip_bytes,
            "block_bytes": profile.block_bytes(),
            "scheme": scheme.name(),
            "volume": volume,
            "sectors": sectors,
            "sector_bytes": sector_bytes,
            "capacity_bytes": bytes,
        });
        output::say(&object.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    output::say(&format!(
        "{}: a {} chip ({}), {}, {} sectors of {} ({})",
        args.image.display(),
        size::human(chip_bytes),
        profile.name,
        described(scheme),
        grouped(sectors),
        size::human(sector_bytes),
        size::human(bytes),
    ))?;
    Ok(ExitCode::SUCCESS)
}
