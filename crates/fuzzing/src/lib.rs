//! The inputs of the fuzzers, and how each is run. The targets in `fuzz/fuzz_targets` hand bytes over.
//!
//! `volumes` makes small real volumes, `slots` reaches what stands on their chips, `fields` knows where the numbers in
//! it are, `edits` reads an input as a list of changes to them. `exercise` mounts what came of it and uses it.
//! `chip_pages` has the pages of a chip, which `drive_edits` changes under a drive and `layer_edits` under a translation
//! layer. `image_file` works one level below. `operations` drives a sound volume beside the model, `card_client` a card
//! beside a shadow of its disk. Invariant: one input always does the same, whatever ran before it in the process.

pub mod card_client;
mod chip_pages;
pub mod drive_edits;
pub mod edits;
pub mod exercise;
mod fields;
pub mod image_file;
pub mod layer_edits;
mod metered;
pub mod operations;
mod record;
mod slots;
pub mod volumes;

use std::alloc::System;

use cap::Cap;

/// Memory that an input may take, bytes. The volumes take a few MiB; whoever asks for this much trusts a number it
/// found on a chip.
const HEAP_BYTES: usize = 192 << 20;

/// libFuzzer limits the whole process only, and each allocation only with a sanitizer.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, HEAP_BYTES);
