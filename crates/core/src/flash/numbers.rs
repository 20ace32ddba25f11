//! How far the log has got, in numbers: sequence numbers of originals, copies, and the eras between checkpoints.
//!
//! Invariant: `promised <= committed <= ended <= next`.

/// The log's numbers.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// Sequence number of the next original.
    next: u64,
    /// Everything below is in complete groups.
    ended: u64,
    /// Everything below is in complete groups and on flash.
    committed: u64,
    /// Everything below was promised to a caller, or is in a checkpoint.
    promised: u64,
    /// Copies made since mount.
    copies: u64,
    /// Checkpoints begun since mount, and the last durable one of them.
    era: u64,
    durable_era: u64,
    /// Log blocks opened since the last checkpoint began.
    opened: u32,
    /// Blocks opened since mount for pages of the index and of the block table.
    opened_for_pages: u32,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            next: 1,
            ended: 1,
            committed: 1,
            promised: 1,
            copies: 0,
            era: 1,
            durable_era: 1,
            opened: 0,
            opened_for_pages: 0,
        }
    }
}

impl Numbers {
    /// Sequence number of the next original.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Where the group begins that is not complete yet.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// Everything below is in complete groups and on flash.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// Everything below was promised to a caller, or is in a checkpoint.
    pub fn promised(&self) -> u64 {
        self.promised
    }

    /// Copies made since mount.
    pub fn copies(&self) -> u64 {
        self.copies
    }

    /// Checkpoints begun since mount.
    pub fn era(&self) -> u64 {
        self.era
    }

    /// The last of them that is durable.
    pub fn durable_era(&self) -> u64 {
        self.durable_era
    }

    /// Log blocks opened since the last checkpoint began.
    pub fn opened(&self) -> u32 {
        self.opened
    }

    /// Blocks opened since mount for pages of the index and of the block table.
    pub fn opened_for_pages(&self) -> u32 {
        self.opened_for_pages
    }

    /// Whether all that was appended is in complete groups.
    pub fn is_ended(&self) -> bool {
        self.ended == self.next
    }

    /// Whether all that was appended was promised.
    pub fn is_promised(&self) -> bool {
        self.promised == self.next
    }

    /// Goes on with `seq`, everything before being in a checkpoint or known to a recovery.
    pub fn go_on_with(&mut self, seq: u64) {
        (self.next, self.ended, self.committed, self.promised) = (seq, seq, seq, seq);
    }

    /// The number of one more original.
    pub(super) fn take_original(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// The number of one more copy.
    pub(super) fn take_copy(&mut self) -> u64 {
        self.copies += 1;
        self.copies
    }

    /// Everything appended so far is in complete groups.
    pub(super) fn end_group(&mut self) {
        self.ended = self.next;
    }

    /// What is in complete groups is on flash.
    pub(super) fn commit(&mut self) {
        self.committed = self.ended;
    }

    /// What is on flash in complete groups is promised.
    pub fn promise(&mut self) {
        self.promised = self.committed;
    }

    /// One more log block is open.
    pub(super) fn open_block(&mut self) {
        self.opened += 1;
    }

    /// One more block for pages is open.
    pub(super) fn open_block_of_pages(&mut self) {
        self.opened_for_pages += 1;
    }

    /// A checkpoint begins.
    pub(super) fn begin_era(&mut self) {
        (self.era, self.opened) = (self.era + 1, 0);
    }

    /// The checkpoint that began this era is durable.
    pub fn end_era(&mut self, era: u64) {
        self.durable_era = era;
    }
}
