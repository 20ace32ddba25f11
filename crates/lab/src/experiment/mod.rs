//! The experiments of the papers, a folder for each paper, a file for each experiment.
//!
//! An experiment is a set of independent jobs, so that processors and machines can share them, and a function that makes
//! rows, tables and plots of what they give. Invariant: a job sets chip, host cost, policy and workload, and what it
//! gives depends on nothing else; what is made of the results depends on the results alone.

mod codesign;
mod flexfs;
mod job;
mod log_block;
mod outcome;
mod schemes;
mod workload;

pub use job::{Job, Results, run};
pub use outcome::{Axis, Bar, ColumnPlot, ColumnSeries, Outcome, Parameters, Plot, Row, Series, Table};

use crate::drive::DriveError;
use crate::layers::LayerError;
use crate::play::PlayError;

/// One of the papers' tables or figures.
#[derive(Clone, Copy)]
pub struct Experiment {
    pub id: &'static str,
    pub title: &'static str,
    /// What is done, and what the paper found, in a few sentences for someone who has it in hand.
    pub about: &'static str,
    /// What of our figures differs from the paper's, and why.
    pub differs: &'static str,
    pub jobs: fn() -> Vec<Job>,
    pub finish: fn(&Results) -> Result<Outcome, ExperimentError>,
}

/// All there are.
pub const ALL: [Experiment; 36] = [
    flexfs::table1::TABLE1,
    flexfs::fig4::FIG4,
    flexfs::fig6::FIG6,
    flexfs::fig7::FIG7,
    flexfs::fig8::FIG8,
    flexfs::fig10::FIG10,
    flexfs::fig11::FIG11,
    flexfs::fig12::FIG12,
    flexfs::fig13::FIG13,
    flexfs::fig14::FIG14,
    flexfs::fig15::FIG15,
    flexfs::table6::TABLE6,
    flexfs::fig16::FIG16,
    flexfs::mobigen::MOBIGEN,
    flexfs::sustained::SUSTAINED,
    flexfs::life::LIFE,
    flexfs::energy::ENERGY,
    log_block::fig2::FTL_FIG2,
    log_block::fig3::FTL_FIG3,
    log_block::memory::FTL_MEMORY,
    log_block::startup::FTL_STARTUP,
    log_block::table2::FTL_TABLE2,
    log_block::fig5::FTL_FIG5,
    log_block::fig6::FTL_FIG6,
    log_block::extra::FTL_EXTRA,
    log_block::blocksize::FTL_BLOCKSIZE,
    log_block::future::FTL_FUTURE,
    codesign::table::CO_TABLE,
    codesign::fig1::CO_FIG1,
    codesign::fig2::CO_FIG2,
    codesign::fig2_real::CO_FIG2_REAL,
    codesign::fig3::CO_FIG3,
    codesign::fig6::CO_FIG6,
    codesign::fig7::CO_FIG7,
    codesign::fig8::CO_FIG8,
    codesign::real::CO_REAL,
];

/// Other names that some have: the tables of the paper whose figures they give.
pub const ALIASES: [(&str, &str); 2] = [("table3", "fig14"), ("table4", "fig15")];

/// The experiment of that id, or of that other name.
pub fn named(id: &str) -> Option<Experiment> {
    let id = ALIASES.iter().find(|(alias, _)| *alias == id).map_or(id, |&(_, id)| id);
    ALL.into_iter().find(|experiment| experiment.id == id)
}

/// Why an experiment gives no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    #[error(transparent)]
    Play(#[from] PlayError),
    /// A translation layer.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// The model of a drive.
    #[error("the model of the drive: {0}")]
    Drive(#[from] DriveError),
    /// The chip itself refused an operation.
    #[error("the chip: {0}")]
    Nand(#[from] nand::NandError),
    /// A result is not what this version writes.
    #[error("the result of {job} cannot be read: {source}")]
    Result { job: String, source: serde_json::Error },
    /// What the workload waits for does not happen.
    #[error("{0}")]
    Never(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_has_a_name_of_its_own_that_says_whose_it_is_and_can_name_a_file() {
        let mut names = Vec::new();
        for experiment in ALL {
            let jobs = (experiment.jobs)();
            assert!(jobs.iter().all(|job| job.name.starts_with(&format!("{}.", experiment.id))));
            names.extend(jobs.into_iter().map(|job| job.name));
        }
        assert!(
            names.iter().all(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c))),
            "{names:?}"
        );
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_papers_worked_examples_come_out() {
        let examples = [
            log_block::fig2::FTL_FIG2,
            log_block::fig3::FTL_FIG3,
            log_block::table2::FTL_TABLE2,
            codesign::fig1::CO_FIG1,
        ];
        for experiment in examples {
            let results = run(&(experiment.jobs)(), 2, &|_| {}).unwrap_or_else(|(job, error)| panic!("{job}: {error}"));
            let outcome = (experiment.finish)(&results).unwrap();
            let wrong: Vec<_> = outcome.rows.iter().filter(|row| !row.ok).collect();
            assert!(wrong.is_empty() && !outcome.rows.is_empty(), "{wrong:#?}");
        }
    }

    #[test]
    fn nothing_is_made_of_no_results_and_nobody_complains() {
        for experiment in ALL {
            let outcome = (experiment.finish)(&Results::default()).unwrap();
            assert!(outcome.rows.is_empty() && outcome.plots.is_empty(), "{}", experiment.id);
        }
    }
}
