//! One answer of the server of a mounted volume, as `flexfs info --json` shows it: the part that `flexfs top` draws.
//!
//! Invariant: nothing is worked out here; every field is what the answer says under the same name.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::super::wear::Wear;
use crate::block_kind::Kind;

/// One answer.
#[derive(Clone, Debug, Deserialize)]
pub struct Snapshot {
    pub image: String,
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    pub blocks: Blocks,
    pub health: Health,
    pub programmed_bytes: Programmed,
    pub wear: Wear,
    pub life: Option<Life>,
    pub mounted: Mounted,
}

/// How many blocks are what.
#[derive(Clone, Debug, Deserialize)]
pub struct Blocks {
    pub free: u32,
    pub slc: u32,
    /// Of those in the SLC region.
    pub slc_hot: u32,
    pub native: u32,
    pub metadata: u32,
    pub bad: u32,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Health {
    pub state: String,
    pub failing_blocks: u32,
    pub fading_blocks: u32,
}

/// Bytes programmed in the volume's life, by why.
#[derive(Clone, Debug, Deserialize)]
pub struct Programmed {
    pub host: u64,
    pub migration: u64,
    pub gc: u64,
}

/// How a life stands that is to be guaranteed.
#[derive(Clone, Debug, Deserialize)]
pub struct Life {
    pub goal_ns: u64,
    pub start_ns: i64,
    pub elapsed_ns: u64,
    pub delta: f64,
    pub budget_bytes: u64,
    pub left_bytes: u64,
    /// When the chip is worn out, where that is before the goal.
    pub ends_ns: Option<u64>,
}

/// The share of callers' next pages that goes to SLC, and by which rule.
#[derive(Clone, Debug, Deserialize)]
pub struct ToSlc {
    pub share: f64,
    pub rule: String,
}

/// What only a mounted volume has.
#[derive(Clone, Debug, Deserialize)]
pub struct Mounted {
    pub mountpoint: String,
    pub elapsed_ns: u64,
    pub policy: String,
    pub headroom_blocks: i64,
    pub alpha: Option<f64>,
    pub to_slc: Option<ToSlc>,
    pub under_way: Option<String>,
    pub read_bytes: u64,
    #[serde(deserialize_with = "kinds")]
    pub block_map: Vec<Kind>,
}

/// The kinds of blocks that letters stand for.
fn kinds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Kind>, D::Error> {
    let letters = String::deserialize(deserializer)?;
    let known = |letter| Kind::from_letter(letter).ok_or_else(|| Error::custom(format!("no block is {letter:?}")));
    letters.chars().map(known).collect()
}
