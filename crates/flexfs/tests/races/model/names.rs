//! What calls do to names.
//!
//! Invariant: errors come in the order in which the kernel looks for them.

use rustix::io::Errno;

use super::{Id, Node, Result, State, Thread, What};
use crate::op::{Kind, Move};

impl State {
    pub(super) fn dir_below(&self, dir: Id, sub: usize) -> Result<Id> {
        match self.entry(dir, sub) {
            Some(id) if self.is_dir(id) => Ok(id),
            Some(id) if self.kind(id) == Kind::File => Err(Errno::NOTDIR),
            // A link leads to nothing.
            _ => Err(Errno::NOENT),
        }
    }

    /// A new name in a directory: there must be none yet, and the directory still be there.
    pub(super) fn make(&mut self, dir: Id, name: usize, what: What, new: Id) -> Result<()> {
        if self.entry(dir, name).is_some() {
            return Err(Errno::EXIST);
        }
        self.check_alive(dir)?;
        self.nodes.insert(new, Node { what, links: 1, attribute: None, lost_a_name: false });
        self.set(dir, name, Some(new));
        Ok(())
    }

    fn check_alive(&self, dir: Id) -> Result<()> {
        if self.nodes[&dir].links == 0 { Err(Errno::NOENT) } else { Ok(()) }
    }

    pub(super) fn unlink(&mut self, dir: Id, name: usize) -> Result<()> {
        let id = self.entry(dir, name).ok_or(Errno::NOENT)?;
        if self.is_dir(id) {
            return Err(Errno::ISDIR);
        }
        self.lose(id);
        self.set(dir, name, None);
        Ok(())
    }

    pub(super) fn rmdir(&mut self, dir: Id, name: usize) -> Result<()> {
        let id = self.entry(dir, name).ok_or(Errno::NOENT)?;
        if !self.is_dir(id) {
            return Err(Errno::NOTDIR);
        }
        if self.names(id).iter().any(Option::is_some) {
            return Err(Errno::NOTEMPTY);
        }
        self.lose(id);
        self.set(dir, name, None);
        Ok(())
    }

    pub(super) fn link(&mut self, thread: usize, name: usize) -> Result<()> {
        let Thread { found, dirs, .. } = self.threads[thread];
        let (id, dir) = (found.expect("found before"), dirs[1].expect("found before"));
        if self.entry(dir, name).is_some() {
            return Err(Errno::EXIST);
        }
        self.check_alive(dir)?;
        if self.is_dir(id) {
            return Err(Errno::PERM);
        }
        if self.nodes[&id].links == 0 {
            return Err(Errno::NOENT);
        }
        self.enter(dir, name, id);
        Ok(())
    }

    /// Whether `dir` is `root` or below it.
    fn is_below(&self, dir: Id, root: Id) -> bool {
        let children = || match &self.nodes[&root].what {
            What::Dir(names) => names.iter().flatten().copied().collect(),
            _ => Vec::new(),
        };
        dir == root || children().into_iter().any(|child| self.is_below(dir, child))
    }

    pub(super) fn rename(&mut self, from: (Id, usize), to: (Id, usize), how: Move) -> Result<()> {
        let moved = self.entry(from.0, from.1).ok_or(Errno::NOENT)?;
        let target = self.entry(to.0, to.1);
        match (how, target) {
            (Move::NoReplace, Some(_)) => return Err(Errno::EXIST),
            (Move::Exchange, None) => return Err(Errno::NOENT),
            _ => {}
        }
        if self.is_below(to.0, moved) {
            return Err(Errno::INVAL);
        }
        let Some(target) = target else {
            self.check_alive(to.0)?;
            self.set(from.0, from.1, None);
            self.set(to.0, to.1, Some(moved));
            return Ok(());
        };
        if self.is_below(from.0, target) {
            return Err(if how == Move::Exchange { Errno::INVAL } else { Errno::NOTEMPTY });
        }
        if moved == target {
            return Ok(());
        }
        if how == Move::Exchange {
            self.set(from.0, from.1, Some(target));
            self.set(to.0, to.1, Some(moved));
            return Ok(());
        }
        match (self.is_dir(moved), self.is_dir(target)) {
            (true, false) => return Err(Errno::NOTDIR),
            (false, true) => return Err(Errno::ISDIR),
            (true, true) if self.names(target).iter().any(Option::is_some) => return Err(Errno::NOTEMPTY),
            _ => {}
        }
        self.lose(target);
        self.set(from.0, from.1, None);
        self.set(to.0, to.1, Some(moved));
        Ok(())
    }
}
