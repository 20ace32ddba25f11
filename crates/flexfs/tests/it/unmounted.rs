//! Files reached inside an image without mounting it: `ls`, `get`, `put` and `rm`, checked against what a mount shows
//! and against the tree that was copied. Invariant of every change: it leaves an image that `fsck` finds clean.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::attributes::{attribute, attribute_names, set_attribute};
use crate::common::{
    self, Dice, Mount, assert_clean, assert_same_tree, flexfs, image, info, is_one_line, need_root, output, run,
    wait_for,
};
use rustix::process::{Pid, Signal};

const HOUR_NS: i64 = 3_600_000_000_000;

/// A tree with one of everything that anybody may make.
fn make_tree(root: &Path) {
    let mut dice = Dice::new(7);
    fs::create_dir_all(root.join("a/b/empty")).unwrap();
    fs::write(root.join("a/text"), "a line\n").unwrap();
    fs::write(root.join("a/b/large"), dice.bytes(3 << 20)).unwrap();
    fs::write(root.join("a/nothing"), "").unwrap();
    fs::write(root.join(OsStr::from_bytes(b"no\xfftext\n")), dice.bytes(5000)).unwrap();
    let holes = File::create(root.join("holes")).unwrap();
    holes.write_all_at(b"middle", 5 << 20).unwrap();
    holes.set_len(9 << 20).unwrap();
    symlink("a/text", root.join("link")).unwrap();
    symlink("/nowhere/at all", root.join("dangling")).unwrap();
    fs::hard_link(root.join("a/text"), root.join("a/b/second name")).unwrap();
    set_attribute(root.join("a/text"), "user.colour", b"blue\0green");
    set_attribute(root.join("a"), "user.kind", b"directory");
    run(Command::new("mkfifo").arg(root.join("a/pipe")));
    fs::set_permissions(root.join("a/text"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(root.join("a/b"), fs::Permissions::from_mode(0o2700)).unwrap();
    for (index, path) in ["a/text", "link", "a/b/large", "a/b/empty", "a/b", "a"].iter().enumerate() {
        set_mtime(&root.join(path), (index as i64 - 2) * HOUR_NS + 123_456_789);
    }
}

fn set_mtime(path: &Path, ns: i64) {
    let time = rustix::fs::Timespec { tv_sec: ns.div_euclid(1_000_000_000), tv_nsec: ns.rem_euclid(1_000_000_000) };
    let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(rustix::fs::CWD, path, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// Fails unless two trees are the same, with times, owners, attributes and links.
fn assert_same(kept: &Path, copied: &Path) {
    assert_same_tree(kept, copied);
    for (path, _) in common::listing(kept) {
        let (left, right) = (kept.join(&path), copied.join(&path));
        let metas = [&left, &right].map(|path| fs::symlink_metadata(path).unwrap());
        let figures =
            metas.each_ref().map(|meta| (meta.mtime(), meta.mtime_nsec(), meta.uid(), meta.gid(), meta.mode()));
        assert_eq!(figures[0], figures[1], "{}", path.display());
        if !metas[0].is_dir() {
            assert_eq!(metas[0].nlink(), metas[1].nlink(), "{}", path.display());
        }
        assert_eq!(attributes(&left), attributes(&right), "{}", path.display());
    }
}

fn attributes(path: &Path) -> Vec<(std::ffi::OsString, Option<Vec<u8>>)> {
    let names = attribute_names(path).into_iter().filter(|name| name.as_bytes().starts_with(b"user."));
    let mut found: Vec<_> = names.map(|name| (name.clone(), attribute(path, &name))).collect();
    found.sort();
    found
}

fn path_of(dir: &tempfile::TempDir, name: &str) -> PathBuf {
    dir.path().join(name)
}

/// Runs a command that must fail in one line with each of `why` in it.
fn assert_fails(command: &mut Command, why: &[&str]) {
    let output = output(command);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
    assert!(is_one_line(&output.stderr) && output.stdout.is_empty(), "{command:?}: {said}");
    assert!(why.iter().all(|why| said.contains(why)), "{command:?}: {said}");
}

#[test]
fn a_tree_that_is_put_is_seen_by_a_mount_and_got_back_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let tree = path_of(&dir, "tree");
    fs::create_dir(&tree).unwrap();
    make_tree(&tree);
    run(flexfs(["put"]).arg(&image).arg(&tree).arg("/"));
    assert_clean(&image);
    assert_eq!(info(&image)["clean"], true);
    let mount = Mount::new(&image);
    assert_same(&tree, &mount.join("tree"));
    assert!(fs::metadata(mount.join("tree/a/pipe")).unwrap().file_type().is_fifo());
    mount.unmount();
    let back = path_of(&dir, "back");
    run(flexfs(["get"]).arg(&image).arg("/tree").arg(&back));
    assert_same(&tree, &back);
    let whole = path_of(&dir, "whole");
    run(flexfs(["get"]).arg(&image).arg("/").arg(&whole));
    assert_same(&tree, &whole.join("tree"));
}

#[test]
fn zeros_that_are_put_take_no_space_and_come_back_as_holes() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let zeros = path_of(&dir, "zeros");
    let mut bytes = vec![0; 40 << 20];
    bytes[20 << 20] = 7;
    fs::write(&zeros, &bytes).unwrap();
    run(flexfs(["put"]).arg(&image).arg(&zeros).arg("/"));
    assert!(info(&image)["used_bytes"].as_u64().unwrap() < 1 << 20);
    let back = path_of(&dir, "back");
    run(flexfs(["get"]).arg(&image).arg("zeros").arg(&back));
    assert!(fs::read(&back).unwrap() == bytes);
    assert!(fs::metadata(&back).unwrap().blocks() * 512 < 8 << 20);
}

/// Of a hole every byte was read: a file like this never came to an end.
#[test]
fn a_file_that_is_almost_all_hole_is_got_at_once() {
    const FAR: u64 = 1 << 43;
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mount = Mount::new(&image);
    let file = File::create(mount.join("sparse")).unwrap();
    for at in [0, 1 << 20, FAR] {
        file.write_all_at(b"bytes", at).unwrap();
    }
    drop(file);
    mount.unmount();
    let got = path_of(&dir, "got");
    run(flexfs(["get"]).arg(&image).arg("/sparse").arg(&got));
    let file = File::open(&got).unwrap();
    assert!(file.metadata().unwrap().blocks() < 100 && file.metadata().unwrap().size() == FAR + 5);
    for at in [0, 1 << 20, FAR] {
        let mut found = [0; 5];
        file.read_exact_at(&mut found, at).unwrap();
        assert_eq!(&found, b"bytes");
    }
}

#[test]
fn what_goes_where_is_as_with_cp() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let (one, two, tree) = (path_of(&dir, "one"), path_of(&dir, "two"), path_of(&dir, "tree"));
    fs::write(&one, "1").unwrap();
    fs::write(&two, "2").unwrap();
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("three"), "3").unwrap();
    let put = |sources: &[&Path], dest: &str| run(flexfs(["put"]).arg(&image).args(sources).arg(dest));
    put(&[&one, &two], "/");
    put(&[&tree], "/new");
    put(&[&tree, &one], "new/");
    put(&[&one], "/uno");
    put(&[&tree.join(".")], ".");
    let listed = run(flexfs(["ls", "-R"]).arg(&image));
    let expected = "new\nnew/one\nnew/three\nnew/tree\nnew/tree/three\none\nthree\ntwo\nuno\n";
    assert_eq!(listed, expected);
    let out = path_of(&dir, "out");
    fs::create_dir(&out).unwrap();
    run(flexfs(["get"]).arg(&image).arg("/new/tree").arg(&out));
    assert_eq!(fs::read_to_string(out.join("tree/three")).unwrap(), "3");
    run(flexfs(["get"]).arg(&image).arg("/new/../uno").current_dir(&out));
    assert_eq!(fs::read_to_string(out.join("uno")).unwrap(), "1");
    assert_eq!(run(flexfs(["get"]).arg(&image).args(["two", "-"])), "2");
    assert_clean(&image);
}

