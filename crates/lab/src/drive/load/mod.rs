//! What is asked of a drive: files, the writes that make them, and requests that are drawn like those of a trace.
//!
//! Invariant: what is drawn depends on the trace, the seed and the number of the draw alone, so that every store is asked for
//! the same.

mod bursts;
mod draws;
mod files;
mod page_counts;
mod traces;

pub use bursts::{BURSTS, BurstShape, BurstSource};
pub use draws::{RequestSource, first_writes, overwrites};
pub use files::FileSizes;
pub use page_counts::PageCounts;
pub use traces::{OffsetDraw, TRACES, TraceShape};

use super::CommandKind;

/// Pages of a file that a request reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSpan {
    pub file: u32,
    /// The first one, in the file.
    pub offset: u32,
    pub pages: u32,
    /// The first one, of the pages of all files.
    pub first: u32,
}

/// A request of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRequest {
    pub kind: CommandKind,
    pub span: PageSpan,
}

/// What a seed is used for: each has random numbers of its own.
#[derive(Clone, Copy)]
enum DiceStream {
    Files,
    FirstWrites,
    Popularity,
    Overwrites,
    Requests,
}

fn dice(seed: u64, stream: DiceStream) -> rand_chacha::ChaCha8Rng {
    use rand::SeedableRng;
    let mut dice = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    dice.set_stream(stream as u64);
    dice
}
