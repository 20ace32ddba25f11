//! The schemes with few and with many extra blocks. Invariant: the trace is the same with any number of them.

use super::sweep::Sweep;
use super::traces::{Setup, logs_at_most};
use crate::experiment::{Experiment, Parameters};

pub const FTL_EXTRA: Experiment = Experiment {
    id: "ftl-extra",
    title: "Log-block FTL: the number of extra blocks",
    about: "The six traces of Table II together, with 16 to 64 of 1,024 blocks extra. The figure is the number of pages erased beyond \
            those that the host writes, for each page that it writes. Means of three seeds.",
    differs: "The paper gives it for each trace, with 16, 32 and 64 (Fig. 5).",
    jobs: || SWEEP.jobs(),
    finish: |results| SWEEP.finish(results),
};

const SWEEP: Sweep = Sweep {
    id: "ftl-extra",
    values: &[16, 20, 24, 32, 48, 64],
    unit: "extra blocks",
    setup: Setup::paper,
    parameters: |extra_blocks| {
        Parameters::default()
            .with("chip", "k9f5608u0m, 16 MiB, every sector written")
            .with("blocks", format!("{extra_blocks} of 1,024 extra, {} log blocks at most", logs_at_most(extra_blocks)))
    },
};
