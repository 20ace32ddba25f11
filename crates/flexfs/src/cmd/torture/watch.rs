//! What is seen of torture under way: a bar on a terminal, a line at each tenth of the work in a log, and on both each
//! violation when it is found: the work may go on for hours after the first.
//!
//! Invariant: all of it goes to standard error.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;
use torture::files::{Headway, Progress};

use super::TOLD_MAX;
use crate::output::grouped;
use crate::progress;

/// Lines of a log that tell of progress.
const LINES: u64 = 10;

/// Work so far.
#[derive(Default)]
struct Sum {
    done: u64,
    total: u64,
    cuts: u64,
    violations: u64,
    /// The chip that was worked on last.
    chip: Option<&'static str>,
}

/// Does long work, and shows how far it is.
pub fn watched<T>(work: impl FnOnce(Progress<'_>) -> T) -> T {
    let bar = progress::search("torture");
    let (sum, logs) = (Mutex::new(Sum::default()), !io::stderr().is_terminal());
    let outcome = work(&|headway| {
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        bar.suspend(|| headway.violations.iter().take(TOLD_MAX).for_each(|violation| eprintln!("{violation}")));
        if let Some(line) = sum.add(&headway).filter(|_| logs) {
            eprintln!("torture: {line}");
        }
        sum.show(&bar);
    });
    bar.finish_and_clear();
    outcome
}

impl Sum {
    /// Adds to it; where that ends a tenth of the work, also says how far it is.
    fn add(&mut self, headway: &Headway<'_>) -> Option<String> {
        let before = self.tenths();
        self.done += headway.done;
        self.total = headway.total;
        self.cuts += headway.cuts;
        self.violations += headway.violations.len() as u64;
        self.chip = headway.chip;
        let percent = 100 * self.done / self.total.max(1);
        (self.tenths() > before).then(|| format!("{percent} %, {}", self.found()))
    }

    fn tenths(&self) -> u64 {
        LINES * self.done / self.total.max(1)
    }

    /// The chip, and what was found.
    fn found(&self) -> String {
        let chip = self.chip.map(|chip| format!("chip {chip}, ")).unwrap_or_default();
        format!("{chip}{} cuts, {} violations", grouped(self.cuts), grouped(self.violations))
    }

    fn show(&self, bar: &ProgressBar) {
        bar.set_length(self.total);
        bar.set_position(self.done);
        bar.set_message(self.found());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_a_line_at_each_tenth_of_the_work() {
        let mut sum = Sum::default();
        let mut add =
            |chip, done| sum.add(&Headway { chip, done, total: 400, cuts: 3000, violations: &["lost".to_owned()] });
        assert_eq!(add(Some("slc"), 39), None);
        assert_eq!(add(Some("slc"), 1).unwrap(), "10 %, chip slc, 6,000 cuts, 2 violations");
        assert_eq!(add(Some("tlc"), 200).unwrap(), "60 %, chip tlc, 9,000 cuts, 3 violations");
        assert_eq!(add(None, 30), None);
        assert_eq!(add(None, 130).unwrap(), "100 %, 15,000 cuts, 5 violations");
    }
}
