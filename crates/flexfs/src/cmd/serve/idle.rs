//! Merges and erases while clients are away, as far as idle time is foreseen: what `bench ftl --idle` does, by the clock of
//! the host.
//!
//! Invariant: a step begins only where the idle time that is foreseen has room for a whole merge by the chip's own times, and
//! none begins once the service ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use card::ServedDevice;
use lab::layers::{Foresight, merge_ns};

use super::ServedCard;

/// Between two looks whether there is something to do.
const LOOK: Duration = Duration::from_millis(5);

/// Works between requests, in a thread of its own.
pub struct IdleWorker(Option<(Arc<AtomicBool>, JoinHandle<()>)>);

impl IdleWorker {
    /// Begins to work, where `works`.
    pub fn start(export: &Arc<ServedCard>, works: bool) -> Result<Self> {
        if !works {
            return Ok(Self(None));
        }
        let (export, ends) = (Arc::clone(export), Arc::new(AtomicBool::new(false)));
        let until = Arc::clone(&ends);
        let work = move || {
            let mut gaps = IdleGaps::new();
            while !until.load(Ordering::Relaxed) {
                if !gaps.step(&export) {
                    thread::sleep(LOOK);
                }
            }
        };
        let thread = thread::Builder::new().name("idle".into()).spawn(work).context("cannot work in the background")?;
        Ok(Self(Some((ends, thread))))
    }

    /// Ends after the step under way.
    pub fn end(self) {
        if let Some((ends, thread)) = self.0 {
            ends.store(true, Ordering::Relaxed);
            // A step that panicked leaves a device that recovers when it is opened.
            let _ = thread.join();
        }
    }
}

/// The idle times that were met, and the one under way.
struct IdleGaps {
    foresight: Foresight,
    /// When the last request was done, as of the last look.
    done: Option<Instant>,
    /// The longest time without a request since then.
    gap: Duration,
    /// The last step found nothing to do, and no request came since.
    is_tidy: bool,
}

impl IdleGaps {
    fn new() -> Self {
        Self { foresight: Foresight::new(Foresight::WAIT_NS), done: None, gap: Duration::ZERO, is_tidy: false }
    }

    /// Does a step if there is time for one. Whether it did.
    fn step(&mut self, export: &ServedCard) -> bool {
        export.between_requests(|device, _, done| {
            if self.done != Some(done) {
                // How long it lasted is known to within a look.
                self.foresight.met(ns(self.gap));
                (self.done, self.is_tidy) = (Some(done), false);
            }
            self.gap = done.elapsed();
            let Ok(volume) = device.device() else { return false };
            if self.is_tidy || self.foresight.left_ns(ns(self.gap)) < merge_ns(volume.chip()) {
                return false;
            }
            // Where it cannot be opened anew, each request says so.
            self.is_tidy = match volume.background() {
                Ok(has_worked) => !has_worked,
                Err(_) => device.reopen().is_err(),
            };
            !self.is_tidy
        })
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
