//! Chips in image files: what survives, what is refused, and that an image behaves as RAM does.

use std::{
    fs,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::common::{barrier, chip, contents, pattern, profile, program, read};
use emulator::{Chip, EmulatorError, FaultConfig, Profile, TornKind};
use nand::CellMode::{Native, Slc};
use nand::{Cause, Nand, NandError};
use tempfile::TempDir;

fn place() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("chip.img");
    (dir, path)
}

fn allocated_bytes(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

#[test]
fn an_image_survives_its_user_without_a_sync() {
    let (_dir, path) = place();
    let mut chip = Chip::create_image(&path, &profile(), 42).unwrap();
    chip.erase(1, Cause::Gc).unwrap();
    chip.erase(1, Cause::Gc).unwrap();
    program(&mut chip, 1, 0, Slc).unwrap();
    program(&mut chip, 2, 3, Native).unwrap();
    chip.mark_bad(5).unwrap();
    barrier(&mut chip);
    chip.advance_to_ns(77_000_000_000);
    for _ in 0..9 {
        read(&mut chip, 2, 3).unwrap();
    }
    let now_ns = chip.now_ns();
    drop(chip);
    let mut chip = Chip::open_image(&path, false).unwrap();
    assert_eq!((chip.seed(), chip.now_ns(), chip.profile().clone()), (42, now_ns, profile()));
    assert_eq!((chip.erase_count(1), chip.block_mode(1), chip.block_mode(2)), (2, Some(Slc), Some(Native)));
    assert_eq!((chip.next_unit(2), chip.read_count(2)), (4, 9));
    assert!(chip.is_bad(5) && !chip.is_bad(4));
    assert_eq!(read(&mut chip, 1, 0).unwrap(), pattern(1000, 4096));
    assert_eq!(read(&mut chip, 2, 3).unwrap(), pattern(2003, 4096));
    assert!(matches!(program(&mut chip, 2, 3, Native), Err(NandError::Misuse { .. })));
    chip.sync_image().unwrap();
}

#[test]
fn a_torn_page_stays_torn_after_reopening() {
    let (_dir, path) = place();
    let mut chip = Chip::create_image(&path, &profile(), 1).unwrap();
    chip.faults_mut().set(FaultConfig { torn: TornKind::Weak, ..FaultConfig::default() });
    chip.faults_mut().cut_power_at(0);
    program(&mut chip, 0, 0, Native).unwrap_err();
    drop(chip);
    let mut chip = Chip::open_image(&path, false).unwrap();
    program(&mut chip, 0, 0, Native).unwrap();
    assert!(read(&mut chip, 0, 0).is_err());
}

#[test]
fn an_image_has_one_writer_or_many_readers() {
    let (_dir, path) = place();
    let mut chip = Chip::create_image(&path, &profile(), 1).unwrap();
    program(&mut chip, 0, 0, Native).unwrap();
    for read_only in [false, true] {
        assert!(matches!(Chip::open_image(&path, read_only), Err(EmulatorError::InUse { .. })));
    }
    assert!(matches!(Chip::replace_image(&path, &profile(), 1), Err(EmulatorError::InUse { .. })));
    drop(chip);
    let mut first = Chip::open_image(&path, true).unwrap();
    let _second = Chip::open_image(&path, true).unwrap();
    assert!(matches!(Chip::open_image(&path, false), Err(EmulatorError::InUse { .. })));
    assert_eq!(read(&mut first, 0, 0).unwrap(), pattern(0, 4096));
    assert!(matches!(program(&mut first, 0, 1, Native), Err(NandError::Medium { errno: 30, .. })));
    assert!(matches!(first.erase(0, Cause::Gc), Err(NandError::Medium { errno: 30, .. })));
    first.sync_image().unwrap();
}

/// A new chip in a file: page 0 of block 0 is programmed, and page 1 reads well once.
fn chip_with_unstable_page(path: &Path) -> Chip {
    let mut chip = Chip::create_image(path, &profile(), 1).unwrap();
    program(&mut chip, 0, 0, Native).unwrap();
    chip.faults_mut().corrupt_page(0, 1, emulator::Corruption::Unstable).unwrap();
    chip
}

#[test]
fn reading_only_changes_no_byte_of_the_file() {
    let (_dir, path) = place();
    drop(chip_with_unstable_page(&path));
    let before = fs::read(&path).unwrap();
    let mut chip = Chip::open_image(&path, true).unwrap();
    assert!(read(&mut chip, 0, 1).is_ok() && read(&mut chip, 0, 1).is_err());
    drop(chip);
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn forgotten_reads_change_no_byte_and_later_programs_last() {
    let (_dir, path) = place();
    drop(chip_with_unstable_page(&path));
    let before = fs::read(&path).unwrap();
    let mut chip = Chip::open_image(&path, false).unwrap();
    assert!(read(&mut chip, 0, 1).is_ok() && read(&mut chip, 0, 1).is_err());
    assert!(fs::read(&path).unwrap() == before, "reads alone are written at sync and close");
    chip.forget_reads();
    assert!(read(&mut chip, 0, 0).is_ok());
    chip.sync_image().unwrap();
    drop(chip);
    assert!(fs::read(&path).unwrap() == before);
    let mut chip = Chip::open_image(&path, false).unwrap();
    chip.forget_reads();
    program(&mut chip, 2, 3, Native).unwrap();
    drop(chip);
    let mut chip = Chip::open_image(&path, true).unwrap();
    assert_eq!(read(&mut chip, 2, 3).unwrap(), pattern(2003, 4096));
    assert!(read(&mut chip, 0, 1).is_ok(), "nobody read it");
}

/// What a read used up is written at the close, as the read is.
#[test]
fn an_unstable_page_that_was_read_is_lost_after_a_close() {
    let (_dir, path) = place();
    let mut chip = chip_with_unstable_page(&path);
    assert!(read(&mut chip, 0, 1).is_ok());
    drop(chip);
    assert!(read(&mut Chip::open_image(&path, false).unwrap(), 0, 1).is_err());
}

#[test]
fn erasing_makes_the_file_sparse_again() {
    let (_dir, path) = place();
    let mut chip = Chip::create_image(&path, &profile(), 1).unwrap();
    let empty = allocated_bytes(&path);
    for unit in 0..128 {
        program(&mut chip, 0, unit, Native).unwrap();
    }
    let full = allocated_bytes(&path);
    assert!(full >= empty + (512 << 10));
    chip.erase(0, Cause::Gc).unwrap();
    barrier(&mut chip);
    assert!(allocated_bytes(&path) < empty + (64 << 10), "where the host can punch holes");
    assert!(read(&mut chip, 0, 0).unwrap().iter().all(|&byte| byte == 0xFF));
}

#[test]
fn an_existing_file_is_replaced_only_when_asked() {
    let (_dir, path) = place();
    fs::write(&path, b"precious").unwrap();
    let error = Chip::create_image(&path, &profile(), 1).unwrap_err();
    assert!(matches!(error, EmulatorError::Exists { .. }));
    assert!(error.to_string().contains("chip.img"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    drop(Chip::replace_image(&path, &profile(), 1).unwrap());
    drop(Chip::open_image(&path, false).unwrap());
}

/// Opens `path` both ways and checks that it is refused, names the file, and is left as it was.
fn refused(path: &Path) -> EmulatorError {
    let before = fs::read(path).unwrap();
    assert!(Chip::open_image(path, true).is_err());
    let error = Chip::open_image(path, false).unwrap_err();
    assert!(error.to_string().contains(path.file_name().unwrap().to_str().unwrap()), "{error}");
    assert!(fs::read(path).unwrap() == before, "a refused file is left alone");
    error
}

#[test]
fn files_that_are_no_whole_image_are_refused_and_left_alone() {
    let (dir, path) = place();
    let missing = Chip::open_image(&path, false).unwrap_err();
    assert!(matches!(missing, EmulatorError::Missing { .. }), "{missing}");
    assert!(!path.exists());
    assert!(matches!(Chip::open_image(dir.path(), true), Err(EmulatorError::Foreign { .. })));
    drop(Chip::create_image(&path, &profile(), 1).unwrap());
    let good = fs::read(&path).unwrap();
    let with = |offset: usize, bytes: &[u8]| {
        let mut bad = good.clone();
        bad[offset..offset + bytes.len()].copy_from_slice(bytes);
        fs::write(&path, bad).unwrap();
        refused(&path)
    };
    assert!(matches!(with(0, b"EXT2FS!!"), EmulatorError::Foreign { .. }));
    assert!(matches!(with(0, &[0; 8]), EmulatorError::HalfMade { .. }));
    assert!(matches!(with(0, &[0; 8192]), EmulatorError::HalfMade { .. }));
    assert!(matches!(with(8, &[2, 0, 0, 0]), EmulatorError::Version { version: 2, supported: 1, .. }));
    assert!(matches!(with(30, &[9]), EmulatorError::Damaged { .. }));
    assert!(matches!(with(120, b"#"), EmulatorError::Damaged { .. }));
    assert!(matches!(with(80, &[0xFF; 4]), EmulatorError::Damaged { .. } | EmulatorError::Short { .. }));
    let header_bytes = u64::from_le_bytes(good[16..24].try_into().unwrap()) as usize;
    assert!(matches!(with(header_bytes, &[1]), EmulatorError::Damaged { .. }), "the clock");
    let record = with(header_bytes + 4096 + 256 * 3 + 9, &[1]).to_string();
    assert!(record.contains("block 3"), "{record}");
    for length in [0, 5, 90, 200, header_bytes, good.len() - 1] {
        fs::write(&path, &good[..length]).unwrap();
        let error = refused(&path);
        match length {
            0 => assert!(matches!(error, EmulatorError::HalfMade { .. }), "{error}"),
            5 => assert!(matches!(error, EmulatorError::Foreign { .. }), "{error}"),
            _ => assert!(matches!(error, EmulatorError::Short { .. }), "{length}: {error}"),
        }
    }
    fs::write(&path, vec![b'x'; 100_000]).unwrap();
    assert!(matches!(refused(&path), EmulatorError::Foreign { .. }));
}

#[test]
fn an_image_that_cannot_be_made_leaves_no_file() {
    let (dir, _) = place();
    let path = dir.path().join("nowhere").join("chip.img");
    assert!(matches!(Chip::create_image(&path, &profile(), 1), Err(EmulatorError::Io { .. })));
    assert!(!path.exists());
}

#[test]
fn a_snapshot_of_an_image_is_in_ram_and_apart() {
    let (_dir, path) = place();
    let mut chip = Chip::create_image(&path, &profile(), 1).unwrap();
    program(&mut chip, 3, 0, Native).unwrap();
    let mut copy = chip.snapshot();
    chip.erase(3, Cause::Gc).unwrap();
    assert_eq!(read(&mut copy, 3, 0).unwrap(), pattern(3000, 4096));
    drop(chip);
    program(&mut copy, 3, 1, Native).unwrap();
}

#[test]
fn the_data_of_a_large_image_stay_in_the_file() {
    let (_dir, path) = place();
    let profile = Profile::default().with_capacity(16 << 30).unwrap();
    let mut chip = Chip::create_image(&path, &profile, 1).unwrap();
    program(&mut chip, 32_767, 0, Native).unwrap();
    drop(chip);
    assert_eq!(fs::metadata(&path).unwrap().len() >> 30, 16);
    assert!(allocated_bytes(&path) < 32 << 20);
    let mut chip = Chip::open_image(&path, false).unwrap();
    assert_eq!(read(&mut chip, 32_767, 0).unwrap(), pattern(32_767_000, 4096));
}

const VICTIM: &str = "EMULATOR_TEST_VICTIM_IMAGE";

/// What the victim makes once it has erased something.
fn sign_of_work(image: &Path) -> PathBuf {
    image.with_extension("worked")
}

/// Not a test by itself: writes to the image until it is killed. Page `u` of block `b` holds `pattern(b * 1000 + u)`.
#[test]
fn victim_of_the_kill_test() {
    let Some(path) = std::env::var_os(VICTIM).map(PathBuf::from) else { return };
    let mut chip = Chip::open_image(&path, false).unwrap();
    loop {
        for block in 0..8 {
            chip.erase(block, Cause::Gc).unwrap();
            fs::write(sign_of_work(&path), "").unwrap();
            for unit in 0..128 {
                program(&mut chip, block, unit, Native).unwrap();
            }
        }
    }
}

#[test]
fn a_killed_process_leaves_the_state_between_two_operations() {
    let (_dir, path) = place();
    drop(Chip::create_image(&path, &profile(), 1).unwrap());
    let mut erases = 0;
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "image::victim_of_the_kill_test"])
            .env(VICTIM, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // A little longer than until it works, to hit another moment each round.
        while !sign_of_work(&path).exists() {
            assert!(child.try_wait().unwrap().is_none(), "the victim ended by itself");
            std::thread::sleep(Duration::from_micros(100));
        }
        std::thread::sleep(Duration::from_micros(900 + 7_300 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(sign_of_work(&path)).unwrap();
        let mut chip = Chip::open_image(&path, false).unwrap();
        let counts: Vec<u32> = chip.erase_counts().collect();
        assert!(counts.iter().sum::<u32>() > erases, "the victim worked");
        erases = counts.iter().sum();
        for block in 0..8 {
            let next = chip.next_unit(block);
            for page in 0..128 {
                let expected = if page < next { pattern(block * 1000 + page, 4096) } else { vec![0xFF; 4096] };
                assert!(read(&mut chip, block, page).unwrap() == expected, "block {block} page {page} of {next}");
            }
        }
    }
}

#[test]
fn a_full_disk_is_reported_and_the_image_stays_whole() {
    let (_dir, path) = place();
    let mut chip = Chip::create_image(&path, &profile(), 1).unwrap();
    program(&mut chip, 0, 0, Native).unwrap();
    chip.faults_mut().set(FaultConfig { medium_errno: Some(28), ..FaultConfig::default() });
    assert!(matches!(program(&mut chip, 0, 1, Native), Err(NandError::Medium { errno: 28, .. })));
    assert!(matches!(chip.erase(0, Cause::Gc), Err(NandError::Medium { errno: 28, .. })));
    drop(chip);
    let mut chip = Chip::open_image(&path, false).unwrap();
    assert_eq!(read(&mut chip, 0, 0).unwrap(), pattern(0, 4096));
    program(&mut chip, 0, 1, Native).unwrap();
}

#[test]
fn stale_bytes_in_a_slot_mean_nothing() {
    let (_dir, path) = place();
    drop(Chip::create_image(&path, &profile(), 1).unwrap());
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_all_at(&[0x5A; 4096], length - 8192).unwrap();
    drop(file);
    let mut opened = Chip::open_image(&path, false).unwrap();
    assert!(contents(&mut opened) == contents(&mut chip()));
}
