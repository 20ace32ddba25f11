//! A volume that is asked what a trace says. Invariant: every read is compared with what was written, and all files again in the
//! end on a copy of the chip, so that a figure is one of a volume that works.

use std::collections::BTreeMap;

use flexfs_core::{Error, Fs, Ino, MountOptions, NewNode, ROOT_INO, RenameMode, SetAttr, kind};

use super::{PlayError, Player, Response, Setting};
use crate::content::{Fill, Texture};
use crate::crash::BASE_NS;
use crate::trace::{Op, Request, Trace};

/// A file, and what it must hold.
struct File {
    ino: Ino,
    content: Vec<u8>,
}

/// A volume, and what is in it by paths.
pub struct Traced {
    pub player: Player,
    files: BTreeMap<String, File>,
    dirs: BTreeMap<String, Ino>,
    /// Writes so far: each has content of its own.
    writes: u64,
}

/// What of a file that is there before is written at once.
const PIECE_BYTES: u64 = 1 << 20;

fn failed(doing: &'static str) -> impl Fn(Error) -> PlayError {
    move |source| PlayError::Fs { doing, source }
}

impl Traced {
    /// An empty volume.
    pub fn new(setting: &Setting) -> Result<Self, PlayError> {
        let dirs = BTreeMap::from([(String::new(), ROOT_INO)]);
        Ok(Self { player: Player::new(setting)?, files: BTreeMap::new(), dirs, writes: 0 })
    }

    /// Makes the files that are there before a trace begins.
    pub fn prepare(&mut self, trace: &Trace) -> Result<(), PlayError> {
        for (file, bytes) in &trace.before {
            for offset in (0..*bytes).step_by(PIECE_BYTES as usize) {
                let bytes = PIECE_BYTES.min(bytes - offset);
                self.ask(0, file, &Op::Write { offset, bytes })?;
            }
            self.ask(0, file, &Op::Sync)?;
        }
        Ok(())
    }

    /// Asks something of a trace that began at `start_ns`, at its time.
    pub fn request(&mut self, start_ns: u64, request: &Request) -> Result<Response, PlayError> {
        self.ask(start_ns + request.at_ns, &request.file, &request.op)
    }

    /// Asks something at its time, or when what was asked before has been answered. The directories that it needs are made.
    pub fn ask(&mut self, at_ns: u64, file: &str, op: &Op) -> Result<Response, PlayError> {
        let arrival_ns = at_ns.max(self.player.now_ns());
        let Self { player, files, dirs, writes } = self;
        let mut tree = Tree { files, dirs, writes };
        player.request(arrival_ns, |player| tree.ask(player, file, op)).map(|(_, response)| response)
    }

    /// Compares every file with what a volume on a copy of the chip gives back.
    pub fn verify(mut self) -> Result<(), PlayError> {
        self.player.sync()?;
        let chip = self.player.look().chip();
        let options = MountOptions { now_ns: BASE_NS + chip.now_ns() as i64, ..MountOptions::default() };
        let mounted = Fs::mount(chip.snapshot(), options);
        let mut fs = mounted.map_err(|(_, source)| PlayError::Fs { doing: "mounting to read back", source })?;
        for (name, file) in &self.files {
            let mut found = vec![0; file.content.len() + 1];
            let count = fs.read(file.ino, 0, &mut found).map_err(failed("reading back"))?;
            if found[..count] != file.content {
                return Err(PlayError::Wrong(format!("{name} does not hold what was written")));
            }
        }
        Ok(())
    }
}

/// What is in a volume.
struct Tree<'a> {
    files: &'a mut BTreeMap<String, File>,
    dirs: &'a mut BTreeMap<String, Ino>,
    writes: &'a mut u64,
}

/// The directory of a path, and the name in it.
fn parted(path: &str) -> (&str, &[u8]) {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    (dir, name.as_bytes())
}

