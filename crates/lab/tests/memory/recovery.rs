//! The memory bound of recovery: a mount after a cut takes hardly more memory than the volume took at work, however far
//! the log went on since the last checkpoint. A counting allocator watches; the chip is an image file, so that its
//! contents are not in memory.

use std::path::Path;

use emulator::{Chip, Profile};
use flexfs_core::{FormatOptions, Fs, Ino, MountOptions, NewNode, ROOT_INO, kind};
use torture::content::{Fill, Texture, mix};

use crate::{HEAP, alone};

const PAGE_BYTES: usize = 4 << 10;
/// Tenths of what a volume takes at work that a mount may take.
const TENTHS: usize = 13;
/// Overwrites and small files between two cuts, and cuts: from soon after a checkpoint to soon before the next.
const BETWEEN_CUTS: std::ops::Range<u64> = 30..250;
const CUTS: u64 = 60;

/// A volume and the most memory it took.
struct Watched {
    options: MountOptions,
    base: usize,
    at_work: usize,
    mounting: usize,
    turns: u64,
}

impl Watched {
    fn peak(&self) -> usize {
        HEAP.peak_usage().saturating_sub(self.base)
    }

    fn mount(&mut self, chip: Chip) -> Fs<Chip> {
        HEAP.reset_peak_usage();
        let fs = Fs::mount(chip, self.options.clone()).map_err(|(_, error)| error).unwrap();
        self.mounting = self.mounting.max(self.peak());
        fs
    }

    /// Synced overwrites of a large file, and a small file with each.
    fn work(&mut self, fs: &mut Fs<Chip>, large: Ino, pages: u64) {
        HEAP.reset_peak_usage();
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        let page = Fill { seed: 1, start: 0, texture: Texture::Noise }.bytes(PAGE_BYTES);
        let span = BETWEEN_CUTS.end - BETWEEN_CUTS.start;
        for _ in 0..BETWEEN_CUTS.start + mix(self.turns) % span {
            self.turns += 1;
            fs.write(large, mix(self.turns) % pages * PAGE_BYTES as u64, &page, 0).unwrap();
            let ino = fs.create(ROOT_INO, format!("small{}", self.turns).as_bytes(), node, 0).unwrap().ino;
            fs.write(ino, 0, &page[..200], 0).unwrap();
            if self.turns.is_multiple_of(3) {
                fs.sync().unwrap();
            }
        }
        self.at_work = self.at_work.max(self.peak());
    }
}

/// The most that was live at work and in a mount after a cut, bytes.
fn peaks(dir: &Path, chip_bytes: u64, cache_bytes: usize) -> (usize, usize) {
    let profile = Profile::default().with_capacity(chip_bytes).unwrap();
    let mut chip = Chip::create_image(dir.join(format!("{chip_bytes}-{cache_bytes}.img")), &profile, 1).unwrap();
    let label = "memory".into();
    let format = FormatOptions { volume_id: [1; 16], label, blank: true, now_ns: 0, ..FormatOptions::default() };
    Fs::format(&mut chip, &format).unwrap();
    let base = HEAP.current_usage();
    let options = MountOptions { cache_bytes, ..MountOptions::default() };
    let mut watched = Watched { options, base, at_work: 0, mounting: 0, turns: 0 };
    let mut fs = watched.mount(chip);
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let large = fs.create(ROOT_INO, b"large", node, 0).unwrap().ino;
    let pages = chip_bytes / 2 / PAGE_BYTES as u64;
    let page = Fill { seed: 2, start: 0, texture: Texture::Noise }.bytes(PAGE_BYTES);
    for number in 0..pages {
        fs.write(large, number * PAGE_BYTES as u64, &page, 0).unwrap();
    }
    for _ in 0..CUTS {
        watched.work(&mut fs, large, pages);
        fs = watched.mount(fs.into_chip());
    }
    (watched.at_work, watched.mounting)
}

#[test]
fn a_mount_after_a_cut_takes_hardly_more_memory_than_the_volume_at_work() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    for chip_bytes in [64 << 20, 512 << 20] {
        for cache_bytes in [0, 64 << 10] {
            let (at_work, mounting) = peaks(dir.path(), chip_bytes, cache_bytes);
            println!("{} MiB, cache {cache_bytes}: at work {at_work}, mounting {mounting}", chip_bytes >> 20);
            assert!(mounting * 10 <= at_work * TENTHS, "{mounting} bytes in a mount, {at_work} at work");
        }
    }
}
