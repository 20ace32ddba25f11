//! Bit errors and wearing out: the chances, and what the ECC engine makes of them.
//!
//! Errors are drawn anew at each read from the page's raw bit error rate. Invariant: nothing here changes a stored
//! byte; the data that a read returns is right or the read fails, but spare bytes that the ECC leaves out come back
//! wrong.

use nand::CellMode;

use crate::{
    array::PageArray,
    faults::{BitErrors, FaultConfig},
    rng::{Poisson, Purpose, Rng},
};

const NS_PER_DAY: f64 = 86_400e9;

/// The bit errors of a page, as one read finds them.
pub(crate) struct BitErrorDraw {
    /// Bits that the ECC engine corrected, in all codewords.
    pub(crate) corrected_bits: u64,
    /// Wrong bits of the worst codeword.
    pub(crate) worst_bits: u32,
}

impl PageArray {
    /// The part of its endurance a block has used: 1.0 at the end of its rated life, in whatever mix of modes.
    pub(crate) fn wear(&self, block: u32) -> f64 {
        let Some(meta) = self.table.blocks.get(block as usize) else { return 0.0 };
        let slc = f64::from(meta.slc_erases) / f64::from(self.spec.endurance(CellMode::Slc));
        let native = f64::from(meta.erase_count - meta.slc_erases.min(meta.erase_count))
            / f64::from(self.spec.endurance(CellMode::Native));
        slc + native
    }

    /// The raw bit error rate of a block's pages: by wear, time since its first program, and reads.
    pub(crate) fn raw_bit_error_rate(&self, block: u32, now_ns: u64) -> f64 {
        let Some(meta) = self.table.blocks.get(block as usize) else { return 0.0 };
        let rates = self.spec.profile.error_rates(meta.mode.unwrap_or(CellMode::Native));
        let wear = self.wear(block);
        let days = now_ns.saturating_sub(meta.programmed_ns) as f64 / NS_PER_DAY;
        let rate = rates.fresh * (1.0 + rates.wear * wear * wear)
            + rates.retention_per_day * (1.0 + wear) * days
            + rates.per_read * f64::from(meta.reads);
        rate.min(0.5)
    }

    /// Draws a page's bit errors, and flips those of the spare bytes that the ECC leaves out.
    pub(crate) fn draw_bit_errors(
        &self,
        block: u32,
        page: u32,
        spare: &mut [u8],
        faults: &FaultConfig,
        now_ns: u64,
    ) -> BitErrorDraw {
        let rate = self.raw_bit_error_rate(block, now_ns);
        let meta = self.table.meta(block);
        let key = [
            u64::from(block) << 32 | u64::from(page),
            u64::from(meta.erase_count) << 32 | u64::from(meta.reads),
            faults.seed,
            0,
        ];
        let mut rng = Rng::keyed(self.seed, Purpose::BitErrors, key);
        let shape = &self.spec.geometry;
        let ecc = &self.spec.profile.ecc;
        let codewords = shape.page_bytes.div_ceil(ecc.codeword_bytes);
        let covered_spare = if shape.spare_ecc { shape.spare_bytes } else { 0 };
        let bits = f64::from(8 * (shape.page_bytes + covered_spare)) / f64::from(codewords);
        let within_ecc = faults.bit_errors == BitErrors::Correctable;
        let in_codeword = Poisson::of_mean(rate * bits);
        let mut draw = BitErrorDraw { corrected_bits: 0, worst_bits: 0 };
        for _ in 0..codewords {
            let drawn = rng.poisson(in_codeword);
            let wrong = if within_ecc { drawn.min(ecc.correctable_bits) } else { drawn };
            draw.worst_bits = draw.worst_bits.max(wrong);
            if wrong <= ecc.correctable_bits {
                draw.corrected_bits += u64::from(wrong);
            }
        }
        if !shape.spare_ecc && !spare.is_empty() {
            for _ in 0..rng.poisson(Poisson::of_mean(rate * (8 * spare.len()) as f64)) {
                let bit = rng.below(8 * spare.len() as u64) as usize;
                spare[bit / 8] ^= 1 << (bit % 8);
            }
        }
        draw
    }

    /// Whether a program or an erase of a block used past its endurance fails this time.
    pub(crate) fn wears_out(&self, block: u32, operation: u64, faults: &FaultConfig) -> bool {
        if !faults.wear_failures {
            return false;
        }
        let overuse = self.wear(block) - 1.0;
        if overuse <= 0.0 {
            return false;
        }
        let erase_count = u64::from(self.table.meta(block).erase_count);
        let key = [u64::from(block), erase_count, operation, faults.seed];
        let mut rng = Rng::keyed(self.seed, Purpose::WearFailure, key);
        rng.unit() < overuse * self.spec.profile.endurance.overuse_failure
    }
}
