//! Volumes whose index and checkpoints are erased come back from their log: whole, and with nothing that was deleted in
//! its old place.
//!
//! The volumes have lived: collection has erased records of deletions while remains of what was deleted still stand.

use std::collections::BTreeSet;

use emulator::{Chip, Corruption};
use flexfs_core::{Doubt, Error, Fs, Ino, MountOptions, NewNode, Policy, ROOT_INO, Salvaged, kind};
use nand::{Cause, CellMode, Nand};
use torture::crash::{Record, Rig, Run, Tap, Torn};
use torture::model::{Body, ModelFs};
use torture::ops::{Call, Step, Supply, observe};

const NEW_ID: [u8; 16] = *b"salvaged volume!";

/// What a salvage is judged by.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Files, links and other leaves there were.
    files: usize,
    /// Of these, the ones that are there byte for byte, with all their attributes.
    same: usize,
    /// Of these, the ones in their old places.
    in_place: usize,
    /// What was not there before and is now, outside of `lost+found`.
    ghosts: usize,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.same += other.same;
        self.in_place += other.in_place;
        self.ghosts += other.ghosts;
    }
}

/// A volume with a random history, unmounted, and what it holds.
fn lived(rig: &Rig, seed: u64, steps: usize, disruptions: usize) -> (Chip, ModelFs) {
    let mut run = Run::new(rig.clone(), seed, 85, disruptions).unwrap();
    let mut supply = Supply::new(seed);
    (0..steps).for_each(|_| run.step(&supply.words()).unwrap());
    let (_, mut chip, history, _) = run.end().unwrap();
    chip.faults_mut().cancel_cut();
    (chip, history.live().clone())
}

/// Erases the blocks that are used so.
fn erase_all(chip: Chip, uses: &[&str], rig: &Rig) -> Chip {
    let options = MountOptions { read_only: true, ..rig.options.clone() };
    let fs = Fs::mount(chip, options).map_err(|(_, error)| error).unwrap();
    let blocks: Vec<u32> =
        fs.blocks().filter(|block| uses.contains(&block.used_as)).map(|block| block.number).collect();
    let mut chip = fs.into_chip();
    for block in blocks {
        chip.erase(block, Cause::Metadata).unwrap();
    }
    chip
}

fn salvage(chip: Chip, rig: &Rig) -> (Fs<Chip>, Salvaged) {
    let (mut fs, salvaged) =
        Fs::salvage(chip, NEW_ID, rig.options.clone(), &mut |_, _| {}).map_err(|(_, error)| error).unwrap();
    let report = fs.check().unwrap();
    assert!(report.findings.is_empty(), "{}", report.findings.join("\n"));
    let (chip, unmounted) = fs.unmount(rig.options.now_ns);
    unmounted.unwrap();
    let fs = Fs::mount(chip, rig.options.clone()).map_err(|(_, error)| error).unwrap();
    (fs, salvaged)
}

/// What can be reached from the root without `lost+found`.
fn in_place(model: &ModelFs) -> BTreeSet<Ino> {
    let mut reached = BTreeSet::from([ROOT_INO]);
    let mut stack = vec![ROOT_INO];
    while let Some(dir) = stack.pop() {
        let Some(Body::Dir { entries, .. }) = model.node(dir).map(|node| &node.body) else { continue };
        for (name, &child) in entries {
            if (dir, name.as_slice()) != (ROOT_INO, b"lost+found") && reached.insert(child) {
                stack.push(child);
            }
        }
    }
    reached
}

fn judge(found: &ModelFs, was: &ModelFs) -> Tally {
    let (here, there) = (in_place(found), in_place(was));
    Tally { ghosts: here.difference(&there).count(), ..kept(found, was, &there) }
}

/// How many files of these are as they were.
fn kept(found: &ModelFs, was: &ModelFs, which: &BTreeSet<Ino>) -> Tally {
    let (here, mut tally) = (in_place(found), Tally::default());
    for &ino in which.iter().filter(|&&ino| !was.node(ino).unwrap().is_dir()) {
        tally.files += 1;
        let same = found.node(ino).is_some_and(|node| node.digest(ino) == was.node(ino).unwrap().digest(ino));
        tally.same += usize::from(same);
        tally.in_place += usize::from(same && here.contains(&ino));
    }
    tally
}

fn rig(profile: &str, blocks: u32, pages: u32, policy: Policy) -> Rig {
    Rig::small(profile, blocks, pages, MountOptions { policy, ..MountOptions::default() }).unwrap()
}

/// Four lanes of each head, on eight dies.
fn on_lanes(policy: Policy) -> Rig {
    let options = MountOptions { policy, lanes: Some(4), ..MountOptions::default() };
    Rig::small("codesign-mlc8", 192, 16, options).unwrap()
}

