//! Figure 12: the throughput of DA and of LA against how full the volume is, where a quarter of what is written overwrites
//! the same files again and again. Invariant: both schemes get the same requests at the same times.

use flexfs_core::Policy;

use super::courses::{plots, table};
use crate::experiment::workload::bursts::{Bursts, Course, rate};
use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row, schemes};
use crate::play::HostCost;

pub const FIG12: Experiment = Experiment {
    id: "fig12",
    title: "Figure 12: Performance comparison of DA and LA with the Locality benchmark",
    about: "The Busy benchmark, but for the last MiB of each burst, which overwrites one of the first files. In the paper LA \
            writes 2.66 MB/s and DA 2.45, a gain of 7.9 %, and α rises to 0.7 with LA. A needless migration is that of a \
            page which is overwritten afterwards.",
    differs: "With the chip's time alone LA gains more than the paper's 7.9 %; with the board's time for each page \
              less, since there the idle time limits α, and LA can use what it saves only as far as that goes.",
    jobs,
    finish,
};

const SCHEMES: [(&str, Policy); 2] = [("da", schemes::DA), ("la", schemes::LA)];

const MIB: u64 = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;

/// The paper's Busy benchmark, with a hot set of so many MiB.
const fn hot(hot_files: u64, host: HostCost) -> Bursts {
    Bursts { chip_bytes: 64 * MIB, host, files: 4, hot_files, interval_ns: 10 * SECOND_NS, cycles: 0, seed: 1 }
}

/// What is run, by name.
const VARIANTS: [(&str, Bursts); 6] = [
    ("1MiB", hot(1, HostCost::NONE)),
    ("2MiB", hot(2, HostCost::NONE)),
    ("4MiB", hot(4, HostCost::NONE)),
    ("1MiB-omap2420", hot(1, HostCost::OMAP2420)),
    ("2MiB-omap2420", hot(2, HostCost::OMAP2420)),
    ("4MiB-omap2420", hot(4, HostCost::OMAP2420)),
];

/// Up to how full schemes are compared, in percent of the capacity: where room is scarce it decides, not locality.
const COMPARED_PERCENT: f64 = 60.0;
/// How much faster LA must be, with the chip's time alone and with the board's.
const GAIN: f64 = 1.15;
const GAIN_ON_BOARD: f64 = 1.04;
/// The mean α that LA must reach.
const ALPHA: (f64, f64) = (0.68, 0.78);

fn jobs() -> Vec<Job> {
    let variants = VARIANTS.iter().flat_map(|variant| SCHEMES.iter().map(move |scheme| (variant, scheme)));
    let job = |(&(variant, bursts), &(scheme, policy)): (&(&str, Bursts), &(&str, Policy))| {
        Job::new(job_name(variant, scheme), move || Ok(bursts.run(policy)?))
    };
    variants.map(job).collect()
}

fn job_name(variant: &str, scheme: &str) -> String {
    format!("fig12.{variant}.{scheme}")
}

/// The requests of a course while the volume is no fuller than is compared: their times, and α after each.
fn compared(course: &Course) -> (Vec<u64>, Vec<f64>) {
    let times = course.bursts.iter().flatten().copied();
    let counted = times.zip(&course.alphas).zip(1..);
    let counted: Vec<_> = counted.take_while(|&(_, requests)| course.percent(requests) <= COMPARED_PERCENT).collect();
    // Nothing was measured before the second burst, and no file was overwritten before the third.
    let measured = course.bursts.iter().take(2).map(Vec::len).sum();
    let alphas = counted.iter().skip(measured).filter_map(|&((_, alpha), _)| *alpha).collect();
    (counted.into_iter().map(|((ns, _), _)| ns).collect(), alphas)
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    for (variant, plan) in &VARIANTS {
        let mut courses = Vec::new();
        for (scheme, policy) in SCHEMES {
            if let Some(course) = results.get::<Course>(&job_name(variant, scheme))? {
                let parameters = Parameters::of(&plan.setting(policy)?).with("workload", plan.workload());
                courses.push((scheme, parameters, course));
            }
        }
        if let [(_, da_parameters, da), (_, la_parameters, la)] = &courses[..] {
            outcome.rows.extend(rows(variant, plan, (da, da_parameters), (la, la_parameters)));
        }
        if !courses.is_empty() {
            let courses: Vec<_> = courses.iter().map(|(scheme, _, course)| (*scheme, course)).collect();
            outcome.tables.push(table(variant, &courses));
            outcome.plots.extend(plots(variant, plan, &courses));
        }
    }
    Ok(outcome)
}

fn rows(variant: &str, plan: &Bursts, da: (&Course, &Parameters), la: (&Course, &Parameters)) -> Vec<Row> {
    let on_board = plan.host == HostCost::OMAP2420;
    let mut rows = Vec::new();
    for (scheme, (course, parameters), paper) in [("DA", da, 2.45), ("LA", la, 2.66)] {
        let (times, alphas) = compared(course);
        let name = format!("{variant}: {scheme}, mean of all MiB to {COMPARED_PERCENT} % of the capacity");
        let row = Row::shown(name, rate(&times), "MB/s", parameters);
        rows.push(if on_board { row.paper(paper) } else { row });
        let alpha = Row::shown(format!("{variant}: {scheme}, mean α"), mean(&alphas), "", parameters);
        rows.push(match (scheme, on_board) {
            ("LA", true) => alpha.paper(0.7),
            ("LA", false) => alpha.bar(Bar::Between(ALPHA.0, ALPHA.1)),
            _ => alpha,
        });
        let name = format!("{variant}: {scheme}, needless migrations");
        rows.push(Row::shown(name, course.needless_pages as f64, "pages", parameters));
    }
    let gain = rate(&compared(la.0).0) / rate(&compared(da.0).0);
    let gain = Row::shown(format!("{variant}: LA against DA"), gain, "times", la.1);
    rows.push(if on_board { gain.paper(1.079).bar(Bar::AtLeast(GAIN_ON_BOARD)) } else { gain.bar(Bar::AtLeast(GAIN)) });
    rows
}