#[test]
fn files_give_way_and_directories_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let (file, sub, out) = (path_of(&dir, "x"), path_of(&dir, "sub"), path_of(&dir, "out"));
    fs::write(&file, "new").unwrap();
    fs::create_dir_all(sub.join("x")).unwrap();
    fs::create_dir(&out).unwrap();
    run(flexfs(["put"]).arg(&image).arg(&sub).arg("/"));
    assert_fails(flexfs(["put"]).arg(&image).arg(&file).arg("/sub"), &["/sub/x", "directory"]);
    fs::write(&file, "old").unwrap();
    run(flexfs(["put"]).arg(&image).arg(&file).arg("/"));
    fs::write(&file, "new").unwrap();
    run(flexfs(["put"]).arg(&image).arg(&file).arg("/"));
    assert_eq!(run(flexfs(["get"]).arg(&image).args(["/x", "-"])), "new");
    // What a link in the way leads to is not written to.
    fs::write(path_of(&dir, "precious"), "precious").unwrap();
    symlink(path_of(&dir, "precious"), out.join("x")).unwrap();
    run(flexfs(["get"]).arg(&image).arg("/x").arg(&out));
    assert_eq!(fs::read_to_string(out.join("x")).unwrap(), "new");
    assert_eq!(fs::read_to_string(path_of(&dir, "precious")).unwrap(), "precious");
    fs::remove_file(out.join("x")).unwrap();
    fs::create_dir(out.join("x")).unwrap();
    assert_fails(flexfs(["get"]).arg(&image).arg("/x").arg(&out), &["out/x", "directory"]);
    assert_clean(&image);
}

