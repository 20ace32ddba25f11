//! The tree as one thread after the other would change it: small, copied at each step of a search.
//!
//! A call takes one or more steps: it looks for the directory of each name it was given, then, unless it changes that
//! very name, for what the name leads to, then it acts on what it found. Only a step is one with the rest of the
//! world, since between two the kernel lets others pass, in any file system. A listing takes one step for each name
//! it may have seen. Everything else is one step. Invariant: a node without a name is there as long as somebody has
//! it open or found it.

mod files;
mod names;

use std::collections::BTreeMap;

use rustix::io::Errno;

use crate::op::{DIRS, Kind, NAMES, Op, Outcome, Place};

/// A node's number: of those that are made, who makes it decides.
pub type Id = u16;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// Records that are not zero, by their offset.
    File {
        size: u32,
        records: BTreeMap<u32, u8>,
    },
    Dir([Option<Id>; NAMES.len()]),
    Link(u8),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub what: What,
    /// Its names.
    pub links: u32,
    pub attribute: Option<u8>,
    /// Whether it lost one and has others. The kernel may then have counted the loss twice.
    pub lost_a_name: bool,
}

/// What a thread holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thread {
    pub file: Option<Id>,
    /// How far its call has come: steps, or for a listing the names seen.
    pub progress: u32,
    /// The directories it has found for its call.
    dirs: [Option<Id>; 2],
    /// What the first name of the call led to.
    found: Option<Id>,
    /// The size of its file when it began to read.
    size: u32,
}

impl Thread {
    /// Whether the other one has found the same for its call.
    pub fn holds_as(&self, other: &Self) -> bool {
        (self.dirs, self.found, self.size) == (other.dirs, other.found, other.size)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub nodes: BTreeMap<Id, Node>,
    pub threads: Vec<Thread>,
}

/// What a step leads to.
pub enum Step {
    On,
    End(Outcome),
}

type Result<T> = std::result::Result<T, Errno>;

impl State {
    /// Only the directories that stay.
    pub fn empty() -> Self {
        let dir = Node { what: What::Dir([None; NAMES.len()]), links: 1, attribute: None, lost_a_name: false };
        Self { nodes: (0..DIRS as Id).map(|id| (id, dir.clone())).collect(), threads: Vec::new() }
    }

    pub fn add(&mut self, node: Node) -> Id {
        let id = self.nodes.keys().next_back().map_or(0, |last| last + 1);
        self.nodes.insert(id, node);
        id
    }

    fn node(&mut self, id: Id) -> &mut Node {
        self.nodes.get_mut(&id).expect("a node that somebody holds is there")
    }

    fn kind(&self, id: Id) -> Kind {
        match self.nodes[&id].what {
            What::File { .. } => Kind::File,
            What::Dir(_) => Kind::Dir,
            What::Link(_) => Kind::Link,
        }
    }

    fn is_dir(&self, id: Id) -> bool {
        self.kind(id) == Kind::Dir
    }

    fn names(&mut self, dir: Id) -> &mut [Option<Id>; NAMES.len()] {
        match &mut self.node(dir).what {
            What::Dir(names) => names,
            other => unreachable!("{other:?} is no directory"),
        }
    }

    pub fn entry(&self, dir: Id, name: usize) -> Option<Id> {
        match &self.nodes[&dir].what {
            What::Dir(names) => names[name],
            other => unreachable!("{other:?} is no directory"),
        }
    }

    /// Puts a name there, or takes it away.
    fn set(&mut self, dir: Id, name: usize, to: Option<Id>) {
        self.names(dir)[name] = to;
    }

    /// One more name for a node.
    pub fn enter(&mut self, dir: Id, name: usize, id: Id) {
        self.node(id).links += 1;
        self.set(dir, name, Some(id));
    }

    /// One name less.
    fn lose(&mut self, id: Id) {
        let node = self.node(id);
        node.links -= 1;
        node.lost_a_name = node.links > 0;
    }

    /// Whether the kernel may take what a thread is about to link for a file without names, which cannot be linked.
    pub fn may_be_miscounted(&self, thread: usize) -> bool {
        self.threads[thread].found.is_some_and(|id| self.nodes[&id].lost_a_name)
    }

    /// The kind of what stands under a name.
    pub fn kind_at(&self, dir: Id, name: usize) -> Option<Kind> {
        self.entry(dir, name).map(|id| self.kind(id))
    }

    /// Takes the next step of a thread's call; what it makes gets the number `new`.
    pub fn step(&mut self, thread: usize, op: &Op, new: Id) -> Step {
        let step =
            self.try_step(thread, op, new).unwrap_or_else(|errno| Step::End(Outcome::Error(errno.raw_os_error())));
        match step {
            Step::On => self.threads[thread].progress += 1,
            Step::End(_) => self.end(thread),
        }
        step
    }

