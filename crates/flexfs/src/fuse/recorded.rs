//! The volume as the server calls it: as the core's, and recorded where that was asked for: its decisions, or what it is asked
//! as a trace.
//!
//! Invariant: whatever may lead to a decision goes through a method that records it; a trace holds what succeeded.

use std::io;
use std::ops::Deref;

use flexfs_core::{Attr, Attribute, DirEntry, Error, Fs, Ino, NewNode, Power, RenameMode, SetAttr, Unchecked};
use lab::trace::{self, Done};
use torture::content::{Fill, Texture};
use torture::ops::{Call, Name};
use torture::record::{Event, Recorder};

use crate::any_chip::AnyChip;

/// What stands for what was written.
const UNKNOWN: Fill = Fill { seed: 0, start: 0, texture: Texture::Noise };

/// What is written down of a mount.
#[derive(Default)]
pub struct Recordings {
    pub decisions: Option<Recorder>,
    pub trace: Option<trace::Recorder>,
}

/// A volume, and its recordings.
pub struct Recorded {
    fs: Fs<AnyChip>,
    recordings: Recordings,
    /// When the request under way came.
    mono_ns: i64,
    /// Why a recording ended, until that was told.
    failure: Option<io::Error>,
}

/// What a trace needs of an answer.
trait Answer {
    fn done(&self) -> Done {
        Done::default()
    }
}

impl Answer for () {}
impl Answer for Vec<u8> {}
impl Answer for Vec<Vec<u8>> {}

impl Answer for Attr {
    fn done(&self) -> Done {
        Done { made: Some(self.ino), bytes: None }
    }
}

impl Answer for Option<Attr> {
    fn done(&self) -> Done {
        self.as_ref().map_or_else(Done::default, Answer::done)
    }
}

impl Answer for usize {
    fn done(&self) -> Done {
        Done { made: None, bytes: Some(*self as u64) }
    }
}

impl Answer for u64 {
    fn done(&self) -> Done {
        Done { made: None, bytes: Some(*self) }
    }
}

impl Answer for (usize, Unchecked) {
    fn done(&self) -> Done {
        self.0.done()
    }
}

impl Deref for Recorded {
    type Target = Fs<AnyChip>;

    fn deref(&self) -> &Fs<AnyChip> {
        &self.fs
    }
}

fn name(bytes: &[u8]) -> Name {
    Name(bytes.to_vec())
}

impl Recorded {
    pub fn new(fs: Fs<AnyChip>, recordings: Recordings) -> Self {
        Self { fs, recordings, mono_ns: 0, failure: None }
    }

    /// The volume, for what decides nothing: to look at it, and to let the chip's time pass.
    pub fn unrecorded(&mut self) -> &mut Fs<AnyChip> {
        &mut self.fs
    }

    /// Ends the recordings.
    pub fn into_fs(mut self) -> (Fs<AnyChip>, io::Result<()>) {
        let Recordings { decisions, trace } = self.recordings;
        let decisions = decisions.map_or(Ok(()), |recorder| recorder.end(&mut self.fs));
        let trace = trace.map_or(Ok(()), trace::Recorder::end);
        (self.fs, decisions.and(trace))
    }