#[test]
fn directories_are_made_as_mkdir_makes_them() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mkdir = |arguments: &[&str]| run(flexfs(["mkdir"]).arg(&image).args(arguments));
    mkdir(&["/etc", "home"]);
    mkdir(&["-p", "/home/ann/photos", "/home/ann/./music/../films/", "/"]);
    let listed = run(flexfs(["ls", "-R"]).arg(&image));
    assert_eq!(listed, "etc\nhome\nhome/ann\nhome/ann/films\nhome/ann/music\nhome/ann/photos\n");
    let mut tight = Command::new("sh");
    tight.args(["-c", "umask 027; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_flexfs"), "mkdir"]);
    run(tight.arg(&image).arg("/secret"));
    assert!(
        run(flexfs(["ls", "-l"]).arg(&image))
            .lines()
            .any(|line| line.starts_with("drwxr-x---") && line.ends_with(" secret"))
    );
    let file = path_of(&dir, "hosts");
    fs::write(&file, "127.0.0.1").unwrap();
    run(flexfs(["put"]).arg(&image).arg(&file).arg("/etc"));
    let fails = |arguments: &[&str], why: &[&str]| assert_fails(flexfs(["mkdir"]).arg(&image).args(arguments), why);
    fails(&["/etc"], &["/etc: exists already", "-p"]);
    fails(&["/"], &["exists already"]);
    fails(&["/a/b/c"], &["/a: no such directory", "-p"]);
    fails(&["-p", "/etc/hosts/a"], &["/etc/hosts: not a directory"]);
    fails(&["-p", "/etc/hosts"], &["/etc/hosts: not a directory"]);
    fails(&["made", "/etc"], &["/etc: exists already"]);
    assert!(run(flexfs(["ls"]).arg(&image)).contains("made\n"), "what was made before an error stays");
    assert_clean(&image);
    assert_eq!(info(&image)["clean"], true);
}

#[test]
fn a_file_on_the_way_is_named_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let file = path_of(&dir, "hosts");
    fs::write(&file, "127.0.0.1").unwrap();
    run(flexfs(["mkdir"]).arg(&image).arg("/etc"));
    run(flexfs(["put"]).arg(&image).arg(&file).arg("/etc"));
    for dest in ["/etc/hosts/x", "/etc/hosts/x/y", "/etc/hosts/"] {
        assert_fails(flexfs(["put"]).arg(&image).arg(&file).arg(dest), &["/etc/hosts", ": not a directory"]);
    }
    assert_fails(flexfs(["put"]).arg(&image).args([&file, &file]).arg("/etc/hosts"), &["/etc/hosts: not a directory"]);
    assert_fails(flexfs(["ls"]).arg(&image).arg("/etc/hosts/x/y"), &["/etc/hosts: not a directory"]);
    assert_fails(flexfs(["put"]).arg(&image).args([&file, &file]).arg("/new"), &["flexfs mkdir -p", "/new"]);
}

#[test]
fn what_is_removed_is_gone_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let tree = path_of(&dir, "tree");
    fs::create_dir(&tree).unwrap();
    make_tree(&tree);
    run(flexfs(["put"]).arg(&image).arg(tree.join(".")).arg("/"));
    assert_fails(flexfs(["rm"]).arg(&image).arg("/a"), &["/a", "-r"]);
    for path in ["/", "/a/.", "/a/.."] {
        assert_fails(flexfs(["rm", "-r"]).arg(&image).arg(path), &["can be removed"]);
    }
    run(flexfs(["rm", "-r"]).arg(&image).args(["a/b", "link"]));
    fs::remove_dir_all(tree.join("a/b")).unwrap();
    fs::remove_file(tree.join("link")).unwrap();
    assert_clean(&image);
    assert_eq!(info(&image)["clean"], true);
    let mount = Mount::new(&image);
    assert_same_tree(&tree, &mount.path);
    mount.unmount();
}

