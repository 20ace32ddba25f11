//! What a volume may look like after a power cut: the state at the last completed sync, plus some prefix of the
//! pieces issued since (G1, G2).
//!
//! Invariants: `durable` plus all of `pending` is `live`, handles aside; a settled history has nothing pending.

use flexfs_core::Ino;

use crate::model::{Answer, ModelFs};
use crate::ops::{Call, Reply};

/// One atomic change: a call other than a write, or one chunk's piece of a write.
#[derive(Clone, Debug)]
pub struct Piece {
    pub call: Call,
    /// The inode that the call made; `None` where the power went off before it was told.
    pub made: Option<Ino>,
    pub now_ns: i64,
}

/// The model, and what of it a cut may take back.
#[derive(Clone, Debug)]
pub struct History {
    durable: ModelFs,
    pending: Vec<Piece>,
    live: ModelFs,
    chunk_bytes: u64,
}

impl History {
    /// Starts from a state that is known to be on flash.
    pub fn new(durable: ModelFs, chunk_bytes: u64) -> Self {
        Self { live: durable.clone(), durable, pending: Vec::new(), chunk_bytes }
    }

    /// The state with everything done so far.
    pub fn live(&self) -> &ModelFs {
        &self.live
    }

    /// Pieces that a cut may take back.
    pub fn pending(&self) -> &[Piece] {
        &self.pending
    }

    /// Makes a call on the live state and, where it changes something, remembers its pieces.
    pub fn apply(&mut self, call: &Call, made: Ino, now_ns: i64) -> Answer<Reply> {
        let reply = self.live.apply(call, made, now_ns)?;
        if call.mutates() {
            self.remember(call, Some(made), now_ns);
        }
        Ok(reply)
    }

    /// Remembers a call the power cut interrupted: any of its pieces may have happened.
    pub fn interrupted(&mut self, call: &Call, now_ns: i64) {
        if call.mutates() {
            self.remember(call, None, now_ns);
        }
    }

    /// Adds pieces to what may have happened, without a look at the live state: for a history that is judged, not
    /// continued.
    pub fn adopt_pending(&mut self, pieces: &[Piece]) {
        self.pending.extend_from_slice(pieces);
    }

    /// A sync returned: everything so far stays.
    pub fn synced(&mut self) {
        for piece in std::mem::take(&mut self.pending) {
            step(&mut self.durable, &piece, None);
        }
        debug_assert_eq!(self.durable.digest(), self.live.digest());
    }

    /// The volume was unmounted and mounted again: no handle is open, inodes without a name are gone.
    pub fn forget_handles(&mut self) {
        self.live.forget_handles();
        self.durable.forget_handles();
    }

    /// Finds the prefix that a recovered volume shows (the longest, where several look alike), makes it the live and
    /// durable state and returns its length; `None` where it shows none.
    pub fn settle(&mut self, observed: &ModelFs) -> Option<usize> {
        let matches =
            |state: &ModelFs| state.digest() == observed.digest() && state.time_differences(observed).is_empty();
        let mut state = self.durable.clone();
        let mut found = matches(&state).then(|| (0, state.clone()));
        for (piece, length) in self.pending.iter().zip(1..) {
            step(&mut state, piece, Some(observed));
            if matches(&state) {
                found = Some((length, state.clone()));
            }
        }
        let (length, mut state) = found?;
        state.forget_handles();
        self.pending.clear();
        self.live = state.clone();
        self.durable = state;
        Some(length)
    }

    fn prefix(&self, length: usize, observed: &ModelFs) -> ModelFs {
        let mut state = self.durable.clone();
        self.pending.iter().take(length).for_each(|piece| step(&mut state, piece, Some(observed)));
        state
    }

    /// How a volume that shows no allowed state differs from the nearest one.
    pub fn explain(&self, observed: &ModelFs) -> String {
        let mut best: Option<(usize, Vec<String>)> = None;
        for length in 0..=self.pending.len() {
            let state = self.prefix(length, observed);
            let mut lines = observed.differences(&state);
            lines.extend(observed.time_differences(&state));
            if best.as_ref().is_none_or(|(_, least)| lines.len() <= least.len()) {
                best = Some((length, lines));
            }
        }
        let (length, lines) = best.unwrap_or_default();
        let around = self.pending.iter().skip(length.saturating_sub(3)).take(6);
        let around: Vec<String> = around.map(|piece| format!("    {:?} made {:?}", piece.call, piece.made)).collect();
        format!(
            "no prefix of the {} pieces since the last sync matches; found against the nearest ({length}):\n  {}\n  \
             pieces around it:\n{}",
            self.pending.len(),
            lines.iter().take(12).cloned().collect::<Vec<_>>().join("\n  "),
            around.join("\n"),
        )
    }

