//! Damaged volumes: what is said of them, by name, and that the rest can be read.
//!
//! A byte of an image is changed where a name or a file's contents stand, so that the slot around it fails its check; or
//! a slot is written as somebody with bad intentions would, with a check that holds.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::forge::{ZERO_ID, corrupt, forge, places};
use crate::common::{self, Dice, Mount, flexfs, image, info, output, run};
use emulator::Corruption;
use serde_json::Value;

/// Damages every slot with `wanted` in it.
fn damage(image: &Path, wanted: &[u8]) {
    let mut bytes = fs::read(image).unwrap();
    places(&bytes, wanted).into_iter().for_each(|at| bytes[at] ^= 1);
    fs::write(image, bytes).unwrap();
}

/// An empty volume whose names stand in the same order each time.
fn empty(dir: &Path) -> PathBuf {
    let image = dir.join("flash.img");
    run(flexfs(["mkfs", "--size", "16MiB", "--volume-id", ZERO_ID]).arg(&image));
    image
}

/// An image with three files, each in a directory and a slot of nodes of its own.
fn filled(dir: &Path) -> PathBuf {
    let image = empty(dir);
    for (name, seed) in [("first", 1), ("second", 2), ("third", 3)] {
        let tree = dir.join(name);
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join(format!("file of the {name}")), Dice::new(seed).bytes(100_000)).unwrap();
        run(flexfs(["put"]).arg(&image).arg(&tree).arg("/"));
    }
    image
}

/// Runs a command that must end with this status; its standard output and standard error.
fn ends(status: i32, command: &mut std::process::Command) -> (String, String) {
    let output = output(command);
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{command:?}: {out}{said}");
    (out.into_owned(), said.into_owned())
}

#[test]
fn the_check_ends_with_what_is_lost_by_name_and_how_to_save_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let image = filled(dir.path());
    assert!(!run(flexfs(["fsck"]).arg(&image)).contains("copy"));
    damage(&image, &Dice::new(2).bytes(64));
    let (out, said) = ends(4, flexfs(["fsck"]).arg(&image));
    let lines: Vec<&str> = out.lines().collect();
    assert!(said.is_empty() && !out.contains("slot at slot") && !out.contains(": slot\n"), "{out}");
    assert!(lines[0].contains(" at slot 0x") && lines[0].ends_with(": wrong checksum"), "{out}");
    let advice = lines.last().unwrap();
    assert!(advice.contains("cannot be read whole: /second/file of the second;"), "{advice}");
    assert!(advice.contains("flexfs get") && advice.contains("flexfs mkfs NEW --size 16MiB --from DIR"), "{advice}");
    let report: Value = serde_json::from_str(&ends(4, flexfs(["fsck", "--json"]).arg(&image)).0).unwrap();
    assert_eq!(report["lost"], serde_json::json!(["/second/file of the second"]));
    let (_, said) = ends(1, flexfs(["get"]).arg(&image).args(["/second/file of the second", "-"]));
    assert!(said.contains("flexfs fsck") && common::is_one_line(said.as_bytes()), "{said}");
    // As it advises.
    let back = dir.path().join("back");
    ends(1, flexfs(["get"]).arg(&image).arg("/").arg(&back));
    assert!(fs::read(back.join("third/file of the third")).unwrap() == Dice::new(3).bytes(100_000));
}

#[test]
fn what_else_is_in_a_damaged_directory_is_listed_and_got() {
    let dir = tempfile::tempdir().unwrap();
    let image = filled(dir.path());
    damage(&image, b"file of the second");
    let (out, said) = ends(1, flexfs(["ls", "-R"]).arg(&image));
    assert_eq!(out, "first\nfirst/file of the first\nthird\nthird/file of the third\n");
    assert!(said.contains("flash.img: /") && said.contains("flexfs fsck"), "{said}");
    let (out, _) = ends(1, flexfs(["ls"]).arg(&image));
    assert!(out.contains("third\n"), "{out}");
    let back = dir.path().join("back");
    ends(1, flexfs(["get"]).arg(&image).arg("/").arg(&back));
    assert!(fs::read(back.join("third/file of the third")).unwrap() == Dice::new(3).bytes(100_000));
}

#[test]
fn a_damaged_root_directory_is_told_by_info_and_mount() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let file = dir.path().join("a name to find");
    fs::write(&file, "contents").unwrap();
    run(flexfs(["put"]).arg(&image).arg(&file).arg("/"));
    assert_eq!(info(&image)["damage"], Value::Null);
    damage(&image, b"a name to find");
    let told = info(&image);
    assert_eq!((&told["clean"], &told["health"]["state"]), (&false.into(), &"damaged".into()));
    let text = run(flexfs(["info"]).arg(&image));
    assert!(text.contains("damaged, in the root directory") && text.contains("flexfs fsck"), "{text}");
    assert!(!text.contains("clean") && !text.contains("good;"), "{text}");
    let (_, said) = ends(1, flexfs(["put"]).arg(&image).arg(&file).arg("/"));
    assert!(said.contains("the root directory is damaged") && said.contains("flexfs fsck"), "{said}");
    let mut mount = Mount::new(&image);
    assert_eq!(fs::create_dir(mount.join("x")).unwrap_err().kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    let flags = rustix::fs::statvfs(&mount.path).unwrap().f_flag;
    assert!(flags.contains(rustix::fs::StatVfsMountFlags::RDONLY), "as the kernel shows it");
    common::umount(&mount.path);
    assert!(mount.wait().success());
    let said = mount.complaints();
    assert!(
        said.contains("the root directory is damaged, mounted read-only") && said.contains("flexfs fsck"),
        "{said}"
    );
}

