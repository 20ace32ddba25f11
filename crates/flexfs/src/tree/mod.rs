//! The tree inside an image, reached without a mount: finding a path, listing a directory, walking what lies below.
//!
//! Paths are of bytes, `/`-separated, and start at the root whether or not they begin with a `/`. Invariants: symbolic
//! links inside an image are never followed, so a path leads to one place or to none; whatever goes wrong names the
//! image and the path inside it.

pub mod bring_in;
pub mod damage;
pub mod survey;
pub mod take_out;

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Error, Result, anyhow};
use flexfs_core::{Attr, Fs, Ino, ROOT_INO, kind};

use crate::any_chip::AnyChip;
use crate::image;

/// A volume and the image it is in.
pub struct Tree<'a> {
    pub fs: &'a mut Fs<AnyChip>,
    pub image: &'a Path,
}

/// What a path leads to.
pub struct Found {
    /// The directory and the name it was found by; `None` for a path that ends in the root, `.` or `..`.
    pub entry: Option<(Ino, Vec<u8>)>,
    pub attr: Attr,
}

/// Something below the start of a walk.
pub struct Visited {
    /// Its path from the start on.
    pub path: Vec<u8>,
    /// The directory that holds it.
    pub parent: Ino,
    pub name: Vec<u8>,
    pub attr: Attr,
}

/// What a walk comes by: each directory twice, everything else once.
pub enum Step<'a> {
    /// What is no directory.
    Leaf(&'a Visited),
    /// A directory, before what is in it.
    Enter(&'a Visited),
    /// A directory, after what is in it.
    Leave(&'a Visited),
    /// The path of something that cannot be read or not be gone into, and why; the walk goes on beside it.
    Lost(Vec<u8>, Error),
}

/// Whether a mode is a directory's.
pub fn is_dir(attr: &Attr) -> bool {
    attr.mode & kind::MASK == kind::DIR
}

/// Whether a directory may hold this name: an image that somebody else made could lead a copy astray.
fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
}

/// A path inside an image, for people.
pub fn shown(path: &[u8]) -> String {
    format!("/{}", String::from_utf8_lossy(path).trim_start_matches('/'))
}

/// The path of `name` in `dir`.
pub fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    match dir {
        [] => name.to_vec(),
        _ => [dir, name].join(&b'/'),
    }
}

/// A path without its last name, and that name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let path = path.get(..end).unwrap_or(path);
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (path.get(..slash).unwrap_or_default(), path.get(slash + 1..).unwrap_or_default()),
        None => (b"", path),
    }
}

