//! A chip in a file: the image format, and the store that keeps it.
//!
//! # The format, version 1
//!
//! All integers are little-endian; all CRCs are CRC-32C (Castagnoli). The file is sparse: what was never written is a
//! hole, and erased blocks become holes again where the host's file system can punch them.
//!
//! ```text
//! offset          bytes  what
//! 0               8      magic "FLXCHIP\0"; zero while the image is being made
//! 8               4      format version, 1
//! 12              4      CRC of bytes 16 .. 96 + profile length
//! 16              8      H, header bytes: 96 + profile length, rounded up to 4096
//! 24              8      seed of the chip
//! 32              8      R, bytes of a block record: 64 + pages per block, rounded up to a power of two
//! 40              8      T, offset of the block records: H + 4096
//! 48              8      D, offset of the data: T + blocks * R, rounded up to 4096
//! 56              8      S, bytes of a page slot: page bytes + spare bytes
//! 64              8      B, bytes between blocks: pages per block * S, rounded up to 4096
//! 72              8      file size: D + blocks * B
//! 80              4      profile length
//! 84              12     zero
//! 96              ...    the chip's profile, TOML in UTF-8
//! H               16     clock record: CRC of the 12 bytes that follow, 4 zero bytes, virtual time in nanoseconds;
//!                        all zero before the first is written
//! T + b*R         R      record of block b; all zero: fresh from the factory
//! D + b*B + p*S   S      slot of page p of block b: data bytes, then spare bytes
//! ```
//!
//! A block record:
//!
//! ```text
//! offset  bytes  what
//! 0       4      CRC of the rest of the record, its padding included
//! 4       1      mode since the last erase: 0 none, 1 SLC, 2 native
//! 5       1      flags: 1 marked bad, 2 failed (programs and erases fail for good)
//! 6       2      zero
//! 8       4      erase count
//! 12      4      of these: erases that ended a life in SLC mode
//! 16      4      lowest unit that may be programmed
//! 20      4      reads since the erase
//! 24      8      virtual time of the first program since the erase, nanoseconds
//! 32      8      virtual time when this record was written
//! 40      4      program/erase cycles begun: first programs of the erased block
//! 44      20     zero
//! 64      ...    a byte a page: 0 erased, 1 programmed, 2 uncorrectable, 3 unstable (the next read is the last good
//!                one), 4 weak (reads as erased, but is not)
//! ```
//!
//! # Order of writes
//!
//! A program writes the page's slot, then the block's record; an erase writes the record alone, and the hole is
//! punched when the operation can no longer be undone. The record is one write within one page of the host's cache,
//! so a process that is killed leaves the state before the operation or after it; slots of pages that the record calls
//! erased mean nothing. The time of the chip is the latest of the clock record and all block records. Reads since the
//! block's last record, unstable pages that they used up among them, and idle time since the last operation are written
//! at sync and close, unless they are forgotten: a chip that only reads leaves every byte as it was until then. Only a
//! sync protects from the host losing power.
//!
//! The file is locked with `flock(2)` while it is open: exclusively for writing, shared for reading only.

mod file;
mod header;
mod record;

use std::io;

use crate::{
    error::EmulatorError,
    spec::Spec,
    table::{BlockMeta, PageState, Table},
};

use file::ImageFile;
use header::Header;
pub use header::MAGIC;

/// An open image. Page contents stay in the file.
#[derive(Debug)]
pub(crate) struct ImageStore {
    file: ImageFile,
    header: Header,
    page_bytes: usize,
    /// Whether reads, and the time they took, reach the file.
    keeps_reads: bool,
    /// A slot or a record on its way to the file.
    buffer: Vec<u8>,
}

/// What an image holds.
pub(crate) struct OpenedImage {
    pub(crate) spec: Spec,
    pub(crate) seed: u64,
    pub(crate) table: Table,
    pub(crate) store: ImageStore,
    pub(crate) now_ns: u64,
}

impl ImageStore {
    /// Makes an image of an all-erased chip.
    pub(crate) fn create(path: &std::path::Path, spec: &Spec, seed: u64, replace: bool) -> Result<Self, EmulatorError> {
        let toml = spec.profile.to_toml()?;
        let header = Header::new(&spec.geometry, seed, &toml);
        let file = if replace { ImageFile::replace(path)? } else { ImageFile::create(path)? };
        if let Err(error) = file.write_new(&header, &toml) {
            file.remove();
            return Err(error);
        }
        Ok(Self::new(file, header, spec))
    }

    fn new(file: ImageFile, header: Header, spec: &Spec) -> Self {
        let (page_bytes, keeps_reads) = (spec.geometry.page_bytes as usize, !file.read_only);
        Self { file, header, page_bytes, keeps_reads, buffer: Vec::new() }
    }

    /// Opens an image and reads its tables.
    pub(crate) fn open(path: &std::path::Path, read_only: bool) -> Result<OpenedImage, EmulatorError> {
        let file = ImageFile::open(path, read_only)?;
        let (header, spec) = file.read_header()?;
        let (table, latest_ns) = file.read_records(&header, &spec)?;
        let now_ns = file.read_clock(&header)?.max(latest_ns);
        let store = Self::new(file, header, &spec);
        Ok(OpenedImage { spec, seed: store.header.seed, table, store, now_ns })
    }

    pub(crate) fn put(&mut self, block: u32, page: u32, data: &[u8], spare: &[u8]) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.extend_from_slice(data);
        self.buffer.extend_from_slice(spare);
        self.buffer.resize(self.header.slot_bytes as usize, 0xFF);
        self.file.write(&self.buffer, self.header.slot(block, page))
    }

    pub(crate) fn get(
        &self,
        block: u32,
        page: u32,
        column: usize,
        data: &mut [u8],
        spare: &mut [u8],
    ) -> io::Result<()> {
        let slot = self.header.slot(block, page);
        if !data.is_empty() {
            self.file.read(data, slot + column as u64)?;
        }
        if !spare.is_empty() {
            self.file.read(spare, slot + self.page_bytes as u64)?;
        }
        Ok(())
    }

    /// Gives the room of an erased block back to the host, where it can take it.
    pub(crate) fn punch(&self, block: u32) {
        self.file.punch(self.header.slot(block, 0), self.header.block_bytes);
    }

    pub(crate) fn commit(&mut self, block: u32, meta: &BlockMeta, states: &[PageState], now_ns: u64) -> io::Result<()> {
        record::encode(&mut self.buffer, self.header.record_bytes as usize, meta, states, now_ns);
        self.file.write(&self.buffer, self.header.record(block))
    }

    /// From now on [`Self::save_reads`] writes nothing.
    pub(crate) fn forget_reads(&mut self) {
        self.keeps_reads = false;
    }

    /// Writes the clock, and the records of blocks whose reads are not in the file yet, unless reads are forgotten.
    pub(crate) fn save_reads(&mut self, table: &mut Table, now_ns: u64) -> Result<(), EmulatorError> {
        if !self.keeps_reads {
            return Ok(());
        }
        for block in 0..table.blocks.len() as u32 {
            if table.meta(block).unsaved_reads {
                self.commit(block, table.meta(block), table.states(block), now_ns)
                    .map_err(|error| self.file.failed("writing a block record", error))?;
                table.meta_mut(block).unsaved_reads = false;
            }
        }
        self.file
            .write(&record::encode_clock(now_ns), self.header.header_bytes)
            .map_err(|error| self.file.failed("writing the clock", error))
    }

    pub(crate) fn sync(&self) -> Result<(), EmulatorError> {
        self.file.sync()
    }
}
