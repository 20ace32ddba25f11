//! Images that hold a volume over the drive of the co-design: all commands find the drive by themselves, and what only looks
//! changes nothing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{self, Mount, assert_clean, assert_same_tree, flexfs, info, is_one_line, mount_type, output, run};
use emulator::{Chip, Corruption};
use serde_json::Value;

const SIZE: &str = "64MiB";

fn make(dir: &Path, arguments: &[&str]) -> PathBuf {
    let image = dir.join("drive.img");
    let said = run(flexfs(["mkfs", "--over", "codesign", "--size", SIZE]).args(arguments).arg(&image));
    assert!(said.contains("a drive that maps only blocks (codesign), formatted, "), "{said}");
    image
}

/// A few files, one of several blocks.
fn tree(dir: &Path) -> PathBuf {
    let tree = dir.join("tree");
    let mut dice = common::Dice::new(5);
    for number in 0..40 {
        let below = tree.join(format!("d{}", number % 5));
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join(format!("file {number}")), dice.bytes(number * 997)).unwrap();
    }
    fs::write(tree.join("large"), dice.bytes(3 << 20)).unwrap();
    tree
}

fn copy(from: &Path, to: &Path) {
    assert!(std::process::Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success());
}

#[test]
fn a_volume_over_a_drive_is_mounted_killed_and_mounted_again() {
    let dir = tempfile::tempdir().unwrap();
    let (image, tree) = (make(dir.path(), &["--profile", "codesign-mlc8"]), tree(dir.path()));
    let mount = Mount::with(&image, &["-o", "nosync_image"]);
    assert_eq!(mount_type(&mount.path).as_deref(), Some("fuse.flexfs"));
    copy(&tree, &mount.join("tree"));
    let live = info(&image);
    let drive = &live["drive"];
    let free: Vec<u64> =
        drive["channels"].as_array().unwrap().iter().map(|of| of["free_blocks"].as_u64().unwrap()).collect();
    assert_eq!((drive["kind"].as_str(), free.len()), (Some("codesign"), 8), "{drive}");
    assert!(free.iter().sum::<u64>() < drive["physical_blocks"].as_u64().unwrap(), "{drive}");
    rustix::fs::fsync(fs::File::open(mount.join("tree/large")).unwrap()).unwrap();
    mount.kill();
    let mount = Mount::new(&image);
    assert!(fs::read(tree.join("large")).unwrap() == fs::read(mount.join("tree/large")).unwrap());
    fs::remove_dir_all(mount.join("tree")).unwrap();
    copy(&tree, &mount.join("tree"));
    assert_same_tree(&tree, &mount.join("tree"));
    mount.unmount();
    assert_clean(&image);
    let top = output(flexfs(["top", "--once"]).arg(&image));
    assert!(String::from_utf8_lossy(&top.stderr).contains("not mounted"), "{top:?}");
}

#[test]
fn files_go_in_and_out_of_a_drive_without_a_mount() {
    let dir = tempfile::tempdir().unwrap();
    let tree = tree(dir.path());
    let image = make(dir.path(), &["--from", tree.to_str().unwrap()]);
    let back = dir.path().join("back");
    run(flexfs(["get"]).arg(&image).arg("/").arg(&back));
    assert_same_tree(&tree, &back);
    run(flexfs(["put"]).arg(&image).arg(tree.join("large")).arg("/again"));
    run(flexfs(["mkdir"]).arg(&image).arg("/dir"));
    run(flexfs(["rm"]).arg(&image).arg("/large"));
    let listed = run(flexfs(["ls"]).arg(&image));
    assert!(listed.contains("again") && listed.contains("dir") && !listed.contains("large"), "{listed}");
    assert_clean(&image);
}

