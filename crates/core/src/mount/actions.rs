//! What slots of the log say, as single actions in the order in which they take effect.
//!
//! Invariant: an action's place in the order follows from its tag and its node alone, wherever it stands.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use crate::error::{Error, Result};
use crate::flash::slots::Slots;
use crate::format::node::{self, Order};
use crate::format::place::Slot;
use crate::format::tag::{Kind, Tag};

/// What the log is applied to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The index of a checkpoint: a copy takes the place of its source, and every original must be there.
    Checkpoint,
    /// Nothing, what there is of the log being all there is: a copy counts by itself, what cannot be read is passed
    /// over.
    Nothing,
}

/// One thing to apply: (twice the sequence number it comes before, rank), and what it is.
pub struct Action {
    pub order: (u64, u8),
    pub slot: Slot,
    /// The node in the slot, or `None` for the whole slot.
    pub at: Option<u8>,
    pub tag: Tag,
}

/// What `slots` say, in order, as far as originals count: below `limit`, and of several with one number the last.
pub fn in_order<N: Nand>(chip: &mut Slots<N>, slots: &[(Tag, Slot)], limit: u64, basis: Basis) -> Result<Vec<Action>> {
    let mut actions = Vec::new();
    let mut seen = BTreeSet::new();
    for &(tag, slot) in slots.iter().rev() {
        let counts = tag.copy || (tag.seq < limit && seen.insert(tag.seq));
        match (counts, tag.kind) {
            (false, _) => {}
            (true, Kind::Data) => {
                let order = if tag.copy { (2 * tag.seq, 0) } else { (2 * tag.seq + 1, 0) };
                actions.push(Action { order, slot, at: None, tag });
            }
            (true, _) => of_nodes(chip, tag, slot, basis, &mut actions)?,
        }
    }
    actions.reverse();
    // Nodes of one commit have one order, though they may stand in blocks of several heads.
    actions.sort_by_key(|action| (action.order, action.tag.seq));
    Ok(actions)
}

/// The nodes of a slot, last first.
fn of_nodes<N: Nand>(slots: &mut Slots<N>, tag: Tag, slot: Slot, basis: Basis, out: &mut Vec<Action>) -> Result<()> {
    let bytes = match slots.read_slot(slot, Kind::Nodes, Cause::Metadata) {
        Ok(bytes) => bytes,
        Err(Error::Corrupt { .. }) if tag.copy || basis == Basis::Nothing => return Ok(()),
        Err(error) => return Err(error),
    };
    let start = out.len();
    for (at, _, found) in node::nodes(&bytes, tag.len as usize) {
        let order = match found.order {
            Order::CopyOf { .. } => (2 * tag.seq, 0),
            Order::Back(back) => (2 * tag.seq.saturating_sub(u64::from(back)), 1),
        };
        out.push(Action { order, slot, at: Some(at), tag });
    }
    if let Some(nodes) = out.get_mut(start..) {
        nodes.reverse();
    }
    Ok(())
}
