//! The times that calls leave on files: in the order of the calls, or left to the caller, and the same after a cut.

use emulator::{Chip, Profile};
use flexfs_core::{Attr, Compression, Fs, Ino, MountOptions, NewNode, Policy, ROOT_INO, SetAttr, Times, kind};
use nand::Cause;
use torture::content::{Fill, Texture};
use torture::crash::Rig;

const FILE: NewNode = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };

/// A time that no tick of a tag begins at.
const BEGIN_NS: i64 = 1_700_000_000_123_456_789;

fn rig(times: Times) -> Rig {
    Rig::small("flexfs-mlc", 64, 16, MountOptions { times, ..MountOptions::default() }).unwrap()
}

fn volume(rig: &Rig) -> Fs<Chip> {
    rig.format(rig.chip(1).unwrap(), 1).unwrap().fs
}

fn after_a_cut(fs: Fs<Chip>, rig: &Rig) -> Fs<Chip> {
    let options = MountOptions { now_ns: BEGIN_NS, ..rig.options.clone() };
    Fs::mount(fs.into_chip(), options).map_err(|(_, error)| error).unwrap()
}

/// Changes a file's contents in every way, some changes a whole chunk and some a part of one.
fn change(fs: &mut Fs<Chip>, ino: Ino, way: usize, now_ns: i64) {
    match way % 6 {
        0 => fs.write(ino, 0, &[1; 4096], now_ns).map(|_| ()).unwrap(),
        1 => fs.write(ino, 5_000, &[2; 100], now_ns).map(|_| ()).unwrap(),
        2 => fs.allocate(ino, 0, 20_000, false, now_ns).unwrap(),
        3 => fs.punch(ino, 4096, 4096, now_ns).unwrap(),
        4 => fs.copy_range((ino, 0), (ino, 100_000), 5_000, now_ns).map(|_| ()).unwrap(),
        _ => fs.setattr(ino, SetAttr { size: Some(9_000), ..SetAttr::default() }, now_ns).map(|_| ()).unwrap(),
    }
}

fn times(attr: Attr) -> [i64; 2] {
    [attr.mtime_ns, attr.ctime_ns]
}

#[test]
fn the_volumes_times_stand_in_the_order_of_the_calls() {
    let rig = rig(Times::OfVolume);
    let mut fs = volume(&rig);
    let ino = fs.create(ROOT_INO, b"file", FILE, BEGIN_NS).unwrap().ino;
    let mut last = 0;
    // Steps shorter than a tick, and longer ones.
    for (step, now_ns) in (0..400).map(|step| (step, BEGIN_NS + step * step * 1_733)) {
        change(&mut fs, ino, step as usize, now_ns);
        let changed = fs.getattr(ino).unwrap().mtime_ns;
        fs.create(ROOT_INO, format!("{step}").as_bytes(), FILE, now_ns).unwrap();
        let made = fs.getattr(ROOT_INO).unwrap().mtime_ns;
        assert!(last <= changed && changed <= made && made <= now_ns, "step {step}: {last}, {changed}, {made}");
        assert!(now_ns - changed < 256_000, "step {step}: {changed} at {now_ns}");
        last = made;
        if step % 50 == 0 {
            fs.sync().unwrap();
            fs = after_a_cut(fs, &rig);
            assert_eq!([fs.getattr(ino).unwrap().mtime_ns, fs.getattr(ROOT_INO).unwrap().mtime_ns], [changed, made]);
        }
    }
}

#[test]
fn the_callers_times_stay_whatever_changes_and_wherever_the_power_fails() {
    let rig = rig(Times::OfCaller);
    let mut fs = volume(&rig);
    let ino = fs.create(ROOT_INO, b"file", FILE, BEGIN_NS).unwrap().ino;
    let mut expected = [BEGIN_NS; 2];
    for step in 0..200 {
        let now_ns = BEGIN_NS + step * 1_000_003;
        if step % 7 == 3 {
            // Of any age; the other one is that of the call.
            let mtime_ns = now_ns - step * step * step * 1_000_000_007;
            expected = [mtime_ns, now_ns];
            let changes = SetAttr { mtime_ns: Some(mtime_ns), ctime_ns: Some(now_ns), ..SetAttr::default() };
            fs.setattr(ino, changes, now_ns).unwrap();
        }
        change(&mut fs, ino, step as usize, now_ns);
        assert_eq!(times(fs.getattr(ino).unwrap()), expected, "step {step}");
        if step % 3 == 0 {
            fs.sync().unwrap();
            fs = after_a_cut(fs, &rig);
            assert_eq!(times(fs.getattr(ino).unwrap()), expected, "step {step}, after a cut");
        }
    }
}