#[test]
fn a_long_listing_tells_what_stat_tells() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let tree = path_of(&dir, "tree");
    fs::create_dir(&tree).unwrap();
    make_tree(&tree);
    run(flexfs(["put"]).arg(&image).arg(tree.join(".")).arg("/"));
    let lines = run(flexfs(["ls", "-l"]).arg(&image).arg("/a"));
    let text = lines.lines().find(|line| line.ends_with(" text")).unwrap();
    let meta = fs::metadata(tree.join("a/text")).unwrap();
    let fields: Vec<_> = text.split_whitespace().collect();
    assert_eq!(fields[..2], ["-rwsr-x--x", "2"]);
    assert_eq!(fields[2..4], [meta.uid().to_string(), meta.gid().to_string()]);
    assert_eq!(fields[4..], ["7", "1969-12-31", "22:00:00", "text"]);
    let root = run(flexfs(["ls"]).arg(&image));
    assert!(root.contains("no\\377text\\012\n"), "{root}");
    let link = run(flexfs(["ls", "-l"]).arg(&image).arg("/link"));
    assert!(link.starts_with('l') && link.ends_with("/link -> a/text\n"), "{link}");
    let listed: serde_json::Value = serde_json::from_str(&run(flexfs(["ls", "-R", "--json"]).arg(&image))).unwrap();
    let entries = listed["entries"].as_array().unwrap();
    assert_eq!(entries.len(), common::listing(&tree).len());
    let large = entries.iter().find(|entry| entry["path"] == "a/b/large").unwrap();
    assert_eq!(large["bytes"], 3 << 20);
    assert_eq!(large["type"], "file");
    assert_eq!(large["mtime_ns"], 123_456_789);
    let holes = entries.iter().find(|entry| entry["path"] == "holes").unwrap();
    assert!(holes["stored_bytes"].as_u64().unwrap() < holes["bytes"].as_u64().unwrap());
    let strange = entries.iter().find(|entry| entry["path_bytes"].is_array()).unwrap();
    assert_eq!(strange["path_bytes"], serde_json::json!(b"no\xfftext\n"));
}

#[test]
fn errors_name_the_image_and_the_path_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let file = path_of(&dir, "file");
    fs::write(&file, "x").unwrap();
    symlink("file", path_of(&dir, "link")).unwrap();
    run(flexfs(["put"]).arg(&image).args([&file, &path_of(&dir, "link")]).arg("/"));
    let before = fs::read(&image).unwrap();
    assert_fails(flexfs(["ls"]).arg(&image).arg("none/such"), &["flash.img", "/none/such", "no such file"]);
    assert_fails(flexfs(["ls"]).arg(&image).arg("/link/x"), &["/link/x", "symbolic link"]);
    assert_fails(flexfs(["ls"]).arg(&image).arg("/file/"), &["/file/", "not a directory"]);
    assert_fails(flexfs(["get"]).arg(&image).arg("/none").arg(dir.path()), &["flash.img", "/none"]);
    assert_fails(flexfs(["get"]).arg(&image).args(["/", "-"]), &["not a regular file"]);
    assert!(fs::read(&image).unwrap() == before);
    assert_fails(flexfs(["put"]).arg(&image).arg(path_of(&dir, "absent")).arg("/"), &["absent"]);
    assert_fails(flexfs(["put"]).arg(&image).arg(&file).arg("/none/x"), &["flash.img", "/none"]);
    assert_fails(flexfs(["put"]).arg(&image).args([&file, &file]).arg("/new"), &["/new", "no such directory"]);
    assert_fails(flexfs(["put"]).arg(&image).arg(dir.path()).arg("/"), &["flash.img", "the image itself"]);
    assert_fails(flexfs(["rm"]).arg(&image).arg("/none"), &["flash.img", "/none"]);
    assert_clean(&image);
}

