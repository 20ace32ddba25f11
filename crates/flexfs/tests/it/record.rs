//! Decisions and traces recorded by a mount, and replayed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags};

use crate::common::{Dice, Mount, assert_clean, flexfs, image, info, output, run, wait_for};

/// Files of all kinds of calls, one that is overwritten again and again, and time for migration to begin.
fn use_it(mount: &Mount, image: &Path) {
    fs::create_dir(mount.join("dir")).unwrap();
    for name in 0..6 {
        let mut file = File::create(mount.join(format!("dir/{name}"))).unwrap();
        file.write_all(&Dice::new(name).bytes(700_000)).and_then(|()| file.sync_all()).unwrap();
    }
    let hot = File::options().write(true).open(mount.join("dir/0")).unwrap();
    for round in 0..60 {
        hot.write_all_at(&Dice::new(round).bytes(8192), round % 20 * 8192).and_then(|()| hot.sync_all()).unwrap();
    }
    drop(hot);
    fs::rename(mount.join("dir/1"), mount.join("moved")).unwrap();
    fs::remove_file(mount.join("dir/2")).unwrap();
    fs::copy(mount.join("moved"), mount.join("copy")).unwrap();
    assert_eq!(fs::read_dir(mount.join("dir")).unwrap().count(), 4);
    wait_for("two blocks to be migrated", || info(image)["mounted"]["migrated_blocks"].as_u64() >= Some(2));
    fs::write(mount.join("last"), Dice::new(99).bytes(300_000)).unwrap();
    assert!(fs::read(mount.join("copy")).unwrap() == Dice::new(1).bytes(700_000));
}

#[test]
fn what_a_mount_decided_is_decided_again_on_a_copy_of_its_image() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let (before, recording) = (dir.path().join("before.img"), dir.path().join("busy.jsonl"));
    fs::copy(&image, &before).unwrap();
    let policy = "la:t_wait=200ms:t_trig=2ms:n_p=512";
    let mount = Mount::with(&image, &["--policy", policy, "--record-decisions", recording.to_str().unwrap()]);
    use_it(&mount, &image);
    mount.unmount();
    assert_clean(&image);

    let told: serde_json::Value =
        serde_json::from_str(&run(flexfs(["replay", "--json"]).arg(&recording).arg(&before))).unwrap();
    assert!(told["programs"].as_u64() >= Some(1_200) && told["jobs"].as_u64() >= Some(20), "{told}");
    let text = fs::read_to_string(&recording).unwrap();
    assert!(text.contains(" migration") && text.contains("\"Rename\""), "events and causes are in it");
    // On another chip, or with a decision changed, it is not the same.
    let changed = dir.path().join("changed.jsonl");
    fs::write(&changed, text.replacen(" migration", " host", 1)).unwrap();
    for (recording, image) in [(&recording, &image), (&changed, &before)] {
        let refused = output(flexfs(["replay"]).arg(recording).arg(image));
        assert_eq!(refused.status.code(), Some(1));
        assert!(String::from_utf8(refused.stderr).unwrap().contains("replayed"), "{}", recording.display());
    }
}

#[test]
fn decisions_that_follow_contents_are_not_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let recording = dir.path().join("busy.jsonl");
    let arguments = ["mount", "--compress", "lz4", "--record-decisions"];
    let refused = output(flexfs(arguments).arg(&recording).arg(&image).arg(dir.path()));
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("not of compression"));
}

/// What MobiGen recorded of an application.
const RECORDED: &[u8] = include_bytes!("../../../lab/fixtures/facebook.mobigen.gz");

/// Paths below a directory: kind and permissions are the first, then the length of a file, and how many names it has.
fn tree(root: &Path) -> BTreeMap<String, (String, u64, u64)> {
    let mut found = BTreeMap::new();
    for entry in walkdir::WalkDir::new(root).min_depth(1) {
        let entry = entry.unwrap();
        let (path, meta) = (entry.path().strip_prefix(root).unwrap(), entry.metadata().unwrap());
        let target = fs::read_link(entry.path()).map(|target| target.display().to_string()).unwrap_or_default();
        let (len, names) = if meta.is_file() { (meta.len(), meta.nlink()) } else { (0, 0) };
        found.insert(path.display().to_string(), (format!("{:?} {target}", meta.file_type()), len, names));
    }
    found
}

