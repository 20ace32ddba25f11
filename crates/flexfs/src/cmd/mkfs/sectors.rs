//! `flexfs mkfs --ftl`: a new chip in an image file, with a translation layer on it.
//!
//! Invariant: every sector of what is made reads as zeros.

use std::process::ExitCode;

use anyhow::{Result, anyhow, bail, ensure};
use emulator::{Chip, Profile};
use ftl::{BlockDevice, Device, Format, Options, Scheme};
use nand::Nand;
use serde_json::json;

use crate::new_image::{self, NewChip};
use crate::output::grouped;
use crate::translation::described;
use crate::{chips, cli, output, size};

pub fn run(args: &cli::Mkfs, size: u64, scheme: Scheme) -> Result<ExitCode> {
    let path = args.image.display();
    let profile = chips::fitted(&args.profile.clone().unwrap_or_default(), size, "--size")
        .map_err(|why| anyhow!("{path}: {why}"))?;
    let new = NewChip { replace: args.force, ..NewChip::unique(&profile)? };
    let volume = u32::from_le_bytes(new_image::by_chance()?);
    let (sectors, sector_bytes) = new_image::make_with(&args.image, &new, |chip, _| {
        let told = |error: ftl::Error| anyhow!("{path}: {error}; {}", remedy(&args.layer));
        let format = format(args, &chip, Format::usual(&chip, scheme, volume).map_err(told)?, scheme)?;
        let device = Device::format(chip, scheme, &format, Options::default()).map_err(told)?;
        let made = (device.sectors(), device.sector_bytes() as u64);
        Ok((device.into_chip(), made))
    })?;
    report(args, &profile, scheme, volume, (sectors, sector_bytes))
}

/// The usual format, changed as was asked for.
fn format(args: &cli::Mkfs, chip: &Chip, usual: Format, scheme: Scheme) -> Result<Format> {
    let (path, layer, blocks) = (args.image.display(), &args.layer, chip.geometry().blocks);
    let has_logs = matches!(scheme, Scheme::LogBlock | Scheme::LogBlockScanned | Scheme::Fast);
    let asked = [
        ("--extra-blocks", layer.extra_blocks, true),
        ("--logs", layer.logs, has_logs),
        ("--map-blocks", layer.map_blocks, scheme == Scheme::LogBlock),
    ];
    for (option, count, applies) in asked {
        let Some(count) = count else { continue };
        if !applies {
            bail!("{path}: {} has none of those; leave out {option}", described(scheme));
        }
        ensure!(count < blocks, "{path}: {option} {count} is too many: the chip has {} blocks", grouped(blocks.into()));
    }
    Ok(Format {
        extra_blocks: layer.extra_blocks.unwrap_or(usual.extra_blocks),
        logs: layer.logs.unwrap_or(usual.logs),
        map_blocks: layer.map_blocks.unwrap_or(usual.map_blocks),
        ..usual
    })
}

/// What can be done about a translation layer that does not fit its chip.
fn remedy(layer: &cli::Layer) -> &'static str {
    match (layer.extra_blocks, layer.logs, layer.map_blocks) {
        (None, None, None) => "take another --size or another --profile",
        _ => "choose other --extra-blocks, --logs and --map-blocks, or leave them out",
    }
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
