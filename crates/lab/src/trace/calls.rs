//! System calls, which know files by descriptors, made into requests that know them by paths and offsets.
//!
//! Invariant: a descriptor is a file from the call that opened it to the one that closed it; one that the trace never saw
//! opened is a pipe, a socket or a terminal, and nothing of it is a request.

use std::collections::BTreeMap;

use super::{Op, Request, Trace, TraceError, wrong_path, wrong_range, wrong_transfer};

/// A call that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Open {
        path: String,
        flags: Flags,
        fd: i64,
    },
    Transfer {
        direction: Direction,
        fd: i64,
        /// Without it, where the descriptor stands.
        offset: Option<u64>,
        bytes: u64,
    },
    Seek {
        fd: i64,
        to: u64,
    },
    Truncate {
        fd: i64,
        bytes: u64,
    },
    Sync {
        fd: i64,
    },
    Close {
        fd: i64,
    },
    /// A second descriptor of the same file.
    Duplicate {
        fd: i64,
        to: i64,
    },
    /// A process or a thread begins, with descriptors of its own or those of its parent.
    Fork {
        child: u64,
        shares_files: bool,
    },
    MakeDir {
        path: String,
    },
    Rename {
        path: String,
        to: String,
    },
    Remove {
        path: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

/// What of an open's flags matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    creates: bool,
    truncates: bool,
    appends: bool,
}

/// Flags that change nothing of what a file system is asked for.
const PLAIN: [&str; 16] = [
    "O_RDONLY",
    "O_WRONLY",
    "O_RDWR",
    "O_EXCL",
    "O_LARGEFILE",
    "O_DIRECTORY",
    "O_CLOEXEC",
    "O_NOFOLLOW",
    "O_NONBLOCK",
    "O_NOCTTY",
    "O_SYNC",
    "O_DSYNC",
    "O_DIRECT",
    "O_NOATIME",
    "O_PATH",
    "O_TMPFILE",
];

impl Flags {
    /// Flags as they are written in C.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut flags = Self::default();
        for flag in text.split('|') {
            match flag {
                "O_CREAT" => flags.creates = true,
                "O_TRUNC" => flags.truncates = true,
                "O_APPEND" => flags.appends = true,
                flag if PLAIN.contains(&flag) => {}
                flag => return Err(format!("no open flag is called {flag:?}")),
            }
        }
        Ok(flags)
    }
}

/// A call of a trace.
pub(super) struct Called {
    pub line: usize,
    pub at_ns: u64,
    /// Who called.
    pub process: u64,
    pub call: Call,
}

/// An open file.
#[derive(Clone)]
struct Open {
    file: String,
    at: u64,
    appends: bool,
}

/// The files of a trace, while its calls are gone through.
#[derive(Default)]
struct Files {
    /// Whose descriptors a process uses; those of 0 if nobody saw it begin.
    owners: BTreeMap<u64, u64>,
    open: BTreeMap<(u64, i64), Open>,
    /// Files that the trace made or wrote, and how long they are.
    lens: BTreeMap<String, u64>,
    /// How much of the others is read.
    before: BTreeMap<String, u64>,
    requests: Vec<Request>,
}

/// A path as a trace has it, below the root.
pub(super) fn path(text: &str) -> Result<String, String> {
    let path = text.trim_start_matches('/').trim_end_matches('/');
    wrong_path(path).map_or(Ok(path.to_owned()), |why| Err(format!("{why}: {text:?}")))
}

/// The trace that calls come to, in the order of their times.
pub(super) fn trace(mut calls: Vec<Called>) -> Result<Trace, TraceError> {
    calls.sort_by_key(|called| called.at_ns);
    let first_ns = calls.first().map_or(0, |called| called.at_ns);
    let mut files = Files::default();
    for Called { line, at_ns, process, call } in calls {
        files.hear(at_ns - first_ns, process, call).map_err(|reason| TraceError { line, reason })?;
    }
    let lasts_ns = files.requests.last().map_or(0, |request| request.at_ns);
    Ok(Trace { before: files.before.into_iter().collect(), requests: files.requests, lasts_ns })
}

