//! The arguments of `flexfs top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// Seconds between two answers: no more often, and no more seldom.
const LEAST_SECONDS: f64 = 0.1;
const MOST_SECONDS: f64 = 3600.0;

/// Watch a mounted volume: block map, shares of SLC, life, throughput, wear.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs top flash.img                    until q, Esc or Ctrl-C; p pauses
  flexfs top flash.img --interval 5       every five seconds
  flexfs top flash.img --once             one picture as text, for scripts

Its server tells, to root and to whoever mounted it, what `flexfs info --json` shows. Watching is no work for the flash:
it reads nothing and does not keep idle time from its work. Needs a terminal of 80 x 24 or larger; with --once none.
Ends when the mount ends.")]
pub struct Top {
    /// The image file, which is mounted
    pub image: PathBuf,
    /// Ask so often
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = interval)]
    pub interval: Duration,
    /// Print one picture of 80 x 24 as plain text: asks twice, an interval apart, as rates need two answers
    #[arg(long)]
    pub once: bool,
}

/// The time between two answers.
fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (LEAST_SECONDS..=MOST_SECONDS).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("\"{text}\" is no interval: write seconds from {LEAST_SECONDS} to {MOST_SECONDS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_sensible_number_of_seconds() {
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "0.01", "-1", "nan", "inf", "1e9", "1s", ""] {
            assert!(interval(text).is_err(), "{text}");
        }
    }
}
