//! Damage of the root directory, the way to all files of a volume.
//!
//! Invariant: a sound volume is read no further than the first names of its root directory.

use emulator::Chip;
use flexfs_core::dump::SlotState;
use flexfs_core::{Error, Fs, ROOT_INO, Result};
use nand::Nand;

/// Names of the root directory that are looked at: it is not for a mount to read all of a large one.
const NAMES_MAX: usize = 1000;

/// Damage of a root directory.
pub struct RootDamage {
    pub why: String,
    /// Its own inode cannot be read: a stand-in shows what is below it, and nothing can be written.
    pub read_only: bool,
}

impl RootDamage {
    /// The damage of this volume's root directory, if there is any.
    pub fn of(fs: &mut Fs<Chip>) -> Option<Self> {
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
                Some(Self { why: format!("its inode at slot {slot:#x} fails its check"), read_only: true })
            }
            (Err(why), _) | (_, Err(why)) => Some(Self { why, read_only: false }),
            (Ok(None), Ok(())) => None,
        }
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
