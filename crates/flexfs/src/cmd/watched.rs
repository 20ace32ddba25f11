//! Jobs of experiments, one after the other, with a picture of the volume that each plays with: `flexfs repro --top`.
//!
//! Invariant: the jobs give the same results as without; the picture's times are those of the emulated chip.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};
use emulator::Chip;
use flexfs_core::Fs;
use lab::experiment::{Job, Results};
use lab::play::{Watcher, watched};

use crate::figures::{Figures, Live};
use crate::monitor::Form;
use crate::top::screen::{self, End, News};
use crate::top::{Picture, ServerAnswer};

/// Between two pictures.
const EVERY: Duration = Duration::from_millis(100);

/// Runs the jobs. A key that quits ends them too.
pub fn run(jobs: Vec<Job>) -> Result<Results> {
    if !io::stdout().is_terminal() {
        bail!("repro --top: standard output is not a terminal; without --top the results are printed");
    }
    let (send, news) = mpsc::channel();
    let work = move || run_on(&jobs, &send);
    let worker = thread::Builder::new().name("experiments".into()).spawn(work).context("cannot run jobs")?;
    let first = loop {
        match news.recv() {
            Ok(News::Told(answer)) => break Some(answer),
            Ok(News::Failed(error)) => return Err(error),
            Ok(News::Silent | News::Ended) => {}
            // No job played with a volume long enough to be seen.
            Err(_) => break None,
        }
    };
    if let Some(first) = first
        && screen::watch(Picture::new(first, EVERY), &news)? == End::Quit
    {
        bail!("repro --top: ended by a key before all jobs were done");
    }
    worker.join().unwrap_or_else(|_| bail!("a job of an experiment panicked"))
}

fn run_on(jobs: &[Job], send: &Sender<News>) -> Result<Results> {
    let mut results = Results::default();
    for job in jobs {
        let result = watched(watcher(job.name.clone(), send.clone()), || (job.run)());
        results.insert(job.name.clone(), result.with_context(|| job.name.clone())?);
    }
    Ok(results)
}

/// Tells of a job's volume every now and then.
fn watcher(job: String, send: Sender<News>) -> Watcher {
    let mut told: Option<Instant> = None;
    Box::new(move |fs| {
        if told.is_some_and(|told| told.elapsed() < EVERY) {
            return;
        }
        told = Some(Instant::now());
        // Nobody may be listening any more.
        let _ = send.send(snapshot(fs, &job).map_or_else(News::Failed, News::Told));
    })
}

fn snapshot(fs: &mut Fs<Chip>, job: &str) -> Result<ServerAnswer, Error> {
    let (elapsed, counters) = (Duration::from_nanos(fs.chip().now_ns()), *fs.chip().counters());
    let live = Live { mountpoint: "an emulated chip".into(), elapsed, counters };
    let name = fs.chip().profile().name.clone();
    let figures = Figures::of_chip(fs, &name, Path::new(job))?.with_live(live);
    Ok(ServerAnswer::read(&figures.shown(Form::Json))?)
}