#[test]
fn a_tree_that_does_not_fit_is_an_error_and_leaves_a_clean_image() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let large = path_of(&dir, "large");
    fs::write(&large, Dice::new(3).bytes(20 << 20)).unwrap();
    assert_fails(flexfs(["put"]).arg(&image).arg(&large).arg("/"), &["flash.img", "/large", "no space"]);
    assert_clean(&image);
    assert_eq!(run(flexfs(["ls"]).arg(&image)), "", "no part of it stays");
    fs::write(&large, "small now").unwrap();
    run(flexfs(["put"]).arg(&image).arg(&large).arg("/"));
    assert_eq!(run(flexfs(["get"]).arg(&image).args(["/large", "-"])), "small now");
}

/// What was to be replaced was removed first: a copy that failed left neither the old nor the new.
#[test]
fn what_is_replaced_stays_until_the_new_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let (file, other) = (path_of(&dir, "file"), path_of(&dir, "other"));
    fs::write(&file, "precious").unwrap();
    fs::hard_link(&file, &other).unwrap();
    run(flexfs(["put"]).arg(&image).arg(&file).arg(&other).arg("/"));
    fs::remove_file(&file).unwrap();
    fs::write(&file, Dice::new(3).bytes(20 << 20)).unwrap();
    assert_fails(flexfs(["put"]).arg(&image).arg(&file).arg("/"), &["/file", "no space"]);
    assert_eq!(run(flexfs(["ls"]).arg(&image)), "file\nother\n");
    assert_eq!(run(flexfs(["get"]).arg(&image).args(["/file", "-"])), "precious");
    // The same names once more, both of one file.
    fs::write(&file, "new").unwrap();
    fs::remove_file(&other).unwrap();
    fs::hard_link(&file, &other).unwrap();
    for _ in 0..2 {
        run(flexfs(["put"]).arg(&image).arg(&file).arg(&other).arg("/"));
        assert_eq!(run(flexfs(["ls"]).arg(&image)), "file\nother\n");
    }
    for _ in 0..2 {
        let back = path_of(&dir, "back");
        run(flexfs(["get"]).arg(&image).arg("/").arg(&back));
        let mut names: Vec<_> = fs::read_dir(&back).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["file", "other"]);
        assert_eq!(fs::read_to_string(back.join("other")).unwrap(), "new");
    }
    assert_clean(&image);
}

/// Starts a command, sends it a signal when it is well under way, and waits for its end.
fn interrupt(command: &mut Command, signal: Signal, is_under_way: impl FnMut() -> bool) -> Option<i32> {
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the copy to begin", is_under_way);
    rustix::process::kill_process(Pid::from_child(&child), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(is_one_line(&output.stderr) && said.contains("interrupted"), "{said}");
    output.status.code()
}

#[test]
fn a_copy_that_is_interrupted_leaves_whole_files_and_a_clean_image() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "512MiB");
    let (small, large) = (path_of(&dir, "a small one"), path_of(&dir, "large"));
    fs::write(&small, "small").unwrap();
    fs::write(&large, Dice::new(3).bytes(192 << 20)).unwrap();
    let stored = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.blocks() * 512);
    let before = stored(&image);
    let mut put = flexfs(["put"]);
    let under_way = || stored(&image) > before + (4 << 20);
    let status = interrupt(put.arg(&image).args([&small, &large]).arg("/"), Signal::INT, under_way);
    assert_eq!(status, Some(130));
    assert_clean(&image);
    assert_eq!(info(&image)["clean"], true);
    assert_eq!(run(flexfs(["ls", "-R"]).arg(&image)), "a small one\n");

    run(flexfs(["put"]).arg(&image).arg(&large).arg("/"));
    let out = path_of(&dir, "out");
    fs::create_dir(&out).unwrap();
    let drafts = || fs::read_dir(&out).unwrap().map(|entry| stored(&entry.unwrap().path())).sum::<u64>();
    let status = interrupt(flexfs(["get"]).arg(&image).arg("/large").arg(&out), Signal::TERM, || drafts() > 4 << 20);
    assert_eq!((status, fs::read_dir(&out).unwrap().count()), (Some(143), 0));

    let (tree, new) = (path_of(&dir, "tree"), path_of(&dir, "new"));
    fs::create_dir_all(tree.join("below")).unwrap();
    fs::create_dir(&new).unwrap();
    fs::rename(&large, tree.join("below/large")).unwrap();
    let mut mkfs = flexfs(["mkfs", "--size", "512MiB", "--from"]);
    let being_made = || fs::read_dir(&new).unwrap().map(|entry| stored(&entry.unwrap().path())).sum::<u64>() > 8 << 20;
    let status = interrupt(mkfs.arg(&tree).arg(new.join("flash.img")), Signal::INT, being_made);
    assert_eq!((status, fs::read_dir(&new).unwrap().count()), (Some(130), 0));
}

