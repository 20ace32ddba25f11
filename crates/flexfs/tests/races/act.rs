//! The calls themselves, through the kernel, and the tree they leave.

use std::fs;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, RenameFlags, XattrFlags};
use rustix::io::{Errno, ReadWriteFlags};

use crate::model::{Node, State, What};
use crate::op::{
    Before, DIRS, Kind, Move, NAMES, Op, OpenFlags, Outcome, Place, RECORD_BYTES, dir_name, target, value_of,
};

const ATTRIBUTE: &str = "user.race";

/// How often a name is looked for that leads to what has just gone. The kernel itself looks twice.
const LOOKS: usize = 4;

/// A thread as the kernel sees it.
pub struct Actor<'a> {
    pub mount: &'a Path,
    pub file: Option<OwnedFd>,
}

impl Actor<'_> {
    /// Asks for one thing.
    pub fn act(&mut self, op: &Op) -> Outcome {
        for _ in 1..LOOKS {
            match self.ask(op) {
                Err(Errno::STALE) => {}
                result => return answer(result),
            }
        }
        answer(self.ask(op))
    }

    fn at(&self, place: &Place) -> PathBuf {
        self.mount.join(place.path())
    }

    fn ask(&mut self, op: &Op) -> Result<Outcome, Errno> {
        match op {
            Op::Create(at) => self.open(at, OFlags::CREATE | OFlags::EXCL),
            Op::Open(at, OpenFlags { create, truncate }) => {
                let mut flags = OFlags::empty();
                flags.set(OFlags::CREATE, *create);
                flags.set(OFlags::TRUNC, *truncate);
                self.open(at, flags)
            }
            Op::Unlink(at) => done(rustix::fs::unlink(self.at(at))),
            Op::Mkdir(at) => done(rustix::fs::mkdir(self.at(at), Mode::from_raw_mode(0o755))),
            Op::Rmdir(at) => done(rustix::fs::rmdir(self.at(at))),
            Op::Symlink(at, value) => done(rustix::fs::symlink(target(*value), self.at(at))),
            Op::Readlink(at) => Ok(link(&rustix::fs::readlink(self.at(at), Vec::new())?.to_string_lossy())),
            Op::Link(from, to) => done(rustix::fs::link(self.at(from), self.at(to))),
            Op::Rename(from, to, how) => {
                let flags = match how {
                    Move::Replace => RenameFlags::empty(),
                    Move::NoReplace => RenameFlags::NOREPLACE,
                    Move::Exchange => RenameFlags::EXCHANGE,
                };
                done(rustix::fs::renameat_with(CWD, self.at(from), CWD, self.at(to), flags))
            }
            Op::Stat(at) => {
                let stat = rustix::fs::statat(CWD, self.at(at), AtFlags::SYMLINK_NOFOLLOW)?;
                Ok(match FileType::from_raw_mode(stat.st_mode) {
                    FileType::RegularFile => Outcome::Size(stat.st_size as u32),
                    FileType::Directory => Outcome::Kind(Kind::Dir),
                    _ => Outcome::Kind(Kind::Link),
                })
            }
            Op::SetAttribute(at, value, before) => {
                let flags = match before {
                    Before::Any => XattrFlags::empty(),
                    Before::Absent => XattrFlags::CREATE,
                    Before::Present => XattrFlags::REPLACE,
                };
                done(rustix::fs::lsetxattr(self.at(at), ATTRIBUTE, &[*value], flags))
            }
            Op::GetAttribute(at) => attribute(&self.at(at)).map(Outcome::Value),
            Op::RemoveAttribute(at) => done(rustix::fs::lremovexattr(self.at(at), ATTRIBUTE)),
            Op::List(dir) => list(&self.mount.join(dir_name(*dir))).map(Outcome::Listed),
            _ => self.ask_file(op),
        }
    }

    /// A call on the open file; there is one, or the call is not made.
    fn ask_file(&self, op: &Op) -> Result<Outcome, Errno> {
        let file = self.file.as_ref().ok_or(Errno::BADF)?;
        let whole = |written| if written == RECORD_BYTES as usize { Outcome::Done } else { short(written) };
        match *op {
            Op::Write(offset, value) => {
                rustix::io::pwrite(file, &[value; RECORD_BYTES as usize], u64::from(offset)).map(whole)
            }
            Op::Append(value) => {
                let record = [value; RECORD_BYTES as usize];
                let at_end = ReadWriteFlags::APPEND;
                rustix::io::pwritev2(file, &[IoSlice::new(&record)], 0, at_end).map(whole)
            }
            Op::Read(offset) => {
                let mut record = [0; RECORD_BYTES as usize];
                let count = rustix::io::pread(file, &mut record, u64::from(offset))?;
                Ok(match count {
                    0 => Outcome::End,
                    _ if count == record.len() && record.iter().all(|&byte| byte == record[0]) => {
                        Outcome::Value(record[0])
                    }
                    _ => Outcome::Wrong(format!("{count} bytes of {record:?}")),
                })
            }
            Op::Punch(offset) => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                done(rustix::fs::fallocate(file, flags, u64::from(offset), u64::from(RECORD_BYTES)))
            }
            Op::Resize(len) => done(rustix::fs::ftruncate(file, u64::from(len))),
            Op::Size => Ok(Outcome::Size(rustix::fs::fstat(file)?.st_size as u32)),
            _ => done(rustix::fs::fsync(file)),
        }
    }

    fn open(&mut self, at: &Place, flags: OFlags) -> Result<Outcome, Errno> {
        let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(self.at(at), flags, Mode::from_raw_mode(0o644))?;
        self.file = Some(opened);
        Ok(Outcome::Done)
    }
}