/// A time set by hand and a change of contents in its tick: what the call left is what a replay finds.
#[test]
fn a_change_in_the_tick_of_a_time_that_was_set_is_replayed_as_it_was() {
    let rig = rig(Times::OfVolume);
    for others in 0..3 {
        let mut fs = volume(&rig);
        let ino = fs.create(ROOT_INO, b"file", FILE, BEGIN_NS - 1_000_000_000).unwrap().ino;
        fs.setattr(ino, SetAttr { mtime_ns: Some(BEGIN_NS), ..SetAttr::default() }, BEGIN_NS - 500_000_000).unwrap();
        fs.sync().unwrap();
        (0..others).for_each(|n| change(&mut fs, ino, n, BEGIN_NS - 1_000_000 * n as i64));
        change(&mut fs, ino, 0, BEGIN_NS + 10);
        fs.sync().unwrap();
        let left = times(fs.getattr(ino).unwrap());
        assert_eq!(times(after_a_cut(fs, &rig).getattr(ino).unwrap()), left, "{others} changes before");
    }
}

/// Sets both times of a file, as a kernel does after the data that it wrote.
fn date(fs: &mut Fs<Chip>, ino: Ino, time_ns: i64) {
    let changes = SetAttr { mtime_ns: Some(time_ns), ctime_ns: Some(time_ns), ..SetAttr::default() };
    fs.setattr(ino, changes, time_ns).unwrap();
}

fn programs(fs: &Fs<Chip>, cause: Cause) -> u64 {
    fs.chip().counters().programs.cause(cause)
}

/// A volume whose SLC blocks hold 63 chunks each, and a file of 64 chunks in it.
fn volume_of_whole_blocks(options: MountOptions) -> (Rig, Fs<Chip>, Ino) {
    let pages = Profile::builtin("flexfs-mlc").unwrap().geometry.pages_per_block;
    let rig = Rig::small("flexfs-mlc", 64, pages, MountOptions { times: Times::OfCaller, ..options }).unwrap();
    let mut fs = volume(&rig);
    let ino = fs.create(ROOT_INO, b"file", FILE, BEGIN_NS).unwrap().ino;
    fs.write(ino, 0, &[7; 64 * 4096], BEGIN_NS).unwrap();
    fs.sync().unwrap();
    (rig, fs, ino)
}

const OVERWRITES: u64 = 630;

/// Each synced overwrite took a page of nodes for its time.
#[test]
fn an_overwrite_with_its_callers_time_is_one_program() {
    for policy in [Policy::DEFAULT, Policy::BASELINE] {
        let (rig, mut fs, ino) = volume_of_whole_blocks(MountOptions { policy, ..MountOptions::default() });
        let counts = |fs: &Fs<Chip>| [Cause::Host, Cause::Metadata].map(|cause| programs(fs, cause));
        let ([host, metadata], mut with_node) = (counts(&fs), 0);
        for number in 0..OVERWRITES {
            let ([_, before], time_ns) = (counts(&fs), BEGIN_NS + number as i64 * 4_000_001);
            let (offset, data) = (number % 64 * 4096, [number as u8; 4096]);
            fs.write(ino, offset, &data, time_ns).unwrap();
            date(&mut fs, ino, time_ns);
            fs.sync().unwrap();
            with_node += u64::from(counts(&fs)[1] > before);
            let options = MountOptions { read_only: true, ..rig.options.clone() };
            let mut found = Fs::mount(fs.chip().snapshot(), options).map_err(|(_, error)| error).unwrap();
            let left = [&mut fs, &mut found].map(|fs| times(fs.getattr(ino).unwrap()));
            assert_eq!(left, [[time_ns; 2]; 2], "overwrite {number}, now and after a cut");
            let mut bytes = [0; 4096];
            found.read(ino, offset, &mut bytes).unwrap();
            assert!(bytes == data);
        }
        let [host, metadata] = [counts(&fs)[0] - host, counts(&fs)[1] - metadata];
        // A summary for each block, and a node for the chunk in its first slot.
        assert!(host <= OVERWRITES + OVERWRITES / 63 + 1, "{host} programs for callers");
        assert!(with_node <= OVERWRITES / 63 + 2, "{with_node} of {OVERWRITES} overwrites with a node");
        assert!(metadata <= with_node + 8, "{metadata} programs of metadata");
    }
}

