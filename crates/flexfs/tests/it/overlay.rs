//! Overlay file systems, as containers and routers use them, with their upper layer on a mount.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

use crate::common::{self, Mount, assert_clean, assert_same_tree, image, mount_type, need_root};

/// An overlay of a directory, which stays as it is, and of one on a mount, which takes what changes.
struct Overlay(PathBuf);

impl Overlay {
    fn new(dir: &Path, mount: &Mount) -> Self {
        let merged = dir.join("merged");
        for path in [&merged, &mount.join("upper"), &mount.join("work")] {
            fs::create_dir_all(path).unwrap();
        }
        let (lower, upper, work) = (dir.join("lower"), mount.join("upper"), mount.join("work"));
        let options = format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
        let options = std::ffi::CString::new(options).unwrap();
        rustix::mount::mount("overlay", &merged, "overlay", MountFlags::empty(), options.as_c_str())
            .unwrap_or_else(|error| panic!("the kernel mounts no overlay on FlexFS: {error}"));
        assert_eq!(mount_type(&merged).as_deref(), Some("overlay"));
        Self(merged)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file so that it lasts.
    fn write(&self, name: &str, text: &str) {
        let mut file = File::create(self.join(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.sync_all().unwrap();
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// What the lower layer holds.
fn lower_layer(dir: &Path) -> PathBuf {
    let lower = dir.join("lower");
    fs::create_dir_all(lower.join("dir/sub")).unwrap();
    for name in ["removed", "renamed", "replaced", "changed", "dir/one", "dir/sub/two"] {
        fs::write(lower.join(name), format!("lower {name}")).unwrap();
    }
    lower
}

/// Changes of each kind over what the lower layer holds.
fn change(overlay: &Overlay) {
    overlay.write("created", "upper created");
    fs::remove_file(overlay.join("removed")).unwrap();
    fs::rename(overlay.join("renamed"), overlay.join("new name")).unwrap();
    overlay.write("draft", "upper replaced");
    fs::rename(overlay.join("draft"), overlay.join("replaced")).unwrap();
    let mut file = File::options().append(true).open(overlay.join("changed")).unwrap();
    file.write_all(b", and more").unwrap();
    file.sync_all().unwrap();
    // The directory that is made anew hides the one below.
    fs::remove_dir_all(overlay.join("dir")).unwrap();
    fs::create_dir(overlay.join("dir")).unwrap();
    overlay.write("dir/three", "upper three");
}

fn assert_changed(overlay: &Overlay) {
    let text = |name: &str| fs::read_to_string(overlay.join(name)).unwrap();
    let mut names: Vec<_> = fs::read_dir(&overlay.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["changed", "created", "dir", "new name", "replaced"]);
    assert_eq!(fs::read_dir(overlay.join("dir")).unwrap().count(), 1);
    let texts = ["changed", "created", "new name", "replaced", "dir/three"].map(text);
    let expected = ["lower changed, and more", "upper created", "lower renamed", "upper replaced", "upper three"];
    assert_eq!(texts, expected);
}

#[test]
fn an_overlay_keeps_its_upper_layer_on_a_mount_through_a_kill_of_the_server() {
    need_root("mounts an overlay");
    let dir = tempfile::tempdir().unwrap();
    let (lower, kept) = (lower_layer(dir.path()), tempfile::tempdir().unwrap());
    let as_before = kept.path().join("lower");
    common::run(std::process::Command::new("cp").arg("-a").arg(&lower).arg(&as_before));
    let image = image(dir.path(), "16MiB");
    let mount = Mount::new(&image);
    let overlay = Overlay::new(dir.path(), &mount);
    change(&overlay);
    assert_changed(&overlay);
    let hidden = fs::symlink_metadata(mount.join("upper/removed")).unwrap();
    assert!(hidden.file_type().is_char_device(), "a whiteout");
    File::open(mount.join("upper")).unwrap().sync_all().unwrap();
    let merged = kept.path().join("merged");
    common::run(std::process::Command::new("cp").arg("-a").arg(&overlay.0).arg(&merged));
    drop(overlay);
    mount.kill();

    let mount = Mount::new(&image);
    let overlay = Overlay::new(dir.path(), &mount);
    assert_changed(&overlay);
    assert_same_tree(&merged, &overlay.0);
    drop(overlay);
    mount.unmount();
    assert_clean(&image);
    assert_same_tree(&as_before, &lower);
}

#[test]
fn a_rename_that_leaves_a_whiteout_obeys_its_other_flags() {
    need_root("makes whiteouts");
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "16MiB"));
    let rename =
        |from: &str, to: &str, flags| rustix::fs::renameat_with(CWD, mount.join(from), CWD, mount.join(to), flags);
    for name in ["one", "two"] {
        fs::write(mount.join(name), name).unwrap();
    }
    let whiteout = RenameFlags::WHITEOUT;
    assert_eq!(rename("one", "two", whiteout | RenameFlags::NOREPLACE), Err(Errno::EXIST));
    assert_eq!(rename("one", "two", whiteout | RenameFlags::EXCHANGE), Err(Errno::INVAL));
    assert_eq!(rename("one", "three", whiteout | RenameFlags::NOREPLACE), Ok(()));
    assert_eq!(rename("two", "three", whiteout), Ok(()));
    assert_eq!(fs::read(mount.join("three")).unwrap(), b"two");
    for name in ["one", "two"] {
        let left = fs::symlink_metadata(mount.join(name)).unwrap();
        assert!(left.file_type().is_char_device(), "{name}");
        assert_eq!(std::os::unix::fs::MetadataExt::rdev(&left), 0, "{name}");
    }
    let image = mount.image.clone();
    mount.unmount();
    assert_clean(&image);
}
