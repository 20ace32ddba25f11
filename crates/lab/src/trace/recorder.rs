//! Writes down what a volume is asked, as a trace, while it is asked. Invariant: the trace begins with all that the volume
//! holds, so that its replay on an empty volume comes to the same names and lengths.
//!
//! Calls know files by inodes; what is written knows them by paths. A file whose last name is gone while it is open has
//! no path: nothing of it is written any more.

use std::io::{self, Write};

use flexfs_core::{Error, Fs, Ino, ROOT_INO, RenameMode, kind};
use nand::Nand;

use super::names::{Names, text};
use super::text::{write_head, write_request};
use super::{Op, ROOT, Request};
use torture::ops::Call;

/// What came of a call that succeeded, as far as the trace needs it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// The inode that it made.
    pub made: Option<Ino>,
    /// The bytes that it moved.
    pub bytes: Option<u64>,
}

/// A trace under way.
pub struct Recorder {
    out: Box<dyn Write + Send>,
    names: Names,
    /// When the first request came, ns.
    start_ns: Option<i64>,
}

impl Recorder {
    /// Begins with a volume as it is: looks at every name of it.
    ///
    /// # Errors
    /// The file cannot be written; an error of the volume is told as one of that.
    pub fn begin<N: Nand>(mut out: Box<dyn Write + Send>, fs: &mut Fs<N>) -> io::Result<Self> {
        let mut names = Names::default();
        let mut found = Found::default();
        found.dir(fs, &mut names, ROOT_INO).map_err(io::Error::other)?;
        write_head(None, found.files, &mut out)?;
        found.others.iter().try_for_each(|request| write_request(request, &mut out))?;
        Ok(Self { out, names, start_ns: None })
    }

