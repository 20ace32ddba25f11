//! Draws the next step of a random history from dice and the model's state.
//!
//! Names and inodes are few, so that calls collide; offsets and lengths cluster around chunk boundaries and the
//! ends of files. Invariant: what is drawn depends only on the words, the model and the shape.

use flexfs_core::{Ino, NewNode, RenameMode, SetAttr, Times, kind};

use super::call::{Call, Name};
use super::dice::{Dice, Words};
use crate::content::{Fill, Texture};
use crate::model::{Body, ModelFs};

/// What histories look like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Different names in use.
    pub names: usize,
    pub chunk_bytes: u64,
    /// Files are not grown past this.
    pub file_bytes: u64,
    /// Past this much stored, half of the writes become deletions; below it, most deletions become writes.
    pub crowded_bytes: u64,
    /// Unmounts and power cuts per 1,000 steps, each.
    pub disruptions: usize,
    /// Who says when a file's contents changed.
    pub times: Times,
}

/// Calls in a hundred that set the times of a file, where callers keep them.
const TIMES_PERCENT: usize = 20;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Call(Call),
    /// So many background steps.
    Background(usize),
    /// Unmount and mount again.
    Remount,
    /// Cut the power at the so-manieth program or erase from now.
    Cut(u64),
}

/// The kinds of calls, by weight.
const WEIGHTS: [(usize, Draw); 28] = [
    (10, Draw::Create),
    (24, Draw::Write),
    (8, Draw::Append),
    (6, Draw::Truncate),
    (3, Draw::Punch),
    (2, Draw::Allocate),
    (2, Draw::Zero),
    (2, Draw::Copy),
    (5, Draw::Read),
    (3, Draw::Mkdir),
    (1, Draw::Special),
    (2, Draw::Symlink),
    (3, Draw::Link),
    (9, Draw::Unlink),
    (3, Draw::Rmdir),
    (8, Draw::Rename),
    (4, Draw::Open),
    (4, Draw::Release),
    (3, Draw::Attributes),
    (2, Draw::Getattr),
    (2, Draw::Lookup),
    (2, Draw::Readdir),
    (1, Draw::Readlink),
    (1, Draw::ParentOf),
    (4, Draw::Setxattr),
    (2, Draw::Xattr),
    (9, Draw::Sync),
    (2, Draw::Background),
];

#[derive(Clone, Copy)]
enum Draw {
    Create,
    Write,
    Append,
    Truncate,
    Punch,
    Allocate,
    Zero,
    Copy,
    Read,
    Mkdir,
    Special,
    Symlink,
    Link,
    Unlink,
    Rmdir,
    Rename,
    Open,
    Release,
    Attributes,
    Getattr,
    Lookup,
    Readdir,
    Readlink,
    ParentOf,
    Setxattr,
    Xattr,
    Sync,
    Background,
}

impl Shape {
    /// The next step.
    pub fn draw(&self, words: &Words, model: &ModelFs) -> Step {
        let mut table = Table { shape: self, dice: Dice::new(words), model };
        let odds = table.dice.roll(1000);
        if odds >= 1000 - self.disruptions {
            return Step::Cut(1 + table.dice.roll(40) as u64);
        }
        if odds >= 1000 - 2 * self.disruptions {
            return Step::Remount;
        }
        if self.times == Times::OfCaller && table.dice.chance(TIMES_PERCENT) {
            return Step::Call(table.set_times());
        }
        let total = WEIGHTS.iter().map(|(weight, _)| weight).sum();
        let mut at = table.dice.roll(total);
        for (weight, draw) in WEIGHTS {
            if at < weight {
                return table.step(draw);
            }
            at -= weight;
        }
        Step::Call(Call::Sync)
    }
}

struct Table<'a> {
    shape: &'a Shape,
    dice: Dice<'a>,
    model: &'a ModelFs,
}

