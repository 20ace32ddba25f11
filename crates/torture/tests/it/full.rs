//! Full volumes, again and again: filled until there is no space, overwritten, half emptied and refilled, they never wedge
//! and hold as much the last time as the first.

use emulator::Chip;
use flexfs_core::{Compression, Error, Fs, MountOptions, NewNode, Policy, ROOT_INO, kind};
use torture::content::{Fill, Texture, mix};
use torture::crash::Rig;

const CYCLES: u64 = 50;
const BLOCKS: u64 = 64;
/// Bytes of a file, and of one overwrite.
const FILE_BYTES: usize = 24 << 10;
const PIECE_BYTES: usize = 5000;

/// What stands in a file: every second one can be compressed.
fn contents(file: u64, version: u64, len: usize) -> Vec<u8> {
    let texture = if file.is_multiple_of(2) { Texture::Noise } else { Texture::Text };
    Fill { seed: mix(file ^ mix(version)), start: 0, texture }.bytes(len)
}

struct Volume {
    fs: Fs<Chip>,
    /// What each file holds, by number.
    files: std::collections::BTreeMap<u64, Vec<u8>>,
    next: u64,
    now_ns: i64,
}

impl Volume {
    fn tick(&mut self) -> i64 {
        self.now_ns += 1_000_000;
        self.now_ns
    }

    fn ino(&mut self, file: u64) -> u64 {
        self.fs.lookup(ROOT_INO, format!("file{file}").as_bytes()).unwrap().ino
    }

