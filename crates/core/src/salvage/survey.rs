//! What an index has of every inode, whether or not it all belongs together.
//!
//! Invariant: everything in a survey was read; what could not be is listed.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use nand::Nand;

use super::Mender;
use super::sums::adding_up;
use crate::error::{Error, Result};
use crate::format::inode::{Census, Extent, Ino, Inode, chunk_mark, kind};
use crate::format::key::{KEY_END, Key, KeyKind, ino_of, key, kind_of, offset_of, whole_inode};
use crate::format::node::Body;
use crate::format::page::Entry;
use crate::format::place::Place;
use crate::format::tag::CHUNKS_MAX;
use crate::index::delta::Change;
use crate::mount::replay::Unseen;
use crate::store::attributes::Offsets;

/// What a survey rests on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Witness {
    /// An index that could be read whole: what is in it is there.
    Index,
    /// The log alone: what was deleted may be among it.
    Log,
}

/// A name that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    pub offset: u64,
    pub child: Ino,
    /// The file-type bits of the child's mode.
    pub mode: u32,
    /// When the name was made.
    pub time_ns: i64,
}

/// What is there of an inode.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub inode: Option<Inode>,
    pub chunks: Extent,
    /// One past the last chunk.
    pub end_chunk: u64,
    /// Chunks that the index points to but cannot be read.
    pub unreadable: u64,
    /// What its counts may be wrong by.
    pub unseen: Unseen,
    pub names: Vec<Name>,
    pub attributes: Vec<Attribute>,
    /// The offsets of parts of values that no attribute claims.
    pub stray_parts: BTreeSet<u64>,
}

/// An attribute, where its name can be read.
#[derive(Clone, Debug)]
pub struct Attribute {
    pub offsets: Offsets,
    /// Its value is all there.
    pub whole: bool,
}

impl Known {
    /// Chunks of a file that are not there, or that should not be: at least so many.
    pub fn misfit(&self, witness: Witness) -> u64 {
        if witness == Witness::Index {
            return self.unreadable;
        }
        let Some(inode) = self.inode.filter(|inode| !inode.is_dir()) else { return 0 };
        // The record of reserved space may have been erased: then it is not reserved any more, and nothing is lost by that.
        let (expected, there) = (inode.chunks.written(), self.chunks.written());
        if self.comes_to(expected, there) {
            return 0;
        }
        let least = expected.count.saturating_sub(self.unseen.chunks.len() as u64);
        let differ = least.saturating_sub(there.count).max(there.count.saturating_sub(expected.count));
        differ.max(1)
    }

    /// Whether the chunks that are there are those that were counted. Of what came in the log since the inode was written,
    /// some may have been there before: those before its end then, if it has no holes.
    fn comes_to(&self, expected: Census, there: Census) -> bool {
        if expected == there {
            return true;
        }
        let was_there = |chunk: u64| chunk < self.unseen.end_chunk;
        let surplus =
            Census { count: expected.count.wrapping_sub(there.count), sum: expected.sum.wrapping_sub(there.sum) };
        let mut presumed = Census::default();
        let again = self.unseen.chunks.iter().filter(|&&chunk| was_there(chunk));
        again.for_each(|&chunk| presumed.add(chunk_mark(chunk)));
        let turn = |&chunk: &u64| match was_there(chunk) {
            true => (chunk_mark(chunk).wrapping_neg(), u64::MAX),
            false => (chunk_mark(chunk), 1),
        };
        let turns: Vec<(u64, u64)> = self.unseen.chunks.iter().map(turn).collect();
        let parts: Vec<u64> = turns.iter().map(|&(mark, _)| mark).collect();
        let fits = |turned: &[usize]| {
            let changes = turned.iter().filter_map(|&at| turns.get(at)).map(|&(_, change)| change);
            changes.fold(presumed.count, u64::wrapping_add) == surplus.count
        };
        adding_up(&parts, surplus.sum.wrapping_sub(presumed.sum), u64::MAX, &fits).is_some()
    }

    /// Whether every attribute is all there, and nothing is left of others.
    pub fn has_whole_attributes(&self) -> bool {
        self.stray_parts.is_empty() && self.attributes.iter().all(|attribute| attribute.whole)
    }

    /// Whether it is there and was not about to be removed.
    pub fn lives(&self) -> bool {
        self.inode.is_some_and(|inode| inode.nlink > 0)
    }

    /// Whether it is a directory: if its inode cannot be read, because it has names.
    pub fn is_dir(&self) -> bool {
        self.inode.map_or(!self.names.is_empty(), |inode| inode.is_dir())
    }
}

/// What is there, by inode.
pub type Survey = BTreeMap<Ino, Known>;

