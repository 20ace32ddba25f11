//! Room for the chunks of a write that follow the first: as long as nothing would be done for room, it is not worked out
//! again.
//!
//! Invariant: a call to make room that is left out would have changed nothing but the number up to which callers have paid.
//! Native blocks that become free meanwhile are counted by the next one.

use nand::Nand;

use super::Store;
use super::records::Records;
use crate::error::Result;
use crate::format::inode::Ino;
use crate::manage::pace::{self, Pace, SteadyPace};
use crate::policy::budget::Call;

/// Chunks for which room is made at once, at most.
const CHUNKS_MAX: u64 = 64;
/// Times its own length that a chunk takes of the space, at most: nodes come with it.
const CHUNK_TAKES_MAX: u64 = 2;

/// Room that was made for several chunks of one call.
#[derive(Clone, Copy, Default)]
pub struct RoomAhead {
    chunks: u64,
    pace: Pace,
    opened_blocks: u32,
    failed_blocks: u32,
    slc_blocks: u32,
}

impl RoomAhead {
    /// Room for so many chunks that come next, or for fewer.
    fn of<N: Nand>(store: &Store<N>, chunks: u64) -> Self {
        let records = &store.records;
        if chunks == 0 {
            return Self::default();
        }
        let space = records.space();
        if !space.heads_have_room(Call::CHANGE) {
            return Self::default();
        }
        let Some(SteadyPace { pace, pages }) = pace::steady_pace(&store.look(Call::CHANGE), &records.manager) else {
            return Self::default();
        };
        // Chunks that wait in memory are written before these.
        let steady_chunks = pages.saturating_sub(records.buffer.dirty_count() as u64);
        let spare_chunks = (space.free_bytes() / (CHUNK_TAKES_MAX * records.chunk_bytes())).saturating_sub(1);
        let chunks = chunks.min(CHUNKS_MAX).min(steady_chunks).min(spare_chunks);
        let (opened_blocks, failed_blocks) = (records.flash().numbers().opened(), space.failed_blocks);
        let slc_blocks = records.flash().blocks().slc_count();
        Self { chunks, pace, opened_blocks, failed_blocks, slc_blocks }
    }

    /// Whether there is room for one chunk more.
    fn lasts<N: Nand>(&self, records: &Records<N>) -> bool {
        self.chunks > 0
            && records.flash().numbers().opened() == self.opened_blocks
            && records.flash().blocks().slc_count() == self.slc_blocks
            && records.flash().blocks().failed_count() == self.failed_blocks
            && records.space().heads_have_room(Call::CHANGE)
    }

    /// Before a chunk of a write, behind which `more_chunks` follow: makes room in the store, unless it was made before.
    pub fn begin_chunk<N: Nand>(
        &mut self,
        store: &mut Store<N>,
        (ino, chunk): (Ino, u64),
        bytes: u64,
        more_chunks: u64,
    ) -> Result<()> {
        if self.lasts(&store.records) {
            self.chunks -= 1;
            self.pace.seq = store.records.flash().numbers().next();
            store.records.manager.heard_of_debt(self.pace, 0);
            return Ok(());
        }
        store.begin(Call::CHANGE)?;
        store.records.chunks(ino).need_room(chunk, bytes)?;
        *self = Self::of(store, more_chunks);
        Ok(())
    }
}
