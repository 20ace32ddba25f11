//! Lives that go otherwise than the paper's: bursts at the end, a life in one window, a sync after every page. Invariant: a life
//! is met if no block was used more often than it endures, or it was said before that it would not be.

use crate::experiment::workload::lives::{self, Arrival, Interruption, Life, Management, Plan, live};
use crate::experiment::{Axis, Bar, Experiment, ExperimentError, Job, Outcome, Plot, Results, Row, Series};

pub const LIFE: Experiment = Experiment {
    id: "life",
    title: "Lives that go otherwise",
    about: "The writing budget spent over time by the paper's controller, by ours, and without management, where data arrives \
            in another order than Table 3, twice as much late, all in the last window, more than the chip can take at all, and \
            as overwrites of 4 KiB with a sync after each; on chips with three and four bits in a cell; and with a hundred \
            unmounts or power cuts.",
    differs: "The paper has none of these.",
    jobs,
    finish,
};

const REVERSED: [u64; lives::WINDOWS] = [40, 40, 40, 20, 20, 80, 80, 40, 40, 40];
const DOUBLED_LATE: [u64; lives::WINDOWS] = [40, 40, 40, 80, 80, 20, 20, 80, 80, 80];
const ALL_LAST: [u64; lives::WINDOWS] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 440];
const TOO_MUCH: [u64; lives::WINDOWS] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 1300];
const HALVED: [u64; lives::WINDOWS] = [20, 20, 20, 40, 40, 10, 10, 20, 20, 20];

const fn files(mib: [u64; lives::WINDOWS]) -> Plan {
    Plan { mib, ..lives::PAPER }
}

/// What is run, by name, and whether the budget covers it.
const PLANS: [(&str, Plan, bool); 10] = [
    ("table3", lives::PAPER, true),
    ("reversed", files(REVERSED), true),
    ("doubled-late", files(DOUBLED_LATE), true),
    ("all-last", files(ALL_LAST), true),
    ("too-much", files(TOO_MUCH), false),
    ("synced-pages", Plan { arrival: Arrival::SyncedPages, ..files(HALVED) }, true),
    ("tlc", Plan { bits_per_cell: 3, ..lives::PAPER }, true),
    ("qlc", Plan { bits_per_cell: 4, ..lives::PAPER }, true),
    ("unmounts", Plan { interruption: Interruption::Unmount, ..lives::PAPER }, true),
    ("cuts", Plan { interruption: Interruption::Cut, ..lives::PAPER }, true),
];
const BLOCK_MIB: f64 = 0.5;
/// By how much interrupted lives may differ from the one that is not: cycles of all blocks, in percent, δ in a life, and
/// cycles of all blocks for a cut.
const APART_PERCENT: f64 = 1.0;
const APART_INDEX: f64 = 0.02;
const CYCLES_A_CUT: f64 = 3.0;
const INTERRUPTIONS: f64 = 100.0;

fn jobs() -> Vec<Job> {
    let all = PLANS.iter().flat_map(|plan| Management::ALL.map(|management| (plan, management)));
    all.map(|(&(name, plan, _), management)| Job::new(job_name(name, management), move || Ok(live(management, plan)?)))
        .collect()
}

fn job_name(plan: &str, management: Management) -> String {
    format!("life.{plan}.{}", management.name())
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    for (name, plan, is_covered) in PLANS {
        let mut series = Vec::new();
        for management in Management::ALL {
            let Some(life) = results.get::<Life>(&job_name(name, management))? else { continue };
            outcome.rows.extend(rows(name, &plan, is_covered, management, &life)?);
            let used = life.windows.iter().map(|window| window.cycles as f64 * BLOCK_MIB);
            let points = used.zip(1..).map(|(mib, windows)| (f64::from(windows), mib)).collect();
            series.push(Series { name: management.name().into(), points, marked: true });
        }
        let most = series.iter().flat_map(|one| &one.points).map(|&(_, mib)| mib).fold(0.0, f64::max);
        if !series.is_empty() {
            outcome.plots.push(Plot {
                name: name.into(),
                title: format!("{name}: writing budget spent"),
                x: Axis { label: "windows of 400 s", from: 0.0, to: lives::WINDOWS as f64 },
                y: Axis { label: "MiB", from: 0.0, to: most * 1.1 },
                series,
            });
        }
    }
    outcome.rows.extend(interrupted(results)?);
    Ok(outcome)
}

/// Lives that were interrupted against the one that was not.
fn interrupted(results: &Results) -> Result<Vec<Row>, ExperimentError> {
    let ours = |plan: &str| results.get::<Life>(&job_name(plan, Management::Ours));
    let (Some(whole), Some(unmounts), Some(cuts)) = (ours("table3")?, ours("unmounts")?, ours("cuts")?) else {
        return Ok(Vec::new());
    };
    let plan = |name| PLANS.iter().find(|(plan, ..)| *plan == name).map_or(lives::PAPER, |&(_, plan, _)| plan);
    let (parameters, of_cuts) =
        (plan("unmounts").parameters(Management::Ours)?, plan("cuts").parameters(Management::Ours)?);
    let total = |life: &Life| life.total_cycles() as f64;
    let apart = 100.0 * (total(&unmounts) - total(&whole)).abs() / total(&whole);
    let index = (unmounts.mean_index() - whole.mean_index()).abs();
    let a_cut = (cuts.total_cycles() as f64 - whole.total_cycles() as f64) / INTERRUPTIONS;
    Ok(vec![
        Row::shown("unmounts, ours: cycles apart from table3's", apart, "%", &parameters)
            .bar(Bar::AtMost(APART_PERCENT)),
        Row::shown("unmounts, ours: mean δ apart from table3's", index, "", &parameters).bar(Bar::AtMost(APART_INDEX)),
        Row::shown("cuts, ours: cycles more for each", a_cut, "", &of_cuts).bar(Bar::AtMost(CYCLES_A_CUT)),
    ])
}

fn rows(
    name: &str,
    plan: &Plan,
    is_covered: bool,
    management: Management,
    life: &Life,
) -> Result<Vec<Row>, ExperimentError> {
    let parameters = plan.parameters(management)?;
    let row =
        |what: &str, ours, unit| Row::shown(format!("{name}, {}: {what}", management.name()), ours, unit, &parameters);
    let most = row("cycles of a block, most", f64::from(life.most_cycles()), "");
    let warned = life.warned.map_or(f64::INFINITY, |(at_s, _)| at_s);
    let told = row("told that it cannot be met, after", warned, "s");
    let mean = row("mean δ", life.mean_index(), "");
    Ok(match (management, is_covered) {
        (Management::Ours, true) => vec![most.bar(Bar::AtMost(f64::from(lives::ENDURANCE))), mean],
        (Management::Ours, false) => vec![most, mean, told.bar(Bar::AtMost(3999.0))],
        _ => vec![most, mean],
    })
}
