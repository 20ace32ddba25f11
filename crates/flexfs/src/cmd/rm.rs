//! `flexfs rm`: removes files, and directories with all in them, from an image.
//!
//! Invariants: what cannot be found or be removed at all is told before anything is; a later error too leaves the image
//! unmounted cleanly.

use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use anyhow::Result;

use crate::clock::now_ns;
use crate::interrupt::Interrupt;
use crate::tree::{Step, Tree, is_dir, join, split};
use crate::{cli, image};

pub fn run(args: &cli::Rm) -> Result<ExitCode> {
    let interrupt = Interrupt::watch()?;
    image::change(&args.image, &interrupt, |fs| {
        let mut tree = Tree { fs, image: &args.image };
        for path in &args.paths {
            check(&mut tree, path.as_bytes(), args.recursive)?;
        }
        args.paths.iter().try_for_each(|path| remove(&mut tree, path.as_bytes(), &interrupt))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Whether there is something at `path` that can be removed.
fn check(tree: &mut Tree, path: &[u8], recursive: bool) -> Result<()> {
    let found = tree.find(path)?;
    if found.entry.is_none() || matches!(split(path).1, b"." | b"..") {
        return Err(tree.error(path, "only what has a name in a directory can be removed; name what is in it"));
    }
    if is_dir(&found.attr) && !recursive {
        return Err(tree.error(path, "a directory; -r removes it with all in it"));
    }
    Ok(())
}

fn remove(tree: &mut Tree, path: &[u8], interrupt: &Interrupt) -> Result<()> {
    let found = tree.find(path)?;
    let Some((parent, name)) = found.entry else { return Ok(()) };
    if !is_dir(&found.attr) {
        let removed = tree.fs.unlink(parent, &name, now_ns());
        return tree.told(path, removed);
    }
    tree.walk(found.attr.ino, path, &mut |tree, step| {
        interrupt.check()?;
        let (visited, removed) = match step {
            Step::Enter(_) => return Ok(()),
            Step::Leaf(visited) => (visited, tree.fs.unlink(visited.parent, &visited.name, now_ns())),
            Step::Leave(visited) => (visited, tree.fs.rmdir(visited.parent, &visited.name, now_ns())),
            Step::Lost(_, error) => return Err(error),
        };
        tree.told(&join(path, &visited.path), removed)
    })?;
    let removed = tree.fs.rmdir(parent, &name, now_ns());
    tree.told(path, removed)
}
