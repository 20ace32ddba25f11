//! What stands in a recording. Invariant: what is written reads back as the same.

use emulator::{TraceEntry, TraceOp};
use flexfs_core::wear::{Controller, Goal};
use flexfs_core::{Atime, Compression, Ino, MountOptions, Policy, Times, Wanted};
use nand::CellMode;
use serde::{Deserialize, Serialize};

use crate::ops::Call;

/// How the volume was mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the program that recorded it.
    flexfs: String,
    policy: String,
    cache_bytes: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lanes: Option<u8>,
    commit_ns: i64,
    relatime: bool,
    /// Whether the caller keeps the times of changes of regular files.
    times_of_caller: bool,
    /// A lifetime and a wear window that were asked for, ns, and whether the paper's controller was.
    lifetime_ns: Option<[u64; 2]>,
    papers_controller: bool,
    now_ns: i64,
}

impl Header {
    /// The header of a mount with these options; `None` where contents decide, or nothing is decided.
    pub fn of(options: &MountOptions) -> Option<Self> {
        (options.compression == Compression::None && !options.read_only).then(|| Self {
            flexfs: env!("CARGO_PKG_VERSION").to_owned(),
            policy: options.policy.to_string(),
            cache_bytes: options.cache_bytes,
            lanes: options.lanes,
            commit_ns: options.commit_ns,
            relatime: options.atime == Atime::Relative,
            times_of_caller: options.times == Times::OfCaller,
            lifetime_ns: options.life.goal.map(|goal| [goal.life_ns, goal.window_ns]),
            papers_controller: options.life.controller == Controller::Paper,
            now_ns: options.now_ns,
        })
    }

    /// The options it tells.
    ///
    /// # Errors
    /// The policy has a name that is not known.
    pub fn options(&self) -> Result<MountOptions, String> {
        let policy = Policy::from_text(&self.policy).map_err(|wrong| format!("\"{}\": {wrong}", self.policy))?;
        Ok(MountOptions {
            read_only: false,
            policy,
            life: Wanted {
                goal: self.lifetime_ns.map(|[life_ns, window_ns]| Goal { life_ns, window_ns }),
                controller: if self.papers_controller { Controller::Paper } else { Controller::WholeLife },
            },
            compression: Compression::None,
            atime: if self.relatime { Atime::Relative } else { Atime::None },
            times: if self.times_of_caller { Times::OfCaller } else { Times::OfVolume },
            commit_ns: self.commit_ns,
            cache_bytes: self.cache_bytes,
            lanes: self.lanes,
            now_ns: self.now_ns,
        })
    }
}

/// Something that a volume was asked, or told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A request came.
    Request { mono_ns: i64 },
    /// Time for a step of background work.
    Background { mono_ns: i64, now_ns: i64 },
    /// A call, and its time. What a write writes is not recorded.
    Call { call: Call, now_ns: i64 },
    /// The power comes from a charger now, or no longer.
    Power { charger: bool },
    /// An inode was read.
    Accessed { ino: Ino, now_ns: i64 },
    /// Data or a hole was looked for.
    Seek { ino: Ino, offset: u64, hole: bool },
    /// Entries of a directory were read, from this one on.
    List { dir: Ino, cookie: u64, entries: usize },
}

/// An event and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The chip's time when it came, ns.
    pub chip_ns: u64,
    pub event: Event,
    /// Programs and erases, in order: `program native 12.3 migration`, `erase slc 5 host`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub did: Vec<String>,
}

/// What a trace tells of decisions.
pub(super) fn decisions(entries: &[TraceEntry]) -> Vec<String> {
    let told = |entry: &TraceEntry| {
        let cells = if entry.mode == CellMode::Native { "native" } else { "slc" };
        let TraceEntry { block, index, cause, .. } = entry;
        let cause = cause.name();
        match entry.op {
            TraceOp::Program => Some(format!("program {cells} {block}.{index} {cause}")),
            TraceOp::Erase => Some(format!("erase {cells} {block} {cause}")),
            TraceOp::Read | TraceOp::Barrier | TraceOp::Settle => None,
        }
    };
    entries.iter().filter_map(told).collect()
}
