//! Signals that ask a command to end: it ends its step, leaves everything whole, and its exit status says so.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Exit statuses of what a signal ended begin here, as shells count.
const STATUS_OF_SIGNALS: usize = 128;

/// The signals from when this was made on, which no longer end the program by themselves.
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    pub fn watch() -> Result<Self> {
        let came = Arc::new(AtomicUsize::new(0));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            let registered = signal_hook::flag::register_usize(signal, Arc::clone(&came), signal as usize);
            registered.context("cannot take signals")?;
        }
        Ok(Self(came))
    }

    /// None of them: each ends the program by itself.
    pub fn by_default() -> Self {
        Self(Arc::default())
    }

    /// Whether to go on.
    pub fn check(&self) -> Result<()> {
        Ok(self.came()?)
    }

    /// The same, for those who tell it from other errors.
    pub fn came(&self) -> Result<(), Interrupted> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Interrupted(signal)),
        }
    }
}

/// What ended a command is a signal.
#[derive(Debug)]
pub struct Interrupted(usize);

impl Interrupted {
    pub fn status(&self) -> u8 {
        u8::try_from(STATUS_OF_SIGNALS + self.0).unwrap_or(u8::MAX)
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted; nothing is left half done")
    }
}

impl std::error::Error for Interrupted {}
