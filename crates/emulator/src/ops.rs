//! The operations of the chip contract: reads, program, erase, and waits for what was posted.
//!
//! Invariant: an operation that is refused (power, range, rule, medium) changes nothing but, at most, the clock. An
//! operation that is accepted is counted, timed and recorded exactly once.

use nand::{Cause, CellMode, Failure, Geometry, Layout, Nand, NandError, PageRead, ReadInfo};

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
        let mut read = PageRead::new(block, page, column, data, spare, cause);
        let done_ns = self.begin_read(&mut read);
        self.account.clock.wait_until(done_ns);
        read.outcome
    }

    fn read_many(&mut self, reads: &mut [PageRead<'_>]) {
        let done_ns = reads.iter_mut().map(|read| self.begin_read(read)).max();
        self.account.clock.wait_until(done_ns.unwrap_or(0));
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

    fn settle(&mut self, die: u32, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.check_power()?;
        self.account.settle(die);
        if self.array.has_in_flight(die as usize) {
            self.array.settle_die(die as usize);
        }
        let geometry = &self.array.spec.geometry;
        failures.extend(self.failures.extract_if(.., |failure| geometry.die_of(failure.block) == die));
        Ok(())
    }

    fn pending_ns(&self, die: u32) -> u64 {
        self.account.clock.pending_ns(die as usize)
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

    /// Does a read. When the caller has the data; now, if it is refused.
    fn begin_read(&mut self, read: &mut PageRead<'_>) -> u64 {
        match self.accept_read(read) {
            Ok(done_ns) => {
                read.outcome = self.fetch(read, done_ns);
                done_ns
            }
            Err(refusal) => {
                read.outcome = Err(refusal);
                self.now_ns()
            }
        }
    }

    /// Accounts a read, if it is one. When it will be done.
    fn accept_read(&mut self, read: &PageRead<'_>) -> Result<u64, NandError> {
        let PageRead { block, page, cause, .. } = *read;
        self.check_power()?;
        self.array.check_read(block, page, read.column, read.data.len(), read.spare.len())?;
        if self.plan.cuts_read() {
            self.lose_power(None)?;
            return Err(NandError::PowerOff);
        }
        let operation = AcceptedOperation { block, index: page, mode: self.array.mode_of(block), cause };
        let done_ns = self.account.begin_read(&self.array.spec, operation, read.data.len(), read.spare.len());
        self.array.count_read(block);
        Ok(done_ns)
    }

    /// Hands over the bytes of a page, as they are at that time.
    fn fetch(&mut self, read: &mut PageRead<'_>, now_ns: u64) -> Result<ReadInfo, NandError> {
        let PageRead { block, page, column, .. } = *read;
        let state = self.array.table.state(block, page);
        let correctable_bits = self.array.spec.profile.ecc.correctable_bits;
        if state.reads_erased() {
            read.data.fill(0xFF);
            read.spare.fill(0xFF);
            return Ok(ReadInfo::of_ecc(correctable_bits, 0));
        }
        if state == PageState::Uncorrectable {
            return Err(self.unreadable(read));
        }
        self.array
            .store
            .get(block, page, column as usize, read.data, read.spare)
            .map_err(|error| medium("reading the image", &error))?;
        if state == PageState::Unstable {
            self.array.table.set_state(block, page, PageState::Uncorrectable);
        }
        if self.plan.config.bit_errors == BitErrors::Off {
            return Ok(ReadInfo::of_ecc(correctable_bits, 0));
        }
        let draw = self.array.draw_bit_errors(block, page, read.spare, &self.plan.config, now_ns);
        self.account.counters.corrected_bits += draw.corrected_bits;
        if draw.worst_bits > correctable_bits {
            return Err(self.unreadable(read));
        }
        Ok(ReadInfo::of_ecc(correctable_bits, draw.worst_bits))
    }

    /// Waits for a block's die and lets go of its operation before.
    fn claim_die(&mut self, block: u32) -> usize {
        let die = self.array.die_of(block);
        self.account.clock.wait_for_die(die);
        self.array.settle_die(die);
        die
    }

    fn unreadable(&mut self, read: &mut PageRead<'_>) -> NandError {
        // Nobody should find the right bytes in a buffer that an error came with.
        read.data.fill(0xEE);
        read.spare.fill(0xEE);
        self.account.counters.uncorrectable_reads += 1;
        NandError::Uncorrectable { block: read.block, page: read.page }
    }
}
