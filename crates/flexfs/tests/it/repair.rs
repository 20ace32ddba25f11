//! `fsck -p` and `fsck -y`: what is safe takes nothing away; everything else saves what can be read, and tells the rest
//! file by file.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::forge::{ZERO_ID, forge};
use crate::common::{self, Dice, Mount, flexfs, output, run};
use emulator::{Chip, Corruption};
use nand::{Cause, Nand};
use serde_json::Value;

/// Runs a command that must end with this status; its standard output.
fn ends(status: i32, command: &mut Command) -> String {
    let output = output(command);
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{command:?}: {out}{said}");
    out.into_owned()
}

/// A tree of many files of all sizes.
fn tree(dir: &Path, files: u64) -> PathBuf {
    let tree = dir.join("tree");
    let mut dice = Dice::new(7);
    for number in 0..files {
        let below = tree.join(format!("d{}", number % 13)).join(format!("e{}", number % 7));
        fs::create_dir_all(&below).unwrap();
        let size = [0, 9, 700, 5000, 20_000, 70_000][(number % 6) as usize] + number as usize % 50;
        fs::write(below.join(format!("file {number}")), dice.bytes(size)).unwrap();
    }
    tree
}

/// Files by their paths.
fn files(tree: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = walkdir::WalkDir::new(tree).into_iter().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().is_file());
    files.map(|entry| (entry.path().strip_prefix(tree).unwrap().into(), fs::read(entry.path()).unwrap())).collect()
}

fn taken_out(image: &Path, to: PathBuf) -> BTreeMap<PathBuf, Vec<u8>> {
    run(flexfs(["get"]).arg(image).arg("/").arg(&to));
    files(&to)
}

/// Blocks of a volume that are used so.
fn blocks_of(image: &Path, uses: &[&str]) -> Vec<u32> {
    let overview: Value = serde_json::from_str(&run(flexfs(["dump", "--json"]).arg(image))).unwrap();
    let blocks = overview["blocks"].as_array().unwrap().iter();
    let used = blocks.filter(|block| uses.contains(&block["used_as"].as_str().unwrap()));
    used.map(|block| block["block"].as_u64().unwrap() as u32).collect()
}

fn erase(image: &Path, blocks: &[u32]) {
    let mut chip = Chip::open_image(image, false).unwrap();
    blocks.iter().for_each(|&block| chip.erase(block, Cause::Metadata).unwrap());
    chip.sync_image().unwrap();
}

/// Makes the page unreadable that a file's first chunk stands in.
fn damage_first_chunk(image: &Path, path: &str) {
    let listed = run(flexfs(["ls", "--json"]).arg(image).arg(path));
    let ino = serde_json::from_str::<Value>(&listed).unwrap()["entries"][0]["ino"].to_string();
    let index = run(flexfs(["dump", "--json", "--ino", &ino]).arg(image));
    let entries = index.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let slot = entries.filter(|entry| entry["kind"] == "data").find_map(|entry| entry["slot"].as_u64()).unwrap();
    let mut chip = Chip::open_image(image, false).unwrap();
    let stride = u64::from(chip.geometry().pages_per_block);
    let block = (slot / stride) as u32;
    let mode = chip.block_mode(block).unwrap();
    let page = chip.layout(mode).page((slot % stride) as u32).unwrap();
    chip.faults_mut().corrupt_page(block, page, Corruption::Uncorrectable).unwrap();
    chip.sync_image().unwrap();
}

fn image_of(dir: &Path, tree: &Path) -> PathBuf {
    let image = dir.join("flash.img");
    run(flexfs(["mkfs", "--size", "64MiB", "--from"]).arg(tree).arg(&image));
    image
}

#[test]
fn a_sound_image_is_left_as_it_is_by_every_repair() {
    let dir = tempfile::tempdir().unwrap();
    let image = image_of(dir.path(), &tree(dir.path(), 20));
    let before = run(flexfs(["dump", "--json"]).arg(&image));
    for flag in ["-n", "-p", "-a", "-y"] {
        ends(0, flexfs(["fsck", flag]).arg(&image));
        assert_eq!(run(flexfs(["dump", "--json"]).arg(&image)), before, "{flag}");
    }
    ends(16, flexfs(["fsck", "-p", "-y"]).arg(&image));
}

#[test]
fn an_image_whose_server_was_killed_is_recovered_and_that_is_said_once() {
    let dir = tempfile::tempdir().unwrap();
    let image = image_of(dir.path(), &tree(dir.path(), 20));
    let mount = Mount::new(&image);
    fs::write(mount.join("synced"), b"synced").unwrap();
    fs::File::open(mount.join("synced")).unwrap().sync_all().unwrap();
    mount.kill();
    assert_eq!(common::info(&image)["clean"], false);
    let said = ends(0, flexfs(["fsck", "-p"]).arg(&image));
    assert!(said.contains("had not been unmounted") && said.lines().last().unwrap().contains("clean"), "{said}");
    assert_eq!(common::info(&image)["clean"], true);
    assert!(!ends(0, flexfs(["fsck", "-p"]).arg(&image)).contains("unmounted"));
    assert_eq!(taken_out(&image, dir.path().join("after"))[Path::new("synced")], b"synced");
}

