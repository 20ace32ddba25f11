//! The tree inside an image, reached without a mount: finding a path, listing a directory, walking what lies below.
//!
//! Paths are of bytes, `/`-separated, and start at the root whether or not they begin with a `/`. Invariants: symbolic
//! links inside an image are never followed, so a path leads to one place or to none; whatever goes wrong names the
//! image and the path inside it.

pub mod bring_in;
pub mod survey;
pub mod take_out;

use std::path::Path;

use anyhow::{Error, Result, anyhow};
use emulator::Chip;
use flexfs_core::{Attr, Fs, Ino, ROOT_INO, kind};

use crate::image;

/// A volume and the image it is in.
pub struct Tree<'a> {
    pub fs: &'a mut Fs<Chip>,
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
pub enum Step {
    /// What is no directory.
    Leaf,
    /// A directory, before what is in it.
    Enter,
    /// A directory, after what is in it.
    Leave,
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

impl Tree<'_> {
    /// An error about a path in the image.
    pub fn error(&self, path: &[u8], why: impl std::fmt::Display) -> Error {
        anyhow!("{}: {}: {why}", self.image.display(), shown(path))
    }

    /// What the core says of a path, as an error that names both.
    pub fn told<T>(&self, path: &[u8], result: flexfs_core::Result<T>) -> Result<T> {
        result.map_err(|error| match error {
            flexfs_core::Error::NotFound => {
                let image = self.image.display();
                self.error(path, format!("{error}; `flexfs ls -R {image}` lists what is there"))
            }
            flexfs_core::Error::NoSpace => self.error(path, format!("{error}; make a larger image, or remove files")),
            error => self.error(path, image::explain(&error, self.image)),
        })
    }

    /// What is at `path`.
    pub fn find(&mut self, path: &[u8]) -> Result<Found> {
        let root = self.fs.getattr(ROOT_INO);
        let mut found = Found { entry: None, attr: self.told(path, root)? };
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
                    Found { entry: Some((dir, name.to_vec())), attr: self.told(path, attr)? }
                }
            };
        }
        if path.ends_with(b"/") && !is_dir(&found.attr) {
            return Err(self.error(path, "not a directory"));
        }
        Ok(found)
    }

    /// The names in a directory, in the order of their bytes.
    pub fn names(&mut self, dir: Ino, path: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        let listed = self.fs.readdir(dir, 0, &mut |entry| {
            names.push(entry.name);
            true
        });
        self.told(path, listed)?;
        if let Some(name) = names.iter().find(|name| !is_name(name)) {
            return Err(self.error(path, format!("holds \"{}\", which is no name", name.escape_ascii())));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Walks all below the directory `start`, which stands at `path`, in the order of names.
    pub fn walk(
        &mut self,
        start: Ino,
        path: &[u8],
        each: &mut dyn FnMut(&mut Self, &Visited, Step) -> Result<()>,
    ) -> Result<()> {
        struct Open {
            ino: Ino,
            path: Vec<u8>,
            names: std::vec::IntoIter<Vec<u8>>,
            visited: Option<Visited>,
        }
        let names = self.names(start, path)?.into_iter();
        let mut open = vec![Open { ino: start, path: Vec::new(), names, visited: None }];
        while let Some(dir) = open.last_mut() {
            let Some(name) = dir.names.next() else {
                if let Some(done) = open.pop().and_then(|dir| dir.visited) {
                    each(self, &done, Step::Leave)?;
                }
                continue;
            };
            let (parent, below) = (dir.ino, join(&dir.path, &name));
            let full = join(path, &below);
            let attr = self.fs.lookup(parent, &name);
            let visited = Visited { path: below, parent, name, attr: self.told(&full, attr)? };
            if open.iter().any(|above| above.ino == visited.attr.ino) {
                return Err(self.error(&full, "a directory that holds itself"));
            }
            if is_dir(&visited.attr) {
                each(self, &visited, Step::Enter)?;
                let names = self.names(visited.attr.ino, &full)?.into_iter();
                open.push(Open { ino: visited.attr.ino, path: visited.path.clone(), names, visited: Some(visited) });
            } else {
                each(self, &visited, Step::Leaf)?;
            }
        }
        Ok(())
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
    fn a_path_is_shown_from_the_root_on() {
        assert_eq!(shown(b""), "/");
        assert_eq!(shown(b"etc/hosts"), "/etc/hosts");
        assert_eq!(shown(&join(b"/etc", b"hosts")), "/etc/hosts");
    }
}
