//! `flexfs rm`: removes files, and directories with all in them, from an image.
//!
//! Invariant: an error too leaves the image unmounted cleanly, without all that was removed until then.

use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use anyhow::Result;

use crate::fuse::volume::now_ns;
use crate::tree::{Step, Tree, is_dir, join};
use crate::{cli, image};

pub fn run(args: &cli::Rm) -> Result<ExitCode> {
    image::change(&args.image, |fs| {
        let mut tree = Tree { fs, image: &args.image };
        args.paths.iter().try_for_each(|path| remove(&mut tree, path.as_bytes(), args.recursive))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn remove(tree: &mut Tree, path: &[u8], recursive: bool) -> Result<()> {
    let found = tree.find(path)?;
    let Some((parent, name)) = found.entry else {
        return Err(tree.error(path, "only what has a name in a directory can be removed"));
    };
    if !is_dir(&found.attr) {
        let removed = tree.fs.unlink(parent, &name, now_ns());
        return tree.told(path, removed);
    }
    if !recursive {
        return Err(tree.error(path, "a directory; -r removes it with all in it"));
    }
    tree.walk(found.attr.ino, path, &mut |tree, visited, step| {
        let removed = match step {
            Step::Enter => Ok(()),
            Step::Leaf => tree.fs.unlink(visited.parent, &visited.name, now_ns()),
            Step::Leave => tree.fs.rmdir(visited.parent, &visited.name, now_ns()),
        };
        tree.told(&join(path, &visited.path), removed)
    })?;
    let removed = tree.fs.rmdir(parent, &name, now_ns());
    tree.told(path, removed)
}
