//! `flexfs man`: manual pages, of the same words as the help.

use std::fs;
use std::process::ExitCode;

use anyhow::Result;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::host::At;
use crate::{cli, output};

pub fn run(args: &cli::Man) -> Result<ExitCode> {
    let mut command = cli::command().disable_help_subcommand(true);
    command.build();
    let Some(dir) = &args.dir else {
        output::say(String::from_utf8_lossy(&page(&command)?).trim_end())?;
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(dir).at(dir)?;
    for command in std::iter::once(&command).chain(command.get_subcommands()) {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let path = dir.join(format!("{name}.1"));
        fs::write(&path, page(command)?).at(&path)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn page(command: &clap::Command) -> Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(notes) = command.get_after_help() {
        notes_section(&notes.to_string()).to_writer(&mut page)?;
    }
    Ok(page)
}

/// What follows the options in the help: examples are lines to be kept as they are.
fn notes_section(notes: &str) -> Roff {
    let mut roff = Roff::new();
    let (heading, notes) = match notes.strip_prefix("Examples:\n") {
        Some(rest) => ("EXAMPLES", rest),
        None => ("NOTES", notes),
    };
    roff.control("SH", [heading]).control("nf", []);
    for line in notes.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff
}