/// Salvages volumes of some seeds without anchors and index.
fn salvage_all(rig: &Rig, seeds: std::ops::Range<u64>, steps: usize) -> Tally {
    let mut total = Tally::default();
    for seed in seeds {
        let (chip, was) = lived(rig, seed, steps, 6);
        let (mut fs, salvaged) = salvage(erase_all(chip, &["index", "anchor"], rig), rig);
        assert!(salvaged.renamed && fs.info().unwrap().volume_id[..12] == NEW_ID[..12]);
        total += judge(&observe(&mut fs).unwrap(), &was);
    }
    println!("{}, {:?}: {total:?}", rig.profile.name, rig.options.policy);
    total
}

#[test]
fn all_files_come_back_to_their_places_without_anchors_and_index() {
    let mut total = Tally::default();
    for policy in [Policy::BASELINE, Policy::NATIVE_ONLY] {
        total += salvage_all(&rig("flexfs-mlc", 128, 128, policy), 1..4, 6_000);
    }
    assert_eq!(total.ghosts, 0);
    assert!(total.in_place * 1000 >= total.files * 999, "{total:?}");
}

/// Where collection has erased what told of deletions, cuts and reservations.
#[test]
fn of_small_full_volumes_nearly_all_comes_back_and_nothing_that_was_deleted_to_its_place() {
    let mut total = Tally::default();
    for (profile, blocks, pages, policy) in [
        ("flexfs-mlc", 64, 32, Policy::BASELINE),
        ("flexfs-mlc", 64, 32, Policy::NATIVE_ONLY),
        ("flexfs-mlc", 64, 32, Policy::SLC_ONLY),
        ("tlc-3d", 42, 24, Policy::BASELINE),
    ] {
        total += salvage_all(&rig(profile, blocks, pages, policy), 1..4, 6_000);
    }
    assert_eq!(total.ghosts, 0);
    assert!(total.same * 100 >= total.files * 98 && total.in_place * 100 >= total.files * 95, "{total:?}");
}

/// A chip that lost its power.
struct Dead {
    chip: Chip,
    /// What was synced last, and which of it has not changed since.
    synced: ModelFs,
    unchanged: BTreeSet<Ino>,
    /// What was there at some time since then.
    since: BTreeSet<Ino>,
}

/// Steps of a history that are cut, and every how manieth operation in them.
const CUT_STEPS: usize = 100;
const CUT_EVERY: u64 = 7;

/// Chips that lost their power in the last steps of a history.
fn dead(rig: &Rig, seed: u64, steps: usize) -> Vec<Dead> {
    let mut twin = rig.format(Tap::new(rig.chip(seed).unwrap(), rig.faults.clone()), seed).unwrap();
    let shape = rig.shape(&mut twin, 85, 0).unwrap();
    let mut supply = Supply::new(seed);
    let mut synced = twin.history.live().clone();
    let (mut since, mut all) = (in_place(&synced), Vec::new());
    for step in 0..steps {
        let is_cut = step + CUT_STEPS >= steps;
        twin.fs.chip_mut().record(if is_cut { Record::Every(CUT_EVERY) } else { Record::Nothing });
        let drawn = shape.draw(&supply.words(), twin.history.live());
        match &drawn {
            Step::Call(call) => drop(twin.call(call).unwrap()),
            Step::Background(steps) => drop(twin.background(*steps).unwrap()),
            Step::Remount | Step::Cut(_) => continue,
        }
        let live = twin.history.live();
        let there = in_place(live);
        since.extend(&there);
        let digest = |model: &ModelFs, ino| model.node(ino).map(|node| node.digest(ino));
        let unchanged = in_place(&synced).into_iter().filter(|ino| there.contains(ino));
        let unchanged: BTreeSet<Ino> = unchanged.filter(|&ino| digest(&synced, ino) == digest(live, ino)).collect();
        let torn = twin.fs.chip_mut().take_torn().into_iter();
        all.extend(torn.map(|Torn { chip, .. }| {
            let (synced, unchanged, since) = (synced.clone(), unchanged.clone(), since.clone());
            Dead { chip, synced, unchanged, since }
        }));
        if matches!(drawn, Step::Call(Call::Sync)) {
            synced = twin.history.live().clone();
            since = in_place(&synced);
        }
    }
    all
}

/// The log of each head stands in four blocks at a time.
#[test]
fn of_volumes_of_four_lanes_nearly_all_comes_back() {
    let mut total = Tally::default();
    for policy in [Policy::DEFAULT, Policy::NATIVE_ONLY, Policy::SLC_ONLY] {
        total += salvage_all(&on_lanes(policy), 1..4, 6_000);
    }
    assert_eq!(total.ghosts, 0);
    assert!(total.same * 100 >= total.files * 98 && total.in_place * 100 >= total.files * 95, "{total:?}");
}

