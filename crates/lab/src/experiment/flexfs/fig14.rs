//! Figure 14 and Table 3: the wear index and the data written over a life in which ten cycles must last for ten windows.
//! Invariant: δ is held to Eq. (7) to (9) worked out by hand for the paper's controller, and to the slides' mean for ours.

use crate::experiment::workload::lives::{self, Life, Management, PAPER, TABLE_3, live};
use crate::experiment::{Axis, Bar, Experiment, ExperimentError, Job, Outcome, Plot, Results, Row, Series, Table};

pub const FIG14: Experiment = Experiment {
    id: "fig14",
    title: "Figure 14: The changes in the size of written data and the δ value",
    about: "Each of the 240 blocks endures ten cycles, and the life is ten windows of 400 s. 40 MiB arrive in a window, 80 in \
            the fourth and fifth, 20 in the sixth and seventh (Table 3). The paper's controller decides on δ once in a \
            window, by the three before; ours as data comes, by the budget of the whole life.",
    differs: "The paper's controller comes to the paper's δ within the bars; it spends 1,176 of 1,200 MiB, where the \
              paper tells 1,200, since a part of each block is kept for uneven wear.",
    jobs,
    finish,
};

const MANAGED: [Management; 2] = [Management::Paper, Management::Ours];
/// δ by Eq. (7) to (9), worked out by hand, where all that arrives costs what Eq. (8) says.
const BY_HAND: [f64; lives::WINDOWS] = [1.0, 1.0, 1.0, 1.0, 0.44, 0.18, 0.38, 1.0, 1.0, 1.0];
const NEAR: f64 = 0.06;
/// The window with the first burst.
const BURST: usize = 3;
/// What the chip can take, MiB: Table 3 is in MiB.
const BUDGET_MIB: f64 = 1200.0;
const BLOCK_MIB: f64 = 0.5;
/// The slides' mean of δ, and the share of SLC that ours must reach as well.
const MEAN_LEAST: f64 = 0.88;
const SHARE_LEAST: f64 = 0.8;
/// What the volume believes of its wear may be off by so many percent.
const BOOKS_PERCENT: f64 = 2.0;

fn jobs() -> Vec<Job> {
    MANAGED.map(|management| Job::new(job_name(management), move || Ok(live(management, PAPER)?))).into()
}

fn job_name(management: Management) -> String {
    format!("fig14.{}", management.name())
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    let mut lived = Vec::new();
    for management in MANAGED {
        let Some(life) = results.get::<Life>(&job_name(management))? else { continue };
        outcome.rows.extend(rows(management, &life)?);
        lived.push((management, life));
    }
    if !lived.is_empty() {
        outcome.tables.push(table(&lived));
        outcome.plots.push(plot(&lived));
    }
    Ok(outcome)
}

fn rows(management: Management, life: &Life) -> Result<Vec<Row>, ExperimentError> {
    let (name, parameters) = (management.name(), PAPER.parameters(management)?);
    let row = |what: &str, ours, unit| Row::shown(format!("{name}: {what}"), ours, unit, &parameters);
    let mut rows = Vec::new();
    for (number, (window, by_hand)) in life.windows.iter().zip(BY_HAND).enumerate() {
        let shown = row(&format!("δ in w{number}"), window.mean_index, "");
        let hundredths = |index: f64| (index * 100.0).round() / 100.0;
        rows.push(match management {
            Management::Paper => {
                shown.paper(by_hand).bar(Bar::Between(hundredths(by_hand - NEAR), hundredths(by_hand + NEAR)))
            }
            _ if number == BURST => shown.bar(Bar::AtMost(0.95)),
            _ => shown,
        });
    }
    let total_mib = life.total_cycles() as f64 * BLOCK_MIB;
    rows.push(row("writing budget used", total_mib, "MiB").paper(BUDGET_MIB).bar(Bar::AtMost(BUDGET_MIB)));
    let (mean, share) = (row("mean δ", life.mean_index(), ""), row("host pages to SLC", life.slc_share(), "of all"));
    let most = row("cycles of a block, most", f64::from(life.most_cycles()), "");
    if management == Management::Ours {
        rows.push(mean.paper(MEAN_LEAST).bar(Bar::AtLeast(MEAN_LEAST)));
        rows.push(share.bar(Bar::AtLeast(SHARE_LEAST)));
        rows.push(most.bar(Bar::AtMost(f64::from(lives::ENDURANCE))));
    } else {
        rows.extend([mean, share, most]);
    }
    let believed = life.windows.last().map_or(0, |window| window.believed_cycles);
    let counted = life.total_cycles() as f64;
    let books = row("cycles the volume believes in", believed as f64, "");
    rows.push(books.bar(Bar::Within { percent: BOOKS_PERCENT, of: counted }));
    Ok(rows)
}

fn table(lived: &[(Management, Life)]) -> Table {
    let rows = lived.iter().flat_map(|(management, life)| {
        life.windows.iter().zip(TABLE_3).enumerate().map(|(number, (window, mib))| {
            vec![
                management.name().to_owned(),
                number.to_string(),
                mib.to_string(),
                format!("{:.4}", window.first_index),
                format!("{:.4}", window.mean_index),
                window.slc_pages.to_string(),
                window.pages.to_string(),
                window.cycles.to_string(),
            ]
        })
    });
    let header = vec!["wear", "window", "mib", "delta_first", "delta_mean", "slc_pages", "host_pages", "cycles"];
    Table { name: "windows".into(), header, rows: rows.collect() }
}

fn plot(lived: &[(Management, Life)]) -> Plot {
    let by_window = |values: Vec<f64>| values.into_iter().zip(0..).map(|(value, at)| (f64::from(at), value)).collect();
    let index = |life: &Life| life.windows.iter().map(|window| window.mean_index).collect::<Vec<f64>>();
    let mut series: Vec<Series> = lived
        .iter()
        .map(|(management, life)| Series {
            name: format!("δ, {}", management.name()),
            points: by_window(index(life)),
            marked: true,
        })
        .collect();
    let data = TABLE_3.map(|mib| mib as f64 / 80.0).to_vec();
    series.push(Series { name: "data that arrives, of 80 MiB".into(), points: by_window(data), marked: false });
    Plot {
        name: "delta".into(),
        title: "δ and the data that arrives, by window".into(),
        x: Axis { label: "window of 400 s", from: 0.0, to: 9.0 },
        y: Axis { label: "δ", from: 0.0, to: 1.05 },
        series,
    }
}
