//! Background migration (FlexFS §4.1.1): when idle time moves a page out of the SLC region, and out of which block.
//!
//! Invariant: after any request nothing is migrated for `t_wait_ns`, and between the starts of two pages' migrations
//! there are at least `t_trig_ns`.

use super::{BlockView, Region};

/// How idle time empties the SLC region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Migrate {
    /// Idle time after the last request before the first page is moved, ns (T_wait).
    pub t_wait_ns: i64,
    /// From the start of one page's migration to the start of the next, ns (T_trig).
    pub t_trig_ns: i64,
    pub order: Order,
    pub extent: Extent,
}

/// How much of the SLC region is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// All of it.
    All,
    /// As much as the next burst needs blocks: lazy migration.
    Burst,
    /// All of it from a charger; from a battery as much as leaves so many percent of the blocks to spare.
    Charger { spare_percent: u8 },
}

/// Where the power comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Power {
    /// As much as one wants.
    #[default]
    Charger,
    Battery,
}

/// Which SLC block is emptied first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The one with the least live in it.
    LeastLive,
    /// The one that was opened first: what has not changed for long is not likely to soon.
    Coldest,
    /// The one that was opened last.
    Youngest,
}

impl Migrate {
    /// The paper's parameters (§5.1.1): T_wait of 1 s, T_trig of 15 ms, which is 10 % of the idle time (U10).
    pub const PAPER: Self =
        Self { t_wait_ns: 1_000_000_000, t_trig_ns: 15_000_000, order: Order::LeastLive, extent: Extent::All };
    /// The same, as far as the next burst needs it. Where files go in the order in which they came, the youngest lasts longest.
    pub const LAZY: Self = Self { extent: Extent::Burst, order: Order::Youngest, ..Self::PAPER };
    /// From a charger, or where fewer than one block in eight is to spare.
    pub const CHARGER: Self = Self { extent: Extent::Charger { spare_percent: 12 }, ..Self::LAZY };
}

/// The SLC block to empty next.
pub fn choose(blocks: impl Iterator<Item = BlockView>, order: Order) -> Option<u32> {
    let slc = blocks.filter(|block| block.region == Region::Slc && block.is_movable());
    // Blocks of an earlier mount are older than any of this one.
    let age = |block: &BlockView| block.opened_ns.unwrap_or(i64::MIN);
    let chosen = match order {
        Order::LeastLive => slc.min_by_key(|block| (block.live_bytes, block.number)),
        Order::Coldest => slc.min_by_key(|block| (age(block), block.number)),
        Order::Youngest => slc.max_by_key(|block| (age(block), block.number)),
    };
    chosen.map(|block| block.number)
}

#[cfg(test)]
mod tests {
    use super::super::tests::block;
    use super::*;

    #[test]
    fn blocks_are_taken_in_the_order_that_the_policy_says() {
        let opened = |number, live_bytes, opened_ns| BlockView { opened_ns, ..block(number, live_bytes) };
        let blocks = [opened(1, 30, Some(5)), opened(2, 20, Some(9)), opened(3, 40, None)];
        let chosen = |order| choose(blocks.into_iter(), order);
        assert_eq!(chosen(Order::LeastLive), Some(2));
        assert_eq!(chosen(Order::Coldest), Some(3));
        assert_eq!(chosen(Order::Youngest), Some(2));
    }

    #[test]
    fn native_open_and_empty_blocks_are_left_alone() {
        let native = BlockView { region: Region::Native, ..block(1, 10) };
        let open = BlockView { open: true, ..block(2, 10) };
        assert_eq!(choose([native, open, block(3, 0)].into_iter(), Order::LeastLive), None);
    }
}