#[test]
fn info_and_dump_show_a_drive_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let image = make(dir.path(), &["--profile", "codesign-mlc8"]);
    let mount = Mount::new(&image);
    fs::write(mount.join("file"), vec![7; 1 << 20]).unwrap();
    rustix::fs::fsync(fs::File::open(mount.join("file")).unwrap()).unwrap();
    mount.kill();
    let before = fs::read(&image).unwrap();
    let told = info(&image);
    let (drive, chip) = (&told["drive"], &told["chip"]);
    // Of 8 blocks a die two are to spare.
    assert_eq!((&drive["logical_blocks"], &drive["physical_blocks"]), (&48.into(), &64.into()));
    let pages = chip["pages_per_block"].as_u64().unwrap();
    assert_eq!(drive["page_map_bytes"].as_u64().unwrap(), drive["map_bytes"].as_u64().unwrap() * pages);
    let text = run(flexfs(["info"]).arg(&image));
    for row in ["codesign, which maps only blocks", "a map of pages: 12,288, 48 KiB", "free blocks  by channel: "] {
        assert!(text.contains(row), "{row}: {text}");
    }
    let overview: Value = serde_json::from_str(&run(flexfs(["dump", "--json"]).arg(&image))).unwrap();
    assert_eq!(overview["drive"]["logical_blocks"], 48);
    let log = overview["blocks"].as_array().unwrap().iter().find(|block| block["used_as"] == "log").unwrap();
    let number = log["block"].as_u64().unwrap();
    let block = run(flexfs(["dump", "--json", "--block", &number.to_string()]).arg(&image));
    let block: Value = serde_json::from_str(block.lines().next().unwrap()).unwrap();
    let address = &block["address"];
    assert_eq!((&address["channel"], &address["block_on_die"]), (&(number % 8).into(), &(number / 8).into()));
    assert_eq!(address["physical_block"].as_u64().unwrap() % 8, number % 8, "it stays on its channel");
    let text = run(flexfs(["dump", "--block", &number.to_string()]).arg(&image));
    assert!(text.contains(&format!("address: channel {0}, die {0}, block", number % 8)), "{text}");
    output(flexfs(["fsck"]).arg(&image));
    assert!(fs::read(&image).unwrap() == before, "a look has changed the image");
}

/// The repair builds the volume again on the drive, not on the chip under it.
#[test]
fn a_volume_without_anchors_is_rebuilt_over_its_drive() {
    let dir = tempfile::tempdir().unwrap();
    let tree = tree(dir.path());
    let image = make(dir.path(), &["--from", tree.to_str().unwrap()]);
    let overview: Value = serde_json::from_str(&run(flexfs(["dump", "--json"]).arg(&image))).unwrap();
    let logical: Vec<u64> = serde_json::from_value(overview["anchor"]["anchor_blocks"].clone()).unwrap();
    let physical = logical.iter().filter_map(|block| {
        let told = run(flexfs(["dump", "--json", "--block", &block.to_string()]).arg(&image));
        let told: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
        told["address"]["physical_block"].as_u64().map(|physical| physical as u32)
    });
    let physical: Vec<u32> = physical.collect();
    let mut chip = Chip::open_image(&image, false).unwrap();
    for (block, page) in chip.written_pages().into_iter().filter(|(block, _)| physical.contains(block)) {
        chip.faults_mut().corrupt_page(block, page, Corruption::Uncorrectable).unwrap();
    }
    chip.sync_image().unwrap();
    drop(chip);
    let found = output(flexfs(["fsck", "-y"]).arg(&image));
    assert_eq!(found.status.code(), Some(1), "{found:?}");
    assert_eq!(info(&image)["drive"]["kind"], "codesign");
    let back = dir.path().join("back");
    run(flexfs(["get"]).arg(&image).arg("/").arg(&back));
    assert!(fs::read(tree.join("large")).unwrap() == fs::read(back.join("large")).unwrap());
    assert_clean(&image);
}

#[test]
fn what_cannot_be_over_a_drive_is_refused_in_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("drive.img");
    let refused = |arguments: &[&str], why: &str| {
        let found = output(flexfs(["mkfs", "--over", "codesign"]).args(arguments).arg(&image));
        let said = String::from_utf8_lossy(&found.stderr);
        assert!(!found.status.success() && said.contains(why), "{arguments:?}: {said}");
        assert!(is_one_line(&found.stderr) && !image.exists(), "{said}");
    };
    refused(&["--size", "252MiB", "--profile", "tlc-3d"], "a page has 128 spare bytes; over a drive 144 are needed");
    refused(&["--size", "7MiB"], "from 8MiB on; take --size 8MiB");
    refused(&["--size", "64MiB", "--ftl", "log-block"], "cannot be used with");
    let image = make(dir.path(), &[]);
    let recording = dir.path().join("decisions");
    let at = dir.path().join("mnt");
    fs::create_dir(&at).unwrap();
    let found = output(flexfs(["mount", "--record-decisions"]).arg(&recording).arg(&image).arg(&at));
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(said.contains("not over a drive") && !recording.exists(), "{said}");
}

#[test]
fn what_was_synced_over_a_drive_survives_kills() {
    let dir = tempfile::tempdir().unwrap();
    let image = make(dir.path(), &[]);
    for round in 0..5u8 {
        let mount = Mount::with(&image, &["-o", "nosync_image"]);
        let file = mount.join(format!("file {round}"));
        fs::write(&file, vec![round; 100_000]).unwrap();
        fs::File::open(&file).unwrap().sync_all().unwrap();
        for earlier in 0..=round {
            let found = fs::read(mount.join(format!("file {earlier}"))).unwrap();
            assert!(found == vec![earlier; 100_000], "file {earlier} in round {round}");
        }
        mount.kill();
    }
    assert_clean(&image);
}
