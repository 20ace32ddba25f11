//! A hundred thousand files of 4 KiB, until the chip of 512 MiB is nearly full: background steps stay what they may be though
//! the index is large, and calls wait for a bounded time.
//!
//! Invariant: every file is found afterwards, with its size.

use emulator::{Chip, FaultConfig, Profile};
use flexfs_core::{Fs, MountOptions, NewNode, ROOT_INO, kind};
use lab::bench::Step;
use torture::content::{Fill, Texture};
use torture::crash::{Rig, VolumeOver};

const FILES: u64 = 100_000;
const FILE_BYTES: usize = 4 << 10;
/// Files between two syncs, and background steps after each.
const SYNC_EVERY: u64 = 100;
const STEPS: u64 = 40;

/// Takes so many background steps, each of which must be one.
fn rest(fs: &mut Fs<Chip>, now_ns: &mut i64) {
    for _ in 0..STEPS {
        *now_ns += 2_000_000;
        let before = Step::so_far(fs.chip().counters());
        fs.background(*now_ns, *now_ns).unwrap();
        let step = Step::so_far(fs.chip().counters()).since(before);
        step.bounded(fs.chip().profile(), false).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn background_steps_are_bounded_on_a_volume_of_a_hundred_thousand_small_files() {
    let profile = Profile::default().with_capacity(512 << 20).unwrap();
    let options = MountOptions::default();
    let rig = Rig { profile, faults: FaultConfig::default(), options, over: VolumeOver::Chip };
    let mut fs = rig.format(rig.chip(1).unwrap(), 1).unwrap().fs;
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let data = Fill { seed: 1, start: 0, texture: Texture::Noise }.bytes(FILE_BYTES);
    let (mut now_ns, mut tenths_ns) = (0, Vec::new());
    for number in 0..FILES {
        if number % (FILES / 10) == 0 {
            tenths_ns.push(fs.chip().counters().flash_ns);
        }
        let ino = fs.create(ROOT_INO, format!("file{number}").as_bytes(), node, now_ns).unwrap().ino;
        assert_eq!(fs.write(ino, 0, &data, now_ns), Ok(FILE_BYTES), "file {number}");
        if number % SYNC_EVERY == SYNC_EVERY - 1 {
            fs.sync().unwrap();
            rest(&mut fs, &mut now_ns);
        }
    }
    tenths_ns.push(fs.chip().counters().flash_ns);
    let each_us = tenths_ns.windows(2).map(|of| (of[1] - of[0]) / (FILES / 10) / 1000);
    println!("flash time of a file, tenth by tenth, us: {:?}", each_us.collect::<Vec<_>>());
    for number in 0..FILES {
        assert_eq!(fs.lookup(ROOT_INO, format!("file{number}").as_bytes()).unwrap().size, FILE_BYTES as u64);
    }
}