fn done(result: Result<(), Errno>) -> Result<Outcome, Errno> {
    result.map(|()| Outcome::Done)
}

fn answer(result: Result<Outcome, Errno>) -> Outcome {
    result.unwrap_or_else(|errno| Outcome::Error(errno.raw_os_error()))
}

fn short(count: usize) -> Outcome {
    Outcome::Wrong(format!("{count} bytes written"))
}

fn link(target: &str) -> Outcome {
    value_of(target).map_or_else(|| Outcome::Wrong(target.to_owned()), Outcome::Value)
}

fn attribute(path: &Path) -> Result<u8, Errno> {
    let mut value = [0; 1];
    rustix::fs::lgetxattr(path, ATTRIBUTE, &mut value[..]).map(|_| value[0])
}

/// The names in a directory that are ours, and what they are.
fn list(path: &Path) -> Result<Vec<(usize, Kind)>, Errno> {
    let dir = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut found = Vec::new();
    for entry in rustix::fs::Dir::new(dir)? {
        let entry = entry?;
        let kind = match entry.file_type() {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Dir,
            _ => Kind::Link,
        };
        found
            .extend(NAMES.iter().position(|name| entry.file_name().to_bytes() == name.as_bytes()).map(|at| (at, kind)));
    }
    Ok(found)
}

/// The tree as it stands while nobody changes it, and of how many files the kernel had miscounted the names.
pub fn look(mount: &Path) -> (State, u64) {
    let (mut state, mut known) = (State::empty(), Vec::new());
    for dir in 0..DIRS {
        look_into(&mut state, dir as u16, &mount.join(dir_name(dir)), &mut known);
    }
    let mut miscounted = 0;
    for Known { path, id, .. } in known {
        let links = u64::from(state.nodes[&id].links);
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_file() && meta.nlink() != links {
            // Where the answer to another call overtakes that to an `unlink`, the kernel counts the name that went
            // twice. What is asked of the server, as by any change, has to be right.
            fs::set_permissions(&path, meta.permissions()).unwrap();
            assert_eq!(fs::symlink_metadata(&path).unwrap().nlink(), links, "names of {}", path.display());
            miscounted += 1;
        }
    }
    (state, miscounted)
}

/// What a node is in the kernel's eyes.
struct Known {
    ino: u64,
    id: u16,
    path: PathBuf,
}

fn look_into(state: &mut State, dir: u16, path: &Path, known: &mut Vec<Known>) {
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        let name =
            NAMES.iter().position(|known| *known == name).unwrap_or_else(|| panic!("{} is here", path.display()));
        let meta = fs::symlink_metadata(&path).unwrap();
        if let Some(other) = known.iter().find(|other| other.ino == meta.ino()) {
            state.enter(dir, name, other.id);
            continue;
        }
        let what = if meta.is_dir() {
            What::Dir([None; NAMES.len()])
        } else if meta.is_symlink() {
            What::Link(value_of(&fs::read_link(&path).unwrap().to_string_lossy()).unwrap())
        } else {
            file(&fs::read(&path).unwrap())
        };
        let id = state.add(Node { what, links: 0, attribute: attribute(&path).ok(), lost_a_name: false });
        state.enter(dir, name, id);
        known.push(Known { ino: meta.ino(), id, path: path.clone() });
        if meta.is_dir() {
            look_into(state, id, &path, known);
        }
    }
}

fn file(bytes: &[u8]) -> What {
    let records =
        bytes.chunks(RECORD_BYTES as usize).enumerate().filter(|(_, record)| record.iter().any(|&byte| byte != 0));
    let records = records.map(|(at, record)| {
        assert!(record.len() == RECORD_BYTES as usize && record.iter().all(|&byte| byte == record[0]), "{record:?}");
        (at as u32 * RECORD_BYTES, record[0])
    });
    What::File { size: bytes.len() as u32, records: records.collect() }
}
