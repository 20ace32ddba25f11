//! Nodes on their way to flash: each waits in the write buffer until a slot is packed with them.
//!
//! Invariant: a node that no longer counts is left out, and an inode is written as it is when its slot is packed.

use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::log::Placement;
use super::records::Records;
use super::write_buffer::Pending;
use crate::error::Result;
use crate::flash::Purpose;
use crate::flash::append::Draft;
use crate::format::key::{KeyKind, kind_of};
use crate::format::node::{self, Body, Node, Order};
use crate::format::place::{NODE_UNIT, Place, Slot};
use crate::index::delta::Change;
use crate::policy::Region;

/// A pending node in the slot it is written in: where it begins and how long it is, in units.
#[derive(Clone, Copy)]
struct Packed {
    number: u32,
    at: u8,
    units: u8,
}

impl<N: Nand> Records<N> {
    /// Makes a node; it is found under its key from now on.
    pub fn push(&mut self, ino: u64, body: Body<'_>) -> Result<()> {
        self.push_node(ino, body, false).map(|_| ())
    }

    /// Makes a node under whose key nothing is found yet.
    pub fn push_new(&mut self, ino: u64, body: Body<'_>) -> Result<()> {
        self.push_node(ino, body, true).map(|_| ())
    }

    /// Makes a node; whether it replaced another. `fresh` promises that it does not.
    pub(super) fn push_node(&mut self, ino: u64, body: Body<'_>, fresh: bool) -> Result<bool> {
        let node = Node { ino, order: Order::Back(0), body };
        let (key, bytes, seq) = (node.key(), node.encode(), self.flash().numbers().next());
        let number = self.buffer.pending_nodes().len() as u32;
        let change = Change::Put(Place::Pending { number });
        let replaced = match (key, fresh) {
            (None, _) => false,
            (Some(key), true) => self.set_fresh(key, change)?.any,
            (Some(key), false) => self.set(key, change)?.any,
        };
        self.buffer.add_pending(Pending { key, ino, bytes, seq, written: false });
        Ok(replaced)
    }

    /// Packs pending nodes that still count into a slot; the last of them ends the group, or an empty slot does.
    pub(super) fn store_nodes(&mut self, to: Placement) -> Result<()> {
        let alive = self.alive_nodes()?;
        let slot_bytes = self.flash().shape().slot_bytes;
        let (mut buffer, mut taken) = (Vec::with_capacity(slot_bytes), Vec::new());
        for &number in &alive {
            let Some(pending) = self.buffer.pending_nodes().get(number as usize) else { break };
            if buffer.len() + pending.bytes.len() > slot_bytes - NODE_UNIT {
                break;
            }
            let (at, units) = (buffer.len() / NODE_UNIT, pending.bytes.len() / NODE_UNIT);
            taken.push(Packed { number, at: at as u8, units: units as u8 });
            buffer.extend_from_slice(&pending.bytes);
        }
        let all = taken.len() == alive.len();
        if !taken.is_empty() {
            self.store_packed_nodes(to, buffer, &taken, all)?;
        } else if !self.flash().numbers().is_ended() {
            self.append_nodes(to, &vec![0; slot_bytes], 1, true)?;
        }
        if all || taken.is_empty() {
            self.buffer.clear_pending();
        }
        Ok(())
    }

    /// The pending nodes that still count, inodes last and up to date.
    fn alive_nodes(&mut self) -> Result<Vec<u32>> {
        let mut alive = Vec::new();
        let mut inodes = Vec::new();
        for number in 0..self.buffer.pending_nodes().len() as u32 {
            let Some(pending) = self.buffer.pending_nodes().get(number as usize) else { break };
            match pending.key {
                None if pending.written => {}
                None => alive.push(number),
                Some(key) => {
                    if self.index.pending_at(key) != Some(number) {
                        continue;
                    }
                    if kind_of(key) == KeyKind::Inode as u8 { inodes.push(number) } else { alive.push(number) }
                }
            }
        }
        for &number in &inodes {
            let Some(ino) = self.buffer.pending_nodes().get(number as usize).map(|pending| pending.ino) else { break };
            let inode = self.inode(ino)?;
            if let Some(pending) = self.buffer.pending_nodes().get_mut(number as usize) {
                pending.bytes = Node { ino, order: Order::Back(0), body: Body::Inode(inode) }.encode();
                pending.seq = u64::MAX;
            }
        }
        alive.extend(inodes);
        Ok(alive)
    }

    fn store_packed_nodes(&mut self, to: Placement, mut buffer: Vec<u8>, taken: &[Packed], end: bool) -> Result<()> {
        let used = buffer.len();
        let slot_seq = self.flash().numbers().next();
        for &Packed { number, at, .. } in taken {
            let Some(pending) = self.buffer.pending_nodes().get(number as usize) else { continue };
            let back = slot_seq.saturating_sub(pending.seq).min(u64::from(u16::MAX)) as u16;
            if let Some(bytes) = buffer.get_mut(usize::from(at) * NODE_UNIT..) {
                node::set_order(bytes, Order::Back(back));
            }
        }
        buffer.resize(self.flash().shape().slot_bytes, 0);
        let slot = self.append_nodes(to, &buffer, used, end)?;
        for &Packed { number, at, units } in taken {
            let Some((key, ino)) = self.buffer.pending_nodes().get(number as usize).map(|p| (p.key, p.ino)) else {
                continue;
            };
            self.buffer.is_written(number);
            let Some(key) = key else { continue };
            self.index.place_pending(self.log.slots_mut(), key, number, Place::Node { slot, at, units });
            if kind_of(key) == KeyKind::Inode as u8 {
                self.inodes.cleaned(ino);
            }
        }
        self.log.slots_mut().keep(slot, buffer.into());
        Ok(())
    }

    fn append_nodes(&mut self, to: Placement, bytes: &[u8], used: usize, end: bool) -> Result<Slot> {
        let slot = self.log.append(to, Draft::nodes(used as u32, end), bytes, Purpose::of(Cause::Metadata))?;
        self.buffer.goes_native(to.region == Region::Native);
        self.manager.heard_of_nodes(to.region, to.hot);
        if end {
            self.log.end_group();
        }
        Ok(slot)
    }
}
