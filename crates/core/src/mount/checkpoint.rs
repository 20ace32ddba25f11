//! Checkpoints: the index on flash is brought up to a point of the log, a page a step, and an anchor makes it count.
//!
//! Invariants: the checkpoint before stays whole until the new anchor is durable; blocks are listed as they stood at
//! the point the log goes on from, index blocks as they stand when the anchor is written.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::ongoing::{Checkpoint, Tables};
use crate::error::{Error, Result};
use crate::flash::append::Draft;
use crate::flash::blocks::Horizon;
use crate::flash::head::HeadId;
use crate::format::anchor::{Anchor, HeadAt, changes_max};
use crate::format::key::Key;
use crate::format::page::Page;
use crate::format::place::{NO_SLOT, Place, Slot};
use crate::format::table::{BLOCK_BYTES, BlockEntry, Use};
use crate::format::tag::Kind;
use crate::fs::Fs;
use crate::fs::space::FREE_SOFT;
use crate::index::delta::Delta;
use crate::index::merge::Merge;
use crate::index::tree::Tree;

impl<N: Nand> Fs<N> {
    /// Brings everything in memory into the log and fixes the point of the log the checkpoint stands for.
    pub(crate) fn begin_checkpoint(&mut self, clean: bool) -> Result<()> {
        self.write_inodes()?;
        self.commit(true)?;
        self.flash.settle();
        // No number may be left out here: until the anchor is durable, replay comes past this point.
        let seq = self.flash.next_seq;
        self.flash.era += 1;
        self.flash.opened = 0;
        self.flash.hold_head_blocks();
        let touch = self.crowded_index_pages()?;
        self.index.frozen = Some(core::mem::take(&mut self.index.delta));
        let heads = [HeadId::Slc, HeadId::Native].into_iter().filter_map(|id| {
            let head = self.flash.head(id);
            head.block.map(|block| HeadAt { head: id as u8, block, unit: head.unit })
        });
        self.checkpoint = Some(Checkpoint {
            seq,
            copies: self.flash.copies,
            era: self.flash.era,
            clean,
            heads: heads.collect(),
            entries: self.flash.blocks.iter().map(|(_, block)| block.entry).collect(),
            next_ino: self.volume.next_ino,
            files: self.volume.files,
            reserved_chunks: self.index.reserved_chunks,
            merge: Merge::new(self.index.tree, touch),
            tree: None,
            dead_tables: Vec::new(),
            tables: Tables { slots: self.tables.slots.clone(), entries: self.tables.entries.clone() },
            now_ns: self.options.now_ns,
        });
        Ok(())
    }

    /// Writes a whole checkpoint, finishing one that is under way first.
    pub(crate) fn checkpoint_now(&mut self) -> Result<()> {
        while self.checkpoint.is_some() {
            self.checkpoint_step()?;
        }
        self.checkpoint_as(false)
    }

    /// Writes a whole checkpoint, clean or not.
    pub(crate) fn checkpoint_as(&mut self, clean: bool) -> Result<()> {
        self.begin_checkpoint(clean)?;
        while self.checkpoint.is_some() {
            self.checkpoint_step()?;
        }
        Ok(())
    }

