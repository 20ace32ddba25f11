//! Figure 13: response times of page writes while data is migrated in the background, by how much of the idle time
//! migration uses. Invariant: a request of a scheme is compared with OPT's request of the same round and number.

use crate::experiment::workload::rounds::{Answers, REQUESTS, Rounds};
use crate::experiment::{
    Axis, Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Plot, Results, Row, Series, Table, schemes,
};
use crate::play::HostCost;

pub const FIG13: Experiment = Experiment {
    id: "fig13",
    title: "Figure 13: A comparison of response time delays on different system configurations",
    about: "30 MiB are written at once; then one page is written and synced at a time, after idle times that are random \
            but longer than t_wait, in rounds of 10. OPT does not migrate; U10, U50 and U100 migrate a page every \
            15 ms, every 3 ms, and without pause. In the paper 10 % of OPT's requests take more than 2,000 µs, as do \
            another 10 % of U10's.",
    differs: "With the board's time OPT exceeds 2,000 µs in fewer requests than the paper's: in those that fill a block and \
              write its summary too.",
    jobs,
    finish,
};

/// Rounds of each job.
const ROUNDS: u64 = 100;

/// Host costs, the jobs of each, and the requests they come to. The host's time comes after the wait for a step, so that
/// it changes no delay.
const HOSTS: [(HostCost, u64, f64); 2] = [(HostCost::NONE, 20, 20_000.0), (HostCost::OMAP2420, 4, 4_000.0)];
/// How many of OPT's requests may take longer than the paper's 2,000 µs, in percent: by the chip's time, and with the board's.
const LATE_PERCENT: [f64; 2] = [1.0, 2.0];
/// Why not fewer with the board's.
const SUMMARY: &str = "one request of 64, 1.6 %, fills an SLC block and writes its summary too, which with the board's time takes \
                       longer than 2,000 µs; in the paper 10 % do";

/// One page copy: a read of an SLC page and a program of the slowest native one.
const COPY_US: f64 = 1_966.0;

const SHARE: &str = "% of the requests";

/// What the paper counts as delayed.
const LATE_NS: u64 = 2_000_000;

fn rounds(host: HostCost, seed: u64) -> Rounds {
    Rounds { host, rounds: ROUNDS, seed }
}

fn job_name(host: HostCost, seed: u64) -> String {
    format!("fig13.{}.{seed:02}", host.name)
}

fn jobs() -> Vec<Job> {
    let all = HOSTS.into_iter().flat_map(|(host, jobs, _)| (1..=jobs).map(move |seed| (host, seed)));
    all.map(|(host, seed)| Job::new(job_name(host, seed), move || Ok(rounds(host, seed).run()?))).collect()
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    for (host, jobs, requests) in HOSTS {
        let mut all: Vec<Answers> = schemes::idle_shares().iter().map(|_| Answers::default()).collect();
        for seed in 1..=jobs {
            let found = results.get::<Vec<Answers>>(&job_name(host, seed))?.unwrap_or_default();
            all.iter_mut().zip(found).for_each(|(all, found)| add(all, found));
        }
        let names = schemes::idle_shares().map(|(name, _)| name);
        if all.iter().any(|answers| !answers.response_ns.is_empty()) {
            rows(host, requests, &all, &mut outcome.rows)?;
            let named: Vec<_> = names.into_iter().zip(all.iter().map(distribution)).collect();
            outcome.tables.push(table(host, &named));
            outcome.plots.push(plot(host, &named));
        }
    }
    Ok(outcome)
}

fn add(all: &mut Answers, found: Answers) {
    all.response_ns.extend(found.response_ns);
    all.waited_ns.extend(found.waited_ns);
    all.migrated_pages.extend(found.migrated_pages);
    all.longest_step_ns = all.longest_step_ns.max(found.longest_step_ns);
}

