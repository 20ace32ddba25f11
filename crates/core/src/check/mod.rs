//! Checking a volume: every structure against every other, reading only.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use nand::Nand;

use crate::error::{Error, Result};
use crate::format::inode::{Census, Extent, Inode, with_attribute};
use crate::format::key::{KEY_END, KeyKind, ino_of, kind_name, kind_of, name_offset, offset_of};
use crate::format::node::Body;
use crate::format::page::Entry;
use crate::format::place::{NO_SLOT, Place, Slot};
use crate::format::table::Use;
use crate::fs::Fs;
use crate::fs::types::{CheckReport, ROOT_INO, kind};
use crate::index::tree;

/// What is known of an inode when the whole index has been walked.
#[derive(Default)]
struct Seen {
    inode: Option<Inode>,
    chunks: Extent,
    entries: Census,
    attributes: u32,
    names: u64,
    subdirs: u64,
    orphan: bool,
}

/// What is checked of chunks that stand by themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chunks {
    Read,
    Counted,
}

/// Findings that are listed.
const FINDINGS_MAX: usize = 1000;

impl<N: Nand> Fs<N> {
    /// Checks every structure against every other; reads only.
    pub fn check(&mut self) -> Result<CheckReport> {
        self.check_with(Chunks::Read)
    }

    /// The same for who has just read every file, of which none was removed while it is open: bare chunks are not read
    /// again.
    pub fn check_structure(&mut self) -> Result<CheckReport> {
        self.check_with(Chunks::Counted)
    }

