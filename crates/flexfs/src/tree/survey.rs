//! What a tree on the host is made of, in one hash, and how new it is: for an image that is to depend on nothing else.
//!
//! Invariant: two trees have the same hash if a copy into an image keeps no difference between them, wherever they
//! stand and however the host stores them.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Result;
use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use super::bring_in::{attributes_of, check_mtime, is_kept, mtime_ns};
use crate::host::At;

/// A tree in short.
pub struct Survey {
    pub hash: [u8; 32],
    /// The newest time of modification in it.
    pub newest_ns: i64,
}

/// Looks at all in `root`, as it will belong to `owner` if there is one.
pub fn survey(root: &Path, owner: Option<(u32, u32)>) -> Result<Survey> {
    let mut hash = Sha256::new();
    let mut newest_ns = i64::MIN;
    let mut links = HashMap::new();
    for (number, entry) in WalkDir::new(root).sort_by_file_name().into_iter().enumerate() {
        let entry = entry.at(root)?;
        let (path, meta) = (entry.path(), entry.metadata().at(root)?);
        check_mtime(path, &meta)?;
        newest_ns = newest_ns.max(mtime_ns(&meta));
        let name = if entry.depth() == 0 { b"" } else { entry.file_name().as_bytes() };
        part(&mut hash, name);
        let (uid, gid) = owner.unwrap_or((meta.uid(), meta.gid()));
        // The first of several names of one inode stands for all.
        let first = if meta.is_dir() { number } else { *links.entry((meta.dev(), meta.ino())).or_insert(number) };
        let numbers = [entry.depth() as u64, meta.mode().into(), uid.into(), gid.into(), meta.rdev(), first as u64];
        numbers.iter().for_each(|number| hash.update(number.to_le_bytes()));
        hash.update(mtime_ns(&meta).to_le_bytes());
        for (name, value) in attributes_of(path)?.into_iter().filter(|(name, _)| is_kept(name)) {
            part(&mut hash, name.as_bytes());
            part(&mut hash, &value);
        }
        if meta.is_symlink() {
            part(&mut hash, fs::read_link(path).at(path)?.as_os_str().as_bytes());
        } else if meta.is_file() && first == number {
            hash.update(contents(path)?);
        }
    }
    Ok(Survey { hash: hash.finalize().into(), newest_ns })
}

/// Hashes bytes with their length, so that no two sequences of parts look the same.
fn part(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

fn contents(path: &Path) -> Result<[u8; 32]> {
    struct Hashing(Sha256);
    impl io::Write for Hashing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut hash = Hashing(Sha256::new());
    let mut file = File::open(path).at(path)?;
    io::copy(&mut file, &mut hash).at(path)?;
    Ok(hash.0.finalize().into())
}
