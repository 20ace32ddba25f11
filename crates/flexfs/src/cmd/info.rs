//! `flexfs info`: what an image holds and how worn its chip is. Reads only; of an image that is mounted its server tells.

use std::process::ExitCode;

use anyhow::{Result, anyhow};

use crate::figures::Figures;
use crate::image::{self, Content};
use crate::monitor::{self, Form};
use crate::translation::FtlFigures;
use crate::{cli, output, root_damage};

pub fn run(args: &cli::Info) -> Result<ExitCode> {
    let (path, form) = (&args.look.image, if args.look.json { Form::Json } else { Form::Table });
    if let Some(answer) = monitor::ask(path, form) {
        output::say(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut fs = match image::probe(path)? {
        Content::Sectors(layer) => {
            output::say(&FtlFigures::of(&layer, path)?.shown(form))?;
            return Ok(ExitCode::SUCCESS);
        }
        content => content.into_files(path)?,
    };
    let damage = root_damage::of_directory(&mut fs);
    let figures =
        Figures::of(&mut fs, path).map_err(|error| anyhow!("{}: {}", path.display(), image::explain(&error, path)))?;
    output::say(&figures.with_damage(damage).shown(form))?;
    Ok(ExitCode::SUCCESS)
}