    /// Writes files until one does not fit; that one is taken back.
    fn fill(&mut self) {
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        loop {
            let (file, now_ns) = (self.next, self.tick());
            self.next += 1;
            let data = contents(file, 0, FILE_BYTES);
            let name = format!("file{file}");
            let written = self.fs.create(ROOT_INO, name.as_bytes(), node, now_ns).and_then(|attr| {
                match self.fs.write(attr.ino, 0, &data, now_ns)? {
                    FILE_BYTES => self.fs.sync(),
                    _ => Err(Error::NoSpace),
                }
            });
            match written {
                Ok(()) => drop(self.files.insert(file, data)),
                Err(Error::NoSpace) => {
                    match self.fs.unlink(ROOT_INO, name.as_bytes(), now_ns) {
                        Ok(()) | Err(Error::NotFound) => {}
                        Err(error) => panic!("a file cannot be removed from a full volume: {error}"),
                    }
                    return;
                }
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }

    /// Overwrites a piece of every file; what does not fit leaves the file as it was.
    fn overwrite(&mut self, cycle: u64) -> usize {
        let mut done = 0;
        for file in self.files.keys().copied().collect::<Vec<_>>() {
            let (ino, now_ns) = (self.ino(file), self.tick());
            let at = (mix(file ^ cycle) % (FILE_BYTES - PIECE_BYTES) as u64) as usize;
            let data = contents(file, cycle + 1, PIECE_BYTES);
            let count = match self.fs.write(ino, at as u64, &data, now_ns) {
                Ok(count) => count,
                Err(Error::NoSpace) => 0,
                Err(error) => panic!("overwriting file {file}: {error}"),
            };
            self.files.get_mut(&file).unwrap()[at..at + count].copy_from_slice(&data[..count]);
            done += usize::from(count == PIECE_BYTES);
        }
        self.tick();
        self.fs.sync().unwrap();
        done
    }

    fn remove_half(&mut self, cycle: u64) {
        for file in self.files.keys().copied().filter(|file| mix(file ^ cycle).is_multiple_of(2)).collect::<Vec<_>>() {
            let now_ns = self.tick();
            self.fs.unlink(ROOT_INO, format!("file{file}").as_bytes(), now_ns).unwrap();
            self.files.remove(&file);
        }
    }

    fn verify(&mut self) {
        for (file, expected) in std::mem::take(&mut self.files) {
            let (ino, mut found) = (self.ino(file), vec![0; FILE_BYTES]);
            assert_eq!(self.fs.read(ino, 0, &mut found).unwrap(), FILE_BYTES);
            assert!(found == expected, "file {file} is not as it was written");
            self.files.insert(file, found);
        }
    }
}

/// Fills, overwrites, half empties and refills a volume, fifty times.
fn never_wedges(policy: Policy, compression: Compression, profile: &str, pages_per_block: u32) {
    let options = MountOptions { policy, compression, cache_bytes: 256 << 10, ..MountOptions::default() };
    let rig = Rig::small(profile, BLOCKS as u32, pages_per_block, options.clone()).unwrap();
    let fs = rig.format(rig.chip(3).unwrap(), 3).unwrap().fs;
    let mut volume = Volume { fs, files: Default::default(), next: 0, now_ns: 0 };
    let (mut held, mut overwritten) = (Vec::new(), 0);
    for cycle in 0..CYCLES {
        volume.fill();
        // Files are not all compressed alike: what counts is what they take.
        held.push(volume.fs.info().unwrap().used_bytes >> 10);
        overwritten += volume.overwrite(cycle);
        volume.verify();
        volume.remove_half(cycle);
        if cycle % 10 == 9 {
            volume = volume.remount(options.clone());
            assert_eq!(volume.fs.check().unwrap().findings, Vec::<String>::new());
        }
    }
    println!("{} KiB at first, {:?} at last, {overwritten} overwrites", held[0], &held[45..]);
    let (least, first) = (held.iter().copied().min().unwrap(), held[0]);
    // The index, empty at first, and what it keeps free come in whole blocks.
    let blocks = (2 * rig.profile.block_bytes()) >> 10;
    assert!(first - least <= (first * 3 / 100).max(blocks), "it held {first} KiB at first and {least} at worst");
    assert!(overwritten > 0, "nothing could be overwritten");
}

impl Volume {
    fn remount(mut self, options: MountOptions) -> Self {
        let (chip, outcome) = self.fs.unmount(self.now_ns);
        outcome.unwrap();
        self.fs = Fs::mount(chip, MountOptions { now_ns: self.now_ns, ..options }).map_err(|e| e.1).unwrap();
        self
    }
}

/// A volume that was filled with native cells and then mounted SLC-only wore its blocks out in vain (and where some had
/// failed, came to its end): collection moved everything to SLC cells that had no space for it.
#[test]
fn a_full_native_volume_that_is_mounted_slc_only_can_be_emptied_and_used_on() {
    for (profile, pages) in [("flexfs-mlc", 16), ("tlc-3d", 24)] {
        let policy = |policy| MountOptions { policy, cache_bytes: 256 << 10, ..MountOptions::default() };
        let rig = Rig::small(profile, BLOCKS as u32, pages, policy(Policy::NATIVE_ONLY)).unwrap();
        let fs = rig.format(rig.chip(3).unwrap(), 3).unwrap().fs;
        let mut volume = Volume { fs, files: Default::default(), next: 0, now_ns: 0 };
        volume.fill();
        volume.fs.chip_mut().faults_mut().fail_program_at(3);
        volume.overwrite(1000);
        volume.fs.chip_mut().faults_mut().fail_erase_at(0);
        let erases = volume.fs.info().unwrap().erases_total;
        volume = volume.remount(policy(Policy::SLC_ONLY));
        let capacity_bytes = volume.fs.info().unwrap().capacity_bytes;
        for cycle in 0.. {
            volume.overwrite(cycle);
            volume.verify();
            if volume.fs.info().unwrap().used_bytes < capacity_bytes / 2 {
                break;
            }
            volume.remove_half(cycle);
        }
        volume.fill();
        volume.verify();
        let info = volume.fs.info().unwrap();
        let erases = info.erases_total - erases;
        println!("{profile}: {} KiB, {erases} erases", info.used_bytes >> 10);
        assert!(erases < BLOCKS * 80, "{erases} erases to empty and fill {BLOCKS} blocks");
        assert!(info.used_bytes > capacity_bytes * 9 / 10, "{} of {capacity_bytes} bytes", info.used_bytes);
        volume = volume.remount(policy(Policy::SLC_ONLY));
        assert_eq!(volume.fs.check().unwrap().findings, Vec::<String>::new());
    }
}

#[test]
fn a_migrating_volume_never_wedges_and_holds_as_much_as_ever() {
    never_wedges(Policy::BASELINE, Compression::None, "flexfs-mlc", 16);
}

#[test]
fn a_native_volume_never_wedges_and_holds_as_much_as_ever() {
    never_wedges(Policy::NATIVE_ONLY, Compression::None, "flexfs-mlc", 16);
}

#[test]
fn a_volume_that_keeps_hot_data_apart_never_wedges_and_holds_as_much_as_ever() {
    never_wedges(Policy::LA, Compression::None, "flexfs-mlc", 16);
}

/// The capacity left out a block for hot data, whether there was any or not. The head of hot data takes a block now only where
/// its space is not needed, and what finds no room elsewhere goes to its block.
#[test]
fn hot_data_takes_nothing_from_what_can_be_stored() {
    let stored = |policy: Policy| {
        let options = MountOptions { policy, cache_bytes: 256 << 10, ..MountOptions::default() };
        let rig = Rig::small("flexfs-mlc", BLOCKS as u32, 16, options).unwrap();
        let fs = rig.format(rig.chip(3).unwrap(), 3).unwrap().fs;
        let mut volume = Volume { fs, files: Default::default(), next: 0, now_ns: 0 };
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        let ino = volume.fs.create(ROOT_INO, b"hot", node, 0).unwrap().ino;
        for version in 0..4 {
            volume.fs.write(ino, 0, &contents(1, version, PIECE_BYTES), 0).unwrap();
            volume.fs.sync().unwrap();
        }
        let hot_blocks = volume.fs.info().unwrap().blocks.hot;
        volume.fill();
        volume.verify();
        assert_eq!(volume.fs.check().unwrap().findings, Vec::<String>::new());
        (hot_blocks, volume.files.len())
    };
    let ((hot_blocks, files), (none, files_without)) = (stored(Policy::LA), stored(Policy::DA));
    println!("{files} files, {files_without} where hot data is not told");
    assert_eq!((hot_blocks, none), (1, 0));
    assert_eq!(files, files_without);
}

#[test]
fn a_volume_with_an_slc_buffer_never_wedges_and_holds_as_much_as_ever() {
    never_wedges(Policy::slc_buffer(12), Compression::None, "flexfs-mlc", 16);
}

#[test]
fn an_slc_volume_never_wedges_and_holds_as_much_as_ever() {
    never_wedges(Policy::SLC_ONLY, Compression::None, "flexfs-mlc", 32);
}

#[test]
fn a_compressed_volume_never_wedges_and_holds_as_much_as_ever() {
    never_wedges(Policy::BASELINE, Compression::Lz4, "flexfs-mlc", 16);
}

#[test]
fn a_one_shot_tlc_volume_never_wedges_and_holds_as_much_as_ever() {
    never_wedges(Policy::BASELINE, Compression::None, "tlc-3d", 12);
}
