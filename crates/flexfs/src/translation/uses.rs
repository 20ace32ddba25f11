//! The words and letters for what blocks of a translation layer are used for.
//!
//! Invariant: a letter means one word, and every use has both.

use ftl::BlockUse;
use serde_json::{Map, Value, json};

/// The words, and their letters in the map of blocks.
const KINDS: [(&str, char); 10] = [
    ("anchor", 'a'),
    ("map", 'm'),
    ("log", 'l'),
    ("data", 'D'),
    ("replacement", 'R'),
    ("pages", 'P'),
    ("open", 'o'),
    ("free", '.'),
    ("bad", 'x'),
    ("unknown", '?'),
];

/// The word and the letter for each use.
pub fn words() -> impl Iterator<Item = (&'static str, char)> {
    KINDS.into_iter()
}

/// The word for a use.
fn word(used: &BlockUse) -> &'static str {
    match used {
        BlockUse::Anchor => "anchor",
        BlockUse::Map => "map",
        BlockUse::Log(_) => "log",
        BlockUse::Data(_) => "data",
        BlockUse::Replacement(_) => "replacement",
        BlockUse::Pages(_) => "pages",
        BlockUse::Open(_) => "open",
        BlockUse::Free => "free",
        BlockUse::Bad => "bad",
        BlockUse::Unknown => "unknown",
    }
}

/// The letter for a use.
pub fn letter(used: &BlockUse) -> char {
    KINDS.iter().find(|(known, _)| *known == word(used)).map_or('?', |(_, letter)| *letter)
}

/// What the letters mean, in a line.
pub fn legend() -> String {
    KINDS.map(|(word, letter)| format!("{letter} {word}")).join("   ")
}

/// Blocks of each use, by its word.
pub fn counted(uses: &[BlockUse]) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    KINDS.iter().map(|(known, _)| (*known, uses.iter().filter(|used| word(used) == *known).count() as u64))
}

/// A block with its use, for programs.
pub fn json(block: u32, used: &BlockUse, erases: u32) -> Value {
    let mut object = Map::new();
    object.insert("block".to_owned(), block.into());
    object.insert("used_as".to_owned(), word(used).into());
    match *used {
        BlockUse::Log(of) | BlockUse::Data(of) | BlockUse::Replacement(of) => {
            object.insert("data_block".to_owned(), of.into());
        }
        BlockUse::Pages(count) | BlockUse::Open(count) => {
            object.insert("live_pages".to_owned(), count.into());
        }
        BlockUse::Anchor | BlockUse::Map | BlockUse::Free | BlockUse::Bad | BlockUse::Unknown => {}
    }
    object.insert("erases".to_owned(), json!(erases));
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_use_has_a_word_and_a_letter_of_its_own() {
        use BlockUse::{Anchor, Bad, Data, Free, Log, Map, Open, Pages, Replacement, Unknown};
        let all = [Anchor, Map, Log(1), Data(2), Replacement(3), Pages(4), Open(5), Free, Bad, Unknown];
        let shown: Vec<(&str, char)> = all.iter().map(|used| (word(used), letter(used))).collect();
        assert_eq!(shown, KINDS);
        let counts: Vec<u64> = counted(&all).map(|(_, count)| count).collect();
        assert_eq!(counts, [1; KINDS.len()]);
    }
}
