//! Policies: plain values that decide where data goes and what is moved, from what they are told in views.
//!
//! Invariant: nothing here imports anything of the rest of the core, so that it is built and tested alone.

pub mod admission;
pub mod allocate;
pub mod budget;
pub mod channel;
pub mod gc;
pub mod lazy;
pub mod level;
pub mod locality;
pub mod migrate;
pub mod place;
pub mod space;
pub mod supply;
mod text;
pub mod victim;
pub mod wear;

use self::admission::Admission;
use self::allocate::Allocate;
use self::channel::ChannelRule;
use self::gc::Regions;
use self::migrate::{Extent, Migrate};

/// The cells that content is programmed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Region {
    Slc,
    Native,
}

/// What a volume's managers aim at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    name: &'static str,
    /// Where callers' data goes.
    host: Region,
    /// Where syncs go that are too small for native pages.
    small_syncs: Region,
    /// Whether callers' chunks wait in memory for a few others: a commit in idle time may write them.
    writes_behind: bool,
    /// Where what is relocated goes.
    relocated: Region,
    /// How idle time empties the SLC region, if it does.
    migrate: Option<Migrate>,
    /// Which share of callers' pages goes to SLC, if not all of one region.
    allocate: Option<Allocate>,
    /// What goes to SLC beyond that share, if anything.
    admission: Option<Admission>,
    /// Whether hot data is told from the rest, and kept in SLC.
    keeps_hot: bool,
    /// Percent of the blocks that SLC blocks may be before callers' pages go to native ones, if there is such a limit.
    slc_blocks_max: Option<u8>,
    /// Which blocks idle time collects when free ones are about to run out.
    collect: Regions,
    /// Whether wear is levelled: the least worn free block is taken first, and what hardly changes moves to worn blocks.
    levels: bool,
    /// The channel that callers' pages go to.
    channel: ChannelRule,
}

impl Policy {
    /// FlexFS §3.2: write to SLC blocks, migrate to native ones when free blocks run out.
    pub const BASELINE: Self = Self {
        name: "baseline",
        host: Region::Slc,
        small_syncs: Region::Slc,
        writes_behind: false,
        relocated: Region::Native,
        migrate: None,
        allocate: None,
        admission: None,
        keeps_hot: false,
        slc_blocks_max: None,
        collect: Regions::Native,
        levels: true,
        channel: ChannelRule::RoundRobin,
    };
    /// FlexFS §4.1.1: the same, with migration in idle time as well.
    pub const BM: Self = Self { name: "bm", migrate: Some(Migrate::PAPER), ..Self::BASELINE };
    /// FlexFS §4.1.2: the same, with a part of what callers write going to native blocks at once, by the idle time there is.
    pub const DA: Self = Self { name: "da", allocate: Some(Allocate::PAPER), ..Self::BM };
    /// FlexFS §4.1.3: the same, with hot data in SLC blocks of its own, which stays there.
    pub const LA: Self = Self { name: "la", keeps_hot: true, ..Self::DA };
    /// Only SLC blocks: the speed of SLC, a fraction of the capacity.
    pub const SLC_ONLY: Self =
        Self { name: "slc-only", relocated: Region::Slc, collect: Regions::Both, ..Self::BASELINE };
    /// Native blocks for all but small syncs: the capacity, and the speed, of the native cell.
    pub const NATIVE_ONLY: Self =
        Self { name: "mlc-only", host: Region::Native, writes_behind: true, collect: Regions::Both, ..Self::BASELINE };
    /// What a volume follows unless its user says otherwise: all of the paper's, but data goes to SLC without idle time, too,
    /// while there is room, migration is lazy, both regions are collected, and callers' chunks wait in memory.
    pub const DEFAULT: Self = Self {
        writes_behind: true,
        migrate: Some(Migrate::LAZY),
        admission: Some(Admission::DEFAULT),
        ..Self::LA.collecting_both("default")
    };
    /// The same, with migration put off until there is a charger: the paper's future work, energy and response together (§7).
    pub const CHARGE: Self = Self { name: "charge", migrate: Some(Migrate::CHARGER), ..Self::DEFAULT };
    /// All that have a name.
    pub const PRESETS: [Self; 8] =
        [Self::DEFAULT, Self::BASELINE, Self::BM, Self::DA, Self::LA, Self::CHARGE, Self::SLC_ONLY, Self::NATIVE_ONLY];

