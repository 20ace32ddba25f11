//! What a volume that plays a trace must hold, by paths. Invariant: what is kept here is what the volume answered for, and every
//! read is compared with it.

use std::collections::BTreeMap;

use flexfs_core::{Fs, Ino, NewNode, ROOT_INO, RenameMode, SetAttr, kind};

use super::{PlayError, Player};
use crate::content::{Fill, Texture};
use crate::trace::Op;

/// What has a name.
struct Node {
    /// How many it has.
    names: u32,
    kind: Kind,
}

enum Kind {
    /// What it must hold.
    File(Vec<u8>),
    Dir,
    Symlink,
}

/// What is in a volume.
pub struct Tree {
    names: BTreeMap<String, Ino>,
    nodes: BTreeMap<Ino, Node>,
    /// Writes so far: each has content of its own.
    writes: u64,
}

impl Default for Tree {
    fn default() -> Self {
        let names = BTreeMap::from([(String::new(), ROOT_INO)]);
        let nodes = BTreeMap::from([(ROOT_INO, Node { names: 1, kind: Kind::Dir })]);
        Self { names, nodes, writes: 0 }
    }
}

/// The directory of a path, and the name in it.
fn parted(path: &str) -> (&str, &[u8]) {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    (dir, name.as_bytes())
}

impl Tree {
    /// Files by their names, and what they must hold.
    pub fn files(&self) -> impl Iterator<Item = (&str, Ino, &Vec<u8>)> {
        self.names.iter().filter_map(|(name, &ino)| match self.nodes.get(&ino)? {
            Node { kind: Kind::File(content), .. } => Some((name.as_str(), ino, content)),
            _ => None,
        })
    }

    /// Asks the volume, and keeps what it must hold from then on. The directories that are needed are made.
    pub fn ask(&mut self, player: &mut Player, path: &str, op: &Op) -> Result<(), PlayError> {
        match op {
            Op::Read { offset, bytes } => self.read(player, path, *offset, *bytes),
            Op::Write { offset, bytes } => self.write(player, path, *offset, *bytes),
            Op::Sync => player.sync(),
            Op::Make => self.file(player, path).map(|_| ()),
            Op::MakeDir => self.dir(player, path).map(|_| ()),
            Op::Symlink { target } => self.symlink(player, path, target),
            Op::Truncate { bytes } => self.truncate(player, path, *bytes),
            Op::Punch { offset, bytes } => self.punch(player, path, *offset, *bytes),
            Op::Allocate { offset, bytes } => self.allocate(player, path, *offset, *bytes),
            Op::Attributes => self.touch(player, path),
            Op::Link { to } => self.link(player, path, to),
            Op::Rename { to } => self.rename(player, path, to, RenameMode::Replace),
            Op::Exchange { to } => self.rename(player, path, to, RenameMode::Exchange),
            Op::Remove => self.remove(player, path),
        }
    }

    fn add(&mut self, path: &str, ino: Ino, kind: Kind) {
        self.nodes.insert(ino, Node { names: 1, kind });
        self.names.insert(path.to_owned(), ino);
    }

