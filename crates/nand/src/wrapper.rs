//! Chips around another chip: every operation goes to the chip inside, unless the wrapper watches it.
//!
//! Invariant: this file alone forwards [`Nand`], so that a wrapper states the operations that it watches and no others.

use alloc::vec::Vec;

use crate::{Cause, CellMode, Failure, Geometry, Layout, Nand, NandError, PageRead, ReadInfo};

/// A chip around another chip. Every wrapper is a [`Nand`].
///
/// A `pass_` method carries an operation to the chip inside. A wrapper that watches an operation replaces the provided
/// method of it; reads come in two ways, and so do waits. The shape of the chip, its bad blocks and its queues are always
/// those of the chip inside.
pub trait NandWrapper {
    /// The chip inside.
    type Inner: Nand + ?Sized;

    /// The chip inside, to look at.
    fn inner(&self) -> &Self::Inner;

    /// The chip inside, to operate.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// Carries [`Nand::read`] to the chip inside.
    #[inline]
    fn pass_read(
        &mut self,
        block: u32,
        page: u32,
        column: u32,
        data: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<ReadInfo, NandError> {
        self.inner_mut().read(block, page, column, data, spare, cause)
    }

    /// Carries [`Nand::program`] to the chip inside.
    #[inline]
    fn pass_program(
        &mut self,
        block: u32,
        unit: u32,
        mode: CellMode,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<(), NandError> {
        self.inner_mut().program(block, unit, mode, data, spare, cause)
    }

    /// Carries [`Nand::erase`] to the chip inside.
    #[inline]
    fn pass_erase(&mut self, block: u32, cause: Cause) -> Result<(), NandError> {
        self.inner_mut().erase(block, cause)
    }

    /// Carries [`Nand::barrier`] to the chip inside.
    #[inline]
    fn pass_barrier(&mut self, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.inner_mut().barrier(failures)
    }

    /// Carries [`Nand::read_many`] to the chip inside.
    #[inline]
    fn pass_read_many(&mut self, reads: &mut [PageRead<'_>]) {
        self.inner_mut().read_many(reads);
    }

    /// Carries [`Nand::settle`] to the chip inside.
    #[inline]
    fn pass_settle(&mut self, die: u32, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.inner_mut().settle(die, failures)
    }
}

impl<T: Nand + ?Sized> NandWrapper for &mut T {
    type Inner = T;

    #[inline]
    fn inner(&self) -> &T {
        self
    }

    #[inline]
    fn inner_mut(&mut self) -> &mut T {
        self
    }
}

impl<W: NandWrapper + ?Sized> Nand for W {
    #[inline]
    fn geometry(&self) -> &Geometry {
        self.inner().geometry()
    }

    #[inline]
    fn layout(&self, mode: CellMode) -> &Layout {
        self.inner().layout(mode)
    }

    #[inline]
    fn endurance(&self, mode: CellMode) -> u32 {
        self.inner().endurance(mode)
    }

    #[inline]
    fn read(
        &mut self,
        block: u32,
        page: u32,
        column: u32,
        data: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<ReadInfo, NandError> {
        self.pass_read(block, page, column, data, spare, cause)
    }

    #[inline]
    fn program(
        &mut self,
        block: u32,
        unit: u32,
        mode: CellMode,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<(), NandError> {
        self.pass_program(block, unit, mode, data, spare, cause)
    }

    #[inline]
    fn erase(&mut self, block: u32, cause: Cause) -> Result<(), NandError> {
        self.pass_erase(block, cause)
    }

    #[inline]
    fn barrier(&mut self, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.pass_barrier(failures)
    }

    #[inline]
    fn read_many(&mut self, reads: &mut [PageRead<'_>]) {
        self.pass_read_many(reads);
    }

    #[inline]
    fn settle(&mut self, die: u32, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.pass_settle(die, failures)
    }

    #[inline]
    fn pending_ns(&self, die: u32) -> u64 {
        self.inner().pending_ns(die)
    }

    #[inline]
    fn is_bad(&self, block: u32) -> bool {
        self.inner().is_bad(block)
    }

    #[inline]
    fn mark_bad(&mut self, block: u32) -> Result<(), NandError> {
        self.inner_mut().mark_bad(block)
    }
}
