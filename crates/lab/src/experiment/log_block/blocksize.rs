//! The schemes on chips of the same size with other blocks. Invariant: the extra blocks have as many bytes on each.

use super::sweep::Sweep;
use super::traces::Setup;
use crate::experiment::{Experiment, Parameters};

pub const FTL_BLOCKSIZE: Experiment = Experiment {
    id: "ftl-blocksize",
    title: "Log-block FTL: the size of a block",
    about: "The six traces of Table II on chips of 16 MiB whose blocks have 16 to 128 pages, 768 KiB of it in extra blocks. The \
            figure is the number of pages erased beyond those that the host writes, for each page that it writes: a merge \
            copies a block whatever its size. Means of three seeds.",
    differs: "The paper has no such figure. An erase takes as long as that of the prototype's block here.",
    jobs: || SWEEP.jobs(),
    finish: |results| SWEEP.finish(results),
};

/// Pages of all extra blocks.
const EXTRA_PAGES: u32 = 1_536;

const SWEEP: Sweep = Sweep {
    id: "ftl-blocksize",
    values: &[16, 32, 64, 128],
    unit: "pages of a block",
    setup: |workload, scheme, pages_per_block| Setup {
        pages_per_block,
        ..Setup::paper(workload, scheme, EXTRA_PAGES / pages_per_block)
    },
    parameters: |pages_per_block| {
        Parameters::default()
            .with("chip", format!("16 MiB, pages of 512 B, {pages_per_block} of them a block, every sector written"))
            .with("blocks", format!("{} extra", EXTRA_PAGES / pages_per_block))
    },
};
