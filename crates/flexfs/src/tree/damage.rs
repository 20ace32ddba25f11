//! The files of a damaged volume that cannot be read, by their names.
//!
//! Invariant: what cannot be read is found by reading it, as `get` does, so that what is not named here can be got.

use flexfs_core::{Error, Fs, Ino, ROOT_INO, Result, kind};

use super::{Step, Tree, Visited, join};

use crate::any_chip::AnyChip;

/// Bytes read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// The paths of what cannot be read whole, in the order of a walk.
pub fn losses(tree: &mut Tree) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut lost = Vec::new();
    if attributes(tree.fs, ROOT_INO).is_err() {
        lost.push(Vec::new());
    }
    tree.walk(ROOT_INO, b"", &mut |tree, step| {
        let path = match step {
            Step::Enter(visited) if attributes(tree.fs, visited.attr.ino).is_ok() => return Ok(()),
            Step::Leaf(visited) if contents(tree.fs, visited).is_ok() => return Ok(()),
            Step::Leave(_) => return Ok(()),
            Step::Enter(visited) | Step::Leaf(visited) => join(b"", &visited.path),
            Step::Lost(path, _) => path,
        };
        lost.push(path);
        Ok(())
    })?;
    lost.dedup();
    Ok(lost)
}

/// Reads all that belongs to what is no directory.
fn contents(fs: &mut Fs<AnyChip>, visited: &Visited) -> Result<()> {
    let ino = visited.attr.ino;
    attributes(fs, ino)?;
    match visited.attr.mode & kind::MASK {
        kind::SYMLINK => fs.readlink(ino).map(drop),
        kind::FILE => data(fs, ino),
        _ => Ok(()),
    }
}

fn attributes(fs: &mut Fs<AnyChip>, ino: Ino) -> Result<()> {
    fs.listxattr(ino)?.iter().try_for_each(|name| fs.getxattr(ino, name).map(drop))
}

fn data(fs: &mut Fs<AnyChip>, ino: Ino) -> Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut offset = 0;
    loop {
        let from = match fs.seek(ino, offset, false) {
            Err(Error::PastEnd) => return Ok(()),
            found => found?,
        };
        match fs.read(ino, from, &mut piece)? {
            0 => return Ok(()),
            count => offset = from + count as u64,
        }
    }
}
