//! Checkpoints: the index on flash is brought up to a point of the log, a page a step, and an anchor makes it count.
//!
//! Invariants: the checkpoint before stays whole until the new anchor is durable; until then the volume points to nothing
//! of what this one wrote; blocks are listed as they stood at the point the log goes on from, index blocks as they stand
//! when the anchor is written.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::place::{SlotContent, place};
use super::records::Records;
use crate::error::{Error, Result};
use crate::flash::append::Draft;
use crate::flash::blocks::Block;
use crate::flash::head::{HeadId, LaneId};
use crate::flash::{Flash, LaneAt, MovedPage, STEP_READS};
use crate::format::anchor::{Anchor, HeadAt, changes_max};
use crate::format::key::Key;
use crate::format::page::Page;
use crate::format::place::{NO_SLOT, Place, Slot};
use crate::format::table::{BLOCK_BYTES, BlockEntry, Use};
use crate::format::tag::Kind;
use crate::index::delta::Delta;
use crate::index::merge::Merge;
use crate::index::tree::Tree;
use crate::policy::budget::Call;
use crate::policy::place::Write;
use crate::policy::space::SpaceView;

/// The block table as it stands on flash.
#[derive(Default)]
pub struct Tables {
    /// Its pages; [`NO_SLOT`] for one that was never written.
    pub slots: Vec<Slot>,
    /// Its entries, encoded.
    pub entries: Vec<u64>,
}

impl Tables {
    /// A table of `blocks` entries that was never written.
    pub fn empty(blocks: u32, slot_bytes: usize) -> Self {
        let per_page = slot_bytes / BLOCK_BYTES;
        Self { slots: vec![NO_SLOT; (blocks as usize).div_ceil(per_page)], entries: vec![0; blocks as usize] }
    }
}

/// A checkpoint under way.
struct CheckpointJob {
    /// The point of the log it stands for: the sequence number to come, and the last copy's number.
    seq: u64,
    copies: u64,
    era: u64,
    clean: bool,
    heads: Vec<LaneAt>,
    entries: Vec<BlockEntry>,
    next_ino: u64,
    files: u64,
    reserved_chunks: u64,
    merge: Merge,
    /// The new tree, once it is written.
    tree: Option<Tree>,
    /// Table pages replaced, and their replacements' contents.
    obsolete_tables: Vec<Slot>,
    tables: Tables,
    now_ns: i64,
}

impl CheckpointJob {
    /// An index or table page stands elsewhere now.
    fn follow(&mut self, MovedPage { from, to }: MovedPage) {
        self.merge.follow(from, to);
        self.tables.slots.iter_mut().filter(|slot| **slot == from).for_each(|slot| *slot = to);
        if let Some((root, _)) = self.tree.as_mut().and_then(|tree| tree.root.as_mut())
            && *root == from
        {
            *root = to;
        }
    }

    /// Writes at most one page of the new tree.
    fn merge_step<N: Nand>(&mut self, records: &mut Records<N>) -> Result<()> {
        let empty = Delta::default();
        let frozen = records.index.frozen().unwrap_or(&empty);
        let to = place(records, &Write::Host, SlotContent::Page);
        self.tree = self.merge.step(records.log.flash_mut(), to.at, frozen)?;
        Ok(())
    }

    /// The block table the anchor must stand for. Replay finds the blocks of the log that were opened or sealed since.
    fn entries_at<N: Nand>(&self, records: &Records<N>) -> Vec<u64> {
        let mut obsolete: BTreeMap<u32, u32> = BTreeMap::new();
        let slot_bytes = records.flash().shape().slot_bytes as u32;
        for slot in self.obsolete() {
            *obsolete.entry(records.flash().shape().block_of(slot)).or_default() += slot_bytes;
        }
        let now = records.flash().blocks().iter();
        now.zip(&self.entries)
            .map(|((number, block), &then)| {
                let now = block.entry;
                let mut entry = match (now.used_as, then.used_as) {
                    (Use::Meta | Use::Anchor | Use::Bad, _) => now,
                    (_, Use::Meta | Use::Anchor) => BlockEntry { erased: now.erased, ..BlockEntry::default() },
                    _ => BlockEntry { failing: now.failing, ..then },
                };
                entry.erases = now.erases;
                entry.live_bytes = entry.live_bytes.saturating_sub(obsolete.get(&number).copied().unwrap_or(0));
                entry.encode()
            })
            .collect()
    }

