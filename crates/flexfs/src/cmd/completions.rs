//! `flexfs completions`: a script for a shell.

use std::process::ExitCode;

use anyhow::Result;

use crate::{cli, output};

pub fn run(args: &cli::Completions) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "flexfs", &mut script);
    output::say(String::from_utf8_lossy(&script).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
