//! Requests by paths, made as calls of a volume and of the model beside it. Invariant: both get the same calls, what is read is
//! what the model holds, and in the end the volume is the model's tree.

use flexfs_core::{Error, Fs, Ino, NewNode, ROOT_INO, RenameMode, SetAttr, kind};
use nand::Nand;

use super::{PlayError, Player};
use crate::trace::Op;
use torture::content::{Fill, Texture};
use torture::model::ModelFs;
use torture::ops::{Call, Name, Reply, call_fs, glimpse, observe};

const ROOT_MODE: u32 = 0o755;

/// What is in a volume that plays a trace.
pub struct Tree {
    model: ModelFs,
    /// Writes so far: each has content of its own.
    writes: u64,
}

impl Default for Tree {
    fn default() -> Self {
        Self { model: ModelFs::new(kind::DIR | ROOT_MODE, 0, 0, 0), writes: 0 }
    }
}

/// The directory of a path, and the name in it.
fn parted(path: &str) -> (&str, Name) {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    (dir, name.into())
}

impl Tree {
    /// Asks the volume. The directories and files that are needed are made.
    pub fn ask(&mut self, player: &mut Player, path: &str, op: &Op) -> Result<(), PlayError> {
        let call = match op {
            Op::Sync => return player.sync(),
            Op::Make => return self.file(player, path).map(drop),
            Op::MakeDir => return self.dir(player, path).map(drop),
            Op::Write { offset, bytes } => {
                self.writes += 1;
                let fill = Fill { seed: self.writes, start: 0, texture: Texture::Noise };
                Call::Write { ino: self.file(player, path)?, offset: *offset, len: *bytes as usize, fill }
            }
            Op::Truncate { bytes } => {
                let changes = SetAttr { size: Some(*bytes), ..SetAttr::default() };
                Call::Setattr { ino: self.file(player, path)?, changes }
            }
            Op::Punch { offset, bytes } => Call::Punch { ino: self.file(player, path)?, offset: *offset, len: *bytes },
            Op::Allocate { offset, bytes } => {
                let (ino, offset, len) = (self.file(player, path)?, *offset, *bytes);
                Call::Allocate { ino, offset, len, keep_size: false, zero: false }
            }
            Op::Link { to } => {
                let (ino, (parent, name)) = (self.file(player, path)?, self.place(player, to)?);
                Call::Link { ino, parent, name }
            }
            Op::Symlink { target } => {
                let (parent, name) = self.place(player, path)?;
                Call::Symlink { parent, name, target: target.as_str().into(), uid: 0, gid: 0 }
            }
            // The others are of what is there: a trace may speak of files that it never made or read.
            Op::Read { .. } | Op::Attributes | Op::Rename { .. } | Op::Exchange { .. } | Op::Remove => {
                let Some(ino) = self.find(path) else { return Ok(()) };
                self.call_of_present(player, (path, ino), op)?
            }
        };
        self.call(player, &call).map(drop)
    }

    fn call_of_present(&mut self, player: &mut Player, (path, ino): (&str, Ino), op: &Op) -> Result<Call, PlayError> {
        let (parent, name) = self.place(player, path)?;
        Ok(match op {
            Op::Read { offset, bytes } => Call::Read { ino, offset: *offset, len: *bytes as usize },
            Op::Rename { to } | Op::Exchange { to } => {
                let is_exchange = matches!(op, Op::Exchange { .. });
                let mode = if is_exchange { RenameMode::Exchange } else { RenameMode::Replace };
                let (new_parent, new_name) = self.place(player, to)?;
                Call::Rename { parent, name, new_parent, new_name, mode }
            }
            Op::Remove if self.model.node(ino).is_some_and(|node| node.is_dir()) => Call::Rmdir { parent, name },
            Op::Remove => Call::Unlink { parent, name },
            _ => Call::Setattr { ino, changes: SetAttr::default() },
        })
    }

    /// Makes a call on both.
    fn call(&mut self, player: &mut Player, call: &Call) -> Result<Reply, PlayError> {
        let mut at_ns = 0;
        let reply = player.call(doing(call), |fs, now_ns| {
            at_ns = now_ns;
            match (call_fs(fs, call, now_ns)?, call) {
                (Reply::Count(count), Call::Write { len, .. }) if count < *len => Err(Error::NoSpace),
                (reply, _) => Ok(reply),
            }
        })?;
        let expected = self.model.apply(call, reply.made().unwrap_or(Ino::MAX), at_ns);
        match (&expected, &reply) {
            (Err(refused), _) => Err(PlayError::Wrong(format!("{call:?}: the model refuses it: {:?}", refused.0))),
            (Ok(Reply::Bytes(held)), Reply::Bytes(found)) if held != found => {
                Err(PlayError::Wrong(format!("{call:?}: not what was written")))
            }
            _ => Ok(reply),
        }
    }

    fn find(&self, path: &str) -> Option<Ino> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(ROOT_INO, |dir, name| self.model.child(dir, name.as_bytes()).ok())
    }

    /// The directory of a path, which is made where there is none, and the name in it.
    fn place(&mut self, player: &mut Player, path: &str) -> Result<(Ino, Name), PlayError> {
        let (above, name) = parted(path);
        Ok((self.dir(player, above)?, name))
    }

    /// The directory of that path, made with those above it where there is none.
    fn dir(&mut self, player: &mut Player, path: &str) -> Result<Ino, PlayError> {
        self.found_or_made(player, path, kind::DIR | 0o755)
    }

    /// The file of that path, made where there is none.
    fn file(&mut self, player: &mut Player, path: &str) -> Result<Ino, PlayError> {
        self.found_or_made(player, path, kind::FILE | 0o644)
    }

    fn found_or_made(&mut self, player: &mut Player, path: &str, mode: u32) -> Result<Ino, PlayError> {
        if let Some(ino) = self.find(path) {
            return Ok(ino);
        }
        let (parent, name) = self.place(player, path)?;
        let node = NewNode { mode, uid: 0, gid: 0, rdev: 0 };
        let reply = self.call(player, &Call::Create { parent, name, node, attributes: Vec::new() })?;
        reply.made().ok_or_else(|| PlayError::Wrong(format!("{path} was made without an inode")))
    }

    /// Compares a whole volume with the model.
    pub fn compare<N: Nand>(&self, fs: &mut Fs<N>) -> Result<(), PlayError> {
        if glimpse(fs).map_err(PlayError::Wrong)?.digest() == self.model.digest() {
            return Ok(());
        }
        let differences = observe(fs).map_err(PlayError::Wrong)?.differences(&self.model);
        Err(PlayError::Wrong(format!("the volume does not hold what was written: {}", differences.join("; "))))
    }
}

/// What a call does, for whoever is told that it failed.
fn doing(call: &Call) -> &'static str {
    match call {
        Call::Create { .. } => "making a file or a directory",
        Call::Symlink { .. } | Call::Link { .. } => "making a link",
        Call::Read { .. } => "reading",
        Call::Write { .. } => "writing",
        Call::Rename { .. } => "renaming",
        Call::Unlink { .. } | Call::Rmdir { .. } => "removing",
        _ => "changing a file",
    }
}