/// A mount listed the root directory to find this out.
#[test]
fn damage_in_names_of_the_root_is_told_to_who_lists_them() {
    let dir = tempfile::tempdir().unwrap();
    let image = empty(dir.path());
    for name in ["a name to find", "another name"] {
        let file = dir.path().join(name);
        fs::write(&file, name).unwrap();
        run(flexfs(["put"]).arg(&image).arg(&file).arg("/"));
    }
    damage(&image, b"a name to find");
    let told = info(&image);
    assert_eq!((&told["clean"], &told["health"]["state"]), (&false.into(), &"damaged".into()));
    let mut mount = Mount::new(&image);
    let listed = fs::read_dir(&mount.path).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    assert_eq!(listed.unwrap_err().raw_os_error(), Some(5));
    assert_eq!(fs::read(mount.join("a name to find")).unwrap_err().raw_os_error(), Some(5));
    assert_eq!(fs::read(mount.join("another name")).unwrap(), b"another name");
    fs::write(mount.join("a third"), "contents").unwrap();
    common::umount(&mount.path);
    assert!(mount.wait().success());
    let said = mount.complaints();
    assert!(!said.contains("the root directory is damaged"), "{said}");
    run(flexfs(["put"]).arg(&image).arg(dir.path().join("another name")).arg("/a fourth"));
    assert_eq!(run(flexfs(["get"]).arg(&image).args(["/a third", "-"])), "contents");
    ends(4, flexfs(["fsck"]).arg(&image));
}

#[test]
fn a_directory_that_many_names_lead_to_is_gone_into_once() {
    const LEVELS: usize = 18;
    let dir = tempfile::tempdir().unwrap();
    let image = empty(dir.path());
    let names = |level: usize| [format!("level {level:02} one"), format!("level {level:02} two")];
    let (tree, mut path) = (dir.path().join("tree"), dir.path().join("tree"));
    for level in 0..LEVELS {
        let [one, two] = names(level);
        fs::create_dir_all(path.join(two)).unwrap();
        path.push(one);
    }
    fs::create_dir_all(&path).unwrap();
    run(flexfs(["put"]).arg(&image).arg(tree.join(".")).arg("/"));
    let listed: Value = serde_json::from_str(&run(flexfs(["ls", "-R", "--json"]).arg(&image))).unwrap();
    for level in 0..LEVELS {
        let [one, two] = names(level);
        let found =
            listed["entries"].as_array().unwrap().iter().find(|entry| entry["path"].as_str().unwrap().ends_with(&one));
        let ino = found.unwrap()["ino"].as_u64().unwrap();
        // In an entry node the inode stands 24 bytes before the name.
        forge(&image, two.as_bytes(), |bytes, at| bytes[at - 24..at - 16].copy_from_slice(&ino.to_le_bytes()));
    }
    let (out, said) = ends(1, flexfs(["ls", "-R"]).arg(&image));
    assert_eq!((out.lines().count(), said.lines().count()), (LEVELS, LEVELS), "{out}{said}");
    assert!(said.lines().all(|line| line.contains(" two: a directory that another name leads to, too")), "{said}");
    let (_, said) = ends(1, flexfs(["get"]).arg(&image).arg("/").arg(dir.path().join("back")));
    assert!(said.contains(&format!("{LEVELS} could not be read")), "{said}");
    ends(4, flexfs(["fsck"]).arg(&image));
}

/// Each of the names in a slot of nodes that fails its check made the same line, and a page that the chip gave up was
/// said to have a wrong checksum.
#[test]
fn the_check_tells_each_finding_once_and_why_a_page_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let image = empty(dir.path());
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    (0..18).for_each(|name| fs::write(tree.join(format!("name {name}")), "").unwrap());
    run(flexfs(["put"]).arg(&image).arg(&tree).arg("/"));
    let [flipped, given_up] = ["flipped.img", "given up.img"].map(|name| dir.path().join(name));
    for copy in [&flipped, &given_up] {
        fs::copy(&image, copy).unwrap();
    }
    damage(&flipped, b"name 7");
    corrupt(&given_up, b"name 7", Corruption::Uncorrectable);
    for (image, why) in [(flipped, "wrong checksum"), (given_up, "could not be corrected by the chip")] {
        let report: Value = serde_json::from_str(&ends(4, flexfs(["fsck", "--json"]).arg(&image)).0).unwrap();
        let findings: Vec<&str> =
            report["findings"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        let entries = findings.iter().filter(|line| line.contains(": entry at slot ")).count();
        assert!(entries >= 1 && findings.iter().any(|line| line.contains(": entry at slot ") && line.ends_with(why)));
        let once: std::collections::BTreeSet<_> = findings.iter().collect();
        assert_eq!(once.len(), findings.len(), "{findings:#?}");
        let other = if why == "wrong checksum" { "could not be corrected" } else { "wrong checksum" };
        assert!(!findings.iter().any(|line| line.contains(other)), "{findings:#?}");
    }
}
