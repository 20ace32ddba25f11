//! The operations of the chip contract: read, program, erase, barrier.
//!
//! Invariant: an operation that is refused (power, range, rule, medium) changes nothing but, at most, the clock. An
//! operation that is accepted is counted, timed and recorded exactly once.

use nand::{Cause, CellMode, Failure, Geometry, Layout, Nand, NandError, ReadInfo};

use crate::{
    account::AcceptedOperation, array::UnitBytes, chip::Chip, error::medium, fault_plan::OperationFate,
    faults::BitErrors, table::PageState,
};

impl Nand for Chip {
    fn geometry(&self) -> &Geometry {
        &self.array.spec.geometry
    }

    fn layout(&self, mode: CellMode) -> &Layout {
        self.array.spec.layout(mode)
    }

    fn endurance(&self, mode: CellMode) -> u32 {
        self.array.spec.endurance(mode)
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
        self.check_power()?;
        self.array.check_read(block, page, column, data.len(), spare.len())?;
        if self.plan.cuts_read() {
            self.lose_power(None)?;
            return Err(NandError::PowerOff);
        }
        let operation = AcceptedOperation { block, index: page, mode: self.array.mode_of(block), cause };
        self.account.read(&self.array.spec, operation, data.len(), spare.len());
        self.array.count_read(block);
        let state = self.array.table.state(block, page);
        let correctable_bits = self.array.spec.profile.ecc.correctable_bits;
        if state.reads_erased() {
            data.fill(0xFF);
            spare.fill(0xFF);
            return Ok(ReadInfo::of_ecc(correctable_bits, 0));
        }
        if state == PageState::Uncorrectable {
            return Err(self.unreadable(block, page, data, spare));
        }
        self.array
            .store
            .get(block, page, column as usize, data, spare)
            .map_err(|error| medium("reading the image", &error))?;
        if state == PageState::Unstable {
            self.array.table.set_state(block, page, PageState::Uncorrectable);
        }
        if self.plan.config.bit_errors == BitErrors::Off {
            return Ok(ReadInfo::of_ecc(correctable_bits, 0));
        }
        let now_ns = self.account.clock.now_ns();
        let draw = self.array.draw_bit_errors(block, page, spare, &self.plan.config, now_ns);
        self.account.counters.corrected_bits += draw.corrected_bits;
        if draw.worst_bits > correctable_bits {
            return Err(self.unreadable(block, page, data, spare));
        }
        Ok(ReadInfo::of_ecc(correctable_bits, draw.worst_bits))
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
        self.check_power()?;
        self.array.check_program(block, unit, mode, data.len(), spare.len())?;
        let die = self.claim_die(block);
        let fate = self.plan.program_fate(&self.array, block);
        let bytes = UnitBytes { data, spare, keep: cause == Cause::Metadata };
        let fails = matches!(fate, OperationFate::Fails | OperationFate::Refused);
        if fate != OperationFate::Refused {
            self.array.program(block, unit, mode, bytes, fails, self.account.clock.now_ns())?;
        }
        self.plan.count_program();
        if fate == OperationFate::PowerCut {
            self.lose_power(Some(die))?;
            return Err(NandError::PowerOff);
        }
        let operation = AcceptedOperation { block, index: unit, mode, cause };
        self.account.program(&self.array.spec, operation, data.len(), spare.len());
        if fails {
            self.account.counters.program_failures += 1;
            if self.plan.config.fail_at_once {
                return Err(NandError::ProgramFailed { block, unit });
            }
            self.failures.push(Failure { block, unit: Some(unit) });
        }
        Ok(())
    }

    fn erase(&mut self, block: u32, cause: Cause) -> Result<(), NandError> {
        self.check_power()?;
        self.array.check_erase(block)?;
        let die = self.claim_die(block);
        let fate = self.plan.erase_fate(&self.array, block);
        let operation = AcceptedOperation { block, index: 0, mode: self.array.mode_of(block), cause };
        let fails = matches!(fate, OperationFate::Fails | OperationFate::Refused);
        if fate != OperationFate::Refused {
            self.array.erase(block, fails, self.account.clock.now_ns())?;
        }
        self.plan.count_erase();
        if fate == OperationFate::PowerCut {
            self.lose_power(Some(die))?;
            return Err(NandError::PowerOff);
        }
        self.account.erase(&self.array.spec, operation);
        if fails {
            self.account.counters.erase_failures += 1;
            if self.plan.config.fail_at_once {
                return Err(NandError::EraseFailed { block });
            }
            self.failures.push(Failure { block, unit: None });
        }
        Ok(())
    }

    fn barrier(&mut self, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.check_power()?;
        self.account.barrier();
        self.array.settle();
        failures.append(&mut self.failures);
        Ok(())
    }

    fn is_bad(&self, block: u32) -> bool {
        self.array.table.blocks.get(block as usize).is_none_or(|meta| meta.bad)
    }

    fn mark_bad(&mut self, block: u32) -> Result<(), NandError> {
        self.check_power()?;
        self.array.mark_bad(block, self.account.clock.now_ns())
    }
}

impl Chip {
    fn check_power(&self) -> Result<(), NandError> {
        if self.powered { Ok(()) } else { Err(NandError::PowerOff) }
    }

    /// Waits for a block's die and lets go of its operation before.
    fn claim_die(&mut self, block: u32) -> usize {
        let die = self.array.die_of(block);
        self.account.clock.wait_for_die(die);
        self.array.settle_die(die);
        die
    }

    fn unreadable(&mut self, block: u32, page: u32, data: &mut [u8], spare: &mut [u8]) -> NandError {
        // Nobody should find the right bytes in a buffer that an error came with.
        data.fill(0xEE);
        spare.fill(0xEE);
        self.account.counters.uncorrectable_reads += 1;
        NandError::Uncorrectable { block, page }
    }
}
