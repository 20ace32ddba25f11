//! A chip that counts what is asked of it, so that a file system that runs in circles is caught where it does; and a volume's
//! chip, which is metered, or a drive on one.
//!
//! Invariant: apart from the panic at the end of the allowance it behaves as the chip inside.

use emulator::Chip;
use ftl::BlockMapDrive;
use nand::{Cause, CellMode, Failure, Nand, NandError, NandWrapper, PageRead, ReadInfo};
use torture::crash::VolumeOver;

/// Operations of the chip that one call may take. The volumes have a few hundred pages; a check reads each some times.
const OPERATIONS_PER_CALL: u64 = 30_000;

/// What a volume is over: a metered chip, or a drive on one.
pub(crate) enum Metered {
    Bare(MeteredChip),
    Drive(Box<BlockMapDrive<MeteredChip>>),
}

impl Metered {
    pub(crate) fn new(chip: Chip) -> Self {
        Self::Bare(MeteredChip::new(chip))
    }

    /// The chip with what is over it left out.
    fn into_bare(self) -> MeteredChip {
        match self {
            Self::Bare(chip) => chip,
            Self::Drive(drive) => drive.into_chip(),
        }
    }

    /// What is found after the power was off.
    pub(crate) fn restarted(self, over: VolumeOver) -> Result<Self, Self> {
        match over {
            VolumeOver::Chip => Ok(self),
            VolumeOver::Codesign => match BlockMapDrive::start(self.into_bare()) {
                Ok(drive) => Ok(Self::Drive(Box::new(drive))),
                Err((chip, error)) => {
                    assert!(!error.to_string().is_empty());
                    Err(Self::Bare(chip))
                }
            },
        }
    }

    fn metered_mut(&mut self) -> &mut MeteredChip {
        match self {
            Self::Bare(chip) => chip,
            Self::Drive(drive) => drive.chip_mut(),
        }
    }

    /// Another call begins.
    pub(crate) fn refill(&mut self) {
        self.metered_mut().refill();
    }

    pub(crate) fn chip(&self) -> &Chip {
        match self {
            Self::Bare(chip) => &chip.chip,
            Self::Drive(drive) => &drive.chip().chip,
        }
    }

    pub(crate) fn chip_mut(&mut self) -> &mut Chip {
        &mut self.metered_mut().chip
    }
}

impl NandWrapper for Metered {
    type Inner = dyn Nand;

    fn inner(&self) -> &Self::Inner {
        match self {
            Self::Bare(chip) => chip,
            Self::Drive(drive) => &**drive,
        }
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        match self {
            Self::Bare(chip) => chip,
            Self::Drive(drive) => &mut **drive,
        }
    }
}

/// The wrapper.
pub(crate) struct MeteredChip {
    chip: Box<Chip>,
    left: u64,
}

impl MeteredChip {
    pub(crate) fn new(chip: Chip) -> Self {
        Self { chip: Box::new(chip), left: OPERATIONS_PER_CALL }
    }

    /// Another call begins.
    pub(crate) fn refill(&mut self) {
        self.left = OPERATIONS_PER_CALL;
    }

    fn spend(&mut self) {
        assert!(self.left > 0, "one call took {OPERATIONS_PER_CALL} operations of the chip and was not done");
        self.left -= 1;
    }
}

impl NandWrapper for MeteredChip {
    type Inner = Chip;

    fn inner(&self) -> &Chip {
        &self.chip
    }

    fn inner_mut(&mut self) -> &mut Chip {
        &mut self.chip
    }

    fn pass_read(
        &mut self,
        block: u32,
        page: u32,
        column: u32,
        data: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<ReadInfo, NandError> {
        self.spend();
        self.chip.read(block, page, column, data, spare, cause)
    }

    fn pass_program(
        &mut self,
        block: u32,
        unit: u32,
        mode: CellMode,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<(), NandError> {
        self.spend();
        self.chip.program(block, unit, mode, data, spare, cause)
    }

    fn pass_erase(&mut self, block: u32, cause: Cause) -> Result<(), NandError> {
        self.spend();
        self.chip.erase(block, cause)
    }

    fn pass_barrier(&mut self, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.spend();
        self.chip.barrier(failures)
    }

    fn pass_read_many(&mut self, reads: &mut [PageRead<'_>]) {
        reads.iter().for_each(|_| self.spend());
        self.chip.read_many(reads);
    }

    fn pass_settle(&mut self, die: u32, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.spend();
        self.chip.settle(die, failures)
    }
}