    /// Writes the table page with the most changes.
    fn write_table_page<N: Nand>(
        &mut self,
        records: &mut Records<N>,
        to: LaneId,
        changed: &[u32],
        entries: &[u64],
    ) -> Result<()> {
        let per_page = records.flash().shape().slot_bytes / BLOCK_BYTES;
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for &block in changed {
            *counts.entry(block as usize / per_page).or_default() += 1;
        }
        let Some((&page, _)) = counts.iter().max_by_key(|&(_, count)| count) else { return Ok(()) };
        let range = page * per_page..((page + 1) * per_page).min(entries.len());
        let mut bytes = Vec::with_capacity(records.flash().shape().slot_bytes);
        for entry in entries.get(range.clone()).unwrap_or(&[]) {
            bytes.extend_from_slice(&entry.to_le_bytes());
        }
        bytes.resize(records.flash().shape().slot_bytes, 0);
        let draft = Draft::page(Kind::Table, page as u64, bytes.len() as u32);
        let slot = records.log.append_page(to, draft, &bytes)?;
        records.log.slots_mut().retain(Place::Run { slot, count: 1 });
        if let Some(at) = self.tables.slots.get_mut(page) {
            if *at != NO_SLOT {
                self.obsolete_tables.push(*at);
            }
            *at = slot;
        }
        for (to, from) in self.tables.entries.iter_mut().zip(entries).skip(range.start).take(range.len()) {
            *to = *from;
        }
        Ok(())
    }

    /// Pages that are of no use to the new checkpoint.
    fn obsolete(&self) -> impl Iterator<Item = Slot> {
        self.merge.obsolete().iter().chain(&self.obsolete_tables).copied()
    }
}

/// The block table on flash, and the checkpoint under way.
pub struct Checkpointer {
    tables: Tables,
    job: Option<CheckpointJob>,
    survey: Option<Survey>,
}

/// Index blocks being looked through for pages that the next checkpoint is to write anew.
struct Survey {
    /// Blocks that are left.
    blocks: Vec<u32>,
    /// The next slot of the last of them.
    next: u32,
    touch: BTreeSet<(u8, Key)>,
}

impl Survey {
    /// The emptiest index blocks, where the index takes too many, and those that fade.
    fn crowded_blocks<N: Nand>(flash: &Flash<N>, space: &SpaceView<'_>) -> Vec<u32> {
        let per_block = flash.shape().slc.content_slots();
        let live = |bytes: u32| bytes / flash.shape().slot_bytes as u32;
        let closed = |&(_, block): &(u32, &Block)| block.entry.used_as == Use::Meta && !block.open;
        let blocks = flash.blocks();
        let holding = blocks.iter().filter(closed).filter(|(_, block)| block.entry.live_bytes > 0);
        let mut meta: Vec<(u32, u32)> = holding.map(|(number, block)| (live(block.entry.live_bytes), number)).collect();
        let total: u32 = meta.iter().map(|&(live, _)| live).sum();
        // With more free blocks than the next call must find, the index may take one more than it must.
        let spare = u32::from(flash.free_blocks() > space.budget(Call::CHANGE).for_call());
        let excess = (meta.len() as u32).saturating_sub(total.div_ceil(per_block) + spare);
        meta.sort_unstable();
        let emptiest = meta.iter().filter(|&&(live, _)| live <= per_block / 2).take(excess.min(4) as usize);
        let fading = blocks.iter().filter(closed).filter(|(_, block)| block.fading).map(|(number, _)| number);
        let crowded: BTreeSet<u32> = emptiest.map(|&(_, number)| number).chain(fading).collect();
        crowded.into_iter().rev().collect()
    }

