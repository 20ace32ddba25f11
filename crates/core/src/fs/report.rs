//! Figures about a mounted volume, for `info` and for tests.

use nand::Nand;

use super::Fs;
use super::types::{BlockCounts, Ended, Info};
use crate::error::{Error, Result};
use crate::format::anchor::VERSION;
use crate::format::table::Use;

impl<N: Nand> Fs<N> {
    /// Why nothing can be written, unless the mount was asked to be read-only.
    fn ended(&self) -> Option<Ended> {
        let broken = self.flash.broken.as_ref().map(|error| match error {
            Error::Nand(_) => Ended::Chip,
            Error::Corrupt { .. } => Ended::Damaged,
            _ => Ended::NoBlocks,
        });
        self.ended.or(broken)
    }

    /// Blocks by which what is stored, with the reserve, is less than the chip holds.
    fn spare_blocks(&self) -> u32 {
        let free_bytes = self.capacity_bytes().saturating_sub(self.used_bytes());
        let block_bytes = self.flash.shape.geometry.block_bytes().max(1);
        u32::try_from(free_bytes / block_bytes).unwrap_or(u32::MAX)
    }

    /// The volume's figures.
    pub fn info(&mut self) -> Result<Info> {
        let mut blocks = BlockCounts::default();
        let horizon = self.flash.horizon();
        let (mut erases_min, mut erases_total, mut erases_max) = (u32::MAX, 0, 0);
        for (number, block) in self.flash.blocks.iter() {
            let entry = block.entry;
            let count = match entry.used_as {
                Use::Bad => &mut blocks.bad,
                Use::Anchor => &mut blocks.metadata,
                _ if self.flash.blocks.reusable(number, horizon) => &mut blocks.free,
                Use::Free => &mut blocks.free,
                Use::Meta => &mut blocks.metadata,
                Use::Log if entry.native => &mut blocks.native,
                Use::Log => &mut blocks.slc,
            };
            *count += 1;
            if entry.used_as != Use::Bad {
                erases_min = erases_min.min(entry.erases);
                erases_total += u64::from(entry.erases);
                erases_max = erases_max.max(entry.erases);
            }
        }
        Ok(Info {
            volume_id: self.volume.id,
            label: self.volume.label.clone(),
            version: VERSION,
            epoch: self.volume.epoch,
            checkpoints: self.volume.checkpoint,
            clean: self.volume.clean,
            chunk_bytes: self.flash.shape.slot_bytes as u32,
            capacity_bytes: self.capacity_bytes(),
            used_bytes: self.used_bytes(),
            files: self.volume.files,
            blocks,
            erases_min: erases_min.min(erases_max),
            erases_total,
            erases_max,
            written_bytes: self.flash.written_bytes,
            reserved_bytes: self.index.reserved_chunks.saturating_mul(self.chunk_bytes()),
            failing_blocks: self.flash.blocks.failing_count(),
            fading_blocks: self.flash.blocks.fading_count(),
            spare_blocks: self.spare_blocks(),
            ended: self.ended(),
            corrupt_reads: self.flash.corrupt_reads,
            collections: self.collections,
        })
    }
}
