//! Emptying one block: whatever in it the index still points to is copied, and the index follows.
//!
//! Invariant: a copy changes no content. It names its source, so that replay applies it only where the index still
//! points there, and the source is kept until the copy stands on a completed word line.

use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::ongoing::{Collector, Moving};
use crate::error::{Error, Result};
use crate::flash::Moved;
use crate::flash::append::Draft;
use crate::flash::head::HeadId;
use crate::format::key::{KeyKind, key};
use crate::format::node::{self, Order};
use crate::format::place::{NODE_UNIT, Place, Slot};
use crate::format::tag::{Kind, Tag, is_blank};
use crate::fs::Fs;

impl<N: Nand> Fs<N> {
    /// Starts emptying `victim`.
    pub(crate) fn start_collecting(&mut self, victim: u32, levelling: bool) {
        let block = self.flash.blocks.get(victim).entry;
        let slc_bytes = self.flash.shape.slc.content_slots() * self.flash.shape.slot_bytes as u32;
        // What one SLC block does not hold stays native in any mode: there may be no more than one block for it.
        let to_native = self.relocates_to_native() || block.native && block.live_bytes > slc_bytes;
        let cause = match (levelling, block.native == to_native) {
            (true, _) => Cause::WearLevel,
            (false, true) => Cause::Gc,
            (false, false) => Cause::Migration,
        };
        self.collector = Some(Collector::new((victim, block.erases), cause, to_native));
    }

    /// Starts moving the content of `victim`, which has not changed for long, to worn blocks.
    pub(crate) fn start_levelling(&mut self, victim: u32) {
        self.start_collecting(victim, true);
        self.collector.iter_mut().for_each(|job| job.cold = true);
    }

    /// Moves at most one slot's worth of the block being emptied.
    pub(crate) fn collect_step(&mut self) -> Result<()> {
        let Some(mut job) = self.collector.take() else { return Ok(()) };
        if self.flash.blocks.get(job.victim).entry.erases != job.erases {
            // Callers emptied it, and it holds something else: what was taken along is out of date.
            return Ok(());
        }
        self.flash.cold = job.cold;
        let done = self.collect_some(&mut job);
        self.flash.cold = false;
        match done {
            Ok(false) => self.collector = Some(job),
            Ok(true) => {
                if self.flash.blocks.get(job.victim).entry.live_bytes > 0
                    && let Some(mut block) = self.flash.blocks.get_mut(job.victim)
                {
                    block.stuck = true;
                }
            }
            Err(_) => {}
        }
        self.follow_moved()?;
        done.map(|_| ())
    }

    /// Whether the block is done.
    fn collect_some(&mut self, job: &mut Collector) -> Result<bool> {
        let block = self.flash.blocks.get(job.victim);
        if !job.looked {
            job.looked = true;
            if block.entry.sealed {
                job.tags = self.flash.read_summary(job.victim, block.mode(), 0, job.cause)?.map(|summary| summary.tags);
            }
        }
        let slots = self.flash.shape.mode(block.mode()).content_slots();
        while job.next < slots && self.flash.blocks.get(job.victim).entry.live_bytes > 0 {
            let slot = self.flash.shape.slot(job.victim, job.next);
            job.next += 1;
            if self.move_slot(job, slot)? {
                return Ok(false);
            }
        }
        if !job.moving.is_empty() {
            self.flush_moving(job)?;
        }
        Ok(true)
    }