/// What the log tells of a file's times, however they were set beside its data.
#[test]
fn times_beside_data_are_the_same_after_a_cut() {
    const SET_NS: i64 = 1_500_000_000_789_012_345;
    let options = |policy, compression| MountOptions { policy, compression, ..MountOptions::default() };
    for options in [
        options(Policy::DEFAULT, Compression::None),
        options(Policy::DEFAULT, Compression::Lz4),
        options(Policy::NATIVE_ONLY, Compression::None),
    ] {
        let (rig, mut fs, ino) = volume_of_whole_blocks(options);
        let mut dice = 1u64;
        for step in 0..600 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let time_ns = SET_NS + step * 1_000_003;
            let (offset, len) =
                [(0, 4096), (4096, 4096), (8192, 8192), (5000, 100), (12288, 6000)][(dice >> 40) as usize % 5];
            match (dice >> 33) % 7 {
                0 => fs.sync().unwrap(),
                1 => date(&mut fs, ino, time_ns),
                // The one is of any time, the other of the call.
                2 => {
                    let changes = SetAttr { mtime_ns: Some(SET_NS), ctime_ns: Some(time_ns), ..SetAttr::default() };
                    fs.setattr(ino, changes, time_ns).map(|_| ()).unwrap();
                }
                3 => fs.punch(ino, offset, len as u64, time_ns).unwrap(),
                4 => fs.setattr(ino, SetAttr { size: Some(9000), ..SetAttr::default() }, time_ns).map(|_| ()).unwrap(),
                5 => fs.setattr(ino, SetAttr { mode: Some(0o600), ..SetAttr::default() }, time_ns).map(|_| ()).unwrap(),
                _ => {
                    fs.write(ino, offset, &vec![step as u8; len], time_ns).unwrap();
                    if dice >> 50 & 1 == 0 {
                        date(&mut fs, ino, time_ns);
                    }
                }
            }
            if step % 5 == 0 {
                let expected = times(fs.getattr(ino).unwrap());
                fs.sync().unwrap();
                fs = after_a_cut(fs, &rig);
                assert_eq!(times(fs.getattr(ino).unwrap()), expected, "step {step}");
            }
        }
    }
}

/// A chunk waits for its time in memory: nobody may see that, and no sync may leave it there.
#[test]
fn a_chunk_that_waits_is_read_counted_and_synced() {
    // A policy that writes at once what a caller gives.
    let options = MountOptions { policy: Policy::BASELINE, ..MountOptions::default() };
    let (rig, mut fs, ino) = volume_of_whole_blocks(options);
    let other = fs.create(ROOT_INO, b"other", FILE, BEGIN_NS).unwrap().ino;
    fs.sync().unwrap();
    let host = programs(&fs, Cause::Host);
    fs.write(ino, 100 * 4096, &[1; 4096], BEGIN_NS).unwrap();
    fs.write(other, 0, &[2; 4096], BEGIN_NS).unwrap();
    assert_eq!(programs(&fs, Cause::Host), host, "both wait");
    assert!(!fs.is_durable());
    let mut bytes = [0; 4096];
    fs.read(ino, 100 * 4096, &mut bytes).unwrap();
    assert!(bytes == [1; 4096]);
    let attr = fs.getattr(ino).unwrap();
    assert_eq!((attr.size, attr.blocks, attr.mtime_ns), (101 * 4096, 65 * 8, BEGIN_NS), "no time of the server's own");
    // The next chunk of the file lets the one before go, that of another file does not.
    fs.write(ino, 101 * 4096, &[3; 4096], BEGIN_NS).unwrap();
    assert_eq!(programs(&fs, Cause::Host), host + 1);
    fs.sync().unwrap();
    assert!(fs.is_durable());
    fs = after_a_cut(fs, &rig);
    for (ino, chunk, byte) in [(ino, 100, 1), (other, 0, 2), (ino, 101, 3)] {
        fs.read(ino, chunk * 4096, &mut bytes).unwrap();
        assert!(bytes == [byte; 4096]);
        assert_eq!(times(fs.getattr(ino).unwrap()), [BEGIN_NS; 2]);
    }
}

