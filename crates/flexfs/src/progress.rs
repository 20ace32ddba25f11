//! Progress of long work, shown on standard error.
//!
//! Invariant: nothing is shown where standard error is no terminal.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

/// How much of a known amount is done.
pub fn share(name: &'static str) -> ProgressBar {
    bar("{prefix} {wide_bar} {percent:>3} % {eta:>4}").with_prefix(name)
}

/// The same, with what was found so far.
pub fn search(name: &'static str) -> ProgressBar {
    bar("{prefix} {wide_bar} {percent:>3} % {eta:>4} {msg}").with_prefix(name)
}

/// How many bytes have been copied.
pub fn bytes() -> ProgressBar {
    bar("{spinner} {binary_bytes} ({binary_bytes_per_sec})")
}

fn bar(template: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style)
}
