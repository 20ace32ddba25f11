//! Where a command may write what it makes: to no chip image, by whatever name or path it is reached.
//!
//! An image is known by how it begins; the one that a command works on by its device and inode too. Invariant: each file
//! that a command makes, replaces or writes to comes by here first, but for an image that the command is told to make or
//! to change.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use emulator::image::MAGIC;
use rustix::fs::FileType;

use crate::host::At;

/// What the destinations of a command must not be.
#[derive(Clone, Copy, Default)]
pub struct Destinations {
    /// Device and inode of the image that the command works on.
    image: Option<(u64, u64)>,
}

impl Destinations {
    /// Those of a command that works on this image.
    pub fn beside(image: &Path) -> Self {
        Self { image: fs::metadata(image).ok().map(|found| (found.dev(), found.ino())) }
    }

    /// Whether what is at `path`, if anything, may be written over or give way. Links are followed: what is reached by one
    /// stays reachable.
    pub fn check(&self, path: &Path) -> Result<()> {
        // What cannot be looked at cannot be written through; what takes its name does it no harm.
        let Ok(found) = fs::metadata(path) else { return Ok(()) };
        if self.image == Some((found.dev(), found.ino())) {
            bail!("{}: this is the image itself; choose another destination", path.display());
        }
        if found.is_file() && is_chip_image(&File::open(path).at(path)?).at(path)? {
            return Err(refused(path));
        }
        Ok(())
    }

    /// Whether a new file may be made there.
    pub fn check_new(&self, path: &Path) -> Result<()> {
        self.check(path)?;
        match fs::symlink_metadata(path) {
            Ok(_) => Err(exists(path)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error).at(path),
        }
    }

    /// Makes a new file.
    pub fn create_new(&self, path: &Path) -> Result<File> {
        self.check_new(path)?;
        match File::create_new(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(exists(path)),
            made => made.at(path),
        }
    }

    /// Makes a file that holds this, or gives it to one that is there.
    pub fn write(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.check(path)?;
        fs::write(path, content).at(path)
    }

    /// Moves all files of one directory to another: all, or none if one of them cannot stand there.
    pub fn move_all(&self, from: &Path, to: &Path) -> Result<()> {
        let names = fs::read_dir(from).at(from)?.map(|entry| entry.map(|entry| entry.file_name()));
        let names = names.collect::<io::Result<Vec<_>>>().at(from)?;
        names.iter().try_for_each(|name| self.check(&to.join(name)))?;
        names.iter().try_for_each(|name| fs::rename(from.join(name), to.join(name)).at(&to.join(name)))
    }
}

/// Why nothing is written to a chip image.
pub fn refused(path: &Path) -> anyhow::Error {
    anyhow!("{}: a chip image, which nothing is written over; choose another destination, or remove it", path.display())
}

fn exists(path: &Path) -> anyhow::Error {
    anyhow!("{}: exists, and a new file is to be made; choose another name, or remove it", path.display())
}

/// Whether a file that was opened for reading holds a chip.
pub fn is_chip_image(file: &File) -> io::Result<bool> {
    let mut head = [0; MAGIC.len()];
    match file.read_exact_at(&mut head, 0) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| head == MAGIC),
    }
}

/// Whether a stream, opened by whoever started the program, leads into a chip image: a shell may append to one.
pub fn leads_into_image(stream: impl AsFd) -> bool {
    let stream = stream.as_fd();
    let is_file =
        rustix::fs::fstat(stream).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile);
    is_file
        && File::open(format!("/proc/self/fd/{}", stream.as_raw_fd()))
            .is_ok_and(|file| is_chip_image(&file).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use emulator::{Chip, Profile};

    use super::*;

    #[test]
    fn a_chip_image_is_known_by_how_it_begins_and_nothing_else_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let [image, short, other] = ["image", "short", "other"].map(|name| dir.path().join(name));
        Chip::create_image(&image, &Profile::default().with_capacity(16 << 20).unwrap(), 1).unwrap();
        fs::write(&short, &MAGIC[..7]).unwrap();
        fs::write(&other, "what one writes").unwrap();
        let is_image = |path: &Path| is_chip_image(&File::open(path).unwrap()).unwrap();
        assert!(is_image(&image) && !is_image(&short) && !is_image(&other));
        assert!(leads_into_image(File::open(&image).unwrap()) && !leads_into_image(File::open(&other).unwrap()));
    }

    /// An image whose beginning was lost is still what the command works on.
    #[test]
    fn the_image_that_a_command_works_on_is_known_without_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let [image, link] = ["image", "link"].map(|name| dir.path().join(name));
        fs::write(&image, "damaged").unwrap();
        fs::hard_link(&image, &link).unwrap();
        assert!(Destinations::beside(&image).check(&link).is_err());
        assert!(Destinations::default().check(&link).is_ok());
    }
}
