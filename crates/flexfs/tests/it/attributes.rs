//! Extended attributes on a mount.

use std::fs;

use rustix::fs::XattrFlags;
use rustix::io::Errno;

use emulator::Chip;
use flexfs_core::{Fs, MountOptions, ROOT_INO};

use crate::common::{Mount, flexfs, image, output, run};

#[test]
fn extended_attributes_are_kept_listed_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let path = mount.join("file");
    fs::write(&path, "").unwrap();
    let set = |name: &str, value: &[u8], flags| rustix::fs::setxattr(&path, name, value, flags);
    set("user.one", b"1", XattrFlags::empty()).unwrap();
    set("user.two", &[7; 1000], XattrFlags::CREATE).unwrap();
    assert_eq!(set("user.two", b"", XattrFlags::CREATE), Err(Errno::EXIST));
    assert_eq!(set("user.none", b"", XattrFlags::REPLACE), Err(Errno::NODATA));
    let mut value = [0; 1000];
    assert_eq!(rustix::fs::getxattr(&path, "user.two", &mut value[..]), Ok(1000));
    assert_eq!(value, [7; 1000]);
    assert_eq!(rustix::fs::getxattr(&path, "user.two", &mut value[..10]), Err(Errno::RANGE));
    let mut names = [0u8; 100];
    let length = rustix::fs::listxattr(&path, &mut names[..]).unwrap();
    let mut names: Vec<&[u8]> = names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()).collect();
    names.sort();
    assert_eq!(names, [&b"user.one"[..], b"user.two"]);
    rustix::fs::removexattr(&path, "user.one").unwrap();
    assert_eq!(rustix::fs::removexattr(&path, "user.one"), Err(Errno::NODATA));
    mount.unmount();
}

/// What did not fit a page beside its name was refused.
#[test]
fn an_attribute_may_be_as_long_as_linux_allows() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mount = Mount::new(&image);
    let path = mount.join("file");
    fs::write(&path, "").unwrap();
    let long: Vec<u8> = (0..65_536u32).map(|at| (at / 7) as u8).collect();
    rustix::fs::setxattr(&path, "user.short", b"1", XattrFlags::empty()).unwrap();
    rustix::fs::setxattr(&path, "user.long", &long, XattrFlags::empty()).unwrap();
    mount.unmount();
    let mount = Mount::new(&image);
    let path = mount.join("file");
    let mut value = vec![0; 65_536];
    assert_eq!(rustix::fs::getxattr(&path, "user.long", &mut value[..]), Ok(65_536));
    assert!(value == long);
    assert_eq!(rustix::fs::setxattr(&path, "user.long", &[0; 65_537], XattrFlags::empty()), Err(Errno::TOOBIG));
    rustix::fs::setxattr(&path, "user.long", &long[..5_000], XattrFlags::REPLACE).unwrap();
    assert_eq!(rustix::fs::getxattr(&path, "user.long", &mut value[..]), Ok(5_000));
    rustix::fs::removexattr(&path, "user.long").unwrap();
    assert_eq!(rustix::fs::getxattr(&path, "user.short", &mut value[..]), Ok(1));
    mount.unmount();
}

#[test]
fn names_that_linux_file_systems_refuse_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "8MiB"));
    let path = mount.join("file");
    fs::write(&path, "").unwrap();
    for (name, errno) in [
        ("bogus.a", Errno::OPNOTSUPP),
        ("system.foo", Errno::OPNOTSUPP),
        ("user.", Errno::INVAL),
        ("user", Errno::OPNOTSUPP),
    ] {
        assert_eq!(rustix::fs::setxattr(&path, name, b"1", XattrFlags::empty()), Err(errno), "{name}");
        assert_eq!(rustix::fs::getxattr(&path, name, &mut [0; 9][..]), Err(errno), "{name}");
        assert_eq!(rustix::fs::removexattr(&path, name), Err(errno), "{name}");
    }
    assert_eq!(rustix::fs::listxattr(&path, &mut [0u8; 9][..]), Ok(0));
    for name in ["security.a", "trusted.a", "user.a"] {
        rustix::fs::setxattr(&path, name, b"1", XattrFlags::empty()).unwrap();
    }
    mount.unmount();
}

/// It ended with 0, and the complaint was of a name that was gone.
#[test]
fn get_says_of_which_file_an_attribute_is_left_out_and_that_not_all_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "8MiB");
    let (tree, got) = (dir.path().join("tree"), dir.path().join("got"));
    fs::create_dir_all(tree.join("dir")).unwrap();
    fs::write(tree.join("dir/file"), "bytes").unwrap();
    run(flexfs(["put"]).arg(&image).arg(tree.join("dir")).arg("/"));
    // As a mount once let them be named.
    let chip = Chip::open_image(&image, false).unwrap();
    let mut volume = Fs::mount(chip, MountOptions::default()).map_err(|(_, error)| error).unwrap();
    let sub = volume.lookup(ROOT_INO, b"dir").unwrap().ino;
    let file = volume.lookup(sub, b"file").unwrap().ino;
    [sub, file].into_iter().for_each(|ino| volume.setxattr(ino, b"bogus.a", b"1", false, false, 0).unwrap());
    let (mut chip, unmounted) = volume.unmount(0);
    unmounted.unwrap();
    chip.sync_image().unwrap();
    drop(chip);

    let ended = output(flexfs(["get"]).arg(&image).arg("/dir").arg(&got));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    for named in [got.clone(), got.join("file")] {
        assert!(said.contains(&format!("{}: attribute bogus.a is left out", named.display())), "{said}");
    }
    assert!(said.contains("the rest is copied") && !said.contains(".flexfs-get"), "{said}");
    assert_eq!(fs::read(got.join("file")).unwrap(), b"bytes");
    // What is there already can be read and removed on a mount.
    let mount = Mount::new(&image);
    let path = mount.join("dir/file");
    assert_eq!(rustix::fs::getxattr(&path, "bogus.a", &mut [0; 9][..]), Ok(1));
    rustix::fs::removexattr(&path, "bogus.a").unwrap();
    mount.unmount();
}
