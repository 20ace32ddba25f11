//! Extended attributes of the host's files.
//!
//! Invariant: a symbolic link at the end of a path is not followed; an attribute that grows meanwhile is read whole.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{XattrFlags, lgetxattr, llistxattr, lsetxattr};
use rustix::io::Errno;

/// Room for nearly every attribute, and for most lists of names: both take one call then.
const USUAL_BYTES: usize = 4096;

/// Linux takes no longer value, and gives no longer list.
const MOST_BYTES: usize = 64 << 10;

/// The names of a file's attributes, in the order of the host.
pub fn names(path: &Path) -> io::Result<Vec<OsString>> {
    let list = whole(|room| llistxattr(path, room))?;
    let names = list.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| OsStr::from_bytes(name).to_owned()).collect())
}

/// The value of an attribute; `None` where the file has none of that name.
pub fn value(path: &Path, name: &OsStr) -> io::Result<Option<Vec<u8>>> {
    match whole(|room| lgetxattr(path, name, room)) {
        Err(Errno::NODATA) => Ok(None),
        read => Ok(Some(read?)),
    }
}

/// Gives a file an attribute, in place of an older attribute of that name.
pub fn set(path: &Path, name: &OsStr, value: &[u8]) -> io::Result<()> {
    Ok(lsetxattr(path, name, value, XattrFlags::empty())?)
}

/// All that `read` gives, in as much room as that takes.
fn whole(mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut room = vec![0; USUAL_BYTES];
    loop {
        match read(&mut room) {
            Ok(count) => {
                room.truncate(count);
                return Ok(room);
            }
            Err(Errno::RANGE) if room.len() < MOST_BYTES => room.resize(room.len() * 2, 0),
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_that_grows_is_read_whole() {
        for bytes in [0, 1, USUAL_BYTES, USUAL_BYTES + 1, MOST_BYTES / 2] {
            let mut calls = 0;
            let read = whole(|room| {
                calls += 1;
                // It is twice as long at the second look.
                let bytes = if calls == 1 { bytes } else { bytes * 2 };
                room.get_mut(..bytes).ok_or(Errno::RANGE)?.fill(7);
                Ok(bytes)
            });
            let expected = if bytes <= USUAL_BYTES { bytes } else { bytes * 2 };
            assert_eq!(read, Ok(vec![7; expected]));
        }
        for errno in [Errno::NOTSUP, Errno::RANGE] {
            assert_eq!(whole(|_| Err(errno)), Err(errno));
        }
    }

    #[test]
    fn a_file_without_an_attribute_has_no_value() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let missing = file.path().with_extension("missing");
        assert_eq!(value(&missing, OsStr::new("user.a")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(names(&missing).unwrap_err().kind(), io::ErrorKind::NotFound);
        match value(file.path(), OsStr::new("user.a")) {
            Ok(found) => assert_eq!(found, None),
            Err(error) => return assert_eq!(error.kind(), io::ErrorKind::Unsupported),
        }
        let long = vec![5; 3 * USUAL_BYTES / 4];
        for (name, held) in [("user.a", &b"1"[..]), ("user.a", b"22"), ("user.long", &long)] {
            set(file.path(), OsStr::new(name), held).unwrap();
            assert_eq!(value(file.path(), OsStr::new(name)).unwrap().as_deref(), Some(held));
        }
        let named = names(file.path()).unwrap();
        assert!(["user.a", "user.long"].iter().all(|name| named.contains(&OsString::from(name))), "{named:?}");
    }
}
