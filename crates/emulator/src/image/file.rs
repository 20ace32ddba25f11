//! The file an image is in: making, locking, checking and writing it.
//!
//! Invariant: nothing is written to a file before it is known to be an image and ours alone, and every error names
//! the file. A file that is refused is left as it was.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock},
    io::Errno,
};

use super::{
    header::{CRC, FIXED_BYTES, Header, MAGIC, MOST_HEADER_BYTES, VERSION, u32_at, u64_at},
    record,
};
use crate::{error::EmulatorError, profile::Profile, spec::Spec, table::Table};

#[derive(Debug)]
pub(super) struct ImageFile {
    file: File,
    path: PathBuf,
    pub(super) read_only: bool,
}

impl ImageFile {
    /// Makes a file that must not exist yet.
    pub(super) fn create(path: &Path) -> Result<Self, EmulatorError> {
        let opened = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => EmulatorError::Exists { path: path.to_owned() },
            _ => failed(path, "making the image", error),
        })?;
        Self::locked(file, path, false)
    }

    /// Empties the file of that name, unless it is in use or no regular file, or makes it.
    pub(super) fn replace(path: &Path) -> Result<Self, EmulatorError> {
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = opened.map_err(|error| failed(path, "replacing the image", error))?;
        let image = Self::locked(file, path, false)?;
        image.file.set_len(0).map_err(|error| image.failed("emptying the image", error))?;
        Ok(image)
    }

    /// Opens the image of that name.
    pub(super) fn open(path: &Path, read_only: bool) -> Result<Self, EmulatorError> {
        // Opening a pipe would wait for whoever is at its other end.
        let at_once = OFlags::NONBLOCK.bits().cast_signed();
        let opened = OpenOptions::new().read(true).write(!read_only).custom_flags(at_once).open(path);
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => EmulatorError::Missing { path: path.to_owned() },
            io::ErrorKind::IsADirectory => EmulatorError::Foreign { path: path.to_owned() },
            _ => failed(path, "opening the image", error),
        })?;
        Self::locked(file, path, read_only)
    }

    fn locked(file: File, path: &Path, read_only: bool) -> Result<Self, EmulatorError> {
        let metadata = file.metadata().map_err(|error| failed(path, "looking at the image", error))?;
        if !metadata.is_file() {
            return Err(EmulatorError::Foreign { path: path.to_owned() });
        }
        let lock =
            if read_only { FlockOperation::NonBlockingLockShared } else { FlockOperation::NonBlockingLockExclusive };
        match flock(&file, lock) {
            Ok(()) => Ok(Self { file, path: path.to_owned(), read_only }),
            Err(Errno::WOULDBLOCK) => Err(EmulatorError::InUse { path: path.to_owned() }),
            Err(errno) => Err(failed(path, "locking the image", errno.into())),
        }
    }

    /// Writes a new image; the magic goes last, so that one half made is known as such.
    pub(super) fn write_new(&self, header: &Header, toml: &str) -> Result<(), EmulatorError> {
        let bytes = header.encode(toml);
        self.file.set_len(header.file_bytes).map_err(|error| self.failed("sizing the image", error))?;
        // With the tables' room taken now, an erase never fails for want of it.
        match fallocate(&self.file, FallocateFlags::empty(), 0, header.data_at) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(errno) => return Err(self.failed("making room for the image's tables", errno.into())),
        }
        let written = self
            .write(&bytes[MAGIC.len()..], MAGIC.len() as u64)
            .and_then(|()| self.file.sync_data())
            .and_then(|()| self.write(&bytes[..MAGIC.len()], 0))
            .and_then(|()| self.file.sync_data());
        written.map_err(|error| self.failed("writing the image's header", error))
    }

    /// Takes back a file that could not be made into an image.
    pub(super) fn remove(self) {
        // The error that led here is the one to report.
        let _ = std::fs::remove_file(&self.path);
    }

    /// Reads and checks the header.
    pub(super) fn read_header(&self) -> Result<(Header, Spec), EmulatorError> {
        let found_bytes = self.file.metadata().map_err(|error| self.failed("looking at the image", error))?.len();
        let mut fixed = [0; FIXED_BYTES];
        let head_bytes = found_bytes.min(FIXED_BYTES as u64) as usize;
        self.read(&mut fixed[..head_bytes], 0).map_err(|error| self.failed("reading the header", error))?;
        // Without a magic it is ours if it is empty, blank, or if the rest of the header stands.
        let unborn = fixed[8..].iter().all(|&byte| byte == 0) || u32_at(&fixed, 8) == VERSION;
        if fixed[..8] == [0; 8] && unborn {
            return Err(EmulatorError::HalfMade { path: self.path.clone() });
        }
        if fixed[..8] != MAGIC {
            return Err(EmulatorError::Foreign { path: self.path.clone() });
        }
        let version = u32_at(&fixed, 8);
        if version > VERSION {
            return Err(EmulatorError::Version { path: self.path.clone(), version, supported: VERSION });
        }
        let toml_bytes = u64::from(u32_at(&fixed, 80));
        let header_bytes = (FIXED_BYTES as u64 + toml_bytes).min(MOST_HEADER_BYTES);
        if found_bytes < header_bytes {
            return Err(self.short(u64_at(&fixed, 72).max(header_bytes), found_bytes));
        }
        let mut bytes = vec![0; header_bytes as usize];
        self.read(&mut bytes, 0).map_err(|error| self.failed("reading the header", error))?;
        if CRC.checksum(&bytes[16..]) != u32_at(&bytes, 12) {
            return Err(self.damaged("its header's checksum is wrong".to_owned()));
        }
        let toml = std::str::from_utf8(&bytes[FIXED_BYTES..])
            .map_err(|_| self.damaged("its chip profile is not text".to_owned()))?;
        let profile = Profile::from_toml(toml).map_err(|error| self.damaged(error.to_string()))?;
        let spec = Spec::new(&profile).map_err(|error| self.damaged(error.to_string()))?;
        let header = Header::new(&spec.geometry, u64_at(&bytes, 24), toml);
        if header.encode(toml) != bytes {
            return Err(self.damaged("its header contradicts its chip profile".to_owned()));
        }
        if found_bytes < header.file_bytes {
            return Err(self.short(header.file_bytes, found_bytes));
        }
        Ok((header, spec))
    }

    /// Reads all block records, and the latest time any was written.
    pub(super) fn read_records(&self, header: &Header, spec: &Spec) -> Result<(Table, u64), EmulatorError> {
        let blocks = spec.geometry.blocks;
        let mut table = Table::new(blocks, spec.geometry.pages_per_block);
        let record_bytes = header.record_bytes as usize;
        let blocks_at_once = ((1 << 20) / record_bytes).max(1);
        let mut latest_ns = 0;
        let mut buffer = vec![0; blocks_at_once * record_bytes];
        for first in (0..blocks).step_by(blocks_at_once) {
            let count = ((blocks - first) as usize).min(blocks_at_once);
            let bytes = &mut buffer[..count * record_bytes];
            self.read(bytes, header.record(first)).map_err(|error| self.failed("reading block records", error))?;
            for (block, bytes) in (first..).zip(bytes.chunks_exact(record_bytes)) {
                let Some((meta, written_ns)) = record::decode(bytes, table.states_mut(block)) else {
                    return Err(self.damaged(format!("the record of block {block} is wrong")));
                };
                *table.meta_mut(block) = meta;
                latest_ns = latest_ns.max(written_ns);
            }
        }
        Ok((table, latest_ns))
    }

    pub(super) fn read_clock(&self, header: &Header) -> Result<u64, EmulatorError> {
        let mut bytes = [0; record::CLOCK_BYTES];
        self.read(&mut bytes, header.header_bytes).map_err(|error| self.failed("reading the clock", error))?;
        record::decode_clock(&bytes).ok_or_else(|| self.damaged("its clock record is wrong".to_owned()))
    }

    pub(super) fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if self.read_only {
            return Err(Errno::ROFS.into());
        }
        self.file.write_all_at(bytes, offset)
    }

    /// Makes a range a hole; where that is not supported the range keeps its room, and nobody reads it.
    pub(super) fn punch(&self, offset: u64, bytes: u64) {
        if !self.read_only {
            let _ = fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, bytes);
        }
    }

    pub(super) fn sync(&self) -> Result<(), EmulatorError> {
        if self.read_only {
            return Ok(());
        }
        self.file.sync_data().map_err(|error| self.failed("syncing the image", error))
    }

    pub(super) fn failed(&self, what: &'static str, source: io::Error) -> EmulatorError {
        failed(&self.path, what, source)
    }

    fn damaged(&self, what: String) -> EmulatorError {
        EmulatorError::Damaged { path: self.path.clone(), what }
    }

    fn short(&self, expected_bytes: u64, found_bytes: u64) -> EmulatorError {
        EmulatorError::Short { path: self.path.clone(), expected_bytes, found_bytes }
    }
}

impl Drop for ImageFile {
    fn drop(&mut self) {
        // Closing is not enough: a process forked elsewhere in this one holds the same lock until it calls exec.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn failed(path: &Path, what: &'static str, source: io::Error) -> EmulatorError {
    if source.kind() == io::ErrorKind::StorageFull {
        return EmulatorError::DiskFull { path: path.to_owned(), what };
    }
    EmulatorError::Io { path: path.to_owned(), what, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_has_an_error_of_its_own() {
        let error = failed(Path::new("chip.img"), "sizing the image", Errno::NOSPC.into());
        assert!(matches!(error, EmulatorError::DiskFull { .. }));
        assert!(error.to_string().starts_with("chip.img: no space is left"), "{error}");
    }
}
