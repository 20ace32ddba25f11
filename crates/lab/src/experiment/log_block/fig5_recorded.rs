//! Fig. 5 with the requests of real hosts: the shipped traces at their addresses, measured as the figure's own are.
//! Invariant: an order of the schemes is told with the reason for that very order, and another order meets no bar.

use ftl::Scheme;
use serde::{Deserialize, Serialize};

use super::shipped::{SHIPPED, ShippedTrace};
use super::traces::{EXTRA_BLOCKS, in_order, logs_at_most, paper_replay};
use crate::experiment::{Bar, ExperimentError, Job, Outcome, Parameters, Results, Row, Table};
use crate::layers::replay::replay;
use crate::layers::{LayerError, Work};
use crate::trace::{block, unpacked};

/// What a trace costs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ShippedTraceCosts {
    extra_erases: f64,
    extra_writes: f64,
    work: Work,
}

/// The schemes of the paper, which are put in order, and the one that tells what map blocks cost.
const IN_ORDER: [Scheme; 4] = [Scheme::LogBlock, Scheme::Replacement, Scheme::PageGreedy, Scheme::PageCostBenefit];
const BESIDE: Scheme = Scheme::LogBlockScanned;

/// The trace with as many small requests as the paper's Kodak, on which L is to have so much of P/G's extra erases.
const SMALL_REQUESTS: &str = "camera-vfat-sync";
const OF_PAGES: Bar = Bar::AtMost(0.5);
const OF_PAGES_REASON: &str = "94 % of its writes are smaller than a block; by the text L outperforms page mapping \
                               on the Kodak, which has the most small requests, and notably: the bar is the Kodak's";

impl ShippedTrace {
    fn job_name(&self, scheme: Scheme, extra_blocks: u32) -> String {
        format!("ftl-fig5.recorded-{}.{scheme}.{extra_blocks}", self.name)
    }

    /// Replays it on a full device on which it ran once before.
    fn measure(&self, scheme: Scheme, extra_blocks: u32) -> Result<ShippedTraceCosts, LayerError> {
        let wrong = |why: String| LayerError::Wrong(format!("the trace {}: {why}", self.name));
        let bytes = unpacked(self.packed.to_vec()).map_err(|error| wrong(error.to_string()))?;
        let trace = block::read(&bytes).map_err(|error| wrong(error.to_string()))?;
        let replayed = replay(&paper_replay(scheme, extra_blocks)?, &trace, &mut |_, _| {})?;
        let (extra_erases, extra_writes) = (replayed.extra_erases, replayed.extra_writes);
        Ok(ShippedTraceCosts { extra_erases, extra_writes, work: replayed.work })
    }

    /// The extra erases of the schemes, their order, and its reason; nothing unless all of them ran.
    fn rows(&self, results: &Results, extra_blocks: u32) -> Result<Vec<Row>, ExperimentError> {
        let (mut rows, mut erases) = (Vec::new(), Vec::new());
        let name = |what: String| format!("{what}, recorded {}, {extra_blocks} extra blocks", self.name);
        let parameters = parameters(extra_blocks);
        for scheme in IN_ORDER {
            let costs = results.get::<ShippedTraceCosts>(&self.job_name(scheme, extra_blocks))?;
            let Some(ShippedTraceCosts { extra_erases, .. }) = costs else { return Ok(Vec::new()) };
            erases.push((scheme, extra_erases));
            let what = name(format!("extra erases of {}", scheme.letters()));
            // Adding 0 makes no zero negative.
            rows.push(Row::shown(what, extra_erases.round() + 0.0, "", &parameters));
        }
        let order = in_order(&erases);
        let explained = self.orders.iter().find(|explained| explained.extra_blocks.contains(&extra_blocks));
        let held = explained.map_or((order.len() as f64, "no order is explained"), |explained| {
            let others = order.split(' ').zip(explained.order.split(' ')).filter(|(ours, told)| ours != told).count();
            (others as f64, if others == 0 { explained.reason } else { explained.order })
        });
        let what = name(format!("{order}: differences from the order that is explained"));
        rows.push(Row::shown(what, held.0, "", &parameters).bar(Bar::Exactly(0.0)).because(held.1));
        if let ([(_, logs), _, (_, pages), _], SMALL_REQUESTS) = (erases.as_slice(), self.name) {
            let what = name("extra erases of L, of those of P/G".into());
            rows.push(Row::shown(what, logs / pages, "", &parameters).bar(OF_PAGES).because(OF_PAGES_REASON));
        }
        Ok(rows)
    }

