//! Figure 16: SLC and MLC blocks over a phone's half hour. Invariant: blocks are counted by the volume, every 30 s, as the paper
//! counts them.

use crate::experiment::workload::phone::{self, Played, Sample, Scheme};
use crate::experiment::{Axis, Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Plot, Results, Row, Series};
use crate::play::HostCost;
use crate::trace::phone::SONGS_START_S;

pub const FIG16: Experiment = Experiment {
    id: "fig16",
    title: "Figure 16: The changes in the number of SLC and MLC blocks with a mobile workload",
    about: "The half hour of Table 6. Six songs of 3 MB come from 750 s on; all of them go to SLC blocks, of 256 KiB each. The \
            wear window is 10 minutes: at 1,200 s the paper's controller has seen what the songs took of the budget of three \
            years, and lowers δ to about 0.5. Ours, which moves only what has to make room, weighs the same songs by what \
            they are of three years.",
    differs: "The paper does not tell how long its files of addresses and of the game are, on which δ depends; ours \
              leaves δ at 1, since the songs are little of three years.",
    jobs,
    finish,
};

const HOST: HostCost = HostCost::PAPER_TABLE6;
const SCHEMES: [Scheme; 2] = [Scheme::Paper, Scheme::Ours];
/// 18 MiB in blocks of 256 KiB.
const SONGS_BLOCKS: f64 = 72.0;
/// When the songs are all there, and when the window after theirs begins, s.
const SONGS_END_S: f64 = 840.0;
const WINDOW_S: f64 = 1200.0;
const END_S: f64 = 1800.0;

fn jobs() -> Vec<Job> {
    let job =
        |scheme: Scheme| Job::new(job_name(scheme), move || Ok(phone::play(&scheme.setting(HOST), &phone::trace())?));
    SCHEMES.map(job).into()
}

fn job_name(scheme: Scheme) -> String {
    format!("fig16.{}", scheme.name())
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    for scheme in SCHEMES {
        let Some(played) = results.get::<Played>(&job_name(scheme))? else { continue };
        outcome.rows.extend(rows(scheme, &played));
        outcome.plots.push(plot(scheme, &played));
    }
    Ok(outcome)
}

fn rows(scheme: Scheme, played: &Played) -> [Row; 2] {
    let setting = scheme.setting(HOST);
    let parameters = Parameters::of(&setting).with("workload", "a phone's half hour, seed 1");
    let row = |what: &str, ours, unit| Row::shown(format!("{}: {what}", scheme.name()), ours, unit, &parameters);
    let blocks_at =
        |at_s: f64| played.samples.iter().find(|sample| sample.at_s >= at_s).map_or(0, |sample| sample.slc_blocks);
    let gained = f64::from(blocks_at(SONGS_END_S)) - f64::from(blocks_at(SONGS_START_S as f64));
    // The first decision that a request brings about in that window.
    let after = played.samples.iter().filter(|sample| sample.at_s >= WINDOW_S);
    let delta = after.map(|sample| sample.delta).fold(1.0, f64::min);
    let delta = row("δ of the window that begins at 1,200 s", delta, "");
    [
        row("SLC blocks more at 840 s than at 750 s", gained, "").paper(SONGS_BLOCKS).bar(Bar::AtLeast(SONGS_BLOCKS)),
        match scheme {
            Scheme::Paper => delta.paper(0.5).bar(Bar::Between(0.4, 0.6)),
            _ => delta,
        },
    ]
}

/// As the paper plots it.
fn plot(scheme: Scheme, played: &Played) -> Plot {
    let series = |name: &str, blocks: fn(&Sample) -> u32| Series {
        name: name.into(),
        points: played.samples.iter().map(|sample| (sample.at_s, f64::from(blocks(sample)))).collect(),
        marked: false,
    };
    let series = vec![series("SLC", |sample| sample.slc_blocks), series("MLC", |sample| sample.native_blocks)];
    let most = series.iter().flat_map(|one| &one.points).map(|&(_, blocks)| blocks).fold(0.0, f64::max);
    Plot {
        name: scheme.name().into(),
        title: format!("{}: blocks, every 30 s", scheme.name()),
        x: Axis { label: "s", from: 0.0, to: END_S },
        y: Axis { label: "blocks", from: 0.0, to: most * 1.1 },
        series,
    }
}