    /// Why a recording ended early, once.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    fn event<T>(&mut self, event: impl FnOnce() -> Event, come: impl FnOnce(&mut Fs<AnyChip>) -> T) -> T {
        let Some(recorder) = &mut self.recordings.decisions else { return come(&mut self.fs) };
        let (answer, written) = recorder.around(&mut self.fs, event(), come);
        if let Err(error) = written {
            self.recordings.decisions = None;
            self.failure = Some(error);
        }
        answer
    }

    /// A call that leaves no time.
    fn look<T: Answer>(
        &mut self,
        call: impl FnOnce() -> Call,
        come: impl FnOnce(&mut Fs<AnyChip>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.change(0, call, come)
    }

    fn change<T: Answer>(
        &mut self,
        now_ns: i64,
        call: impl FnOnce() -> Call,
        come: impl FnOnce(&mut Fs<AnyChip>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.recordings.trace.is_none() {
            return self.event(|| Event::Call { call: call(), now_ns }, come);
        }
        let call = call();
        let answer = self.event(|| Event::Call { call: call.clone(), now_ns }, come)?;
        self.trace(|trace, mono_ns| trace.hear(mono_ns, &call, answer.done()));
        Ok(answer)
    }

    fn trace(&mut self, hear: impl FnOnce(&mut trace::Recorder, i64) -> io::Result<()>) {
        let Some(trace) = &mut self.recordings.trace else { return };
        if let Err(error) = hear(trace, self.mono_ns) {
            self.recordings.trace = None;
            self.failure = Some(error);
        }
    }

    pub fn request(&mut self, mono_ns: i64) {
        self.mono_ns = mono_ns;
        self.event(|| Event::Request { mono_ns }, |fs| fs.request(mono_ns));
    }

    pub fn set_power(&mut self, power: Power) {
        self.event(|| Event::Power { charger: power == Power::Charger }, |fs| fs.set_power(power));
    }

    pub fn background(&mut self, mono_ns: i64, now_ns: i64) -> Result<Option<i64>, Error> {
        self.event(|| Event::Background { mono_ns, now_ns }, |fs| fs.background(mono_ns, now_ns))
    }

    /// Makes everything durable, for the sake of an inode.
    pub fn sync(&mut self, ino: Ino) -> Result<(), Error> {
        self.event(|| Event::Call { call: Call::Sync, now_ns: 0 }, Fs::sync)?;
        self.trace(|trace, mono_ns| trace.hear_sync(mono_ns, ino));
        Ok(())
    }

    pub fn accessed(&mut self, ino: Ino, now_ns: i64) -> Result<(), Error> {
        self.event(|| Event::Accessed { ino, now_ns }, |fs| fs.accessed(ino, now_ns))
    }

    pub fn lookup(&mut self, parent: Ino, child: &[u8]) -> Result<Attr, Error> {
        self.look(|| Call::Lookup { parent, name: name(child) }, |fs| fs.lookup(parent, child))
    }

    pub fn getattr(&mut self, ino: Ino) -> Result<Attr, Error> {
        self.look(|| Call::Getattr { ino }, |fs| fs.getattr(ino))
    }

    pub fn setattr(&mut self, ino: Ino, changes: SetAttr, now_ns: i64) -> Result<Attr, Error> {
        self.change(now_ns, || Call::Setattr { ino, changes }, |fs| fs.setattr(ino, changes, now_ns))
    }

    pub fn create_with(
        &mut self,
        parent: Ino,
        child: &[u8],
        node: NewNode,
        attributes: &[Attribute<'_>],
        now_ns: i64,
    ) -> Result<Attr, Error> {
        let call = || {
            let attributes = attributes.iter().map(|(key, value)| (name(key), name(value))).collect();
            Call::Create { parent, name: name(child), node, attributes }
        };
        self.change(now_ns, call, |fs| fs.create_with(parent, child, node, attributes, now_ns))
    }

    pub fn symlink(
        &mut self,
        parent: Ino,
        child: &[u8],
        target: &[u8],
        uid: u32,
        gid: u32,
        now_ns: i64,
    ) -> Result<Attr, Error> {
        let call = || Call::Symlink { parent, name: name(child), target: name(target), uid, gid };
        self.change(now_ns, call, |fs| fs.symlink(parent, child, target, uid, gid, now_ns))
    }

    pub fn readlink(&mut self, ino: Ino) -> Result<Vec<u8>, Error> {
        self.look(|| Call::Readlink { ino }, |fs| fs.readlink(ino))
    }

    pub fn link(&mut self, ino: Ino, parent: Ino, child: &[u8], now_ns: i64) -> Result<Attr, Error> {
        self.change(now_ns, || Call::Link { ino, parent, name: name(child) }, |fs| fs.link(ino, parent, child, now_ns))
    }

    pub fn unlink(&mut self, parent: Ino, child: &[u8], now_ns: i64) -> Result<(), Error> {
        self.change(now_ns, || Call::Unlink { parent, name: name(child) }, |fs| fs.unlink(parent, child, now_ns))
    }

    pub fn rmdir(&mut self, parent: Ino, child: &[u8], now_ns: i64) -> Result<(), Error> {
        self.change(now_ns, || Call::Rmdir { parent, name: name(child) }, |fs| fs.rmdir(parent, child, now_ns))
    }

    pub fn rename(
        &mut self,
        parent: Ino,
        child: &[u8],
        new_parent: Ino,
        new_child: &[u8],
        mode: RenameMode,
        now_ns: i64,
    ) -> Result<Option<Attr>, Error> {
        let call = || Call::Rename { parent, name: name(child), new_parent, new_name: name(new_child), mode };
        self.change(now_ns, call, |fs| fs.rename(parent, child, new_parent, new_child, mode, now_ns))
    }

    pub fn open(&mut self, ino: Ino) -> Result<(), Error> {
        self.look(|| Call::Open { ino }, |fs| fs.open(ino))
    }

    pub fn release(&mut self, ino: Ino) -> Result<(), Error> {
        self.look(|| Call::Release { ino }, |fs| fs.release(ino))
    }

    pub fn read(&mut self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<usize, Error> {
        let len = buf.len();
        self.look(|| Call::Read { ino, offset, len }, |fs| fs.read(ino, offset, buf))
    }

    pub fn read_unchecked(&mut self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<(usize, Unchecked), Error> {
        let len = buf.len();
        self.look(|| Call::Read { ino, offset, len }, |fs| fs.read_unchecked(ino, offset, buf))
    }

    pub fn write(&mut self, ino: Ino, offset: u64, data: &[u8], now_ns: i64) -> Result<usize, Error> {
        let call = || Call::Write { ino, offset, len: data.len(), fill: UNKNOWN };
        self.change(now_ns, call, |fs| fs.write(ino, offset, data, now_ns))
    }

    pub fn punch(&mut self, ino: Ino, offset: u64, len: u64, now_ns: i64) -> Result<(), Error> {
        self.change(now_ns, || Call::Punch { ino, offset, len }, |fs| fs.punch(ino, offset, len, now_ns))
    }

    pub fn allocate(&mut self, ino: Ino, offset: u64, len: u64, keep_size: bool, now_ns: i64) -> Result<(), Error> {
        let call = || Call::Allocate { ino, offset, len, keep_size, zero: false };
        self.change(now_ns, call, |fs| fs.allocate(ino, offset, len, keep_size, now_ns))
    }

    pub fn zero_range(&mut self, ino: Ino, offset: u64, len: u64, keep_size: bool, now_ns: i64) -> Result<(), Error> {
        let call = || Call::Allocate { ino, offset, len, keep_size, zero: true };
        self.change(now_ns, call, |fs| fs.zero_range(ino, offset, len, keep_size, now_ns))
    }

    pub fn copy_range(&mut self, from: (Ino, u64), to: (Ino, u64), len: u64, now_ns: i64) -> Result<u64, Error> {
        self.change(now_ns, || Call::Copy { from, to, len }, |fs| fs.copy_range(from, to, len, now_ns))
    }

    pub fn seek(&mut self, ino: Ino, offset: u64, hole: bool) -> Result<u64, Error> {
        self.event(|| Event::Seek { ino, offset, hole }, |fs| fs.seek(ino, offset, hole))
    }

    pub fn parent_of(&mut self, dir: Ino) -> Result<Ino, Error> {
        self.look(|| Call::ParentOf { dir }, |fs| fs.parent_of(dir))
    }

    /// Entries of a directory after that cookie, at most so many.
    pub fn entries(&mut self, dir: Ino, cookie: u64, entries: usize) -> Result<Vec<DirEntry>, Error> {
        let come = |fs: &mut Fs<AnyChip>| {
            let mut found = Vec::new();
            fs.readdir(dir, cookie, &mut |entry| {
                found.push(entry);
                found.len() < entries
            })?;
            Ok(found)
        };
        self.event(|| Event::List { dir, cookie, entries }, come)
    }

    pub fn getxattr(&mut self, ino: Ino, key: &[u8]) -> Result<Vec<u8>, Error> {
        self.look(|| Call::Getxattr { ino, name: name(key) }, |fs| fs.getxattr(ino, key))
    }

    pub fn setxattr(
        &mut self,
        ino: Ino,
        key: &[u8],
        value: &[u8],
        create: bool,
        replace: bool,
        now_ns: i64,
    ) -> Result<(), Error> {
        let call = || Call::Setxattr { ino, name: name(key), value: name(value), create, replace };
        self.change(now_ns, call, |fs| fs.setxattr(ino, key, value, create, replace, now_ns))
    }

    pub fn listxattr(&mut self, ino: Ino) -> Result<Vec<Vec<u8>>, Error> {
        self.look(|| Call::Listxattr { ino }, |fs| fs.listxattr(ino))
    }

    pub fn removexattr(&mut self, ino: Ino, key: &[u8], now_ns: i64) -> Result<(), Error> {
        self.change(now_ns, || Call::Removexattr { ino, name: name(key) }, |fs| fs.removexattr(ino, key, now_ns))
    }
}
