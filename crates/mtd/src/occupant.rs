//! Who uses a device other than by its device file: the kernel does not refuse to have it written under them.
//!
//! Invariant: whoever the kernel tells of is found by the number of the device, not by a name.

use std::fs;
use std::path::Path;

/// Who uses a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// UBI is attached to it, as this device of its own.
    Ubi(String),
    /// A file system of this type is mounted on it, at this place.
    Mounted { kind: String, at: String },
}

/// The major number of block devices over MTD devices, which file systems on either are mounted by.
const BLOCK_MAJOR: u32 = 31;

/// Who uses a device, or a part of it, or the whole that it is a part of, if anybody does.
pub fn occupant_of(number: u32) -> Option<Occupant> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let occupant = |number| ubi_on(Path::new("/sys/class/ubi"), number).or_else(|| mounted_from(&mounts, number));
    related_to(Path::new("/sys/class/mtd"), number).into_iter().find_map(occupant)
}

/// The device, and those that share flash with it: the kernel lists a part below its whole.
fn related_to(class: &Path, number: u32) -> Vec<u32> {
    let place = |number: u32| fs::canonicalize(class.join(format!("mtd{number}"))).ok();
    let (Some(own), Ok(devices)) = (place(number), fs::read_dir(class)) else { return vec![number] };
    let names = devices.flatten().map(|device| device.file_name());
    let others =
        names.filter_map(|name| name.to_str()?.strip_prefix("mtd")?.parse().ok()).filter(|&other| other != number);
    let shares = |other: &u32| place(*other).is_some_and(|other| other.starts_with(&own) || own.starts_with(&other));
    std::iter::once(number).chain(others.filter(shares)).collect()
}

fn ubi_on(class: &Path, number: u32) -> Option<Occupant> {
    let devices = fs::read_dir(class).ok()?.flatten();
    let attached = |device: &fs::DirEntry| {
        let told = fs::read_to_string(device.path().join("mtd_num")).unwrap_or_default();
        told.trim().parse() == Ok(number)
    };
    let found = devices.into_iter().find(attached)?;
    Some(Occupant::Ubi(found.file_name().to_string_lossy().into_owned()))
}

/// From lines such as `40 25 31:0 / /mnt rw,relatime - jffs2 mtd0 rw`, by the number of the device or by its names.
fn mounted_from(mountinfo: &str, number: u32) -> Option<Occupant> {
    let numbered = format!("{BLOCK_MAJOR}:{number}");
    let sources = [format!("mtd{number}"), format!("/dev/mtd{number}"), format!("/dev/mtdblock{number}")];
    mountinfo.lines().find_map(|line| {
        let (mount, superblock) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(2);
        let (device, at) = (fields.next()?, fields.nth(1)?);
        let (kind, source) = superblock.split_once(' ')?;
        let source = source.split(' ').next()?;
        (device == numbered || sources.iter().any(|name| name == source))
            .then(|| Occupant::Mounted { kind: kind.to_owned(), at: at.to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_by_the_number_or_the_name_of_its_device() {
        let mounts = "22 1 31:3 / / rw,relatime shared:1 - squashfs /dev/root ro\n\
                      23 22 0:21 / /proc rw shared:2 - proc proc rw\n\
                      40 22 31:1 / /one rw - jffs2 mtd:data rw\n\
                      41 22 0:50 / /twelve rw - yaffs /dev/mtdblock12 rw\n";
        let at = |number| match mounted_from(mounts, number) {
            Some(Occupant::Mounted { at, .. }) => Some(at),
            _ => None,
        };
        assert_eq!((at(3), at(1)), (Some("/".into()), Some("/one".into())));
        assert_eq!((at(12), at(2)), (Some("/twelve".into()), None));
    }

    #[test]
    fn parts_of_a_device_and_the_whole_share_its_flash() {
        let (class, devices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (name, place) in
            [("mtd0", "mtd/mtd0"), ("mtd1", "mtd/mtd0/mtd1"), ("mtd2", "mtd/mtd0/mtd2"), ("mtd10", "mtd/mtd10")]
        {
            fs::create_dir_all(devices.path().join(place)).unwrap();
            std::os::unix::fs::symlink(devices.path().join(place), class.path().join(name)).unwrap();
        }
        std::os::unix::fs::symlink(devices.path().join("mtd/mtd0"), class.path().join("mtd0ro")).unwrap();
        let related = |number| {
            let mut related = related_to(class.path(), number);
            related.sort_unstable();
            related
        };
        assert_eq!((related(0), related(1), related(10)), (vec![0, 1, 2], vec![0, 1], vec![10]));
        assert_eq!(related(7), [7], "one that is not listed");
    }

    #[test]
    fn ubi_is_found_by_the_number_that_it_is_attached_to() {
        let class = tempfile::tempdir().unwrap();
        for (device, number) in [("ubi0", "3\n"), ("ubi1", "31\n")] {
            fs::create_dir(class.path().join(device)).unwrap();
            fs::write(class.path().join(device).join("mtd_num"), number).unwrap();
        }
        // A volume, and the class's own file.
        fs::create_dir(class.path().join("ubi0_0")).unwrap();
        fs::write(class.path().join("version"), "1\n").unwrap();
        assert_eq!(ubi_on(class.path(), 31), Some(Occupant::Ubi("ubi1".into())));
        assert_eq!(ubi_on(class.path(), 1), None);
    }
}
