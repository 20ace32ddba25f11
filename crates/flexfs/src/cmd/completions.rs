//! `flexfs completions`: a script for a shell.

use std::process::ExitCode;

use anyhow::Result;
use clap_complete::Shell;

use crate::{cli, output};

pub fn run(args: &cli::Completions) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "flexfs", &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = if args.shell == Shell::Bash { complete_lists(&script) } else { script.into_owned() };
    output::say(script.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// Has bash complete the last of several mount options with commas between them, not only one by itself.
fn complete_lists(script: &str) -> String {
    let options = cli::Settings::names().join(" ");
    let alone = format!("compgen -W \"{options}\" -- \"${{cur}}\"");
    let last = format!("compgen -P \"${{cur%\"${{cur##*,}}\"}}\" -W \"{options}\" -- \"${{cur##*,}}\"");
    script.replace(&alone, &last)
}
