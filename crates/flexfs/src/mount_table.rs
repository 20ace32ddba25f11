//! The kernel's table of mounts, as a process sees it.
//!
//! Invariant: a path in the table is given by its bytes, with the kernel's escapes undone; a line that is no mount is
//! passed over.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The type of our mounts in the kernel's table.
pub const MOUNT_TYPE: &str = "fuse.flexfs";

/// A line of the kernel's mount table.
pub struct Mount {
    pub id: u64,
    /// The device's numbers, as in `0:39`.
    pub device: String,
    pub path: PathBuf,
    pub kind: String,
    /// The source of the mount: of ours, the image.
    pub source: PathBuf,
}

/// The mounts this process sees, oldest first; none where there is no `/proc`.
pub fn mounts() -> Vec<Mount> {
    mounts_of("self")
}

/// The mounts a process sees, oldest first.
pub fn mounts_of(pid: &str) -> Vec<Mount> {
    let table = std::fs::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    table.split(|&byte| byte == b'\n').filter_map(parse_mount).collect()
}

fn parse_mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let path = |field| PathBuf::from(OsString::from_vec(unescape(field)));
    let device = String::from_utf8_lossy(fields.nth(1)?).into();
    let mounted_on = path(fields.nth(1)?);
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = String::from_utf8_lossy(fields.next()?).into();
    Some(Mount { id, device, path: mounted_on, kind, source: path(fields.next()?) })
}

/// Undoes the kernel's `\040` for a space, a tab, a line end and a backslash.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if first == b'\\' => {
                out.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            _ => {
                out.push(first);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_line_of_the_mount_table_is_read_with_its_escapes() {
        let line = br"36 35 98:0 /root /a\040b rw,noatime shared:1 - fuse.flexfs /x\040y.img rw";
        let mount = parse_mount(line).unwrap();
        assert_eq!((mount.id, mount.path.as_path(), mount.kind.as_str()), (36, Path::new("/a b"), MOUNT_TYPE));
        assert_eq!((mount.source.as_path(), mount.device.as_str()), (Path::new("/x y.img"), "98:0"));
    }

    #[test]
    fn a_line_that_is_no_mount_is_passed_over() {
        assert!(parse_mount(b"").is_none());
        assert!(parse_mount(b"x y z").is_none());
    }
}