/// A file of the name under which drafts are made went with them.
#[test]
fn what_is_called_like_a_draft_stays() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let source = path_of(&dir, "source");
    let names = ["/.flexfs-put", "/.flexfs-put0", "/file"];
    for round in ["first", "second"] {
        for name in names {
            fs::write(&source, format!("{round} {name}")).unwrap();
            run(flexfs(["put"]).arg(&image).arg(&source).arg(name));
        }
    }
    let got = path_of(&dir, "got");
    run(flexfs(["get"]).arg(&image).arg("/").arg(&got));
    assert_eq!(fs::read_dir(&got).unwrap().count(), names.len());
    for name in names {
        assert_eq!(fs::read_to_string(got.join(&name[1..])).unwrap(), format!("second {name}"));
    }
}

/// A device that was named as the destination became a regular file.
#[test]
fn only_files_give_way_to_what_is_got() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let (file, pipe) = (path_of(&dir, "file"), path_of(&dir, "pipe"));
    fs::write(&file, "text").unwrap();
    run(flexfs(["put"]).arg(&image).arg(&file).arg("/"));
    run(Command::new("mkfifo").arg(&pipe));
    assert_fails(flexfs(["get"]).arg(&image).arg("/file").arg(&pipe), &["pipe: a device, pipe or socket"]);
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    // What is told of is the place asked for, not the draft beside it.
    let nowhere = path_of(&dir, "none/file");
    assert_fails(flexfs(["get"]).arg(&image).arg("/file").arg(&nowhere), &["none/file: there is no directory"]);
}

#[test]
fn a_mounted_image_is_refused_without_a_mount_too() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::new(&image);
    assert_fails(flexfs(["ls"]).arg(&image), &["flash.img", "in use"]);
    assert_fails(flexfs(["rm"]).arg(&image).arg("/x"), &["flash.img", "in use"]);
    mount.unmount();
}

#[test]
fn what_is_corrupt_is_left_out_and_the_rest_is_got() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let tree = path_of(&dir, "tree");
    fs::create_dir(&tree).unwrap();
    let marked = Dice::new(11).bytes(100_000);
    fs::write(tree.join("bad"), &marked).unwrap();
    fs::write(tree.join("good"), Dice::new(12).bytes(100_000)).unwrap();
    run(flexfs(["put"]).arg(&image).arg(&tree).arg("/"));
    let mut bytes = fs::read(&image).unwrap();
    let at = bytes.windows(64).position(|window| window == &marked[..64]).expect("stored as it is");
    bytes[at] ^= 1;
    fs::write(&image, bytes).unwrap();
    let (back, kept) = (path_of(&dir, "back"), path_of(&dir, "kept"));
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("bad"), "old").unwrap();
    let refused = output(flexfs(["get"]).arg(&image).arg("/tree/bad").arg(&kept));
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(fs::read_to_string(kept.join("bad")).unwrap(), "old", "what cannot be replaced stays");
    let output = output(flexfs(["get"]).arg(&image).arg("/tree").arg(&back));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("/tree/bad") && said.contains("1 could not be read"), "{said}");
    assert!(!back.join("bad").exists());
    assert!(fs::read(back.join("good")).unwrap() == fs::read(tree.join("good")).unwrap());
}

#[test]
fn devices_and_owners_go_in_and_out_for_root() {
    need_root("makes device nodes");
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let tree = path_of(&dir, "tree");
    fs::create_dir(&tree).unwrap();
    run(Command::new("mknod").arg(tree.join("null")).args(["c", "1", "300"]));
    fs::write(tree.join("file"), "x").unwrap();
    std::os::unix::fs::chown(tree.join("file"), Some(1234), Some(5678)).unwrap();
    run(flexfs(["put"]).arg(&image).arg(&tree).arg("/"));
    assert!(run(flexfs(["ls", "-l"]).arg(&image).arg("/tree")).contains(" 1, 300 "));
    let back = path_of(&dir, "back");
    run(flexfs(["get"]).arg(&image).arg("/tree").arg(&back));
    assert_same(&tree, &back);
    let device = fs::metadata(back.join("null")).unwrap();
    assert!(device.file_type().is_char_device());
    assert_eq!(device.rdev(), fs::metadata(tree.join("null")).unwrap().rdev());
}
