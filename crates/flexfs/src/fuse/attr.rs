//! Attributes between the core's form and the kernel's.
//!
//! Invariant: what goes to the kernel and comes back is the same, times before 1970 included; a time that cannot be kept is
//! refused, as with its writeback cache the kernel goes on with what it asked for, whatever the answer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flexfs_core::{Attr, kind};
use fuser::{Errno, FileAttr, FileType, INodeNo, TimeOrNow};

/// The permission bits of a mode: what `chmod` can set.
pub const PERMISSIONS: u32 = 0o7777;

/// The set-user-id, set-group-id and group-execute bits of a mode.
const SET_UID: u32 = 0o4000;
pub const SET_GID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o010;

/// The mode that a change of contents or owner by somebody unprivileged leaves: no longer set-user-id, nor
/// set-group-id if the group may execute it. `None` where that changes nothing, as on directories.
pub fn without_privileges(mode: u32) -> Option<u32> {
    if mode & kind::MASK == kind::DIR {
        return None;
    }
    let lost = if mode & GROUP_EXECUTE != 0 { SET_UID | SET_GID } else { SET_UID };
    (mode & lost != 0).then_some(mode & PERMISSIONS & !lost)
}

/// Whether a write may take bits of this mode away, so that the kernel must not rely on it for long.
pub fn is_privileged(mode: u32) -> bool {
    mode & kind::MASK == kind::FILE && mode & (SET_UID | SET_GID) != 0
}

/// The kernel's form of `attr`; transfers go best in pieces of `chunk_bytes`.
pub fn to_kernel(attr: &Attr, chunk_bytes: u32) -> FileAttr {
    FileAttr {
        ino: INodeNo(attr.ino),
        size: attr.size,
        blocks: attr.blocks,
        atime: from_ns(attr.atime_ns),
        mtime: from_ns(attr.mtime_ns),
        ctime: from_ns(attr.ctime_ns),
        crtime: from_ns(attr.btime_ns),
        kind: file_type(attr.mode),
        perm: (attr.mode & PERMISSIONS) as u16,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        rdev: attr.rdev,
        blksize: chunk_bytes,
        flags: 0,
    }
}

/// An inode of which nothing but its number and its type is known.
pub fn unknown(ino: u64, kind: u32) -> FileAttr {
    let nothing = Attr {
        ino,
        mode: kind,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        size: 0,
        blocks: 0,
        atime_ns: 0,
        mtime_ns: 0,
        ctime_ns: 0,
        btime_ns: 0,
    };
    to_kernel(&nothing, 0)
}

/// The kernel's name for the type bits of a mode.
pub fn file_type(mode: u32) -> FileType {
    match mode & kind::MASK {
        kind::FIFO => FileType::NamedPipe,
        kind::CHAR => FileType::CharDevice,
        kind::DIR => FileType::Directory,
        kind::BLOCK => FileType::BlockDevice,
        kind::SYMLINK => FileType::Symlink,
        kind::SOCKET => FileType::Socket,
        _ => FileType::RegularFile,
    }
}

/// The times that the kernel asks to set.
pub struct Times {
    pub atime: Option<Time>,
    pub mtime: Option<Time>,
    pub ctime_ns: Option<i64>,
}

/// A time to be set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Time {
    Now,
    Ns(i64),
}

impl Times {
    pub fn asked(atime: Option<TimeOrNow>, mtime: Option<TimeOrNow>, ctime: Option<SystemTime>) -> Result<Self, Errno> {
        let time = |time| match time {
            TimeOrNow::Now => Ok(Time::Now),
            TimeOrNow::SpecificTime(time) => from_request(time).map(Time::Ns),
        };
        Ok(Self {
            atime: atime.map(time).transpose()?,
            mtime: mtime.map(time).transpose()?,
            ctime_ns: ctime.map(from_request).transpose()?,
        })
    }

    /// Whether they are those of a change that the kernel keeps itself and hands over later, rather than asked of it by hand.
    pub fn are_handed_over(&self) -> bool {
        self.atime.is_none() && matches!(self.mtime, Some(Time::Ns(_))) && self.ctime_ns.is_some()
    }

