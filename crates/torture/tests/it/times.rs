//! The times that calls leave on files: in the order of the calls, or left to the caller, and the same after a cut.

use emulator::Chip;
use flexfs_core::{Attr, Fs, Ino, MountOptions, NewNode, ROOT_INO, SetAttr, Times, kind};
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
