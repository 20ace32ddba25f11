//! What of a damaged volume cannot be read: files by their names, and the root directory, the way to them all.
//!
//! Invariant: what cannot be read is found by reading it, as `get` does, so that what is not named here can be got.

use emulator::Chip;
use flexfs_core::dump::SlotState;
use flexfs_core::{Error, Fs, Ino, ROOT_INO, Result, kind};
use nand::Nand;

use super::{Step, Tree, Visited, join};

/// Bytes read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Names of the root directory that are looked at: it is not for a mount to read all of a large one.
const NAMES_MAX: usize = 1000;

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
fn contents(fs: &mut Fs<Chip>, visited: &Visited) -> Result<()> {
    let ino = visited.attr.ino;
    attributes(fs, ino)?;
    match visited.attr.mode & kind::MASK {
        kind::SYMLINK => fs.readlink(ino).map(drop),
        kind::FILE => data(fs, ino),
        _ => Ok(()),
    }
}

fn attributes(fs: &mut Fs<Chip>, ino: Ino) -> Result<()> {
    fs.listxattr(ino)?.iter().try_for_each(|name| fs.getxattr(ino, name).map(drop))
}

fn data(fs: &mut Fs<Chip>, ino: Ino) -> Result<()> {
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

/// What is wrong with a root directory.
pub struct RootDamage {
    pub why: String,
    /// Its own inode cannot be read: a stand-in shows what is below it, and nothing can be written.
    pub read_only: bool,
}

/// What is wrong with the root directory, if anything.
pub fn root(fs: &mut Fs<Chip>) -> Option<RootDamage> {
    let mut names = 0;
    let listed = fs.readdir(ROOT_INO, 0, &mut |_| {
        names += 1;
        names < NAMES_MAX
    });
    let said = |error: Error| error.to_string();
    // Where nothing was found corrupt there is nothing to look for.
    let suspect = fs.info().is_ok_and(|info| info.corrupt_reads > 0);
    let inode = if suspect { lost_root_inode(fs).map_err(said) } else { Ok(None) };
    match (inode, listed.map_err(said)) {
        (Ok(Some(slot)), _) => {
            Some(RootDamage { why: format!("its inode at slot {slot:#x} fails its check"), read_only: true })
        }
        (Err(why), _) | (_, Err(why)) => Some(RootDamage { why, read_only: false }),
        (Ok(None), Ok(())) => None,
    }
}

/// The slot that holds the root's inode, if it cannot be read.
fn lost_root_inode(fs: &mut Fs<Chip>) -> Result<Option<u64>> {
    let mut stands_in = None;
    fs.index_entries(&mut |entry| {
        if entry.ino == ROOT_INO && entry.kind == "inode" {
            stands_in = entry.slot;
        }
        entry.ino < ROOT_INO
    })?;
    let Some(slot) = stands_in else { return Ok(None) };
    let slots_per_block = fs.chip().geometry().block_bytes() / u64::from(fs.statfs()?.chunk_bytes);
    let mut unreadable = false;
    fs.slots((slot / slots_per_block.max(1)) as u32, &mut |at, state| {
        unreadable |= at == slot && matches!(state, SlotState::Unreadable);
        true
    })?;
    Ok(unreadable.then_some(slot))
}
