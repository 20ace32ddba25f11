//! A recorded phone application on every preset. Invariant: the trace is the one that was recorded, all of it, and each preset is
//! asked the same at the same times.

use emulator::Profile;
use flexfs_core::{Policy, Wanted};

use crate::experiment::{Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row, Table};
use crate::play::{HostCost, PlayError, Replayed, Setting, replay};
use crate::trace::{self, Trace};

pub const MOBIGEN: Experiment = Experiment {
    id: "mobigen",
    title: "A phone application that was recorded",
    about: "Two minutes of a Facebook application, recorded by MobiGen: 30,819 system calls, of which those that move bytes or \
            change names are asked. Most of its descriptors have a placeholder for a path; each of those is a file of its own. \
            Every preset on the paper's chip, empty at first but for what the application reads and did not write.",
    differs: "The paper has no such table.",
    jobs,
    finish,
};

/// What MobiGen recorded, compressed.
const RECORDED: &[u8] = include_bytes!("../../../fixtures/facebook.mobigen.gz");
/// Presets beside those that have a name of their own.
const BUFFER_PERCENT: u8 = 12;

fn recorded() -> Result<Trace, ExperimentError> {
    let wrong = |why: String| ExperimentError::Play(PlayError::Wrong(format!("the recorded application: {why}")));
    let bytes = trace::unpacked(RECORDED.to_vec()).map_err(|error| wrong(error.to_string()))?;
    trace::read(&bytes).map_err(|error| wrong(error.to_string()))
}

fn policies() -> impl Iterator<Item = Policy> {
    Policy::PRESETS.into_iter().chain([Policy::slc_buffer(BUFFER_PERCENT)])
}

fn setting(policy: Policy) -> Setting {
    Setting { profile: Profile::default(), host: HostCost::NONE, policy, life: Wanted::default(), seed: 1 }
}

fn jobs() -> Vec<Job> {
    let job = |policy: Policy| Job::new(job_name(policy), move || Ok(replay(&setting(policy), &recorded()?, &|_| ())?));
    policies().map(job).collect()
}

fn job_name(policy: Policy) -> String {
    format!("mobigen.{}", policy.name())
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let (mut outcome, mut rows) = (Outcome::default(), Vec::new());
    for policy in policies() {
        let Some(found) = results.get::<Replayed>(&job_name(policy))? else { continue };
        let parameters = Parameters::of(&setting(policy)).with("workload", "facebook, recorded by MobiGen");
        let row = |what: &str, ours, unit| Row::shown(format!("{}: {what}", policy.name()), ours, unit, &parameters);
        outcome.rows.push(row("mean response", found.answered.mean_us, "µs"));
        outcome.rows.push(row("response of a sync, 99 %", found.answered.syncs.p99_us, "µs"));
        rows.push(told(policy, &found));
    }
    if !rows.is_empty() {
        let header = vec![
            "policy",
            "requests",
            "mean_us",
            "write_p99_us",
            "sync_p99_us",
            "read_p99_us",
            "slc_pages",
            "native_pages",
            "internal_pages",
            "erases",
            "flash_s",
            "energy_mj",
        ];
        outcome.tables.push(Table { name: "presets".into(), header, rows });
    }
    Ok(outcome)
}

fn told(policy: Policy, found: &Replayed) -> Vec<String> {
    let answered = &found.answered;
    vec![
        policy.to_string(),
        answered.requests.to_string(),
        format!("{:.1}", answered.mean_us),
        format!("{:.0}", answered.writes.p99_us),
        format!("{:.0}", answered.syncs.p99_us),
        format!("{:.0}", answered.reads.p99_us),
        found.slc_pages.to_string(),
        found.native_pages.to_string(),
        found.internal_pages.to_string(),
        found.erases.to_string(),
        format!("{:.3}", found.flash_s),
        format!("{:.1}", found.energy_mj),
    ]
}
