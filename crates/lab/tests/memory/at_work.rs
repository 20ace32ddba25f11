//! The memory bound: the core keeps to its cache however many files there are. A counting allocator watches; the chip is
//! an image file, so that its contents are not in memory.

use emulator::{Chip, Profile};
use flexfs_core::{FormatOptions, Fs, MountOptions, NewNode, ROOT_INO, kind};
use torture::content::{Fill, Texture, mix};

use crate::{HEAP, alone};

const CHIP_BYTES: u64 = 256 << 20;
const CACHE_BYTES: usize = 1 << 20;
const BYTES_PER_BLOCK: usize = 64;
const FIXED_BYTES: usize = 1 << 20;

const FILES: u64 = 50_000;
const SYNC_EVERY: u64 = 500;
const LARGE_BYTES: u64 = 64 << 20;
const PAGE_BYTES: usize = 4 << 10;
const OVERWRITES: u64 = 10_000;

/// Runs a part, and returns the most that was live in it beyond `base`, bytes.
fn peak_of(base: usize, part: impl FnOnce()) -> usize {
    HEAP.reset_peak_usage();
    part();
    HEAP.peak_usage().saturating_sub(base)
}

#[test]
fn fifty_thousand_files_and_random_overwrites_stay_within_the_configured_cache() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let profile = Profile::default().with_capacity(CHIP_BYTES).unwrap();
    let mut chip = Chip::create_image(dir.path().join("flash.img"), &profile, 1).unwrap();
    let label = "memory".into();
    let format = FormatOptions { volume_id: [1; 16], label, blank: true, now_ns: 0, ..FormatOptions::default() };
    Fs::format(&mut chip, &format).unwrap();
    let page = Fill { seed: 1, start: 0, texture: Texture::Noise }.bytes(PAGE_BYTES);

    let base = HEAP.current_usage();
    let options = MountOptions { cache_bytes: CACHE_BYTES, ..MountOptions::default() };
    let mut fs = Fs::mount(chip, options.clone()).map_err(|(_, error)| error).unwrap();
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };

    let creating = peak_of(base, || {
        for number in 0..FILES {
            let ino = fs.create(ROOT_INO, format!("file{number}").as_bytes(), node, 0).unwrap().ino;
            fs.write(ino, 0, &page[..100], 0).unwrap();
            if number % SYNC_EVERY == 0 {
                fs.sync().unwrap();
            }
        }
        fs.sync().unwrap();
    });
    let large = fs.create(ROOT_INO, b"large", node, 0).unwrap().ino;
    let overwriting = peak_of(base, || {
        for offset in (0..LARGE_BYTES).step_by(PAGE_BYTES) {
            fs.write(large, offset, &page, 0).unwrap();
        }
        for number in 0..OVERWRITES {
            let at = mix(number) % (LARGE_BYTES / PAGE_BYTES as u64) * PAGE_BYTES as u64;
            fs.write(large, at, &page, 0).unwrap();
            if number % 10 == 0 {
                fs.sync().unwrap();
            }
        }
    });
    let looking = peak_of(base, || {
        for number in (0..FILES).rev() {
            let attr = fs.lookup(ROOT_INO, format!("file{number}").as_bytes()).unwrap();
            assert_eq!(attr.size, 100);
        }
    });
    let chip = fs.into_chip();
    let mut remounted = None;
    let mounting = peak_of(base, || {
        remounted = Some(Fs::mount(chip, options).map_err(|(_, error)| error).unwrap());
    });

    let bound = CACHE_BYTES + BYTES_PER_BLOCK * profile.geometry.blocks as usize + FIXED_BYTES;
    println!(
        "peak live bytes of the core: creating {creating}, overwriting {overwriting}, looking up {looking}, mounting \
         after a cut {mounting}; bound {bound}"
    );
    for peak in [creating, overwriting, looking, mounting] {
        assert!(peak <= bound, "{peak} bytes live, {bound} allowed");
    }
}
