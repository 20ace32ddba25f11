//! The last whole chunk of a file, which waits in the write buffer for the times of its change.
//!
//! A caller that keeps the times of files says them after the data: the tag of a chunk that has waited for them tells both.
//! Invariants: times are left to a tag only where it tells them exactly; else the inode is logged behind the chunk. A chunk
//! waits until the next whole chunk of its file, the next sync, or until too many wait.

use nand::Nand;

use super::commit::ChangeTime;
use super::records::Records;
use crate::error::Result;
use crate::format::inode::Ino;
use crate::format::node::Body;
use crate::policy::place::Write;

/// Lets the chunk of an inode that came into memory last tell the times of the inode, which both become `time_ns`.
/// `false`: no whole chunk waits.
pub fn date<N: Nand>(records: &mut Records<N>, ino: Ino, time_ns: i64) -> Result<bool> {
    let slot_bytes = records.flash().shape().slot_bytes;
    let Some(last) = records.buffer.newest_whole(ino, slot_bytes) else { return Ok(false) };
    while let Some(at) = records.buffer.oldest_of(ino).filter(|&(_, chunk)| chunk != last) {
        records.store_dirty(&Write::Host, at, None, false)?;
    }
    let time = ChangeTime { ns: time_ns, dated: true };
    let told = match records.store_dirty(&Write::Host, (ino, last), Some(time), true) {
        Ok(told) => told,
        Err(error) => {
            // The tag may have reached the log before the index failed: the times stay as they were.
            let inode = records.inode(ino)?;
            records.push(ino, Body::Inode(inode))?;
            return Err(error);
        }
    };
    let mut inode = records.inode(ino)?;
    (inode.mtime_ns, inode.ctime_ns) = (time_ns, time_ns);
    match told {
        true => records.derive_inode(ino, inode),
        false => records.put_inode(ino, inode)?,
    }
    Ok(true)
}