impl Tree<'_> {
    /// An error about a path in the image.
    pub fn error(&self, path: &[u8], why: impl std::fmt::Display) -> Error {
        anyhow!("{}: {}: {why}", self.image.display(), shown(path))
    }

    /// What the core says of a path, as an error that names both.
    pub fn told<T>(&self, path: &[u8], result: flexfs_core::Result<T>) -> Result<T> {
        result.map_err(|error| self.failed(path, &error))
    }

    /// An error of the core about a path in the image.
    pub fn failed(&self, path: &[u8], error: &flexfs_core::Error) -> Error {
        match error {
            flexfs_core::Error::NotFound => {
                let image = self.image.display();
                self.error(path, format!("{error}; `flexfs ls -R {image}` lists what is there"))
            }
            flexfs_core::Error::NoSpace => self.error(path, format!("{error}; make a larger image, or remove files")),
            error => self.error(path, image::explain(error, self.image)),
        }
    }

    /// The directory at `path`, in which something is to be made.
    pub fn find_directory(&mut self, path: &[u8]) -> Result<Found> {
        let found = self.find(path)?;
        if is_dir(&found.attr) { Ok(found) } else { Err(self.error(path, "not a directory")) }
    }

    /// What is at `path`.
    pub fn find(&mut self, path: &[u8]) -> Result<Found> {
        let root = self.fs.getattr(ROOT_INO);
        let mut found = Found { entry: None, attr: self.told(path, root)? };
        let mut way = Vec::new();
        for name in path.split(|&byte| byte == b'/') {
            let dir = found.attr.ino;
            if !name.is_empty() && found.attr.mode & kind::MASK == kind::SYMLINK {
                return Err(self.error(path, "leads through a symbolic link, which is not followed inside an image"));
            }
            found = match name {
                b"" | b"." => continue,
                b".." => {
                    let parent = self.fs.parent_of(dir).and_then(|parent| self.fs.getattr(parent));
                    Found { entry: None, attr: self.told(path, parent)? }
                }
                name => {
                    let attr = self.fs.lookup(dir, name);
                    // What is no directory is what stands on the way, not the path.
                    let at = if is_dir(&found.attr) { path } else { &way };
                    Found { entry: Some((dir, name.to_vec())), attr: self.told(at, attr)? }
                }
            };
            way = join(&way, name);
        }
        if path.ends_with(b"/") && !is_dir(&found.attr) {
            return Err(self.error(path, "not a directory"));
        }
        Ok(found)
    }

    /// The names in a directory, in the order of their bytes, and why they are not all.
    pub fn names(&mut self, dir: Ino, path: &[u8]) -> (Vec<Vec<u8>>, Option<Error>) {
        let (mut names, mut cookie) = (Vec::new(), 0);
        let mut read_on = |fs: &mut Fs<AnyChip>, cookie: &mut u64| {
            fs.readdir(dir, *cookie, &mut |entry| {
                *cookie = entry.cookie;
                names.push(entry.name);
                true
            })
        };
        let listed = read_on(self.fs, &mut cookie);
        if listed.is_err() {
            for offset in self.entry_offsets(dir) {
                // The one that cannot be read is the first behind the last that could.
                if offset > cookie {
                    cookie = offset;
                    if read_on(self.fs, &mut cookie).is_ok() {
                        break;
                    }
                }
            }
        }
        let mut lost = self.told(path, listed).err();
        if let Some(name) = names.iter().find(|name| !is_name(name)) {
            lost = Some(self.error(path, format!("holds \"{}\", which is no name", name.escape_ascii())));
        }
        names.retain(|name| is_name(name));
        names.sort_unstable();
        (names, lost)
    }

    /// Where the entries of a directory are, by the index, in its order.
    fn entry_offsets(&mut self, dir: Ino) -> Vec<u64> {
        let mut offsets = Vec::new();
        // What the index has lost, too, is told of by whoever lists.
        let _ = self.fs.index_entries(&mut |entry| {
            if entry.ino == dir && entry.kind == "entry" {
                offsets.push(entry.offset);
            }
            entry.ino <= dir
        });
        offsets
    }

    /// Walks all below the directory `start`, which stands at `path`, in the order of names.
    ///
    /// A directory is gone into once: an image that somebody else made could lead to it by many names.
    pub fn walk(&mut self, start: Ino, path: &[u8], each: &mut dyn FnMut(&mut Self, Step) -> Result<()>) -> Result<()> {
        struct Open {
            ino: Ino,
            path: Vec<u8>,
            names: std::vec::IntoIter<Vec<u8>>,
            visited: Option<Visited>,
        }
        let mut seen = HashSet::from([start]);
        let names = self.names_told(start, path, each)?;
        let mut open = vec![Open { ino: start, path: Vec::new(), names, visited: None }];
        while let Some(dir) = open.last_mut() {
            let Some(name) = dir.names.next() else {
                if let Some(done) = open.pop().and_then(|dir| dir.visited) {
                    each(self, Step::Leave(&done))?;
                }
                continue;
            };
            let (parent, below) = (dir.ino, join(&dir.path, &name));
            let full = join(path, &below);
            let attr = match self.fs.lookup(parent, &name) {
                Ok(attr) => attr,
                Err(error) => {
                    let lost = self.failed(&full, &error);
                    each(self, Step::Lost(full, lost))?;
                    continue;
                }
            };
            let visited = Visited { path: below, parent, name, attr };
            if !is_dir(&visited.attr) {
                each(self, Step::Leaf(&visited))?;
            } else if seen.insert(visited.attr.ino) {
                each(self, Step::Enter(&visited))?;
                let names = self.names_told(visited.attr.ino, &full, each)?;
                open.push(Open { ino: visited.attr.ino, path: visited.path.clone(), names, visited: Some(visited) });
            } else {
                let image = self.image.display();
                let why = format!("a directory that another name leads to, too; `flexfs fsck {image}` tells more");
                let lost = self.error(&full, why);
                each(self, Step::Lost(full, lost))?;
            }
        }
        Ok(())
    }

    /// The names in a directory, those that are lost told as a step of a walk.
    fn names_told(
        &mut self,
        dir: Ino,
        path: &[u8],
        each: &mut dyn FnMut(&mut Self, Step) -> Result<()>,
    ) -> Result<std::vec::IntoIter<Vec<u8>>> {
        let (names, lost) = self.names(dir, path);
        lost.map_or(Ok(()), |lost| each(self, Step::Lost(path.to_vec(), lost)))?;
        Ok(names.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_lead_elsewhere_is_no_name() {
        assert!(is_name(b"a") && is_name(b"...") && is_name(b"\xff\n"));
        assert!(![&b""[..], b".", b"..", b"a/b", b"/etc", b"a\0"].into_iter().any(is_name));
    }

    #[test]
    fn a_path_is_split_before_its_last_name() {
        let split = |path: &'static str| {
            let (above, last) = split(path.as_bytes());
            (std::str::from_utf8(above).unwrap(), std::str::from_utf8(last).unwrap())
        };
        assert_eq!(split("/a/b"), ("/a", "b"));
        assert_eq!(split("a/b//"), ("a", "b"));
        assert_eq!(split("a"), ("", "a"));
        assert_eq!(split("///"), ("", ""));
        assert_eq!(split(""), ("", ""));
    }

    #[test]
    fn a_path_is_shown_from_the_root_on() {
        assert_eq!(shown(b""), "/");
        assert_eq!(shown(b"etc/hosts"), "/etc/hosts");
        assert_eq!(shown(&join(b"/etc", b"hosts")), "/etc/hosts");
    }
}
