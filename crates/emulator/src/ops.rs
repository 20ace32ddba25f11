//! The operations of the chip contract: read, program, erase, barrier, and the rules they keep.
//!
//! Invariant: an operation that is refused (range, rule, power, medium) changes nothing but, at most, the clock; one
//! that is accepted is counted, timed and recorded exactly once.

use nand::{Cause, CellMode, Failure, Geometry, Layout, Nand, NandError, ReadInfo};

use crate::{
    chip::{Chip, InFlight},
    faults::{BitErrors, medium},
    table::{PageState, Saved},
    trace::TraceOp,
};

/// What an operation meets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Succeeds,
    Fails,
    PowerCut,
}

/// What a unit is programmed with.
struct UnitBytes<'a> {
    data: &'a [u8],
    spare: &'a [u8],
    /// Whether a chip without host data keeps `data` too.
    keep: bool,
}

impl Nand for Chip {
    fn geometry(&self) -> &Geometry {
        &self.spec.geometry
    }

    fn layout(&self, mode: CellMode) -> &Layout {
        self.spec.layout(mode)
    }

    fn endurance(&self, mode: CellMode) -> u32 {
        self.spec.endurance(mode)
    }

    fn read(
        &mut self,
        block: u32,
        page: u32,
        column: u32,
        data: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<ReadInfo, NandError> {
        self.check_read(block, page, column, data.len(), spare.len())?;
        if self.faults.cut_counts_reads && self.armed.cut_now() {
            self.lose_power(None)?;
            return Err(NandError::PowerOff);
        }
        let mode = self.table.meta(block).mode.unwrap_or(CellMode::Native);
        self.account_read(block, page, mode, data.len(), spare.len(), cause);
        let state = self.table.state(block, page);
        let correctable_bits = self.spec.profile.ecc.correctable_bits;
        if state.reads_erased() {
            data.fill(0xFF);
            spare.fill(0xFF);
            return Ok(ReadInfo { corrected_bits: 0, correctable_bits });
        }
        if state == PageState::Uncorrectable {
            return Err(self.unreadable(block, page, data, spare));
        }
        self.store
            .get(block, page, column as usize, data, spare)
            .map_err(|error| medium("reading the image", &error))?;
        if state == PageState::Unstable {
            self.table.set_state(block, page, PageState::Uncorrectable);
            if !self.store.is_read_only() {
                self.commit(block)?;
            }
        }
        if self.faults.bit_errors == BitErrors::Off {
            return Ok(ReadInfo { corrected_bits: 0, correctable_bits });
        }
        match self.sense_errors(block, page, mode, spare) {
            Some(corrected_bits) => Ok(ReadInfo { corrected_bits, correctable_bits }),
            None => Err(self.unreadable(block, page, data, spare)),
        }
    }

    fn program(
        &mut self,
        block: u32,
        unit: u32,
        mode: CellMode,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<(), NandError> {
        self.check_program(block, unit, mode, data.len(), spare.len())?;
        let die = self.claim_die(block);
        let fate = self.program_fate(block);
        let before = *self.table.meta(block);
        let bytes = UnitBytes { data, spare, keep: cause == Cause::Metadata };
        self.apply_program(block, unit, mode, bytes, fate == Fate::Fails)?;
        self.programs_done += 1;
        self.in_flight[die] = Some(InFlight::Program { block, unit, mode, before });
        if fate == Fate::PowerCut {
            self.lose_power(Some(die))?;
            return Err(NandError::PowerOff);
        }
        self.account_program(die, block, unit, mode, data.len(), spare.len(), cause);
        if fate == Fate::Fails {
            self.counters.program_failures += 1;
            if self.faults.fail_at_once {
                return Err(NandError::ProgramFailed { block, unit });
            }
            self.failures.push(Failure { block, unit: Some(unit) });
        }
        Ok(())
    }

    fn erase(&mut self, block: u32, cause: Cause) -> Result<(), NandError> {
        self.check_block(block, 0)?;
        if self.table.meta(block).bad {
            return Err(NandError::Misuse { block, unit: 0, rule: "the block is bad" });
        }
        let die = self.claim_die(block);
        let fate = self.erase_fate(block);
        let mode = self.table.meta(block).mode.unwrap_or(CellMode::Native);
        self.apply_erase(die, block, mode, fate == Fate::Fails)?;
        self.erases_done += 1;
        if fate == Fate::PowerCut {
            self.lose_power(Some(die))?;
            return Err(NandError::PowerOff);
        }
        self.account_erase(die, block, mode, cause);
        if fate == Fate::Fails {
            self.counters.erase_failures += 1;
            if self.faults.fail_at_once {
                return Err(NandError::EraseFailed { block });
            }
            self.failures.push(Failure { block, unit: None });
        }
        Ok(())
    }

    fn barrier(&mut self, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        if !self.powered {
            return Err(NandError::PowerOff);
        }
        self.clock.barrier();
        for die in 0..self.in_flight.len() {
            self.settle_die(die);
        }
        failures.append(&mut self.failures);
        self.counters.barriers += 1;
        self.record(TraceOp::Barrier, 0, 0, CellMode::Native, Cause::Host);
        Ok(())
    }

    fn is_bad(&self, block: u32) -> bool {
        self.table.blocks.get(block as usize).is_none_or(|meta| meta.bad)
    }

    fn mark_bad(&mut self, block: u32) -> Result<(), NandError> {
        self.check_block(block, 0)?;
        let was_bad = std::mem::replace(&mut self.table.meta_mut(block).bad, true);
        self.commit(block).inspect_err(|_| self.table.meta_mut(block).bad = was_bad)
    }
}

impl Chip {
    fn check_block(&self, block: u32, page: u32) -> Result<(), NandError> {
        if !self.powered {
            return Err(NandError::PowerOff);
        }
        if block >= self.spec.geometry.blocks {
            return Err(NandError::OutOfRange { block, page });
        }
        Ok(())
    }

    fn check_read(&self, block: u32, page: u32, column: u32, data: usize, spare: usize) -> Result<(), NandError> {
        self.check_block(block, page)?;
        let shape = &self.spec.geometry;
        let fits = page < shape.pages_per_block
            && (column as usize).saturating_add(data) <= shape.page_bytes as usize
            && spare <= shape.spare_bytes as usize;
        if fits { Ok(()) } else { Err(NandError::OutOfRange { block, page }) }
    }

    fn check_program(&self, block: u32, unit: u32, mode: CellMode, data: usize, spare: usize) -> Result<(), NandError> {
        let layout = self.spec.layout(mode);
        let pages = layout.unit_pages(unit);
        let page = pages.first().copied().unwrap_or(unit);
        self.check_block(block, page)?;
        let (data_bytes, spare_bytes) = self.spec.unit_bytes(mode);
        let spare_fits = spare == spare_bytes || (pages.len() == 1 && spare < spare_bytes);
        if pages.is_empty() || data != data_bytes || !spare_fits {
            return Err(NandError::OutOfRange { block, page });
        }
        let meta = self.table.meta(block);
        let rule = if meta.bad {
            "the block is bad"
        } else if meta.mode.is_some_and(|set| set != mode) {
            "a block keeps one mode from erase to erase"
        } else if unit < meta.next_unit {
            "units are programmed in ascending order"
        } else if pages.iter().any(|&page| !self.table.state(block, page).reads_erased()) {
            "the page is not erased"
        } else {
            return Ok(());
        };
        Err(NandError::Misuse { block, unit, rule })
    }

    /// Waits for a block's die and lets go of what it did before.
    fn claim_die(&mut self, block: u32) -> usize {
        let die = self.spec.geometry.die_of(block) as usize;
        self.clock.wait_for_die(die);
        self.settle_die(die);
        die
    }

    /// A die's latest operation has ended and can no longer be undone.
    pub(crate) fn settle_die(&mut self, die: usize) {
        if let Some(InFlight::Erase { block, erased, .. }) = self.in_flight[die].take() {
            self.store.forget(block, erased);
        }
    }

    fn program_fate(&mut self, block: u32) -> Fate {
        if self.armed.cut_now() {
            return Fate::PowerCut;
        }
        let chosen = self.armed.failing_programs.contains(&self.programs_done);
        if chosen || self.table.meta(block).failed || self.wears_out(block, self.programs_done) {
            return Fate::Fails;
        }
        Fate::Succeeds
    }

    fn erase_fate(&mut self, block: u32) -> Fate {
        if self.armed.cut_now() {
            return Fate::PowerCut;
        }
        let chosen = self.armed.failing_erases.contains(&self.erases_done);
        if chosen || self.table.meta(block).failed || self.wears_out(block, self.erases_done) {
            return Fate::Fails;
        }
        Fate::Succeeds
    }

    /// Puts a unit's bytes and states in place, or, where the medium refuses, nothing at all.
    fn apply_program(
        &mut self,
        block: u32,
        unit: u32,
        mode: CellMode,
        bytes: UnitBytes<'_>,
        fails: bool,
    ) -> Result<(), NandError> {
        let UnitBytes { data, spare, keep } = bytes;
        let saved = self.store.is_image().then(|| self.table.save(block));
        let page_bytes = self.spec.geometry.page_bytes as usize;
        let spare_bytes = self.spec.geometry.spare_bytes as usize;
        let pages = self.spec.layout(mode).unit_pages(unit);
        for (index, &page) in pages.iter().enumerate() {
            let page_data = &data[index * page_bytes..(index + 1) * page_bytes];
            let page_spare =
                &spare[(index * spare_bytes).min(spare.len())..((index + 1) * spare_bytes).min(spare.len())];
            self.store
                .put(block, page, page_data, page_spare, keep)
                .map_err(|error| medium("writing the image", &error))?;
        }
        for &page in pages {
            let lost = fails || self.table.state(block, page) == PageState::Weak;
            let state = if lost { PageState::Uncorrectable } else { PageState::Programmed };
            self.table.set_state(block, page, state);
        }
        let now_ns = self.clock.now_ns();
        let meta = self.table.meta_mut(block);
        if meta.mode.is_none() {
            meta.mode = Some(mode);
            meta.cycles = meta.cycles.saturating_add(1);
            meta.programmed_ns = now_ns;
        }
        meta.next_unit = unit + 1;
        meta.failed |= fails;
        self.commit_or_restore(block, saved.as_ref())
    }

    /// Erases a block and keeps what it held as in flight, or, where the medium refuses, does nothing.
    fn apply_erase(&mut self, die: usize, block: u32, mode: CellMode, fails: bool) -> Result<(), NandError> {
        let saved = self.table.save(block);
        let meta = self.table.meta_mut(block);
        if fails {
            meta.failed = true;
            return self.commit_or_restore(block, Some(&saved));
        }
        meta.erase_count = meta.erase_count.saturating_add(1);
        if mode == CellMode::Slc {
            meta.slc_erases = meta.slc_erases.saturating_add(1);
        }
        meta.mode = None;
        meta.next_unit = 0;
        meta.reads = 0;
        meta.programmed_ns = 0;
        self.table.states_mut(block).fill(PageState::Erased);
        self.commit_or_restore(block, Some(&saved))?;
        let erased = self.store.erase(block);
        self.in_flight[die] = Some(InFlight::Erase { block, saved, erased });
        Ok(())
    }

    fn commit_or_restore(&mut self, block: u32, saved: Option<&Saved>) -> Result<(), NandError> {
        let result = self.commit(block);
        if let (Err(_), Some(saved)) = (&result, saved) {
            self.table.restore(block, saved);
        }
        result
    }

    /// Makes a block's entry in the table last.
    pub(crate) fn commit(&mut self, block: u32) -> Result<(), NandError> {
        if !self.store.is_image() && self.store.failing.is_none() {
            return Ok(());
        }
        let now_ns = self.clock.now_ns();
        self.store
            .commit(block, self.table.meta(block), self.table.states(block), now_ns)
            .map_err(|error| medium("writing the image", &error))?;
        self.table.meta_mut(block).unsaved_reads = false;
        Ok(())
    }

    fn unreadable(&mut self, block: u32, page: u32, data: &mut [u8], spare: &mut [u8]) -> NandError {
        // Nobody should find the right bytes in a buffer that an error came with.
        data.fill(0xEE);
        spare.fill(0xEE);
        self.counters.uncorrectable_reads += 1;
        NandError::Uncorrectable { block, page }
    }
}
