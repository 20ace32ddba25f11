//! Figure 11: the throughput of BM and of DA against how full the volume is, with too little idle time. Invariant: α is
//! held to Eq. (1) to (3) worked by hand for each variant, never to what another run gave.

use flexfs_core::Policy;

use super::courses::{plots, table};
use crate::experiment::workload::bursts::{Bursts, Course, FILE_BYTES, rate};
use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row, schemes};
use crate::play::HostCost;

pub const FIG11: Experiment = Experiment {
    id: "fig11",
    title: "Figure 11: Performance comparison of BM and DA with the Busy benchmark",
    about: "Files of 1 MiB are written in bursts until 95 % of the capacity hold data, with too little idle time to \
            migrate them all. In the paper BM is faster until 67 %, then falls; DA is stable, with α at 0.5. The plot of α \
            shows it after each request. Beside them an SLC region of fixed size, the paper's future work, which fills \
            and drains.",
    differs: "Beyond 90 % of the capacity DA slows down to 0.70 of its mean for single MiBs, since fewer SLC blocks \
              are left than a burst takes; where BM falls depends on how much a burst is beside the chip.",
    jobs,
    finish,
};

const SCHEMES: [(&str, Policy); 3] = [("bm", schemes::BM), ("da", schemes::DA), ("slc-buffer", schemes::SLC_BUFFER)];

const MIB: u64 = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;

/// The paper's own: 64 MiB, 4 MiB every 10 s.
const PAPER: Bursts = Bursts {
    chip_bytes: 64 * MIB,
    host: HostCost::NONE,
    files: 4,
    hot_files: 0,
    interval_ns: 10 * SECOND_NS,
    cycles: 0,
    seed: 1,
};

const fn held_out(files: u64, seconds: u64) -> Bursts {
    Bursts { files, interval_ns: seconds * SECOND_NS, ..PAPER }
}

/// What is run, by name; the first is the paper's own.
const VARIANTS: [(&str, Bursts); 9] = [
    ("64MiB", PAPER),
    ("64MiB-omap2420", Bursts { host: HostCost::OMAP2420, ..PAPER }),
    ("64MiB-seed2", Bursts { seed: 2, ..PAPER }),
    ("64MiB-3MiB-8s", held_out(3, 8)),
    ("64MiB-6MiB-15s", held_out(6, 15)),
    ("64MiB-3MiB-15s", held_out(3, 15)),
    ("64MiB-6MiB-8s", held_out(6, 8)),
    ("64MiB-cycled", Bursts { cycles: 2, ..PAPER }),
    ("96MiB", Bursts { chip_bytes: 96 * MIB, ..PAPER }),
];

/// Where BM must fall behind DA, in percent of the capacity.
const CROSSING_PERCENT: (f64, f64) = (58.0, 72.0);
/// The least of its mean that DA may do with a MiB, up to how full: the paper's workload.
const STABLE: [(f64, f64); 2] = [(90.0, 0.9), (95.0, 0.8)];
/// The same for the others.
const STABLE_HELD_OUT: [(f64, f64); 1] = [(90.0, 0.75)];
/// How near α must be to what is worked out by hand.
const ALPHA_NEAR: f64 = 0.06;
/// Why no nearer.
const LAST_TEN: &str = "by hand α is that of many like windows; the prediction weighs the last ten, and on a volume that was emptied \
                        before those of the emptying count until the tenth burst";

/// The chip's, ns: a page programmed to SLC cells, and natively on average.
const SLC_NS: f64 = 431_000.0;
const NATIVE_NS: f64 = 994_000.0;
/// T_wait, T_trig and T_erase^SLC / S_p^SLC of the paper.
const WAIT_NS: f64 = 1e9;
const TRIG_NS: f64 = 15e6;
const ERASE_NS: f64 = 2e6 / 64.0;

fn jobs() -> Vec<Job> {
    let variants = VARIANTS.iter().flat_map(|variant| SCHEMES.iter().map(move |scheme| (variant, scheme)));
    let job = |(&(variant, bursts), &(scheme, policy)): (&(&str, Bursts), &(&str, Policy))| {
        Job::new(job_name(variant, scheme), move || Ok(bursts.run(policy)?))
    };
    variants.map(job).collect()
}

fn job_name(variant: &str, scheme: &str) -> String {
    format!("fig11.{variant}.{scheme}")
}

/// α where each burst is followed by as much idle time as the one before: what a page's share of the interval leaves idle,
/// over the time to migrate a page. A burst takes α of its pages to SLC, so that α stands on both sides.
fn alpha_by_hand(plan: &Bursts) -> f64 {
    let pages = (plan.files * FILE_BYTES / 4096) as f64;
    let slc_ns = SLC_NS + plan.host.slc_ns as f64;
    let native_ns = NATIVE_NS + plan.host.native_ns as f64;
    // idle(α) = interval - wait - pages (α slc + (1 - α) native), and α = idle(α) / (pages (trig + erase)).
    let idle_ns = plan.interval_ns as f64 - WAIT_NS - pages * native_ns;
    (idle_ns / (pages * (TRIG_NS + ERASE_NS + slc_ns - native_ns))).clamp(0.0, 1.0)
}

