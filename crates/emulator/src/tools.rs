//! What tests do to a chip behind its user's back: failures at chosen operations, bad blocks, damage, age.
//!
//! None of it takes time, is counted as an operation, or minds whether the power is on. Invariant: everything else in
//! the crate treats what these leave as if it had come about by itself.

use nand::{CellMode, NandError};

use crate::{
    chip::Chip,
    error::EmulatorError,
    faults::{Corruption, medium},
    rng::{Purpose, Rng},
    table::PageState,
};

/// Blocks that makers guarantee to be good.
const GUARANTEED_BLOCKS: u32 = 2;

impl Chip {
    /// Makes the `n`th program from now fail; 0 is the next one. The block fails from then on.
    pub fn fail_program_at(&mut self, n: u64) {
        self.armed.failing_programs.push(self.programs_done + n);
    }

    /// Makes the `n`th erase from now fail; 0 is the next one. The block fails from then on.
    pub fn fail_erase_at(&mut self, n: u64) {
        self.armed.failing_erases.push(self.erases_done + n);
    }

    /// Whether a program or erase is still to fail.
    pub fn failure_is_armed(&self) -> bool {
        let armed = &self.armed;
        armed.failing_programs.iter().any(|&at| at >= self.programs_done)
            || armed.failing_erases.iter().any(|&at| at >= self.erases_done)
    }

    /// Marks each block bad with chance `fraction`, by the chip's seed, and says which; blocks 0 and 1 stay good.
    pub fn scatter_bad_blocks(&mut self, fraction: f64) -> Result<Vec<u32>, EmulatorError> {
        let blocks: Vec<u32> = (GUARANTEED_BLOCKS..self.spec.geometry.blocks)
            .filter(|&block| Rng::keyed(self.seed, Purpose::FactoryBad, [u64::from(block), 0, 0, 0]).unit() < fraction)
            .collect();
        self.set_factory_bad(&blocks)?;
        Ok(blocks)
    }

    /// Marks blocks bad as the factory does; blocks 0 and 1 are refused.
    pub fn set_factory_bad(&mut self, bad: &[u32]) -> Result<(), EmulatorError> {
        let blocks = self.spec.geometry.blocks;
        if let Some(&block) = bad.iter().find(|&&block| !(GUARANTEED_BLOCKS..blocks).contains(&block)) {
            return Err(EmulatorError::FactoryBad { block, blocks });
        }
        for &block in bad {
            self.table.meta_mut(block).bad = true;
            // A mark that the image cannot take is still in force, and is written with the block's next change.
            let _ = self.commit(block);
        }
        Ok(())
    }

    /// Damages a page silently: see [`Corruption`]. An erased page is damaged as if it held `0xFF`; one that no read
    /// of succeeds is left so.
    pub fn corrupt_page(&mut self, block: u32, page: u32, corruption: Corruption) -> Result<(), NandError> {
        let shape = &self.spec.geometry;
        if block >= shape.blocks || page >= shape.pages_per_block {
            return Err(NandError::OutOfRange { block, page });
        }
        if self.table.state(block, page) == PageState::Uncorrectable {
            return Ok(());
        }
        // Damage is done to what operations have left, not to what a cut could still undo.
        let die = shape.die_of(block) as usize;
        let mut data = vec![0xFF; shape.page_bytes as usize];
        let mut spare = vec![0xFF; shape.spare_bytes as usize];
        self.settle_die(die);
        let programmed = self.table.state(block, page).holds_bytes();
        if programmed {
            self.store
                .get(block, page, 0, &mut data, &mut spare)
                .map_err(|error| medium("reading the image", &error))?;
        }
        let mut rng = Rng::keyed(self.seed, Purpose::Corrupt, [u64::from(block), u64::from(page), self.faults.seed, 0]);
        match corruption {
            Corruption::FlipBits(count) => flip(&mut data, count, &mut rng),
            Corruption::FlipSpareBits(count) => flip(&mut spare, count, &mut rng),
            Corruption::Uncorrectable | Corruption::Unstable => {}
        }
        // What an erased page seems to hold is no host data.
        let keep = !programmed || self.store.holds_data(block, page);
        self.store.put(block, page, &data, &spare, keep).map_err(|error| medium("writing the image", &error))?;
        self.table.set_state(block, page, corruption.state());
        self.commit(block)
    }

    /// Whether a page is truly erased: one that merely reads so after a cut is not, nor is one outside the chip.
    pub fn is_erased(&self, block: u32, page: u32) -> bool {
        let shape = &self.spec.geometry;
        block < shape.blocks && page < shape.pages_per_block && self.table.state(block, page) == PageState::Erased
    }

    /// Every page that is not [erased](Self::is_erased), as block and page.
    pub fn written_pages(&self) -> Vec<(u32, u32)> {
        let shape = &self.spec.geometry;
        let all = (0..shape.blocks).flat_map(|block| (0..shape.pages_per_block).map(move |page| (block, page)));
        all.filter(|&(block, page)| !self.is_erased(block, page)).collect()
    }

    /// Ages a block as if it had been erased `erases` times more after use in `mode`.
    pub fn age_block(&mut self, block: u32, mode: CellMode, erases: u32) -> Result<(), NandError> {
        let Some(meta) = self.table.blocks.get_mut(block as usize) else {
            return Err(NandError::OutOfRange { block, page: 0 });
        };
        meta.erase_count = meta.erase_count.saturating_add(erases);
        meta.cycles = meta.cycles.saturating_add(erases);
        if mode == CellMode::Slc {
            meta.slc_erases = meta.slc_erases.saturating_add(erases);
        }
        self.commit(block)
    }
}

/// Flips `count` different bits, or all of them.
fn flip(bytes: &mut [u8], count: u32, rng: &mut Rng) {
    let bits = 8 * bytes.len() as u64;
    let mut flipped = std::collections::BTreeSet::new();
    while (flipped.len() as u64) < u64::from(count).min(bits) {
        let bit = rng.below(bits);
        if flipped.insert(bit) {
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }
}