/// A native block in which syncs had left out every page that shares cells with another was taken for an SLC block, and what
/// stood where that has its summary was left out, so that older bytes came back instead. Four lanes leave out more.
#[test]
fn a_chip_that_lost_its_power_and_its_index_at_once_comes_back_with_what_was_synced() {
    let on_one_lane = vec![
        rig("flexfs-mlc", 64, 32, Policy::BASELINE),
        rig("flexfs-mlc", 64, 32, Policy::NATIVE_ONLY),
        rig("tlc-3d", 42, 24, Policy::BASELINE),
    ];
    let on_four = vec![on_lanes(Policy::DEFAULT), on_lanes(Policy::NATIVE_ONLY)];
    for (rigs, chips_least) in [(on_one_lane, 100), (on_four, 80)] {
        let (mut total, mut chips) = (Tally::default(), 0);
        for rig in rigs {
            for Dead { mut chip, synced, unchanged, since } in (1..4).flat_map(|seed| dead(&rig, seed, 1_500)) {
                chip.power_on();
                let (mut fs, _) = salvage(erase_all(chip, &["index", "anchor"], &rig), &rig);
                let found = observe(&mut fs).unwrap();
                total.ghosts += in_place(&found).difference(&since).count();
                total += kept(&found, &synced, &unchanged);
                chips += 1;
            }
            println!("{chips} chips: {total:?}");
        }
        assert!(chips > chips_least && total.ghosts == 0, "{chips} chips: {total:?}");
        assert!(total.same * 100 >= total.files * 98 && total.in_place * 100 >= total.files * 95, "{total:?}");
    }
}

#[test]
fn a_volume_whose_anchors_stand_keeps_its_identity() {
    let rig = rig("flexfs-mlc", 64, 32, Policy::BASELINE);
    let (chip, was) = lived(&rig, 3, 800, 0);
    let id =
        Fs::mount(chip.snapshot(), rig.options.clone()).map_err(|(_, error)| error).unwrap().info().unwrap().volume_id;
    let (mut fs, salvaged) = salvage(erase_all(chip, &["index"], &rig), &rig);
    let info = fs.info().unwrap();
    assert!(!salvaged.renamed && info.volume_id == id && info.label == "lab");
    let tally = judge(&observe(&mut fs).unwrap(), &was);
    assert!(tally.ghosts == 0 && tally.in_place == tally.files, "{tally:?}");
}

#[test]
fn a_salvage_that_is_cut_anywhere_can_be_done_again() {
    let rig = rig("flexfs-mlc", 32, 16, Policy::BASELINE);
    let (chip, was) = lived(&rig, 5, 400, 0);
    let chip = erase_all(chip, &["index"], &rig);
    for cut in 0.. {
        let mut chip = chip.snapshot();
        chip.faults_mut().cut_power_at(cut);
        let outcome = Fs::salvage(chip, NEW_ID, rig.options.clone(), &mut |_, _| {});
        let mut chip = match outcome {
            Ok((fs, _)) => {
                println!("{cut} cuts");
                assert!(cut > 3 && fs.chip().is_powered());
                break;
            }
            Err((chip, _)) => chip,
        };
        chip.power_on();
        chip.faults_mut().cancel_cut();
        let (mut fs, _) = salvage(chip, &rig);
        let tally = judge(&observe(&mut fs).unwrap(), &was);
        assert!(tally.ghosts == 0 && tally.in_place == tally.files, "cut at {cut}: {tally:?}");
    }
}

#[test]
fn a_chip_with_nothing_of_a_volume_is_refused_and_left_as_it_is() {
    let rig = rig("flexfs-mlc", 32, 16, Policy::BASELINE);
    let chip = rig.chip(1).unwrap();
    let operations = chip.operations();
    let Err((chip, error)) = Fs::salvage(chip, NEW_ID, rig.options, &mut |_, _| {}) else { panic!("there is nothing") };
    assert!(matches!(error, Error::NotFlexfs(_)), "{error}");
    assert_eq!(chip.operations(), operations);
}

/// Writes units of an SLC block to another, from its unit `at` on.
fn copy_units(chip: &mut Chip, from: u32, units: std::ops::Range<u32>, to: u32, at: u32) {
    let geometry = chip.geometry().clone();
    let (mut data, mut spare) = (vec![0; geometry.page_bytes as usize], vec![0; geometry.spare_bytes as usize]);
    for (unit, at) in units.zip(at..) {
        let page = chip.layout(CellMode::Slc).unit_pages(unit)[0];
        chip.read(from, page, 0, &mut data, &mut spare, Cause::Host).unwrap();
        chip.program(to, at, CellMode::Slc, &data, &spare, Cause::Host).unwrap();
    }
}

