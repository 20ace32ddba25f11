//! The `flexfs` program: one command a file under `cmd`, the FUSE server under `fuse`.
//!
//! The rooms, from the ground up; a room uses only rooms that come before it:
//!
//! - the host: `host`, `host_attributes`, `destination`, `clock`, `interrupt`, `program`;
//! - words for people: `output`, `progress`, `size`, `time_span`;
//! - chips: `block_kind`, `chips`, `chip_figures`, `real_cells`, `counted_chip`,
//!   `any_chip`;
//! - servers that run already: `mount_table`, `monitor`, `holder`, `waiting`;
//! - images: `foreign`, `root_damage`, `translation`, `image`, `new_image`;
//! - volumes: `health`, `figures`, `attribute_names`, `tree`, `fuse`;
//! - volumes at work: `top`, `bench_fuse`, `play_in`;
//! - the command line: `cli`;
//! - the commands: `cmd`.
//!
//! Invariant: whatever goes wrong, standard error gets one line that names what, and, where something can be done
//! about it, what; the exit status is not 0; standard output carries results and nothing else.

mod any_chip;
mod attribute_names;
mod bench_fuse;
mod block_kind;
mod chip_figures;
mod chips;
mod cli;
mod clock;
mod cmd;
mod counted_chip;
mod destination;
mod drive_figures;
mod figures;
mod foreign;
mod fuse;
mod health;
mod holder;
mod host;
mod host_attributes;
mod image;
mod interrupt;
mod monitor;
mod mount_table;
mod new_image;
mod output;
mod play_in;
mod program;
mod progress;
mod real_cells;
mod root_damage;
mod size;
mod spread_figures;
mod time_span;
mod top;
mod translation;
mod tree;
mod waiting;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{FromArgMatches, Parser};

use cli::{Cli, Command, Helper, WRONG_USAGE};
use interrupt::Interrupted;

/// Exit statuses of `fsck`, as e2fsck's.
const FSCK_OPERATIONAL: u8 = 8;
const FSCK_USAGE: u8 = 16;

/// Exit status of every other command that failed.
const FAILED: u8 = 1;

/// Exit status of a helper of mount(8) that was called wrongly.
const HELPER_USAGE: u8 = 1;

fn main() -> ExitCode {
    if let Some(mount) = fuse::handover::asked_for() {
        return fuse::handover::wait(mount.as_ref());
    }
    if std::env::args_os().next().is_some_and(|name| program::is_helper(&name)) {
        return match Helper::try_parse() {
            Ok(args) => cmd::mount::help_mount(&args),
            Err(error) => refuse(&error, program::HELPER, HELPER_USAGE),
        };
    }
    let parsed = cli::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return refuse_command(&error),
    };
    let failed = if matches!(cli.command, Command::Fsck(_)) { FSCK_OPERATIONAL } else { FAILED };
    let result = output::check_streams().and_then(|()| match &cli.command {
        Command::Mkfs(args) => cmd::mkfs::run(args),
        Command::Mount(args) => cmd::mount::run(args),
        Command::Serve(args) => cmd::serve::run(args),
        Command::Info(args) => cmd::info::run(args),
        Command::Top(args) => cmd::top::run(args),
        Command::Fsck(args) => cmd::fsck::run(args),
        Command::Dump(args) => cmd::dump::run(args),
        Command::Ls(args) => cmd::ls::run(args),
        Command::Get(args) => cmd::get::run(args),
        Command::Put(args) => cmd::put::run(args),
        Command::Mkdir(args) => cmd::mkdir::run(args),
        Command::Rm(args) => cmd::rm::run(args),
        Command::Bench(args) => cmd::bench::run(args),
        Command::Torture(args) => cmd::torture::run(args),
        Command::Repro(args) => cmd::repro::run(args),
        Command::Replay(args) => cmd::replay::run(args),
        Command::Completions(args) => cmd::completions::run(args),
        Command::Man(args) => cmd::man::run(args),
    });
    result.unwrap_or_else(|error| {
        output::complain(&format!("{error:#}"));
        ExitCode::from(error.downcast_ref().map_or(failed, Interrupted::status))
    })
}

/// Answers a command line that is no order, by what it would have been.
fn refuse_command(error: &clap::Error) -> ExitCode {
    let command = std::env::args_os().nth(1).unwrap_or_default();
    let commands = cli::command();
    let known = commands.get_subcommands().map(clap::Command::get_name).find(|&known| command == known);
    let name = known.map_or_else(|| "flexfs".to_owned(), |known| format!("flexfs {known}"));
    refuse(error, &name, if command == "fsck" { FSCK_USAGE } else { WRONG_USAGE })
}

/// Answers a command line that is no order: help as asked for, anything else in one line and with this exit status.
fn refuse(error: &clap::Error, name: &str, status: u8) -> ExitCode {
    let asked =
        [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];
    if asked.contains(&error.kind()) {
        // Where nobody reads the help there is nobody to tell.
        let _ = error.print();
        return if error.use_stderr() { ExitCode::from(status) } else { ExitCode::SUCCESS };
    }
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    // That a value could be passed in another way helps nobody: no value of ours begins with a dash.
    let said: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with("tip: to pass")).collect();
    let said = said.join(" ");
    let said = said.trim().trim_start_matches("error: ").trim_end_matches("For more information, try '--help'.").trim();
    output::complain(&format!("{said}; see `{name} --help`"));
    ExitCode::from(status)
}
