//! What a thread of a burst may ask for, on a handful of names, and what it may get.
//!
//! Names stand in two directories that stay, or in a directory of such a name, so that directories fill, move and go
//! while others are on their way through them. A thread has at most one open file. Records are eight equal bytes, so
//! that a value says all of one.

use std::fmt;

use crate::common::Dice;

/// Directories that stay.
pub const DIRS: usize = 2;
pub const NAMES: [&str; 3] = ["a", "b", "c"];

pub const RECORD_BYTES: u32 = 8;
/// Where records stand: in one page, in another, and past a hole.
const OFFSETS: [u32; 4] = [0, 8, 4096, 12_288];
/// Lengths to cut a file to, or extend it: never within a record.
const LENGTHS: [u32; 5] = [0, 8, 4096, 8192, 12_296];

/// A name in a directory that stays, or one below.
#[derive(Clone, Copy)]
pub struct Place {
    pub dir: usize,
    pub sub: Option<usize>,
    pub name: usize,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Move {
    Replace,
    NoReplace,
    Exchange,
}

/// Whether an attribute may, must not, or must be there before.
#[derive(Clone, Copy, PartialEq)]
pub enum Before {
    Any,
    Absent,
    Present,
}

/// Further flags of an `open`.
#[derive(Clone, Copy)]
pub struct OpenFlags {
    pub create: bool,
    pub truncate: bool,
}

/// One call of the system.
#[derive(Clone, Copy)]
pub enum Op {
    /// `O_CREAT | O_EXCL`; the file is then the thread's.
    Create(Place),
    /// With `O_NOFOLLOW`; the file is then the thread's.
    Open(Place, OpenFlags),
    Unlink(Place),
    Mkdir(Place),
    Rmdir(Place),
    Symlink(Place, u8),
    Readlink(Place),
    Link(Place, Place),
    Rename(Place, Place, Move),
    /// Of what kind it is, and how large where it is a file.
    Stat(Place),
    SetAttribute(Place, u8, Before),
    GetAttribute(Place),
    RemoveAttribute(Place),
    /// All names of a directory that stays.
    List(usize),
    // What follows is done to the thread's open file.
    Write(u32, u8),
    Append(u8),
    Read(u32),
    Punch(u32),
    Resize(u32),
    Size,
    Sync,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    File,
    Dir,
    Link,
}

/// What a call answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// An `errno`.
    Error(i32),
    /// A record, an attribute, or the target of a link.
    Value(u8),
    /// There is no record there.
    End,
    Kind(Kind),
    Size(u32),
    Listed(Vec<(usize, Kind)>),
    /// What nothing explains.
    Wrong(String),
}

/// What the calls of a burst are about: the fewer names and kinds of calls, the more of them meet.
#[derive(Clone, Copy)]
pub struct Theme {
    names: u64,
    dirs: u64,
    /// Whether there are names below the directories that stay.
    subs: bool,
    about: About,
}

#[derive(Clone, Copy, PartialEq)]
enum About {
    All,
    Contents,
    Attributes,
}

impl Theme {
    pub fn any(dice: &mut Dice) -> Self {
        Self {
            names: 1 + dice.below(NAMES.len() as u64),
            dirs: 1 + dice.below(DIRS as u64),
            subs: dice.below(2) == 0,
            about: [About::All, About::All, About::Contents, About::Attributes][dice.below(4) as usize],
        }
    }
}

impl Op {
    /// Any one; calls on an open file only where the thread has one.
    pub fn any(dice: &mut Dice, theme: &Theme, has_file: bool) -> Self {
        let value = 1 + dice.below(255) as u8;
        let pick = |dice: &mut Dice, from: &[u32]| from[dice.below(from.len() as u64) as usize];
        if has_file && theme.about != About::Attributes && dice.below(5) > u64::from(theme.about == About::All) {
            return match dice.below(9) {
                0 | 1 => Op::Write(pick(dice, &OFFSETS), value),
                2 => Op::Append(value),
                3 | 4 => Op::Read(pick(dice, &OFFSETS)),
                5 => Op::Punch(pick(dice, &OFFSETS)),
                6 => Op::Resize(pick(dice, &LENGTHS)),
                7 => Op::Size,
                _ => Op::Sync,
            };
        }
        let at = Place::any(dice, theme);
        let call = match theme.about {
            About::Contents if dice.below(4) > 0 => dice.below(5),
            About::Attributes if dice.below(4) > 0 => 19 + dice.below(2),
            _ => dice.below(22),
        };
        match call {
            0 | 1 => Op::Create(at),
            2..5 => Op::Open(at, OpenFlags { create: dice.below(2) == 0, truncate: dice.below(4) == 0 }),
            5 | 6 => Op::Unlink(at),
            7 | 8 => Op::Mkdir(at),
            9 => Op::Rmdir(at),
            10 => Op::Symlink(at, value),
            11 => Op::Readlink(at),
            12 | 13 => Op::Link(at, Place::any(dice, theme)),
            14..17 => {
                let how = [Move::Replace, Move::Replace, Move::NoReplace, Move::Exchange][dice.below(4) as usize];
                Op::Rename(at, Place::any(dice, theme), how)
            }
            17 | 18 => Op::Stat(at),
            19 => {
                let before = [Before::Any, Before::Absent, Before::Present][dice.below(3) as usize];
                Op::SetAttribute(at, value, before)
            }
            20 if dice.below(4) == 0 => Op::RemoveAttribute(at),
            20 => Op::GetAttribute(at),
            _ => Op::List(at.dir),
        }
    }

