//! How many blocks are free, and how many of them must stay so.

/// Blocks that must be free before a caller's next block is taken: wherever the power fails in what the call does, a
/// recovery finds the blocks it needs, and collection after it a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// What the call itself opens.
    pub host: u32,
    /// What collection writes to.
    pub collection: u32,
    /// The index pages of a checkpoint before room is made again.
    pub index: u32,
    /// What a recovery opens for its checkpoint, and for what it copies.
    pub recovery: u32,
    /// One that fails.
    pub spare: u32,
}

impl Budget {
    /// Blocks that must be free for a call to begin.
    pub fn for_call(&self) -> u32 {
        self.host + self.for_commit()
    }

    /// Blocks that must be free for a call to begin that opens none.
    pub fn for_commit(&self) -> u32 {
        self.index + self.for_collection()
    }

    /// Blocks that must be free for collection to begin.
    pub fn for_collection(&self) -> u32 {
        self.collection + self.in_collection()
    }

    /// Blocks that collection leaves free when it takes one.
    pub fn in_collection(&self) -> u32 {
        self.recovery + self.spare
    }
}

/// What there is of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    /// Blocks that can be taken.
    pub free: u32,
    /// The same once the log heads have filled the blocks they stand in.
    pub free_soon: u32,
    /// The same once what is gathered is programmed, and the pages it endangers are given up.
    pub free_sealed: u32,
    /// The same for a recovery, if the power failed now.
    pub free_for_certain: u32,
    pub budget: Budget,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_needs_every_term_of_the_budget() {
        let budget = Budget { host: 1, collection: 2, index: 4, recovery: 8, spare: 16 };
        assert_eq!((budget.for_call(), budget.for_collection(), budget.in_collection()), (31, 26, 24));
    }
}
