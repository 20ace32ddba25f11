//! The contract of a NAND chip, as everything above it sees one.
//!
//! [`Nand`] is an array of erase blocks; a block is programmed in one [`CellMode`] from erase to erase, unit by
//! unit in the order its [`Layout`] states. The crate holds no chip: the emulator and real devices implement the
//! trait, file systems and translation layers consume it. A chip around another chip is a [`NandWrapper`].
//!
//! Invariant: nothing here assumes two bits per cell, one page per program, or that a program which returned has
//! survived a power cut before the next barrier.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod chip;
mod geometry;
mod layout;
mod wrapper;

pub use chip::{Cause, Failure, Nand, NandError, PageRead, ReadInfo};
pub use geometry::{CellMode, Geometry};
pub use layout::{Layout, LayoutError};
pub use wrapper::NandWrapper;