    pub fn ask_now(&self) -> bool {
        [self.atime, self.mtime].contains(&Some(Time::Now))
    }
}

impl Time {
    /// By the present one of the volume.
    pub fn ns(self, present_ns: i64) -> i64 {
        match self {
            Self::Now => present_ns,
            Self::Ns(ns) => ns,
        }
    }
}

/// A time in a request. `fuser` 0.18 subtracts the nanoseconds of a time before 1970 where they are to be added.
fn from_request(time: SystemTime) -> Result<i64, Errno> {
    let ns = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).ok(),
        Err(before) => {
            let (seconds, ns) = (before.duration().as_secs(), before.duration().subsec_nanos());
            i64::try_from(i128::from(ns) - i128::from(seconds) * 1_000_000_000).ok()
        }
    };
    ns.ok_or(Errno::EINVAL)
}

fn from_ns(ns: i64) -> SystemTime {
    let distance = Duration::from_nanos(ns.unsigned_abs());
    if ns < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::to_ns;

    #[test]
    fn times_before_1970_survive_the_way_to_the_core_and_back() {
        for ns in [0, 1, -1, -1_500_000_000, i64::MIN + 1, i64::MAX] {
            assert_eq!(to_ns(from_ns(ns)), ns);
        }
    }

    #[test]
    fn a_request_time_before_1970_is_read_as_the_kernel_meant_it() {
        // The kernel says -2 s + 0.8 s; fuser 0.18 makes -2.8 s of it.
        let as_fuser_gives_it = UNIX_EPOCH - Duration::new(2, 800_000_000);
        assert_eq!(from_request(as_fuser_gives_it).unwrap(), -1_200_000_000);
    }

    /// They became the nearest time that can be kept, and the kernel went on with what was asked for.
    #[test]
    fn times_that_cannot_be_kept_are_refused() {
        let (second, most) = (Duration::from_secs(1), Duration::from_nanos(i64::MAX.unsigned_abs()));
        assert_eq!(from_request(UNIX_EPOCH + most).unwrap(), i64::MAX);
        // As fuser gives the earliest: whole seconds down, then nanoseconds added.
        let earliest = UNIX_EPOCH - Duration::new(9_223_372_037, 145_224_192);
        assert_eq!(from_request(earliest).unwrap(), i64::MIN);
        for time in [UNIX_EPOCH + most + second, earliest - second] {
            assert_eq!(from_request(time).unwrap_err().code(), Errno::EINVAL.code());
        }
    }

    #[test]
    fn times_handed_over_are_told_from_those_asked_for() {
        let (ns, now) = (Some(TimeOrNow::SpecificTime(UNIX_EPOCH)), Some(TimeOrNow::Now));
        let handed_over = |atime, mtime, ctime| Times::asked(atime, mtime, ctime).unwrap().are_handed_over();
        assert!(handed_over(None, ns, Some(UNIX_EPOCH)));
        for (atime, mtime, ctime) in [(ns, ns, Some(UNIX_EPOCH)), (None, now, Some(UNIX_EPOCH)), (None, ns, None)] {
            assert!(!handed_over(atime, mtime, ctime), "{atime:?}, {mtime:?}, {ctime:?}");
        }
    }

    #[test]
    fn privileges_go_from_files_and_stay_on_directories() {
        assert_eq!(without_privileges(kind::FILE | 0o6755), Some(0o755));
        assert_eq!(without_privileges(kind::FILE | 0o2745), None);
        assert_eq!(without_privileges(kind::FILE | 0o4644), Some(0o644));
        assert_eq!(without_privileges(kind::FILE | 0o755), None);
        assert_eq!(without_privileges(kind::DIR | 0o6755), None);
    }

    #[test]
    fn type_bits_and_permissions_keep_apart() {
        assert_eq!(unknown(7, kind::DIR | 0o2755).perm, 0o2755);
        for (mode, name) in [(kind::DIR, FileType::Directory), (kind::FILE | 0o7777, FileType::RegularFile)] {
            assert_eq!(unknown(7, mode).kind, name);
        }
    }
}
