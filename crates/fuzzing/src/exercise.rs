//! Mounts a chip that may hold anything, looks at all of it, writes to it, and mounts it again.
//!
//! Whatever the volume answers is right, errors included; wrong are panics, calls that never end, and memory that
//! grows. Invariants, all checked: a read-only mount programs and erases nothing, nor does one that is refused, and no
//! call claims to have read more than its buffer holds.

use std::ops::Deref;

use emulator::Chip;
use flexfs_core::{
    Atime, Compression, Fs, Ino, MountOptions, NewNode, Policy, ROOT_INO, RenameMode, Result, SetAttr, kind,
};
use nand::Nand;
use torture::crash::{BASE_NS, VolumeOver};

use crate::metered::Metered;

/// Inodes that are looked at in the first mount: the volumes have about a hundred.
const INODES_MAX: usize = 160;
/// And later.
const SOME_INODES: usize = 24;
/// Entries and names that are taken from one directory.
const ENTRIES_MAX: usize = 200;
/// Stretches of data that are read of one file.
const STRETCHES_MAX: usize = 12;
const READ_BYTES: usize = 20_000;
/// Later than anything the volumes were written at.
const NOW_NS: i64 = BASE_NS + 10_000_000_000;
const BACKGROUND_STEPS: usize = 12;

/// How a volume is mounted and used.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    policy: Policy,
    compression: Compression,
    atime: Atime,
    cache_bytes: usize,
    /// A read-only mount comes first.
    looks_first: bool,
    /// It is written to before anything was looked at.
    writes_first: bool,
    /// What is left at the end is mended, and salvaged.
    repairs: bool,
    /// Chooses what is written to.
    seed: u8,
    /// The so-manieth program or erase of the last mount loses power; 0 is none.
    cut: u8,
}

impl Use {
    pub(crate) fn decode(how: u8, seed: u8, cut: u8) -> Self {
        let pick = |bit: u8| how >> bit & 1 != 0;
        Self {
            policy: [Policy::BASELINE, Policy::NATIVE_ONLY, Policy::SLC_ONLY, Policy::BASELINE][usize::from(how % 4)],
            compression: if pick(2) { Compression::Lz4 } else { Compression::None },
            atime: if pick(3) { Atime::Relative } else { Atime::None },
            cache_bytes: if pick(4) { 16 << 10 } else { 128 << 10 },
            looks_first: pick(5),
            writes_first: pick(6),
            repairs: pick(7),
            seed,
            cut,
        }
    }

    fn options(&self, read_only: bool) -> MountOptions {
        MountOptions {
            read_only,
            policy: self.policy,
            compression: self.compression,
            atime: self.atime,
            cache_bytes: self.cache_bytes,
            now_ns: NOW_NS,
            ..MountOptions::default()
        }
    }
}

/// How a volume over something is used.
struct MountUse<'a> {
    over: VolumeOver,
    usage: &'a Use,
}

impl Deref for MountUse<'_> {
    type Target = Use;

    fn deref(&self) -> &Use {
        self.usage
    }
}

/// Uses what is on a chip, or over the drive on it; `usage` says how.
pub fn exercise(chip: Chip, over: VolumeOver, usage: &Use) {
    let usage = &MountUse { over, usage };
    let mut chip = Metered::new(chip);
    if usage.looks_first {
        chip = look_only(chip, usage);
    }
    let before = chip.chip().operations();
    let mut fs = match mount(chip, usage, false) {
        Ok(fs) => fs,
        Err(chip) => {
            assert_eq!(chip.chip().operations(), before, "a mount that was refused programmed or erased something");
            salvage(chip, usage);
            return;
        }
    };
    let seen = if usage.writes_first { vec![ROOT_INO] } else { look(&mut fs, INODES_MAX) };
    change(&mut fs, &seen, usage);
    look(&mut fs, SOME_INODES);
    inspect(&mut fs);
    let mut chip = unmount(fs);
    if usage.cut > 0 {
        chip.chip_mut().faults_mut().cut_power_at(u64::from(usage.cut));
    }
    let fs = mount(chip, usage, false).map(|mut fs| {
        change(&mut fs, &seen, usage);
        unmount(fs)
    });
    let (Ok(mut chip) | Err(mut chip)) = fs;
    chip.chip_mut().faults_mut().cancel_cut();
    chip.chip_mut().power_on();
    match mount(chip, usage, false) {
        Ok(mut fs) => {
            look(&mut fs, SOME_INODES);
            call(&mut fs, |fs| fs.check());
            if usage.repairs {
                call(&mut fs, |fs| fs.mend(true, NOW_NS));
                look(&mut fs, SOME_INODES);
                salvage(fs.into_chip(), usage);
            }
        }
        Err(chip) => salvage(chip, usage),
    }
}

