//! A chip that, at each program and erase, also makes the chip that a power cut in it would leave.
//!
//! So one run of a workload gives the state after a cut at every operation, and nothing is run twice. Invariant: the
//! tapped chip itself behaves as if it were not; a torn copy has its power off and is as its own seed decides.

use emulator::{Chip, FaultConfig};
use nand::{Cause, CellMode, Failure, Geometry, Layout, Nand, NandError, ReadInfo};

/// A chip with an emulated one inside.
pub trait Emulated: Nand {
    fn emulated(&self) -> &Chip;
}

impl Emulated for Chip {
    fn emulated(&self) -> &Chip {
        self
    }
}

impl Emulated for Tap {
    fn emulated(&self) -> &Chip {
        &self.chip
    }
}

/// A chip whose power went off in one operation.
#[derive(Debug)]
pub struct Torn {
    pub chip: Chip,
    /// The operation's number since the chip was made.
    pub operation: u64,
}

/// Programs and erases after which whoever uses a tapped chip is taken for running in circles.
const FUSE_OPERATIONS: u64 = 50_000;

/// The wrapper.
pub struct Tap {
    chip: Chip,
    faults: FaultConfig,
    /// Which operations to tear: those whose number is a multiple of this; none where 0.
    every: u64,
    torn: Vec<Torn>,
    /// The operation at which the power goes off for good.
    fuse: Option<u64>,
}

impl Tap {
    /// Taps a chip; nothing is recorded yet. `faults` is what a cut does, its seed varied by operation.
    pub fn new(chip: Chip, faults: FaultConfig) -> Self {
        Self { chip, faults, every: 0, torn: Vec::new(), fuse: None }
    }

    /// Switches the power off for good after many operations, so that an endless loop ends.
    pub fn with_fuse(mut self) -> Self {
        self.fuse = Some(self.chip.operations() + FUSE_OPERATIONS);
        self
    }

    /// Tears at every operation from now on, or at none.
    pub fn record(&mut self, on: bool) {
        self.every = u64::from(on);
    }

    /// Tears only at each `every`th operation.
    pub fn record_every(&mut self, every: u64) {
        self.every = every;
    }

    /// What was torn since this was last asked.
    pub fn take_torn(&mut self) -> Vec<Torn> {
        std::mem::take(&mut self.torn)
    }

    pub fn into_chip(self) -> Chip {
        self.chip
    }

    /// The chip as a cut right now, between operations, would leave it.
    pub fn cut_now(&self) -> Result<Torn, NandError> {
        let mut torn = self.copy();
        torn.chip.cut_power()?;
        Ok(torn)
    }

    fn copy(&self) -> Torn {
        let operation = self.chip.operations();
        let mut chip = self.chip.snapshot();
        chip.set_faults(FaultConfig { seed: self.faults.seed.wrapping_add(operation), ..self.faults.clone() });
        Torn { chip, operation }
    }

    /// Tears `operation` on a copy, if it is one to be recorded.
    fn tear(&mut self, operation: impl FnOnce(&mut Chip) -> Result<(), NandError>) {
        let at = self.chip.operations();
        if self.fuse == Some(at) {
            self.chip.cut_power_at(0);
        }
        if self.every == 0 || !at.is_multiple_of(self.every) {
            return;
        }
        let mut torn = self.copy();
        torn.chip.cut_power_at(0);
        // An operation that the chip refuses for another reason than the cut tears nothing.
        if operation(&mut torn.chip) == Err(NandError::PowerOff) {
            self.torn.push(torn);
        }
    }
}

impl Nand for Tap {
    fn geometry(&self) -> &Geometry {
        self.chip.geometry()
    }

    fn layout(&self, mode: CellMode) -> &Layout {
        self.chip.layout(mode)
    }

    fn endurance(&self, mode: CellMode) -> u32 {
        self.chip.endurance(mode)
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
        self.chip.read(block, page, column, data, spare, cause)
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
        self.tear(|chip| chip.program(block, unit, mode, data, spare, cause));
        self.chip.program(block, unit, mode, data, spare, cause)
    }

    fn erase(&mut self, block: u32, cause: Cause) -> Result<(), NandError> {
        self.tear(|chip| chip.erase(block, cause));
        self.chip.erase(block, cause)
    }

    fn barrier(&mut self, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.chip.barrier(failures)
    }

    fn is_bad(&self, block: u32) -> bool {
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: u32) -> Result<(), NandError> {
        self.chip.mark_bad(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emulator::{PairedLoss, Profile, TornKind};

    fn tapped() -> Tap {
        let profile = Profile::builtin("flexfs-mlc").unwrap().with_capacity(4 << 20).unwrap();
        let faults =
            FaultConfig { torn: TornKind::Uncorrectable, paired_loss: PairedLoss::Always, ..Default::default() };
        Tap::new(Chip::new(&profile, 1).unwrap(), faults)
    }

    fn readable(chip: &mut Chip, page: u32) -> bool {
        chip.power_on();
        chip.read(2, page, 0, &mut [0; 16], &mut [], Cause::Host).is_ok()
    }

    #[test]
    fn each_operation_leaves_a_torn_copy_and_the_chip_goes_on() {
        let mut tap = tapped();
        tap.record(true);
        for unit in 0..3 {
            tap.program(2, unit, CellMode::Slc, &[7; 4096], &[], Cause::Host).unwrap();
        }
        tap.erase(3, Cause::Host).unwrap();
        let mut torn = tap.take_torn();
        assert_eq!(torn.iter().map(|torn| torn.operation).collect::<Vec<_>>(), [0, 1, 2, 3]);
        let layout = tap.layout(CellMode::Slc).clone();
        let page = |unit| layout.page(unit).unwrap();
        assert!(readable(&mut torn[2].chip, page(1)) && !readable(&mut torn[2].chip, page(2)));
        assert!(readable(&mut tap.chip, page(2)));
    }

    #[test]
    fn only_each_nth_operation_is_torn_where_asked() {
        let mut tap = tapped();
        tap.record_every(2);
        for unit in 0..4 {
            tap.program(2, unit, CellMode::Slc, &[7; 4096], &[], Cause::Host).unwrap();
        }
        assert_eq!(tap.take_torn().len(), 2);
    }
}
