//! Full volumes, again and again: filled until there is no space, overwritten, half emptied and refilled, they never wedge
//! and hold as much the last time as the first.

use emulator::Chip;
use flexfs_core::{Compression, Error, Fs, Mode, MountOptions, NewNode, ROOT_INO, kind};
use lab::content::{Fill, Texture, mix};
use lab::crash::Rig;

const CYCLES: u64 = 50;
/// Bytes of a file, and of one overwrite.
const FILE_BYTES: usize = 24 << 10;
const PIECE_BYTES: usize = 5000;

fn contents(file: u64, version: u64, texture: Texture, len: usize) -> Vec<u8> {
    Fill { seed: mix(file ^ mix(version)), start: 0, texture }.bytes(len)
}

struct Volume {
    fs: Fs<Chip>,
    texture: Texture,
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
            let data = contents(file, 0, self.texture, FILE_BYTES);
            let name = format!("file{file}");
            let written = self.fs.create(ROOT_INO, name.as_bytes(), node, now_ns).and_then(|attr| {
                match self.fs.write(attr.ino, 0, &data, now_ns)? {
                    FILE_BYTES => self.fs.sync(now_ns),
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
            let data = contents(file, cycle + 1, self.texture, PIECE_BYTES);
            let count = match self.fs.write(ino, at as u64, &data, now_ns) {
                Ok(count) => count,
                Err(Error::NoSpace) => 0,
                Err(error) => panic!("overwriting file {file}: {error}"),
            };
            self.files.get_mut(&file).unwrap()[at..at + count].copy_from_slice(&data[..count]);
            done += usize::from(count == PIECE_BYTES);
        }
        let now_ns = self.tick();
        self.fs.sync(now_ns).unwrap();
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

#[test]
fn volumes_filled_fifty_times_never_wedge_and_hold_as_much_as_ever() {
    let policies = [
        (Mode::Baseline, Compression::None, "flexfs-mlc", 32),
        (Mode::NativeOnly, Compression::None, "flexfs-mlc", 32),
        (Mode::SlcOnly, Compression::None, "flexfs-mlc", 32),
        (Mode::Baseline, Compression::Lz4, "flexfs-mlc", 32),
        (Mode::Baseline, Compression::None, "tlc-3d", 24),
    ];
    for (mode, compression, profile, pages) in policies {
        let options = MountOptions { mode, compression, cache_bytes: 256 << 10, ..MountOptions::default() };
        let rig = Rig::small(profile, 64, pages, options.clone()).unwrap();
        let texture = if compression == Compression::Lz4 { Texture::Text } else { Texture::Noise };
        let fs = rig.format(rig.chip(3).unwrap(), 3).unwrap().fs;
        let mut volume = Volume { fs, texture, files: Default::default(), next: 0, now_ns: 0 };
        let (mut held, mut overwritten) = (Vec::new(), 0);
        for cycle in 0..CYCLES {
            volume.fill();
            held.push(volume.files.len());
            overwritten += volume.overwrite(cycle);
            volume.verify();
            volume.remove_half(cycle);
            if cycle % 10 == 9 {
                let (chip, outcome) = volume.fs.unmount(volume.now_ns);
                outcome.unwrap();
                volume.fs = Fs::mount(chip, MountOptions { now_ns: volume.now_ns, ..options.clone() }).map_err(|e| e.1).unwrap();
                assert_eq!(volume.fs.check().unwrap().findings, Vec::<String>::new());
            }
        }
        println!("{profile} {mode:?} {compression:?}: {} files at first, {:?} at last, {overwritten} overwrites", held[0], &held[45..]);
        let (least, first) = (held.iter().copied().min().unwrap(), held[0]);
        assert!(least * 100 >= first * 97, "it held {first} files at first and {least} at worst");
        assert!(overwritten > 0, "nothing could be overwritten");
    }
}
