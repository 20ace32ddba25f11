//! `flexfs mkdir`: makes directories in an image.
//!
//! Invariant: an error too leaves the image unmounted cleanly, with the directories that were made until then.

use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use anyhow::Result;
use flexfs_core::{Error, NewNode, ROOT_INO, kind};
use rustix::fs::Mode;

use crate::clock::now_ns;
use crate::interrupt::Interrupt;
use crate::tree::{Tree, is_dir, join};
use crate::{cli, image};

pub fn run(args: &cli::Mkdir) -> Result<ExitCode> {
    let node = new_directory();
    image::change(&args.image, &Interrupt::by_default(), |fs| {
        let mut tree = Tree { fs, image: &args.image };
        args.paths.iter().try_for_each(|path| make(&mut tree, path.as_bytes(), node, args.parents))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What a directory of the caller's is like.
fn new_directory() -> NewNode {
    // There is no way to ask for it but to set it.
    let umask = rustix::process::umask(Mode::empty());
    rustix::process::umask(umask);
    NewNode {
        mode: kind::DIR | 0o777 & !umask.as_raw_mode(),
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        rdev: 0,
    }
}

/// Makes the last directory on the way, or, with `parents`, all that are missing.
fn make(tree: &mut Tree, path: &[u8], node: NewNode, parents: bool) -> Result<()> {
    let names: Vec<&[u8]> = path.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    let (mut dir, mut way) = (ROOT_INO, Vec::new());
    if names.is_empty() && !parents {
        return Err(tree.failed(path, &Error::Exists));
    }
    for (index, &name) in names.iter().enumerate() {
        let is_last = index + 1 == names.len();
        way = join(&way, name);
        let found = match name {
            b".." => tree.fs.parent_of(dir).and_then(|parent| tree.fs.getattr(parent)),
            name => match tree.fs.lookup(dir, name) {
                Err(Error::NotFound) if is_last || parents => tree.fs.create(dir, name, node, now_ns()),
                Err(Error::NotFound) => return Err(tree.error(&way, "no such directory; -p makes it")),
                Ok(_) if is_last && !parents => {
                    return Err(tree.error(&way, "exists already; -p takes a directory that is there"));
                }
                found => found,
            },
        };
        let found = tree.told(&way, found)?;
        if !is_dir(&found) {
            return Err(tree.error(&way, "not a directory"));
        }
        dir = found.ino;
    }
    Ok(())
}