fn rows(host: HostCost, requests: f64, all: &[Answers], rows: &mut Vec<Row>) -> Result<(), ExperimentError> {
    let percent = |count: usize, of: usize| 100.0 * count as f64 / of as f64;
    let us = |ns: u64| ns as f64 / 1e3;
    let opt = &all[0];
    for ((scheme, policy), answers) in schemes::idle_shares().into_iter().zip(all) {
        let plan = rounds(host, 1);
        let parameters = Parameters::of(&plan.setting(policy)?)
            .with("workload", plan.workload())
            .with("scheme", scheme)
            .with("requests_per_round", REQUESTS.to_string());
        let row = |name: &str, ours: f64, unit: &'static str| {
            Row::shown(format!("{}, {scheme}: {name}", host.name), ours, unit, &parameters)
        };
        let count = answers.response_ns.len();
        rows.push(row("requests", count as f64, "requests").bar(Bar::AtLeast(requests)));
        let late = answers.response_ns.iter().filter(|&&ns| ns > LATE_NS).count();
        let late = row("longer than 2,000 µs", percent(late, count), SHARE);
        if scheme == "OPT" {
            let [chip, board] = LATE_PERCENT;
            rows.push(match host == HostCost::NONE {
                true => late.paper(10.0).bar(Bar::AtMost(chip)),
                false => late.paper(10.0).bar(Bar::AtMost(board)).because(SUMMARY),
            });
            continue;
        }
        rows.push(late);
        // The bars of a scheme are held to the chip's time; the host's changes no wait, and there are fewer requests.
        let held = |row: Row, bar: Bar| if host == HostCost::NONE { row.bar(bar) } else { row };
        let pairs = || answers.response_ns.iter().zip(&opt.response_ns);
        let same =
            row("same response time as OPT", percent(pairs().filter(|(ours, opt)| ours == opt).count(), count), SHARE);
        rows.push(if scheme == "U10" { held(same.paper(90.0), Bar::AtLeast(90.0)) } else { same });
        let migrating = answers.migrated_pages.iter().filter(|&&pages| pages > 0).count();
        rows.push(row("arrived with migration under way", percent(migrating, count), SHARE));
        let met = answers.waited_ns.iter().filter(|&&ns| ns > 0).count();
        rows.push(row("arrived in the middle of a step", percent(met, count), SHARE));
        let waited_ns = answers.waited_ns.iter().copied().max().unwrap_or(0);
        rows.push(held(row("longest wait for a step under way", us(waited_ns), "µs"), Bar::AtMost(COPY_US)));
        rows.push(held(row("longest background step", us(answers.longest_step_ns), "µs"), Bar::AtMost(COPY_US)));
        // Steps write to the callers' block, too, so that its end, which takes a page more, comes in another request.
        let longer = |(own, opt): &(u64, &u64)| own > opt;
        let shorter = |(own, opt): &(u64, &u64)| own < opt;
        let own = || pairs().zip(&answers.waited_ns).map(|((ours, opt), waited)| (ours - waited, opt));
        rows.push(row("longer than OPT without the wait", percent(own().filter(longer).count(), count), SHARE));
        rows.push(row("shorter than OPT without the wait", percent(own().filter(shorter).count(), count), SHARE));
        let more_ns = pairs().map(|(ours, opt)| ours.saturating_sub(*opt)).max().unwrap_or(0);
        rows.push(row("longest delay against OPT, with such a page", us(more_ns), "µs"));
    }
    Ok(())
}

/// Response times in ms, each with the percentage of requests that take no longer.
fn distribution(answers: &Answers) -> Vec<(f64, f64)> {
    let mut sorted = answers.response_ns.clone();
    sorted.sort_unstable();
    let count = sorted.len();
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for (index, ns) in sorted.into_iter().enumerate() {
        let (ms, percent) = (ns as f64 / 1e6, 100.0 * (index + 1) as f64 / count as f64);
        match steps.last_mut() {
            Some(last) if last.0 == ms => last.1 = percent,
            _ => steps.push((ms, percent)),
        }
    }
    steps
}

fn table(host: HostCost, named: &[(&str, Vec<(f64, f64)>)]) -> Table {
    let line =
        |name: &str, &(ms, percent): &(f64, f64)| vec![name.to_owned(), format!("{ms:.6}"), format!("{percent:.4}")];
    let rows = named.iter().flat_map(|(name, steps)| steps.iter().map(|step| line(name, step))).collect();
    Table { name: host.name.to_owned(), header: vec!["scheme", "response_ms", "cumulative_percent"], rows }
}

fn plot(host: HostCost, named: &[(&str, Vec<(f64, f64)>)]) -> Plot {
    let most_ms = named.iter().filter_map(|(_, steps)| steps.last()).map(|&(ms, _)| ms).fold(0.0, f64::max);
    let to_ms = (most_ms * 1.1).ceil();
    let series = |(name, steps): &(&str, Vec<(f64, f64)>)| Series {
        name: (*name).to_owned(),
        points: stairs(steps, to_ms),
        marked: false,
    };
    Plot {
        name: host.name.to_owned(),
        title: format!("Response times, host cost {}", host.name),
        x: Axis { label: "response time (ms)", from: 0.0, to: to_ms },
        y: Axis { label: "requests that take no longer (%)", from: 0.0, to: 100.0 },
        series: named.iter().map(series).collect(),
    }
}

/// The line of a distribution: it rises where a time is reached, and stays until the next. Steps too near to each other to
/// be told apart are drawn as one.
fn stairs(steps: &[(f64, f64)], to_ms: f64) -> Vec<(f64, f64)> {
    let (mut points, mut level) = (vec![(0.0, 0.0)], 0.0);
    for (index, &(ms, percent)) in steps.iter().enumerate() {
        let drawn = points.last().map_or(0.0, |&(ms, _)| ms);
        if ms - drawn > to_ms / 1000.0 || index + 1 == steps.len() || percent - level > 0.5 {
            points.extend([(ms, level), (ms, percent)]);
            level = percent;
        }
    }
    points.push((to_ms, 100.0));
    points
}
