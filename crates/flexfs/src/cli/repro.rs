//! What `flexfs repro` is told.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lab::experiment::{self, Experiment};

/// Run the papers' experiments on emulated chips: their figures, ours, and whether ours are good enough.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs repro                        all of them, some minutes
  flexfs repro fig10 --out report     one, and report/index.html with plots and tables
  flexfs repro fig10 --json | jq '.rows[] | select(.ok | not)'
  flexfs repro fig14 --top            with a picture of the volume at work
  flexfs repro --list                 the experiments, and the jobs that each consists of

Several machines share the work by jobs, in any order; whoever has all results makes the report:
  flexfs repro --only fig10.64MiB.bm --out results
  flexfs repro fig10 --merge results --out report

Times are the chip's, and the host's as the experiment says; nothing is measured by this machine's clock, so the same
figures come everywhere. With --json one experiment is one object, several or all are an array.
Exit status: 0 if every row is ok, 1 otherwise, 2 wrong usage.")]
pub struct Repro {
    /// The experiments: table1, fig4, …, or all [default: all]
    #[arg(value_name = "ID", value_parser = asked())]
    pub ids: Vec<Asked>,
    /// Write a report into this directory: index.html, CSV, SVG
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run this job alone and write its result into the directory of --out
    #[arg(long, value_name = "JOB", requires = "out", conflicts_with_all = ["ids", "list", "merge", "long"])]
    pub only: Option<String>,
    /// Run nothing: take the results of jobs from this directory
    #[arg(long, value_name = "DIR", conflicts_with = "list")]
    pub merge: Option<PathBuf>,
    /// The jobs that take many minutes, too
    #[arg(long)]
    pub long: bool,
    /// Say which experiments and jobs there are
    #[arg(long, conflicts_with = "out")]
    pub list: bool,
    /// Jobs at a time [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Watch the volumes in the terminal, as `flexfs top` shows them; one job at a time, q ends them
    #[arg(long, conflicts_with_all = ["only", "merge", "list", "jobs"])]
    pub top: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What an id stands for.
#[derive(Clone, Copy)]
pub enum Asked {
    All,
    One(Experiment),
}

const ALL: &str = "all";

fn asked() -> impl TypedValueParser<Value = Asked> {
    let ids = experiment::ALL.map(|experiment| experiment.id);
    let names = ids.into_iter().chain(experiment::ALIASES.map(|(alias, _)| alias)).chain([ALL]);
    PossibleValuesParser::new(names).map(|id| experiment::named(&id).map_or(Asked::All, Asked::One))
}
