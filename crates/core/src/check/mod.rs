//! Checking a volume: every structure against every other, reading only.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use nand::Nand;

use crate::error::{Error, Result};
use crate::format::inode::{Census, Extent, Inode, ROOT_INO, kind, with_attribute};
use crate::format::key::{KEY_END, KeyKind, ino_of, kind_name, kind_of, name_offset, offset_of};
use crate::format::node::Body;
use crate::format::page::Entry;
use crate::format::place::{Place, Slot};
use crate::format::table::Use;
use crate::store::Store;
use crate::store::records::Records;

/// What a check of the whole volume found. It is clean when `findings` is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    pub files: u64,
    pub directories: u64,
    pub chunks: u64,
    /// Chunks that space is reserved for.
    pub reserved_chunks: u64,
    pub index_pages: u64,
    /// One line for each thing that is wrong, naming the inode, the slot and what was expected.
    pub findings: Vec<String>,
}

/// What is known of an inode when the whole index has been walked.
#[derive(Default)]
struct Seen {
    inode: Option<Inode>,
    chunks: Extent,
    entries: Census,
    attributes: u32,
    /// Parts that first nodes of attributes claim, less those that were found.
    attribute_parts: i64,
    names: u64,
    subdirs: u64,
    orphan: bool,
}

/// What is checked of chunks that stand by themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Chunks {
    Read,
    Counted,
}

/// Findings that are listed.
const FINDINGS_MAX: usize = 1000;

/// Checks every structure against every other; reads only.
pub fn check<N: Nand>(store: &mut Store<N>, chunks: Chunks) -> Result<CheckReport> {
    let (report, live, seen) = Default::default();
    Checker { store, chunks, report, live, seen }.check()
}

/// A check under way.
struct Checker<'a, N: Nand> {
    store: &'a mut Store<N>,
    chunks: Chunks,
    report: CheckReport,
    /// Bytes that something points to, by block.
    live: BTreeMap<u32, u64>,
    /// What was seen of each inode.
    seen: BTreeMap<u64, Seen>,
}