    fn remember(&mut self, call: &Call, made: Option<Ino>, now_ns: i64) {
        let pieces = call.pieces(self.chunk_bytes).into_iter();
        self.pending.extend(pieces.map(|call| Piece { call, made, now_ns }));
    }
}

/// Applies a piece to a state that holds every piece before it. A piece may be refused only because it works on an
/// inode that has lost its last name, of which a state without handles knows nothing.
fn step(state: &mut ModelFs, piece: &Piece, observed: Option<&ModelFs>) {
    let made = piece.made.or_else(|| made_by(&piece.call, state, observed?)).unwrap_or(Ino::MAX);
    let _gone = state.apply(&piece.call, made, piece.now_ns);
}

/// The inode number that an interrupted call must have given to what it makes, if it happened.
fn made_by(call: &Call, state: &ModelFs, observed: &ModelFs) -> Option<Ino> {
    let (Call::Create { parent, name, .. } | Call::Symlink { parent, name, .. } | Call::Rename { parent, name, .. }) =
        call
    else {
        return None;
    };
    observed.child(*parent, name).ok().filter(|ino| state.node(*ino).is_none())
}

#[cfg(test)]
mod tests {
    use flexfs_core::{NewNode, ROOT_INO, kind};

    use super::*;
    use crate::content::{Fill, Texture};

    const CHUNK: u64 = 4096;

    fn create(name: &str) -> Call {
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        Call::Create { parent: ROOT_INO, name: name.into(), node, attributes: Vec::new() }
    }

    fn write(ino: Ino, offset: u64, len: usize) -> Call {
        Call::Write { ino, offset, len, fill: Fill { seed: offset + 1, start: 0, texture: Texture::Noise } }
    }

    fn history() -> History {
        History::new(ModelFs::new(kind::DIR | 0o755, 0, 0, 0), CHUNK)
    }

    #[test]
    fn a_write_may_survive_in_part_but_only_from_its_start() {
        let mut history = history();
        history.apply(&create("a"), 2, 1).unwrap();
        history.synced();
        let synced = history.live().clone();
        history.apply(&write(2, 0, 3 * 4096), 0, 2).unwrap();

        let mut first_two = synced.clone();
        first_two.apply(&write(2, 0, 2 * 4096), 0, 2).unwrap();
        assert_eq!(history.clone().settle(&first_two), Some(2));

        let mut second_only = synced;
        let Call::Write { fill, .. } = write(2, 0, 1) else { unreachable!() };
        second_only.apply(&Call::Write { ino: 2, offset: 4096, len: 4096, fill: fill.skip(4096) }, 0, 2).unwrap();
        assert_eq!(history.settle(&second_only), None);
        let complaint = history.explain(&second_only);
        assert!(complaint.contains("bytes differ from offset 0"), "{complaint}");
    }

    #[test]
    fn what_was_synced_may_not_be_missing() {
        let mut history = history();
        history.apply(&create("a"), 2, 1).unwrap();
        history.synced();
        history.apply(&create("b"), 3, 2).unwrap();
        let empty = ModelFs::new(kind::DIR | 0o755, 0, 0, 0);
        assert_eq!(history.settle(&empty), None);
        assert!(history.explain(&empty).contains("only there"));
    }

    #[test]
    fn an_interrupted_create_may_have_happened() {
        let mut history = history();
        history.interrupted(&create("a"), 1);
        let mut with = ModelFs::new(kind::DIR | 0o755, 0, 0, 0);
        assert_eq!(history.clone().settle(&with), Some(0));
        with.apply(&create("a"), 77, 1).unwrap();
        assert_eq!(history.settle(&with), Some(1));
        assert!(history.live().node(77).is_some());
    }

    #[test]
    fn a_file_unlinked_while_open_is_gone_after_a_cut() {
        let mut history = history();
        history.apply(&create("a"), 2, 1).unwrap();
        history.apply(&Call::Open { ino: 2 }, 0, 1).unwrap();
        history.apply(&Call::Unlink { parent: ROOT_INO, name: "a".into() }, 0, 2).unwrap();
        history.apply(&write(2, 0, 10), 0, 3).unwrap();
        history.synced();
        assert_eq!(history.clone().settle(&ModelFs::new(kind::DIR | 0o755, 0, 0, 0)), None, "an older time");
        assert_eq!(history.settle(&ModelFs::new(kind::DIR | 0o755, 0, 0, 2)), Some(0));
        assert!(history.live().node(2).is_none());
    }
}