    /// A line of the table, if the scheme ran.
    fn line(
        &self,
        results: &Results,
        scheme: Scheme,
        extra_blocks: u32,
    ) -> Result<Option<Vec<String>>, ExperimentError> {
        let costs = results.get::<ShippedTraceCosts>(&self.job_name(scheme, extra_blocks))?;
        Ok(costs.map(|ShippedTraceCosts { extra_erases, extra_writes, work }| {
            let told = [self.name.to_owned(), scheme.letters().to_owned(), extra_blocks.to_string()];
            let costs = [extra_erases, extra_writes].map(|figure| format!("{:.0}", figure.round() + 0.0));
            let counts = [work.merges, work.partial_merges, work.switches, work.map_writes, work.map_copies];
            told.into_iter().chain(costs).chain(counts.map(|count| count.to_string())).collect()
        }))
    }
}

pub fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    for trace in &SHIPPED {
        for scheme in IN_ORDER.into_iter().chain([BESIDE]) {
            for extra_blocks in EXTRA_BLOCKS {
                let name = trace.job_name(scheme, extra_blocks);
                jobs.push(Job::new(name, move || Ok(trace.measure(scheme, extra_blocks)?)));
            }
        }
    }
    jobs
}

fn parameters(extra_blocks: u32) -> Parameters {
    let logs = logs_at_most(extra_blocks);
    Parameters::default()
        .with("chip", "k9f5608u0m, 16 MiB, every sector written")
        .with("blocks", format!("{extra_blocks} of 1,024 extra, {logs} log blocks at most"))
        .with("runs", "1: a recording has no seeds")
}

/// Adds what the traces cost to the figure's own outcome.
pub fn finish(results: &Results, outcome: &mut Outcome) -> Result<(), ExperimentError> {
    let mut table = Vec::new();
    for trace in &SHIPPED {
        for extra_blocks in EXTRA_BLOCKS {
            outcome.rows.extend(trace.rows(results, extra_blocks)?);
            for scheme in IN_ORDER.into_iter().chain([BESIDE]) {
                table.extend(trace.line(results, scheme, extra_blocks)?);
            }
        }
    }
    if !table.is_empty() {
        let costs = ["trace", "scheme", "extra_blocks", "extra_erases", "extra_writes"];
        let header = costs.into_iter().chain(["merges", "partial_merges", "switches", "map_writes", "map_copies"]);
        outcome.tables.push(Table { name: "recorded".into(), header: header.collect(), rows: table });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::run;

    /// The outcome of some of the jobs.
    fn outcome_of(prefix: &str, suffix: &str) -> Outcome {
        let is_chosen = |job: &Job| job.name.starts_with(prefix) && job.name.ends_with(suffix);
        let chosen: Vec<Job> = jobs().into_iter().filter(is_chosen).collect();
        let results = run(&chosen, 2, &|_| {}).unwrap_or_else(|(job, error)| panic!("{job}: {error}"));
        let mut outcome = Outcome::default();
        finish(&results, &mut outcome).unwrap();
        outcome
    }

    #[test]
    fn each_order_on_a_recorded_trace_is_explained() {
        for trace in &SHIPPED {
            let explained: Vec<u32> = trace.orders.iter().flat_map(|order| order.extra_blocks).copied().collect();
            assert_eq!(explained, EXTRA_BLOCKS, "{}", trace.name);
        }
        let outcome = outcome_of("ftl-fig5.recorded-andrew-ext2.", "");
        let ordered: Vec<&Row> = outcome.rows.iter().filter(|row| row.name.contains(" < ")).collect();
        assert!(ordered.iter().all(|row| row.ok && row.reason.contains("15,112 of 19,336 pages")), "{ordered:#?}");
        assert_eq!((ordered.len(), outcome.rows.len()), (3, 3 * 5));
    }

    #[test]
    fn another_order_than_the_one_explained_meets_no_bar() {
        let [.., pda] = &SHIPPED;
        let mut results = Results::default();
        for (scheme, extra_erases) in IN_ORDER.into_iter().zip([3.0, 4.0, 1.0, 2.0]) {
            let costs = ShippedTraceCosts { extra_erases, extra_writes: 0.0, work: Work::default() };
            results.insert(pda.job_name(scheme, 16), serde_json::to_value(costs).unwrap());
        }
        let rows = pda.rows(&results, 16).unwrap();
        let bad: Vec<_> = rows.iter().filter(|row| !row.ok).map(|row| (row.ours, row.reason)).collect();
        assert_eq!(bad, [(3.0, "L < P/G < P/C < R")], "{rows:#?}");
    }

    #[test]
    fn log_blocks_have_half_of_page_mappings_erases_at_most() {
        let outcome = outcome_of("ftl-fig5.recorded-camera-vfat-sync.", ".64");
        let held: Vec<&Row> = outcome.rows.iter().filter(|row| row.bar == OF_PAGES).collect();
        assert!(held.len() == 1 && held.iter().all(|row| row.ok), "{:#?}", outcome.rows);
        assert_eq!(outcome.tables.iter().map(|table| table.rows.len()).sum::<usize>(), 5);
    }
}