    /// The level and first key of the page of the index that stands in a slot, if one does.
    fn page_at<N: Nand>(records: &mut Records<N>, slot: Slot) -> Result<Option<(u8, Key)>> {
        let Ok(bytes) = records.log.slots_mut().read_slot(slot, Kind::Index, Cause::Gc) else { return Ok(None) };
        for level in 0..records.index.tree().levels() {
            let Some(key) = Page::parse(bytes.clone(), level).and_then(|page| page.key(0)) else { continue };
            match records.index.tree().find(records.log.slots_mut(), level, key) {
                Ok(Some(found)) if found.slot == slot => return Ok(Some((level, key))),
                Ok(_) | Err(Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

impl Checkpointer {
    /// With the block table of the checkpoint that a mount goes on from.
    pub(super) fn new(tables: Tables) -> Self {
        Self { tables, job: None, survey: None }
    }

    /// Whether a checkpoint is under way.
    pub fn is_under_way(&self) -> bool {
        self.job.is_some()
    }

    /// Pages of the block table, and those written so far that the volume does not point to yet.
    pub fn pages(&self, moved: &[MovedPage]) -> Vec<Slot> {
        let mut pages: Vec<Slot> = self.tables.slots.iter().copied().filter(|&slot| slot != NO_SLOT).collect();
        let Some(job) = &self.job else { return pages };
        let fresh = job.tables.slots.iter().zip(&self.tables.slots).filter(|(new, old)| new != old);
        let replaced = job.obsolete_tables.iter().filter(|slot| !self.tables.slots.contains(slot));
        pages.extend(job.merge.new_pages().iter().chain(fresh.map(|(new, _)| new)).chain(replaced));
        for &MovedPage { from, to } in moved {
            pages.iter_mut().filter(|page| **page == from).for_each(|page| *page = to);
        }
        pages
    }

    /// Brings everything in memory into the log and fixes the point of the log the checkpoint stands for.
    pub(super) fn begin<N: Nand>(&mut self, records: &mut Records<N>, clean: bool) -> Result<()> {
        records.write_inodes()?;
        records.commit(true)?;
        records.log.flash_mut().settle();
        records.log.slots_mut().leave_full_blocks();
        // No number may be left out here: until the anchor is durable, replay comes past this point.
        let seq = records.flash().numbers().next();
        records.log.flash_mut().begin_era();
        while !self.survey(records)? {}
        let touch = self.survey.take().map(|survey| survey.touch).unwrap_or_default();
        records.index.freeze();
        let flash = records.flash();
        let lanes = flash.slots().lanes();
        let heads = lanes.of_log().filter_map(|lane| lanes.stands_at(lane).map(|at| LaneAt { lane, at }));
        self.job = Some(CheckpointJob {
            seq,
            copies: flash.numbers().copies(),
            era: flash.numbers().era(),
            clean,
            heads: heads.collect(),
            entries: flash.blocks().iter().map(|(_, block)| block.entry).collect(),
            next_ino: records.volume.next_ino,
            files: records.volume.files,
            reserved_chunks: records.index.reserved_chunks(),
            merge: Merge::new(records.index.tree(), touch),
            tree: None,
            obsolete_tables: Vec::new(),
            tables: Tables { slots: self.tables.slots.clone(), entries: self.tables.entries.clone() },
            now_ns: records.options.now_ns,
        });
        Ok(())
    }

    /// Writes at most one page of the checkpoint. Whether that was the last one, the anchor.
    pub(super) fn step<N: Nand>(&mut self, records: &mut Records<N>) -> Result<bool> {
        let Some(mut job) = self.job.take() else { return Ok(true) };
        records.log.take_moved_pages().into_iter().for_each(|moved| job.follow(moved));
        let outcome = match job.tree {
            None => job.merge_step(records).map(|()| false),
            Some(tree) => self.finish_step(records, &mut job, tree),
        };
        let followed = match outcome {
            Ok(true) => return Ok(true),
            Ok(false) => records.follow_moved().map(|()| false),
            Err(error) => Err(error),
        };
        records.log.take_moved_pages().into_iter().for_each(|moved| job.follow(moved));
        self.job = Some(job);
        followed
    }

    /// Writes a table page, or the anchor if none is due. Whether the checkpoint is complete.
    fn finish_step<N: Nand>(&mut self, records: &mut Records<N>, job: &mut CheckpointJob, tree: Tree) -> Result<bool> {
        if records.log.commit_unit()? || records.flash().has_moved() {
            return Ok(false);
        }
        let entries = job.entries_at(records);
        let changed: Vec<u32> = (0u32..)
            .zip(entries.iter().zip(&job.tables.entries))
            .filter(|(_, (a, b))| a != b)
            .map(|(n, _)| n)
            .collect();
        let slot_bytes = records.flash().shape().slot_bytes;
        let lanes = records.flash().slots().lanes().count();
        if changed.len() > changes_max(slot_bytes, job.tables.slots.len(), lanes) {
            let to = place(records, &Write::Host, SlotContent::Page);
            if !records.log.prepare_page(to.at)? {
                return Ok(false);
            }
            job.write_table_page(records, to.at, &changed, &entries)?;
            return Ok(false);
        }
        if records.flash().anchors().needs_other(records.flash().shape().slc.units) {
            return records.log.flash_mut().ready_step().map(|()| false);
        }
        let changes = changed.iter().filter_map(|&block| Some((block, *entries.get(block as usize)?))).collect();
        self.write_anchor(records, job, tree, changes)?;
        Ok(true)
    }

    fn write_anchor<N: Nand>(
        &mut self,
        records: &mut Records<N>,
        job: &mut CheckpointJob,
        tree: Tree,
        changes: Vec<(u32, u64)>,
    ) -> Result<()> {
        let mut heads: Vec<HeadAt> = job.heads.iter().map(|lane| lane.at).collect();
        let slots = records.flash().slots();
        heads.extend(slots.lanes().of_head(HeadId::Meta).filter_map(|at| slots.lanes().stands_at(at)));
        let shape = records.flash().shape();
        let anchor = Anchor {
            volume_id: records.volume.id,
            label: records.volume.label.clone(),
            blocks: shape.geometry.blocks,
            slot_bytes: shape.slot_bytes as u32,
            slots_per_block: shape.stride as u32,
            epoch: records.volume.epoch,
            checkpoint: records.volume.checkpoint + 1,
            serial: 0,
            clean: job.clean,
            other_erased: false,
            recoveries: 0,
            seq: job.seq,
            next_ino: job.next_ino,
            files: job.files,
            reserved_chunks: job.reserved_chunks,
            index_pages: tree.pages,
            root: tree.root,
            pair: [0; 2],
            written_bytes: [0; Cause::ALL.len()],
            erases: records.flash().blocks().iter().map(|(_, block)| u64::from(block.entry.erases)).sum(),
            created_ns: records.volume.created_ns,
            now_ns: job.now_ns,
            manager: records.volume.manager,
            cells: records.volume.cells,
            heads,
            names: Vec::new(),
            tables: job.tables.slots.clone(),
            changes,
        };
        records.log.flash_mut().write_checkpoint(anchor, job.era)?;
        records.volume.checkpoint += 1;
        records.volume.clean = job.clean;
        job.obsolete().for_each(|slot| records.log.slots_mut().release_page(slot, None));
        self.tables = core::mem::take(&mut job.tables);
        records.index.thaw(tree);
        // What records and copies after the point it stands for emptied, a recovery may find full again.
        records.log.flash_mut().free_up_to(job.seq, job.copies, &job.heads);
        Ok(())
    }

    /// Looks, by a few reads, for the index pages that the next checkpoint is to write anew. Whether all are found.
    pub(super) fn survey<N: Nand>(&mut self, records: &mut Records<N>) -> Result<bool> {
        let mut survey = self.survey.take().unwrap_or_else(|| Survey {
            blocks: Survey::crowded_blocks(records.flash(), &records.space()),
            next: 0,
            touch: BTreeSet::new(),
        });
        let done = self.survey_on(records, &mut survey);
        self.survey = Some(survey);
        done
    }

    fn survey_on<N: Nand>(&mut self, records: &mut Records<N>, survey: &mut Survey) -> Result<bool> {
        let reads = records.log.reads();
        while let Some(&block) = survey.blocks.last() {
            if survey.next >= records.flash().shape().slc.content_slots() {
                self.touch_tables(records, block);
                records.log.slots_mut().blocks_mut().forget_fading(block);
                survey.blocks.pop();
                survey.next = 0;
                continue;
            }
            let spent = records.log.reads() - reads;
            if spent > 0 && spent + 1 + u64::from(records.index.tree().levels()) > STEP_READS {
                return Ok(false);
            }
            let slot = records.flash().shape().slot(block, survey.next);
            survey.next += 1;
            survey.touch.extend(Survey::page_at(records, slot)?);
        }
        Ok(true)
    }

    /// Has the table pages in a block rewritten.
    fn touch_tables<N: Nand>(&mut self, records: &Records<N>, victim: u32) {
        let per_page = records.flash().shape().slot_bytes / BLOCK_BYTES;
        for (page, &slot) in self.tables.slots.iter().enumerate() {
            if slot != NO_SLOT && records.flash().shape().block_of(slot) == victim {
                let entries = self.tables.entries.iter_mut().skip(page * per_page).take(per_page);
                entries.for_each(|entry| *entry = u64::MAX);
            }
        }
    }
}
