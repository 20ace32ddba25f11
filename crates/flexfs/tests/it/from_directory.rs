//! `flexfs mkfs --from`: an image is the tree it was made from, and nothing but it, to the last byte.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::attributes::{attribute, set_attribute};
use crate::common::{self, Dice, Mount, assert_clean, assert_same_tree, flexfs, info, is_one_line, output, run};

const ROOT_TIME_S: i64 = 1_600_000_000;

fn make_tree(root: &Path) {
    let mut dice = Dice::new(5);
    fs::create_dir_all(root.join("etc/deep/er")).unwrap();
    for number in 0..200 {
        fs::write(root.join(format!("etc/{number}")), dice.bytes(number * 50)).unwrap();
    }
    fs::write(root.join("large"), dice.bytes(12 << 20)).unwrap();
    fs::write(root.join("zeros"), vec![0; 3 << 20]).unwrap();
    fs::write(root.join(OsStr::from_bytes(b"\xfe\xff")), "no text").unwrap();
    symlink("etc/1", root.join("link")).unwrap();
    fs::hard_link(root.join("etc/7"), root.join("etc/deep/seven")).unwrap();
    run(Command::new("mkfifo").arg(root.join("pipe")));
    set_attribute(root.join("etc/7"), "user.b", b"2");
    set_attribute(root.join("etc/7"), "user.a", b"1");
    fs::set_permissions(root.join("etc/9"), fs::Permissions::from_mode(0o6711)).unwrap();
    run(Command::new("touch").args(["-d", "1999-12-31T23:59:58.123456789Z"]).arg(root.join("etc/deep")));
    run(Command::new("touch").arg("-d").arg(format!("@{ROOT_TIME_S}")).arg(root));
}

/// A copy of a tree whose directories are made in another order.
fn copy_backwards(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    let mut names: Vec<PathBuf> = fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    // In one call, which keeps hard links.
    run(Command::new("cp").args(["-a", "--sparse=always"]).args(names.iter().rev()).arg(to));
    run(Command::new("touch").arg("-r").arg(from).arg(to));
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
}

fn mkfs(image: &Path, tree: &Path) -> Command {
    let mut command = flexfs(["mkfs", "--size", "64MiB", "--from"]);
    command.arg(tree).arg(image).env_remove("SOURCE_DATE_EPOCH");
    command
}

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tree")).unwrap();
        make_tree(&dir.path().join("tree"));
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn same_bytes(one: &Path, two: &Path) -> bool {
    fs::read(one).unwrap() == fs::read(two).unwrap()
}

#[test]
fn the_same_tree_in_another_place_gives_the_same_image() {
    let bench = Bench::new();
    let (tree, copy) = (bench.path("tree"), bench.path("copy of it"));
    let (one, two, three) = (bench.path("1.img"), bench.path("2.img"), bench.path("3.img"));
    run(&mut mkfs(&one, &tree));
    copy_backwards(&tree, &copy);
    run(&mut mkfs(&two, &copy));
    assert!(same_bytes(&one, &two), "the images differ");
    run(mkfs(&three, &tree).args(["--label", "other"]));
    assert!(!same_bytes(&one, &three));
    assert_ne!(info(&one)["volume_id"], info(&three)["volume_id"]);
    // The same size and the same times, but not the same content.
    let changed = copy.join("etc/5");
    let kept = bench.path("times");
    run(Command::new("touch").arg("-r").arg(&changed).arg(&kept));
    let mut bytes = fs::read(&changed).unwrap();
    bytes[0] ^= 1;
    fs::write(&changed, bytes).unwrap();
    run(Command::new("touch").arg("-r").arg(&kept).arg(&changed));
    run(mkfs(&two, &copy).arg("--force"));
    assert_ne!(info(&one)["volume_id"], info(&two)["volume_id"]);
}

