//! The translation layers from outside, on emulated chips.

mod large_chips;
mod large_requests;
