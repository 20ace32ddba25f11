//! The values that operations take and give: attributes, directory entries, options, figures.

use alloc::string::String;
use alloc::vec::Vec;

use crate::policy::Mode;

/// An inode number: 40 bits, never used twice in the life of a volume.
pub type Ino = u64;

/// The root directory.
pub const ROOT_INO: Ino = 1;

/// The longest name of a directory entry, bytes.
pub const NAME_MAX_BYTES: usize = 255;

/// The file-type bits of a mode, as in `stat(2)`.
pub mod kind {
    pub const MASK: u32 = 0o170000;
    pub const FIFO: u32 = 0o010000;
    pub const CHAR: u32 = 0o020000;
    pub const DIR: u32 = 0o040000;
    pub const BLOCK: u32 = 0o060000;
    pub const FILE: u32 = 0o100000;
    pub const SYMLINK: u32 = 0o120000;
    pub const SOCKET: u32 = 0o140000;
}

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

/// How a chip is formatted.
#[derive(Clone, Debug)]
pub struct FormatOptions {
    /// The volume's identity; seeds every checksum, so it must differ from what the chip held before.
    pub volume_id: [u8; 16],
    /// A name for people, at most 32 bytes of UTF-8.
    pub label: String,
    pub root_mode: u32,
    pub root_uid: u32,
    pub root_gid: u32,
    pub now_ns: i64,
}

/// Whether data is compressed on its way to flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    #[default]
    None,
    Lz4,
}

/// Whether reading leaves a time on what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Atime {
    /// Never.
    #[default]
    None,
    /// As `relatime` of mount(8): where the time is older than the last change, or than a day.
    Relative,
}

/// A bound on the caches for hosts with memory to spare: enough for directories of 100,000 names.
pub const HOST_CACHE_BYTES: usize = 24 << 20;

/// Who says when a file's contents changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// The volume, by the time of the call. All times it leaves are whole ticks of 128 µs, so that no call leaves an earlier
    /// one than the call before it did.
    #[default]
    OfVolume,
    /// Of regular files the caller, who keeps the times of their changes and sets them with `setattr`: a call that changes
    /// contents leaves them as they are. The times that the volume leaves otherwise are those of the calls.
    OfCaller,
}

/// How a volume is mounted.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Never program or erase; a volume that needs recovery is recovered in memory only.
    pub read_only: bool,
    pub mode: Mode,
    pub compression: Compression,
    pub atime: Atime,
    pub times: Times,
    /// Buffered changes reach flash within this time, ns.
    pub commit_ns: i64,
    /// Bound on the caches (pages, inodes, recent index changes), bytes.
    pub cache_bytes: usize,
    pub now_ns: i64,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            mode: Mode::default(),
            compression: Compression::default(),
            atime: Atime::default(),
            times: Times::default(),
            commit_ns: 1_000_000_000,
            cache_bytes: 4 << 20,
            now_ns: 0,
        }
    }
}

/// Why nothing can be written any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// Too few good blocks are left.
    NoBlocks,
    /// Something that would have to be written anew cannot be read, or the chip is not as the volume says.
    Damaged,
    /// The chip failed.
    Chip,
}

/// What `statfs` tells, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatFs {
    pub chunk_bytes: u32,
    pub capacity_bytes: u64,
    pub free_bytes: u64,
    /// Of the free ones, those that [`Fs::allocate`](crate::Fs::allocate) can reserve: the rest is for their place in the
    /// index.
    pub reservable_bytes: u64,
    /// Inodes in use.
    pub files: u64,
}

/// The state of a mounted volume, for `info` and for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    pub volume_id: [u8; 16],
    pub label: String,
    pub version: u32,
    pub epoch: u32,
    /// Checkpoints written in the life of the volume.
    pub checkpoints: u64,
    pub clean: bool,
    pub chunk_bytes: u32,
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    pub files: u64,
    /// Blocks by what they are.
    pub blocks: BlockCounts,
    /// Erase counts over all blocks that are not bad: least, sum and greatest.
    pub erases_min: u32,
    pub erases_total: u64,
    pub erases_max: u32,
    /// Bytes programmed in the volume's life, in the order of [`nand::Cause::ALL`].
    pub written_bytes: [u64; nand::Cause::ALL.len()],
    /// Bytes that space is reserved for.
    pub reserved_bytes: u64,
    /// Blocks that failed a program and wait to be emptied.
    pub failing_blocks: u32,
    /// Blocks whose bit errors come near to what can be corrected: they wait to be written anew.
    pub fading_blocks: u32,
    /// More blocks that may go bad before nothing can be written any more, what is stored staying as it is.
    pub spare_blocks: u32,
    /// Why nothing can be written in this mount, unless it was asked to be read-only.
    pub ended: Option<Ended>,
    /// Reads whose checksum failed or that the chip could not correct, since mount.
    pub corrupt_reads: u64,
    /// The times forced migration or collection ran since mount.
    pub collections: u64,
}

/// How many blocks are what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// Erased, or holding nothing that is needed.
    pub free: u32,
    /// In the SLC region.
    pub slc: u32,
    /// In the native (MLC, TLC, QLC) region.
    pub native: u32,
    /// Index, tables and anchors.
    pub metadata: u32,
    pub bad: u32,
}

/// What a check of the whole volume found. It is clean when `findings` is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    pub files: u64,
    pub directories: u64,
    pub chunks: u64,
    /// Chunks that space is reserved for.
    pub reserved_chunks: u64,
    pub index_pages: u64,
    /// One line for each thing that is wrong, naming the inode, the slot and what was expected.
    pub findings: Vec<String>,
}