    /// What SSDs do: SLC blocks, so many percent of all, are a write buffer that idle time drains; while it is full, callers
    /// write natively.
    pub const fn slc_buffer(percent: u8) -> Self {
        Self { name: "slc-buffer", slc_blocks_max: Some(percent), ..Self::BM }
    }

    /// The same policy under another name, with idle time collecting both regions.
    pub const fn collecting_both(self, name: &'static str) -> Self {
        Self { name, collect: Regions::Both, ..self }
    }

    /// The same policy under another name, without any levelling of wear: free blocks are taken in turn.
    pub const fn without_levelling(self, name: &'static str) -> Self {
        Self { name, levels: false, ..self }
    }

    /// The same policy on a chip with one bit a cell, which has one kind of block: there is no region to decide about, and nothing
    /// to migrate.
    pub const fn on_one_bit_cells(self) -> Self {
        Self {
            host: Region::Native,
            small_syncs: Region::Native,
            relocated: Region::Native,
            migrate: None,
            allocate: None,
            admission: None,
            keeps_hot: false,
            slc_blocks_max: None,
            collect: Regions::Both,
            ..self
        }
    }

    /// Whether everything that is written goes to one region.
    pub fn uses_one_region(self) -> bool {
        self.host == Region::Native && self.small_syncs == Region::Native
    }

    /// Whether wear is levelled.
    pub fn levels(self) -> bool {
        self.levels
    }

    /// The rule that chooses the channel of callers' pages.
    pub fn channel(self) -> ChannelRule {
        self.channel
    }

    /// The same policy, choosing channels by another rule. A rule that asks for reads sees none: a mount does not know them.
    pub const fn with_channel(self, channel: ChannelRule) -> Self {
        Self { channel, ..self }
    }

    /// Its name on a command line, without parameters.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Where callers' data goes, as a rule.
    pub fn host(self) -> Region {
        self.host
    }

    /// Where syncs go that are too small for native pages.
    pub fn small_syncs(self) -> Region {
        self.small_syncs
    }

    /// Whether callers' chunks wait in memory for a few others.
    pub fn writes_behind(self) -> bool {
        self.writes_behind
    }

    /// Where what is relocated goes, as a rule.
    pub fn relocated(self) -> Region {
        self.relocated
    }

    /// How idle time empties the SLC region, if it does.
    pub fn migrate(self) -> Option<Migrate> {
        self.migrate
    }

    /// Which share of callers' pages goes to SLC, if not all of one region.
    pub fn allocate(self) -> Option<Allocate> {
        self.allocate
    }

    /// What goes to SLC beyond that share, if anything.
    pub fn admission(self) -> Option<Admission> {
        self.admission
    }

    /// Whether hot data is told from the rest, and kept in SLC blocks of its own.
    pub fn keeps_hot(self) -> bool {
        self.keeps_hot
    }

    /// Percent of the blocks that SLC blocks may be before callers' pages go to native ones, if there is such a limit.
    pub fn slc_blocks_max(self) -> Option<u8> {
        self.slc_blocks_max
    }

    /// Whether callers' pages go to SLC and to native blocks, as there is time or room.
    pub fn writes_to_both(self) -> bool {
        self.allocate.is_some() || self.slc_blocks_max.is_some()
    }

    /// Whether callers' pages may go to native blocks.
    pub fn writes_natively(self) -> bool {
        self.host == Region::Native || self.writes_to_both()
    }

    /// Which blocks idle time collects when free ones are about to run out.
    pub fn collect(self) -> Regions {
        self.collect
    }

    /// Whether idle time empties SLC blocks at all.
    pub fn empties_slc(self) -> bool {
        self.migrate.is_some() || self.collect == Regions::Both
    }

