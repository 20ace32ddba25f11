//! The names of a volume, by which inodes are found and paths are told. Invariant: it is a mirror of what the volume was asked,
//! and asks it nothing.

use std::collections::BTreeMap;

use flexfs_core::{Ino, ROOT_INO};

/// A name in a directory.
pub type Entry = (Ino, String);

/// All names of a volume.
#[derive(Default)]
pub struct Names {
    inodes: BTreeMap<Entry, Ino>,
    /// The names of an inode, oldest first.
    entries: BTreeMap<Ino, Vec<Entry>>,
}

impl Names {
    pub fn add(&mut self, entry: Entry, ino: Ino) {
        self.entries.entry(ino).or_default().push(entry.clone());
        self.inodes.insert(entry, ino);
    }

    pub fn remove(&mut self, entry: &Entry) -> Option<Ino> {
        let ino = self.inodes.remove(entry)?;
        if let Some(entries) = self.entries.get_mut(&ino) {
            entries.retain(|one| one != entry);
            if entries.is_empty() {
                self.entries.remove(&ino);
            }
        }
        Some(ino)
    }

    /// The path of an inode below the root, empty for the root itself; `None` for one without a name.
    pub fn path(&self, ino: Ino) -> Option<String> {
        let (mut ino, mut path) = (ino, String::new());
        while ino != ROOT_INO {
            let (parent, name) = self.entries.get(&ino)?.first()?;
            path = joined(name, &path);
            ino = *parent;
        }
        Some(path)
    }

    /// Whether two names are of one inode, or of none.
    pub fn are_one(&self, one: &Entry, other: &Entry) -> bool {
        self.inodes.get(one) == self.inodes.get(other)
    }

    pub fn path_of(&self, (dir, name): &Entry) -> Option<String> {
        Some(joined(&self.path(*dir)?, name))
    }
}

fn joined(above: &str, below: &str) -> String {
    let between = if above.is_empty() || below.is_empty() { "" } else { "/" };
    format!("{above}{between}{below}")
}

/// A name as text; bytes that are no UTF-8 are written as `%` and two digits.
pub fn text(name: &[u8]) -> String {
    name.utf8_chunks().fold(String::new(), |text, chunk| {
        let invalid = chunk.invalid().iter().map(|byte| format!("%{byte:02x}"));
        text + chunk.valid() + &invalid.collect::<String>()
    })
}
