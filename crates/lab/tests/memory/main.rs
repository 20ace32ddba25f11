//! Tests that count all memory of the process, as one program.
//!
//! Invariant: one test runs at a time, so that the counting allocator sees the memory of that test alone.

mod at_work;
mod drive;
mod recovery;
mod scale;

use std::sync::{Mutex, MutexGuard, PoisonError};

use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

static TURN: Mutex<()> = Mutex::new(());

/// Waits until no other test runs; the next test begins when the guard is dropped.
fn alone() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