/// Names of all kinds, some of them there before the mount is recorded.
fn name_things(root: &Path) {
    fs::create_dir_all(root.join("a/b/c")).unwrap();
    fs::write(root.join("a/b/c/file"), [7; 10_000]).unwrap();
    fs::write(root.join("a/other"), [8; 100]).unwrap();
    fs::hard_link(root.join("a/b/c/file"), root.join("a/second name")).unwrap();
    symlink("b/c/file", root.join("a/link")).unwrap();
}

fn change_names(root: &Path) {
    fs::rename(root.join("a/b"), root.join("moved")).unwrap();
    fs::remove_file(root.join("a/second name")).unwrap();
    fs::hard_link(root.join("moved/c/file"), root.join("a/third")).unwrap();
    fs::write(root.join("moved/c/new"), [1; 5000]).unwrap();
    fs::rename(root.join("moved/c/new"), root.join("a/other")).unwrap();
    let file = File::options().write(true).open(root.join("a/third")).unwrap();
    file.set_len(70_000).unwrap();
    fs::copy(root.join("a/third"), root.join("a/copy")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    let (one, other) = (root.join("empty"), root.join("a/other"));
    rustix::fs::renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
    fs::create_dir(root.join("gone")).unwrap();
    fs::remove_dir(root.join("gone")).unwrap();
}

#[test]
fn a_trace_recorded_on_a_mount_and_replayed_makes_the_same_tree() {
    let dir = tempfile::tempdir().unwrap();
    let [phone, recorded] = ["phone.trace", "recorded.trace"].map(|name| dir.path().join(name));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(RECORDED).read_to_end(&mut bytes).unwrap();
    fs::write(&phone, bytes).unwrap();
    let first = image(dir.path(), "64MiB");
    let mount = Mount::new(&first);
    name_things(&mount.path);
    mount.unmount();

    let mount = Mount::with(&first, &["--record", recorded.to_str().unwrap()]);
    run(flexfs(["replay", "--no-pauses"]).arg(&phone).arg(&mount.path));
    change_names(&mount.path);
    let asked = tree(&mount.path);
    mount.unmount();
    assert_clean(&first);
    assert!(asked.len() > 25, "{asked:?}");

    let other = tempfile::tempdir().unwrap();
    let second = image(other.path(), "64MiB");
    let mount = Mount::new(&second);
    run(flexfs(["replay", "--no-pauses"]).arg(&recorded).arg(&mount.path));
    assert_eq!(tree(&mount.path), asked);
    mount.unmount();
    assert_clean(&second);

    let arguments = ["replay", "--no-pauses", "--size", "64MiB", "--policy", "bm", "--json"];
    let told: serde_json::Value = serde_json::from_str(&run(flexfs(arguments).arg(&recorded))).unwrap();
    let lines = fs::read_to_string(&recorded).unwrap().lines().count() as u64;
    assert_eq!(told["requests"].as_u64(), Some(lines - 1), "{told}");
    assert!(told["flash_s"].as_f64() > Some(0.1) && told["slc_pages"].as_u64() > Some(100), "{told}");
}

#[test]
fn a_replay_in_a_directory_stays_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let (inside, outside, trace) = (dir.path().join("inside"), dir.path().join("outside"), dir.path().join("t.trace"));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    let lines = format!(
        "{{\"flexfs_trace\":1,\"time_unit\":\"us\"}}\n\
         {{\"at\":0,\"op\":\"symlink\",\"file\":\"way\",\"target\":{:?}}}\n\
         {{\"at\":1,\"op\":\"write\",\"file\":\"way/file\",\"offset\":0,\"bytes\":5}}\n",
        outside.display().to_string()
    );
    fs::write(&trace, lines).unwrap();
    let refused = output(flexfs(["replay"]).arg(&trace).arg(&inside));
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("way/file, request 2"));
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_trace_that_cannot_be_read_or_an_image_in_place_of_a_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (image, trace) = (image(dir.path(), "16MiB"), dir.path().join("t.trace"));
    let refused = |arguments: &[&Path]| {
        let refused = output(flexfs(["replay"]).args(arguments));
        assert_eq!(refused.status.code(), Some(1));
        String::from_utf8(refused.stderr).unwrap()
    };
    fs::write(&trace, "{\"flexfs_trace\":1,\"time_unit\":\"us\"}\n{\"at\":0,\"op\":\"jump\"}\n").unwrap();
    let said = refused(&[&trace]);
    assert!(said.contains("t.trace: line 2") && said.contains("jump"), "{said}");
    fs::write(&trace, "{\"flexfs_trace\":1,\"time_unit\":\"us\"}\n").unwrap();
    assert!(refused(&[&trace, &image]).contains("not a directory"));
}
