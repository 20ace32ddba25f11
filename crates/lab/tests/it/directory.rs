//! Directories: a name costs little more in a large one, a listing misses nothing, and a rename can leave a whiteout.

use std::collections::BTreeMap;

use flexfs_core::{Attr, Error, MountOptions, NewNode, ROOT_INO, RenameMode, kind};
use lab::bench::{Config, Workload, run};
use torture::content::mix;
use torture::crash::Rig;

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

#[test]
fn a_rename_leaves_a_whiteout_at_the_old_name_which_a_remount_finds() {
    let options = MountOptions::default();
    let rig = Rig::small("flexfs-mlc", 64, 16, options).unwrap();
    let mut fs = rig.format(rig.chip(1).unwrap(), 4096).unwrap().fs;
    let file = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let dir = fs.create(ROOT_INO, b"dir", NewNode { mode: kind::DIR | 0o755, ..file }, 1).unwrap().ino;
    let [one, two, sub] = [(ROOT_INO, "one", file.mode), (dir, "two", file.mode), (ROOT_INO, "sub", kind::DIR | 0o755)]
        .map(|(parent, name, mode)| fs.create(parent, name.as_bytes(), NewNode { mode, ..file }, 1).unwrap().ino);
    fs.link(one, ROOT_INO, b"same", 1).unwrap();
    let files = fs.statfs().unwrap().files;
    let leave = |replaces| RenameMode::Whiteout { replaces, uid: 7, gid: 8 };

    assert_eq!(fs.rename(ROOT_INO, b"one", dir, b"two", leave(false), 2), Err(Error::Exists));
    assert_eq!(fs.rename(ROOT_INO, b"one", ROOT_INO, b"same", leave(true), 2), Ok(None), "two names of one file stay");
    assert_eq!((fs.lookup(ROOT_INO, b"one").unwrap().ino, fs.lookup(dir, b"two").unwrap().ino), (one, two));

    let left = fs.rename(ROOT_INO, b"one", dir, b"two", leave(true), 3).unwrap().unwrap();
    let other = fs.rename(ROOT_INO, b"sub", dir, b"sub", leave(false), 3).unwrap().unwrap();
    assert!(left.ino > two && other.ino > left.ino, "new inodes");
    fs.sync().unwrap();
    let (chip, unmounted) = fs.unmount(4);
    unmounted.unwrap();
    let mut fs = flexfs_core::Fs::mount(chip, MountOptions::default()).map_err(|(_, error)| error).unwrap();
    for (name, left) in [("one", left), ("sub", other)] {
        let found = fs.lookup(ROOT_INO, name.as_bytes()).unwrap();
        let Attr { ino, mode, nlink, uid, gid, rdev, size, .. } = found;
        assert_eq!((ino, mode, nlink, uid, gid, rdev, size), (left.ino, kind::CHAR, 1, 7, 8, 0, 0), "{name}");
    }
    assert_eq!((fs.lookup(dir, b"two").unwrap().ino, fs.lookup(dir, b"sub").unwrap().ino), (one, sub));
    assert_eq!((fs.getattr(ROOT_INO).unwrap().nlink, fs.getattr(dir).unwrap().nlink), (3, 3), "a directory moved");
    assert_eq!(fs.statfs().unwrap().files, files + 1, "two whiteouts came, and the file that was replaced went");
    assert_eq!(fs.check().unwrap().findings, [""; 0]);
}