    fn check_with(&mut self, chunks: Chunks) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        let mut live: BTreeMap<u32, u64> = BTreeMap::new();
        let mut seen: BTreeMap<u64, Seen> = BTreeMap::new();
        self.check_tree(&mut report, &mut live)?;
        let mut from = 0;
        loop {
            match self.index.next(&mut self.flash, from, KEY_END) {
                Ok(None) => break,
                Ok(Some(entry)) => {
                    self.check_entry(entry, chunks, &mut report, &mut live, &mut seen)?;
                    from = entry.end();
                }
                Err(Error::Corrupt { what, slot }) => {
                    note(&mut report, format!("index: {what} at slot {slot:#x}: the entries behind it are lost"));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        for (&ino, seen) in &seen {
            self.check_inode(ino, seen, &mut report);
        }
        self.check_blocks(&live, &mut report);
        let files = seen.values().filter(|seen| seen.inode.is_some()).count() as u64;
        if files != self.volume.files {
            note(&mut report, format!("volume: {} inodes are counted, {files} are there", self.volume.files));
        }
        if report.reserved_chunks != self.index.reserved_chunks {
            let (counted, there) = (self.index.reserved_chunks, report.reserved_chunks);
            note(&mut report, format!("volume: {counted} chunks are counted as reserved, {there} are"));
        }
        Ok(report)
    }

    /// Walks the tree on flash: every page is read, and counted where it stands.
    fn check_tree(&mut self, report: &mut CheckReport, live: &mut BTreeMap<u32, u64>) -> Result<()> {
        let tree = self.index.tree;
        let mut stack: Vec<(Slot, u8)> = tree.root.map(|(slot, levels)| (slot, levels - 1)).into_iter().collect();
        while let Some((slot, level)) = stack.pop() {
            report.index_pages += 1;
            *live.entry(self.flash.shape.block_of(slot)).or_default() += self.flash.shape.slot_bytes as u64;
            match tree::load(&mut self.flash, slot, level) {
                Ok(page) if level > 0 => {
                    stack.extend(page.entries().iter().filter_map(|entry| match entry.place {
                        Place::Run { slot, .. } => Some((slot, level - 1)),
                        _ => None,
                    }));
                }
                Ok(_) => {}
                Err(Error::Corrupt { what, slot }) => {
                    note(report, format!("index page at slot {slot:#x}, level {level}: {what}"));
                }
                Err(error) => return Err(error),
            }
        }
        if report.index_pages != tree.pages {
            note(report, format!("index: {} pages are counted, {} are there", tree.pages, report.index_pages));
        }
        let under_way = self.checkpoint.as_ref().map(|job| job.written(&self.tables)).unwrap_or_default();
        for slot in self.tables.slots.iter().copied().filter(|&slot| slot != NO_SLOT).chain(under_way) {
            *live.entry(self.flash.shape.block_of(slot)).or_default() += self.flash.shape.slot_bytes as u64;
        }
        Ok(())
    }

    fn check_entry(
        &mut self,
        entry: Entry,
        chunks: Chunks,
        report: &mut CheckReport,
        live: &mut BTreeMap<u32, u64>,
        seen: &mut BTreeMap<u64, Seen>,
    ) -> Result<()> {
        let (ino, offset) = (ino_of(entry.key), offset_of(entry.key));
        if let Place::Run { slot, .. } | Place::Node { slot, .. } = entry.place {
            *live.entry(self.flash.shape.block_of(slot)).or_default() += u64::from(self.flash.bytes_of(entry.place));
        }
        if kind_of(entry.key) == KeyKind::Orphan as u8 {
            seen.entry(offset).or_default().orphan = true;
            return Ok(());
        }
        if let Place::Reserved { count } = entry.place {
            let found = seen.entry(ino).or_default();
            found.chunks = found.chunks.with(Extent::reserved(count.into()));
            report.reserved_chunks += u64::from(count);
            return Ok(());
        }
        if let Place::Run { slot, count } = entry.place {
            let found = seen.entry(ino).or_default();
            found.chunks = (offset..offset + u64::from(count)).map(Extent::of).fold(found.chunks, Extent::with);
            report.chunks += u64::from(count);
            if chunks == Chunks::Counted {
                return Ok(());
            }
            let mut data = vec![0; self.flash.shape.slot_bytes];
            for step in 0..u64::from(count) {
                // More would not be listed. A slot is one chunk's, so this also bounds what is read of runs that overlap.
                if report.findings.len() >= FINDINGS_MAX {
                    break;
                }
                match self.flash.read_data(slot + step, ino, offset + step, &mut data) {
                    Ok(_) => {}
                    Err(Error::Corrupt { what, slot }) => {
                        note(report, format!("inode {ino}: chunk {} at slot {slot:#x}: {what}", offset + step));
                    }
                    Err(error) => return Err(error),
                }
            }
            return Ok(());
        }
        match self.check_node(entry, report, seen) {
            Err(Error::Corrupt { what, slot }) => {
                note(report, format!("inode {ino}: {} at slot {slot:#x}: {what}", kind_name(kind_of(entry.key))));
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn check_node(&mut self, entry: Entry, report: &mut CheckReport, seen: &mut BTreeMap<u64, Seen>) -> Result<()> {
        let (ino, offset, seed) = (ino_of(entry.key), offset_of(entry.key), self.volume.hash_seed);
        let wrong = self.with_node(entry.place, |owner, node| {
            let home = node.key() == Some(entry.key) && owner == ino;
            match node.body {
                Body::Inode(inode) => seen.entry(ino).or_default().inode = Some(inode),
                Body::Entry { child, mode, name, .. } => {
                    seen.entry(ino).or_default().entries.add(offset);
                    let below = seen.entry(child).or_default();
                    below.names += 1;
                    if mode & kind::MASK == kind::DIR {
                        seen.entry(ino).or_default().subdirs += 1;
                    }
                    if name_offset(seed, name) != offset & !0xffff {
                        return Some(true);
                    }
                }
                Body::Xattr { .. } => {
                    let found = seen.entry(ino).or_default();
                    found.attributes = with_attribute(found.attributes, offset);
                }
                Body::Data { .. } => {
                    let found = seen.entry(ino).or_default();
                    found.chunks = found.chunks.with(Extent::of(offset));
                    report.chunks += 1;
                }
                _ => {}
            }
            Some(!home)
        })?;
        if wrong {
            note(report, format!("inode {ino}: a {} node stands under the wrong key", kind_name(kind_of(entry.key))));
        }
        Ok(())
    }

    fn check_inode(&mut self, ino: u64, seen: &Seen, report: &mut CheckReport) {
        let Some(on_flash) = seen.inode else {
            note(report, format!("inode {ino}: {} names lead to it, but it is not there", seen.names));
            return;
        };
        let inode = self.inodes.get(ino).map_or(on_flash, |cached| cached.inode);
        let directory = inode.is_dir();
        if directory {
            report.directories += 1;
        } else {
            report.files += 1;
        }
        let links = match (directory, ino == ROOT_INO) {
            (true, true) => 2 + seen.subdirs,
            (true, false) => {
                if inode.nlink == 0 {
                    0
                } else {
                    2 + seen.subdirs
                }
            }
            (false, _) => seen.names,
        };
        if u64::from(inode.nlink) != links {
            note(report, format!("inode {ino}: its link count is {}, it should be {links}", inode.nlink));
        }
        if directory && ino != ROOT_INO && inode.nlink > 0 && seen.names != 1 {
            note(report, format!("directory {ino}: {} names lead to it, it should be 1", seen.names));
        }
        if (inode.nlink == 0) != seen.orphan {
            note(report, format!("inode {ino}: link count {} but orphan is {}", inode.nlink, seen.orphan));
        }
        let buffered = self.log.dirty_count() > 0;
        let (counted, there) = (inode.chunks, seen.chunks);
        if !buffered && counted != there {
            note(report, format!("inode {ino}: {counted:x?} is counted of its chunks, {there:x?} is there"));
        }
        if !directory && seen.entries.count > 0 {
            note(report, format!("inode {ino}: it is no directory but has {} entries", seen.entries.count));
        }
        if directory && inode.entries != seen.entries {
            let (counted, there) = (inode.entries, seen.entries);
            note(report, format!("directory {ino}: {counted:x?} is counted of its entries, {there:x?} is there"));
        }
        if inode.attributes != seen.attributes {
            let (counted, there) = (inode.attributes, seen.attributes);
            note(report, format!("inode {ino}: its attributes should sum up to {counted:#x}, not {there:#x}"));
        }
    }

    fn check_blocks(&mut self, live: &BTreeMap<u32, u64>, report: &mut CheckReport) {
        for (number, block) in self.flash.blocks.iter() {
            let found = live.get(&number).copied().unwrap_or(0);
            let counted = u64::from(block.entry.live_bytes);
            if found != counted {
                note(report, format!("block {number}: {counted} bytes are counted as live, {found} are"));
            }
            if found > 0 && !matches!(block.entry.used_as, Use::Log | Use::Meta) {
                note(report, format!("block {number}: {found} bytes are live, but it is {:?}", block.entry.used_as));
            }
        }
        if let Some((&block, _)) = live.iter().find(|&(&block, _)| block >= self.flash.blocks.len()) {
            note(report, format!("block {block}: the index points to it, but the chip ends before"));
        }
    }
}

fn note(report: &mut CheckReport, line: alloc::string::String) {
    if report.findings.len() < FINDINGS_MAX {
        report.findings.push(line);
    }
}

#[cfg(test)]
mod tests {
    use emulator::{Chip, Profile};

    use super::*;
    use crate::format::key::key;
    use crate::index::delta::Change;
    use crate::{FormatOptions, MountOptions, ROOT_INO};

    /// Each chunk of each run was read, though all runs led to the same slots: an index page of a few hundred entries,
    /// which only someone who means harm writes, kept a check busy for hours.
    #[test]
    fn runs_that_overlap_do_not_keep_a_check_busy() {
        let mut profile = Profile::builtin("flexfs-mlc").unwrap();
        (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 16);
        let mut chip = Chip::new(&profile, 1).unwrap();
        let (volume_id, label) = ([7; 16], "test".into());
        let options = FormatOptions { volume_id, label, root_mode: 0o755, root_uid: 0, root_gid: 0, now_ns: 1 };
        Fs::format(&mut chip, &options).unwrap();
        let mut fs = Fs::mount(chip, MountOptions::default()).map_err(|(_, error)| error).unwrap();
        for run in 0..100 {
            let place = Place::Run { slot: fs.flash.shape.slot(20, 0), count: 60_000 };
            let data_key = key(ROOT_INO, KeyKind::Data, run * 60_000);
            fs.index.set(&mut fs.flash, data_key, Change::Put(place), 1, true).unwrap();
        }
        let before = fs.flash.nand.counters().reads.total();
        let report = fs.check().unwrap();
        assert!(report.findings.len() >= FINDINGS_MAX && report.chunks >= 100 * 60_000, "{} chunks", report.chunks);
        let reads = fs.flash.nand.counters().reads.total() - before;
        assert!(reads < 2 * FINDINGS_MAX as u64, "{reads} pages were read");
    }
}