/// Builds the volume again of what stands on the chip. Whatever comes of it can be mounted.
fn salvage(mut chip: Metered, usage: &MountUse) {
    chip.refill();
    let Ok((mut fs, _)) = Fs::salvage(chip, [7; 16], usage.options(false), &mut |_, _| {}) else { return };
    look(&mut fs, SOME_INODES);
    call(&mut fs, |fs| fs.check());
    fs.chip_mut().refill();
    let (mut chip, unmounted) = fs.unmount(NOW_NS);
    if unmounted.is_ok() {
        chip.refill();
        let mounted = Fs::mount(chip, usage.options(false)).map(drop).map_err(|(_, error)| error);
        assert!(mounted.is_ok(), "a volume that was salvaged cannot be mounted: {mounted:?}");
    }
}

/// Mounts, or gives the chip back.
fn mount(mut chip: Metered, usage: &MountUse, read_only: bool) -> std::result::Result<Fs<Metered>, Metered> {
    chip.refill();
    let mut chip = chip.restarted(usage.over)?;
    chip.refill();
    Fs::mount(chip, usage.options(read_only)).map_err(|(chip, error)| {
        let _told = error.to_string();
        chip
    })
}

fn unmount(mut fs: Fs<Metered>) -> Metered {
    fs.chip_mut().refill();
    let (chip, _outcome) = fs.unmount(NOW_NS);
    chip
}

fn look_only(chip: Metered, usage: &MountUse) -> Metered {
    let before = chip.chip().operations();
    let chip = match mount(chip, usage, true) {
        Ok(mut fs) => {
            let seen = look(&mut fs, SOME_INODES);
            inspect(&mut fs);
            change(&mut fs, &seen, usage);
            unmount(fs)
        }
        Err(chip) => chip,
    };
    assert_eq!(chip.chip().operations(), before, "a read-only mount programmed or erased something");
    chip
}

/// Makes a call with a new allowance.
fn call<T>(fs: &mut Fs<Metered>, make: impl FnOnce(&mut Fs<Metered>) -> Result<T>) -> Option<T> {
    fs.chip_mut().refill();
    match make(fs) {
        Ok(value) => Some(value),
        Err(error) => {
            assert!(error.errno() > 0, "{error}");
            None
        }
    }
}

/// Reads what can be reached from the root, up to so many inodes; says which there are.
fn look(fs: &mut Fs<Metered>, inodes_max: usize) -> Vec<Ino> {
    let mut seen = vec![ROOT_INO];
    let mut at = 0;
    while let Some(&ino) = seen.get(at) {
        at += 1;
        let mode = call(fs, |fs| fs.getattr(ino)).map_or(0, |attr| attr.mode);
        look_at_attributes(fs, ino);
        match mode & kind::MASK {
            kind::DIR => {
                for found in entries(fs, ino) {
                    if seen.len() < inodes_max && !seen.contains(&found) {
                        seen.push(found);
                    }
                }
                call(fs, |fs| fs.parent_of(ino));
            }
            kind::SYMLINK => {
                call(fs, |fs| fs.readlink(ino));
            }
            _ => look_at_data(fs, ino),
        }
        call(fs, |fs| fs.accessed(ino, NOW_NS));
    }
    seen
}

