//! The kinds of internal work, by which steps of idle time are counted and shown.
//!
//! Invariant: a kind keeps its place in [`WorkKind::ALL`] and its name, since reports list both.

/// A kind of internal work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Old changes are made durable.
    Commit,
    /// The index on flash is brought up to date.
    Checkpoint,
    /// Blocks are emptied to make room.
    Collection,
    /// The SLC region is emptied to native blocks.
    Migration,
    /// What fades, or stands in a block that failed, is looked for and written anew.
    Refresh,
    /// What does not change moves to worn blocks.
    Levelling,
    /// Blocks are erased, tested or made ready for anchors, before anybody needs that.
    Preparation,
}

impl WorkKind {
    /// All kinds, in the order they are shown in.
    pub const ALL: [Self; 7] = [
        Self::Commit,
        Self::Checkpoint,
        Self::Collection,
        Self::Migration,
        Self::Refresh,
        Self::Levelling,
        Self::Preparation,
    ];

    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Checkpoint => "checkpoint",
            Self::Collection => "collection",
            Self::Migration => "migration",
            Self::Refresh => "refresh",
            Self::Levelling => "levelling",
            Self::Preparation => "preparation",
        }
    }
}
