//! Image files: their chips, and the content of each.
//!
//! A command asks once for the [`Content`] of an image, and goes on with the kind that it can use. Invariants: an error
//! names the image and an action for its owner; an image that is refused stays as it is to the last byte.

mod advice;
mod chip;
mod content;
mod files;
mod volume;

pub use advice::{explain, is_full_disk};
pub use chip::{open_chip, open_chip_to_format, open_chip_unless, open_emulated, refused};
pub use content::{Content, probe};
pub use files::{change, leave, open};
pub use volume::mount;
