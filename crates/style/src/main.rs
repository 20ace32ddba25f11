//! Measures how the project's own source is written, and refuses a change that makes a figure worse.
//!
//! `source` reads files and leaves tests out. `names`, `words` and `operations` measure; `ratchet` compares the figures
//! with `suites/style.toml`. `circles` draws the imports between the files of a crate. Invariant: the source is only read;
//! `ratchet` alone writes, and only its own file.

mod circles;
mod names;
mod operations;
mod ratchet;
mod source;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::ratchet::Figures;
use crate::source::Workspace;

/// Measure how the project's own source is written.
#[derive(Parser)]
struct Arguments {
    /// The checkout to measure
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    root: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare names, comments and sizes of types with the figures of suites/style.toml
    Words {
        /// Write today's figures into the file
        #[arg(long)]
        write: bool,
        /// Print every name that counts
        #[arg(long)]
        list: bool,
    },
    /// Print every circle of files that import each other
    Circles,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("style: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs a command. Whether everything is as it should be.
fn run(arguments: &Arguments) -> Result<bool> {
    let workspace = Workspace::read(&arguments.root)?;
    match arguments.command {
        Command::Words { write, list } => {
            let figures = Figures::of(&workspace);
            if list {
                figures.list(&workspace);
            }
            let path = arguments.root.join(ratchet::FILE);
            if write {
                figures.write(&path)?;
                return Ok(true);
            }
            let breaches = figures.breaches(&Figures::read(&path)?);
            breaches.iter().for_each(|breach| println!("{breach}"));
            if breaches.is_empty() {
                println!("style: {figures}");
            }
            Ok(breaches.is_empty())
        }
        Command::Circles => {
            let circles = circles::find(&workspace);
            circles.iter().for_each(|circle| println!("{circle}"));
            if circles.is_empty() {
                println!("shape: no circle of files in {} crates", workspace.crates().len());
            }
            Ok(circles.is_empty())
        }
    }
}
