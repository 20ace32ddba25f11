//! What of a file holds no data: holes, and space that is reserved for data to come.
//!
//! Invariant: reserved space counts as used until data takes it or it is given back, so writing there finds room.

use nand::Nand;

use super::Fs;
use crate::error::{Error, Result};
use crate::format::inode::Ino;
use crate::policy::budget::Call;

/// Bytes copied at a time.
const COPY_BYTES: usize = 64 << 10;

impl<N: Nand> Fs<N> {
    /// Makes a hole (reads as zeros); the size stays.
    pub fn punch(&mut self, ino: Ino, offset: u64, len: u64, now_ns: i64) -> Result<()> {
        self.store.begin(Call::REMOVAL)?;
        self.records().chunks(ino).inode()?;
        if len == 0 {
            return Err(Error::Invalid("a hole has a length"));
        }
        self.records().chunks(ino).punch(offset, len)?;
        self.end_allocation(ino, None, now_ns)
    }

    /// Reserves space for `offset .. offset + len`: writing there finds room. The file grows to hold the range,
    /// unless `keep_size`.
    pub fn allocate(&mut self, ino: Ino, offset: u64, len: u64, keep_size: bool, now_ns: i64) -> Result<()> {
        self.store.begin(Call::CHANGE)?;
        let (from, to) = self.records().chunks(ino).need_space(offset, len, false)?;
        self.records().chunks(ino).reserve(from, to)?;
        self.end_allocation(ino, (!keep_size).then_some(offset + len), now_ns)
    }

    /// Makes `offset .. offset + len` read as zeros and reserves space for it. The file grows to hold the range,
    /// unless `keep_size`.
    pub fn zero_range(&mut self, ino: Ino, offset: u64, len: u64, keep_size: bool, now_ns: i64) -> Result<()> {
        self.store.begin(Call::CHANGE)?;
        let (from, to) = self.records().chunks(ino).need_space(offset, len, true)?;
        self.records().chunks(ino).punch(offset, len)?;
        self.records().chunks(ino).reserve(from, to)?;
        self.end_allocation(ino, (!keep_size).then_some(offset + len), now_ns)
    }

    /// Ends an operation on a file's space: it changed now, and is at least `size` long.
    fn end_allocation(&mut self, ino: Ino, size: Option<u64>, now_ns: i64) -> Result<()> {
        let mut inode = self.records().inode(ino)?;
        inode.size = inode.size.max(size.unwrap_or(0));
        self.touch(&mut inode, now_ns);
        self.records().put_inode(ino, inode)?;
        self.store.end()
    }

    /// Where from `offset` on the next data (or, with `hole`, the next hole) of a file is. The end of the file counts as
    /// a hole; reserved space does too.
    pub fn seek(&mut self, ino: Ino, offset: u64, hole: bool) -> Result<u64> {
        let size = self.records().chunks(ino).inode()?.size;
        if offset >= size {
            return Err(Error::PastEnd);
        }
        let chunk_bytes = self.records().chunk_bytes();
        let mut from = offset / chunk_bytes;
        let past = size.div_ceil(chunk_bytes);
        while from < past {
            let (data, until) = self.records().chunks(ino).stretch(from, past)?;
            if data != hole {
                return Ok((from * chunk_bytes).max(offset).min(size));
            }
            from = until;
        }
        if hole { Ok(size) } else { Err(Error::PastEnd) }
    }

    /// Copies up to `len` bytes from one file (or place in it) to another; how many. Fewer at the end of the source,
    /// and where it failed after some: whoever asks for the rest is told why.
    pub fn copy_range(
        &mut self,
        (from, from_offset): (Ino, u64),
        (to, to_offset): (Ino, u64),
        len: u64,
        now_ns: i64,
    ) -> Result<u64> {
        let size = self.records().chunks(from).inode()?.size;
        self.records().chunks(to).inode()?;
        if from == to && from_offset.abs_diff(to_offset) < len {
            return Err(Error::Invalid("a range cannot be copied over a part of itself"));
        }
        let len = len.min(size.saturating_sub(from_offset));
        let mut buffer = alloc::vec![0; COPY_BYTES.min(len as usize)];
        let mut done = 0;
        while done < len {
            let Some(piece) = buffer.get_mut(..((len - done) as usize).min(COPY_BYTES)) else { break };
            let copied = self.read(from, from_offset + done, piece).and_then(|count| {
                let written = self.write(to, to_offset + done, piece.get(..count).unwrap_or(&[]), now_ns)?;
                Ok((count, written))
            });
            let (count, written) = match copied {
                Err(_) if done > 0 => break,
                copied => copied?,
            };
            done += written as u64;
            if written < count || count == 0 {
                break;
            }
        }
        Ok(done)
    }
}
