//! The values that operations take and give: attributes, directory entries.

use alloc::vec::Vec;

use crate::format::inode::Ino;

/// The longest name of a directory entry, bytes.
pub const NAME_MAX_BYTES: usize = 255;

/// What `stat` tells. Times are nanoseconds since 1970-01-01 UTC, and may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr {
    pub ino: Ino,
    /// File type ([`kind`]) and permission bits.
    pub mode: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u32,
    pub size: u64,
    /// Allocated space in units of 512 bytes.
    pub blocks: u64,
    pub atime_ns: i64,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
    pub btime_ns: i64,
}

/// What to change of an inode's attributes; `None` leaves a field as it is. `ctime` becomes the operation's time
/// unless given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// Permission bits; the file type cannot be changed.
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub atime_ns: Option<i64>,
    pub mtime_ns: Option<i64>,
    pub ctime_ns: Option<i64>,
}

impl SetAttr {
    /// The time that the last modification and the last change both get, where nothing else is changed.
    pub(super) fn only_time_ns(&self) -> Option<i64> {
        let &Self { mtime_ns, ctime_ns, .. } = self;
        let alone = *self == Self { mtime_ns, ctime_ns, ..Self::default() } && mtime_ns == ctime_ns;
        mtime_ns.filter(|_| alone)
    }
}

/// An extended attribute: its name and value.
pub type Attribute<'a> = (&'a [u8], &'a [u8]);

/// Who and what a new inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewNode {
    /// File type ([`kind`]) and permission bits.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Device number of a character or block special file, else 0.
    pub rdev: u32,
}

/// How `rename` treats an existing target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RenameMode {
    /// Replace it, as `rename(2)` does.
    #[default]
    Replace,
    /// Refuse with [`crate::Error::Exists`].
    NoReplace,
    /// Swap the two names.
    Exchange,
    /// Leave a whiteout of this owner at the old name, in the same change: the character device 0:0 by which an overlay
    /// hides a name of its lower layers. An existing target is replaced, or refused with [`crate::Error::Exists`].
    Whiteout { replaces: bool, uid: u32, gid: u32 },
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    pub ino: Ino,
    /// The file-type bits of the inode's mode ([`kind`]).
    pub kind: u32,
    pub name: Vec<u8>,
    /// Pass it to `readdir` to go on after this entry.
    pub cookie: u64,
}