    /// The same policy, migrating from so much idle time on, a page every `t_trig_ns`; one that does not migrate stays as
    /// it is.
    pub const fn with_times(self, t_wait_ns: i64, t_trig_ns: i64) -> Self {
        let migrate = match self.migrate {
            Some(migrate) => Some(Migrate { t_wait_ns, t_trig_ns, ..migrate }),
            None => None,
        };
        Self { migrate, ..self }
    }

    /// The same policy, allocating with other parameters; one that does not allocate stays as it is.
    pub const fn with_allocation(self, allocate: Allocate) -> Self {
        match self.allocate {
            Some(_) => Self { allocate: Some(allocate), ..self },
            None => self,
        }
    }

    /// The same policy, migrating a page every `t_trig_ns`.
    pub fn with_t_trig(self, t_trig_ns: i64) -> Self {
        let t_wait_ns = self.migrate.map_or(0, |migrate| migrate.t_wait_ns);
        self.with_times(t_wait_ns, t_trig_ns)
    }

    /// The same policy, leaving so many percent of the blocks to spare on a battery; one that does not wait for a charger stays
    /// as it is.
    pub fn with_spare_percent(self, spare_percent: u8) -> Self {
        let extent = |migrate: Migrate| match migrate.extent {
            Extent::Charger { .. } => Extent::Charger { spare_percent },
            other => other,
        };
        Self { migrate: self.migrate.map(|migrate| Migrate { extent: extent(migrate), ..migrate }), ..self }
    }

    /// Percent of the blocks that are to spare on a battery, if migration waits for a charger.
    pub fn spare_percent(self) -> Option<u8> {
        match self.migrate?.extent {
            Extent::Charger { spare_percent } => Some(spare_percent),
            Extent::All | Extent::Burst => None,
        }
    }

    /// The same policy, letting pages into SLC blocks by other limits; one that lets none in stays as it is.
    pub const fn with_admission(self, admission: Admission) -> Self {
        match self.admission {
            Some(_) => Self { admission: Some(admission), ..self },
            None => self,
        }
    }

    /// The same policy, taking the blocks it migrates in another order.
    pub fn with_order(self, order: migrate::Order) -> Self {
        Self { migrate: self.migrate.map(|migrate| Migrate { order, ..migrate }), ..self }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Data and nodes of the log.
    Log,
    /// Pages of the index and of the block table.
    Index,
    Anchors,
    /// Nothing that is needed.
    Nothing,
    /// Nothing ever again.
    Bad,
}

/// A block, as policies see it.
#[derive(Clone, Copy, Debug)]
pub struct BlockView {
    pub number: u32,
    pub holds: Holds,
    /// The region it belongs to, if it holds a part of the log.
    pub region: Region,
    pub live_bytes: u32,
    pub erases: u32,
    /// It was written with hot data.
    pub hot: bool,
    /// A log head stands in it.
    pub open: bool,
    /// Something live in it cannot be read: it is never emptied.
    pub stuck: bool,
    /// It has failed a program or an erase: it is emptied, then tested.
    pub failing: bool,
    /// Reading it takes much of what the ECC can do: it is to be written anew elsewhere.
    pub fading: bool,
    /// Its programming is more recent than the last checkpoint, with which it can be used again.
    pub recent: bool,
    /// When this mount opened it, ns by a clock that never jumps; `None`: an earlier one did.
    pub opened_ns: Option<i64>,
    /// Free blocks on the die where it stands; 0 where nothing is spread over dies.
    pub free_beside: u32,
}

impl BlockView {
    /// Whether its content can be moved elsewhere.
    pub fn is_movable(&self) -> bool {
        self.holds == Holds::Log && !self.open && !self.stuck && self.live_bytes > 0
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A block of the log, as one finds it.
    pub fn block(number: u32, live_bytes: u32) -> BlockView {
        BlockView {
            number,
            holds: Holds::Log,
            region: Region::Slc,
            live_bytes,
            erases: 0,
            hot: false,
            open: false,
            stuck: false,
            failing: false,
            fading: false,
            recent: false,
            opened_ns: None,
            free_beside: 0,
        }
    }
}
