//! Words of comments that say nothing by themselves: pronouns and fillers where a noun would tell more.
//!
//! Invariant: words are counted in comments of the product alone, without code.

use crate::source::Workspace;

/// Words that stand for a noun which is not there.
const VAGUE: &[&str] =
    &["what", "whoever", "whatever", "whichever", "somebody", "anybody", "nobody", "such", "those", "one"];
/// The same as two words.
const VAGUE_PAIR: (&str, &str) = ("so", "many");

/// Words of comments, and the vague words among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordCount {
    pub words: usize,
    pub vague: usize,
}

impl WordCount {
    /// The words of the product's comments.
    pub fn of(workspace: &Workspace) -> Self {
        let mut count = Self::default();
        workspace.product().flat_map(|file| &file.comments).for_each(|line| count.add(line));
        count
    }

    fn add(&mut self, line: &str) {
        let words: Vec<String> = line
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '\'')
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        self.words += words.len();
        self.vague += words.iter().filter(|word| VAGUE.contains(&word.as_str())).count();
        let pairs = words.windows(2).filter(|two| (two[0].as_str(), two[1].as_str()) == VAGUE_PAIR);
        self.vague += pairs.count();
    }

    /// Vague words in 1,000 words, rounded up to a tenth.
    pub fn vague_per_1000(self) -> f64 {
        (self.vague * 10_000).div_ceil(self.words.max(1)) as f64 / 10.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vague_words_are_counted_whole_and_in_any_case() {
        let mut count = WordCount::default();
        count.add("What one reads, so many times: someone's `whatever`.");
        assert_eq!(count, WordCount { words: 8, vague: 4 });
        assert_eq!(count.vague_per_1000(), 500.0);
    }
}