impl Files {
    fn hear(&mut self, at_ns: u64, process: u64, call: Call) -> Result<(), String> {
        let process = self.owners.get(&process).copied().unwrap_or(0);
        match call {
            Call::Open { path, flags, fd } => self.open(at_ns, (process, fd), path, flags),
            Call::Transfer { direction, fd, offset, bytes } => {
                return self.transfer(at_ns, (process, fd), direction, offset, bytes);
            }
            Call::Seek { fd, to } => {
                if let Some(open) = self.open.get_mut(&(process, fd)) {
                    open.at = to;
                }
            }
            Call::Truncate { fd, bytes } => {
                if let Some(why) = wrong_range(0, bytes) {
                    return Err(why);
                }
                if let Some(file) = self.file((process, fd)) {
                    self.lens.insert(file.clone(), bytes);
                    self.ask(at_ns, file, Op::Truncate { bytes });
                }
            }
            Call::Sync { fd } => {
                if let Some(file) = self.file((process, fd)) {
                    self.ask(at_ns, file, Op::Sync);
                }
            }
            Call::Close { fd } => {
                self.open.remove(&(process, fd));
            }
            Call::Duplicate { fd, to } => match self.open.get(&(process, fd)).cloned() {
                Some(open) => self.open.insert((process, to), open).map_or((), drop),
                None => self.open.remove(&(process, to)).map_or((), drop),
            },
            Call::Fork { child, shares_files } => self.fork(process, child, shares_files),
            Call::MakeDir { path } => self.ask(at_ns, path, Op::MakeDir),
            Call::Rename { path, to } => {
                if let Some(len) = self.lens.remove(&path) {
                    self.lens.insert(to.clone(), len);
                }
                self.open.values_mut().filter(|open| open.file == path).for_each(|open| open.file.clone_from(&to));
                self.ask(at_ns, path, Op::Rename { to });
            }
            Call::Remove { path } => {
                self.lens.insert(path.clone(), 0);
                self.ask(at_ns, path, Op::Remove);
            }
        }
        Ok(())
    }

    fn ask(&mut self, at_ns: u64, file: String, op: Op) {
        self.requests.push(Request { at_ns, file, op });
    }

    fn fork(&mut self, owner: u64, child: u64, shares_files: bool) {
        if shares_files {
            self.owners.insert(child, owner);
            return;
        }
        self.owners.insert(child, child);
        let open = self.open.range((owner, i64::MIN)..=(owner, i64::MAX));
        let copies: Vec<_> = open.map(|(&(_, fd), open)| ((child, fd), open.clone())).collect();
        self.open.extend(copies);
    }

    fn file(&self, fd: (u64, i64)) -> Option<String> {
        self.open.get(&fd).map(|open| open.file.clone())
    }

    fn open(&mut self, at_ns: u64, fd: (u64, i64), file: String, flags: Flags) {
        let is_new = flags.creates && !self.lens.contains_key(&file) && !self.before.contains_key(&file);
        if is_new || flags.truncates {
            self.lens.insert(file.clone(), 0);
        }
        if is_new {
            self.ask(at_ns, file.clone(), Op::Make);
        } else if flags.truncates {
            self.ask(at_ns, file.clone(), Op::Truncate { bytes: 0 });
        }
        self.open.insert(fd, Open { file, at: 0, appends: flags.appends });
    }

    fn transfer(
        &mut self,
        at_ns: u64,
        fd: (u64, i64),
        direction: Direction,
        offset: Option<u64>,
        bytes: u64,
    ) -> Result<(), String> {
        let Some(open) = self.open.get_mut(&fd) else { return Ok(()) };
        let len = self.lens.get(&open.file).copied();
        let stands_at = if open.appends && direction == Direction::Write { len.unwrap_or(open.at) } else { open.at };
        let offset = offset.unwrap_or_else(|| {
            open.at = stands_at.saturating_add(bytes);
            stands_at
        });
        if let Some(why) = wrong_transfer(offset, bytes) {
            return Err(why);
        }
        let (file, end) = (open.file.clone(), offset + bytes);
        match direction {
            Direction::Write => {
                let len = self.lens.entry(file.clone()).or_insert(0);
                *len = end.max(*len);
                self.ask(at_ns, file, Op::Write { offset, bytes });
            }
            Direction::Read => {
                // What the trace did not write was there before.
                if len.is_none_or(|len| len < end) {
                    let before = self.before.entry(file.clone()).or_insert(0);
                    *before = end.max(*before);
                }
                self.ask(at_ns, file, Op::Read { offset, bytes });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(calls: Vec<Call>) -> Trace {
        let all = calls.into_iter().zip(1..);
        trace(all.map(|(call, line)| Called { line, at_ns: 100 + line as u64, process: 7, call }).collect()).unwrap()
    }

    #[test]
    fn descriptors_move_on_as_they_are_read_and_written() {
        let open = |text: &str| Call::Open { path: "f".into(), flags: Flags::from_text(text).unwrap(), fd: 3 };
        let write = |bytes| Call::Transfer { direction: Direction::Write, fd: 3, offset: None, bytes };
        let trace = called(vec![
            open("O_RDWR|O_CREAT"),
            write(10),
            write(5),
            Call::Close { fd: 3 },
            write(99),
            open("O_WRONLY|O_APPEND"),
            write(2),
        ]);
        let ops: Vec<Op> = trace.requests.into_iter().map(|request| request.op).collect();
        let write = |offset, bytes| Op::Write { offset, bytes };
        assert_eq!(ops, [Op::Make, write(0, 10), write(10, 5), write(15, 2)]);
        assert!(trace.before.is_empty());
    }

    #[test]
    fn what_is_read_and_was_not_written_was_there_before() {
        let open = Call::Open { path: "f".into(), flags: Flags::default(), fd: 3 };
        let read = Call::Transfer { direction: Direction::Read, fd: 3, offset: Some(90), bytes: 10 };
        assert_eq!(called(vec![open, read]).before, [("f".to_owned(), 100)]);
    }
}
