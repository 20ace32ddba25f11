//! An emulated NAND chip.
