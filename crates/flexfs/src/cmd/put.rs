//! `flexfs put`: copies files and directories into an image.
//!
//! Invariant: an error too leaves the image unmounted cleanly, with all that was copied until then.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::host::At;
use crate::interrupt::Interrupt;
use crate::tree::bring_in::{BringIn, Place, Wanted, name_of};
use crate::tree::{Tree, is_dir, join, shown, split};
use crate::{cli, image, progress};

pub fn run(args: &cli::Put) -> Result<ExitCode> {
    for source in &args.sources {
        // Before the image is touched.
        std::fs::symlink_metadata(source).at(source)?;
    }
    let (bar, interrupt) = (progress::bytes(), Interrupt::watch()?);
    let result = image::change(&args.image, &interrupt, |fs| {
        let mut tree = Tree { fs, image: &args.image };
        let mut copy = BringIn::new(&args.image, Wanted::default(), &bar, &interrupt)?;
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
        let dir = tree.find_directory(above)?;
        let wants_directory = dest.ends_with(b"/") || args.sources.len() > 1;
        let there = match tree.fs.lookup(dir.attr.ino, last) {
            Ok(found) if wants_directory && !is_dir(&found) => return Err(tree.error(dest, "not a directory")),
            Ok(found) => is_dir(&found),
            Err(flexfs_core::Error::NotFound) => false,
            Err(error) => return Err(tree.error(dest, error)),
        };
        if !there && wants_directory {
            let image = args.image.display();
            let why = "several sources, and a DEST that ends in /, need one";
            let path = shown(dest);
            return Err(
                tree.error(dest, format!("no such directory; {why}: `flexfs mkdir -p {image} {path}` makes it"))
            );
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