impl Table<'_> {
    fn step(&mut self, draw: Draw) -> Step {
        let crowded = self.model.stored_bytes() > self.shape.crowded_bytes;
        let draw = match draw {
            Draw::Write | Draw::Append if crowded && self.dice.chance(50) => Draw::Unlink,
            Draw::Unlink | Draw::Truncate | Draw::Punch if !crowded && self.dice.chance(70) => Draw::Write,
            draw => draw,
        };
        Step::Call(match draw {
            Draw::Create => self.create(kind::FILE),
            Draw::Mkdir => self.create(kind::DIR),
            Draw::Special => {
                let kinds = [kind::FIFO, kind::CHAR, kind::BLOCK, kind::SOCKET];
                let kind = kinds[self.dice.roll(kinds.len())];
                self.create(kind)
            }
            Draw::Write => self.write(false),
            Draw::Append => self.write(true),
            Draw::Read => {
                let ino = self.file();
                Call::Read { ino, offset: self.offset(ino), len: self.length() }
            }
            Draw::Truncate => {
                let ino = self.file();
                Call::Setattr { ino, changes: SetAttr { size: Some(self.offset(ino)), ..SetAttr::default() } }
            }
            Draw::Punch => {
                let ino = self.file();
                Call::Punch { ino, offset: self.offset(ino), len: self.length() as u64 }
            }
            Draw::Allocate => self.allocate(false),
            Draw::Zero => self.allocate(true),
            Draw::Copy => self.copy(),
            Draw::Open => Call::Open { ino: self.inode(|_| true) },
            Draw::Release => self.release(),
            Draw::Attributes => self.attributes(),
            Draw::Getattr => Call::Getattr { ino: self.inode(|_| true) },
            Draw::Readdir => Call::Readdir { dir: self.directory() },
            Draw::Readlink => Call::Readlink { ino: self.inode(|body| matches!(body, Body::Symlink(_))) },
            Draw::ParentOf => Call::ParentOf { dir: self.directory() },
            Draw::Setxattr => self.setxattr(),
            Draw::Xattr => self.xattr(),
            Draw::Sync => Call::Sync,
            Draw::Background => return Step::Background(1 + self.dice.roll(8)),
            other => self.naming(other),
        })
    }

    /// Calls about names.
    fn naming(&mut self, draw: Draw) -> Call {
        match draw {
            Draw::Symlink => {
                let target = Name(vec![b't'; [1, 10, 60, 300, 2000][self.dice.roll(5)]]);
                Call::Symlink { parent: self.directory(), name: self.name(), target, uid: 0, gid: 0 }
            }
            Draw::Link => {
                let ino = self.file();
                Call::Link { ino, parent: self.directory(), name: self.name() }
            }
            Draw::Unlink => {
                let (parent, name) = self.entry();
                Call::Unlink { parent, name }
            }
            Draw::Rmdir => {
                let (parent, name) = self.entry_of(|body| matches!(body, Body::Dir { .. }));
                Call::Rmdir { parent, name }
            }
            Draw::Rename => {
                let mode = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange];
                let mode = mode[[0, 0, 0, 0, 1, 2, 2][self.dice.roll(7)]];
                let (parent, name) = self.entry();
                let (new_parent, new_name) = if self.dice.chance(50) { self.entry() } else { self.place() };
                let replaces = mode == RenameMode::Replace;
                let mode = match mode {
                    RenameMode::Exchange => mode,
                    _ if self.dice.chance(20) => RenameMode::Whiteout { replaces, uid: 1, gid: 2 },
                    _ => mode,
                };
                Call::Rename { parent, name, new_parent, new_name, mode }
            }
            _ => {
                let (parent, name) = self.entry();
                Call::Lookup { parent, name }
            }
        }
    }

    fn create(&mut self, kind: u32) -> Call {
        let (parent, name) = self.place();
        let perm = [0o644, 0o755, 0o600, 0o1777][self.dice.roll(4)];
        let rdev = if kind == kind::CHAR || kind == kind::BLOCK { 0x0801 } else { 0 };
        let uid = self.dice.roll(3) as u32 * 1000;
        let attributes = match self.dice.roll(8) {
            7 => vec![(self.xattr_name(), self.xattr_value()), ("user.e".into(), self.xattr_value())],
            _ => Vec::new(),
        };
        Call::Create { parent, name, node: NewNode { mode: kind | perm, uid, gid: uid / 2, rdev }, attributes }
    }

    fn write(&mut self, append: bool) -> Call {
        let ino = self.file();
        let size = self.model.node(ino).map_or(0, |node| node.size());
        if self.dice.roll(400) == 399 {
            return Call::Write { ino, offset: u64::MAX - 5, len: 4, fill: self.fill() };
        }
        let offset = if append { size } else { self.offset(ino) };
        let room = self.shape.file_bytes.saturating_sub(offset).max(1);
        let len = (self.length() as u64).min(room) as usize;
        Call::Write { ino, offset, len, fill: self.fill() }
    }

    fn allocate(&mut self, zero: bool) -> Call {
        let ino = self.file();
        let (offset, keep_size) = (self.offset(ino), self.dice.chance(50));
        Call::Allocate { ino, offset, len: self.length() as u64, keep_size, zero }
    }

    fn copy(&mut self) -> Call {
        let (mut from, to) = (self.file(), self.file());
        // What a file without a name holds is not in the states that a cut may leave.
        if self.model.node(from).is_some_and(|node| node.nlink == 0) {
            from = to;
        }
        let (from, to) = ((from, self.offset(from)), (to, self.offset(to)));
        Call::Copy { from, to, len: self.length() as u64 }
    }

    fn fill(&mut self) -> Fill {
        let texture = [Texture::Noise, Texture::Noise, Texture::Noise, Texture::Text, Texture::Zeros];
        let texture = texture[self.dice.roll(texture.len())];
        Fill { seed: self.dice.roll(usize::from(u16::MAX)) as u64, start: 0, texture }
    }

    fn release(&mut self) -> Call {
        let open: Vec<Ino> = self.model.nodes().filter(|(_, node)| node.open > 0).map(|(ino, _)| ino).collect();
        self.dice.pick(&open).map_or(Call::Sync, |ino| Call::Release { ino })
    }

    fn attributes(&mut self) -> Call {
        let ino = self.inode(|_| true);
        let mut changes = SetAttr::default();
        if self.dice.chance(50) {
            changes.mode = Some([0o640, 0o4755, 0o444][self.dice.roll(3)]);
        }
        if self.dice.chance(50) {
            changes.uid = Some(self.dice.roll(5) as u32);
            changes.gid = Some(self.dice.roll(5) as u32);
        }
        if self.dice.chance(30) {
            changes.mtime_ns = Some([0, -5, 1 << 60][self.dice.roll(3)]);
        }
        Call::Setattr { ino, changes }
    }

    /// Says when contents changed, mostly of the file that was written to last, as a kernel does that keeps the times.
    fn set_times(&mut self) -> Call {
        let last = self.model.written().filter(|_| self.dice.chance(75));
        let ino = last.unwrap_or_else(|| self.file());
        let mut time = || 1_700_000_000_000_000_000 + self.dice.roll(1 << 16) as i64 * 1_234_567_891;
        let (mtime_ns, other_ns) = (time(), time());
        let ctime_ns = if self.dice.chance(80) { mtime_ns } else { other_ns };
        let atime_ns = self.dice.chance(10).then_some(other_ns);
        let changes = SetAttr { atime_ns, mtime_ns: Some(mtime_ns), ctime_ns: Some(ctime_ns), ..SetAttr::default() };
        Call::Setattr { ino, changes }
    }

    fn setxattr(&mut self) -> Call {
        let ino = self.inode(|_| true);
        let (name, value) = (self.xattr_name(), self.xattr_value());
        let how = self.dice.roll(6);
        Call::Setxattr { ino, name, value, create: how == 4, replace: how == 5 }
    }

    fn xattr(&mut self) -> Call {
        let ino = self.inode(|_| true);
        let name = self.xattr_name();
        match self.dice.roll(3) {
            0 => Call::Getxattr { ino, name },
            1 => Call::Listxattr { ino },
            _ => Call::Removexattr { ino, name },
        }
    }

    fn xattr_name(&mut self) -> Name {
        ["user.a", "user.b", "security.c", "user.d"][self.dice.roll(4)].into()
    }

    fn xattr_value(&mut self) -> Name {
        let len = [0, 1, 20, 100, 900, 1900, 5000, 20_000][self.dice.roll(8)];
        Name(self.fill().bytes(len))
    }

    fn name(&mut self) -> Name {
        match self.dice.roll(self.shape.names + 1) {
            last if last == self.shape.names => Name(vec![b'L'; if self.dice.chance(20) { 256 } else { 255 }]),
            index => Name(format!("n{index}").into_bytes()),
        }
    }

    /// A directory and some name in it, taken or not.
    fn place(&mut self) -> (Ino, Name) {
        (self.directory(), self.name())
    }

    /// A name that mostly exists.
    fn entry(&mut self) -> (Ino, Name) {
        self.entry_of(|_| true)
    }

    fn entry_of(&mut self, wanted: impl Fn(&Body) -> bool) -> (Ino, Name) {
        if self.dice.roll(6) == 5 {
            return self.place();
        }
        let fits = |ino: &Ino| self.model.node(*ino).is_some_and(|node| wanted(&node.body));
        let entries: Vec<(Ino, &Vec<u8>)> = self
            .model
            .nodes()
            .flat_map(|(dir, node)| node.entries().into_iter().flatten().map(move |entry| (dir, entry)))
            .filter(|(_, (_, ino))| fits(ino))
            .map(|(dir, (name, _))| (dir, name))
            .collect();
        match self.dice.pick(&entries) {
            Some((dir, name)) => (dir, Name(name.clone())),
            None => self.place(),
        }
    }

    fn directory(&mut self) -> Ino {
        self.inode(|body| matches!(body, Body::Dir { .. }))
    }

    /// A regular file, and now and then something that is none.
    fn file(&mut self) -> Ino {
        let any = self.dice.chance(4);
        self.inode(|body| any || matches!(body, Body::File(_)))
    }

    /// An inode of the kind, else the root; rarely one that does not exist.
    fn inode(&mut self, wanted: impl Fn(&Body) -> bool) -> Ino {
        let fitting: Vec<Ino> = self.model.nodes().filter(|(_, node)| wanted(&node.body)).map(|(ino, _)| ino).collect();
        if self.dice.roll(200) == 199 {
            return 0xff_0000_0001;
        }
        self.dice.pick(&fitting).unwrap_or(flexfs_core::ROOT_INO)
    }

    fn offset(&mut self, ino: Ino) -> u64 {
        let size = self.model.node(ino).map_or(0, |node| node.size());
        let chunk = self.shape.chunk_bytes;
        let base = match self.dice.roll(5) {
            0 => 0,
            1 => size,
            2 => size / chunk * chunk,
            3 => self.dice.roll((size / chunk + 1) as usize) as u64 * chunk,
            _ => self.dice.roll((self.shape.file_bytes / chunk) as usize) as u64 * chunk,
        };
        let nudged = match self.dice.roll(8) {
            0..4 => base,
            4 => base + 1,
            5 => base.saturating_sub(1),
            6 => base + self.dice.roll(chunk as usize) as u64,
            _ => base + chunk,
        };
        nudged.min(self.shape.file_bytes - 1)
    }

    fn length(&mut self) -> usize {
        let chunk = self.shape.chunk_bytes as usize;
        match self.dice.roll(12) {
            0 | 1 => 1 + self.dice.roll(100),
            2 => chunk - 1,
            3..6 => chunk,
            6 => chunk + 1,
            7 => 2 * chunk,
            8 => 1 + self.dice.roll(chunk),
            9 | 10 => chunk * (1 + self.dice.roll(8)),
            _ => chunk * (1 + self.dice.roll(24)) + self.dice.roll(chunk),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::dice::Supply;
    use super::*;

    const SHAPE: Shape = Shape {
        names: 8,
        chunk_bytes: 4096,
        file_bytes: 256 << 10,
        crowded_bytes: 1 << 20,
        disruptions: 5,
        times: Times::OfVolume,
    };

    #[test]
    fn one_seed_draws_one_history_and_the_model_takes_it() {
        let run = |seed| {
            let mut model = ModelFs::new(kind::DIR | 0o755, 0, 0, 0);
            let mut supply = Supply::new(seed);
            let (mut refused, mut disrupted) = (0, 0);
            for step in 0..20_000u64 {
                match SHAPE.draw(&supply.words(), &model) {
                    Step::Call(call) => refused += usize::from(model.apply(&call, step + 2, 1).is_err()),
                    Step::Background(_) => {}
                    Step::Remount | Step::Cut(_) => {
                        disrupted += 1;
                        model.forget_handles();
                    }
                }
            }
            let rebuilt = ModelFs::from_nodes(model.nodes().map(|(ino, node)| (ino, node.clone())).collect());
            let named = rebuilt.nodes().filter(|(_, node)| node.nlink > 0).count();
            assert!(model.differences(&rebuilt).is_empty());
            (model.digest(), refused, disrupted, named)
        };
        let (digest, refused, disrupted, named) = run(1);
        assert_eq!(run(1), (digest, refused, disrupted, named));
        assert_ne!(run(2).0, digest);
        assert!((1_000..10_000).contains(&refused), "{refused} refusals");
        assert!((100..400).contains(&disrupted), "{disrupted} disruptions");
        assert!(named > 5, "{named} inodes");
    }

    #[test]
    fn the_running_digest_is_that_of_the_whole_tree() {
        let mut model = ModelFs::new(kind::DIR | 0o755, 0, 0, 0);
        let mut supply = Supply::new(3);
        for step in 0..3000u64 {
            if let Step::Call(call) = SHAPE.draw(&supply.words(), &model) {
                let _refused = model.apply(&call, step + 2, 1);
            }
        }
        model.forget_handles();
        let rebuilt = ModelFs::from_nodes(model.nodes().map(|(ino, node)| (ino, node.clone())).collect());
        assert_eq!(model.digest(), rebuilt.digest());
    }
}
