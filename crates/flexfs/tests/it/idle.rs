//! What a mounted volume does while nobody uses it, as `flexfs info` of the image that is mounted tells.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::common::{Dice, Mount, assert_clean, flexfs, image, info, run, wait_for};

const FILE_BYTES: usize = 1 << 20;

/// Writes a file that fills SLC blocks.
fn fill(mount: &Mount) -> Vec<u8> {
    let content = Dice::new(28).bytes(FILE_BYTES);
    fs::write(mount.join("file"), &content).unwrap();
    run(Command::new("sync").arg("-f").arg(mount.join("file")));
    content
}

fn migrated(mounted: &Value) -> u64 {
    mounted["mounted"]["migrated_blocks"].as_u64().unwrap()
}

#[test]
fn slc_blocks_of_an_idle_mount_empty_by_themselves_as_info_of_the_live_mount_shows() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mount = Mount::new(&image);
    let content = fill(&mount);
    let filled = info(&image);
    assert_eq!(filled["mounted"]["mountpoint"], mount.path.to_str().unwrap());
    assert_eq!(filled["mounted"]["policy"], "default");
    assert!(filled["blocks"]["slc"].as_u64() >= Some(4), "{filled}");
    wait_for("the SLC region to empty", || info(&image)["blocks"]["native"].as_u64() >= Some(2));
    // A block that is still written to stays.
    wait_for("the last full SLC block", || info(&image)["blocks"]["slc"].as_u64() <= Some(1));
    let emptied = info(&image);
    assert!(migrated(&emptied) >= 4, "{emptied}");
    let live = &emptied["mounted"];
    assert!(live["idle_steps"]["migration"].as_u64() >= Some(240), "{live}");
    assert!(live["operations"]["programs"]["migration"].as_u64() >= Some(240), "{live}");
    assert!(live["headroom_blocks"].as_i64() > Some(0), "{live}");
    let text = run(flexfs(["info"]).arg(&image));
    for row in ["\nmounted ", "\nroom ", "\nidle steps ", "policy default", "SLC blocks emptied"] {
        assert!(text.contains(row), "{row}: {text}");
    }
    assert!(fs::read(mount.join("file")).unwrap() == content);
    mount.unmount();
    assert_eq!(info(&image)["mounted"], Value::Null);
    assert_clean(&image);
}

#[test]
fn a_volume_whose_server_is_killed_while_it_migrates_is_clean() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mount = Mount::new(&image);
    let content = fill(&mount);
    wait_for("a block to be under way", || {
        let live = info(&image);
        migrated(&live) >= 1 && live["mounted"]["under_way"] == "migration"
    });
    mount.kill();
    assert_clean(&image);
    let mount = Mount::new(&image);
    assert!(fs::read(mount.join("file")).unwrap() == content);
    mount.unmount();
    assert_clean(&image);
}

#[test]
fn a_read_only_mount_tells_its_figures_too() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::with(&image, &["--ro"]);
    assert_eq!(info(&image)["mounted"]["under_way"], Value::Null);
    mount.unmount();
}
