//! A volume's life on a small chip: format, write, sync, unmount, cut, mount again.

use emulator::{Chip, Profile};
use flexfs_core::{FormatOptions, Fs, MountOptions, NewNode, Policy, ROOT_INO, kind};

fn chip(mib: u64) -> Chip {
    let profile = Profile::builtin("flexfs-mlc").unwrap().with_capacity(mib << 20).unwrap();
    let mut chip = Chip::new(&profile, 1).unwrap();
    let options = FormatOptions { volume_id: [7; 16], label: "test".into(), now_ns: 1, ..FormatOptions::default() };
    Fs::format(&mut chip, &options).unwrap();
    chip
}

fn mount(chip: Chip, policy: Policy) -> Fs<Chip> {
    Fs::mount(chip, MountOptions { policy, ..MountOptions::default() }).map_err(|(_, error)| error).unwrap()
}

const FILE: NewNode = NewNode { mode: kind::FILE | 0o644, uid: 1, gid: 2, rdev: 0 };

fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

fn assert_clean(fs: &mut Fs<Chip>) {
    assert_eq!(fs.check().unwrap().findings, Vec::<String>::new());
}

#[test]
fn synced_files_are_there_after_a_cut_and_after_an_unmount() {
    for policy in [Policy::BASELINE, Policy::SLC_ONLY, Policy::NATIVE_ONLY] {
        let mut fs = mount(chip(8), policy);
        for i in 0..100u64 {
            let attr = fs.create(ROOT_INO, format!("file{i}").as_bytes(), FILE, 1000 + i as i64).unwrap();
            let data = pattern(i, (i * 97) as usize);
            assert_eq!(fs.write(attr.ino, 0, &data, 5_000_000).unwrap(), data.len());
            fs.sync().unwrap();
        }
        assert_clean(&mut fs);
        let mut fs = mount(fs.into_chip(), policy);
        assert_clean(&mut fs);
        let (chip, outcome) = fs.unmount(9);
        outcome.unwrap();
        let mut fs = mount(chip, policy);
        assert_clean(&mut fs);
        for i in 0..100u64 {
            let attr = fs.lookup(ROOT_INO, format!("file{i}").as_bytes()).unwrap();
            let mut data = vec![0; 20_000];
            let count = fs.read(attr.ino, 0, &mut data).unwrap();
            assert_eq!(data[..count], pattern(i, (i * 97) as usize), "file {i}, {policy:?}");
        }
    }
}

#[test]
fn overwriting_a_nearly_full_chip_migrates_and_loses_nothing() {
    for policy in [Policy::BASELINE, Policy::SLC_ONLY, Policy::NATIVE_ONLY] {
        let mut fs = mount(chip(16), policy);
        let free = fs.statfs().unwrap().free_bytes;
        let ino = fs.create(ROOT_INO, b"big", FILE, 0).unwrap().ino;
        let chunks = free * 8 / 10 / 4096;
        let mut version = vec![0u64; chunks as usize];
        for chunk in 0..chunks {
            fs.write(ino, chunk * 4096, &pattern(chunk, 4096), 0).unwrap();
        }
        let mut state = 12345u64;
        for round in 1..6000u64 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let chunk = (state >> 33) % chunks;
            version[chunk as usize] = round;
            fs.write(ino, chunk * 4096, &pattern(chunk + round * 1000, 4096), 0).unwrap();
            if round % 3 == 0 {
                fs.sync().unwrap();
            }
            if round % 2000 == 0 {
                fs.sync().unwrap();
                assert_clean(&mut fs);
                fs = mount(fs.into_chip(), policy);
                assert_clean(&mut fs);
            }
        }
        let mut data = vec![0; 4096];
        for chunk in 0..chunks {
            fs.read(ino, chunk * 4096, &mut data).unwrap();
            assert!(data == pattern(chunk + version[chunk as usize] * 1000, 4096), "chunk {chunk}, {policy:?}");
        }
        let (chip, outcome) = fs.unmount(0);
        outcome.unwrap();
        assert_clean(&mut mount(chip, policy));
    }
}

/// A fresh symbolic link had no blocks until its target was flushed, so that `stat` changed with no call in between.
#[test]
fn blocks_are_counted_when_they_are_written_and_not_again_when_they_are_flushed() {
    for policy in [Policy::BASELINE, Policy::NATIVE_ONLY] {
        let mut fs = mount(chip(8), policy);
        let link = fs.symlink(ROOT_INO, b"link", b"target", 0, 0, 1).unwrap().ino;
        let file = fs.create(ROOT_INO, b"file", FILE, 1).unwrap().ino;
        let counts = |fs: &mut Fs<Chip>| (fs.getattr(link).unwrap().blocks, fs.getattr(file).unwrap().blocks);
        for (offset, len, blocks) in [(0, 4096 + 100, 16), (0, 4096 + 100, 16), (3 * 4096, 4096, 24), (4095, 2, 24)] {
            fs.write(file, offset, &pattern(offset, len), 2).unwrap();
            assert_eq!(counts(&mut fs), (8, blocks), "{policy:?}");
            fs.sync().unwrap();
            assert_eq!(counts(&mut fs), (8, blocks), "{policy:?}, flushed");
        }
        fs.write(file, 9 * 4096, b"cut off before it is flushed", 4).unwrap();
        let short = flexfs_core::SetAttr { size: Some(4096), ..Default::default() };
        fs.setattr(file, short, 5).unwrap();
        assert_eq!(counts(&mut fs), (8, 8), "{policy:?}");
        assert_clean(&mut fs);
    }
}
