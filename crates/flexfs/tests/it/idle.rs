//! What a mounted volume does while nobody uses it, as `flexfs info` of the image that is mounted tells.

use std::fs::{self, File};
use std::io::Write;
use std::process::Command;
use std::thread;
use std::time::Duration;

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
    let mount = Mount::with(&image, &["--policy", "la"]);
    let content = fill(&mount);
    let filled = info(&image);
    assert_eq!(filled["mounted"]["mountpoint"], mount.path.to_str().unwrap());
    assert_eq!(filled["mounted"]["policy"], "la");
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
    for row in ["\nmounted ", "\nroom ", "\nidle steps ", "policy la", "SLC blocks emptied"] {
        assert!(text.contains(row), "{row}: {text}");
    }
    assert!(fs::read(mount.join("file")).unwrap() == content);
    mount.unmount();
    assert_eq!(info(&image)["mounted"], Value::Null);
    assert_clean(&image);
}

/// With a battery the mount has time enough for hundreds of pages, as the test above shows.
#[test]
fn a_mount_that_waits_for_a_charger_migrates_with_it_and_not_on_a_battery() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let policy = "charge:t_wait=100ms:t_trig=1ms";
    let mount = Mount::with(&image, &["--policy", policy, "-o", "power=battery"]);
    let content = fill(&mount);
    wait_for("what was written to become durable", || info(&image)["blocks"]["slc"].as_u64() >= Some(4));
    thread::sleep(Duration::from_secs(2));
    assert_eq!(migrated(&info(&image)), 0);
    mount.unmount();
    let mount = Mount::with(&image, &["--policy", policy, "-o", "power=charger"]);
    // A mount that nobody writes to changes nothing.
    fs::write(mount.join("another"), "a").unwrap();
    wait_for("the SLC region to empty", || migrated(&info(&image)) >= 3);
    assert!(fs::read(mount.join("file")).unwrap() == content);
    mount.unmount();
    assert_clean(&image);
}

#[test]
fn a_volume_whose_server_is_killed_while_it_migrates_is_clean() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mount = Mount::with(&image, &["--policy", "la"]);
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
    assert_eq!(info(&image)["mounted"]["mountpoint"], mount.path.to_str().unwrap());
    mount.unmount();
}

#[test]
fn a_mount_tells_the_parameters_of_its_policy() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::with(&image, &["-o", "policy=la:n_p=64:t_wait=2s"]);
    assert_eq!(info(&image)["mounted"]["policy"], "la:t_wait=2s:n_p=64");
    mount.unmount();
    let refused = flexfs(["mount", "-o", "policy=bm:n_p=64"]).arg(&image).arg(dir.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("n_p is of a policy that allocates"));
}

/// Pages of data that were programmed natively, and in SLC cells.
fn placed(mounted: &Value) -> [u64; 2] {
    ["native", "slc"].map(|cells| mounted["mounted"]["host_programs"][cells].as_u64().unwrap())
}

/// Four synced MiB, which are a window of 1,024 pages, every few seconds: too little idle time to migrate them all.
#[test]
fn a_mount_with_dynamic_allocation_places_as_large_a_share_natively_as_it_tells() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mount = Mount::with(&image, &["--policy", "da", "-o", "timing=chip"]);
    let content = Dice::new(29).bytes(1 << 20);
    for burst in 0..4 {
        let before = placed(&info(&image));
        for file in 0..4 {
            let mut file = File::create(mount.join(format!("{burst}-{file}"))).unwrap();
            file.write_all(&content).and_then(|()| file.sync_all()).unwrap();
        }
        let told = info(&image);
        let [native, slc] = placed(&told).iter().zip(before).map(|(now, before)| now - before).collect::<Vec<_>>()[..]
        else {
            panic!("{told}");
        };
        let (share, alpha) = (native as f64 / (native + slc) as f64, told["mounted"]["alpha"].as_f64().unwrap());
        assert!(native + slc >= 1024 && (share - (1.0 - alpha)).abs() <= 0.03, "burst {burst}: {share}, α {alpha}");
        thread::sleep(Duration::from_secs(5));
    }
    for name in ["0-0", "3-3"] {
        assert!(fs::read(mount.join(name)).unwrap() == content, "{name}");
    }
    mount.unmount();
    assert_clean(&image);
}
