//! `flexfs replay`: a mount's recorded decisions, made again on a copy of its image.

use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use lab::record::{Replayed, replay};
use serde_json::json;

use crate::output::grouped;
use crate::{cli, image, output};

pub fn run(args: &cli::Replay) -> Result<ExitCode> {
    let shown = args.recording.display();
    let recording = File::open(&args.recording).map_err(|error| anyhow!("{shown}: {error}"))?;
    let chip = image::open_chip(&args.image, true)?.snapshot();
    let replayed = replay(BufReader::new(recording), chip).map_err(|error| anyhow!("{shown}: {error}"))?;
    let Replayed { events, programs, erases, jobs } = replayed;
    let told = match args.json {
        true => json!({ "events": events, "programs": programs, "erases": erases, "jobs": jobs }).to_string(),
        false => format!(
            "{} events, {} programs, {} erases, {} background steps: all as recorded",
            grouped(events),
            grouped(programs),
            grouped(erases),
            grouped(jobs)
        ),
    };
    output::say(&told)?;
    Ok(ExitCode::SUCCESS)
}
