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

/// Who uses a device, if anybody does.
pub fn occupant_of(number: u32) -> Option<Occupant> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    ubi_on(Path::new("/sys/class/ubi"), number).or_else(|| mounted_from(&mounts, number))
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

/// From lines such as `mtd0 /mnt jffs2 rw 0 0` and `/dev/mtdblock0 /mnt jffs2 rw 0 0`.
fn mounted_from(mounts: &str, number: u32) -> Option<Occupant> {
    let sources = [format!("mtd{number}"), format!("/dev/mtd{number}"), format!("/dev/mtdblock{number}")];
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (source, at, kind) = (fields.next()?, fields.next()?, fields.next()?);
        sources
            .iter()
            .any(|name| name == source)
            .then(|| Occupant::Mounted { kind: kind.to_owned(), at: at.to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_by_either_name_of_its_device() {
        let mounts = "proc /proc proc rw 0 0\nmtd1 /one jffs2 rw 0 0\n/dev/mtdblock12 /twelve jffs2 rw 0 0\n";
        let at = |number| match mounted_from(mounts, number) {
            Some(Occupant::Mounted { at, .. }) => Some(at),
            _ => None,
        };
        assert_eq!((at(1), at(12), at(2)), (Some("/one".into()), Some("/twelve".into()), None));
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