/// What a directory leads to; every other name is looked up too.
fn entries(fs: &mut Fs<Metered>, dir: Ino) -> Vec<Ino> {
    let mut found: Vec<(Vec<u8>, Ino)> = Vec::new();
    let mut cookie = 0;
    loop {
        let before = found.len();
        let read = call(fs, |fs| {
            fs.readdir(dir, cookie, &mut |entry| {
                cookie = entry.cookie;
                found.push((entry.name, entry.ino));
                !found.len().is_multiple_of(7)
            })
        });
        if read.is_none() || found.len() == before || found.len() > ENTRIES_MAX {
            break;
        }
    }
    for (name, _) in found.iter().step_by(2) {
        call(fs, |fs| fs.lookup(dir, name));
    }
    found.into_iter().map(|(_, ino)| ino).collect()
}

fn look_at_attributes(fs: &mut Fs<Metered>, ino: Ino) {
    let names = call(fs, |fs| fs.listxattr(ino)).unwrap_or_default();
    for name in names.iter().take(ENTRIES_MAX) {
        call(fs, |fs| fs.getxattr(ino, name));
    }
}

/// Reads a file where it has data, around its holes, and at its end.
fn look_at_data(fs: &mut Fs<Metered>, ino: Ino) {
    let size = call(fs, |fs| fs.getattr(ino)).map_or(0, |attr| attr.size);
    let mut buffer = vec![0; READ_BYTES];
    let mut at = 0;
    for _ in 0..STRETCHES_MAX {
        let Some(data) = call(fs, |fs| fs.seek(ino, at, false)) else { break };
        let hole = call(fs, |fs| fs.seek(ino, data, true)).unwrap_or(size);
        for offset in [data.saturating_sub(3), hole.saturating_sub(READ_BYTES as u64 / 2)] {
            read(fs, ino, offset, &mut buffer);
        }
        at = hole.max(data + 1);
    }
    for offset in [size.saturating_sub(10), u64::MAX] {
        read(fs, ino, offset, &mut buffer);
    }
}

fn read(fs: &mut Fs<Metered>, ino: Ino, offset: u64, buffer: &mut [u8]) {
    let checked = call(fs, |fs| fs.read(ino, offset, buffer));
    let unchecked = call(fs, |fs| {
        let (count, unchecked) = fs.read_unchecked(ino, offset, buffer)?;
        unchecked.check(buffer);
        Ok(count)
    });
    for count in [checked, unchecked].into_iter().flatten() {
        assert!(count <= buffer.len(), "{count} bytes were read into {}", buffer.len());
    }
}

/// What tools look at.
fn inspect(fs: &mut Fs<Metered>) {
    call(fs, |fs| fs.check());
    call(fs, |fs| fs.info());
    call(fs, |fs| fs.statfs());
    fs.anchor();
    let mut entries = 0;
    call(fs, |fs| {
        fs.index_entries(&mut |_| {
            entries += 1;
            entries < 2000
        })
    });
    for block in 0..fs.chip().geometry().blocks {
        call(fs, |fs| fs.slots(block, &mut |_, _| true));
    }
    fs.blocks().for_each(drop);
}

/// One of each call that changes something, on what was found.
fn change(fs: &mut Fs<Metered>, seen: &[Ino], usage: &MountUse) {
    const FILE: NewNode = NewNode { mode: kind::FILE | 0o600, uid: 0, gid: 0, rdev: 0 };
    let seed = usize::from(usage.seed);
    let pick = |number: usize| seen[(seed * 7 + number * 13) % seen.len()];
    let data: Vec<u8> = (0..9000u32).map(|index| ((index * index) >> 5) as u8 ^ usage.seed).collect();
    let now_ns = NOW_NS;
    call(fs, |fs| fs.create_with(ROOT_INO, b"made", FILE, &[(b"user.a", b"1")], now_ns));
    call(fs, |fs| fs.symlink(pick(0), b"soft", b"made", 0, 0, now_ns));
    for number in 0..6 {
        let (ino, offset) = (pick(number), [0, 5, 4096, 40_000, 70_001, 16_000_000][(number + seed) % 6]);
        let size = call(fs, |fs| fs.getattr(ino)).map_or(0, |attr| attr.size);
        call(fs, |fs| fs.open(ino));
        call(fs, |fs| fs.write(ino, offset, &data, now_ns));
        call(fs, |fs| fs.write(ino, size.saturating_sub(9), b"around the end", now_ns));
        call(fs, |fs| fs.setxattr(ino, b"user.long", &data[..1400], false, false, now_ns));
        match (number + seed) % 4 {
            0 => drop(call(fs, |fs| fs.sync())),
            1 => drop(call(fs, |fs| fs.zero_range(ino, 1000, 9000, true, now_ns))),
            2 => drop(call(fs, |fs| fs.punch(ino, 3000, u64::MAX / 4, now_ns))),
            _ => drop(call(fs, |fs| fs.allocate(ino, size / 2, 30_000, false, now_ns))),
        }
        call(fs, |fs| fs.copy_range((ino, 10), (pick(number + 1), 100), 30_000, now_ns));
    }
    background(fs);
    change_names(fs, seen, &pick);
    for number in 0..6 {
        let size = Some([0, 1, 5000, u64::MAX / 2, 4096, 100_000][(number + seed) % 6]);
        call(fs, |fs| fs.setattr(pick(number + 3), SetAttr { size, mode: Some(0o700), ..SetAttr::default() }, now_ns));
        call(fs, |fs| fs.release(pick(number)));
    }
    call(fs, |fs| fs.sync());
    background(fs);
}

