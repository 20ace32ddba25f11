//! Random histories of requests: small writes that come again, long ones, whole blocks, trims, idle time, flushes, remounts.
//!
//! Invariant: a seed gives the same history for the same sectors.

use std::fmt;

use crate::ops::Supply;

/// One step of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Write {
        sector: u64,
        count: u64,
    },
    Trim {
        sector: u64,
        count: u64,
    },
    /// One step of background work.
    Idle,
    /// What waits in a cache becomes durable.
    Flush,
    Remount,
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Write { sector, count } => write!(out, "write {sector} +{count}"),
            Step::Trim { sector, count } => write!(out, "trim {sector} +{count}"),
            Step::Idle => out.write_str("idle"),
            Step::Flush => out.write_str("flush"),
            Step::Remount => out.write_str("remount"),
        }
    }
}

/// How long the longest requests of a history are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests {
    /// A few blocks.
    Short,
    /// All sectors.
    Large,
}

/// So many steps on these sectors, in blocks of `pages`; requests stay within runs of neighbours.
pub fn script(seed: u64, steps: usize, sectors: &[u64], pages: u64, requests: Requests) -> Vec<Step> {
    let mut dice = Supply::new(seed);
    let count = sectors.len() as u64;
    let mut cursor = 0;
    let mut all = Vec::new();
    let most = |short: u64| match requests {
        Requests::Short => short,
        Requests::Large => count,
    };
    while all.len() < steps && count > 0 {
        let at = |index: u64| sectors.get((index % count) as usize).copied().unwrap_or(0);
        let run = |first: u64, most: u64| {
            let next_to = |length: &u64| at(first + length) == at(first) + length && (first % count) + length < count;
            (1..most).take_while(next_to).count() as u64 + 1
        };
        let step = match dice.below(100) {
            // A hot spot, as a file system's tables are.
            0..=29 => Step::Write { sector: at(dice.below(pages)), count: 1 },
            30..=49 => {
                let first = dice.below(count);
                Step::Write { sector: at(first), count: run(first, 1 + dice.below(4)) }
            }
            // A stream.
            50..=69 => {
                let length = run(cursor, 1 + dice.below(pages));
                let first = cursor % count;
                cursor = (first + length) % count;
                Step::Write { sector: at(first), count: length }
            }
            70..=79 if requests == Requests::Large => {
                let first = dice.below(count);
                Step::Write { sector: at(first), count: run(first, 1 + dice.below(count)) }
            }
            // Whole blocks, and more or less than these.
            70..=79 => {
                let first = dice.below(count) / pages * pages;
                Step::Write { sector: at(first), count: run(first, pages + dice.below(2) * dice.below(pages)) }
            }
            80..=85 => {
                let first = dice.below(count);
                Step::Write { sector: at(first), count: run(first, most(pages * 4)) }
            }
            86..=91 => {
                let first = dice.below(count);
                Step::Trim { sector: at(first), count: run(first, 1 + dice.below(most(2 * pages))) }
            }
            92..=94 => Step::Idle,
            95..=96 => Step::Flush,
            _ => Step::Remount,
        };
        all.push(step);
    }
    all
}
