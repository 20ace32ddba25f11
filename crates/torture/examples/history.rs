//! Runs random histories against the model, and shrinks the first that fails to the steps that matter.
//!
//! `cargo run -p torture --example history -- --blocks 64 --pages 16 --seeds 1..20 --crowded 90 --disruptions 12`

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use flexfs_core::{Compression, MountOptions, Policy};
use torture::crash::{Rig, Run, Tally};
use torture::ops::{Supply, Words};

/// What to run; every field has a flag of its name.
struct Plan {
    rig: Rig,
    seeds: std::ops::Range<u64>,
    steps: usize,
    crowded: u64,
    disruptions: usize,
    /// Compare the whole volume after each step: finds the step at fault, slowly.
    thorough: bool,
    /// Only failures that say this are shrunk.
    matching: String,
}

fn parse() -> Result<Plan, String> {
    let mut flags = std::collections::BTreeMap::new();
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let value = args.next().ok_or(format!("{flag} needs a value"))?;
        flags.insert(flag, value);
    }
    let mut take = |flag: &str, default: &str| flags.remove(flag).unwrap_or(default.into());
    let number = |text: String| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    let mode = take("--mode", Policy::DEFAULT.name());
    let compression = if take("--lz4", "no") == "yes" { Compression::Lz4 } else { Compression::None };
    let cache_bytes = number(take("--cache", "262144"))? as usize;
    let policy = Policy::from_text(&mode).map_err(|wrong| format!("{mode}: {wrong}"))?;
    let lanes = match number(take("--lanes", "0"))? {
        0 => None,
        lanes => Some(lanes as u8),
    };
    let options = MountOptions { policy, compression, cache_bytes, lanes, ..MountOptions::default() };
    let profile = take("--profile", "flexfs-mlc");
    let (blocks, pages) = (number(take("--blocks", "64"))? as u32, number(take("--pages", "16"))? as u32);
    let seeds = take("--seeds", "1..10");
    let (first, end) = seeds.split_once("..").ok_or("--seeds is FIRST..END")?;
    let plan = Plan {
        rig: Rig::small(&profile, blocks, pages, options)?,
        seeds: number(first.into())?..number(end.into())?,
        steps: number(take("--steps", "3000"))? as usize,
        crowded: number(take("--crowded", "90"))?,
        disruptions: number(take("--disruptions", "0"))? as usize,
        thorough: take("--thorough", "no") == "yes",
        matching: take("--matching", ""),
    };
    match flags.first_key_value() {
        Some((flag, _)) => Err(format!("unknown flag {flag}")),
        None => Ok(plan),
    }
}

/// Runs a history; on failure says at which step and why.
fn attempt(plan: &Plan, seed: u64, history: &[Words], tell: bool) -> Result<Tally, (usize, String)> {
    let mut at = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut run = Run::new(plan.rig.clone(), seed, plan.crowded, plan.disruptions)?;
        for (index, words) in history.iter().enumerate() {
            at = index;
            if let Some(step) = run.peek(words).filter(|_| tell) {
                println!("{index:5} {step:?}");
            }
            run.step(words)?;
            if plan.thorough {
                run.compare()?;
            }
        }
        run.finish()
    }));
    outcome.unwrap_or(Err("panicked".into())).map_err(|error: String| (at, error))
}

/// Leaves out steps, ever fewer at a time, as long as it still fails.
fn shrink(plan: &Plan, seed: u64, mut history: Vec<Words>) -> Vec<Words> {
    let mut size = history.len() / 2;
    while size > 0 {
        let mut start = 0;
        while start < history.len() {
            let mut shorter = history.clone();
            shorter.drain(start..(start + size).min(history.len()));
            match attempt(plan, seed, &shorter, false) {
                Err((at, error)) if error.contains(&plan.matching) => {
                    shorter.truncate(at + 1);
                    history = shorter;
                }
                _ => start += size,
            }
        }
        size /= 2;
    }
    history
}

fn main() -> ExitCode {
    let plan = match parse() {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let mut failing: Option<(u64, Vec<Words>)> = None;
    for seed in plan.seeds.clone() {
        let mut supply = Supply::new(seed);
        let history: Vec<Words> = (0..plan.steps).map(|_| supply.words()).collect();
        match attempt(&plan, seed, &history, false) {
            Ok(tally) => println!("seed {seed}: {tally:?}"),
            Err((at, error)) => {
                println!("seed {seed}: step {at}: {error}");
                if error.contains(&plan.matching) && failing.as_ref().is_none_or(|(_, found)| at + 1 < found.len()) {
                    failing = Some((seed, history[..(at + 1).min(history.len())].to_vec()));
                }
            }
        }
    }
    let Some((seed, history)) = failing else { return ExitCode::SUCCESS };
    let history = shrink(&plan, seed, history);
    println!("seed {seed} still fails with these {} steps:", history.len());
    if let Err((at, error)) = attempt(&plan, seed, &history, true) {
        println!("at {at}: {error}");
    }
    ExitCode::FAILURE
}
