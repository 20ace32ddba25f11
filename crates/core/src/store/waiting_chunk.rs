//! The last whole chunk of a file, which waits in the write buffer for the times of its change.
//!
//! A caller that keeps the times of files says them after the data: the tag of a chunk that has waited for them tells both.
//! Invariants: times are left to a tag only where it tells them exactly; else the inode is logged behind the chunk. A chunk
//! waits until the next whole chunk of its file, the next sync, or until too many wait.

use nand::Nand;

use super::chunk_writes::ChangeTime;
use super::chunks::FileChunks;
use crate::error::Result;
use crate::format::node::Body;

impl<N: Nand> FileChunks<'_, N> {
    /// Lets the chunk that came into memory last tell the times of its inode, which both become `time_ns`. `false`: no whole
    /// chunk waits.
    pub fn date(&mut self, time_ns: i64) -> Result<bool> {
        let ino = self.ino;
        let slot_bytes = self.records.flash().shape().slot_bytes;
        let Some(last) = self.records.buffer.newest_whole(ino, slot_bytes) else { return Ok(false) };
        while let Some(chunk) = self.records.buffer.oldest_of(ino).filter(|&chunk| chunk != last) {
            self.store(chunk, None, false)?;
        }
        let told = match self.store(last, Some(ChangeTime { ns: time_ns, dated: true }), true) {
            Ok(told) => told,
            Err(error) => {
                // The tag may have reached the log before the index failed: the times stay as they were.
                let inode = self.records.inode(ino)?;
                self.records.push(ino, Body::Inode(inode))?;
                return Err(error);
            }
        };
        let mut inode = self.records.inode(ino)?;
        (inode.mtime_ns, inode.ctime_ns) = (time_ns, time_ns);
        match told {
            true => self.records.derive_inode(ino, inode),
            false => self.records.put_inode(ino, inode)?,
        }
        Ok(true)
    }
}
