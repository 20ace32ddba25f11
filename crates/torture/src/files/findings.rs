//! What came of cases: how much was cut and judged, and what did not hold. Invariant: it is data; who judges fills it in.

use std::fmt;

use super::cut::Cut;

/// A cut after which a guarantee does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// In the script, in the recovery from that, and so on; none where no cut was needed.
    pub cuts: Vec<Cut>,
    /// The step under way: its number, and what it is.
    pub step: usize,
    pub during: String,
    pub error: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cuts: Vec<String> = self.cuts.iter().map(Cut::to_string).collect();
        write!(f, "step {}, {}, cut at {}: {}", self.step, self.during, cuts.join(" and "), self.error)
    }
}

impl Violation {
    /// What kind of violation it is: the first line of the error without its numbers.
    pub fn kind(&self) -> (usize, String) {
        let line = self.error.lines().next().unwrap_or_default();
        let line = line.split_once(": errno").map_or(line, |(_, refusal)| refusal);
        let words = line.split(|c: char| !c.is_ascii_alphabetic() && c != '\'');
        let plain: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        (self.cuts.len(), plain.join(" "))
    }
}

/// What came of cases.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Cases run.
    pub cases: usize,
    /// Flash operations that were cut, and moments between two.
    pub points: usize,
    /// Torn chips judged: cut once, in all the ways there are.
    pub cuts: usize,
    /// Those of a second and a third cut, in recoveries.
    pub double_cuts: usize,
    pub triple_cuts: usize,
    /// Cuts, of whatever depth, in which a page that shares a word line was lost too.
    pub paired_cuts: usize,
    /// Programs and erases of the longest recovery.
    pub longest_recovery: u64,
    /// Programs for migration, collection and levelling in what was cut, and programs and erases that failed.
    pub migrated: u64,
    pub collected: u64,
    pub levelled: u64,
    pub failures: u64,
    /// Checkpoints written in what was cut, and steps in which pages of the block table were.
    pub checkpoints: u64,
    pub tables: u64,
    /// Calls that changed something, or made that last, while a checkpoint was under way, and while a block was emptied.
    pub met_checkpoints: usize,
    pub met_emptyings: usize,
    /// Operations that the volume and the model refused, and those for which there was no space.
    pub refused: usize,
    pub no_space: usize,
    pub violations: Vec<Violation>,
}

impl Findings {
    pub(super) fn count(&mut self, cuts: &[Cut]) {
        match cuts.len() {
            1 => self.cuts += 1,
            2 => self.double_cuts += 1,
            _ => self.triple_cuts += 1,
        }
        self.paired_cuts += usize::from(matches!(cuts.last(), Some(Cut::In(_, tear, _)) if tear.pairs));
    }

    /// Torn chips judged, however often they were cut.
    pub fn judged(&self) -> usize {
        self.cuts + self.double_cuts + self.triple_cuts
    }

    /// Those of a case whose volume could not be made.
    pub(super) fn unprepared(error: &str) -> Self {
        let (step, during) = (0, "preparation".to_owned());
        let violation = Violation { cuts: Vec::new(), step, during, error: error.to_owned() };
        Self { cases: 1, violations: vec![violation], ..Self::default() }
    }

    /// Adds the figures of others; their violations stay with them.
    pub fn add(&mut self, other: &Findings) {
        self.cases += other.cases;
        self.points += other.points;
        self.cuts += other.cuts;
        self.double_cuts += other.double_cuts;
        self.triple_cuts += other.triple_cuts;
        self.longest_recovery = self.longest_recovery.max(other.longest_recovery);
        self.migrated += other.migrated;
        self.collected += other.collected;
        self.levelled += other.levelled;
        self.failures += other.failures;
        self.paired_cuts += other.paired_cuts;
        self.checkpoints += other.checkpoints;
        self.tables += other.tables;
        self.met_checkpoints += other.met_checkpoints;
        self.met_emptyings += other.met_emptyings;
        self.refused += other.refused;
        self.no_space += other.no_space;
    }
}
