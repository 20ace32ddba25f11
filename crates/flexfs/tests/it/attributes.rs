//! Extended attributes on a mount.

use std::fs;

use rustix::fs::XattrFlags;
use rustix::io::Errno;

use crate::common::{Mount, image};

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
