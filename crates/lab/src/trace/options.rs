//! How a trace is to be read, where its file leaves a choice. Invariant: without a choice a file is read as its format
//! says.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    Ns,
    Us,
    Ms,
    /// FlexFS's own traces have no times in seconds.
    #[serde(skip)]
    S,
}

impl TimeUnit {
    /// How long it is, ns.
    pub fn ns(self) -> u64 {
        match self {
            Self::Ns => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
            Self::S => 1_000_000_000,
        }
    }
}

/// A name that no unit of time has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no unit of time is called {name:?}: there are ns, us, ms and s")]
pub struct TimeUnitError {
    pub name: String,
}

impl FromStr for TimeUnit {
    type Err = TimeUnitError;

    /// Reads `ns`, `us`, `ms` or `s`.
    fn from_str(name: &str) -> Result<Self, TimeUnitError> {
        match name {
            "ns" => Ok(Self::Ns),
            "us" => Ok(Self::Us),
            "ms" => Ok(Self::Ms),
            "s" => Ok(Self::S),
            _ => Err(TimeUnitError { name: name.to_owned() }),
        }
    }
}

/// The choices of a caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The unit of the times. Only DiskSim's columns take it: every other format says its unit itself.
    pub time_unit: Option<TimeUnit>,
    /// Counts calls of MobiGen's traces that are not known, and passes them over, instead of refusing the trace. Traces
    /// of blocks have no calls.
    pub skip_unknown: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_of_time_is_read_by_its_name() {
        let ns = ["ns", "us", "ms", "s"].map(|name| name.parse::<TimeUnit>().map(TimeUnit::ns));
        assert_eq!(ns, [Ok(1), Ok(1_000), Ok(1_000_000), Ok(1_000_000_000)]);
        let refused = "sec".parse::<TimeUnit>().unwrap_err();
        assert_eq!(refused.to_string(), "no unit of time is called \"sec\": there are ns, us, ms and s");
    }
}