/// The mean α of what was placed by measured idle time: from the second burst on.
fn mean_alpha(course: &Course) -> f64 {
    let first = course.bursts.first().map_or(0, Vec::len);
    let alphas: Vec<f64> = course.alphas.iter().skip(first).flatten().copied().collect();
    alphas.iter().sum::<f64>() / alphas.len() as f64
}

/// How full the volume was, in percent, when BM first was slower than DA's mean; at the end, if it never was.
fn falls_behind(bm: &Course, da_rate: f64) -> f64 {
    let bursts = bm.by_use();
    let fallen = bursts.iter().position(|&(_, rate)| rate < da_rate);
    let before = fallen.unwrap_or(bursts.len()).checked_sub(1);
    before.and_then(|before| bursts.get(before)).map_or(0.0, |&(percent, _)| percent)
}

/// The slowest file written while the volume was no fuller than that, of the mean of all.
fn slowest(course: &Course, percent_max: f64) -> f64 {
    let all: Vec<u64> = course.bursts.iter().flatten().copied().collect();
    let counted = all.iter().zip(1..).take_while(|&(_, files)| course.percent(files) <= percent_max);
    let slowest_ns = counted.map(|(&ns, _)| ns).max().unwrap_or(u64::MAX);
    rate(&[slowest_ns]) / rate(&all)
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    for (number, (variant, plan)) in VARIANTS.iter().enumerate() {
        let mut courses = Vec::new();
        for (scheme, policy) in SCHEMES {
            if let Some(course) = results.get::<Course>(&job_name(variant, scheme))? {
                let parameters = Parameters::of(&plan.setting(policy)?).with("workload", plan.workload());
                courses.push((scheme, parameters, course));
            }
        }
        let course = |wanted| courses.iter().find(|(scheme, ..)| *scheme == wanted);
        if let (Some((_, bm_parameters, bm)), Some((_, da_parameters, da))) = (course("bm"), course("da")) {
            let is_paper = number == 0;
            let da_rate = rate(&da.bursts.iter().flatten().copied().collect::<Vec<_>>());
            let name = format!("{variant}: BM ahead of DA's mean until");
            let behind = Row::shown(name, falls_behind(bm, da_rate), "% of the capacity", bm_parameters).paper(67.0);
            let (least, most) = CROSSING_PERCENT;
            outcome.rows.push(if is_paper { behind.bar(Bar::Between(least, most)) } else { behind });
            outcome.rows.extend(da_rows(variant, plan, is_paper, da, da_parameters));
        }
        if let Some((_, parameters, buffer)) = course("slc-buffer") {
            let mean = rate(&buffer.bursts.iter().flatten().copied().collect::<Vec<_>>());
            outcome.rows.push(Row::shown(format!("{variant}: SLC buffer, mean of all MiB"), mean, "MB/s", parameters));
            let name = format!("{variant}: SLC buffer, slowest MiB up to 90 % of the capacity");
            outcome.rows.push(Row::shown(name, slowest(buffer, 90.0), "of its mean", parameters));
        }
        if !courses.is_empty() {
            let courses: Vec<_> = courses.iter().map(|(scheme, _, course)| (*scheme, course)).collect();
            outcome.tables.push(table(variant, &courses));
            outcome.plots.extend(plots(variant, plan, &courses));
        }
    }
    Ok(outcome)
}

fn da_rows(variant: &str, plan: &Bursts, is_paper: bool, da: &Course, parameters: &Parameters) -> Vec<Row> {
    let mean = rate(&da.bursts.iter().flatten().copied().collect::<Vec<_>>());
    let mut rows = vec![Row::shown(format!("{variant}: DA, mean of all MiB"), mean, "MB/s", parameters)];
    let stable = if is_paper { &STABLE[..] } else { &STABLE_HELD_OUT };
    for &(percent, least) in stable {
        let name = format!("{variant}: DA, slowest MiB up to {percent} % of the capacity");
        rows.push(Row::shown(name, slowest(da, percent), "of its mean", parameters).bar(Bar::AtLeast(least)));
    }
    let by_hand = alpha_by_hand(plan);
    let hundredths = |alpha: f64| (alpha * 100.0).round() / 100.0;
    let near = Bar::Between(hundredths(by_hand - ALPHA_NEAR), hundredths(by_hand + ALPHA_NEAR));
    let alpha =
        Row::shown(format!("{variant}: DA, mean α"), mean_alpha(da), "", parameters).bar(near).because(LAST_TEN);
    rows.push(if is_paper { alpha.paper(0.5) } else { alpha });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_by_hand_is_what_the_issue_worked_out() {
        let of = |files, seconds| (alpha_by_hand(&held_out(files, seconds)) * 100.0).round() / 100.0;
        assert_eq!([of(4, 10), of(3, 8), of(6, 15), of(3, 15), of(6, 8)], [0.54, 0.56, 0.56, 1.0, 0.25]);
    }
}
