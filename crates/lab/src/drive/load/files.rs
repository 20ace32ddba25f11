//! Sizes of files. Invariant: the pages of all files are numbered in one row, those of a file behind one another.

use rand_distr::{Distribution, LogNormal};

use super::{DiceStream, PageSpan, TraceShape, dice};
use crate::drive::DriveError;

const FILE_PAGES_MAX: f64 = 4_096.0;

/// The pages of each file.
#[derive(Clone, Debug)]
pub struct FileSizes {
    /// The first page of each file, and the end of the last.
    firsts: Vec<u32>,
}

impl FileSizes {
    /// So many files.
    pub fn count(trace: &TraceShape, seed: u64, files: usize) -> Result<Self, DriveError> {
        let sizes = sizes(trace, seed)?;
        Ok(Self::of(sizes.take(files)))
    }

    /// Files of so many pages in all; the last one is cut.
    pub fn filling(trace: &TraceShape, seed: u64, pages: u32) -> Result<Self, DriveError> {
        let mut left = pages;
        let cut = sizes(trace, seed)?.map_while(move |size| {
            let size = size.min(left);
            left -= size;
            (size > 0).then_some(size)
        });
        Ok(Self::of(cut))
    }

    /// Files of these pages.
    pub fn of(sizes: impl Iterator<Item = u32>) -> Self {
        let mut end = 0;
        let ends = sizes.map(|size| {
            end += size;
            end
        });
        Self { firsts: [0].into_iter().chain(ends).collect() }
    }

    pub fn files(&self) -> u32 {
        self.firsts.len() as u32 - 1
    }

    /// Pages of all files.
    pub fn pages(&self) -> u32 {
        self.firsts.last().copied().unwrap_or(0)
    }

    /// Pages of a file.
    pub fn size(&self, file: u32) -> u32 {
        self.firsts[file as usize + 1] - self.firsts[file as usize]
    }

    /// Those pages of a file, which it must have.
    pub fn span(&self, file: u32, offset: u32, pages: u32) -> PageSpan {
        PageSpan { file, offset, pages, first: self.firsts[file as usize] + offset }
    }
}

/// Sizes without an end.
fn sizes(trace: &TraceShape, seed: u64) -> Result<impl Iterator<Item = u32> + use<>, DriveError> {
    let pages = LogNormal::new(trace.file_median_pages.ln(), trace.file_sigma);
    let pages = pages.map_err(|error| DriveError::Plan(error.to_string()))?;
    let sizes = pages.sample_iter(dice(seed, DiceStream::Files));
    Ok(sizes.map(|pages| pages.round().clamp(1.0, FILE_PAGES_MAX) as u32))
}