/// Calls about names; those that exist are those of the volumes, wherever they lead by now.
fn change_names(fs: &mut Fs<Metered>, seen: &[Ino], pick: &dyn Fn(usize) -> Ino) {
    let now_ns = NOW_NS;
    let dirs: Vec<Ino> = seen.iter().copied().filter(|&ino| is_dir(fs, ino)).collect();
    let dir = |number: usize| dirs.get(number % dirs.len().max(1)).copied().unwrap_or(ROOT_INO);
    call(fs, |fs| fs.link(pick(1), dir(1), b"another", now_ns));
    call(fs, |fs| fs.rename(ROOT_INO, b"large", dir(1), b"small3", RenameMode::Replace, now_ns));
    call(fs, |fs| fs.rename(ROOT_INO, b"kept", dir(2), b"holes", RenameMode::Exchange, now_ns));
    call(fs, |fs| fs.rename(ROOT_INO, b"outer", dir(2), b"outer", RenameMode::NoReplace, now_ns));
    for (number, name) in ["small5", "small6", "linked", "native", "made", "another", "soft"].iter().enumerate() {
        call(fs, |fs| fs.unlink(dir(number % 3), name.as_bytes(), now_ns));
    }
    call(fs, |fs| fs.removexattr(pick(2), b"user.long", now_ns));
    call(fs, |fs| fs.rmdir(dir(1), b"inner", now_ns));
    call(fs, |fs| fs.rmdir(ROOT_INO, b"outer", now_ns));
}

fn is_dir(fs: &mut Fs<Metered>, ino: Ino) -> bool {
    call(fs, |fs| fs.getattr(ino)).is_some_and(|attr| attr.mode & kind::MASK == kind::DIR)
}

fn background(fs: &mut Fs<Metered>) {
    let mut now_ns = NOW_NS;
    for _ in 0..BACKGROUND_STEPS {
        match call(fs, |fs| fs.background(now_ns, now_ns)) {
            Some(Some(next_ns)) => now_ns = now_ns.max(next_ns),
            _ => break,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a chip without damage is whole.
    fn is_sound(chip: Chip) -> Result<()> {
        let usage = Use::decode(0, 0, 0);
        let mut fs = Fs::mount(chip, usage.options(false)).map_err(|(_, error)| error)?;
        let findings = fs.check()?.findings;
        assert!(findings.is_empty(), "{findings:?}");
        let (chip, outcome) = fs.unmount(NOW_NS);
        outcome?;
        exercise(chip, VolumeOver::Chip, &usage);
        Ok(())
    }

    #[test]
    fn the_volumes_are_sound_and_hold_what_is_looked_for() {
        for chip in crate::edits::undamaged() {
            is_sound(chip.snapshot()).unwrap();
            let mut fs =
                Fs::mount(Metered::new(chip), Use::decode(0, 0, 0).options(false)).map_err(|(_, e)| e).unwrap();
            let seen = look(&mut fs, INODES_MAX);
            assert!(seen.len() > 70, "{} inodes", seen.len());
            assert!(fs.info().unwrap().reserved_bytes > 0);
        }
    }
}
