//! One answer of the server of a card, as `flexfs info --json` shows it: the part that `flexfs top` draws.
//!
//! Invariant: nothing is worked out here; every field is what the answer says under the same name.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::wear::Wear;

/// One answer.
#[derive(Clone, Debug, Deserialize)]
pub struct CardSnapshot {
    pub image: String,
    pub scheme: String,
    pub capacity_bytes: u64,
    /// Blocks of each use, by its word.
    pub blocks: BTreeMap<String, u64>,
    pub wear: Wear,
    pub served: ServedFigures,
}

/// What only a card has that is served.
#[derive(Clone, Debug, Deserialize)]
pub struct ServedFigures {
    pub uri: String,
    pub clients: u64,
    pub elapsed_ns: u64,
    pub host: HostFigures,
    pub flash: FlashFigures,
    pub work: WorkFigures,
    /// A letter a block.
    pub block_map: String,
}

/// Requests of clients.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct HostFigures {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    pub trims: u64,
    pub failures: u64,
}

/// Bytes of flash.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct FlashFigures {
    pub read_bytes: u64,
    pub programmed_bytes: u64,
}

/// Work since the card was opened.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct WorkFigures {
    pub erases: u64,
    pub write_amplification: f64,
    pub switches: u64,
    pub partial_merges: u64,
    pub merges: u64,
    pub map_writes: u64,
    pub map_copies: u64,
}
