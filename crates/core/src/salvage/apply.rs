//! All that is left of a log, applied to an empty index.
//!
//! An inode counts what is logged after it. Of a copy nothing tells when its original was written, but its own time of
//! change does. Invariant: what an inode had counted when it was written is not counted again.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use nand::Nand;

use super::Mender;
use super::remains::Remains;
use crate::error::{Error, Result};
use crate::format::inode::Ino;
use crate::format::key::Key;
use crate::format::node::{self, Body, Order};
use crate::mount::actions::{Action, Basis};
use crate::mount::replay::{Replay, Unseen};
use crate::store::records::Records;

/// What an action says of the order of things.
struct Said {
    ino: Ino,
    /// The greatest inode it speaks of.
    greatest: Ino,
    /// When it was said, if it tells.
    time_ns: Option<i64>,
    /// The time of change of the inode it holds.
    inode_ctime_ns: Option<i64>,
    copy: bool,
}

/// The newest node of an inode.
struct Newest {
    order: (u64, u8),
    /// Its time of change, if it is a copy.
    copied_ctime_ns: Option<i64>,
}

impl Newest {
    /// Whether the node was written after that action, and so has counted it.
    fn has_counted(&self, action: &Action, said: &Said) -> bool {
        match (self.copied_ctime_ns, said.time_ns) {
            (None, _) => action.order <= self.order,
            (Some(ctime_ns), Some(time_ns)) => time_ns <= ctime_ns,
            // What bears no time comes together with the inode.
            (Some(_), None) => true,
        }
    }
}

impl<N: Nand> Mender<'_, N> {
    /// Applies what is left in the order of its numbers. By inode: what may have been miscounted.
    pub(super) fn apply_remains(&mut self, remains: &Remains, actions: &[Action]) -> Result<BTreeMap<Ino, Unseen>> {
        let newest = self.newest_inodes(actions)?;
        let mut lost: Vec<(u64, Key)> = remains.lost.iter().map(|(&key, &order)| (order, key)).collect();
        lost.sort_unstable_by(|a, b| b.cmp(a));
        let mut replay = Replay::new(self.records());
        for action in actions {
            while let Some((_, key)) = lost.pop_if(|(order, _)| *order <= action.order.0) {
                replay.cut(key)?;
            }
            let Some(said) = said(replay.records(), action)? else { continue };
            let counted = newest.get(&said.ino).is_some_and(|newest| newest.has_counted(action, &said));
            passed_over(match counted {
                true => replay.apply_to_index(action, Basis::Nothing),
                false => replay.apply_action(action, Basis::Nothing),
            })?;
        }
        while let Some((_, key)) = lost.pop() {
            replay.cut(key)?;
        }
        let derived = replay.take_derived();
        let mut unseen = BTreeMap::new();
        for (ino, mut derived) in derived {
            let records = self.records();
            let size = records.inode(ino).map_or(0, |inode| inode.size);
            let end_chunk = size.div_ceil(records.chunk_bytes());
            unseen.insert(ino, Unseen { end_chunk, ..derived.take_unseen() });
            passed_over(derived.apply(records, ino))?;
        }
        self.records().recovery().recount_blocks();
        Ok(unseen)
    }

    /// The newest node of each inode; the next inode's number becomes greater than any that is spoken of.
    fn newest_inodes(&mut self, actions: &[Action]) -> Result<BTreeMap<Ino, Newest>> {
        let mut newest = BTreeMap::new();
        for action in actions {
            let Some(said) = said(self.records(), action)? else { continue };
            self.records().recovery().note_ino(said.greatest);
            if let Some(ctime_ns) = said.inode_ctime_ns {
                let copied_ctime_ns = said.copy.then_some(ctime_ns);
                newest.insert(said.ino, Newest { order: action.order, copied_ctime_ns });
            }
        }
        Ok(newest)
    }
}

fn said<N: Nand>(records: &mut Records<N>, action: &Action) -> Result<Option<Said>> {
    let tag = &action.tag;
    let Some(at) = action.at else {
        // The time of a copy is rounded down, or 1970 where it bears none.
        let time_ns = Some(tag.time_ns);
        return Ok(Some(Said { ino: tag.ino, greatest: tag.ino, time_ns, inode_ctime_ns: None, copy: tag.copy }));
    };
    let bytes = match records.slot_reader().nodes(action.slot) {
        Err(Error::Corrupt { .. }) => return Ok(None),
        bytes => bytes?,
    };
    Ok(node::node_at(&bytes, at).map(|found| {
        let (time_ns, inode_ctime_ns, child) = match found.body {
            Body::Inode(inode) => (None, Some(inode.ctime_ns), 0),
            Body::Entry { time_ns, child, .. } => (Some(time_ns), None, child),
            Body::EntryGone { time_ns, .. } | Body::Data { time_ns, .. } => (Some(time_ns), None, 0),
            _ => (None, None, 0),
        };
        let copy = matches!(found.order, Order::CopyOf { .. });
        Said { ino: found.ino, greatest: found.ino.max(child), time_ns, inode_ctime_ns, copy }
    }))
}

/// What cannot be read is passed over.
fn passed_over(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(Error::Corrupt { .. }) => Ok(()),
        outcome => outcome,
    }
}
