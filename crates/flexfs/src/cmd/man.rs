//! `flexfs man`: manual pages, of the same words as the help.

use std::fs;
use std::process::ExitCode;

use anyhow::Result;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::destination::Destinations;
use crate::host::At;
use crate::{cli, output};

/// The longest line that a page of 80 columns shows as it is.
const LINE_MAX: usize = 73;

/// What a line begins with that goes on with the meaning of the word above.
const CONTINUED: &str = "      ";

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
        Destinations::default().write(&path, &page(command)?)?;
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
        notes_sections(&notes.to_string()).to_writer(&mut page)?;
    }
    Ok(page)
}

/// What follows the options in the help: examples, then notes.
fn notes_sections(text: &str) -> Roff {
    let mut roff = Roff::new();
    let (examples, notes) = text.split_once("\n\n").unwrap_or((text, ""));
    roff.control("SH", ["EXAMPLES"]).control("nf", []);
    let examples: Vec<&str> = examples.lines().filter(|line| line.starts_with(' ')).collect();
    let fit = examples.iter().all(|line| line.len() <= LINE_MAX);
    examples.iter().for_each(|line| example(&mut roff, line, fit));
    roff.control("fi", []);
    if !notes.is_empty() {
        roff.control("SH", ["NOTES"]);
        notes.lines().for_each(|line| note(&mut roff, line));
    }
    roff
}

/// A line to be kept as it is; where not all fit a page, what it does stands below it.
fn example(roff: &mut Roff, line: &str, fit: bool) {
    let (command, does) = explained(line);
    if fit || does.is_empty() {
        roff.text([roman(line)]);
    } else {
        roff.text([roman(format!("  {command}"))]).text([roman(format!("      {does}"))]);
    }
}

/// A line of text, to be filled: a paragraph's, or a word and what it means.
fn note(roff: &mut Roff, line: &str) {
    let (word, means) = explained(line);
    if line.is_empty() {
        roff.control("PP", []);
    } else if line.starts_with(CONTINUED) || !line.starts_with(' ') {
        roff.text([roman(line.trim_start())]);
    } else {
        roff.control("TP", []).text([bold(word)]).text([roman(means)]);
    }
}

/// What stands in an indented line, and what is said of it after a gap.
fn explained(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    line.split_once("  ").map_or((line, ""), |(said, means)| (said, means.trim_start()))
}