impl<N: Nand> Mender<'_, N> {
    /// Takes chunks out of the index that lie behind the end of their file: it was made shorter since.
    pub(super) fn cut_behind_ends(&mut self) -> Result<()> {
        let mut from = key(1, KeyKind::Inode, 0);
        while let Some(entry) = self.records().next(from, KEY_END)? {
            from = whole_inode(ino_of(entry.key)).1;
            let ino = ino_of(entry.key);
            let inode = match self.records().inode(ino) {
                Err(Error::NotFound | Error::Corrupt { .. }) => continue,
                inode => inode?,
            };
            if inode.reserves_past_end || inode.is_dir() {
                continue;
            }
            let end = key(ino, KeyKind::Data, inode.size.div_ceil(self.records().chunk_bytes()).min(CHUNKS_MAX));
            let change = Change::Cut(key(ino, KeyKind::Data, CHUNKS_MAX) - end);
            self.records().set(end, change)?;
        }
        Ok(())
    }

    /// Walks the index. Beside what is there: the keys of what it points to but cannot be read.
    pub(super) fn survey(&mut self) -> Result<(Survey, Vec<Key>)> {
        let mut survey = Survey::new();
        let mut unreadable = Vec::new();
        let mut from = 0;
        while let Some(entry) = self.records().next(from, KEY_END)? {
            from = entry.end();
            if kind_of(entry.key) == KeyKind::Data as u8 {
                self.survey_chunks(entry, &mut survey, &mut unreadable)?;
                continue;
            }
            match self.survey_node(entry, &mut survey) {
                Err(Error::Corrupt { .. }) => unreadable.push(entry.key),
                outcome => outcome?,
            }
        }
        Ok((survey, unreadable))
    }

    fn survey_node(&mut self, entry: Entry, survey: &mut Survey) -> Result<()> {
        let (ino, offset) = (ino_of(entry.key), offset_of(entry.key));
        if ino == 0 {
            return Ok(());
        }
        if kind_of(entry.key) == KeyKind::Inode as u8 {
            let inode = self.records().inode(ino)?;
            survey.entry(ino).or_default().inode = Some(inode);
            return Ok(());
        }
        let name = self.records().with_node(entry.place, |owner, node| match node.body {
            _ if owner != ino || node.key() != Some(entry.key) => None,
            Body::Entry { child, mode, time_ns, .. } => Some(Some(Name { offset, child, mode, time_ns })),
            _ => Some(None),
        })?;
        let Some(name) = name else { return self.survey_attribute(ino, offset, survey) };
        survey.entry(ino).or_default().names.push(name);
        Ok(())
    }

    /// What stands at an offset of attributes: the first node of one, or a part of one before.
    fn survey_attribute(&mut self, ino: Ino, offset: u64, survey: &mut Survey) -> Result<()> {
        let known = survey.entry(ino).or_default();
        let claimed = known.attributes.last().is_some_and(|attribute| attribute.offsets.contains(&offset));
        let Some(offsets) = self.records().attributes(ino).offsets(offset)? else {
            known.stray_parts.extend((!claimed).then_some(offset));
            return Ok(());
        };
        let whole = match self.records().attributes(ino).value(offset) {
            Err(Error::Corrupt { .. }) => false,
            value => value.map(|_| true)?,
        };
        known.attributes.push(Attribute { offsets, whole });
        Ok(())
    }

    fn survey_chunks(&mut self, entry: Entry, survey: &mut Survey, unreadable: &mut Vec<Key>) -> Result<()> {
        let (ino, chunk) = (ino_of(entry.key), offset_of(entry.key));
        let mut data = vec![0; self.records().chunk_bytes() as usize];
        for step in 0..entry.place.span() {
            let looked = match entry.place {
                Place::Run { slot, .. } => {
                    self.records().slot_reader().chunk(slot + step, ino, chunk + step, &mut data).map(|_| ())
                }
                Place::Node { .. } => self.records().with_node(entry.place, |owner, node| {
                    (owner == ino && node.key() == Some(entry.key)).then_some(())
                }),
                Place::Mark | Place::Reserved { .. } | Place::Pending { .. } => Ok(()),
            };
            let known = survey.entry(ino).or_default();
            match looked {
                Ok(()) => {
                    let found = match entry.place {
                        Place::Reserved { .. } => Extent::reserved(1),
                        _ => Extent::of(chunk + step),
                    };
                    known.chunks = known.chunks.with(found);
                    known.end_chunk = known.end_chunk.max(chunk + step + 1);
                }
                Err(Error::Corrupt { .. }) => {
                    known.unreadable += 1;
                    unreadable.push(entry.key + u128::from(step));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether a mode is a directory's.
pub fn is_dir_mode(mode: u32) -> bool {
    mode & kind::MASK == kind::DIR
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::inode::kind;

    fn known(counted: &[u64], there: &[u64], unseen: &[u64], end_chunk: u64) -> Known {
        let extent = |chunks: &[u64]| chunks.iter().copied().map(Extent::of).fold(Extent::default(), Extent::with);
        let inode = Inode { chunks: extent(counted), ..Inode::new(kind::FILE | 0o644, 0, 0, 0) };
        let unseen = Unseen { chunks: unseen.to_vec(), end_chunk, ..Unseen::default() };
        Known { inode: Some(inode), chunks: extent(there), unseen, ..Known::default() }
    }

    /// Only their number was compared: a chunk that was punched out made up for one that could not be read.
    #[test]
    fn other_chunks_than_were_counted_do_not_fit_though_there_are_as_many() {
        assert_eq!(known(&[1, 3], &[1, 3], &[], 0).misfit(Witness::Log), 0);
        assert_eq!(known(&[1, 3], &[1, 2], &[], 0).misfit(Witness::Log), 1);
        assert_eq!(known(&[1, 3, 5], &[1], &[], 0).misfit(Witness::Log), 2);
    }

    #[test]
    fn chunks_written_again_were_counted_twice_where_the_older_ones_are_gone() {
        // 1 and 3 were there and came again; 7 is new.
        let twice = |there| known(&[1, 3, 1, 3, 7], there, &[1, 3, 7], 4).misfit(Witness::Log);
        assert_eq!((twice(&[1, 3, 7]), twice(&[1, 2, 7])), (0, 1));
    }
}
