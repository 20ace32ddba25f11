//! Large directories: a name costs little more in them, and a listing misses nothing.

use std::collections::BTreeMap;

use flexfs_core::{MountOptions, NewNode, ROOT_INO, kind};
use lab::bench::{Config, Workload, run};
use lab::content::mix;
use lab::crash::Rig;

#[test]
fn a_name_costs_little_more_in_a_very_large_directory() {
    let directory = run(Workload::Directory, &Config::default(), &mut |_, _| {}).unwrap().directory.unwrap();
    println!("{directory:?}");
    for growth in [directory.create, directory.lookup, directory.unlink] {
        assert!(growth.flash_ratio <= 1.5, "{directory:?}");
    }
}

#[test]
fn a_listing_has_once_whatever_is_there_all_the_while_names_come_and_go() {
    let options = MountOptions { cache_bytes: 256 << 10, ..MountOptions::default() };
    let rig = Rig::small("flexfs-mlc", 128, 32, options).unwrap();
    let mut fs = rig.format(rig.chip(1).unwrap(), 4096).unwrap().fs;
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let name = |kind: &str, number: u64| format!("{kind}{number}").into_bytes();
    for number in 0..4_000 {
        fs.create(ROOT_INO, &name("stays", number), node, 1).unwrap();
        fs.create(ROOT_INO, &name("goes", number), node, 1).unwrap();
    }
    let mut listed: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    let (mut cookie, mut turn) = (0, 0);
    loop {
        let before = cookie;
        fs.readdir(ROOT_INO, cookie, &mut |entry| {
            cookie = entry.cookie;
            *listed.entry(entry.name).or_default() += 1;
            !mix(cookie).is_multiple_of(7)
        })
        .unwrap();
        if cookie == before {
            break;
        }
        for _ in 0..3 {
            turn += 1;
            let _gone_already = fs.unlink(ROOT_INO, &name("goes", mix(turn) % 4_000), 2);
            fs.create(ROOT_INO, &name("comes", turn), node, 2).unwrap();
        }
    }
    assert!(turn > 1_000, "{turn} changes");
    for number in 0..4_000 {
        assert_eq!(listed.get(&name("stays", number)), Some(&1), "{number}");
    }
    assert!(listed.values().all(|&count| count == 1), "listed twice");
}
