//! A power cut as a value: where it hits and what it leaves. Invariant: what is printed reads back as the same.

use std::fmt;
use std::str::FromStr;

use emulator::InFlightLoss;

use crate::content::mix;
use crate::crash::{Tear, Torn, reach_text, split_reach};

/// A power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Right after the step of that number, between two flash operations.
    After(usize, InFlightLoss),
    /// In a program or erase, counted from the beginning of the script, or of the recovery.
    In(u64, Tear, InFlightLoss),
}

impl Cut {
    /// The cut that left this chip, whose operations are counted from `start`; between two it came after `step`.
    pub(super) fn of(torn: &Torn, start: u64, step: usize) -> Self {
        match torn.tear {
            Some(tear) => Cut::In(torn.operation - start, tear, torn.reach),
            None => Cut::After(step, torn.reach),
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::After(step, reach) => write!(f, "after:{step}{}", reach_text(*reach)),
            Cut::In(operation, tear, reach) => write!(f, "{operation}:{tear}{}", reach_text(*reach)),
        }
    }
}

impl FromStr for Cut {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (place, what) =
            text.split_once(':').ok_or(format!("\"{text}\" is no cut: it is OPERATION:TEAR or after:STEP"))?;
        let number = |digits: &str| digits.parse::<u64>().map_err(|_| format!("\"{text}\": {digits} is not a number"));
        let (what, reach) = split_reach(what)?;
        match place {
            "after" => Ok(Cut::After(number(what)? as usize, reach)),
            _ => Ok(Cut::In(number(place)?, what.parse()?, reach)),
        }
    }
}

/// A number that follows from cuts alone: what is done for a part of them is done again where they are.
pub(super) fn draw(cuts: &[Cut]) -> u64 {
    let text = cuts.iter().map(Cut::to_string).collect::<String>();
    text.bytes().fold(0, |drawn, byte| mix(drawn ^ u64::from(byte)))
}

/// Which cuts of a case are judged.
#[derive(Clone, Copy, Debug)]
pub enum Cuts<'a> {
    /// As many as the depth says.
    Planned,
    /// The same, until one shows a violation.
    First,
    /// These alone: the first in the script, the second in the recovery from it, and so on.
    Only(&'a [Cut]),
}

impl Cuts<'_> {
    /// Whether a cut that follows `before` others is wanted.
    pub(super) fn wants(self, before: usize, cut: Cut) -> bool {
        match self {
            Cuts::Planned | Cuts::First => true,
            Cuts::Only(list) => list.get(before) == Some(&cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_read_back_as_they_were_printed() {
        for text in ["after:3", "12:garbage", "0:weak+pairs", "7:old+all", "0:weak+pairs+dies=0x5", "after:0+dies=0x81"]
        {
            assert_eq!(text.parse::<Cut>().unwrap().to_string(), text);
        }
        for wrong in ["12", "x:old", "3:ripped", "after:x", "3:old+dies=x"] {
            assert!(wrong.parse::<Cut>().is_err(), "{wrong}");
        }
    }
}