    /// Ends a thread's call, and with it whatever nobody holds any more.
    pub fn end(&mut self, thread: usize) {
        let file = self.threads[thread].file;
        self.threads[thread] = Thread { file, ..Thread::default() };
        self.forget();
    }

    /// Lets every thread close its file.
    pub fn close_all(&mut self) {
        self.threads.clear();
        self.forget();
    }

    fn forget(&mut self) {
        let Self { nodes, threads } = self;
        let held = |id: Id| {
            let by = |thread: &Thread| [thread.file, thread.found, thread.dirs[0], thread.dirs[1]].contains(&Some(id));
            threads.iter().any(by)
        };
        nodes.retain(|id, node| node.links > 0 || held(*id));
    }

    fn try_step(&mut self, thread: usize, op: &Op, new: Id) -> Result<Step> {
        for (number, place) in op.places().into_iter().enumerate() {
            let Some(place) = place else { continue };
            if self.threads[thread].dirs[number].is_none() {
                match place.sub {
                    None => self.threads[thread].dirs[number] = Some(place.dir as Id),
                    Some(sub) => {
                        self.threads[thread].dirs[number] = Some(self.dir_below(place.dir as Id, sub)?);
                        return Ok(Step::On);
                    }
                }
            }
            // What is linked is found before the place of its new name is looked for.
            if number == 0 && matches!(op, Op::Link(..)) && self.threads[thread].found.is_none() {
                self.find(thread, &place)?;
                return Ok(Step::On);
            }
        }
        self.act(thread, op, new)
    }

    fn find(&mut self, thread: usize, place: &Place) -> Result<Id> {
        let dir = self.threads[thread].dirs[0].expect("the directory was found before");
        let id = self.entry(dir, place.name).ok_or(Errno::NOENT)?;
        self.threads[thread].found = Some(id);
        Ok(id)
    }

    fn act(&mut self, thread: usize, op: &Op, new: Id) -> Result<Step> {
        let done = Ok(Step::End(Outcome::Done));
        let dir = self.threads[thread].dirs[0].unwrap_or_default();
        match op {
            Op::Create(at) => {
                self.make(dir, at.name, What::File { size: 0, records: BTreeMap::new() }, new)?;
                self.threads[thread].file = Some(new);
                done
            }
            Op::Mkdir(at) => self.make(dir, at.name, What::Dir([None; NAMES.len()]), new).and(done),
            Op::Symlink(at, value) => self.make(dir, at.name, What::Link(*value), new).and(done),
            Op::Unlink(at) => self.unlink(dir, at.name).and(done),
            Op::Rmdir(at) => self.rmdir(dir, at.name).and(done),
            Op::Rename(from, to, how) => {
                let to_dir = self.threads[thread].dirs[1].unwrap_or_default();
                self.rename((dir, from.name), (to_dir, to.name), *how).and(done)
            }
            Op::Link(_, to) => self.link(thread, to.name).and(done),
            Op::Open(at, flags) => self.open(thread, at, (flags.create, flags.truncate), new),
            Op::Readlink(at) => match self.find(thread, at).map(|id| self.nodes[&id].what.clone())? {
                What::Link(value) => Ok(Step::End(Outcome::Value(value))),
                _ => Err(Errno::INVAL),
            },
            Op::Stat(at) => self.stat(thread, at),
            Op::SetAttribute(at, ..) | Op::GetAttribute(at) | Op::RemoveAttribute(at) => self.attribute(thread, at, op),
            Op::List(_) => unreachable!("each name of a listing is looked at by itself"),
            _ => self.act_on_file(thread, op),
        }
    }

    /// What can be seen of the tree, whatever the numbers of its nodes.
    pub fn describe(&self) -> String {
        let (mut known, mut out) = (Vec::new(), String::new());
        for dir in 0..DIRS as Id {
            self.describe_dir(dir, &crate::op::dir_name(dir.into()), &mut known, &mut out);
        }
        out
    }

    fn describe_dir(&self, dir: Id, path: &str, known: &mut Vec<Id>, out: &mut String) {
        for (name, at) in NAMES.iter().enumerate() {
            let Some(id) = self.entry(dir, name) else { continue };
            let node = &self.nodes[&id];
            let path = format!("{path}/{at}");
            if let Some(before) = known.iter().position(|other| *other == id) {
                out.push_str(&format!("{path}: number {before} again\n"));
                continue;
            }
            out.push_str(&format!(
                "{path}: number {}, {} names, attribute {:?}, ",
                known.len(),
                node.links,
                node.attribute
            ));
            known.push(id);
            match &node.what {
                What::Dir(_) => {
                    out.push_str("directory\n");
                    self.describe_dir(id, &path, known, out);
                }
                other => out.push_str(&format!("{other:?}\n")),
            }
        }
    }
}
