//! A raw NAND chip behind Linux's MTD layer as a [`nand::Nand`].
//!
//! [`Mtd`] opens `/dev/mtdN` and drives it by the requests of `<mtd/mtd-abi.h>`: a page goes out with its spare bytes in a
//! single program, and comes back with them in a single read. The bytes that the driver's ECC leaves free are the chip's spare bytes.
//! Invariants: a chip is operated by a single process at a time, which holds a lock on its device file; bits that could not be
//! corrected are never taken for data, by whatever request a page was read.
#![deny(unsafe_code)]
#![cfg(target_os = "linux")]

mod attributes;
mod cells;
mod device;
mod error;
mod kernel;
mod occupant;
mod page_reads;

pub use attributes::MtdNumber;
pub use cells::ChipCells;
pub use device::Mtd;
pub use error::MtdError;
pub use occupant::{Occupant, occupant_of};
pub use page_reads::PageReads;
