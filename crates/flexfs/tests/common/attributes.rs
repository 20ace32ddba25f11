//! Extended attributes of files, for tests that set and compare them. Invariant: symbolic links are not followed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{XattrFlags, lgetxattr, llistxattr, lsetxattr};
use rustix::io::Errno;

/// Room for every list of names and every value that Linux takes.
const MOST_BYTES: usize = 64 << 10;

pub fn set_attribute(path: impl AsRef<Path>, name: &str, value: &[u8]) {
    lsetxattr(path.as_ref(), name, value, XattrFlags::empty()).unwrap();
}

/// The value of an attribute; `None` where the file has none of that name.
pub fn attribute(path: impl AsRef<Path>, name: impl AsRef<OsStr>) -> Option<Vec<u8>> {
    let mut value = vec![0; MOST_BYTES];
    match lgetxattr(path.as_ref(), name.as_ref(), &mut value[..]) {
        Err(Errno::NODATA) => None,
        read => {
            value.truncate(read.unwrap());
            Some(value)
        }
    }
}

/// The names of all attributes of a file.
pub fn attribute_names(path: &Path) -> Vec<OsString> {
    let mut list = vec![0; MOST_BYTES];
    let count = llistxattr(path, &mut list[..]).unwrap();
    let names = list[..count].split(|&byte| byte == 0).filter(|name| !name.is_empty());
    names.map(|name| OsStr::from_bytes(name).to_owned()).collect()
}
