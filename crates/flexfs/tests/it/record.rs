//! Decisions recorded by a mount, and made again by the lab.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

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
