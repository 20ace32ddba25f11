//! The commands about the program itself.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Print what lets a shell complete commands and options.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs completions bash > /usr/share/bash-completion/completions/flexfs
  flexfs completions zsh > ~/.zfunc/_flexfs
  flexfs completions fish > ~/.config/fish/completions/flexfs.fish")]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}

/// Print the manual page, or write those of all commands.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs man | man -l -
  flexfs man --dir /usr/local/share/man/man1    then `man flexfs-mount`")]
pub struct Man {
    /// Write flexfs.1 and a page for each command into this directory
    #[arg(long)]
    pub dir: Option<PathBuf>,
}