impl<N: Nand> Checker<'_, N> {
    fn check(mut self) -> Result<CheckReport> {
        self.check_tree()?;
        let (mut from, mut files) = (0, 0);
        loop {
            match self.records().next(from, KEY_END) {
                Ok(None) => break,
                Ok(Some(entry)) => {
                    self.check_entry(entry)?;
                    from = entry.end();
                }
                Err(Error::Corrupt { what, slot }) => {
                    self.note(format!("index: {what} at slot {slot:#x}: the entries behind it are lost"));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        for (ino, seen) in core::mem::take(&mut self.seen) {
            files += u64::from(seen.inode.is_some());
            self.check_inode(ino, &seen);
        }
        self.check_blocks();
        let counted = self.store.records().volume().files;
        if files != counted {
            self.note(format!("volume: {counted} inodes are counted, {files} are there"));
        }
        let (counted, there) = (self.store.records().index().reserved_chunks(), self.report.reserved_chunks);
        if counted != there {
            self.note(format!("volume: {counted} chunks are counted as reserved, {there} are"));
        }
        Ok(self.report)
    }

    /// Walks the tree on flash: every page is read, and counted where it stands.
    fn check_tree(&mut self) -> Result<()> {
        let tree = self.store.records().index().tree();
        let mut stack: Vec<(Slot, u8)> = tree.root.map(|(slot, levels)| (slot, levels - 1)).into_iter().collect();
        while let Some((slot, level)) = stack.pop() {
            self.report.index_pages += 1;
            self.count_live(slot, self.slot_bytes() as u64);
            match self.records().slot_reader().page(slot, level) {
                Ok(page) if level > 0 => {
                    stack.extend(page.entries().iter().filter_map(|entry| match entry.place {
                        Place::Run { slot, .. } => Some((slot, level - 1)),
                        _ => None,
                    }));
                }
                Ok(_) => {}
                Err(Error::Corrupt { what, slot }) => {
                    self.note(format!("index page at slot {slot:#x}, level {level}: {what}"));
                }
                Err(error) => return Err(error),
            }
        }
        if self.report.index_pages != tree.pages {
            self.note(format!("index: {} pages are counted, {} are there", tree.pages, self.report.index_pages));
        }
        let records = self.store.records();
        for slot in self.store.checkpointer().pages(records.moved_pages()) {
            self.count_live(slot, self.slot_bytes() as u64);
        }
        Ok(())
    }

    fn check_entry(&mut self, entry: Entry) -> Result<()> {
        let (ino, offset) = (ino_of(entry.key), offset_of(entry.key));
        if let Place::Run { slot, .. } | Place::Node { slot, .. } = entry.place {
            let bytes = self.store.records().flash().slots().bytes_of(entry.place);
            self.count_live(slot, u64::from(bytes));
        }
        if kind_of(entry.key) == KeyKind::Orphan as u8 {
            self.seen.entry(offset).or_default().orphan = true;
            return Ok(());
        }
        if let Place::Reserved { count } = entry.place {
            let found = self.seen.entry(ino).or_default();
            found.chunks = found.chunks.with(Extent::reserved(count.into()));
            self.report.reserved_chunks += u64::from(count);
            return Ok(());
        }
        if let Place::Run { slot, count } = entry.place {
            let found = self.seen.entry(ino).or_default();
            found.chunks = (offset..offset + u64::from(count)).map(Extent::of).fold(found.chunks, Extent::with);
            self.report.chunks += u64::from(count);
            if self.chunks == Chunks::Counted {
                return Ok(());
            }
            let mut data = vec![0; self.slot_bytes()];
            for step in 0..u64::from(count) {
                // More would not be listed. A slot is one chunk's, so this also bounds what is read of runs that overlap.
                if self.report.findings.len() >= FINDINGS_MAX {
                    break;
                }
                match self.records().slot_reader().chunk(slot + step, ino, offset + step, &mut data) {
                    Ok(_) => {}
                    Err(Error::Corrupt { what, slot }) => {
                        self.note(format!("inode {ino}: chunk {} at slot {slot:#x}: {what}", offset + step));
                    }
                    Err(error) => return Err(error),
                }
            }
            return Ok(());
        }
        match self.check_node(entry) {
            Err(Error::Corrupt { what, slot }) => {
                self.note(format!("inode {ino}: {} at slot {slot:#x}: {what}", kind_name(kind_of(entry.key))));
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn check_node(&mut self, entry: Entry) -> Result<()> {
        let (ino, offset, seed) = (ino_of(entry.key), offset_of(entry.key), self.records().volume().hash_seed);
        let Self { store, report, seen, .. } = self;
        let mut begins_value = false;
        let wrong = store.records_mut().with_node(entry.place, |owner, node| {
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
                    begins_value = true;
                }
                Body::XattrPart { .. } => seen.entry(ino).or_default().attribute_parts -= 1,
                Body::Data { .. } => {
                    let found = seen.entry(ino).or_default();
                    found.chunks = found.chunks.with(Extent::of(offset));
                    report.chunks += 1;
                }
                _ => {}
            }
            Some(!home)
        })?;
        if begins_value && !wrong {
            let parts = self.records().attributes(ino).offsets(offset)?.map_or(0, |at| at.end - at.start - 1);
            self.seen.entry(ino).or_default().attribute_parts += parts as i64;
            self.records().attributes(ino).value(offset)?;
        }
        if wrong {
            self.note(format!("inode {ino}: a {} node stands under the wrong key", kind_name(kind_of(entry.key))));
        }
        Ok(())
    }

    fn check_inode(&mut self, ino: u64, seen: &Seen) {
        let Some(on_flash) = seen.inode else {
            self.note(format!("inode {ino}: {} names lead to it, but it is not there", seen.names));
            return;
        };
        let inode = self.records().held_inode(ino).unwrap_or(on_flash);
        let directory = inode.is_dir();
        if directory {
            self.report.directories += 1;
        } else {
            self.report.files += 1;
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
            self.note(format!("inode {ino}: its link count is {}, it should be {links}", inode.nlink));
        }
        if directory && ino != ROOT_INO && inode.nlink > 0 && seen.names != 1 {
            self.note(format!("directory {ino}: {} names lead to it, it should be 1", seen.names));
        }
        if (inode.nlink == 0) != seen.orphan {
            self.note(format!("inode {ino}: link count {} but orphan is {}", inode.nlink, seen.orphan));
        }
        let buffered = self.records().space().buffered_chunks > 0;
        let (counted, there) = (inode.chunks, seen.chunks);
        if !buffered && counted != there {
            self.note(format!("inode {ino}: {counted:x?} is counted of its chunks, {there:x?} is there"));
        }
        if !directory && seen.entries.count > 0 {
            self.note(format!("inode {ino}: it is no directory but has {} entries", seen.entries.count));
        }
        if directory && inode.entries != seen.entries {
            let (counted, there) = (inode.entries, seen.entries);
            self.note(format!("directory {ino}: {counted:x?} is counted of its entries, {there:x?} is there"));
        }
        if inode.attributes != seen.attributes {
            let (counted, there) = (inode.attributes, seen.attributes);
            self.note(format!("inode {ino}: its attributes should sum up to {counted:#x}, not {there:#x}"));
        }
        if seen.attribute_parts < 0 {
            let too_many = -seen.attribute_parts;
            self.note(format!("inode {ino}: {too_many} parts of attributes belong to no value"));
        }
    }

    fn check_blocks(&mut self) {
        let blocks = self.store.records().flash().blocks();
        let mut findings = Vec::new();
        for (number, block) in blocks.iter() {
            let found = self.live.get(&number).copied().unwrap_or(0);
            let counted = u64::from(block.entry.live_bytes);
            if found != counted {
                findings.push(format!("block {number}: {counted} bytes are counted as live, {found} are"));
            }
            if found > 0 && !matches!(block.entry.used_as, Use::Log | Use::Meta) {
                findings.push(format!("block {number}: {found} bytes are live, but it is {:?}", block.entry.used_as));
            }
        }
        if let Some((&block, _)) = self.live.iter().find(|&(&block, _)| block >= blocks.len()) {
            findings.push(format!("block {block}: the index points to it, but the chip ends before"));
        }
        findings.into_iter().for_each(|line| self.note(line));
    }

    fn records(&mut self) -> &mut Records<N> {
        self.store.records_mut()
    }

    fn slot_bytes(&self) -> usize {
        self.store.records().flash().shape().slot_bytes
    }

    fn count_live(&mut self, slot: Slot, bytes: u64) {
        let block = self.store.records().flash().shape().block_of(slot);
        *self.live.entry(block).or_default() += bytes;
    }

    /// Notes a finding, once: what many names or nodes in one slot come to is the same line.
    fn note(&mut self, line: String) {
        if self.report.findings.len() < FINDINGS_MAX && !self.report.findings.contains(&line) {
            self.report.findings.push(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use emulator::{Chip, Profile};

    use super::*;
    use crate::format::key::key;
    use crate::index::delta::Change;
    use crate::{FormatOptions, Fs, MountOptions, ROOT_INO};

    /// Each chunk of each run was read, though all runs led to the same slots: an index page of a few hundred entries,
    /// which only someone who means harm writes, kept a check busy for hours.
    #[test]
    fn runs_that_overlap_do_not_keep_a_check_busy() {
        let mut profile = Profile::builtin("flexfs-mlc").unwrap();
        (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 16);
        let mut chip = Chip::new(&profile, 1).unwrap();
        let (volume_id, label) = ([7; 16], "test".into());
        let options = FormatOptions { volume_id, label, now_ns: 1, ..FormatOptions::default() };
        Fs::format(&mut chip, &options).unwrap();
        let mut fs = Fs::mount(chip, MountOptions::default()).map_err(|(_, error)| error).unwrap();
        for run in 0..100 {
            let records = fs.store_mut().records_mut();
            let place = Place::Run { slot: records.flash().shape().slot(20, 0), count: 60_000 };
            let data_key = key(ROOT_INO, KeyKind::Data, run * 60_000);
            records.set(data_key, Change::Put(place)).unwrap();
        }
        let before = fs.chip().counters().reads.total();
        let report = fs.check().unwrap();
        assert!(report.findings.len() >= FINDINGS_MAX && report.chunks >= 100 * 60_000, "{} chunks", report.chunks);
        let reads = fs.chip().counters().reads.total() - before;
        assert!(reads < 2 * FINDINGS_MAX as u64, "{reads} pages were read");
    }
}
