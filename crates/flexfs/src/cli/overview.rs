//! The help of the program as a whole: its commands in groups, by what one wants to do.
//!
//! Invariant: what is said of a command is what it says of itself, and no command is left out.

use std::fmt::Write;

use clap::CommandFactory;

use super::Cli;

/// What one wants to do, and the commands for it.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Volumes", &["mkfs", "mount", "serve", "info", "top", "fsck", "dump"]),
    ("Files, without mounting", &["ls", "get", "put", "mkdir", "rm"]),
    ("Measuring", &["bench", "torture", "repro", "replay"]),
    ("This program", &["completions", "man"]),
];

/// The command line, with its help.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let longest = command.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or(0);
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, names) in GROUPS {
        // Writing to a string does not fail.
        let _ = write!(template, "\n{header}{group}:{header:#}\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(template, "  {literal}{name:longest$}{literal:#}  {about}");
        }
    }
    let _ = write!(template, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = Cli::command();
        let mut known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        grouped.sort_unstable();
        known.sort_unstable();
        assert_eq!(grouped, known);
    }
}
