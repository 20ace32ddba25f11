//! A failing medium: programs and erases that fail cost no data, damaged pages give `EIO` for what they held and for
//! nothing else, and wrong bytes are never returned.

use emulator::{BitErrors, Chip, Corruption, FaultConfig};
use flexfs_core::{Error, Fs, Ino, MountOptions, NewNode, Policy, ROOT_INO, SetAttr, kind};
use nand::Nand;
use torture::content::{Fill, Texture, mix};
use torture::crash::{Rig, Run, VolumeOver};
use torture::files::{MediaRun, media_run};
use torture::ops::Supply;

const STEPS: usize = 6_000;

fn rig(policy: Policy) -> Rig {
    let options = MountOptions { policy, cache_bytes: 128 << 10, ..MountOptions::default() };
    Rig::small("flexfs-mlc", 96, 16, options).unwrap()
}

#[test]
fn correctable_bit_errors_and_factory_bad_blocks_change_nothing() {
    let mut rig = rig(Policy::BASELINE);
    rig.faults = FaultConfig { bit_errors: BitErrors::Correctable, ..FaultConfig::power_cuts(5) };
    let mut chip = rig.chip(5).unwrap();
    let bad = chip.faults_mut().scatter_bad_blocks(0.05).unwrap();
    assert!(!bad.is_empty());
    let mut run = Run::on(rig, chip, 5, 70, 5).unwrap();
    let mut supply = Supply::new(5);
    for _ in 0..STEPS {
        run.step(&supply.words()).unwrap();
    }
    run.finish().unwrap();
}

const FILES: u64 = 12;
const CHUNKS: u64 = 9;
const CHUNK_BYTES: usize = 4096;

fn contents(file: u64) -> Vec<u8> {
    Fill { seed: mix(file), start: 0, texture: Texture::Noise }.bytes(CHUNKS as usize * CHUNK_BYTES)
}

/// An unmounted chip that holds a few files.
fn filled_chip(policy: Policy) -> (Rig, Chip) {
    let rig = rig(policy);
    let mut fs = rig.format(rig.chip(1).unwrap(), 1).unwrap().fs;
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    for file in 0..FILES {
        let ino = fs.create(ROOT_INO, format!("file{file}").as_bytes(), node, 1).unwrap().ino;
        fs.write(ino, 0, &contents(file), 1).unwrap();
        fs.sync().unwrap();
    }
    let (chip, result) = fs.unmount(1);
    result.unwrap();
    (rig, chip)
}

/// What reading everything back gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Readable {
    chunks: u64,
    lost_chunks: u64,
    lost_files: u64,
}

/// Reads every chunk; wrong bytes, or an error other than `EIO`, panic.
fn read_all(fs: &mut Fs<Chip>) -> Readable {
    let mut readable = Readable::default();
    for file in 0..FILES {
        let ino: Ino = match fs.lookup(ROOT_INO, format!("file{file}").as_bytes()) {
            Ok(attr) => attr.ino,
            Err(error) => {
                assert_eq!(error.errno(), 5, "file {file}: {error}");
                readable.lost_files += 1;
                continue;
            }
        };
        let expected = contents(file);
        for (index, chunk) in expected.chunks(CHUNK_BYTES).enumerate() {
            let mut buf = [0; CHUNK_BYTES];
            match fs.read(ino, (index * CHUNK_BYTES) as u64, &mut buf) {
                Ok(count) => {
                    assert!(count == CHUNK_BYTES && buf == *chunk, "file {file} chunk {index}: wrong bytes returned");
                    readable.chunks += 1;
                }
                Err(error) => {
                    assert_eq!(error.errno(), 5, "file {file} chunk {index}: {error}");
                    readable.lost_chunks += 1;
                }
            }
        }
    }
    readable
}

fn mount(chip: Chip, rig: &Rig) -> Result<Fs<Chip>, Error> {
    Fs::mount(chip, rig.options.clone()).map_err(|(_, error)| error)
}

/// Damages each programmed page in turn, each on a copy of its own, and counts what was lost by it.
fn damage_each_page(policy: Policy, corruption: Corruption) -> Vec<Readable> {
    let (rig, chip) = filled_chip(policy);
    let damage = |(block, page)| {
        let mut copy = chip.snapshot();
        copy.faults_mut().corrupt_page(block, page, corruption).unwrap();
        let mut fs = mount(copy, &rig).unwrap_or_else(|e| panic!("block {block} page {page}: mount: {e}"));
        read_all(&mut fs)
    };
    chip.written_pages().into_iter().map(damage).collect()
}

