//! Mounts in trouble: what is said of it, once, where it is said, and what is left when it is over.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{self, Dice, Disk, Mount, assert_clean, flexfs, image, output, run, umount, wait_for};
use emulator::Chip;
use nand::Nand;
use serde_json::Value;

/// Writes until it is told that there is no room under the image.
fn fill(path: &Path) {
    let kept = Dice::new(1).bytes(1 << 20);
    fs::write(path.join("kept"), &kept).unwrap();
    File::open(path.join("kept")).unwrap().sync_all().unwrap();
    fs::write(path.join("large"), Dice::new(2).bytes(16 << 20)).ok();
    for _ in 0..3 {
        let failed = File::open(path.join("large")).and_then(|file| file.sync_all()).and_then(|()| {
            // The kernel tells of a page that it could not hand over once.
            fs::create_dir(path.join("more"))
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::StorageFull);
    }
    assert!(fs::read(path.join("kept")).unwrap() == kept);
}

#[test]
fn a_full_disk_under_the_image_is_told_once_and_costs_nothing_that_was_synced() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::new(dir.path(), "8m");
    let image = image(&disk.0, "64MiB");
    let mut mount = Mount::with(&image, &["-o", "commit=0.1"]);
    fill(&mount.path);
    std::thread::sleep(std::time::Duration::from_secs(1));
    umount(&mount.path);
    assert_eq!(mount.wait().code(), Some(1));
    let said = mount.complaints();
    let lines: Vec<&str> = said.lines().collect();
    let [full, ended] = lines[..] else { panic!("{said}") };
    assert!(full.contains("no space is left on the file system that holds this image"), "{said}");
    assert!(full.contains("unmount and mount again") && full.contains(image.to_str().unwrap()), "{said}");
    assert!(ended.contains("cannot unmount") && ended.contains("free some"), "{said}");

    // As it advises.
    run(Command::new("mount").args(["-o", "remount,size=64m"]).arg(&disk.0));
    let mount = Mount::new(&image);
    assert!(fs::read(mount.join("kept")).unwrap() == Dice::new(1).bytes(1 << 20));
    fs::create_dir(mount.join("more")).unwrap();
    mount.unmount();
    assert_clean(&image);
}

#[test]
fn whoever_needs_a_mounted_image_is_told_where_it_is_mounted() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::new(&image);
    let why = format!("in use: it is mounted on {0}; `umount {0}` first", mount.path.display());
    for arguments in [&["ls"][..], &["fsck"], &["mkfs", "--force", "--size", "16MiB"]] {
        let output = output(flexfs(arguments).arg(&image));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && common::is_one_line(&output.stderr) && said.contains(&why), "{said}");
    }
    mount.unmount();
}

#[test]
fn without_a_mount_a_full_disk_is_told_in_the_same_words() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::new(dir.path(), "8m");
    let image = image(&disk.0, "64MiB");
    let large = dir.path().join("large");
    fs::write(&large, Dice::new(2).bytes(16 << 20)).unwrap();
    let output = output(flexfs(["put"]).arg(&image).arg(&large).arg("/"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && common::is_one_line(&output.stderr), "{said}");
    assert!(said.contains("no space is left on the file system that holds the image"), "{said}");
}

#[test]
fn in_the_background_complaints_go_on_into_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::new(dir.path(), "8m");
    let image = image(&disk.0, "64MiB");
    let (path, log) = (dir.path().join("mnt"), dir.path().join("log"));
    fs::create_dir(&path).unwrap();
    let mut command = flexfs(["mount", "-b"]);
    command.arg(&image).arg(&path).stderr(File::create(&log).unwrap()).stdin(Stdio::null());
    assert_eq!(run(&mut command), "");
    fill(&path);
    umount(&path);
    let said = || fs::read_to_string(&log).unwrap();
    wait_for("the last word", || said().contains("cannot unmount"));
    assert_eq!(said().lines().filter(|line| line.contains("unmount and mount again")).count(), 1, "{}", said());
}

/// A chip whose blocks endure ten erases, formatted and filled so often that most of them are used.
#[test]
fn a_chip_that_comes_near_its_end_is_announced_under_the_mount_and_by_info() {
    let dir = tempfile::tempdir().unwrap();
    let (chip, image) = (dir.path().join("chip.toml"), dir.path().join("flash.img"));
    let text =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../emulator/profiles/flexfs-mlc.toml")).unwrap();
    fs::write(&chip, text.replace("native_erases = 10_000", "native_erases = 10")).unwrap();
    run(flexfs(["mkfs", "--size", "16MiB", "--profile"]).arg(&chip).arg(&image));
    let health = || common::info(&image)["health"].clone();
    assert_eq!(health()["state"], "good");
    let file = dir.path().join("file");
    for round in 0.. {
        if health()["life_used"].as_f64().unwrap() >= 0.8 {
            break;
        }
        assert!(round < 100, "it does not wear: {}", health());
        fs::write(&file, Dice::new(round).bytes(4 << 20)).unwrap();
        run(flexfs(["put"]).arg(&image).arg(&file).arg("/"));
    }
    assert_eq!(health()["state"], "worn");
    let mut mount = Mount::new(&image);
    umount(&mount.path);
    assert_eq!(mount.wait().code(), Some(0));
    let said = mount.complaints();
    assert!(said.contains("have another chip ready") && said.lines().count() == 1, "{said}");
}

/// Marks free blocks of an image as bad, but for so many.
fn spoil(image: &Path, all_but: usize) {
    let overview: Value = serde_json::from_str(&run(flexfs(["dump", "--json"]).arg(image))).unwrap();
    let blocks = overview["blocks"].as_array().unwrap().iter();
    let free: Vec<u32> = blocks
        .filter(|block| block["used_as"] == "free" && !block["bad"].as_bool().unwrap_or(false))
        .map(|block| block["block"].as_u64().unwrap() as u32)
        .collect();
    let mut chip = Chip::open_image(image, false).unwrap();
    for &block in free.iter().rev().take(free.len() - all_but) {
        chip.mark_bad(block).unwrap();
    }
    chip.sync_image().unwrap();
}

#[test]
fn a_chip_that_runs_out_of_good_blocks_says_so_and_can_be_emptied_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let kept = Dice::new(1).bytes(1 << 20);
    fs::write(dir.path().join("kept"), &kept).unwrap();
    run(flexfs(["put"]).arg(&image).arg(dir.path().join("kept")).arg("/"));
    let state = || common::info(&image)["health"]["state"].clone();

    spoil(&image, 10);
    let mut mount = Mount::new(&image);
    let full =
        (0..1000).find_map(|round| fs::write(mount.join(format!("{round}")), Dice::new(round).bytes(20_000)).err());
    assert_eq!(full.unwrap().kind(), ErrorKind::StorageFull);
    assert!(mount.next_complaint().contains("make room, and have another chip ready"));
    umount(&mount.path);
    assert_eq!((mount.wait().code(), state()), (Some(0), "short of blocks".into()));

    // Full, and with hardly a block more, files can be removed, and room is there again.
    spoil(&image, 3);
    let mount = Mount::new(&image);
    assert_eq!(fs::write(mount.join("more"), b"more").unwrap_err().kind(), ErrorKind::StorageFull);
    (0..).map_while(|round| fs::remove_file(mount.join(format!("{round}"))).ok()).last().expect("there were files");
    fs::write(mount.join("more"), b"more").unwrap();
    assert!(fs::read(mount.join("kept")).unwrap() == kept);
    mount.unmount();
    assert_clean(&image);
}
