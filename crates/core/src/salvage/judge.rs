//! What of a survey belongs to the volume as it was last: which names counted, and which are remains of what was
//! deleted.
//!
//! A directory's inode has the number of its entries and the sum of their offsets. Invariant: names stay in place only
//! if they come to exactly that, or if the index itself says so.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use super::sums::adding_up;
use super::survey::{Known, Name, Survey, Witness, is_dir_mode};
use crate::format::inode::{Ino, ROOT_INO};

/// Why something goes to `lost+found`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// It may have been deleted, or moved.
    Deleted,
    /// So many of its chunks are missing, or were cut from it.
    Incomplete { chunks: u64 },
    /// Its inode cannot be read: who may do what with it, and its length, are not known.
    NoInode,
    /// Its name cannot be read.
    NoName,
}

/// A name in a directory: the directory, and the name's offset.
pub type At = (Ino, u64);

/// What becomes of everything.
#[derive(Default)]
pub struct Judgement {
    /// Directories and the names that stay in them.
    pub stays: BTreeMap<Ino, Vec<Name>>,
    /// What goes to `lost+found`, where it was, and why.
    pub moves: Vec<(Option<At>, Ino, Doubt)>,
    /// Remains of what was deleted, and what has neither name nor content.
    pub dead: Vec<Ino>,
    /// Names that lead to nothing of which anything is left.
    pub lost_names: Vec<At>,
}

impl Judgement {
    /// Whether everything stays that is in a survey.
    pub fn keeps_all(&self, survey: &Survey) -> bool {
        let names: usize = survey.values().map(|known| known.names.len()).sum();
        let stay: usize = self.stays.values().map(Vec::len).sum();
        names == stay && self.moves.is_empty() && self.dead.is_empty()
    }
}

/// Judges a survey; `unreadable` is how much of it could not be read.
pub fn judge(survey: &Survey, witness: Witness, unreadable: u64) -> Judgement {
    let mut names: BTreeMap<Ino, Vec<(i64, At)>> = BTreeMap::new();
    for (&dir, known) in survey {
        known
            .names
            .iter()
            .for_each(|name| names.entry(name.child).or_default().push((name.time_ns, (dir, name.offset))));
    }
    names.values_mut().for_each(|all| all.sort_unstable_by(|a, b| b.cmp(a)));
    let mut bench = Bench {
        survey,
        witness,
        names,
        judgement: Judgement::default(),
        reached: BTreeSet::new(),
        sure: unreadable == 0,
    };
    bench.walk(ROOT_INO);
    bench.leftovers();
    bench.drop_spare_names();
    bench.judgement
}

struct Bench<'a> {
    survey: &'a Survey,
    witness: Witness,
    /// By inode: the names that lead to it, the newest first.
    names: BTreeMap<Ino, Vec<(i64, At)>>,
    judgement: Judgement,
    reached: BTreeSet<Ino>,
    /// Every directory's names were proven, and all was read: what no name leads to was deleted.
    sure: bool,
}

