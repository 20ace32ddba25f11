//! `flexfs mkfs`: a new chip in an image file, formatted.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use serde_json::json;

use crate::{cli, image, output, size};

pub fn run(args: &cli::Mkfs) -> Result<ExitCode> {
    let path = args.image.display();
    let profile = args.profile.with_capacity(args.size).map_err(|error| anyhow!("{path}: {error}"))?;
    image::make(&args.image, &profile, &args.label, args.force)?;
    let mut fs = image::open_to_look(&args.image).map_err(|refused| refused.into_error(&args.image))?;
    let info = fs.info().map_err(|error| anyhow!("{path}: {}", image::explain(&error, &args.image)))?;
    if args.json {
        let object = json!({
            "image": args.image,
            "profile": profile.name,
            "chip_bytes": profile.capacity_bytes(),
            "block_bytes": profile.block_bytes(),
            "capacity_bytes": info.capacity_bytes,
            "volume_id": super::info::volume_id(&info.volume_id),
            "label": info.label,
            "version": info.version,
        });
        output::say(&object.to_string())?;
    } else {
        let (chip, usable) = (size::human(profile.capacity_bytes()), size::human(info.capacity_bytes));
        output::say(&format!("{path}: a {chip} chip ({}), formatted, {usable} for files", profile.name))?;
    }
    Ok(ExitCode::SUCCESS)
}
