//! The trait of a chip, its errors, and the causes its operations are counted under.

use alloc::vec::Vec;

use crate::{CellMode, Geometry, Layout};

/// Why an operation is done; chips count operations by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// Data a caller reads or writes.
    Host,
    /// The file system's own structures: nodes, index, tables, checkpoints, mount.
    Metadata,
    /// Moving data from SLC blocks to native ones.
    Migration,
    /// Collecting what is still valid in a block that is mostly stale.
    Gc,
    /// Evening out erase counts, and writing anew what fades.
    WearLevel,
}

impl Cause {
    /// Every cause, in the order counters are kept.
    pub const ALL: [Cause; 5] = [Cause::Host, Cause::Metadata, Cause::Migration, Cause::Gc, Cause::WearLevel];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Host => "host",
            Cause::Metadata => "metadata",
            Cause::Migration => "migration",
            Cause::Gc => "gc",
            Cause::WearLevel => "wear_level",
        }
    }
}

/// What a read found out besides the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadInfo {
    /// Bits the ECC engine corrected, the worst of the page's codewords.
    pub corrected_bits: u32,
    /// Bits it could have corrected in each codeword.
    pub correctable_bits: u32,
    /// Corrected bits from which the page is to be written anew elsewhere, before they become too many.
    pub refresh_bits: u32,
}

impl ReadInfo {
    /// A read of an ECC that corrects so many bits, of which half are reason to write a page anew.
    pub fn of_ecc(correctable_bits: u32, corrected_bits: u32) -> Self {
        Self { corrected_bits, correctable_bits, refresh_bits: correctable_bits.div_ceil(2) }
    }

    /// Whether the page is to be written anew elsewhere.
    pub fn is_strained(&self) -> bool {
        self.corrected_bits > 0 && self.corrected_bits >= self.refresh_bits
    }
}

/// A posted operation that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The erase block it was done on.
    pub block: u32,
    /// The program unit, or `None` for an erase.
    pub unit: Option<u32>,
}

/// Why a chip refused or failed an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NandError {
    /// More bits were wrong than the ECC engine can correct; the buffers hold nothing of use.
    #[error("block {block} page {page}: uncorrectable")]
    Uncorrectable { block: u32, page: u32 },
    /// A program failed: the block has gone bad, what it held before is still readable.
    #[error("block {block} unit {unit}: program failed")]
    ProgramFailed { block: u32, unit: u32 },
    /// An erase failed: the block has gone bad.
    #[error("block {block}: erase failed")]
    EraseFailed { block: u32 },
    /// The address lies outside the chip, or a buffer does not fit the page.
    #[error("block {block} page {page}: outside the chip, or a buffer of the wrong size")]
    OutOfRange { block: u32, page: u32 },
    /// The caller broke the programming rules (order, mode, a page programmed twice).
    #[error("block {block} unit {unit}: programming rule broken: {rule}")]
    Misuse { block: u32, unit: u32, rule: &'static str },
    /// The power is off: nothing works until the chip is powered on again.
    #[error("the chip has no power")]
    PowerOff,
    /// The medium under an emulated chip failed, or the device driver did (an `errno` where there is one).
    #[error("the chip's medium failed: {what} (errno {errno})")]
    Medium { what: &'static str, errno: i32 },
}

/// A page read, one of several that may overlap.
#[derive(Debug)]
pub struct PageRead<'a> {
    pub block: u32,
    pub page: u32,
    /// The first byte of the page that is read.
    pub column: u32,
    pub data: &'a mut [u8],
    pub spare: &'a mut [u8],
    pub cause: Cause,
    /// The answer to the read; [`NandError::PowerOff`] until there is one.
    pub outcome: Result<ReadInfo, NandError>,
}

impl<'a> PageRead<'a> {
    /// A read that is still to be done, with the arguments of [`Nand::read`].
    pub fn new(block: u32, page: u32, column: u32, data: &'a mut [u8], spare: &'a mut [u8], cause: Cause) -> Self {
        Self { block, page, column, data, spare, cause, outcome: Err(NandError::PowerOff) }
    }
}

/// A chip: erase blocks of pages, programmed in one of two cell modes.
///
/// Reads wait for their data. Programs and erases may be *posted*: `Ok` means accepted, and the outcome is known
/// at the next [`Nand::barrier`], or [`Nand::settle`] of the die; a power cut may undo any that are still in flight. On one
/// die an operation starts only after the one before it has ended. An implementation may also report a failure at once.
///
/// A driver of one operation at a time needs none of the provided methods.
pub trait Nand {
    /// The chip's shape.
    fn geometry(&self) -> &Geometry;

    /// How a block is programmed in `mode`.
    fn layout(&self, mode: CellMode) -> &Layout;

    /// Erases a block endures when used in `mode`.
    fn endurance(&self, mode: CellMode) -> u32;

    /// Reads `data.len()` bytes from byte `column` of a page and the first `spare.len()` spare bytes.
    ///
    /// Either buffer may be empty. An erased page reads as `0xFF`. The cost is that of a whole page's sensing.
    fn read(
        &mut self,
        block: u32,
        page: u32,
        column: u32,
        data: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<ReadInfo, NandError>;

    /// Programs the next (or a later) `unit` of `block` in `mode`.
    ///
    /// `data` is `pages_per_unit * page_bytes` long and `spare` `pages_per_unit * spare_bytes`, page after page
    /// in the order of [`Layout::unit_pages`]; a shorter `spare` leaves the rest of each page's spare erased only
    /// for units of one page.
    fn program(
        &mut self,
        block: u32,
        unit: u32,
        mode: CellMode,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<(), NandError>;

    /// Erases a block; its cells may then be programmed in either mode.
    fn erase(&mut self, block: u32, cause: Cause) -> Result<(), NandError>;

    /// Waits until every posted operation has ended. Those that failed are appended to `failures`.
    fn barrier(&mut self, failures: &mut Vec<Failure>) -> Result<(), NandError>;

    /// Does several reads, each with its own [outcome](PageRead::outcome), as [`Nand::read`] would one after the other.
    /// Those on different dies may overlap; the call ends when all have their data.
    fn read_many(&mut self, reads: &mut [PageRead<'_>]) {
        for PageRead { block, page, column, data, spare, cause, outcome } in reads {
            *outcome = self.read(*block, *page, *column, data, spare, *cause);
        }
    }

    /// Waits until every operation posted to `die` has ended. Those that failed are appended to `failures`; failures on
    /// other dies may be among them.
    fn settle(&mut self, die: u32, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        let _ = die;
        self.barrier(failures)
    }

    /// How long `die` will be busy with the operations that it was given, nanoseconds; 0 where the driver does not know.
    fn pending_ns(&self, die: u32) -> u64 {
        let _ = die;
        0
    }

    /// Whether the chip (or its driver) marks the block bad.
    fn is_bad(&self, block: u32) -> bool;

    /// Marks a block bad for good.
    fn mark_bad(&mut self, block: u32) -> Result<(), NandError>;
}
