//! Many histories, beside each other.
//!
//! Invariant: the report depends on what was asked for alone, not on how many threads ran it.

use std::sync::atomic::{AtomicU64, Ordering};

use ftl::Scheme;

use super::cuts::{Cut, Findings, History};
use super::rig::{Rig, RigKind};
use crate::parallel::parallel;

/// What to run.
#[derive(Clone, Debug)]
pub struct Campaign {
    pub schemes: Vec<Scheme>,
    /// Histories of each scheme on each kind of chip.
    pub histories: u64,
    pub steps: usize,
    pub seed: u64,
    pub threads: usize,
}

/// A violation, and the history that shows it.
#[derive(Clone, Debug)]
pub struct Found {
    pub history: History,
    pub cut: Cut,
    pub error: String,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub findings: Findings,
    pub found: Vec<Found>,
}

/// Runs a campaign; `progress` is told how many of how many histories are done.
pub fn campaign(campaign: &Campaign, progress: &(dyn Fn(u64, u64) + Sync)) -> Report {
    let mut histories = Vec::new();
    for &scheme in &campaign.schemes {
        let has_map = matches!(scheme, Scheme::LogBlock | Scheme::Dftl);
        for kind in RigKind::ALL.into_iter().filter(|kind| *kind != RigKind::Long || has_map) {
            // A long chip takes long to read.
            let (count, steps) = match kind {
                RigKind::Small | RigKind::Wide => (campaign.histories, campaign.steps),
                RigKind::Cached => (campaign.histories.div_ceil(2), campaign.steps),
                RigKind::Long => (campaign.histories.div_ceil(8), campaign.steps / 4),
                RigKind::Large => (campaign.histories.div_ceil(2), campaign.steps / 5),
            };
            let steps = steps + Rig { scheme, kind }.quiet_steps();
            let seeds = campaign.seed..campaign.seed + count;
            histories.extend(seeds.map(|seed| History { rig: Rig { scheme, kind }, seed, steps }));
        }
    }
    let done = AtomicU64::new(0);
    let outcomes = parallel(campaign.threads, &histories, |history| {
        let findings = history.run();
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, histories.len() as u64);
        findings
    });
    let mut report = Report::default();
    for (history, findings) in histories.iter().zip(outcomes) {
        report.findings.add(&findings);
        let found = findings.violations.into_iter().map(|(cut, error)| Found { history: *history, cut, error });
        report.found.extend(found);
    }
    report
}