/// A block that held both an anchor and data (the work of an image with bad intentions) was kept for its data by a
/// salvage, and the next mount came across that anchor before the new one: where it pointed nothing was left.
#[test]
fn an_anchor_among_data_does_not_stand_in_the_way_of_the_new_one() {
    let rig = rig("flexfs-mlc", 32, 16, Policy::SLC_ONLY);
    let mut fs = rig.format(rig.chip(1).unwrap(), 1).unwrap().fs;
    let file = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let ino = fs.create(ROOT_INO, b"file", file, 1).unwrap().ino;
    fs.write(ino, 0, &[7; 30 * 4096], 1).unwrap();
    fs.sync().unwrap();
    let ino = fs.create(ROOT_INO, b"last", file, 1).unwrap().ino;
    fs.write(ino, 0, &[8; 10 * 4096], 1).unwrap();
    let (chip, unmounted) = fs.unmount(1);
    unmounted.unwrap();
    let fs = Fs::mount(chip, rig.options.clone()).map_err(|(_, error)| error).unwrap();
    let blocks_of = |wanted: &str| {
        fs.blocks().filter(|block| block.used_as == wanted).map(|block| block.number).collect::<Vec<u32>>()
    };
    let (anchors, log) = (blocks_of("anchor"), blocks_of("log"));
    let (&[zero, one], &[first, second, .., last]) = (&anchors[..], &log[..]) else { panic!("{anchors:?} {log:?}") };
    let mut chip = fs.into_chip();
    // The only anchor goes to block 2, with data behind it; data takes the place of both others.
    let written = chip.written_pages();
    let units = |block| written.iter().filter(|(written, _)| *written == block).count() as u32;
    assert!(units(last) < 8, "it is full");
    copy_units(&mut chip, one, units(one) - 1..units(one), 2, 0);
    for (from, to, at) in [(last, 2, 1), (first, zero, 0), (second, one, 0)] {
        if at == 0 {
            chip.erase(to, Cause::Host).unwrap();
        }
        copy_units(&mut chip, from, 0..units(from), to, at);
        chip.erase(from, Cause::Host).unwrap();
    }
    let (mut fs, salvaged) = salvage(chip, &rig);
    assert!(!salvaged.renamed, "the anchor was not found");
    let mut data = [0; 30 * 4096];
    let found = fs.lookup(ROOT_INO, b"file").unwrap().ino;
    assert!(fs.read(found, 0, &mut data).unwrap() == data.len() && data == [7; 30 * 4096]);
}

/// An older version of a chunk must not take the place of one that cannot be read.
#[test]
fn what_stood_in_an_unreadable_page_is_missing_and_not_as_it_was_before() {
    let rig = rig("flexfs-mlc", 32, 16, Policy::SLC_ONLY);
    let mut fs = rig.format(rig.chip(1).unwrap(), 1).unwrap().fs;
    let file = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let ino = fs.create(ROOT_INO, b"file", file, 1).unwrap().ino;
    let other = fs.create(ROOT_INO, b"other", file, 1).unwrap().ino;
    // Blocks are filled before and after, so that theirs has a summary.
    fs.write(other, 0, &[9; 20 * 4096], 1).unwrap();
    for version in 1..3 {
        fs.write(ino, 0, &[version; 4096], 1).unwrap();
        fs.sync().unwrap();
    }
    fs.write(other, 20 * 4096, &[9; 20 * 4096], 1).unwrap();
    let (chip, unmounted) = fs.unmount(1);
    unmounted.unwrap();
    let mut chip = erase_all(chip, &["index"], &rig);
    let (mut data, mut spare) = (vec![0; 4096], vec![0; 32]);
    for (block, page) in chip.written_pages() {
        chip.read(block, page, 0, &mut data, &mut spare, Cause::Host).unwrap();
        if data == [2; 4096] {
            chip.faults_mut().corrupt_page(block, page, Corruption::Uncorrectable).unwrap();
        }
    }
    let (mut fs, salvaged) = salvage(chip, &rig);
    assert_eq!(salvaged.moved, [(b"lost+found/file".to_vec(), Doubt::Incomplete { chunks: 1 })]);
    assert_eq!(fs.read(ino, 0, &mut data).unwrap(), 4096);
    assert_eq!(data, [0; 4096]);
    assert!(fs.lookup(ROOT_INO, b"other").is_ok());
}
