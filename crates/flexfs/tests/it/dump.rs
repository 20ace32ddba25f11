//! `dump` and `info`: the structures they show are those of the volume.

use std::fs;
use std::io::Write;

use crate::common::{self, Mount, flexfs, image, output, run};
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_overview_an_inode_and_a_block_tell_of_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mount = Mount::new(&image);
    fs::write(mount.join("a file"), vec![7; 20_000]).unwrap();
    let file = fs::File::options().write(true).open(mount.join("a file")).unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::KEEP_SIZE, 1 << 20, 8192).unwrap();
    let ino = std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap());
    drop(file);
    mount.unmount();

    let overview: Value = serde_json::from_str(&run(flexfs(["dump", "--json"]).arg(&image))).unwrap();
    let blocks = overview["blocks"].as_array().unwrap();
    assert_eq!((blocks.len(), overview["anchor"]["clean"].as_bool()), (128, Some(true)));
    assert_eq!(overview["anchor"]["reserved_chunks"], 2);
    let (anchor, manager) = (&overview["anchor"], &overview["anchor"]["manager"]);
    assert_eq!((&manager["life_start_ns"], &manager["life_ns"]), (&anchor["created_ns"], &0.into()));
    let map = run(flexfs(["dump"]).arg(&image));
    for letter in ["aa", "S", "i", "clean; serial"] {
        assert!(map.contains(letter), "{letter}: {map}");
    }

    let entries = lines(&run(flexfs(["dump", "--json", "--ino", &ino.to_string()]).arg(&image)));
    assert!(entries.iter().all(|entry| entry["ino"] == ino));
    let data: Vec<&Value> = entries.iter().filter(|entry| entry["kind"] == "data").collect();
    assert_eq!(data.iter().map(|entry| entry["count"].as_u64().unwrap()).sum::<u64>(), 5 + 2);
    assert_eq!(data.last().unwrap()["slot"], Value::Null, "reserved space has no slot");
    let slot = data[0]["slot"].as_u64().unwrap();
    let block = (slot / 128).to_string();
    let slots = lines(&run(flexfs(["dump", "--json", "--block", &block]).arg(&image)));
    let tag = slots.iter().find(|line| line["slot"] == slot && line["state"] == "data").unwrap();
    assert_eq!((&tag["ino"], &tag["chunk"], &tag["bytes"]), (&ino.into(), &0.into(), &4096.into()));
    let text = run(flexfs(["dump", "--block", &block]).arg(&image));
    assert!(text.contains(&format!("inode {ino} chunk 0, 4096 bytes")) && text.contains("\"a file\""), "{text}");
    assert_eq!(run(flexfs(["dump", "--index"]).arg(&image)).lines().count(), {
        lines(&run(flexfs(["dump", "--index", "--json"]).arg(&image))).len()
    });
}

#[test]
fn the_spread_of_a_file_over_channels_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    run(flexfs(["mkfs", "--profile", "codesign-mlc8", "--size", "1GiB"]).arg(&image));
    let mount = Mount::new(&image);
    // Two files that are written in turn, a page each: every other channel has none of a file.
    let mut files = ["one", "two"].map(|name| fs::File::create(mount.join(name)).unwrap());
    for page in 0..16 {
        for file in &mut files {
            file.write_all(&[page; 4096]).unwrap();
            file.sync_all().unwrap();
        }
    }
    drop(files);
    mount.unmount();
    let found: Value = serde_json::from_str(&run(flexfs(["dump", "--json"]).arg(&image).arg("one"))).unwrap();
    assert_eq!(found["pages_by_channel"], serde_json::json!([4, 0, 4, 0, 4, 0, 4, 0]), "{found}");
    assert_eq!((found["imbalance"].as_f64(), found["file"].as_str()), (Some(2.0), Some("/one")));
    let text = run(flexfs(["dump"]).arg(&image).arg("/two"));
    assert!(text.contains("0, 4, 0, 4, 0, 4, 0, 4") && text.contains("2.000"), "{text}");
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    for (path, why) in [("absent", "/absent"), ("/", "not a regular file")] {
        let found = output(flexfs(["dump"]).arg(&image).arg(path));
        let said = String::from_utf8_lossy(&found.stderr);
        assert!(found.status.code() == Some(1) && said.contains(why) && said.contains("flash.img"), "{said}");
    }
    for (wrong, why) in [(["--block", "128"], "the last one is 127"), (["--ino", "77"], "there is no inode 77")] {
        let found = output(flexfs(["dump"]).args(wrong).arg(&image));
        let said = String::from_utf8_lossy(&found.stderr);
        assert!(found.status.code() == Some(1) && said.contains(why) && said.contains("flash.img"), "{said}");
    }
}

#[test]
fn info_shows_wear_health_and_what_was_programmed_for_what() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mount = Mount::new(&image);
    fs::write(mount.join("file"), vec![7; 1 << 20]).unwrap();
    mount.unmount();
    let info = common::info(&image);
    assert_eq!(info["health"]["state"], "good");
    assert!(info["programmed_bytes"]["host"].as_u64() >= Some(1 << 20), "{info}");
    assert!(info["programmed_bytes"]["metadata"].as_u64() > Some(0));
    let blocks: u64 =
        info["wear"]["histogram"].as_array().unwrap().iter().map(|range| range["blocks"].as_u64().unwrap()).sum();
    assert_eq!(blocks, 128);
    let text = run(flexfs(["info"]).arg(&image));
    assert!(text.contains("health") && text.contains("good;") && text.contains("##"), "{text}");
}
