//! Timing, counting and tracing of operations that were accepted.
//!
//! Invariant: an operation's cost, and what it takes of a battery, goes to the clock and to the counters in the same place, so the two never differ.

use nand::{Cause, CellMode};

use crate::{
    chip::Chip,
    trace::{TraceEntry, TraceOp},
};

impl Chip {
    pub(crate) fn account_read(
        &mut self,
        block: u32,
        page: u32,
        mode: CellMode,
        data: usize,
        spare: usize,
        cause: Cause,
    ) {
        let level = self.spec.level(page);
        let sense_ns = self.spec.read_ns(mode, level);
        let transfer_ns = self.spec.transfer_ns(data + spare);
        let die = self.spec.geometry.die_of(block) as usize;
        self.record(TraceOp::Read, block, page, mode, cause);
        self.clock.read(die, sense_ns, transfer_ns);
        let cost_ns = sense_ns + transfer_ns;
        self.counters.reads.add(mode, Some(level), cause, cost_ns);
        self.counters.flash_ns += cost_ns;
        self.counters.energy_nj += self.spec.profile.energy.mode(mode).read_nj(level);
        self.counters.read_bytes += data as u64;
        self.counters.spare_only_reads += u64::from(data == 0);
        let meta = self.table.meta_mut(block);
        meta.reads = meta.reads.saturating_add(1);
        meta.unsaved_reads = true;
    }

    pub(crate) fn account_erase(&mut self, die: usize, block: u32, mode: CellMode, cause: Cause) {
        let cost_ns = self.spec.erase_ns(mode);
        self.record(TraceOp::Erase, block, 0, mode, cause);
        self.clock.post(die, 0, cost_ns);
        self.counters.erases.add(mode, None, cause, cost_ns);
        self.counters.flash_ns += cost_ns;
        self.counters.energy_nj += self.spec.profile.energy.mode(mode).erase_nj;
    }

    #[allow(clippy::too_many_arguments, reason = "an operation has that many properties that are accounted")]
    pub(crate) fn account_program(
        &mut self,
        die: usize,
        block: u32,
        unit: u32,
        mode: CellMode,
        data: usize,
        spare: usize,
        cause: Cause,
    ) {
        let level = self.spec.layout(mode).unit_pages(unit).first().map_or(0, |&page| self.spec.level(page));
        let program_ns = self.spec.program_ns(mode, level);
        let transfer_ns = self.spec.transfer_ns(data + spare);
        self.record(TraceOp::Program, block, unit, mode, cause);
        self.clock.post(die, transfer_ns, program_ns);
        let cost_ns = program_ns + transfer_ns;
        self.counters.programs.add(mode, Some(level), cause, cost_ns);
        self.counters.flash_ns += cost_ns;
        self.counters.energy_nj += self.spec.profile.energy.mode(mode).program_nj(level);
        self.counters.programmed_bytes += data as u64;
    }

    pub(crate) fn record(&mut self, op: TraceOp, block: u32, index: u32, mode: CellMode, cause: Cause) {
        if let Some(recorder) = &mut self.recorder {
            let time_ns = self.clock.now_ns();
            recorder.record(TraceEntry { time_ns, op, block, index, mode, cause });
        }
    }
}
