//! What is told of the co-design's drive under a volume: its map beside a map of pages, and its channels.
//!
//! Invariant: every line is of one figure of [`DriveReport`].

use ftl::DriveReport;
use serde_json::{Value, json};

use crate::output::{grouped, listed};
use crate::size;

/// The rows of a table that tell of a drive.
pub fn rows(drive: &DriveReport) -> [(&'static str, String); 4] {
    let listed_by_channel = |of: &dyn Fn(&ftl::ChannelReport) -> u64| {
        let counts = drive.channels.iter().map(of).map(grouped);
        counts.collect::<Vec<_>>().join(", ")
    };
    let [first, second] = drive.record_blocks;
    let blocks = listed(
        [
            ("of records", 2),
            ("bad", drive.bad_blocks.into()),
            ("marked by the file system", drive.marked_blocks.into()),
        ]
        .into_iter(),
    );
    [
        (
            "drive",
            format!(
                "codesign, which maps only blocks: {} of {} physical blocks; {blocks}; records in {first} and {second}",
                grouped(drive.logical_blocks.into()),
                grouped(drive.physical_blocks.into()),
            ),
        ),
        (
            "map",
            format!(
                "{} entries, {}; a map of pages: {}, {}; in all the drive takes {} of memory",
                grouped(drive.map_entries),
                size::human(drive.map_bytes),
                grouped(drive.page_map_entries),
                size::human(drive.page_map_bytes),
                size::human(drive.memory_bytes as u64),
            ),
        ),
        ("free blocks", format!("by channel: {}", listed_by_channel(&|channel| channel.free_blocks.into()))),
        ("all erases", format!("by channel: {}", listed_by_channel(&|channel| channel.erases))),
    ]
}

/// The same for programs.
pub fn json(drive: &DriveReport) -> Value {
    let channels = drive.channels.iter();
    json!({
        "kind": "codesign",
        "logical_blocks": drive.logical_blocks,
        "physical_blocks": drive.physical_blocks,
        "map_entries": drive.map_entries,
        "map_bytes": drive.map_bytes,
        "page_map_entries": drive.page_map_entries,
        "page_map_bytes": drive.page_map_bytes,
        "memory_bytes": drive.memory_bytes,
        "bad_blocks": drive.bad_blocks,
        "marked_blocks": drive.marked_blocks,
        "record_blocks": drive.record_blocks,
        "channels": channels
            .map(|channel| json!({ "free_blocks": channel.free_blocks, "erases": channel.erases }))
            .collect::<Vec<_>>(),
    })
}
