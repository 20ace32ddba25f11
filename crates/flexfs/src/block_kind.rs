//! What a block is to somebody who looks at a chip as a whole, and the letter it has in the block map of `info --json`.
//!
//! Invariant: a letter means one kind, to the server that writes a map and to `flexfs top`, which reads it.

use flexfs_core::dump::BlockInfo;

/// The kinds of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Slc,
    /// In the SLC region, for hot data alone.
    Hot,
    Native,
    /// Index and anchors.
    Metadata,
    Bad,
    Free,
}

impl Kind {
    pub const ALL: [Self; 6] = [Self::Slc, Self::Hot, Self::Native, Self::Metadata, Self::Bad, Self::Free];

    /// What a block is.
    ///
    /// A block that holds nothing live and that no head writes to counts as free. `info` counts such a block as free
    /// only from the checkpoint on after which it may be erased, so that a map may show some more free blocks for a
    /// moment.
    pub fn of(block: &BlockInfo) -> Self {
        let empty = block.live_bytes == 0 && block.head.is_none();
        match block.used_as {
            "bad" => Self::Bad,
            "anchor" => Self::Metadata,
            "log" | "index" if empty => Self::Free,
            "index" => Self::Metadata,
            "log" if block.native => Self::Native,
            "log" if block.hot => Self::Hot,
            "log" => Self::Slc,
            _ => Self::Free,
        }
    }

    /// Its letter in a block map.
    pub fn letter(self) -> char {
        match self {
            Self::Slc => 's',
            Self::Hot => 'h',
            Self::Native => 'n',
            Self::Metadata => 'm',
            Self::Bad => 'b',
            Self::Free => '.',
        }
    }

    /// The kind that has this letter.
    pub fn from_letter(letter: char) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.letter() == letter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_what_it_is_used_for_as_long_as_it_holds_something() {
        let block = |used_as, native, hot, head, live_bytes| {
            let (number, erased, sealed, failing, erases) = (0, false, false, false, 0);
            Kind::of(&BlockInfo {
                number,
                used_as,
                native,
                erased,
                sealed,
                failing,
                hot,
                head,
                lane: None,
                erases,
                live_bytes,
            })
        };
        let cases = [
            (block("free", false, false, None, 0), '.'),
            (block("log", false, false, None, 1), 's'),
            (block("log", false, true, None, 1), 'h'),
            (block("log", true, false, None, 1), 'n'),
            (block("log", true, false, None, 0), '.'),
            (block("log", false, false, Some("slc"), 0), 's'),
            (block("index", false, false, None, 1), 'm'),
            (block("index", false, false, None, 0), '.'),
            (block("anchor", false, false, None, 0), 'm'),
            (block("bad", false, false, None, 0), 'b'),
        ];
        for (kind, letter) in cases {
            assert_eq!((kind.letter(), Kind::from_letter(letter)), (letter, Some(kind)));
        }
        assert_eq!(Kind::from_letter('x'), None);
    }
}