#[test]
fn the_image_holds_the_tree_with_times_of_modification_only() {
    let bench = Bench::new();
    let (tree, image) = (bench.path("tree"), bench.path("flash.img"));
    let told = run(&mut mkfs(&image, &tree));
    assert!(told.contains("209 inodes"), "{told}");
    assert_clean(&image);
    assert_eq!(info(&image)["clean"], true);
    let mount = Mount::new(&image);
    assert_same_tree(&tree, &mount.path);
    let mut paths = common::listing(&tree);
    paths.push((PathBuf::new(), String::new()));
    for (path, _) in paths {
        let kept = fs::symlink_metadata(tree.join(&path)).unwrap();
        let made = fs::symlink_metadata(mount.join(&path)).unwrap();
        let mtime = (kept.mtime(), kept.mtime_nsec());
        assert_eq!((made.mtime(), made.mtime_nsec()), mtime, "{}", path.display());
        assert_eq!((made.atime(), made.atime_nsec()), mtime, "{}", path.display());
        assert_eq!((made.ctime(), made.ctime_nsec()), mtime, "{}", path.display());
        assert_eq!((made.uid(), made.gid()), (kept.uid(), kept.gid()), "{}", path.display());
    }
    assert_eq!(fs::metadata(mount.join("etc/7")).unwrap().nlink(), 2);
    assert_eq!(attribute(mount.join("etc/deep/seven"), "user.b").as_deref(), Some(&b"2"[..]));
    assert_eq!(fs::metadata(mount.join("zeros")).unwrap().blocks(), 0);
    mount.unmount();
}

#[test]
fn owner_identity_and_date_are_as_asked_for() {
    let bench = Bench::new();
    let (tree, one, two) = (bench.path("tree"), bench.path("1.img"), bench.path("2.img"));
    let id = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    let make = |image: &Path, date: &str| {
        let mut command = mkfs(image, &tree);
        run(command.args(["--owner", "12:34", "--volume-id", id]).env("SOURCE_DATE_EPOCH", date))
    };
    make(&one, "1234567890");
    assert_eq!(info(&one)["volume_id"], id);
    let listed: serde_json::Value = serde_json::from_str(&run(flexfs(["ls", "-R", "--json"]).arg(&one))).unwrap();
    let entries = listed["entries"].as_array().unwrap();
    assert!(entries.len() > 200 && entries.iter().all(|entry| entry["uid"] == 12 && entry["gid"] == 34));
    assert!(entries.iter().all(|entry| entry["btime_ns"] == entry["mtime_ns"]));
    make(&two, "1234567890");
    assert!(same_bytes(&one, &two));
    fs::remove_file(&two).unwrap();
    make(&two, "1234567891");
    assert!(!same_bytes(&one, &two));
    let empty = bench.path("empty.img");
    run(flexfs(["mkfs", "--size", "16MiB", "--volume-id", id]).arg(&empty));
    assert_eq!(info(&empty)["volume_id"], id);
}

#[test]
fn a_tree_that_cannot_be_an_image_leaves_none() {
    let bench = Bench::new();
    let (tree, image) = (bench.path("tree"), bench.path("flash.img"));
    let refuse = |command: &mut Command, why: &str| {
        let output = output(command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && is_one_line(&output.stderr) && said.contains(why), "{said}");
    };
    refuse(mkfs(&image, &tree).env("SOURCE_DATE_EPOCH", "yesterday"), "SOURCE_DATE_EPOCH");
    refuse(&mut mkfs(&image, &tree.join("large")), "not a directory");
    refuse(&mut mkfs(&image, &bench.path("none")), "none");
    refuse(&mut mkfs(&tree.join("flash.img"), &tree), "the image itself");
    refuse(mkfs(&image, &tree).args(["--owner", "root"]), "0:0");
    refuse(flexfs(["mkfs", "--size", "16MiB", "--owner", "0:0"]).arg(&image), "--from");
    fs::write(tree.join("huge"), Dice::new(9).bytes(70 << 20)).unwrap();
    refuse(&mut mkfs(&image, &tree), "no space");
    assert_eq!(fs::read_dir(bench.dir.path()).unwrap().count(), 1, "nothing but the tree is there");
    assert!(!tree.join("flash.img").exists());
}
