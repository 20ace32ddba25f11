//! `flexfs put`: copies files and directories into an image.
//!
//! Invariant: an error too leaves the image unmounted cleanly, with all that was copied until then.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::host::At;
use crate::tree::bring_in::{BringIn, Place, Wanted, name_of};
use crate::tree::{Tree, is_dir, join};
use crate::{cli, image, progress};

pub fn run(args: &cli::Put) -> Result<ExitCode> {
    for source in &args.sources {
        // Before the image is touched.
        std::fs::symlink_metadata(source).at(source)?;
    }
    let bar = progress::bytes();
    let result = image::change(&args.image, |fs| {
        let mut tree = Tree { fs, image: &args.image };
        let mut copy = BringIn::new(&args.image, Wanted::default(), &bar)?;
        args.sources.iter().try_for_each(|source| {
            let (place, path) = place(&mut tree, source, args)?;
            copy.copy(&mut tree, source, &place, &path)
        })
    });
    bar.finish_and_clear();
    result.map(|()| ExitCode::SUCCESS)
}

/// Where a source goes: into DEST if that is a directory, else in its place.
fn place(tree: &mut Tree, source: &Path, args: &cli::Put) -> Result<(Place, Vec<u8>)> {
    let dest = args.dest.as_bytes();
    let (above, last) = split(dest);
    let is_name = !matches!(last, b"" | b"." | b"..");
    if is_name {
        let dir = tree.find(above)?;
        if !is_dir(&dir.attr) {
            return Err(tree.error(above, "not a directory"));
        }
        let there = match tree.fs.lookup(dir.attr.ino, last) {
            Ok(found) => is_dir(&found),
            Err(flexfs_core::Error::NotFound) => false,
            Err(error) => return Err(tree.error(dest, error)),
        };
        if !there && (dest.ends_with(b"/") || args.sources.len() > 1) {
            return Err(tree.error(dest, "no such directory; several sources, and a DEST that ends in /, need one"));
        }
        if !there {
            return Ok((Place::Name(dir.attr.ino, last.to_vec()), dest.to_vec()));
        }
    }
    let dir = tree.find(dest)?.attr.ino;
    Ok(match name_of(source) {
        Some(name) => (Place::Name(dir, name.as_bytes().to_vec()), join(dest, name.as_bytes())),
        None => (Place::Directory(dir), dest.to_vec()),
    })
}

/// A path without its last name, and that name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let path = path.get(..end).unwrap_or(path);
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (path.get(..slash).unwrap_or_default(), path.get(slash + 1..).unwrap_or_default()),
        None => (b"", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
