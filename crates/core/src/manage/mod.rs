//! The managers: what the policies of a volume remember, and what they decide with it.
//!
//! They hear what came of their jobs; they are asked where something goes ([`Manager::place`]) and what to
//! do next ([`Manager::next_job`], [`Manager::next_job_for_room`]), and how much of it callers owe ([`Manager::owed`]). Invariant: nothing here touches a chip.

pub mod admission;
mod allocation;
mod buffer;
mod idle;
pub mod job;
pub mod ledger;
pub mod life;
mod locality;
pub mod migration;
pub mod pace;
mod room;
#[cfg(test)]
mod tests;
pub mod work;

use self::admission::PagesLetIn;
use self::allocation::Allocation;
use self::ledger::Ledger;
use self::life::Life;
use self::migration::Migration;
use self::pace::Pace;
use crate::policy::locality::Queues;
use crate::policy::place::{self, Write};
use crate::policy::space::WriteRegions;
use crate::policy::{Policy, Region};

/// Between two looks at every block, ns: a day.
const PASS_NS: i64 = 24 * 60 * 60 * 1_000_000_000;

/// Slots that a call and its commit may take beside what waits in memory.
const CALL_SLOTS: u32 = 8;

/// How far the look at every block has come.
#[derive(Clone, Copy, Debug, Default)]
struct Scrub {
    next: u32,
    /// Passes done: each looks at other pages.
    passes: u32,
    /// When the next one begins.
    due_ns: i64,
}

/// What the policies of a mounted volume remember.
#[derive(Debug)]
pub struct Manager {
    policy: Policy,
    scrub: Scrub,
    /// The times room was made since mount.
    collections: u64,
    /// Live bytes when blocks were emptied last without any gain.
    fruitless_at: Option<u64>,
    /// While room is made: a checkpoint or a seal gained no block, and none was emptied since.
    waited_in_vain: bool,
    /// Steps done in a row to make room for a commit that is due.
    late_steps: u32,
    pace: Pace,
    migration: Migration,
    allocation: Allocation,
    let_in: PagesLetIn,
    files: Queues,
    ledger: Ledger,
    life: Life,
}

impl Manager {
    /// The managers of a volume that follows `policy`.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            scrub: Scrub::default(),
            collections: 0,
            fruitless_at: None,
            waited_in_vain: false,
            late_steps: 0,
            pace: Pace::default(),
            migration: Migration::default(),
            allocation: Allocation::default(),
            let_in: PagesLetIn::default(),
            files: Queues::EMPTY,
            ledger: Ledger::default(),
            life: Life::default(),
        }
    }

    /// The policy they follow.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The region that something goes to.
    pub fn place(&self, write: &Write) -> Region {
        let allocated = match write {
            Write::Host | Write::Synced { .. } => self.allocated().or_else(|| self.buffered()),
            Write::Copy { .. } => None,
        };
        allocated.unwrap_or_else(|| place::region(self.policy, write))
    }

    /// The region that nodes go to of what is written so.
    pub fn place_nodes(&self, write: &Write) -> Region {
        self.allocated_nodes().or_else(|| self.buffered()).unwrap_or_else(|| place::region(self.policy, write))
    }

    /// Where callers' data and copies go, as long as the mount lasts.
    pub fn write_regions(&self) -> WriteRegions {
        WriteRegions {
            host: self.policy.host(),
            copies: self.policy.relocated(),
            is_one: self.policy.uses_one_region(),
            is_both: self.policy.writes_to_both() || self.deals(),
        }
    }

    /// Chunks of callers that wait in memory for others before they are written: as many as are programmed until a native
    /// page, `pair_slots` before, can no longer be endangered. Where they go to SLC, no more than leaves half a block for
    /// the rest of a sync: room for one that takes more blocks would have to be kept free.
    pub fn waiting_slots(&self, pair_slots: u32, slc_block_slots: u32) -> u32 {
        match self.policy.host() {
            _ if !self.policy.writes_behind() => 0,
            Region::Native => pair_slots.max(1),
            Region::Slc => pair_slots.min((slc_block_slots / 2).saturating_sub(CALL_SLOTS)),
        }
    }

    /// The times room was made since mount.
    pub fn collections(&self) -> u64 {
        self.collections
    }

    /// What idle time has done since mount.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}
