//! What the figures of throughput and α have in common: the table and the plots of several courses of one workload.
//!
//! Invariant: nothing is judged here.

use crate::experiment::workload::bursts::{Bursts, Course, rate};
use crate::experiment::{Axis, Plot, Series, Table};

/// Every request: how full the volume was after it, the time it took, and α.
pub fn table(variant: &str, courses: &[(&str, &Course)]) -> Table {
    let mut rows = Vec::new();
    for (scheme, course) in courses {
        let requests =
            course.bursts.iter().enumerate().flat_map(|(burst, times)| times.iter().map(move |ns| (burst, ns)));
        for (((burst, &ns), alpha), count) in requests.zip(&course.alphas).zip(1..) {
            let (percent, rate) = (format!("{:.3}", course.percent(count)), format!("{:.4}", rate(&[ns])));
            let alpha = alpha.map_or_else(String::new, |alpha| format!("{alpha:.4}"));
            rows.push(vec![(*scheme).to_owned(), burst.to_string(), percent, (ns / 1000).to_string(), rate, alpha]);
        }
    }
    let header = vec!["scheme", "burst", "utilisation_percent", "mib_us", "mb_per_s", "alpha"];
    Table { name: variant.to_owned(), header, rows }
}

/// Throughput against how full the volume is, and α below it.
pub fn plots(variant: &str, plan: &Bursts, courses: &[(&str, &Course)]) -> Vec<Plot> {
    let x = || Axis { label: "utilisation (%)", from: 0.0, to: 100.0 };
    let title = format!("{} MiB, {}, host cost {}", plan.chip_bytes >> 20, plan.workload(), plan.host.name);
    let series: Vec<Series> = courses
        .iter()
        .map(|&(scheme, course)| Series { name: scheme.to_owned(), points: course.by_use(), marked: true })
        .collect();
    let most = series.iter().flat_map(|series| &series.points).map(|&(_, rate)| rate).fold(0.0, f64::max);
    let y = Axis { label: "throughput (MB/s)", from: 0.0, to: most * 1.1 };
    let throughput = Plot { name: variant.to_owned(), title: title.clone(), x: x(), y, series };
    let alpha = |&(scheme, course): &(&str, &Course)| {
        let points = course.alphas.iter().zip(1..);
        let points: Vec<_> =
            points.filter_map(|(alpha, requests)| Some((course.percent(requests), (*alpha)?))).collect();
        (!points.is_empty()).then(|| Series { name: format!("{scheme}, α"), points, marked: true })
    };
    let series = courses.iter().filter_map(alpha).collect();
    let y = Axis { label: "α", from: 0.0, to: 1.05 };
    vec![throughput, Plot { name: format!("{variant}-alpha"), title, x: x(), y, series }]
}