    /// The places it names, in the order in which they are looked for.
    pub fn places(&self) -> [Option<Place>; 2] {
        match *self {
            Op::Create(at) | Op::Open(at, _) | Op::Unlink(at) | Op::Mkdir(at) | Op::Rmdir(at) => [Some(at), None],
            Op::Symlink(at, _) | Op::Readlink(at) | Op::Stat(at) => [Some(at), None],
            Op::SetAttribute(at, ..) | Op::GetAttribute(at) | Op::RemoveAttribute(at) => [Some(at), None],
            Op::Link(from, to) | Op::Rename(from, to, _) => [Some(from), Some(to)],
            _ => [None, None],
        }
    }
}

impl Place {
    fn any(dice: &mut Dice, theme: &Theme) -> Self {
        let name = |dice: &mut Dice| dice.below(theme.names) as usize;
        let sub = (theme.subs && dice.below(4) == 0).then(|| name(dice));
        Self { dir: dice.below(theme.dirs) as usize, sub, name: name(dice) }
    }

    /// Its path below the mount.
    pub fn path(&self) -> String {
        match self.sub {
            Some(sub) => format!("d{}/{}/{}", self.dir, NAMES[sub], NAMES[self.name]),
            None => format!("d{}/{}", self.dir, NAMES[self.name]),
        }
    }
}

/// A directory that stays, below the mount.
pub fn dir_name(dir: usize) -> String {
    format!("d{dir}")
}

/// Symbolic links lead nowhere, ever: to this and a number.
const NOWHERE: &str = "nowhere-";

/// The target of a symbolic link.
pub fn target(value: u8) -> String {
    format!("{NOWHERE}{value}")
}

/// Which it is.
pub fn value_of(target: &str) -> Option<u8> {
    target.strip_prefix(NOWHERE)?.parse().ok()
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Create(at) => write!(f, "open({}, O_CREAT|O_EXCL)", at.path()),
            Op::Open(at, OpenFlags { create, truncate }) => {
                let (create, truncate) =
                    (if *create { ", O_CREAT" } else { "" }, if *truncate { ", O_TRUNC" } else { "" });
                write!(f, "open({}{create}{truncate})", at.path())
            }
            Op::Unlink(at) => write!(f, "unlink({})", at.path()),
            Op::Mkdir(at) => write!(f, "mkdir({})", at.path()),
            Op::Rmdir(at) => write!(f, "rmdir({})", at.path()),
            Op::Symlink(at, value) => write!(f, "symlink({}, {})", target(*value), at.path()),
            Op::Readlink(at) => write!(f, "readlink({})", at.path()),
            Op::Link(from, to) => write!(f, "link({}, {})", from.path(), to.path()),
            Op::Rename(from, to, how) => {
                let how = match how {
                    Move::Replace => "",
                    Move::NoReplace => ", RENAME_NOREPLACE",
                    Move::Exchange => ", RENAME_EXCHANGE",
                };
                write!(f, "rename({}, {}{how})", from.path(), to.path())
            }
            Op::Stat(at) => write!(f, "lstat({})", at.path()),
            Op::SetAttribute(at, value, before) => {
                let how = match before {
                    Before::Any => "",
                    Before::Absent => ", XATTR_CREATE",
                    Before::Present => ", XATTR_REPLACE",
                };
                write!(f, "lsetxattr({}, {value}{how})", at.path())
            }
            Op::GetAttribute(at) => write!(f, "lgetxattr({})", at.path()),
            Op::RemoveAttribute(at) => write!(f, "lremovexattr({})", at.path()),
            Op::List(dir) => write!(f, "readdir(d{dir})"),
            Op::Write(offset, value) => write!(f, "pwrite(fd, {value}, {offset})"),
            Op::Append(value) => write!(f, "pwritev2(fd, {value}, RWF_APPEND)"),
            Op::Read(offset) => write!(f, "pread(fd, {offset})"),
            Op::Punch(offset) => write!(f, "fallocate(fd, FALLOC_FL_PUNCH_HOLE, {offset})"),
            Op::Resize(len) => write!(f, "ftruncate(fd, {len})"),
            Op::Size => write!(f, "fstat(fd)"),
            Op::Sync => write!(f, "fsync(fd)"),
        }
    }
}