fn noise(seed: u64) -> Vec<u8> {
    Fill { seed, start: 0, texture: Texture::Noise }.bytes(4096)
}

/// A compressed chunk was to tell the time, and the one that took its place before the commit stood in the first slot of
/// a block: no record told it.
#[test]
fn a_time_stays_where_the_chunk_that_told_it_is_replaced() {
    let (rig, mut fs, ino) =
        volume_of_whole_blocks(MountOptions { compression: Compression::Lz4, ..MountOptions::default() });
    for round in 0..200 {
        let time_ns = BEGIN_NS + round * 4_000_001;
        fs.write(ino, 5 * 4096, &[3; 4096], time_ns).unwrap();
        date(&mut fs, ino, time_ns);
        fs.write(ino, 5 * 4096, &noise(round as u64), time_ns).unwrap();
        fs.sync().unwrap();
        let mut found = Fs::mount(fs.chip().snapshot(), rig.options.clone()).map_err(|(_, error)| error).unwrap();
        assert_eq!(times(found.getattr(ino).unwrap()), [time_ns; 2], "round {round}");
    }
}

/// The first chunk of the unit went to the first slot of another block, where its tag told no time, and the second counted.
#[test]
fn a_failed_program_takes_no_time_from_what_came_before() {
    let mut rig = Rig::small("flexfs-mlc", 42, 16, MountOptions { times: Times::OfCaller, ..MountOptions::default() });
    let rig = rig.as_mut().unwrap();
    rig.profile.geometry.page_bytes = 8192;
    rig.options.policy = Policy::BASELINE;
    let mut fs = volume(rig);
    let [a, b] = [b"a", b"b"].map(|name| fs.create(ROOT_INO, name, FILE, BEGIN_NS).unwrap().ino);
    fs.sync().unwrap();
    fs.chip_mut().faults_mut().fail_program_at(0);
    for (ino, time_ns) in [(a, BEGIN_NS + 1), (b, BEGIN_NS + 2)] {
        fs.write(ino, 0, &noise(ino), time_ns).unwrap();
        date(&mut fs, ino, time_ns);
    }
    assert_eq!(fs.chip().counters().program_failures, 1);
    let mut fs = after_a_cut(fs, rig);
    for (ino, time_ns) in [(a, BEGIN_NS + 1), (b, BEGIN_NS + 2)] {
        let mut bytes = [0; 4096];
        assert_eq!(fs.read(ino, 0, &mut bytes).unwrap(), 4096);
        assert!(bytes == *noise(ino));
        assert_eq!(times(fs.getattr(ino).unwrap()), [time_ns; 2]);
    }
}

/// A chunk in memory took space once more for each time it was written.
#[test]
fn a_waiting_chunk_on_a_full_volume_can_be_written_again() {
    let (_, mut fs, ino) = volume_of_whole_blocks(MountOptions { policy: Policy::BASELINE, ..MountOptions::default() });
    let mut chunk = 64;
    while fs.write(ino, chunk * 4096, &[1; 4096], BEGIN_NS).is_ok() {
        chunk += 1;
    }
    for byte in 2..9 {
        fs.write(ino, (chunk - 1) * 4096, &[byte; 4096], BEGIN_NS).unwrap();
    }
    fs.sync().unwrap();
    let mut bytes = [0; 4096];
    fs.read(ino, (chunk - 1) * 4096, &mut bytes).unwrap();
    assert!(bytes == [8; 4096]);
}