#[test]
fn a_damaged_page_gives_eio_for_what_it_held_and_wrong_bytes_never() {
    for (policy, corruption) in [
        (Policy::BASELINE, Corruption::FlipBits(3)),
        (Policy::BASELINE, Corruption::FlipSpareBits(2)),
        (Policy::NATIVE_ONLY, Corruption::Uncorrectable),
        (Policy::NATIVE_ONLY, Corruption::FlipBits(700)),
    ] {
        let losses = damage_each_page(policy, corruption);
        let none = losses.iter().filter(|loss| loss.lost_chunks + loss.lost_files == 0).count();
        let one = losses.iter().filter(|loss| (loss.lost_chunks, loss.lost_files) == (1, 0)).count();
        let more = losses.len() - none - one;
        println!("{policy:?} {corruption:?}: {} pages: {none} cost nothing, {one} a chunk, {more} more", losses.len());
        if !matches!(corruption, Corruption::FlipSpareBits(_)) {
            assert!(one as u64 >= FILES * CHUNKS, "data pages: {one} cost one chunk");
        }
        assert!(more * 10 < losses.len(), "too much is lost with one page");
    }
}

/// An unmount that was cut after the first of its two clean anchors left a volume that counted as at rest: nothing wrote
/// the second one, and with that page was lost what says where everything stands.
#[test]
fn a_volume_at_rest_has_two_pages_that_say_where_everything_stands() {
    let (rig, chip) = filled_chip(Policy::BASELINE);
    let (mut cuts, mut alone) = (0, 0);
    loop {
        let mut fs = mount(chip.snapshot(), &rig).unwrap();
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        fs.create(ROOT_INO, b"new", node, 2).unwrap();
        fs.sync().unwrap();
        fs.chip_mut().faults_mut().cut_power_at(cuts);
        let (mut chip, outcome) = fs.unmount(2);
        if outcome.is_ok() {
            break;
        }
        chip.power_on();
        let fs = mount(chip, &rig).unwrap();
        let clean = fs.anchor().unwrap().clean;
        let (chip, outcome) = fs.unmount(3);
        outcome.unwrap();
        let pair = mount(chip.snapshot(), &rig).unwrap().anchor().unwrap().pair;
        for (block, page) in chip.written_pages().into_iter().filter(|(block, _)| pair.contains(block)) {
            let mut chip = chip.snapshot();
            chip.faults_mut().corrupt_page(block, page, Corruption::Uncorrectable).unwrap();
            let mut fs = mount(chip, &rig).unwrap();
            assert!(fs.anchor().unwrap().clean, "cut {cuts}, without block {block} page {page}: there is no other");
            fs.lookup(ROOT_INO, b"new").unwrap();
        }
        (cuts, alone) = (cuts + 1, alone + u32::from(clean));
    }
    assert!(cuts > 3 && alone > 0, "{cuts} cuts, {alone} left a clean anchor");
}

#[test]
fn damage_under_a_mounted_volume_is_told_and_counted() {
    let (rig, chip) = filled_chip(Policy::BASELINE);
    let mut fs = mount(chip, &rig).unwrap();
    for (block, page) in fs.chip().written_pages() {
        fs.chip_mut().faults_mut().corrupt_page(block, page, Corruption::FlipBits(1)).unwrap();
    }
    let readable = read_all(&mut fs);
    assert!(readable.lost_chunks + readable.lost_files > 0, "{readable:?}");
    assert!(fs.info().unwrap().corrupt_reads > 0);
}

/// Where a part of a file begins, within a chunk, and how long it is.
const PART: (u64, u64) = (CHUNK_BYTES as u64 + 500, 4 * CHUNK_BYTES as u64);

type Cut = dyn Fn(&mut Fs<Chip>, Ino) -> Result<(), Error>;

