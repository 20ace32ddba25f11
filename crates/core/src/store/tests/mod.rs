//! What only a look inside a store shows.

mod anchor_blocks;
mod attributes;
mod budget;
mod checkpoint;
mod collector;
mod failing;
mod format;
mod lanes;
mod place;
mod recovery;
mod roll;
mod room;
mod tags;

use alloc::vec::Vec;

use emulator::{Chip, Profile};

use crate::dump::IndexEntry;
use crate::flash::Flash;
use crate::{FormatOptions, Fs, Ino, MountOptions, NewNode, Policy, ROOT_INO, kind};

fn mounted(chip: Chip, policy: Policy) -> Fs<Chip> {
    let options = MountOptions { policy, ..MountOptions::default() };
    Fs::mount(chip, options).map_err(|(_, error)| error).unwrap()
}

fn formatted() -> Chip {
    formatted_of("flexfs-mlc")
}

/// The same on a chip of another kind.
fn formatted_of(profile: &str) -> Chip {
    let mut profile = Profile::builtin(profile).unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 16);
    formatted_as(&profile)
}

/// How volumes here are made, on a chip that is `blank` or not.
fn options(blank: bool) -> FormatOptions {
    let (volume_id, label) = ([7; 16], "test".into());
    FormatOptions { volume_id, label, blank, now_ns: 1, ..FormatOptions::default() }
}

fn formatted_as(profile: &Profile) -> Chip {
    let mut chip = Chip::new(profile, 1).unwrap();
    Fs::format(&mut chip, &options(false)).unwrap();
    chip
}

fn file(fs: &mut Fs<Chip>, name: &[u8]) -> Ino {
    let file = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    fs.create(ROOT_INO, name, file, 1).unwrap().ino
}

/// The slots that the chunks of a file stand in.
fn slots_of(fs: &mut Fs<Chip>, ino: Ino) -> Vec<u64> {
    let mut slots = Vec::new();
    let mut note = |entry: IndexEntry| {
        if let (true, Some(slot)) = (entry.ino == ino && entry.kind == "data", entry.slot) {
            slots.extend(slot..slot + entry.count);
        }
        true
    };
    fs.index_entries(&mut note).unwrap();
    slots
}

fn flash(fs: &Fs<Chip>) -> &Flash<Chip> {
    fs.store().records().flash()
}
