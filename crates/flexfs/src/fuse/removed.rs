//! Inodes without a name that the kernel may know still.
//!
//! A directory that is removed is held until the kernel forgets it, so that whoever has it open, or stands in it, can look
//! at it: the server is not told who opens a directory. Of a replaced inode it is remembered that another has its
//! name. Invariant: a directory is held from the removal of its name on, before the removal is answered.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flexfs_core::{Attr, Error, Ino, kind};

use super::recorded::Recorded;

/// Replaced inodes to be remembered: more than can be on the way from a look for a name to what it found.
const REPLACED_MAX: usize = 1024;

/// Inodes of one mount that lost their last name.
#[derive(Default)]
pub struct RemovedInodes {
    directories: Mutex<HashSet<Ino>>,
    /// The latest inodes of which another took the last name.
    replaced: Mutex<VecDeque<Ino>>,
}

impl RemovedInodes {
    /// Removes the name of a directory.
    pub fn rmdir(&self, fs: &mut Recorded, place: (Ino, &[u8]), now_ns: i64) -> Result<(), Error> {
        let removed = fs.lookup(place.0, place.1).ok();
        self.holding(fs, removed, |fs| fs.rmdir(place.0, place.1, now_ns)).map(|((), _)| ())
    }

    /// Does what may take the last name of `target`, whose place it gives to another.
    pub fn replace<T>(
        &self,
        fs: &mut Recorded,
        target: Option<Attr>,
        change: impl FnOnce(&mut Recorded) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (done, is_nameless) = self.holding(fs, target, change)?;
        if let Some(target) = target
            && is_nameless
        {
            let mut replaced = self.replaced();
            replaced.push_back(target.ino);
            if replaced.len() > REPLACED_MAX {
                replaced.pop_front();
            }
        }
        Ok(done)
    }

    /// Does what may take the last name of `target`, and holds that if it is a directory; whether it took it.
    fn holding<T>(
        &self,
        fs: &mut Recorded,
        target: Option<Attr>,
        change: impl FnOnce(&mut Recorded) -> Result<T, Error>,
    ) -> Result<(T, bool), Error> {
        // A directory that cannot be read can be removed, but not be held.
        let held = target.filter(|target| target.mode & kind::MASK == kind::DIR && fs.open(target.ino).is_ok());
        let outcome = change(fs);
        // A change that fails at its end has been made in memory.
        let is_nameless = target.is_some_and(|target| fs.getattr(target.ino).map_or(true, |attr| attr.nlink == 0));
        if let Some(target) = held {
            if is_nameless {
                self.directories().insert(target.ino);
            } else {
                // It has a name, so that nothing is removed.
                let _ = fs.release(target.ino);
            }
        }
        outcome.map(|done| (done, is_nameless))
    }

    /// The kernel has forgotten an inode; whether that was a directory that is held, which is to be released now.
    pub fn forget(&self, ino: Ino) -> bool {
        self.directories().remove(&ino)
    }

    /// Whether another inode took the last name of this one.
    pub fn is_replaced(&self, ino: Ino) -> bool {
        self.replaced().contains(&ino)
    }

    // Both are changed in one step: whoever panicked left them whole.

    fn directories(&self) -> MutexGuard<'_, HashSet<Ino>> {
        self.directories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replaced(&self) -> MutexGuard<'_, VecDeque<Ino>> {
        self.replaced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