impl Bench<'_> {
    fn known(&self, ino: Ino) -> Option<&Known> {
        self.survey.get(&ino)
    }

    /// Judges a directory and all below it.
    fn walk(&mut self, top: Ino) {
        self.reached.insert(top);
        let mut queue = VecDeque::from([top]);
        while let Some(dir) = queue.pop_front() {
            let Some(known) = self.known(dir) else { continue };
            let names = known.names.clone();
            let proven = self.proven(dir, known);
            self.sure &= proven.is_some();
            let mut stays = Vec::new();
            for (at, name) in names.iter().enumerate() {
                let counts = proven.as_ref().is_none_or(|counts| counts.get(at) == Some(&true));
                if !counts {
                    continue;
                }
                let Some(child) = self.known(name.child) else {
                    self.judgement.lost_names.extend(proven.is_some().then_some((dir, name.offset)));
                    continue;
                };
                let (lives, bare) = (child.lives(), child.inode.is_none());
                let is_dir = child.is_dir() || (bare && is_dir_mode(name.mode));
                let misfit = child.misfit(self.witness);
                let seen = self.reached.contains(&name.child);
                // A directory has one name; a file that is out of place already stays together.
                if !(lives || bare) || (is_dir && seen) {
                    continue;
                }
                self.reached.insert(name.child);
                if is_dir {
                    queue.push_back(name.child);
                }
                let doubt = match proven {
                    _ if bare => Some(Doubt::NoInode),
                    _ if misfit > 0 => Some(Doubt::Incomplete { chunks: misfit }),
                    None => Some(Doubt::Deleted),
                    Some(_) => None,
                };
                match doubt {
                    None => stays.push(*name),
                    Some(doubt) => self.judgement.moves.push((Some((dir, name.offset)), name.child, doubt)),
                }
            }
            self.judgement.stays.insert(dir, stays);
        }
    }

    /// Which of a directory's names count, if that is certain.
    fn proven(&self, dir: Ino, known: &Known) -> Option<Vec<bool>> {
        let presumed: Vec<bool> = known.names.iter().map(|name| self.is_presumed(dir, name)).collect();
        if self.witness == Witness::Index {
            return Some(presumed);
        }
        // What came and went in the log since the inode was written may have been there before, or not.
        let mut target = known.inode?.entries;
        known.unseen.gone.iter().for_each(|&offset| target.remove(offset));
        let counted = known.names.iter().zip(&presumed).filter(|(_, counts)| **counts);
        let (count, sum) =
            counted.fold((0u64, 0u64), |(count, sum), (name, _)| (count + 1, sum.wrapping_add(name.offset)));
        let turns = known.names.iter().zip(&presumed).map(|(name, &counts)| (name.offset, !counts));
        let gone = known.unseen.gone.iter().map(|&offset| (offset, false));
        let came = known.unseen.came.iter().map(|&offset| (offset, true));
        let turns: Vec<(u64, bool)> = turns.chain(gone).chain(came).collect();
        let parts: Vec<u64> =
            turns.iter().map(|&(offset, adds)| if adds { offset } else { offset.wrapping_neg() }).collect();
        let fits = |turned: &[usize]| {
            let changes =
                turned.iter().filter_map(|&at| turns.get(at)).map(|&(_, adds)| if adds { 1 } else { u64::MAX });
            changes.fold(count, u64::wrapping_add) == target.count
        };
        let turned = adding_up(&parts, target.sum.wrapping_sub(sum), u64::MAX, &fits)?;
        Some(presumed.iter().enumerate().map(|(at, &counts)| counts != turned.contains(&at)).collect())
    }

    /// Whether a name looks as if it counted: what it leads to is there, and there are not too many newer names of it.
    fn is_presumed(&self, dir: Ino, name: &Name) -> bool {
        let Some(child) = self.known(name.child) else { return self.witness == Witness::Index };
        let Some(inode) = child.inode else { return true };
        if self.witness == Witness::Index {
            return inode.nlink > 0;
        }
        let links = if inode.is_dir() { inode.nlink.min(1) } else { inode.nlink };
        let newest = self.names.get(&name.child).into_iter().flatten().take(links as usize);
        newest.into_iter().any(|&(_, at)| at == (dir, name.offset)) && child.misfit(self.witness) == 0
    }

    /// A doubtful name of a file that has all its names in place is none of them.
    fn drop_spare_names(&mut self) {
        let mut placed: BTreeMap<Ino, u32> = BTreeMap::new();
        for name in self.judgement.stays.values().flatten() {
            *placed.entry(name.child).or_default() += 1;
        }
        let survey = self.survey;
        let links = |ino: &Ino| survey.get(ino).and_then(|known| known.inode).map_or(u32::MAX, |inode| inode.nlink);
        let spare = |ino: &Ino| placed.get(ino).is_some_and(|&names| names >= links(ino));
        self.judgement.moves.retain(|(_, ino, doubt)| *doubt != Doubt::Deleted || !spare(ino));
    }

    /// What no name leads to: remains of what was deleted, if that is certain.
    fn leftovers(&mut self) {
        let is_left = |(_, known): &(&Ino, &Known)| known.lives() || known.inode.is_none();
        let rest: Vec<Ino> = self.survey.iter().filter(is_left).map(|(&ino, _)| ino).collect();
        if self.sure && self.witness == Witness::Log {
            self.judgement.dead.extend(rest.into_iter().filter(|ino| !self.reached.contains(ino)));
        } else {
            // First the directories that hang below none of these, then those that hang below each other, then files.
            let dirs = |bench: &Self, ino: &Ino| bench.known(*ino).is_some_and(Known::is_dir);
            let below = |bench: &Self, ino: &Ino| {
                let parent = bench.known(*ino).and_then(|known| known.inode).map_or(0, |inode| inode.parent);
                parent != *ino && !bench.reached.contains(&parent) && bench.known(parent).is_some_and(Known::lives)
            };
            for pass in 0..3 {
                for &ino in &rest {
                    let ready = match pass {
                        0 => dirs(self, &ino) && !below(self, &ino),
                        1 => dirs(self, &ino),
                        _ => true,
                    };
                    if ready && !self.reached.contains(&ino) {
                        self.find_place(ino);
                    }
                }
            }
        }
        let gone = self.survey.iter().filter(|found| !is_left(found));
        let gone: Vec<Ino> = gone.map(|(&ino, _)| ino).collect();
        self.judgement.dead.extend(gone.into_iter().filter(|ino| !self.reached.contains(ino)));
    }

    fn find_place(&mut self, ino: Ino) {
        let Some(known) = self.known(ino) else { return };
        let empty = if known.is_dir() { known.names.is_empty() } else { known.chunks.count == 0 };
        let misfit = known.misfit(self.witness);
        if empty {
            self.judgement.dead.push(ino);
            return;
        }
        let doubt = match self.witness {
            _ if known.inode.is_none() => Doubt::NoInode,
            _ if misfit > 0 => Doubt::Incomplete { chunks: misfit },
            Witness::Index => Doubt::NoName,
            Witness::Log => Doubt::Deleted,
        };
        let is_dir = known.is_dir();
        let at = self.names.get(&ino).and_then(|names| names.first()).map(|&(_, at)| at);
        self.judgement.moves.push((at, ino, doubt));
        self.reached.insert(ino);
        if is_dir {
            self.walk(ino);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sums::ALL_OF;
    use super::*;
    use crate::format::inode::kind;
    use crate::format::inode::{Extent, Inode};

    fn dir(ino: Ino, parent: Ino, names: &[(u64, Ino, i64)], counted: &[u64]) -> (Ino, Known) {
        let mut inode = Inode { parent, ..Inode::new(kind::DIR | 0o755, 0, 0, 0) };
        counted.iter().for_each(|&offset| inode.entries.add(offset));
        let name = |&(offset, child, time_ns): &(u64, Ino, i64)| Name { offset, child, mode: 0, time_ns };
        (ino, Known { inode: Some(inode), names: names.iter().map(name).collect(), ..Known::default() })
    }

    fn file(ino: Ino, nlink: u32) -> (Ino, Known) {
        let chunks = Extent::of(0);
        let inode = Inode { nlink, chunks, ..Inode::new(kind::FILE | 0o644, 0, 0, 0) };
        (ino, Known { inode: Some(inode), chunks, ..Known::default() })
    }

    fn kept(judgement: &Judgement, dir: Ino) -> Vec<Ino> {
        judgement.stays.get(&dir).into_iter().flatten().map(|name| name.child).collect()
    }

    #[test]
    fn a_deleted_file_whose_deletion_is_lost_is_told_from_the_others_by_the_sum() {
        let root = dir(1, 1, &[(100, 5, 1), (210, 6, 2), (333, 7, 3)], &[100, 333]);
        let survey = Survey::from([root, file(5, 1), file(6, 1), file(7, 1)]);
        let judgement = judge(&survey, Witness::Log, 0);
        assert_eq!((kept(&judgement, 1), judgement.dead), (alloc::vec![5, 7], alloc::vec![6]));
        assert!(judgement.moves.is_empty());
    }

    #[test]
    fn where_the_sum_cannot_tell_nothing_is_put_back_into_place() {
        let names: Vec<(u64, Ino, i64)> = (0..40).map(|at| ((1 << 20) + (at << 40) * at, 10 + at, 1)).collect();
        let counted: Vec<u64> = names.iter().take(30).map(|name| name.0).collect();
        let mut survey: Survey = names.iter().map(|name| file(name.1, 1)).collect();
        survey.extend([dir(1, 1, &names, &counted)]);
        let judgement = judge(&survey, Witness::Log, 0);
        assert!(kept(&judgement, 1).is_empty());
        assert_eq!(judgement.moves.len(), 40);
        assert!(judgement.moves.iter().all(|(_, _, doubt)| *doubt == Doubt::Deleted));
    }

    #[test]
    fn what_has_lost_its_inode_is_kept_with_what_is_in_it_and_even_without_a_name() {
        let bare_dir = (2, Known { inode: None, ..dir(2, 1, &[(700, 5, 9)], &[]).1 });
        let bare_file = (6, Known { inode: None, ..file(6, 1).1 });
        let survey = Survey::from([dir(1, 1, &[(50, 2, 1)], &[50]), bare_dir, file(5, 1), bare_file]);
        let judgement = judge(&survey, Witness::Index, 2);
        assert_eq!(kept(&judgement, 2), [5]);
        assert_eq!(judgement.moves, [(Some((1, 50)), 2, Doubt::NoInode), (None, 6, Doubt::NoInode)]);
        assert!(judgement.dead.is_empty());
    }

    #[test]
    fn of_two_names_of_a_file_with_one_link_the_newer_counts() {
        let below = dir(2, 1, &[(700, 5, 9)], &[700]);
        let root = dir(1, 1, &[(100, 5, 1), (50, 2, 1)], &[50]);
        let survey = Survey::from([root, below, file(5, 1)]);
        let judgement = judge(&survey, Witness::Log, 0);
        assert_eq!((kept(&judgement, 1), kept(&judgement, 2)), (alloc::vec![2], alloc::vec![5]));
    }

    #[test]
    fn what_no_name_leads_to_is_kept_where_something_could_not_be_read() {
        let survey = Survey::from([dir(1, 1, &[], &[]), file(5, 1)]);
        assert_eq!(judge(&survey, Witness::Log, 0).dead, [5]);
        assert_eq!(judge(&survey, Witness::Log, 1).moves, [(None, 5, Doubt::Deleted)]);
        assert_eq!(judge(&survey, Witness::Index, 0).moves, [(None, 5, Doubt::NoName)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn ghosts_are_found_any_number_among_few_names_and_three_among_many(
            offsets in proptest::collection::btree_set(1u64 << 16..1 << 63, 12..60),
            ghosts in 0usize..12,
        ) {
            let ghosts = if offsets.len() > ALL_OF { ghosts.min(3) } else { ghosts };
            let names: Vec<(u64, Ino, i64)> = offsets.iter().zip(10..).map(|(&offset, ino)| (offset, ino, 1)).collect();
            let counted: Vec<u64> = names.iter().skip(ghosts).map(|name| name.0).collect();
            let mut survey: Survey = names.iter().map(|name| file(name.1, 1)).collect();
            survey.extend([dir(1, 1, &names, &counted)]);
            let judgement = judge(&survey, Witness::Log, 0);
            prop_assert_eq!(kept(&judgement, 1).len(), counted.len());
            prop_assert_eq!(judgement.dead.len(), ghosts);
        }
    }
}
