//! Figure 8: what 512 KiB cost in writing budget, by the share of them that goes to SLC. Invariant: beside the arithmetic stand
//! real runs, whose cost the chip counts.

use emulator::Profile;
use flexfs_core::{Policy, Wanted, wear};
use serde::{Deserialize, Serialize};

use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row, schemes};
use crate::play::{HostCost, Ledger, PlayError, Player, Setting};

pub const FIG8: Experiment = Experiment {
    id: "fig8",
    title: "Figure 8: How the number of blocks used depends on δ",
    about: "512 KiB are written, the share δ of them to SLC blocks of 256 KiB, and moved to native blocks of 512 KiB later. Each \
            block that is opened takes 512 KiB of the writing budget. The runs write 32 MiB, all to SLC or all natively, and \
            have time to move them; what the index takes, and the summaries of blocks, is in their figures.",
    differs: "1.5 % more budget as run: the index and the summaries of blocks take pages, which Eq. (8) does not \
              count.",
    jobs,
    finish,
};

const INPUT_BYTES: u64 = 512 << 10;
const MIB: f64 = (1 << 20) as f64;
/// The figure's wear indexes, and the writing budget that each uses, MB.
const FIGURE: [(f64, f64); 3] = [(1.0, 1.5), (0.5, 1.0), (0.0, 0.5)];

/// The runs: the share that goes to SLC, and how.
const RUNS: [(&str, Policy, f64); 2] = [("slc", schemes::BM, 1.0), ("native", Policy::NATIVE_ONLY, 0.0)];
const RUN_BYTES: u64 = 32 << 20;
const WRITE_BYTES: u64 = 128 << 10;
const REST_NS: u64 = 600 * 1_000_000_000;
/// How far a run may be from the arithmetic, percent.
const NEAR_PERCENT: f64 = 6.0;

/// What a run gives: cycles begun while it wrote and moved.
#[derive(Serialize, Deserialize)]
struct Cost {
    cycles: u64,
}

fn jobs() -> Vec<Job> {
    RUNS.map(|(name, policy, _)| Job::new(job_name(name), move || Ok(write(policy)?))).into()
}

fn job_name(run: &str) -> String {
    format!("fig8.{run}")
}

fn setting(policy: Policy) -> Result<Setting, PlayError> {
    let profile = Profile::default().with_capacity(128 << 20)?;
    Ok(Setting { profile, host: HostCost::NONE, policy, life: Wanted::default(), seed: 1 })
}

fn write(policy: Policy) -> Result<Cost, PlayError> {
    let mut player = Player::new(&setting(policy)?)?;
    let begun = |player: &mut Player| player.look().chip().all_cycles().map(u64::from).sum::<u64>();
    let (mut ledger, before) = (Ledger::default(), begun(&mut player));
    let ino = player.create("file")?.ino;
    for offset in (0..RUN_BYTES).step_by(WRITE_BYTES as usize) {
        let data = ledger.append("file", 1, WRITE_BYTES);
        player.write(ino, offset, &data)?;
    }
    player.sync()?;
    let until_ns = player.now_ns() + REST_NS;
    player.rest_until(until_ns)?;
    let cycles = begun(&mut player) - before;
    ledger.verify(&player.unmount()?)?;
    Ok(Cost { cycles })
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    for (run, policy, index) in RUNS {
        let Some(Cost { cycles }) = results.get(&job_name(run))? else { continue };
        let setting = setting(policy)?;
        let parameters = Parameters::of(&setting).with("workload", "a file of 32 MiB");
        let inputs = RUN_BYTES as f64 / INPUT_BYTES as f64;
        let ours = cycles as f64 * setting.profile.block_bytes() as f64 / inputs / MIB;
        let due = wear::output_bytes(INPUT_BYTES, index, 2) as f64 / MIB;
        let row = Row::shown(format!("δ = {index}: writing budget for 512 KiB, as run"), ours, "MB", &parameters);
        outcome.rows.push(row.paper(due).bar(Bar::Within { percent: NEAR_PERCENT, of: due }));
    }
    if outcome.rows.len() == RUNS.len() {
        for (index, paper) in FIGURE {
            let ours = wear::output_bytes(INPUT_BYTES, index, 2) as f64 / MIB;
            let parameters = Parameters::default().with("formula", "FlexFS Eq. (8)");
            let row = Row::shown(format!("δ = {index}: writing budget for 512 KiB"), ours, "MB", &parameters);
            outcome.rows.push(row.paper(paper).bar(Bar::Exactly(paper)));
        }
    }
    Ok(outcome)
}