    /// Writes at most one page of the checkpoint.
    pub(crate) fn checkpoint_step(&mut self) -> Result<()> {
        let Some(mut job) = self.checkpoint.take() else { return Ok(()) };
        let outcome = match job.tree {
            None => self.merge_step(&mut job).map(|()| false),
            Some(tree) => self.finish_step(&mut job, tree),
        };
        match outcome {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.checkpoint = Some(job);
                self.follow_moved()
            }
            Err(error) => {
                self.checkpoint = Some(job);
                Err(error)
            }
        }
    }

    fn merge_step(&mut self, job: &mut Checkpoint) -> Result<()> {
        let empty = Delta::default();
        let frozen = self.index.frozen.as_ref().unwrap_or(&empty);
        job.tree = job.merge.step(&mut self.flash, frozen)?;
        Ok(())
    }

    /// Writes a table page, or the anchor if none is due. Whether the checkpoint is complete.
    fn finish_step(&mut self, job: &mut Checkpoint, tree: Tree) -> Result<bool> {
        self.flash.flush_units()?;
        if !self.flash.moved.is_empty() {
            return Ok(false);
        }
        let entries = self.entries_at(job);
        let changed: Vec<u32> = (0u32..)
            .zip(entries.iter().zip(&job.tables.entries))
            .filter(|(_, (a, b))| a != b)
            .map(|(n, _)| n)
            .collect();
        let slot_bytes = self.flash.shape.slot_bytes;
        if changed.len() > changes_max(slot_bytes, job.tables.slots.len()) {
            self.write_table_page(job, &changed, &entries)?;
            return Ok(false);
        }
        let changes = changed.iter().filter_map(|&block| Some((block, *entries.get(block as usize)?))).collect();
        self.write_checkpoint_anchor(job, tree, changes)?;
        Ok(true)
    }

    /// The block table the anchor must stand for.
    fn entries_at(&self, job: &Checkpoint) -> Vec<u64> {
        let mut dead: BTreeMap<u32, u32> = BTreeMap::new();
        let slot_bytes = self.flash.shape.slot_bytes as u32;
        for &slot in job.merge.dead.iter().chain(&job.dead_tables) {
            *dead.entry(self.flash.shape.block_of(slot)).or_default() += slot_bytes;
        }
        let now = self.flash.blocks.iter();
        now.zip(&job.entries)
            .map(|((number, block), &then)| {
                let now = block.entry;
                let mut entry = match (now.used_as, then.used_as) {
                    (Use::Meta | Use::Anchor | Use::Bad, _) => now,
                    (_, Use::Meta | Use::Anchor) => BlockEntry { erased: now.erased, ..BlockEntry::default() },
                    _ => BlockEntry { erased: then.erased && now.erased, failing: now.failing, ..then },
                };
                entry.erases = now.erases;
                entry.sealed = now.sealed;
                entry.live_bytes = entry.live_bytes.saturating_sub(dead.get(&number).copied().unwrap_or(0));
                entry.encode()
            })
            .collect()
    }

    /// Writes the table page with the most changes.
    fn write_table_page(&mut self, job: &mut Checkpoint, changed: &[u32], entries: &[u64]) -> Result<()> {
        let per_page = self.flash.shape.slot_bytes / BLOCK_BYTES;
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for &block in changed {
            *counts.entry(block as usize / per_page).or_default() += 1;
        }
        let Some((&page, _)) = counts.iter().max_by_key(|&(_, count)| count) else { return Ok(()) };
        let range = page * per_page..((page + 1) * per_page).min(entries.len());
        let mut bytes = Vec::with_capacity(self.flash.shape.slot_bytes);
        for entry in entries.get(range.clone()).unwrap_or(&[]) {
            bytes.extend_from_slice(&entry.to_le_bytes());
        }
        bytes.resize(self.flash.shape.slot_bytes, 0);
        let draft = Draft {
            kind: Kind::Table,
            end: false,
            copy: false,
            ino: 0,
            chunk: page as u64,
            len: bytes.len() as u32,
            stamp: 0,
        };
        let slot = self.flash.append(HeadId::Meta, draft, &bytes, Cause::Metadata)?;
        self.flash.retain(Place::Run { slot, count: 1 });
        if let Some(at) = job.tables.slots.get_mut(page) {
            if *at != NO_SLOT {
                job.dead_tables.push(*at);
            }
            *at = slot;
        }
        for (to, from) in job.tables.entries.iter_mut().zip(entries).skip(range.start).take(range.len()) {
            *to = *from;
        }
        Ok(())
    }

    fn write_checkpoint_anchor(&mut self, job: &mut Checkpoint, tree: Tree, changes: Vec<(u32, u64)>) -> Result<()> {
        let mut heads = job.heads.clone();
        let meta = self.flash.head(HeadId::Meta);
        heads.extend(meta.block.map(|block| HeadAt { head: HeadId::Meta as u8, block, unit: meta.unit }));
        let shape = &self.flash.shape;
        let anchor = Anchor {
            volume_id: self.volume.id,
            label: self.volume.label.clone(),
            blocks: shape.geometry.blocks,
            slot_bytes: shape.slot_bytes as u32,
            slots_per_block: shape.stride as u32,
            epoch: self.volume.epoch,
            checkpoint: self.volume.checkpoint + 1,
            serial: 0,
            clean: job.clean,
            recoveries: 0,
            seq: job.seq,
            next_ino: job.next_ino,
            files: job.files,
            reserved_chunks: job.reserved_chunks,
            index_pages: tree.pages,
            root: tree.root,
            pair: [0; 2],
            written_bytes: [0; Cause::ALL.len()],
            erases: self.flash.blocks.iter().map(|(_, block)| u64::from(block.entry.erases)).sum(),
            created_ns: self.volume.created_ns,
            now_ns: job.now_ns,
            heads,
            names: Vec::new(),
            tables: job.tables.slots.clone(),
            changes,
        };
        let names = self.flash.anchors.names.clone();
        self.flash.anchors.names.retain(|&(_, _, era)| era >= job.era);
        let outcome = self.write_anchors(anchor);
        if outcome.is_err() {
            self.flash.anchors.names = names;
            return outcome;
        }
        self.flash.holding = false;
        self.volume.checkpoint += 1;
        self.volume.clean = job.clean;
        self.flash.durable_era = job.era;
        self.index_reserve = 0;
        for &slot in job.merge.dead.iter().chain(&job.dead_tables) {
            self.flash.release_page(slot);
        }
        self.tables = core::mem::take(&mut job.tables);
        self.index.tree = tree;
        self.index.frozen = None;
        // What records and copies after the point it stands for emptied, a recovery may find full again.
        let horizon = self.flash.horizon();
        self.flash.blocks.settle(Horizon {
            committed_seq: horizon.committed_seq.min(job.seq),
            safe_copy: horizon.safe_copy.min(job.copies),
            ..horizon
        });
        Ok(())
    }

    /// Writes a checkpoint's anchor.
    fn write_anchors(&mut self, anchor: Anchor) -> Result<()> {
        if anchor.clean {
            // Of a volume at rest no single page may be the only one that says where the rest is.
            self.flash.write_anchor(anchor.clone())?;
        }
        self.flash.write_anchor(anchor)
    }

    /// An index or table page stands elsewhere now.
    pub(crate) fn follow_meta(&mut self, from: Slot, to: Slot) {
        self.flash.release_page(from);
        self.flash.retain(Place::Run { slot: to, count: 1 });
        let Some(job) = self.checkpoint.as_mut() else { return };
        job.merge.follow(from, to);
        job.tables.slots.iter_mut().filter(|slot| **slot == from).for_each(|slot| *slot = to);
        if let Some((root, _)) = job.tree.as_mut().and_then(|tree| tree.root.as_mut())
            && *root == from
        {
            *root = to;
        }
    }

    /// The index pages of the emptiest index blocks, to be written anew, where the index takes too many blocks.
    fn crowded_index_pages(&mut self) -> Result<BTreeSet<(u8, Key)>> {
        let per_block = self.flash.shape.slc.content_slots();
        let live = |bytes: u32| bytes / self.flash.shape.slot_bytes as u32;
        let meta: Vec<(u32, u32)> = self
            .flash
            .blocks
            .iter()
            .filter(|(_, block)| block.entry.used_as == Use::Meta && block.entry.live_bytes > 0)
            .filter(|(_, block)| !block.open)
            .map(|(number, block)| (live(block.entry.live_bytes), number))
            .collect();
        let total: u32 = meta.iter().map(|&(live, _)| live).sum();
        let spare = u32::from(self.flash.free_blocks() >= FREE_SOFT);
        let fading = self.flash.blocks.iter().filter(|(_, block)| block.fading && block.entry.used_as == Use::Meta);
        let fading: Vec<u32> = fading.filter(|(_, block)| !block.open).map(|(number, _)| number).collect();
        let excess = (meta.len() as u32).saturating_sub(total.div_ceil(per_block) + spare);
        let mut touch = BTreeSet::new();
        let mut meta = meta;
        meta.sort_unstable();
        for &(_, victim) in meta.iter().filter(|&&(live, _)| live <= per_block / 2).take(excess.min(4) as usize) {
            self.touch_block(victim, &mut touch)?;
        }
        for block in fading {
            self.touch_block(block, &mut touch)?;
            self.flash.blocks.forget_fading(block);
        }
        Ok(touch)
    }

    /// Adds the index pages in a block to those to be written anew, and has its table pages rewritten.
    fn touch_block(&mut self, victim: u32, touch: &mut BTreeSet<(u8, Key)>) -> Result<()> {
        for index in 0..self.flash.shape.slc.content_slots() {
            let slot = self.flash.shape.slot(victim, index);
            let Ok(bytes) = self.flash.read_slot(slot, Kind::Index, Cause::Gc) else { continue };
            for level in 0..self.index.tree.levels() {
                let Some(key) = Page::parse(bytes.clone(), level).and_then(|page| page.key(0)) else { continue };
                match self.index.tree.find(&mut self.flash, level, key) {
                    Ok(Some(found)) if found.slot == slot => {
                        touch.insert((level, key));
                    }
                    Ok(_) | Err(Error::Corrupt { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let per_page = self.flash.shape.slot_bytes / BLOCK_BYTES;
        for (page, &slot) in self.tables.slots.iter().enumerate() {
            if slot != NO_SLOT && self.flash.shape.block_of(slot) == victim {
                let entries = self.tables.entries.iter_mut().skip(page * per_page).take(per_page);
                entries.for_each(|entry| *entry = u64::MAX);
            }
        }
        Ok(())
    }
}
