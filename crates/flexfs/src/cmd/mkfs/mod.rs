//! `flexfs mkfs`: a new chip in an image file, formatted, and filled if so asked; with `--ftl`, by `sectors`; a real chip, by
//! `device`.
//!
//! Invariant: what `--from` makes depends on the tree, the options and `SOURCE_DATE_EPOCH` alone.

mod device;
mod sectors;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail, ensure};
use emulator::Profile;
use flexfs_core::{FormatOptions, ROOT_INO};
use serde_json::json;
use sha2::{Digest, Sha256};
use torture::crash::VolumeOver;

use crate::any_chip::is_device;
use crate::host::At;
use crate::interrupt::Interrupt;
use crate::new_image::{self, NewChip, NewImage};
use crate::output::grouped;
use crate::tree::Tree;
use crate::tree::bring_in::{BringIn, Place, Wanted};
use crate::tree::survey::survey;
use crate::{chips, cli, image, output, progress, size};

/// What builders of reproducible things say the time is, seconds since 1970.
const EPOCH_VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// The chip that was made, or formatted.
struct MadeChip {
    name: String,
    bytes: u64,
    block_bytes: u64,
}

pub fn run(args: &cli::Mkfs) -> Result<ExitCode> {
    if is_device(&args.image) {
        return device::run(args);
    }
    if args.endurance.is_some() {
        bail!("{}: --endurance is for devices; the profile of an image says it", args.image.display());
    }
    let Some(size) = args.size else {
        let path = args.image.display();
        output::complain(&format!("{path}: an image needs a size; give it one, like --size 512MiB"));
        return Ok(ExitCode::from(cli::WRONG_USAGE));
    };
    if let Some(scheme) = args.layer.ftl {
        return sectors::run(args, size, scheme);
    }
    let path = args.image.display();
    let over = args.over.unwrap_or_default();
    let profile = chips::sized_over(over, &args.profile.clone().unwrap_or_default(), size, "--size")
        .map_err(|why| anyhow!("{path}: {why}"))?;
    match &args.from {
        None => {
            let mut new = NewImage::unique(&profile, &args.label)?;
            new.chip.replace = args.force;
            new.over = over;
            new.format.volume_id = args.volume_id.unwrap_or(new.format.volume_id);
            new.format.goal = args.lifetime;
            new_image::make(&args.image, &new)?;
        }
        Some(source) => make_from(source, args, &profile)?,
    }
    let (name, bytes, block_bytes) = (profile.name.clone(), profile.capacity_bytes(), profile.block_bytes());
    report(args, &MadeChip { name, bytes, block_bytes })
}

fn make_from(source: &Path, args: &cli::Mkfs, profile: &Profile) -> Result<()> {
    let source = source.canonicalize().at(source)?;
    ensure!(source.is_dir(), "{}: not a directory; name one with what the image shall hold", source.display());
    let survey = survey(&source, args.owner)?;
    let hash = Sha256::new().chain_update(survey.hash).chain_update(profile.to_toml()?).chain_update(&args.label);
    let hash = if args.over.is_some() { hash.chain_update(VolumeOver::CODESIGN) } else { hash };
    let hash: [u8; 32] = hash.finalize().into();
    let id = uuid::Builder::from_custom_bytes(std::array::from_fn(|index| hash[index])).into_uuid().into_bytes();
    let now_ns = source_date_ns()?.unwrap_or(survey.newest_ns);
    let new = NewImage {
        chip: NewChip {
            profile,
            seed: u64::from_le_bytes(std::array::from_fn(|index| hash[16 + index])),
            replace: args.force,
        },
        over: args.over.unwrap_or_default(),
        format: FormatOptions {
            volume_id: args.volume_id.unwrap_or(id),
            label: args.label.clone(),
            blank: true,
            goal: args.lifetime,
            now_ns,
            ..FormatOptions::default()
        },
    };
    let bar = progress::bytes();
    let wanted = Wanted { owner: args.owner, timeless: true };
    let made = new_image::make_filled(&args.image, &new, |fs, file| {
        let interrupt = Interrupt::watch()?;
        let mut tree = Tree { fs, image: &args.image };
        BringIn::new(file, wanted, &bar, &interrupt)?.copy(&mut tree, &source, &Place::Directory(ROOT_INO), b"")
    });
    bar.finish_and_clear();
    made
}

/// The time that the environment says it is.
fn source_date_ns() -> Result<Option<i64>> {
    let Some(text) = std::env::var_os(EPOCH_VARIABLE) else { return Ok(None) };
    let text = text.to_string_lossy();
    let seconds: Option<i64> = text.parse().ok();
    let ns = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000));
    ns.map(Some).ok_or_else(|| anyhow!("{EPOCH_VARIABLE}: \"{text}\" is no time; set seconds since 1970"))
}

fn report(args: &cli::Mkfs, chip: &MadeChip) -> Result<ExitCode> {
    let path = args.image.display();
    let mut fs = image::probe(&args.image)?.into_files(&args.image)?;
    let info = fs.info().map_err(|error| anyhow!("{path}: {}", image::explain(&error, &args.image)))?;
    if args.json {
        let object = json!({
            "image": args.image,
            "profile": chip.name,
            "over": args.over.map(|_| VolumeOver::CODESIGN),
            "chip_bytes": chip.bytes,
            "block_bytes": chip.block_bytes,
            "capacity_bytes": info.capacity_bytes,
            "used_bytes": info.used_bytes,
            "files": info.files,
            "volume_id": crate::figures::volume_id(&info.volume_id),
            "label": info.label,
            "version": info.version,
        });
        output::say(&object.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let (size, usable) = (size::human(chip.bytes), size::human(info.capacity_bytes));
    let filled = match &args.from {
        Some(source) => {
            let (used, files) = (size::human(info.used_bytes), grouped(info.files));
            format!("; {used} used by the {files} inodes of {}", source.display())
        }
        None => String::new(),
    };
    let over = if args.over.is_some() { ", a drive that maps only blocks (codesign)" } else { "" };
    output::say(&format!("{path}: a {size} chip ({}){over}, formatted, {usable} for files{filled}", chip.name))?;
    Ok(ExitCode::SUCCESS)
}
