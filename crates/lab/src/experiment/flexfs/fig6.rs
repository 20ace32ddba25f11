//! Figure 6: how idle time is predicted, by a volume that is written to in windows with pauses of all lengths. Invariant:
//! the volume's α is compared with the figure's weighted mean of pauses that are known from the workload alone.

use emulator::Profile;
use flexfs_core::Wanted;
use serde::{Deserialize, Serialize};

use crate::experiment::{
    Axis, Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Plot, Results, Row, Series, Table, schemes,
};
use crate::play::{HostCost, Ledger, PlayError, Player, Setting};

pub const FIG6: Experiment = Experiment {
    id: "fig6",
    title: "Figure 6: Our approach to idle time prediction",
    about: "A window is the time in which 1,024 pages are written. The idle time of the last ten windows is averaged, that \
            of the latest three with more weight, and α follows from it by Eq. (1) and (2). A file is appended to in \
            bursts of exactly a window, with a pause after each.",
    differs: "Nothing: α is what Eq. (1) and (2) give, computed in whole millionths.",
    jobs,
    finish,
};

const JOB: &str = "fig6.windows";

/// Pauses after each window, s: long and short ones by turns, then the same for long.
const PAUSES_S: [u64; 24] = [20, 4, 12, 6, 9, 15, 3, 8, 10, 5, 7, 11, 2, 2, 2, 16, 16, 16, 9, 9, 9, 9, 9, 9];

const WINDOW_PAGES: u64 = 1024;
const PAGE_BYTES: u64 = 4096;
/// Pages of a request.
const REQUEST_PAGES: u64 = 32;
const SECOND_NS: u64 = 1_000_000_000;

/// T_wait, and the time to migrate a page: T_trig + T_erase^SLC / S_p^SLC, s.
const WAIT_S: f64 = 1.0;
const PAGE_S: f64 = 0.015 + 0.002 / 64.0;

/// How far α may be from what is worked out by hand: a request takes time, too.
const NEAR: f64 = 0.01;

/// What the job gives: α while each window after the first was written.
#[derive(Serialize, Deserialize)]
struct Windows {
    alphas: Vec<f64>,
}

fn jobs() -> Vec<Job> {
    vec![Job::new(JOB, write)]
}

fn setting() -> Result<Setting, PlayError> {
    let profile = Profile::default().with_capacity(128 << 20)?;
    Ok(Setting { profile, host: HostCost::NONE, policy: schemes::DA, life: Wanted::default(), seed: 1 })
}

fn write() -> Result<Windows, ExperimentError> {
    let mut player = Player::new(&setting()?)?;
    let mut ledger = Ledger::default();
    let ino = player.create("file")?.ino;
    let (mut offset, mut alphas) = (0, Vec::new());
    for pause_s in PAUSES_S {
        for _ in 0..WINDOW_PAGES / REQUEST_PAGES {
            let data = ledger.append("file", 1, REQUEST_PAGES * PAGE_BYTES);
            player.write(ino, offset, &data)?;
            offset += REQUEST_PAGES * PAGE_BYTES;
        }
        let info = player.look().info().map_err(|source| PlayError::Fs { doing: "asking for α", source })?;
        alphas.push(info.alpha().unwrap_or(f64::NAN));
        let until_ns = player.now_ns() + pause_s * SECOND_NS;
        player.rest_until(until_ns)?;
    }
    ledger.verify(&player.unmount()?)?;
    alphas.remove(0);
    Ok(Windows { alphas })
}

/// α after so many windows, by the figure: the latest three of ten weigh double.
fn by_hand(windows: usize) -> f64 {
    let latest = PAUSES_S.get(..windows).unwrap_or(&PAUSES_S).iter().rev().take(10).enumerate();
    let weighted = latest.map(|(age, &pause_s)| (if age < 3 { 2.0 } else { 1.0 }, pause_s as f64 - WAIT_S));
    let (sum_s, weights) =
        weighted.fold((0.0, 0.0), |(sum, all), (weight, idle_s)| (sum + weight * idle_s, all + weight));
    (sum_s / weights / (WINDOW_PAGES as f64 * PAGE_S)).min(1.0)
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let Some(Windows { alphas }) = results.get(JOB)? else { return Ok(Outcome::default()) };
    let workload = "a file appended to, a pause after each 1,024 pages";
    let parameters = Parameters::of(&setting()?).with("workload", workload);
    let expected: Vec<f64> = (1..=alphas.len()).map(by_hand).collect();
    let apart = alphas.iter().zip(&expected).map(|(ours, by_hand)| (ours - by_hand).abs()).fold(0.0, f64::max);
    let name = "α apart from the weighted mean by hand, at most";
    let rows = vec![Row::shown(name, apart, "", &parameters).bar(Bar::AtMost(NEAR))];
    let windows = alphas.iter().zip(&expected).zip(PAUSES_S).zip(1..);
    let told = windows.map(|(((ours, by_hand), pause_s), window): (((&f64, &f64), u64), u32)| {
        vec![window.to_string(), pause_s.to_string(), format!("{by_hand:.4}"), format!("{ours:.4}")]
    });
    let header = vec!["window", "pause_s", "alpha_by_hand", "alpha"];
    let table = Table { name: "windows".into(), header, rows: told.collect() };
    let points = |alphas: &[f64]| alphas.iter().zip(1..).map(|(&alpha, window)| (f64::from(window), alpha)).collect();
    let plot = Plot {
        name: "alpha".into(),
        title: "α after each window".into(),
        x: Axis { label: "windows", from: 0.0, to: PAUSES_S.len() as f64 },
        y: Axis { label: "α", from: 0.0, to: 1.05 },
        series: vec![
            Series { name: "by hand".into(), points: points(&expected), marked: false },
            Series { name: "ours".into(), points: points(&alphas), marked: true },
        ],
    };
    Ok(Outcome { rows, tables: vec![table], plots: vec![plot], ..Outcome::default() })
}
