//! Dynamic Depth where each command waits for the permission to use the drive's memory, and a long request takes it once for each
//! channel (§III.C.3). Invariant: Round-Robin, which Depth is compared with, takes it with every command.

use super::super::even_load::{run_with_exchange, told};
use super::super::load_of_drive::{LOADS, SEEDS};
use super::{ROUND_ROBIN, against, job_name};
use crate::drive::load::TRACES;
use crate::drive::place::FilePlacement;
use crate::drive::{LONG_OVER_PAGES, PermissionExchange};
use crate::experiment::{ExperimentError, Job, Outcome, Results, Row};

/// How long a command takes the permission, µs; 0 is among the schemes under even load.
const EXCHANGES_US: [u64; 2] = [5, 20];

fn scheme(name: &str, exchange_us: u64) -> String {
    format!("{name}-exchange-{exchange_us}")
}

pub fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    for trace in &TRACES {
        for us in EXCHANGES_US {
            let schemes = [(ROUND_ROBIN.0, ROUND_ROBIN.1, u32::MAX), ("depth", FilePlacement::DEPTH, LONG_OVER_PAGES)];
            for (name, placement, once_over_pages) in schemes {
                let exchange = PermissionExchange { command_ns: us * 1_000, once_over_pages };
                jobs.extend(SEEDS.map(|seed| {
                    let run = move || run_with_exchange(trace, placement, &LOADS, seed, exchange);
                    Job::new(job_name(trace, &scheme(name, us), seed), run)
                }));
            }
        }
    }
    jobs
}

pub fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut rows = Vec::new();
    for (at, load) in LOADS.into_iter().enumerate() {
        let plain = against(results, "depth", ROUND_ROBIN.0, at)?;
        let exchanged =
            EXCHANGES_US.map(|us| (us, against(results, &scheme("depth", us), &scheme(ROUND_ROBIN.0, us), at)));
        for (us, by_trace) in [(0, Ok(plain))].into_iter().chain(exchanged) {
            for (trace, ours) in TRACES.iter().zip(by_trace?) {
                let name =
                    format!("{} at {load}, depth, exchange {us} µs: mean response against Round-Robin", trace.name);
                let parameters = told(trace, &FilePlacement::DEPTH).with("exchange", format!("{us} µs a command"));
                let parameters = parameters.with("seeds", "1 to 5, mean");
                rows.push(Row::shown(name, ours, "%", &parameters));
            }
        }
    }
    Ok(Outcome { rows, ..Outcome::default() })
}