    /// Moves what is live in a slot. Whether anything was copied.
    fn move_slot(&mut self, job: &mut Collector, slot: Slot) -> Result<bool> {
        let index = self.flash.shape.index_of(slot) as usize;
        let known = match job.tags.as_ref().map(|tags| tags.get(index)) {
            Some(None) => return Ok(false),
            Some(Some(raw)) if is_blank(raw) => return Ok(false),
            Some(Some(raw)) => Tag::decode_unchecked(raw),
            None => None,
        };
        if let Some(tag) = known
            && tag.kind == Kind::Data
            && !self.points_to(&tag, slot)?
        {
            return Ok(false);
        }
        let mut data = vec![0; self.flash.shape.slot_bytes];
        let tag = match self.flash.read_tagged(slot, &mut data, job.cause) {
            Ok(Some(tag)) => tag,
            Ok(None) => return Ok(false),
            Err(Error::Corrupt { .. }) => {
                self.flash.corrupt_reads += 1;
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        match tag.kind {
            Kind::Data if self.points_to(&tag, slot)? => self.copy_data(job, &tag, slot, &data).map(|()| true),
            Kind::Nodes => self.move_nodes(job, &tag, slot, &data),
            _ => Ok(false),
        }
    }

    fn points_to(&mut self, tag: &Tag, slot: Slot) -> Result<bool> {
        let key = key(tag.ino, KeyKind::Data, tag.chunk);
        self.index.points_to(&mut self.flash, key, Place::Run { slot, count: 1 })
    }

    fn relocation_head(&self, job: &Collector) -> HeadId {
        let native = self.flash.naming && job.to_native;
        self.head_with_room(if native { HeadId::Native } else { HeadId::Slc })
    }

    /// Copies a bare chunk.
    fn copy_data(&mut self, job: &Collector, tag: &Tag, slot: Slot, data: &[u8]) -> Result<()> {
        let draft = Draft {
            kind: Kind::Data,
            end: false,
            copy: true,
            ino: tag.ino,
            chunk: tag.chunk,
            len: tag.len,
            stamp: slot,
        };
        let head = self.relocation_head(job);
        let to = self.flash.append(head, draft, data, job.cause)?;
        let (from, to) = (Place::Run { slot, count: 1 }, Place::Run { slot: to, count: 1 });
        self.index.relocate(&mut self.flash, key(tag.ino, KeyKind::Data, tag.chunk), from, to)?;
        Ok(())
    }

    /// Takes the live nodes of a slot along. Whether a slot of them was written.
    fn move_nodes(&mut self, job: &mut Collector, tag: &Tag, slot: Slot, data: &[u8]) -> Result<bool> {
        let mut wrote = false;
        for (at, units, found) in node::nodes(data, tag.len as usize) {
            let Some(key) = found.key() else { continue };
            let from = Place::Node { slot, at, units };
            if !self.index.points_to(&mut self.flash, key, from)? {
                continue;
            }
            let start = usize::from(at) * NODE_UNIT;
            let Some(bytes) = data.get(start..start + usize::from(units) * NODE_UNIT) else { continue };
            if job.moving_bytes + bytes.len() > self.flash.shape.slot_bytes - NODE_UNIT {
                self.flush_moving(job)?;
                wrote = true;
            }
            job.moving_bytes += bytes.len();
            job.moving.push(Moving { key, from, bytes: bytes.to_vec() });
        }
        Ok(wrote)
    }

    /// Writes the nodes taken along to a slot: those that are still current. With the rest a copy would be newer in the
    /// log than what replaced it; replay sees through that, a salvage could not.
    fn flush_moving(&mut self, job: &mut Collector) -> Result<()> {
        let mut moving = Vec::with_capacity(job.moving.len());
        for node in core::mem::take(&mut job.moving) {
            if self.index.points_to(&mut self.flash, node.key, node.from)? {
                moving.push(node);
            }
        }
        job.moving_bytes = 0;
        if moving.is_empty() {
            return Ok(());
        }
        let mut buffer = Vec::with_capacity(self.flash.shape.slot_bytes);
        for moving in &moving {
            let start = buffer.len();
            buffer.extend_from_slice(&moving.bytes);
            if let (Some(bytes), Place::Node { slot, at, .. }) = (buffer.get_mut(start..), moving.from) {
                node::set_order(bytes, Order::CopyOf { slot, at });
            }
        }
        let used = buffer.len() as u32;
        buffer.resize(self.flash.shape.slot_bytes, 0);
        let draft = Draft { kind: Kind::Nodes, end: false, copy: true, ino: 0, chunk: 0, len: used, stamp: 0 };
        let head = self.relocation_head(job);
        let slot = self.flash.append(head, draft, &buffer, job.cause)?;
        let mut start = 0;
        for moving in moving {
            let (at, units) = ((start / NODE_UNIT) as u8, (moving.bytes.len() / NODE_UNIT) as u8);
            self.index.relocate(&mut self.flash, moving.key, moving.from, Place::Node { slot, at, units })?;
            start += moving.bytes.len();
        }
        Ok(())
    }

    /// Moves what is live in one slot of any block, at once: recovery does so with pages that may be unstable.
    pub(crate) fn move_one(&mut self, slot: Slot) -> Result<()> {
        let to_native = self.relocates_to_native();
        let victim = self.flash.shape.block_of(slot);
        let erases = self.flash.blocks.get(victim).entry.erases;
        let mut job = Collector::new((victim, erases), Cause::Metadata, to_native);
        job.looked = true;
        self.move_slot(&mut job, slot)?;
        if job.moving.is_empty() { Ok(()) } else { self.flush_moving(&mut job) }
    }

    /// Lets the index follow slots that moved because their block failed under a unit of several slots. One that it cannot
    /// follow, as a page of the index is unreadable, does not keep it from the others.
    pub(crate) fn follow_moved(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        for moved in core::mem::take(&mut self.flash.moved) {
            outcome = outcome.and(self.follow(&moved));
        }
        outcome
    }

    fn follow(&mut self, moved: &Moved) -> Result<()> {
        match moved.tag.kind {
            Kind::Data => {
                let place = |slot| Place::Run { slot, count: 1 };
                let key = key(moved.tag.ino, KeyKind::Data, moved.tag.chunk);
                self.index.relocate(&mut self.flash, key, place(moved.from), place(moved.to))?;
            }
            Kind::Nodes => {
                let bytes = self.flash.read_uncached(moved.to, Kind::Nodes, Cause::Metadata)?;
                for (at, units, found) in node::nodes(&bytes, moved.tag.len as usize) {
                    let Some(key) = found.key() else { continue };
                    let place = |slot| Place::Node { slot, at, units };
                    self.index.relocate(&mut self.flash, key, place(moved.from), place(moved.to))?;
                }
            }
            _ => self.follow_meta(moved.from, moved.to),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use emulator::{Chip, Profile};

    use super::*;
    use crate::{FormatOptions, Mode, MountOptions, NewNode, ROOT_INO, kind};

    const CHUNK_BYTES: u64 = 4096;
    const CHUNKS: u64 = 16;

    fn volume(mode: Mode) -> Fs<Chip> {
        let mut profile = Profile::builtin("flexfs-mlc").unwrap();
        (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 16);
        volume_on(&profile, mode)
    }

    fn volume_on(profile: &Profile, mode: Mode) -> Fs<Chip> {
        let mut chip = Chip::new(profile, 1).unwrap();
        let options = FormatOptions {
            volume_id: [7; 16],
            label: "test".into(),
            root_mode: 0o755,
            root_uid: 0,
            root_gid: 0,
            now_ns: 1,
        };
        Fs::format(&mut chip, &options).unwrap();
        mounted(chip, mode)
    }

    fn mounted(chip: Chip, mode: Mode) -> Fs<Chip> {
        let options = MountOptions { mode, ..MountOptions::default() };
        Fs::mount(chip, options).map_err(|(_, error)| error).unwrap()
    }

    fn file(fs: &mut Fs<Chip>, name: &[u8]) -> u64 {
        let file = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        fs.create(ROOT_INO, name, file, 1).unwrap().ino
    }

    /// A volume written natively and mounted SLC-only moves to SLC what fits into one block of that. It once tried so with
    /// the rest as well, and had no second block for it where only one was free.
    #[test]
    fn what_one_slc_block_does_not_hold_stays_native() {
        let mut fs = volume(Mode::NativeOnly);
        let ino = file(&mut fs, b"file");
        let block_bytes = fs.flash.shape.native.content_slots() as usize * CHUNK_BYTES as usize;
        fs.write(ino, 0, &vec![1; 3 * block_bytes], 1).unwrap();
        let (chip, done) = fs.unmount(1);
        done.unwrap();
        let mut fs = mounted(chip, Mode::SlcOnly);
        assert!(!fs.relocates_to_native(), "it is too full");
        let slc_bytes = fs.flash.shape.slc.content_slots() * CHUNK_BYTES as u32;
        let native_bytes = |fs: &Fs<Chip>| -> u32 {
            let native = fs.flash.blocks.iter().filter(|(_, block)| block.entry.native);
            native.map(|(_, block)| block.entry.live_bytes).sum()
        };
        let empty_one_above = |fs: &mut Fs<Chip>, bytes: u32| {
            let above = |block: &crate::flash::blocks::Block| block.entry.native && block.entry.live_bytes > bytes;
            let victim = fs.flash.blocks.iter().find(|(_, block)| above(block)).map(|(number, _)| number).unwrap();
            fs.start_collecting(victim, false);
            while fs.collector.is_some() {
                fs.collect_step().unwrap();
            }
            assert_eq!(fs.flash.blocks.get(victim).entry.live_bytes, 0);
        };
        let before = native_bytes(&fs);
        empty_one_above(&mut fs, slc_bytes);
        assert_eq!(native_bytes(&fs), before, "it was moved to SLC");
        fs.punch(ino, CHUNK_BYTES, 3 * block_bytes as u64, 1).unwrap();
        fs.sync(1).unwrap();
        // The first chunk, and the file's inode.
        for _ in 0..2 {
            if native_bytes(&fs) > 0 {
                empty_one_above(&mut fs, 0);
            }
        }
        assert_eq!(native_bytes(&fs), 0, "something small stays native");
    }

    /// Background work once went on with a block that callers had emptied and filled again since: what it found there
    /// it had not looked for, and it gave the block up until the next mount.
    #[test]
    fn a_victim_that_was_emptied_and_used_again_is_let_go() {
        let mut fs = volume(Mode::SlcOnly);
        let ino = file(&mut fs, b"file");
        let overwrite = |fs: &mut Fs<Chip>, turn: u64| {
            fs.write(ino, turn % CHUNKS * CHUNK_BYTES, &[turn as u8; CHUNK_BYTES as usize], 1).unwrap();
            fs.sync(1).unwrap();
        };
        (0..3 * CHUNKS).for_each(|turn| overwrite(&mut fs, turn));
        let full = |block: &crate::flash::blocks::Block| !block.open && block.entry.live_bytes > CHUNK_BYTES as u32;
        let (victim, before) = fs.flash.blocks.iter().find(|(_, block)| full(block)).map(|(n, b)| (n, *b)).unwrap();
        fs.start_collecting(victim, true);
        fs.collect_step().unwrap();
        assert!(fs.collector.is_some(), "it is empty already");
        let used_again = (0..10_000).any(|turn| {
            overwrite(&mut fs, turn);
            let block = fs.flash.blocks.get(victim);
            block.entry.erases > before.entry.erases && full(&block)
        });
        assert!(used_again && fs.collector.is_some(), "it was not used again meanwhile");
        let programs = fs.chip().counters().programs.cause(Cause::WearLevel);
        while fs.collector.is_some() {
            fs.collect_step().unwrap();
        }
        assert!(!fs.flash.blocks.get(victim).stuck);
        assert_eq!(fs.chip().counters().programs.cause(Cause::WearLevel), programs, "something was moved");
        assert_eq!(fs.check().unwrap().findings, Vec::<alloc::string::String>::new());
    }

    /// An operation ended by damage right after a program failed left slots that the index did not follow: the next one
    /// went on like that.
    #[test]
    fn an_operation_first_follows_what_moved_while_another_failed() {
        let mut profile = Profile::builtin("tlc-3d").unwrap();
        (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 24);
        let mut fs = volume_on(&profile, Mode::Baseline);
        let ino = file(&mut fs, b"file");
        fs.sync(1).unwrap();
        fs.write(ino, 0, &[7; CHUNK_BYTES as usize], 1).unwrap();
        fs.flash.nand.fail_program_at(0);
        fs.flash.flush_units().unwrap();
        assert_eq!(fs.flash.moved.len(), 1, "the chunk");
        file(&mut fs, b"another");
        assert!(fs.flash.moved.is_empty());
        let mut found = [0; CHUNK_BYTES as usize];
        fs.read(ino, 0, &mut found).unwrap();
        assert_eq!(found, [7; CHUNK_BYTES as usize]);
    }
}
