//! Tells a block that fails from a chip that fails: by how many different blocks failed one after the other.
//!
//! Invariant: an outage ends only with the mount. A program that succeeds says nothing of erases, nor the other way round:
//! where the voltage is low one of them may still work.

use crate::error::{Error, Result};

/// Different blocks that fail in a row before the chip counts as failing.
const BLOCKS_MAX: usize = 4;
/// The same, where no other block is left to try.
const LAST_BLOCKS_MAX: usize = 2;

/// What a chip was asked to do to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Program,
    Erase,
}

/// The blocks that failed since the last one that did not.
#[derive(Clone, Copy, Debug, Default)]
struct FailureRow {
    blocks: [u32; BLOCKS_MAX],
    count: usize,
}

impl FailureRow {
    fn add(&mut self, block: u32) {
        let known = self.blocks.iter().take(self.count).any(|&failed| failed == block);
        if let (false, Some(next)) = (known, self.blocks.get_mut(self.count)) {
            *next = block;
            self.count += 1;
        }
    }
}

/// Watches for an outage of a chip.
#[derive(Debug, Default)]
pub struct OutageWatch {
    programs: FailureRow,
    erases: FailureRow,
    /// Those since the last success of either kind.
    either: FailureRow,
    is_outage: bool,
}

impl OutageWatch {
    /// Whether the chip has failed as a whole.
    pub fn is_outage(&self) -> bool {
        self.is_outage
    }

    /// An operation on a block succeeded.
    pub fn succeeded(&mut self, operation: Operation) {
        self.row(operation).count = 0;
        self.either.count = 0;
    }

    /// An operation on a block failed.
    pub fn failed(&mut self, operation: Operation, block: u32) -> Result<()> {
        self.either.add(block);
        let row = self.row(operation);
        row.add(block);
        if row.count < BLOCKS_MAX { Ok(()) } else { Err(self.declare()) }
    }

    /// No block is left to try another operation on.
    pub fn ran_out(&mut self) -> Error {
        if self.either.count < LAST_BLOCKS_MAX { Error::NoSpace } else { self.declare() }
    }

    /// The chip has failed as a whole.
    pub fn declare(&mut self) -> Error {
        self.is_outage = true;
        Error::WriteOutage
    }

    fn row(&mut self, operation: Operation) -> &mut FailureRow {
        match operation {
            Operation::Program => &mut self.programs,
            Operation::Erase => &mut self.erases,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_blocks_that_fail_in_a_row_are_an_outage() {
        let mut watch = OutageWatch::default();
        for block in [7, 8, 7, 8, 9] {
            assert_eq!(watch.failed(Operation::Program, block), Ok(()));
        }
        assert_eq!(watch.failed(Operation::Program, 1), Err(Error::WriteOutage));
        watch.succeeded(Operation::Program);
        assert!(watch.is_outage(), "it ends with the mount");
    }

    #[test]
    fn a_success_of_the_same_kind_ends_the_row() {
        let mut watch = OutageWatch::default();
        for round in 0..BLOCKS_MAX as u32 {
            assert_eq!(watch.failed(Operation::Erase, round), Ok(()));
            watch.succeeded(Operation::Erase);
        }
        // Erases succeed, programs do not.
        let outcomes = (0..BLOCKS_MAX as u32).map(|block| {
            watch.succeeded(Operation::Erase);
            watch.failed(Operation::Program, block)
        });
        assert_eq!(outcomes.last(), Some(Err(Error::WriteOutage)));
    }

    #[test]
    fn the_last_blocks_that_fail_are_an_outage_and_no_lack_of_space() {
        let mut watch = OutageWatch::default();
        assert_eq!(watch.ran_out(), Error::NoSpace);
        watch.failed(Operation::Program, 1).unwrap();
        assert_eq!(watch.ran_out(), Error::NoSpace);
        watch.failed(Operation::Program, 2).unwrap();
        watch.succeeded(Operation::Erase);
        assert_eq!(watch.ran_out(), Error::NoSpace);
        watch.failed(Operation::Program, 1).unwrap();
        watch.failed(Operation::Erase, 2).unwrap();
        assert_eq!(watch.ran_out(), Error::WriteOutage);
    }
}
