//! Damage of the root directory, the way to all files of a volume, as one line each.
//!
//! Invariant: damage of the inode is told from what the mount found; of a sound volume nothing is read for that.

use flexfs_core::dump::SlotState;
use flexfs_core::{Ended, Fs, ROOT_INO, Result};
use nand::Nand;

use crate::any_chip::AnyChip;

/// Names that are looked at: a large root directory is not read whole.
const NAMES_MAX: usize = 1000;

/// The damage for which the root's inode cannot be read, if there is any. A stand-in shows the names below it, and
/// nothing can be written.
pub fn of_inode(fs: &mut Fs<AnyChip>) -> Option<String> {
    let is_damaged = fs.info().is_ok_and(|info| info.ended == Some(Ended::Damaged));
    if is_damaged { found_corrupt(fs) } else { None }
}

/// The damage of the root's inode or, looked for here, of the first names in it, if there is any.
pub fn of_directory(fs: &mut Fs<AnyChip>) -> Option<String> {
    let mut names = 0;
    let count = &mut |_| {
        names += 1;
        names < NAMES_MAX
    };
    let listed = fs.readdir(ROOT_INO, 0, count);
    found_corrupt(fs).or(listed.err().map(|error| error.to_string()))
}

/// The same damage of the inode, where anything was found corrupt at all.
fn found_corrupt(fs: &mut Fs<AnyChip>) -> Option<String> {
    if fs.info().is_ok_and(|info| info.corrupt_reads == 0) {
        return None;
    }
    match lost_root_inode(fs) {
        Ok(slot) => slot.map(|slot| format!("its inode at slot {slot:#x} fails its check")),
        Err(error) => Some(error.to_string()),
    }
}

/// The slot that holds the root's inode, if it cannot be read.
fn lost_root_inode(fs: &mut Fs<AnyChip>) -> Result<Option<u64>> {
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