/// A range that ended in an unreadable chunk was punched, zeroed or cut off up to there, and then refused.
#[test]
fn what_damage_keeps_from_being_cut_is_left_as_it_was() {
    let (rig, chip) = filled_chip(Policy::BASELINE);
    let cuts: [&Cut; 3] = [
        &|fs, ino| fs.punch(ino, PART.0, PART.1, 2),
        &|fs, ino| fs.zero_range(ino, PART.0, PART.1, false, 2),
        &|fs, ino| fs.setattr(ino, SetAttr { size: Some(PART.0), ..SetAttr::default() }, 2).map(drop),
    ];
    let mut refused = [0; 3];
    for (block, page) in chip.written_pages() {
        for (cut, refused) in cuts.iter().zip(&mut refused) {
            let mut fs = mount(chip.snapshot(), &rig).unwrap();
            let ino = fs.lookup(ROOT_INO, b"file3").unwrap().ino;
            fs.chip_mut().faults_mut().corrupt_page(block, page, Corruption::Uncorrectable).unwrap();
            if let Err(error) = cut(&mut fs, ino) {
                assert_eq!(error.errno(), 5, "{error}");
                *refused += 1;
                read_all(&mut fs);
            }
        }
    }
    assert_eq!(refused, [2, 2, 1], "an unreadable chunk at an edge, and nothing else, is in the way");
}

/// A copy of a damaged file was refused after a part of it was there.
#[test]
fn a_copy_that_meets_damage_tells_how_far_it_came() {
    let rig = rig(Policy::BASELINE);
    let mut fs = rig.format(rig.chip(1).unwrap(), 1).unwrap().fs;
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let [long, copy] = [&b"long"[..], b"copy"].map(|name| fs.create(ROOT_INO, name, node, 1).unwrap().ino);
    let bytes = Fill { seed: 1, start: 0, texture: Texture::Noise }.bytes(40 * CHUNK_BYTES);
    fs.write(long, 0, &bytes, 1).unwrap();
    let (chip, unmounted) = fs.unmount(1);
    unmounted.unwrap();
    let mut in_part = 0;
    for (block, page) in chip.written_pages() {
        let mut fs = mount(chip.snapshot(), &rig).unwrap();
        fs.chip_mut().faults_mut().corrupt_page(block, page, Corruption::Uncorrectable).unwrap();
        let mut copied = 0;
        let outcome = loop {
            match fs.copy_range((long, copied), (copy, copied), bytes.len() as u64 - copied, 2) {
                Ok(more) if more > 0 => copied += more,
                outcome => break outcome.map_err(|error| error.errno()),
            }
        };
        let mut found = vec![0; copied as usize];
        if copied > 0 {
            assert_eq!(fs.read(copy, 0, &mut found).unwrap() as u64, copied);
            assert_eq!(fs.getattr(copy).unwrap().size, copied);
        }
        assert!(found == bytes[..copied as usize] && (outcome == Ok(0)) == (found.len() == bytes.len()), "{outcome:?}");
        assert!(matches!(outcome, Ok(0) | Err(5)), "{outcome:?}");
        in_part += u32::from(outcome == Err(5) && copied > 0);
    }
    assert!(in_part > 0, "some of the pages held what is copied later");
}

#[test]
fn a_chip_with_many_damaged_pages_never_makes_it_panic() {
    let (rig, chip) = filled_chip(Policy::BASELINE);
    let mut mounted = 0;
    for seed in 0..300u64 {
        let mut copy = chip.snapshot();
        for number in 0..1 + mix(seed) % 60 {
            let at = mix(seed << 16 | number);
            let (block, page) = (at as u32 % copy.geometry().blocks, (at >> 32) as u32 % 16);
            let corruption = [Corruption::FlipBits(1), Corruption::Uncorrectable, Corruption::FlipBits(9000)];
            copy.faults_mut().corrupt_page(block, page, corruption[(at >> 60) as usize % 3]).unwrap();
        }
        if let Ok(mut fs) = mount(copy, &rig) {
            mounted += 1;
            read_all(&mut fs);
            let _found = fs.check();
        }
    }
    println!("{mounted} of 300 badly damaged volumes still mounted");
    assert!(mounted > 0);
}

/// Seeded histories on failing media, and programs that migrate and that collect in all of them, at least: on small volumes
/// there are few in each.
const RUNS: u64 = 200;
const MIGRATED_MIN: u64 = 7_500;
const COLLECTED_MIN: u64 = 750;

#[test]
fn failing_blocks_and_bit_errors_lose_nothing_and_damage_never_reads_wrong() {
    let mut all = MediaRun::default();
    for seed in 0..RUNS {
        all += media_run(VolumeOver::Chip, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    println!("{RUNS} runs: {all:?}");
    assert!(all.failures > RUNS && all.corrected_bits > 1_000 * RUNS && all.refused_reads > RUNS / 2, "{all:?}");
    assert!(all.written_beside > RUNS / 2, "{all:?}");
    assert!(all.tally.migrated > MIGRATED_MIN && all.tally.collected > COLLECTED_MIN, "{all:?}");
}
