//! The commands that reach files inside an image without mounting it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// List what is in an image, without mounting it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs ls flash.img                  the root directory
  flexfs ls -l flash.img /etc          with permissions, owners, sizes, times in UTC
  flexfs ls -R flash.img               all paths, below each other
  flexfs ls -R --json flash.img | jq '.entries[].path'

Paths inside an image start at its root; symbolic links are not followed. Only reads. An image that is
mounted is in use and refused.")]
pub struct Ls {
    /// The image file
    pub image: PathBuf,
    /// The directory or file to list
    #[arg(default_value = "/")]
    pub path: OsString,
    /// Show what each is, not just its name
    #[arg(short, long)]
    pub long: bool,
    /// List what is in directories below, too
    #[arg(short = 'R', long)]
    pub recursive: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Copy a file or a directory out of an image, without mounting it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs get flash.img /etc/hosts         to ./hosts
  flexfs get flash.img /etc backup        the directory, to backup/etc, or to backup if there is none
  flexfs get flash.img / backup           all there is
  flexfs get flash.img /var/log.txt - | less

Permissions, times, links, holes and extended attributes are kept; owners and devices too, for root.
Existing files are replaced, but for chip images, existing directories merged with. What is corrupt is told and
left out.
Exit status 0: all is copied; 1: not all.")]
pub struct Get {
    /// The image file
    pub image: PathBuf,
    /// What to copy, a path inside the image
    pub path: OsString,
    /// Where to: into this directory, or under this name; - for standard output
    #[arg(default_value = ".")]
    pub dest: PathBuf,
}

/// Copy files and directories into an image, without mounting it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs put flash.img notes.txt /          as /notes.txt
  flexfs put flash.img notes.txt /todo      as /todo, or into it if it is a directory
  flexfs mkdir flash.img /home
  flexfs put flash.img photos music /home   directories, with all in them, into a directory that is there
  flexfs put flash.img tree/. /             what is in tree

Permissions, owners, times, links, devices and extended attributes are kept; zeros become holes.
Existing files are replaced, existing directories merged with.
Ctrl-C leaves out the file under way and what comes after it, and a clean image.")]
pub struct Put {
    /// The image file
    pub image: PathBuf,
    /// What to copy
    #[arg(required = true, value_name = "SOURCE")]
    pub sources: Vec<PathBuf>,
    /// Where to, inside the image: into this directory, or under this name
    pub dest: OsString,
}

/// Make directories in an image, without mounting it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs mkdir flash.img /etc /home
  flexfs mkdir -p flash.img /home/ann/photos   with those above it, as far as they are missing

They belong to who makes them, with the permissions that umask leaves.")]
pub struct Mkdir {
    /// The image file
    pub image: PathBuf,
    /// The directories to make, paths inside the image
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<OsString>,
    /// Make those above it too, and take what is there already
    #[arg(short, long)]
    pub parents: bool,
}

/// Remove files and directories from an image, without mounting it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs rm flash.img /notes.txt
  flexfs rm -r flash.img /home/photos /home/music

Paths inside an image start at its root; symbolic links are removed, not followed.")]
pub struct Rm {
    /// The image file
    pub image: PathBuf,
    /// What to remove, paths inside the image
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<OsString>,
    /// Remove directories, with all in them
    #[arg(short, long)]
    pub recursive: bool,
}