    /// Forgets a name, and what it is the last name of.
    fn forget(&mut self, path: &str) {
        let Some(ino) = self.names.remove(path) else { return };
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.names -= 1;
            if node.names == 0 {
                self.nodes.remove(&ino);
            }
        }
    }

    fn is_dir(&self, path: &str) -> bool {
        let node = self.names.get(path).and_then(|ino| self.nodes.get(ino));
        node.is_some_and(|node| matches!(node.kind, Kind::Dir))
    }

    /// The directory of that path, made with those above it where there is none.
    fn dir(&mut self, player: &mut Player, path: &str) -> Result<Ino, PlayError> {
        if let Some(&ino) = self.names.get(path) {
            return Ok(ino);
        }
        let (above, name) = parted(path);
        let parent = self.dir(player, above)?;
        let node = NewNode { mode: kind::DIR | 0o755, uid: 0, gid: 0, rdev: 0 };
        let attr = player.call("making a directory", |fs, now_ns| fs.create(parent, name, node, now_ns))?;
        self.add(path, attr.ino, Kind::Dir);
        Ok(attr.ino)
    }

    /// The file of that path and what it holds, made where there is none.
    fn file(&mut self, player: &mut Player, path: &str) -> Result<(Ino, &mut Vec<u8>), PlayError> {
        if !self.names.contains_key(path) {
            let (above, name) = parted(path);
            let parent = self.dir(player, above)?;
            let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
            let attr = player.call("making a file", |fs, now_ns| fs.create(parent, name, node, now_ns))?;
            self.add(path, attr.ino, Kind::File(Vec::new()));
        }
        let ino = self.names.get(path).copied().unwrap_or(ROOT_INO);
        match self.nodes.get_mut(&ino) {
            Some(Node { kind: Kind::File(content), .. }) => Ok((ino, content)),
            _ => Err(PlayError::Wrong(format!("{path} is asked for as a file, and is none"))),
        }
    }

    fn symlink(&mut self, player: &mut Player, path: &str, target: &str) -> Result<(), PlayError> {
        let (above, name) = parted(path);
        let parent = self.dir(player, above)?;
        let make = |fs: &mut Fs<_>, now_ns| fs.symlink(parent, name, target.as_bytes(), 0, 0, now_ns);
        let attr = player.call("making a symbolic link", make)?;
        self.add(path, attr.ino, Kind::Symlink);
        Ok(())
    }

    fn read(&mut self, player: &mut Player, path: &str, offset: u64, bytes: u64) -> Result<(), PlayError> {
        if !self.names.contains_key(path) {
            return Ok(());
        }
        let (ino, content) = self.file(player, path)?;
        let mut found = vec![0; bytes as usize];
        let count = player.call("reading", |fs, _| fs.read(ino, offset, &mut found))?;
        let (start, end) = (offset as usize, (offset + bytes) as usize);
        let held = content.get(start.min(content.len())..end.min(content.len()));
        if held != found.get(..count) {
            return Err(PlayError::Wrong(format!("{path} does not hold at {offset} what was written")));
        }
        Ok(())
    }

    fn write(&mut self, player: &mut Player, path: &str, offset: u64, bytes: u64) -> Result<(), PlayError> {
        self.writes += 1;
        let data = Fill { seed: self.writes, start: 0, texture: Texture::Noise }.bytes(bytes as usize);
        let (ino, content) = self.file(player, path)?;
        let end = (offset + bytes) as usize;
        content.resize(content.len().max(end), 0);
        content[offset as usize..end].copy_from_slice(&data);
        player.write(ino, offset, &data)
    }

    fn truncate(&mut self, player: &mut Player, path: &str, bytes: u64) -> Result<(), PlayError> {
        let (ino, content) = self.file(player, path)?;
        content.resize(bytes as usize, 0);
        let changes = SetAttr { size: Some(bytes), ..SetAttr::default() };
        player.call("truncating", |fs, now_ns| fs.setattr(ino, changes, now_ns)).map(|_| ())
    }

    fn punch(&mut self, player: &mut Player, path: &str, offset: u64, bytes: u64) -> Result<(), PlayError> {
        let (ino, content) = self.file(player, path)?;
        let (start, end) = (offset as usize, (offset + bytes) as usize);
        let len = content.len();
        content[start.min(len)..end.min(len)].fill(0);
        player.call("making a hole", |fs, now_ns| fs.punch(ino, offset, bytes, now_ns))
    }

    fn allocate(&mut self, player: &mut Player, path: &str, offset: u64, bytes: u64) -> Result<(), PlayError> {
        let (ino, content) = self.file(player, path)?;
        content.resize(content.len().max((offset + bytes) as usize), 0);
        player.call("taking space", |fs, now_ns| fs.allocate(ino, offset, bytes, false, now_ns))
    }

    fn touch(&mut self, player: &mut Player, path: &str) -> Result<(), PlayError> {
        let Some(&ino) = self.names.get(path) else { return Ok(()) };
        let change =
            |fs: &mut Fs<_>, now_ns| fs.setattr(ino, SetAttr { mtime_ns: Some(now_ns), ..SetAttr::default() }, now_ns);
        player.call("changing attributes", change).map(|_| ())
    }

    fn link(&mut self, player: &mut Player, path: &str, to: &str) -> Result<(), PlayError> {
        let (ino, _) = self.file(player, path)?;
        let (above, name) = parted(to);
        let into = self.dir(player, above)?;
        player.call("linking", |fs, now_ns| fs.link(ino, into, name, now_ns))?;
        self.names.insert(to.to_owned(), ino);
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.names += 1;
        }
        Ok(())
    }

    fn rename(&mut self, player: &mut Player, path: &str, to: &str, mode: RenameMode) -> Result<(), PlayError> {
        let Some(&ino) = self.names.get(path) else { return Ok(()) };
        let ((above, name), (to_above, to_name)) = (parted(path), parted(to));
        let (from, into) = (self.dir(player, above)?, self.dir(player, to_above)?);
        player.call("renaming", |fs, now_ns| fs.rename(from, name, into, to_name, mode, now_ns))?;
        let replaced = self.names.get(to).copied();
        if replaced == Some(ino) {
            return Ok(());
        }
        if mode == RenameMode::Replace {
            self.forget(to);
        }
        let (moved, back) = (self.below(path), self.below(to));
        for (from, to, names) in [(path, to, moved), (to, path, back)] {
            self.names.extend(names.into_iter().map(|(name, ino)| (format!("{to}{}", &name[from.len()..]), ino)));
        }
        Ok(())
    }

    /// Takes out a name and those below it.
    fn below(&mut self, path: &str) -> Vec<(String, Ino)> {
        let inside = format!("{path}/");
        let mut names: Vec<String> = self
            .names
            .range(inside.clone()..)
            .map(|(name, _)| name.clone())
            .take_while(|name| name.starts_with(&inside))
            .collect();
        names.push(path.to_owned());
        names.into_iter().filter_map(|name| self.names.remove(&name).map(|ino| (name, ino))).collect()
    }

    fn remove(&mut self, player: &mut Player, path: &str) -> Result<(), PlayError> {
        if !self.names.contains_key(path) {
            return Ok(());
        }
        let (above, name) = parted(path);
        let (parent, is_dir) = (self.dir(player, above)?, self.is_dir(path));
        self.forget(path);
        player.call(
            "removing",
            |fs, now_ns| {
                if is_dir { fs.rmdir(parent, name, now_ns) } else { fs.unlink(parent, name, now_ns) }
            },
        )
    }
}
