//! The chunks of a file on each channel, as the rule asks for them that chooses the channel of the next.
//!
//! Invariant: a chunk counts where it has a slot of its own; a chunk that is about to be replaced counts no more.

use alloc::vec;

use nand::Nand;

use super::chunks::FileChunks;
use super::file_spread::PageSpread;
use super::log::Placement;
use super::place::{SlotContent, place};
use crate::error::Result;
use crate::format::key::offset_of;
use crate::format::place::{Place, Slot};
use crate::format::tag::CHUNKS_MAX;
use crate::policy::channel::{CHANNELS_MAX, ChannelRule, WINDOW_PAGES};
use crate::policy::place::Write;

impl<N: Nand> FileChunks<'_, N> {
    /// Where a chunk goes that a caller wrote.
    #[inline]
    pub(super) fn place_of_data(&mut self, chunk: u64, write: &Write) -> Result<Placement> {
        let channel = self.records.manager.policy().channel();
        if self.records.flash().slots().lanes().are_several() && channel.asks_for_channels() {
            let spread = self.spread(chunk, channel)?;
            return Ok(place(self.records, write, SlotContent::Data(self.ino, Some(&spread))));
        }
        Ok(place(self.records, write, SlotContent::Data(self.ino, None)))
    }

    /// The file's chunks on each channel, without this chunk, as far as a rule asks for them.
    fn spread(&mut self, chunk: u64, channel: ChannelRule) -> Result<PageSpread> {
        let mut spread = PageSpread { of_file: [0; CHANNELS_MAX], near: [0; CHANNELS_MAX] };
        if channel.asks_for_neighbours() {
            let (from, to) = (chunk.saturating_sub(WINDOW_PAGES), (chunk + WINDOW_PAGES + 1).min(CHUNKS_MAX));
            self.count_pages(from, chunk, &mut spread.near)?;
            self.count_pages(chunk + 1, to, &mut spread.near)?;
        } else if channel.asks_for_file() {
            if !self.records.spreads.counts(self.ino) {
                let mut counts = vec![0; self.records.spreads.channels()].into_boxed_slice();
                self.count_pages(0, CHUNKS_MAX, &mut counts)?;
                self.records.spreads.remember(self.ino, counts);
            }
            // The replaced page is given up before the new page is placed.
            let replaced = self.block_of(chunk)?.map(|block| self.records.spreads.channel_of(block));
            let counts = self.records.spreads.pages(self.ino);
            for (number, (to, &count)) in spread.of_file.iter_mut().zip(counts.into_iter().flatten()).enumerate() {
                *to = count.saturating_sub(u32::from(replaced == Some(number)));
            }
        }
        Ok(spread)
    }

    /// The block in which a chunk has a slot of its own.
    pub(super) fn block_of(&mut self, chunk: u64) -> Result<Option<u32>> {
        match self.place(chunk)? {
            Some(Place::Run { slot, .. }) => Ok(Some(self.records.flash().shape().block_of(slot))),
            _ => Ok(None),
        }
    }

    /// Counts the chunks `from..to` that have slots of their own by channel.
    fn count_pages(&mut self, from: u64, to: u64, counts: &mut [u32]) -> Result<()> {
        let mut next = from;
        while next < to {
            let Some(entry) = self.records.next(self.key(next), self.key(to))? else { break };
            if let Place::Run { slot, count } = entry.place {
                for slot in slot..slot + Slot::from(count) {
                    let block = self.records.flash().shape().block_of(slot);
                    let channel = self.records.spreads.channel_of(block);
                    if let Some(count) = counts.get_mut(channel) {
                        *count += 1;
                    }
                }
            }
            next = offset_of(entry.key) + entry.place.span();
        }
        Ok(())
    }

    /// A caller begins to write so many bytes at this offset.
    pub fn begin_request(&mut self, offset: u64, bytes: u64) {
        if self.records.flash().slots().lanes().are_several() {
            let (chunk_bytes, end) = (self.records.chunk_bytes(), offset.saturating_add(bytes));
            self.records.log.begin_request(end.div_ceil(chunk_bytes).saturating_sub(offset / chunk_bytes));
        }
    }
}
