//! A chip whose driver knows only reads, programs, erases and barriers: the methods that the contract provides are right.

use emulator::Chip;
use nand::CellMode::Slc;
use nand::{Cause, CellMode, Failure, Geometry, Layout, Nand, NandError, PageRead, ReadInfo};

use crate::common::{four_dies, page_contents, pattern};

struct PlainDriver(Chip);

impl Nand for PlainDriver {
    fn geometry(&self) -> &Geometry {
        self.0.geometry()
    }

    fn layout(&self, mode: CellMode) -> &Layout {
        self.0.layout(mode)
    }

    fn endurance(&self, mode: CellMode) -> u32 {
        self.0.endurance(mode)
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
        self.0.read(block, page, column, data, spare, cause)
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
        self.0.program(block, unit, mode, data, spare, cause)
    }

    fn erase(&mut self, block: u32, cause: Cause) -> Result<(), NandError> {
        self.0.erase(block, cause)
    }

    fn barrier(&mut self, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.0.barrier(failures)
    }

    fn is_bad(&self, block: u32) -> bool {
        self.0.is_bad(block)
    }

    fn mark_bad(&mut self, block: u32) -> Result<(), NandError> {
        self.0.mark_bad(block)
    }
}

#[test]
fn a_plain_driver_reads_many_pages_one_after_the_other() {
    let mut chip = PlainDriver(four_dies());
    for block in 0..3 {
        chip.program(block, 0, Slc, &pattern(block, 4096), &[], Cause::Host).unwrap();
    }
    let mut buffers = vec![(vec![0; 4096], vec![0; 64]); 4];
    let mut reads: Vec<PageRead> = [0, 1, 2, 99]
        .into_iter()
        .zip(&mut buffers)
        .map(|(block, (data, spare))| PageRead::new(block, 0, 0, data, spare, Cause::Host))
        .collect();
    chip.read_many(&mut reads);
    let outcomes: Vec<_> = reads.into_iter().map(|read| read.outcome).collect();
    assert_eq!(outcomes[3], Err(NandError::OutOfRange { block: 99, page: 0 }));
    for ((outcome, block), found) in outcomes.into_iter().zip(0..3).zip(buffers) {
        assert_eq!(outcome.map(|_| found), page_contents(&mut chip.0, block, 0));
    }
}

#[test]
fn a_plain_driver_settles_one_die_by_waiting_for_all() {
    let mut chip = PlainDriver(four_dies());
    chip.0.faults_mut().fail_program_at(1);
    for block in 0..2 {
        chip.program(block, 0, Slc, &pattern(block, 4096), &[], Cause::Host).unwrap();
    }
    assert_eq!(chip.pending_ns(0), 0, "it does not know");
    let mut failures = Vec::new();
    chip.settle(0, &mut failures).unwrap();
    assert_eq!(failures, [Failure { block: 1, unit: Some(0) }]);
    assert_eq!(chip.0.busy_dies().count(), 0);
}