impl Tree<'_> {
    fn ask(&mut self, player: &mut Player, path: &str, op: &Op) -> Result<(), PlayError> {
        match op {
            Op::Read { offset, bytes } => self.read(player, path, *offset, *bytes),
            Op::Write { offset, bytes } => self.write(player, path, *offset, *bytes),
            Op::Sync => player.sync(),
            Op::Make => self.file(player, path).map(|_| ()),
            Op::MakeDir => self.dir(player, path).map(|_| ()),
            Op::Truncate { bytes } => {
                let file = self.file(player, path)?;
                file.content.resize(*bytes as usize, 0);
                let (ino, changes) = (file.ino, SetAttr { size: Some(*bytes), ..SetAttr::default() });
                player.call("truncating", |fs, now_ns| fs.setattr(ino, changes, now_ns)).map(|_| ())
            }
            Op::Rename { to } => self.rename(player, path, to),
            Op::Remove => self.remove(player, path),
        }
    }

    /// The directory of that path, made with those above it where there is none.
    fn dir(&mut self, player: &mut Player, path: &str) -> Result<Ino, PlayError> {
        if let Some(&ino) = self.dirs.get(path) {
            return Ok(ino);
        }
        let (above, name) = parted(path);
        let parent = self.dir(player, above)?;
        let node = NewNode { mode: kind::DIR | 0o755, uid: 0, gid: 0, rdev: 0 };
        let attr = player.call("making a directory", |fs, now_ns| fs.create(parent, name, node, now_ns))?;
        self.dirs.insert(path.to_owned(), attr.ino);
        Ok(attr.ino)
    }

    /// The file of that path, made where there is none.
    fn file(&mut self, player: &mut Player, path: &str) -> Result<&mut File, PlayError> {
        if !self.files.contains_key(path) {
            let (above, name) = parted(path);
            let parent = self.dir(player, above)?;
            let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
            let attr = player.call("making a file", |fs, now_ns| fs.create(parent, name, node, now_ns))?;
            self.files.insert(path.to_owned(), File { ino: attr.ino, content: Vec::new() });
        }
        let missing = || PlayError::Wrong(format!("{path} is not there"));
        self.files.get_mut(path).ok_or_else(missing)
    }

    fn read(&mut self, player: &mut Player, path: &str, offset: u64, bytes: u64) -> Result<(), PlayError> {
        let Some(file) = self.files.get(path) else { return Ok(()) };
        let mut found = vec![0; bytes as usize];
        let count = player.call("reading", |fs, _| fs.read(file.ino, offset, &mut found))?;
        let (start, end) = (offset as usize, (offset + bytes) as usize);
        let held = file.content.get(start.min(file.content.len())..end.min(file.content.len()));
        if held != found.get(..count) {
            return Err(PlayError::Wrong(format!("{path} does not hold at {offset} what was written")));
        }
        Ok(())
    }

    fn write(&mut self, player: &mut Player, path: &str, offset: u64, bytes: u64) -> Result<(), PlayError> {
        *self.writes += 1;
        let data = Fill { seed: *self.writes, start: 0, texture: Texture::Noise }.bytes(bytes as usize);
        let file = self.file(player, path)?;
        let end = (offset + bytes) as usize;
        file.content.resize(file.content.len().max(end), 0);
        file.content[offset as usize..end].copy_from_slice(&data);
        player.write(file.ino, offset, &data)
    }

    fn rename(&mut self, player: &mut Player, path: &str, to: &str) -> Result<(), PlayError> {
        let Some(file) = self.files.remove(path) else { return Ok(()) };
        let ((above, name), (to_above, to_name)) = (parted(path), parted(to));
        let (from, into) = (self.dir(player, above)?, self.dir(player, to_above)?);
        player.call("renaming", |fs, now_ns| fs.rename(from, name, into, to_name, RenameMode::Replace, now_ns))?;
        self.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&mut self, player: &mut Player, path: &str) -> Result<(), PlayError> {
        let (above, name) = parted(path);
        if self.files.remove(path).is_some() {
            let parent = self.dir(player, above)?;
            return player.call("removing a file", |fs, now_ns| fs.unlink(parent, name, now_ns));
        }
        let Some(_) = self.dirs.remove(path) else { return Ok(()) };
        let parent = self.dir(player, above)?;
        player.call("removing a directory", |fs, now_ns| fs.rmdir(parent, name, now_ns))
    }
}
