//! Jobs and their results. Invariant: a result is the same on whatever thread or machine its job ran, and in whatever
//! order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ExperimentError;
use torture::parallel::parallel;

type Work = Box<dyn Fn() -> Result<Value, ExperimentError> + Send + Sync>;

/// A part of an experiment that can run by itself.
pub struct Job {
    pub name: String,
    /// It takes many minutes, or much memory.
    pub is_long: bool,
    pub run: Work,
}

impl Job {
    /// A job that gives what `work` gives.
    pub fn new<T: Serialize>(
        name: impl Into<String>,
        work: impl Fn() -> Result<T, ExperimentError> + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        let job = name.clone();
        let run = move || {
            serde_json::to_value(work()?).map_err(|source| ExperimentError::Result { job: job.clone(), source })
        };
        Self { name, is_long: false, run: Box::new(run) }
    }
}

/// What jobs gave, by their names.
#[derive(Clone, Debug, Default)]
pub struct Results(BTreeMap<String, Value>);

impl Results {
    pub fn insert(&mut self, job: String, result: Value) {
        self.0.insert(job, result);
    }

    pub fn has(&self, job: &str) -> bool {
        self.0.contains_key(job)
    }

    /// What a job gave, if it ran.
    pub fn get<T: DeserializeOwned>(&self, job: &str) -> Result<Option<T>, ExperimentError> {
        let read = |value: &Value| T::deserialize(value);
        let result = self.0.get(job).map(read).transpose();
        result.map_err(|source| ExperimentError::Result { job: job.into(), source })
    }
}

/// Runs jobs, some beside each other; `progress` hears how many of them are done. The first that fails, in their order,
/// is named with its error.
pub fn run(
    jobs: &[Job],
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Results, (String, ExperimentError)> {
    let done = AtomicU64::new(0);
    let outcomes = parallel(threads, jobs, |job| {
        let result = (job.run)();
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        result
    });
    let mut results = Results::default();
    for (job, outcome) in jobs.iter().zip(outcomes) {
        results.insert(job.name.clone(), outcome.map_err(|error| (job.name.clone(), error))?);
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use torture::content::mix;

    /// A reader of JSON that rounds made a merged report differ from a run in the last digit.
    #[test]
    fn a_result_that_was_written_and_read_is_the_same_to_the_last_digit() {
        let figures: Vec<f64> = (0..10_000).map(|nth| 1e4 * (mix(nth) as f64 / u64::MAX as f64)).collect();
        let its = figures.clone();
        let written = (Job::new("figures", move || Ok(its.clone())).run)().unwrap().to_string();
        let mut results = Results::default();
        results.insert("figures".to_owned(), serde_json::from_str(&written).unwrap());
        assert_eq!(results.get::<Vec<f64>>("figures").unwrap(), Some(figures));
    }
}
