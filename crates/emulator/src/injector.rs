//! Faults that are chosen or caused: failures and cuts at chosen operations, bad blocks, damage, age.
//!
//! Invariants: none of it takes time, is counted as an operation, or minds whether the power is on. The rest of the
//! crate treats a fault that is caused here as if it had come about by itself.

use nand::{CellMode, NandError};

use crate::{
    array::PageArray,
    error::{EmulatorError, medium},
    fault_plan::FaultPlan,
    faults::{Corruption, FaultConfig},
    rng::{Purpose, Rng},
    table::PageState,
};

/// Blocks that makers guarantee to be good.
const GUARANTEED_BLOCKS: u32 = 2;

/// The hand of a test on a chip, behind its user's back.
pub struct FaultInjector<'a> {
    pub(crate) plan: &'a mut FaultPlan,
    pub(crate) array: &'a mut PageArray,
    pub(crate) now_ns: u64,
}

impl FaultInjector<'_> {
    /// Chooses which faults show from now on.
    pub fn set(&mut self, faults: FaultConfig) {
        self.array.store.failing = faults.medium_errno;
        self.plan.config = faults;
    }

    /// Cuts the power in the `n`th program or erase from now (reads count too where
    /// [`FaultConfig::cut_counts_reads`] says so); 0 is the next one. That call and all later ones return
    /// [`NandError::PowerOff`] until the chip is powered on again.
    pub fn cut_power_at(&mut self, n: u64) {
        self.plan.cut_in = Some(n);
    }

    /// Takes back [`FaultInjector::cut_power_at`].
    pub fn cancel_cut(&mut self) {
        self.plan.cut_in = None;
    }

    /// Makes the `n`th program from now fail; 0 is the next one. The block fails from then on.
    pub fn fail_program_at(&mut self, n: u64) {
        self.plan.fail_program_at(n);
    }

    /// Makes the `n`th erase from now fail; 0 is the next one. The block fails from then on.
    pub fn fail_erase_at(&mut self, n: u64) {
        self.plan.fail_erase_at(n);
    }

    /// Makes the next `count` programs and erases fail, whatever their block, and leave it as it was: the chip is
    /// write-protected, or its supply too weak. [`u64::MAX`]: until this is said again; 0 ends it.
    pub fn refuse_writes(&mut self, count: u64) {
        self.plan.refused_left = count;
    }

    /// Whether a program or erase is still to fail.
    pub fn failure_is_armed(&self) -> bool {
        self.plan.failure_is_armed()
    }

    /// Marks each block bad with chance `fraction`, by the chip's seed, and says which; blocks 0 and 1 stay good.
    pub fn scatter_bad_blocks(&mut self, fraction: f64) -> Result<Vec<u32>, EmulatorError> {
        let blocks: Vec<u32> = (GUARANTEED_BLOCKS..self.array.spec.geometry.blocks)
            .filter(|&block| {
                Rng::keyed(self.array.seed, Purpose::FactoryBad, [u64::from(block), 0, 0, 0]).unit() < fraction
            })
            .collect();
        self.set_factory_bad(&blocks)?;
        Ok(blocks)
    }

    /// Marks blocks bad as the factory does; blocks 0 and 1 are refused.
    pub fn set_factory_bad(&mut self, bad: &[u32]) -> Result<(), EmulatorError> {
        let blocks = self.array.spec.geometry.blocks;
        if let Some(&block) = bad.iter().find(|&&block| !(GUARANTEED_BLOCKS..blocks).contains(&block)) {
            return Err(EmulatorError::FactoryBad { block, blocks });
        }
        for &block in bad {
            self.array.table.meta_mut(block).bad = true;
            // A mark that the image cannot take is still in force, and is written with the block's next change.
            let _ = self.array.commit(block, self.now_ns);
        }
        Ok(())
    }

    /// Damages a page silently: see [`Corruption`]. An erased page is damaged as if it held `0xFF`; one that no read
    /// of succeeds is left so.
    pub fn corrupt_page(&mut self, block: u32, page: u32, corruption: Corruption) -> Result<(), NandError> {
        let array = &mut *self.array;
        array.check_page(block, page)?;
        if array.table.state(block, page) == PageState::Uncorrectable {
            return Ok(());
        }
        let mut data = vec![0xFF; array.spec.geometry.page_bytes as usize];
        let mut spare = vec![0xFF; array.spec.geometry.spare_bytes as usize];
        // Damage is done to what operations have left, not to what a cut could still undo.
        array.settle_die(array.die_of(block));
        let programmed = array.table.state(block, page).holds_bytes();
        if programmed {
            array
                .store
                .get(block, page, 0, &mut data, &mut spare)
                .map_err(|error| medium("reading the image", &error))?;
        }
        let key = [u64::from(block), u64::from(page), self.plan.config.seed, 0];
        let mut rng = Rng::keyed(array.seed, Purpose::Corrupt, key);
        match corruption {
            Corruption::FlipBits(count) => flip(&mut data, count, &mut rng),
            Corruption::FlipSpareBits(count) => flip(&mut spare, count, &mut rng),
            Corruption::Uncorrectable | Corruption::Unstable => {}
        }
        // What an erased page seems to hold is no host data.
        let keep = !programmed || array.store.holds_data(block, page);
        array.store.put(block, page, &data, &spare, keep).map_err(|error| medium("writing the image", &error))?;
        array.table.set_state(block, page, corruption.state());
        array.commit(block, self.now_ns)
    }

    /// Ages a block as if it had been erased `erases` times more after use in `mode`.
    pub fn age_block(&mut self, block: u32, mode: CellMode, erases: u32) -> Result<(), NandError> {
        self.array.check_page(block, 0)?;
        let meta = self.array.table.meta_mut(block);
        meta.erase_count = meta.erase_count.saturating_add(erases);
        meta.cycles = meta.cycles.saturating_add(erases);
        if mode == CellMode::Slc {
            meta.slc_erases = meta.slc_erases.saturating_add(erases);
        }
        self.array.commit(block, self.now_ns)
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
