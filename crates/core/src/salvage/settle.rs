//! Makes a volume of what was judged: what counts stays, what is in doubt goes to `lost+found` under its old path, and
//! every count agrees with what is there.
//!
//! Invariant: nothing of it counts before the checkpoint that follows.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;

use nand::Nand;

use super::Mender;
use super::judge::{At, Doubt, Judgement};
use super::sums::adding_up;
use super::survey::{Attribute, Known, Survey, Witness, is_dir_mode};
use crate::error::{Error, Result};
use crate::format::inode::{Census, Ino, Inode, ROOT_INO, kind, with_attribute};
use crate::format::key::{Key, KeyKind, key, whole_inode};
use crate::format::node::Body;
use crate::index::delta::Change;
use crate::store::names::Spot;

/// Where everything goes that is in doubt.
const LOST_FOUND: &[u8] = b"lost+found";

type Path = Vec<Vec<u8>>;

/// What was put where, as far as it is told to people.
#[derive(Default)]
pub struct Settled {
    /// Paths below `lost+found`, and why they are there.
    pub moved: Vec<(Vec<u8>, Doubt)>,
    /// Paths that led to nothing of which anything is left.
    pub lost: Vec<Vec<u8>>,
    /// Attributes that were left out because they may have been removed, or because their values are not whole.
    pub attributes: u64,
}

