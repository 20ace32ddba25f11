//! Timing, counting and tracing of operations that were accepted.
//!
//! Invariant: an operation's cost, and the energy it takes of a battery, goes to the clock and to the counters in the
//! same place, so the two never differ.

use nand::{Cause, CellMode};

use crate::{
    clock::Clock,
    counters::Counters,
    spec::Spec,
    trace::{Recorder, TraceEntry, TraceOp},
};

/// Where, how and for which cause an operation was done.
#[derive(Clone, Copy)]
pub(crate) struct AcceptedOperation {
    pub(crate) block: u32,
    /// The page read, or the unit programmed; 0 for others.
    pub(crate) index: u32,
    pub(crate) mode: CellMode,
    pub(crate) cause: Cause,
}

/// The costs of operations: the clock, the counters and, while it is recorded, the trace.
#[derive(Clone, Debug)]
pub(crate) struct OperationAccount {
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    /// How long operations have kept each die busy, as the profile prices them: together the flash time.
    pub(crate) busy_ns: Vec<u64>,
    /// When the counters began.
    pub(crate) counted_from_ns: u64,
    pub(crate) recorder: Option<Recorder>,
}

impl OperationAccount {
    /// Nothing is counted, and every die is idle.
    pub(crate) fn new(spec: &Spec, now_ns: u64) -> Self {
        let dies = spec.geometry.dies();
        let clock = Clock::new(dies, spec.geometry.channels, now_ns);
        Self {
            clock,
            counters: Counters::default(),
            busy_ns: vec![0; dies as usize],
            counted_from_ns: now_ns,
            recorder: None,
        }
    }

    /// Starts counting from zero.
    pub(crate) fn reset_counters(&mut self) {
        self.counters = Counters::default();
        self.busy_ns.fill(0);
        self.counted_from_ns = self.clock.now_ns();
    }

    /// Accounts a read of this many data and spare bytes. When the caller has the data, if it waits for them.
    pub(crate) fn begin_read(&mut self, spec: &Spec, operation: AcceptedOperation, data: usize, spare: usize) -> u64 {
        let AcceptedOperation { block, index, mode, cause } = operation;
        let level = spec.level(index);
        let sense_ns = spec.read_ns(mode, level);
        let transfer_ns = spec.transfer_ns(data + spare);
        let die = spec.geometry.die_of(block) as usize;
        self.record(TraceOp::Read, operation);
        let done_ns = self.clock.begin_read(die, sense_ns, transfer_ns);
        let cost_ns = sense_ns + transfer_ns;
        self.counters.reads.add(mode, Some(level), cause, cost_ns);
        self.count_busy(die, cost_ns);
        self.counters.energy_nj += spec.profile.energy.mode(mode).read_nj(level);
        self.counters.read_bytes += data as u64;
        self.counters.spare_only_reads += u64::from(data == 0);
        done_ns
    }

    pub(crate) fn erase(&mut self, spec: &Spec, operation: AcceptedOperation) {
        let AcceptedOperation { block, mode, cause, .. } = operation;
        let cost_ns = spec.erase_ns(mode);
        self.record(TraceOp::Erase, operation);
        let die = spec.geometry.die_of(block) as usize;
        self.clock.post(die, 0, cost_ns);
        self.counters.erases.add(mode, None, cause, cost_ns);
        self.count_busy(die, cost_ns);
        self.counters.energy_nj += spec.profile.energy.mode(mode).erase_nj;
    }

    /// Accounts a program of this many data and spare bytes.
    pub(crate) fn program(&mut self, spec: &Spec, operation: AcceptedOperation, data: usize, spare: usize) {
        let AcceptedOperation { block, index, mode, cause } = operation;
        let level = spec.layout(mode).unit_pages(index).first().map_or(0, |&page| spec.level(page));
        let program_ns = spec.program_ns(mode, level);
        let transfer_ns = spec.transfer_ns(data + spare);
        self.record(TraceOp::Program, operation);
        let die = spec.geometry.die_of(block) as usize;
        self.clock.post(die, transfer_ns, program_ns);
        let cost_ns = program_ns + transfer_ns;
        self.counters.programs.add(mode, Some(level), cause, cost_ns);
        self.count_busy(die, cost_ns);
        self.counters.energy_nj += spec.profile.energy.mode(mode).program_nj(level);
        self.counters.programmed_bytes += data as u64;
    }

    /// Waits for every die.
    pub(crate) fn barrier(&mut self) {
        self.clock.barrier();
        self.counters.barriers += 1;
        let nowhere = AcceptedOperation { block: 0, index: 0, mode: CellMode::Native, cause: Cause::Host };
        self.record(TraceOp::Barrier, nowhere);
    }

    /// Waits for one die.
    pub(crate) fn settle(&mut self, die: u32) {
        self.clock.wait_for_die(die as usize);
        self.counters.settles += 1;
        let there = AcceptedOperation { block: 0, index: die, mode: CellMode::Native, cause: Cause::Host };
        self.record(TraceOp::Settle, there);
    }

    fn count_busy(&mut self, die: usize, cost_ns: u64) {
        self.counters.flash_ns += cost_ns;
        if let Some(busy_ns) = self.busy_ns.get_mut(die) {
            *busy_ns += cost_ns;
        }
    }

    fn record(&mut self, op: TraceOp, operation: AcceptedOperation) {
        if let Some(recorder) = &mut self.recorder {
            let AcceptedOperation { block, index, mode, cause } = operation;
            recorder.record(TraceEntry { time_ns: self.clock.now_ns(), op, block, index, mode, cause });
        }
    }
}
