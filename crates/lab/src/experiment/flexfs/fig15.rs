//! Figure 15 and Table 4: how often the blocks were used in a life with its wear managed, and without. Invariant: cycles are the
//! chip's count, of all blocks but the two of the anchors.

use crate::experiment::workload::lives::{self, Life, Management, PAPER, live};
use crate::experiment::{Axis, Bar, Experiment, ExperimentError, Job, Outcome, Plot, Results, Row, Series, Table};

pub const FIG15: Experiment = Experiment {
    id: "fig15",
    title: "Figure 15 and Table 4: Distributions of block erase cycles",
    about: "The life of Table 3, with the wear managed by the paper's controller and by ours, and without any management, which \
            has no levelling either. 240 blocks that endure ten cycles can take 2,400. The slides tell 2,638 cycles without \
            management and 2,252 with it.",
    differs: "Blocks wear more evenly than the paper's, since the least worn free block is taken first and content \
              that never changes is moved; the paper's controller uses all the budget that is left to it.",
    jobs,
    finish,
};

/// 240 blocks of ten cycles.
const CYCLES_MAX: f64 = 2400.0;
const DEVIATION_MAX: f64 = 0.65;

fn jobs() -> Vec<Job> {
    Management::ALL.map(|management| Job::new(job_name(management), move || Ok(live(management, PAPER)?))).into()
}

fn job_name(management: Management) -> String {
    format!("fig15.{}", management.name())
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    for management in Management::ALL {
        let Some(life) = results.get::<Life>(&job_name(management))? else { continue };
        outcome.rows.extend(judged(management, &life)?);
        let counted = histogram(&life);
        rows.extend(
            counted
                .iter()
                .map(|(cycles, blocks)| vec![management.name().to_owned(), cycles.to_string(), blocks.to_string()]),
        );
        let points = counted.iter().map(|&(cycles, blocks)| (f64::from(cycles), blocks as f64)).collect();
        series.push(Series { name: management.name().into(), points, marked: true });
    }
    if !series.is_empty() {
        let header = vec!["wear", "cycles", "blocks"];
        outcome.tables.push(Table { name: "histogram".into(), header, rows });
        let most = |of: fn(&(f64, f64)) -> f64| series.iter().flat_map(|one| &one.points).map(of).fold(0.0, f64::max);
        outcome.plots.push(Plot {
            name: "histogram".into(),
            title: "Blocks by the cycles begun in them".into(),
            x: Axis { label: "cycles", from: 0.0, to: most(|point| point.0) + 1.0 },
            y: Axis { label: "blocks", from: 0.0, to: most(|point| point.1) * 1.1 },
            series,
        });
    }
    Ok(outcome)
}

fn judged(management: Management, life: &Life) -> Result<[Row; 5], ExperimentError> {
    let (name, parameters) = (management.name(), PAPER.parameters(management)?);
    let row = |what: &str, ours, unit| Row::shown(format!("{name}: {what}"), ours, unit, &parameters);
    let total = row("cycles of all blocks", life.total_cycles() as f64, "");
    let mean = row("mean cycles of a block", life.mean_cycles(), "");
    let deviation = row("standard deviation", life.deviation(), "cycles");
    let most = row("cycles of a block, most", f64::from(life.most_cycles()), "");
    // What the budget leaves for SLC if every byte costs what Eq. (8) says.
    let bound = row("δ that the budget allows at most, the data known", allowed(), "");
    Ok(match management {
        Management::None => {
            let total = total.paper(2638.0).bar(Bar::AtLeast(CYCLES_MAX + 1.0));
            [total, mean.paper(10.73), deviation.paper(2.43), most, bound]
        }
        Management::Paper => [total.paper(2252.0), mean.paper(9.23), deviation.paper(1.20), most, bound],
        Management::Ours => {
            let most = most.bar(Bar::AtMost(f64::from(lives::ENDURANCE)));
            let (total, deviation) = (total.bar(Bar::AtMost(CYCLES_MAX)), deviation.bar(Bar::AtMost(DEVIATION_MAX)));
            [total, mean, deviation, most, bound]
        }
    })
}

/// The one δ that spends the whole budget on what Table 3 says arrives, Eq. (8).
fn allowed() -> f64 {
    let arrived = PAPER.mib.iter().sum::<u64>() as f64;
    ((CYCLES_MAX / 2.0 - arrived) / (2.0 * arrived)).min(1.0)
}

/// Blocks by their cycles, every count from 0 on.
fn histogram(life: &Life) -> Vec<(u32, usize)> {
    let count = |cycles| life.cycles.iter().filter(|&&found| found == cycles).count();
    (0..=life.most_cycles()).map(|cycles| (cycles, count(cycles))).collect()
}