#[test]
fn wrong_counts_are_safe_to_correct() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    let tree = tree(dir.path(), 20);
    let counted = tree.join("counted");
    fs::write(&counted, b"one link").unwrap();
    fs::set_permissions(&counted, fs::Permissions::from_mode(0o4751)).unwrap();
    run(flexfs(["mkfs", "--size", "16MiB", "--volume-id", ZERO_ID, "--from"]).arg(&tree).arg(&image));
    let before = taken_out(&image, dir.path().join("before"));
    // An inode begins with its mode, and its links follow.
    let [mode, links] = [0o104_751_u32, 1].map(u32::to_le_bytes);
    forge(&image, &[mode, links].concat(), |bytes, at| bytes[at + 4] = 3);

    ends(4, flexfs(["fsck", "-n"]).arg(&image));
    let said = ends(1, flexfs(["fsck", "-p"]).arg(&image));
    assert!(said.contains("wrong counts were corrected") && said.lines().last().unwrap().contains("clean"), "{said}");
    ends(0, flexfs(["fsck", "-n"]).arg(&image));
    let listed: Value = serde_json::from_str(&run(flexfs(["ls", "--json"]).arg(&image).arg("/counted"))).unwrap();
    assert_eq!(listed["entries"][0]["nlink"], 1, "{listed}");
    assert!(taken_out(&image, dir.path().join("after")) == before);
}

#[test]
fn without_index_and_checkpoints_all_files_come_back_and_none_that_was_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let tree = tree(dir.path(), 1500);
    let image = image_of(dir.path(), &tree);
    run(flexfs(["rm", "-r"]).arg(&image).arg("/d3"));
    run(flexfs(["rm"]).arg(&image).arg("/d1/e1/file 1"));
    run(flexfs(["put"]).arg(&image).arg(tree.join("d5")).arg("/again"));
    let before = taken_out(&image, dir.path().join("before"));
    erase(&image, &blocks_of(&image, &["index", "anchor"]));

    let refused = output(flexfs(["fsck", "-n"]).arg(&image));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(8) && said.contains("flexfs fsck -y") && common::is_one_line(&refused.stderr),
        "{said}"
    );
    let report: Value = serde_json::from_str(&ends(1, flexfs(["fsck", "-y", "--json"]).arg(&image))).unwrap();
    assert_eq!((&report["repair"]["kind"], &report["repair"]["new_identity"]), (&"rebuilt".into(), &true.into()));
    ends(0, flexfs(["fsck"]).arg(&image));
    let after = taken_out(&image, dir.path().join("after"));
    let same = before.iter().filter(|(path, bytes)| after.get(*path) == Some(bytes)).count();
    println!("{same} of {} files are the same, in their places; {report}", before.len());
    assert!(same * 1000 >= before.len() * 999);
    let new: Vec<&PathBuf> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert!(new.iter().all(|path| path.starts_with("lost+found")), "{new:?}");
}

#[test]
fn a_file_that_lost_a_page_goes_to_lost_and_found_and_the_rest_stays() {
    let dir = tempfile::tempdir().unwrap();
    let image = image_of(dir.path(), &tree(dir.path(), 40));
    let mut before = taken_out(&image, dir.path().join("before"));
    damage_first_chunk(&image, "/d5/e5/file 5");

    ends(4, flexfs(["fsck", "-p"]).arg(&image));
    assert!(taken_out_but_one(&image, dir.path()), "what is safe takes nothing away");
    let said = ends(1, flexfs(["fsck", "-y"]).arg(&image));
    assert!(said.contains(": /lost+found/d5/e5/file 5: one of its pages is missing"), "{said}");
    assert!(said.lines().last().unwrap().contains("clean"), "{said}");
    ends(0, flexfs(["fsck"]).arg(&image));
    let mut after = taken_out(&image, dir.path().join("after"));
    let lost = after.remove(Path::new("lost+found/d5/e5/file 5")).unwrap();
    let was = before.remove(Path::new("d5/e5/file 5")).unwrap();
    assert!(lost.len() == was.len() && lost[4096..] == was[4096..] && lost[..4096] == [0; 4096]);
    assert!(before == after);
}

/// Whether all but one file of forty can still be taken out.
fn taken_out_but_one(image: &Path, dir: &Path) -> bool {
    let to = dir.join("but one");
    ends(1, flexfs(["get"]).arg(image).arg("/").arg(&to));
    files(&to).len() == 39
}

#[test]
fn an_image_with_nothing_on_it_is_not_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    let image = image_of(dir.path(), &tree(dir.path(), 3));
    erase(&image, &(0..128).collect::<Vec<u32>>());
    let found = output(flexfs(["fsck", "-y"]).arg(&image));
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(found.status.code() == Some(8) && said.contains("nothing on it is of a volume"), "{said}");
    assert!(Chip::open_image(&image, true).unwrap().written_pages().is_empty());
}

/// A check of a chip with anchors and nothing else advised to copy the rest; the salvage said that the chip held no volume
/// at all.
#[test]
fn of_an_image_with_anchors_alone_that_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let image = image_of(dir.path(), &tree(dir.path(), 3));
    erase(&image, &blocks_of(&image, &["index", "log"]));
    let said = ends(4, flexfs(["fsck"]).arg(&image));
    assert!(said.contains("the check could read nothing of it; `flexfs fsck -y"), "{said}");
    let found = output(flexfs(["fsck", "-y"]).arg(&image));
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(found.status.code() == Some(8) && said.contains("it has anchors, but nothing of a log"), "{said}");
    assert!(!Chip::open_image(&image, true).unwrap().written_pages().is_empty());
}