    /// Hears of a call that came at `mono_ns` and succeeded.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn hear(&mut self, mono_ns: i64, call: &Call, done: Done) -> io::Result<()> {
        let asked = self.asked(call, done);
        asked.into_iter().try_for_each(|(file, op)| self.write(mono_ns, file, op))
    }

    /// Hears of a sync that was asked of an inode.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn hear_sync(&mut self, mono_ns: i64, ino: Ino) -> io::Result<()> {
        let path = self.names.path(ino).filter(|path| !path.is_empty());
        self.write(mono_ns, path.unwrap_or_else(|| ROOT.to_owned()), Op::Sync)
    }

    /// Ends it.
    ///
    /// # Errors
    /// What was written down last is not in the file.
    pub fn end(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn write(&mut self, mono_ns: i64, file: String, op: Op) -> io::Result<()> {
        let start_ns = *self.start_ns.get_or_insert(mono_ns);
        let at_ns = u64::try_from(mono_ns - start_ns).unwrap_or(0);
        write_request(&Request { at_ns, file, op }, &mut self.out)
    }

    /// What a call comes to, with the paths as they were when it came.
    fn asked(&mut self, call: &Call, done: Done) -> Vec<(String, Op)> {
        let of_file = |ino: Ino, ops: Vec<Op>| {
            let path = self.names.path(ino).filter(|path| !path.is_empty());
            path.map(|path| ops.into_iter().map(|op| (path.clone(), op)).collect()).unwrap_or_default()
        };
        match *call {
            Call::Read { ino, offset, len } => match done.bytes.unwrap_or(len as u64) {
                0 => Vec::new(),
                bytes => of_file(ino, vec![Op::Read { offset, bytes }]),
            },
            Call::Write { ino, offset, len, .. } => {
                of_file(ino, vec![Op::Write { offset, bytes: done.bytes.unwrap_or(len as u64) }])
            }
            Call::Copy { from, to, len } => {
                let bytes = done.bytes.unwrap_or(len);
                let mut asked = of_file(from.0, vec![Op::Read { offset: from.1, bytes }]);
                asked.extend(of_file(to.0, vec![Op::Write { offset: to.1, bytes }]));
                asked
            }
            Call::Punch { ino, offset, len } => of_file(ino, vec![Op::Punch { offset, bytes: len }]),
            Call::Allocate { ino, offset, len, keep_size, zero } => {
                let punch = zero.then_some(Op::Punch { offset, bytes: len });
                // What takes space beyond the end and leaves the length changes nothing that is replayed.
                let allocate = (!keep_size).then_some(Op::Allocate { offset, bytes: len });
                of_file(ino, punch.into_iter().chain(allocate).collect())
            }
            Call::Setattr { ino, changes } => {
                let truncate = changes.size.map(|bytes| Op::Truncate { bytes });
                of_file(ino, vec![truncate.unwrap_or(Op::Attributes)])
            }
            Call::Setxattr { ino, .. } | Call::Removexattr { ino, .. } => of_file(ino, vec![Op::Attributes]),
            _ => self.renamed(call, done).into_iter().chain(self.whiteout(call, done)).collect(),
        }
    }

    /// The whiteout that a rename left, which stands at the old name.
    fn whiteout(&mut self, call: &Call, done: Done) -> Option<(String, Op)> {
        let Call::Rename { parent, name, .. } = call else { return None };
        let (entry, ino) = ((*parent, text(name)), done.made?);
        let path = self.names.path_of(&entry)?;
        self.names.add(entry, ino);
        Some((path, Op::Make))
    }

    /// What a call that changes names comes to; they are changed here as well.
    fn renamed(&mut self, call: &Call, done: Done) -> Option<(String, Op)> {
        let names = &mut self.names;
        match call {
            Call::Create { parent, name, node, .. } => {
                let (entry, is_dir) = ((*parent, text(name)), node.mode & kind::MASK == kind::DIR);
                let path = names.path_of(&entry)?;
                names.add(entry, done.made?);
                Some((path, if is_dir { Op::MakeDir } else { Op::Make }))
            }
            Call::Symlink { parent, name, target, .. } => {
                let entry = (*parent, text(name));
                let path = names.path_of(&entry)?;
                names.add(entry, done.made?);
                Some((path, Op::Symlink { target: text(target) }))
            }
            Call::Link { ino, parent, name } => {
                let (path, entry) = (names.path(*ino)?, (*parent, text(name)));
                let to = names.path_of(&entry)?;
                names.add(entry, *ino);
                Some((path, Op::Link { to }))
            }
            Call::Unlink { parent, name } | Call::Rmdir { parent, name } => {
                let entry = (*parent, text(name));
                let path = names.path_of(&entry)?;
                names.remove(&entry);
                Some((path, Op::Remove))
            }
            Call::Rename { parent, name, new_parent, new_name, mode } => {
                let (from, to) = ((*parent, text(name)), (*new_parent, text(new_name)));
                let (path, to_path) = (names.path_of(&from)?, names.path_of(&to)?);
                // Of two names of one file neither goes.
                if !names.are_one(&from, &to) {
                    let moved = names.remove(&from)?;
                    let replaced = names.remove(&to);
                    names.add(to, moved);
                    if let (RenameMode::Exchange, Some(ino)) = (mode, replaced) {
                        names.add(from, ino);
                        return Some((path, Op::Exchange { to: to_path }));
                    }
                }
                Some((path, Op::Rename { to: to_path }))
            }
            _ => None,
        }
    }
}

/// What a volume holds before the first request.
#[derive(Default)]
struct Found {
    files: Vec<(String, u64)>,
    others: Vec<Request>,
}

impl Found {
    fn dir<N: Nand>(&mut self, fs: &mut Fs<N>, names: &mut Names, root: Ino) -> Result<(), Error> {
        let mut dirs = vec![root];
        while let Some(dir) = dirs.pop() {
            let mut entries = Vec::new();
            fs.readdir(dir, 0, &mut |entry| {
                entries.push(entry);
                true
            })?;
            for found in entries {
                let entry = (dir, text(&found.name));
                let first = names.path(found.ino);
                names.add(entry.clone(), found.ino);
                let Some(path) = names.path_of(&entry) else { continue };
                let other = match (first, found.kind) {
                    (Some(first), _) => Some((first, Op::Link { to: path })),
                    (None, kind::FILE) => {
                        self.files.push((path, fs.getattr(found.ino)?.size));
                        None
                    }
                    (None, kind::DIR) => {
                        dirs.push(found.ino);
                        Some((path, Op::MakeDir))
                    }
                    (None, kind::SYMLINK) => {
                        let target = text(&fs.readlink(found.ino)?);
                        Some((path, Op::Symlink { target }))
                    }
                    (None, _) => Some((path, Op::Make)),
                };
                self.others.extend(other.map(|(file, op)| Request { at_ns: 0, file, op }));
            }
        }
        Ok(())
    }
}
