//! FlexFS, the file system: `no_std`, no clock, no randomness; time and chip come in from outside.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod error;
mod fs;
mod policy;

pub use error::{Error, Result};
pub use fs::Fs;
pub use fs::types::*;
pub use policy::Mode;
