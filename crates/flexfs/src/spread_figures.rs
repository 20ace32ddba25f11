//! What is told of how a volume is spread over the dies of its chip: lane by lane and die by die.
//!
//! Invariant: of a chip with one die, whose heads have one lane, nothing is told.

use flexfs_core::{DieInfo, Info, LaneInfo};
use serde_json::{Value, json};

use crate::output::grouped;

/// Whether there is anything to tell.
fn is_spread(info: &Info) -> bool {
    info.dies.len() > 1
}

/// The rows of a table that tell of it.
pub fn rows(info: &Info) -> Vec<(&'static str, String)> {
    if !is_spread(info) {
        return Vec::new();
    }
    let by_die = |of: &dyn Fn(&DieInfo) -> u64| {
        let counts = info.dies.iter().map(of).map(grouped);
        counts.collect::<Vec<_>>().join(", ")
    };
    let mut rows = vec![(
        "dies",
        format!(
            "{}; free blocks: {}; open blocks: {}; erases: {}; programs since mount: {}",
            info.dies.len(),
            by_die(&|die| die.free_blocks.into()),
            by_die(&|die| die.open_blocks.into()),
            by_die(&|die| die.erases),
            by_die(&|die| die.programs),
        ),
    )];
    let mut lanes = info.lanes.as_slice();
    while let Some(first) = lanes.first() {
        let (of_head, others) = lanes.split_at(lanes.partition_point(|lane| lane.head == first.head));
        rows.push(("lanes", said_of_head(first.head, of_head)));
        lanes = others;
    }
    rows
}

/// The lanes of a head: the block that each fills, and what it has programmed.
fn said_of_head(head: &str, lanes: &[LaneInfo]) -> String {
    let block = |lane: &LaneInfo| lane.open.map_or("-".to_owned(), |(block, _)| block.to_string());
    let listed = |of: &dyn Fn(&LaneInfo) -> String| lanes.iter().map(of).collect::<Vec<_>>().join(", ");
    format!("of {head}: in blocks {}; programs since mount: {}", listed(&block), listed(&|lane| grouped(lane.programs)))
}

/// The lanes for programs; null where there is nothing to tell.
pub fn lanes_json(info: &Info) -> Value {
    let lane = |lane: &LaneInfo| {
        json!({
            "head": lane.head,
            "lane": lane.lane,
            "block": lane.open.map(|(block, _)| block),
            "unit": lane.open.map(|(_, unit)| unit),
            "room_slots": lane.room_slots,
            "programs": lane.programs,
        })
    };
    if is_spread(info) { info.lanes.iter().map(lane).collect() } else { Value::Null }
}

/// The same of the dies.
pub fn dies_json(info: &Info) -> Value {
    let die = |die: &DieInfo| {
        json!({
            "die": die.die,
            "free_blocks": die.free_blocks,
            "open_blocks": die.open_blocks,
            "erases": die.erases,
            "programs": die.programs,
        })
    };
    if is_spread(info) { info.dies.iter().map(die).collect() } else { Value::Null }
}
