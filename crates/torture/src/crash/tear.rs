//! What a power cut leaves of the operation that it hits, and of those in flight on other dies, in words as well.
//!
//! Invariant: what is printed reads back as the same, and a draw follows from its seed alone.

use std::fmt;
use std::str::FromStr;

use emulator::{InFlightLoss, TornKind};

use crate::content::mix;

/// What a cut leaves of the operation it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tear {
    pub kind: TornKind,
    /// Whether the pages that share a word line with the one being programmed are lost.
    pub pairs: bool,
}

/// The kinds of tears and their words.
const KINDS: [(TornKind, &str); TornKind::CERTAIN.len()] = [
    (TornKind::Old, "old"),
    (TornKind::Garbage, "garbage"),
    (TornKind::Full, "full"),
    (TornKind::Unstable, "unstable"),
    (TornKind::Uncorrectable, "uncorrectable"),
    (TornKind::Weak, "weak"),
];

impl Tear {
    /// All there are of an operation that does, or does not, put other pages at risk.
    pub(super) fn all(risks_pairs: bool) -> impl Iterator<Item = Tear> {
        let pairs: &[bool] = if risks_pairs { &[false, true] } else { &[false] };
        KINDS.iter().flat_map(move |&(kind, _)| pairs.iter().map(move |&pairs| Tear { kind, pairs }))
    }

    /// One of them.
    pub(super) fn drawn(risks_pairs: bool, seed: u64) -> Tear {
        let (kind, _) = KINDS[(mix(seed) % KINDS.len() as u64) as usize];
        Tear { kind, pairs: risks_pairs && mix(!seed).is_multiple_of(2) }
    }
}

impl fmt::Display for Tear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = KINDS.iter().find(|(kind, _)| *kind == self.kind).map_or("", |(_, word)| word);
        write!(f, "{word}{}", if self.pairs { "+pairs" } else { "" })
    }
}

impl FromStr for Tear {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let word = text.strip_suffix("+pairs").unwrap_or(text);
        let words: Vec<&str> = KINDS.iter().map(|(_, word)| *word).collect();
        let known = KINDS.iter().find(|(_, known)| *known == word);
        let &(kind, _) = known.ok_or(format!(
            "no tear is named \"{word}\"; there are {}, each with or without +pairs",
            words.join(", ")
        ))?;
        Ok(Self { kind, pairs: word != text })
    }
}

/// Every reach that is tried of a cut while these dies are busy: none of them, all, and some that are drawn.
pub(super) fn reaches(busy: &[u32], seed: u64) -> Vec<InFlightLoss> {
    match busy.len() {
        0 => vec![InFlightLoss::Off],
        1 => vec![InFlightLoss::Off, InFlightLoss::Always],
        _ => vec![InFlightLoss::Off, InFlightLoss::Always, some_of(busy, seed)],
    }
}

/// One of them.
pub(super) fn reach_drawn(busy: &[u32], seed: u64) -> InFlightLoss {
    let reaches = reaches(busy, seed);
    reaches[(mix(seed ^ 1) % reaches.len() as u64) as usize]
}

/// Some of several dies, but neither none nor all.
fn some_of(busy: &[u32], seed: u64) -> InFlightLoss {
    let proper = (1 << busy.len().min(63)) - 1;
    let picks = 1 + mix(seed ^ 2) % (proper - 1);
    let picked = busy.iter().enumerate().filter(|(at, _)| picks >> (at % 63) & 1 == 1);
    InFlightLoss::Dies(picked.fold(0, |mask, (_, die)| mask | 1 << (die % u64::BITS)))
}

/// How the reach of a cut is told behind its tear.
pub fn reach_text(reach: InFlightLoss) -> String {
    match reach {
        InFlightLoss::Seeded | InFlightLoss::Off => String::new(),
        InFlightLoss::Always => "+all".to_owned(),
        InFlightLoss::Dies(mask) => format!("+dies={mask:#x}"),
    }
}

/// The reach at the end of a cut, and the words before it.
pub fn split_reach(text: &str) -> Result<(&str, InFlightLoss), String> {
    if let Some(rest) = text.strip_suffix("+all") {
        return Ok((rest, InFlightLoss::Always));
    }
    let Some((rest, mask)) = text.split_once("+dies=") else { return Ok((text, InFlightLoss::Off)) };
    let digits = mask.strip_prefix("0x").unwrap_or(mask);
    let mask = u64::from_str_radix(digits, 16).map_err(|_| format!("\"{mask}\" is no mask of dies: it is like 0x5"))?;
    Ok((rest, InFlightLoss::Dies(mask)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tears_read_back_as_they_were_printed() {
        for tear in Tear::all(true) {
            assert_eq!(tear.to_string().parse(), Ok(tear));
        }
        assert!("ripped".parse::<Tear>().unwrap_err().contains("garbage"));
    }

    #[test]
    fn the_reach_of_a_cut_reads_back_as_it_was_printed() {
        for busy in [&[][..], &[3], &[0, 2, 7], &[1, 70]] {
            for reach in (0..20).flat_map(|seed| reaches(busy, seed)) {
                let text = format!("garbage+pairs{}", reach_text(reach));
                assert_eq!(split_reach(&text), Ok(("garbage+pairs", reach)));
            }
        }
        assert!(split_reach("old+dies=x").unwrap_err().contains("no mask"));
    }

    #[test]
    fn a_draw_reaches_none_all_and_some_of_the_busy_dies() {
        let drawn: Vec<InFlightLoss> = (0..100).map(|seed| reach_drawn(&[1, 4, 6], seed)).collect();
        assert!(drawn.contains(&InFlightLoss::Off) && drawn.contains(&InFlightLoss::Always));
        let all = 1 << 1 | 1 << 4 | 1 << 6;
        let masks: Vec<u64> = drawn
            .iter()
            .filter_map(|reach| if let InFlightLoss::Dies(mask) = reach { Some(*mask) } else { None })
            .collect();
        assert!(masks.iter().all(|mask| *mask != 0 && *mask != all && mask & !all == 0), "{masks:?}");
        assert!(masks.iter().collect::<std::collections::BTreeSet<_>>().len() > 3, "{masks:?}");
        assert_eq!(reach_drawn(&[], 7), InFlightLoss::Off);
    }
}