impl<N: Nand> Mender<'_, N> {
    /// Settles what was judged; `unreadable` are the keys of what could not be read.
    pub(super) fn settle(
        &mut self,
        (survey, witness): (&Survey, Witness),
        judgement: &Judgement,
        unreadable: &[Key],
        now_ns: i64,
    ) -> Result<Settled> {
        let mut settled = Settled::default();
        let parents = parents(judgement);
        for &at in &judgement.lost_names {
            settled.lost.push(joined(&self.path_of(at, &parents)?));
        }
        let mut moves: Vec<(Path, Ino, Doubt)> = Vec::new();
        for &(at, ino, doubt) in &judgement.moves {
            let path = match at {
                Some(at) => self.path_of(at, &parents)?,
                None => alloc::vec![format!("#{ino}").into_bytes()],
            };
            moves.push((path, ino, doubt));
        }
        for &key in unreadable {
            self.records().set(key, Change::Cut(1))?;
        }
        self.cut_the_rest(survey, judgement)?;
        self.count_again((survey, witness), judgement, &mut settled, now_ns)?;
        for (path, ino, doubt) in moves {
            let told = self.plant(&path, ino, now_ns)?;
            settled.moved.push((told, doubt));
            self.records().end_operation()?;
        }
        Ok(settled)
    }

    /// A name's path.
    fn path_of(&mut self, at: At, parents: &BTreeMap<Ino, At>) -> Result<Path> {
        let mut path = Vec::new();
        let mut next = Some(at);
        // Directories that are in each other have no way out.
        let mut seen = BTreeSet::new();
        while let Some((dir, offset)) = next.filter(|at| seen.insert(*at)) {
            let place = self.records().get(key(dir, KeyKind::Entry, offset))?.ok_or(Error::NotFound)?;
            path.push(self.records().with_node(place, |_, node| match node.body {
                Body::Entry { name, .. } => Some(name.to_vec()),
                _ => None,
            })?);
            next = parents.get(&dir).copied().filter(|_| dir != ROOT_INO);
        }
        path.reverse();
        Ok(path)
    }

    /// Takes out of the index what does not count.
    fn cut_the_rest(&mut self, survey: &Survey, judgement: &Judgement) -> Result<()> {
        // Of inode 0 are the marks of those that wait for their last handle: they are among the dead.
        for ino in judgement.dead.iter().copied().chain([0]) {
            let (from, to) = whole_inode(ino);
            self.records().set(from, Change::Cut(to - from))?;
            self.records().recovery().drop_inode(ino);
        }
        for (&dir, stays) in &judgement.stays {
            let stays: BTreeSet<u64> = stays.iter().map(|name| name.offset).collect();
            let names = survey.get(&dir).into_iter().flat_map(|known| &known.names);
            for name in names.filter(|name| !stays.contains(&name.offset)) {
                let at = key(dir, KeyKind::Entry, name.offset);
                self.records().set(at, Change::Cut(1))?;
            }
        }
        Ok(())
    }

    /// Brings every inode's counts up to what is there; one that is lost gets a stand-in.
    fn count_again(
        &mut self,
        (survey, witness): (&Survey, Witness),
        judgement: &Judgement,
        settled: &mut Settled,
        now_ns: i64,
    ) -> Result<()> {
        let mut links: BTreeMap<Ino, (u32, Ino)> = BTreeMap::new();
        for (&dir, stays) in &judgement.stays {
            for name in stays {
                let (names, parent) = links.entry(name.child).or_default();
                (*names, *parent) = (*names + 1, dir);
            }
        }
        let dead: BTreeSet<Ino> = judgement.dead.iter().copied().collect();
        let mut files = 0;
        for (&ino, known) in survey.iter().filter(|(ino, _)| !dead.contains(ino)) {
            files += 1;
            let was = known.inode;
            let mut inode = was.unwrap_or_else(|| self.stand_in(ino, known, judgement, survey, now_ns));
            let proof = was.filter(|_| witness == Witness::Log).map(|inode| inode.attributes);
            inode.attributes = self.weed_attributes(ino, known, proof, settled)?;
            let (names, parent) = links_of(&links, ino);
            if inode.is_dir() {
                let stays = judgement.stays.get(&ino).map_or(&[][..], Vec::as_slice);
                inode.entries = Census::default();
                stays.iter().for_each(|name| inode.entries.add(name.offset));
                inode.nlink = 2 + stays.iter().filter(|name| leads_to_dir(survey, name.child)).count() as u32;
                inode.parent = if ino == ROOT_INO { ROOT_INO } else { parent };
            } else {
                inode.nlink = names;
                inode.chunks = known.chunks;
            }
            if was != Some(inode) {
                self.records().derive_inode(ino, inode);
            }
        }
        if survey.get(&ROOT_INO).is_none() {
            files += 1;
            let root = Inode { parent: ROOT_INO, ..Inode::new(kind::DIR | 0o755, 0, 0, now_ns) };
            self.records().derive_inode(ROOT_INO, root);
        }
        self.records().recovery().set_files(files);
        Ok(())
    }

    /// An inode in place of one that cannot be read: nobody but the superuser may do anything with it.
    fn stand_in(&mut self, ino: Ino, known: &Known, judgement: &Judgement, survey: &Survey, now_ns: i64) -> Inode {
        let at = judgement.moves.iter().find(|(_, moved, _)| *moved == ino).and_then(|(at, ..)| *at);
        let names = at.and_then(|(dir, _)| survey.get(&dir)).into_iter().flat_map(|known| &known.names);
        let mode = names.filter(|name| name.child == ino).map(|name| name.mode & kind::MASK).find(|&mode| mode != 0);
        let is_dir = ino == ROOT_INO || !known.names.is_empty() || mode.is_some_and(is_dir_mode);
        let mode = match (is_dir, mode) {
            (true, _) => kind::DIR | if ino == ROOT_INO { 0o755 } else { 0o700 },
            (false, mode) => mode.unwrap_or(kind::FILE) | 0o600,
        };
        Inode { size: known.end_chunk.saturating_mul(self.records().chunk_bytes()), ..Inode::new(mode, 0, 0, now_ns) }
    }

    /// Takes those of an inode's attributes out that were removed, as far as the sum of their offsets tells, `proof`, and
    /// those that cannot be read. The sum of those that stay.
    fn weed_attributes(&mut self, ino: Ino, known: &Known, proof: Option<u32>, settled: &mut Settled) -> Result<u32> {
        let sum_of = |kept: &[&Attribute]| kept.iter().fold(0, |sum, kept| with_attribute(sum, kept.offsets.start));
        let all: Vec<&Attribute> = known.attributes.iter().collect();
        let parts: Vec<u64> = all.iter().map(|attribute| attribute.offsets.start >> 33).collect();
        let surplus = proof.map_or(0, |proof| u64::from(sum_of(&all).wrapping_sub(proof)));
        let removed = adding_up(&parts, surplus, u64::from(u32::MAX >> 1), &|_| true);
        if removed.is_none() {
            settled.attributes += all.len() as u64;
        }
        let is_removed = |at: usize| removed.as_ref().is_none_or(|removed| removed.contains(&at));
        let (mut kept, mut cut) = (Vec::new(), Vec::new());
        for (at, attribute) in all.into_iter().enumerate() {
            if attribute.whole && !is_removed(at) {
                kept.push(attribute);
                continue;
            }
            settled.attributes += u64::from(!attribute.whole && removed.is_some() && !is_removed(at));
            cut.push(attribute.offsets.clone());
        }
        cut.extend(known.stray_parts.iter().map(|&offset| offset..offset + 1));
        for offsets in cut {
            let at = key(ino, KeyKind::Xattr, offsets.start);
            self.records().set(at, Change::Cut(Key::from(offsets.end - offsets.start)))?;
        }
        Ok(sum_of(&kept))
    }

    /// Gives an inode a name in `lost+found`, below directories as they were above it. Its path there.
    fn plant(&mut self, path: &[Vec<u8>], ino: Ino, now_ns: i64) -> Result<Vec<u8>> {
        let Some((name, above)) = path.split_last() else { return Err(Error::NotFound) };
        let mut dir = self.dir_at(ROOT_INO, LOST_FOUND, now_ns)?;
        let mut told = LOST_FOUND.to_vec();
        for part in above {
            dir = self.dir_at(dir, part, now_ns)?;
            told.extend([b"/", part.as_slice()].concat());
        }
        let (name, offset) = self.free_name(dir, name)?;
        told.extend([b"/", name.as_slice()].concat());
        let mut inode = self.records().inode(ino)?;
        if inode.is_dir() {
            inode.parent = dir;
            self.records().directory(dir).add_links(1)?;
        } else {
            inode.nlink += 1;
        }
        self.records().put_inode(ino, inode)?;
        self.records().directory(dir).add(offset, (ino, inode.mode), &name, now_ns)?;
        Ok(told)
    }

    /// A directory in a directory; made if it is not there, under another name where something else has this one.
    fn dir_at(&mut self, parent: Ino, name: &[u8], now_ns: i64) -> Result<Ino> {
        if let Some((_, child)) = self.records().directory(parent).entry(name)?
            && self.records().inode(child)?.is_dir()
        {
            return Ok(child);
        }
        let (name, offset) = self.free_name(parent, name)?;
        let inode = Inode { parent, ..Inode::new(kind::DIR | 0o700, 0, 0, now_ns) };
        let ino = self.records().new_inode(inode)?;
        self.records().directory(parent).add_links(1)?;
        self.records().directory(parent).add(offset, (ino, inode.mode), &name, now_ns)?;
        Ok(ino)
    }

    /// `name`, or the first like it that is free, and its offset.
    fn free_name(&mut self, dir: Ino, name: &[u8]) -> Result<(Vec<u8>, u64)> {
        let mut candidate = name.to_vec();
        for number in 1u32.. {
            if let Spot::Free(offset) = self.records().directory(dir).find(&candidate)? {
                return Ok((candidate, offset));
            }
            let suffix = format!("~{number}").into_bytes();
            candidate = name.iter().take(255 - suffix.len()).chain(&suffix).copied().collect();
        }
        Err(Error::NoSpace)
    }
}

/// Where every directory, and everything that moves, has its name.
fn parents(judgement: &Judgement) -> BTreeMap<Ino, At> {
    let moved = judgement.moves.iter().filter_map(|&(at, ino, _)| Some((ino, at?)));
    let stays =
        judgement.stays.iter().flat_map(|(&dir, names)| names.iter().map(move |name| (name.child, (dir, name.offset))));
    stays.chain(moved).collect()
}

fn links_of(links: &BTreeMap<Ino, (u32, Ino)>, ino: Ino) -> (u32, Ino) {
    links.get(&ino).copied().unwrap_or_default()
}

fn leads_to_dir(survey: &Survey, ino: Ino) -> bool {
    survey.get(&ino).is_some_and(Known::is_dir)
}

fn joined(path: &[Vec<u8>]) -> Vec<u8> {
    path.join(&b'/')
}
