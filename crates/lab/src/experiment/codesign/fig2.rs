//! The co-design paper's Fig. 2, by the real file system: how evenly each file's pages stand on the channels.
//!
//! Invariant: where a page stands is what the file system's index says, and every page is compared after a remount.

use std::collections::BTreeMap;

use emulator::Chip;
use flexfs_core::dump::ChannelPages;
use flexfs_core::{FormatOptions, Fs, Ino, MountOptions, NewNode, Policy, ROOT_INO, kind};
use nand::Nand;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, LogNormal, Zipf};
use serde::{Deserialize, Serialize};

use super::real::{bytes_of, one_bit_profile, told};
use crate::experiment::{Axis, Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Plot, Results, Row, Series};
use crate::layers::LayerError;
use crate::play::PlayError;
use torture::crash::BASE_NS;

pub const CO_FIG2_REAL: Experiment = Experiment {
    id: "co-fig2-real",
    title: "Co-design, Fig. 2: the imbalance rate of files, by the real file system",
    about: "4,000 files are written on a chip of 8 channels, some at a time, in writes of the trace's sizes; then pages are \
            overwritten. The paper finds 26 % of the files of Exchange uneven under Round-Robin, and 67 % of MSNStorage's; \
            the rate of Eq. 1 is over 1 for 6.3 and 27.9 %.",
    differs: "The traces' files are not published: their sizes are log-normal, with the medians and deviations for which \
              Round-Robin comes to the paper's shares of uneven files. Few files then are as uneven as the paper's most \
              uneven ones. A file of fewer than 8 pages counts as even where no channel holds two of them.",
    jobs,
    finish,
};

const FILES: usize = 4_000;
const FILE_PAGES_MAX: f64 = 4_096.0;
const WRITE_PAGES_MAX: f64 = 64.0;
const PAGE_BYTES: u64 = 4096;
const SEED: u64 = 1;
/// A file with a page more on one channel than on another need not be uneven by much.
const DIFFERENCE_MANY: u64 = 2;
/// Shares of files with a rate up to 0, .25, .5 and so on are told.
const RATES: usize = 13;
const RATE_STEP: f64 = 0.25;

/// What is known of a trace.
struct Trace {
    name: &'static str,
    /// The natural logarithm of the median pages of a write, and the deviation of that; with it the mean is the trace's, 20.2
    /// and 9.99 KB.
    write_mu: f64,
    write_sigma: f64,
    /// Median pages of a file, and the deviation of their logarithm.
    file_median: f64,
    file_sigma: f64,
    /// Files that are written at a time.
    writers: usize,
    /// Pages that are overwritten, of all pages; and how uneven the popularity of files is then.
    overwritten: f64,
    zipf: f64,
    /// Shares that the paper tells, percent: of uneven files, and of files with a rate over 1.
    paper_uneven: f64,
    paper_over_one: f64,
}

const TRACES: [Trace; 2] = [
    Trace {
        name: "exchange",
        write_mu: 1.117_814,
        write_sigma: 1.0,
        file_median: 2.0,
        file_sigma: 2.0,
        writers: 1,
        overwritten: 0.2,
        zipf: 0.8,
        paper_uneven: 26.0,
        paper_over_one: 6.3,
    },
    Trace {
        name: "msnstorage",
        write_mu: 0.569_899,
        write_sigma: 0.8,
        file_median: 12.0,
        file_sigma: 2.0,
        writers: 4,
        overwritten: 0.0,
        zipf: 0.9,
        paper_uneven: 67.0,
        paper_over_one: 27.9,
    },
];

/// The rules that are compared, by their names on a command line and in those of jobs.
const RULES: [(&str, &str); 4] =
    [("round-robin", "round-robin"), ("fairness", "fairness"), ("fair+", "fair-plus"), ("window+", "window-plus")];

/// What a job gives.
#[derive(Serialize, Deserialize)]
struct BalanceOfFiles {
    files: u64,
    pages: u64,
    /// Files with a rate over 0, with a rate over 1, and with a channel that holds many pages more than another.
    uneven: u64,
    over_one: u64,
    by_many: u64,
    /// Files with a rate up to 0, .25, .5 and so on.
    up_to: Vec<u64>,
}

fn job_name(trace: &Trace, rule: &str) -> String {
    format!("co-fig2-real.{}-{rule}", trace.name)
}

fn jobs() -> Vec<Job> {
    let pairs = TRACES.iter().flat_map(|trace| RULES.map(|rule| (trace, rule)));
    pairs.map(|(trace, (rule, name))| Job::new(job_name(trace, name), move || balance(trace, rule))).collect()
}

/// A write of so many pages of a file.
struct FileWrite {
    file: usize,
    page: u64,
    pages: u64,
}

/// Draws files and writes as a trace has them.
struct Draws<'a> {
    trace: &'a Trace,
    dice: ChaCha8Rng,
}

impl Draws<'_> {
    /// A whole number of at least 1, by the logarithms' mean and deviation.
    fn pages(&mut self, mu: f64, sigma: f64, most: f64) -> Result<u64, ExperimentError> {
        let distribution = LogNormal::new(mu, sigma).map_err(|error| ExperimentError::Never(error.to_string()))?;
        Ok(distribution.sample(&mut self.dice).round().clamp(1.0, most) as u64)
    }

    fn write_pages(&mut self) -> Result<u64, ExperimentError> {
        self.pages(self.trace.write_mu, self.trace.write_sigma, WRITE_PAGES_MAX)
    }

    fn file_sizes(&mut self) -> Result<Vec<u64>, ExperimentError> {
        let (mu, sigma) = (self.trace.file_median.ln(), self.trace.file_sigma);
        (0..FILES).map(|_| self.pages(mu, sigma, FILE_PAGES_MAX)).collect()
    }

    /// The writes that make the files, some of them at a time.
    fn first_writes(&mut self, sizes: &[u64]) -> Result<Vec<FileWrite>, ExperimentError> {
        let (mut writes, mut files, mut open) = (Vec::new(), 0..FILES, Vec::new());
        loop {
            open.extend(files.by_ref().take(self.trace.writers - open.len()).map(|file| (file, 0)));
            if open.is_empty() {
                return Ok(writes);
            }
            let at = self.dice.random_range(0..open.len());
            let (file, page) = open[at];
            let pages = self.write_pages()?.min(sizes[file] - page);
            writes.push(FileWrite { file, page, pages });
            match page + pages < sizes[file] {
                true => open[at].1 += pages,
                false => drop(open.swap_remove(at)),
            }
        }
    }

    /// The writes that come then: to popular files above all, anywhere in them.
    fn overwrites(&mut self, sizes: &[u64]) -> Result<Vec<FileWrite>, ExperimentError> {
        let popularity = Zipf::new(FILES as f64, self.trace.zipf);
        let popularity = popularity.map_err(|error| ExperimentError::Never(error.to_string()))?;
        let wanted = (self.trace.overwritten * sizes.iter().sum::<u64>() as f64) as u64;
        let (mut writes, mut written) = (Vec::new(), 0);
        while written < wanted {
            let rank = popularity.sample(&mut self.dice) as usize - 1;
            // The most popular files are no matter of when they were made.
            let file = rank * 1_999 % FILES;
            let pages = self.write_pages()?.min(sizes[file]);
            let page = self.dice.random_range(0..=sizes[file] - pages);
            writes.push(FileWrite { file, page, pages });
            written += pages;
        }
        Ok(writes)
    }
}

/// The seed of a page's bytes after the write of this number.
fn seed_of(number: usize, page: u64) -> u64 {
    (number as u64) << 16 | page
}

fn mounted(chip: Chip, rule: &str) -> Result<Fs<Chip>, ExperimentError> {
    let policy = Policy::from_text(&format!("slc-only:channel={rule}"));
    let policy = policy.map_err(|error| ExperimentError::Never(error.to_string()))?;
    let options = MountOptions { policy, now_ns: BASE_NS, ..MountOptions::default() };
    Fs::mount(chip, options).map_err(|(_, source)| PlayError::Fs { doing: "mounting", source }.into())
}

/// Writes the files of a trace under a rule, and looks where their pages stand.
fn balance(trace: &Trace, rule: &str) -> Result<BalanceOfFiles, ExperimentError> {
    let mut draws = Draws { trace, dice: ChaCha8Rng::seed_from_u64(SEED) };
    let sizes = draws.file_sizes()?;
    let mut writes = draws.first_writes(&sizes)?;
    writes.extend(draws.overwrites(&sizes)?);
    let mut chip = Chip::new(&one_bit_profile()?, SEED).map_err(LayerError::Chip)?;
    let options = FormatOptions { volume_id: [2; 16], now_ns: BASE_NS, blank: true, ..FormatOptions::default() };
    told("formatting", Fs::format(&mut chip, &options))?;
    let mut fs = mounted(chip, rule)?;
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let mut inodes = Vec::<Ino>::new();
    for file in 0..FILES {
        inodes.push(told("creating", fs.create(ROOT_INO, format!("f{file}").as_bytes(), node, BASE_NS))?.ino);
    }
    let mut last_writes: Vec<Vec<usize>> = sizes.iter().map(|&pages| vec![0; pages as usize]).collect();
    for (number, &FileWrite { file, page, pages }) in writes.iter().enumerate() {
        let bytes: Vec<u8> = (page..page + pages).flat_map(|page| bytes_of(seed_of(number, page))).collect();
        told("writing", fs.write(inodes[file], page * PAGE_BYTES, &bytes, BASE_NS))?;
        last_writes[file][page as usize..(page + pages) as usize].fill(number);
    }
    let (chip, unmounted) = fs.unmount(BASE_NS);
    told("unmounting", unmounted)?;
    let mut fs = mounted(chip, rule)?;
    let mut found = vec![0; PAGE_BYTES as usize];
    for (&ino, last_writes) in inodes.iter().zip(&last_writes) {
        for (page, &number) in (0..).zip(last_writes) {
            told("reading back", fs.read(ino, page * PAGE_BYTES, &mut found))?;
            if found != bytes_of(seed_of(number, page)) {
                let what = format!("inode {ino}, page {page}: other bytes were read than were written");
                return Err(ExperimentError::Never(what));
            }
        }
    }
    counted(&mut fs, &inodes)
}

/// The balance of files on their channels.
fn counted(fs: &mut Fs<Chip>, inodes: &[Ino]) -> Result<BalanceOfFiles, ExperimentError> {
    let none = ChannelPages::on(fs.chip().geometry());
    let mut files: BTreeMap<Ino, ChannelPages> = inodes.iter().map(|&ino| (ino, none.clone())).collect();
    let each = fs.index_entries(&mut |entry| {
        if let Some(pages) = files.get_mut(&entry.ino) {
            pages.count(&entry);
        }
        true
    });
    told("looking", each)?;
    let count = |is_so: &dyn Fn(&ChannelPages) -> bool| files.values().filter(|pages| is_so(pages)).count() as u64;
    Ok(BalanceOfFiles {
        files: files.len() as u64,
        pages: files.values().flat_map(ChannelPages::by_channel).sum(),
        uneven: count(&|pages| pages.imbalance() > 0.0),
        over_one: count(&|pages| pages.imbalance() > 1.0),
        by_many: count(&|pages| pages.difference() > DIFFERENCE_MANY),
        up_to: (0..RATES).map(|step| count(&|pages| pages.imbalance() <= step as f64 * RATE_STEP)).collect(),
    })
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    for trace in &TRACES {
        let mut series = Vec::new();
        for (rule, name) in RULES {
            let Some(found) = results.get::<BalanceOfFiles>(&job_name(trace, name))? else { continue };
            outcome.rows.extend(rows(trace, rule, &found));
            let share = |files: &u64| 100.0 * *files as f64 / found.files as f64;
            let points = (0..).zip(&found.up_to).map(|(step, files)| (f64::from(step) * RATE_STEP, share(files)));
            series.push(Series { name: rule.into(), points: points.collect(), marked: true });
        }
        if !series.is_empty() {
            outcome.plots.push(Plot {
                name: trace.name.into(),
                title: format!("Files of {} by their imbalance rate", trace.name),
                x: Axis { label: "imbalance rate, at most", from: 0.0, to: (RATES - 1) as f64 * RATE_STEP },
                y: Axis { label: "% of files", from: 0.0, to: 100.0 },
                series,
            });
        }
    }
    Ok(outcome)
}

fn rows(trace: &Trace, rule: &str, found: &BalanceOfFiles) -> Vec<Row> {
    let parameters = Parameters::default()
        .with("chip", "codesign-mlc8 with one bit a cell")
        .with("policy", format!("slc-only:channel={rule}"))
        .with("files", format!("{FILES}, median {} pages, σ {}", trace.file_median, trace.file_sigma))
        .with("written at a time", trace.writers.to_string())
        .with("overwritten", format!("{:.0} %", 100.0 * trace.overwritten));
    let share = |what: &str, files: u64| {
        let percent = 100.0 * files as f64 / found.files as f64;
        Row::shown(format!("{}, {rule}: {what}", trace.name), percent, "%", &parameters)
    };
    let (uneven, over_one) = (share("uneven files", found.uneven), share("files with a rate over 1", found.over_one));
    let pages = Row::shown(format!("{}, {rule}: pages", trace.name), found.pages as f64, "", &parameters);
    let by_many = share("files with a channel over 2 pages ahead", found.by_many);
    match rule {
        "round-robin" => vec![
            pages,
            uneven.paper(trace.paper_uneven).bar(Bar::Between(trace.paper_uneven - 4.0, trace.paper_uneven + 4.0)),
            over_one.paper(trace.paper_over_one),
            by_many,
        ],
        "fairness" => vec![uneven, over_one, by_many],
        _ => vec![uneven, over_one.bar(Bar::AtMost(0.1)), by_many],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_as_long_as_those_of_the_trace() {
        for (trace, mean_kb) in TRACES.iter().zip([20.2, 9.99]) {
            let mut draws = Draws { trace, dice: ChaCha8Rng::seed_from_u64(7) };
            let pages: u64 = (0..50_000).map(|_| draws.write_pages().unwrap()).sum();
            let found_kb = pages as f64 * 4.0 / 50_000.0;
            assert!((found_kb / mean_kb - 1.0).abs() < 0.02, "{}: {found_kb} KB", trace.name);
        }
    }

    #[test]
    fn first_writes_make_every_page_of_every_file_once() {
        let mut draws = Draws { trace: &TRACES[1], dice: ChaCha8Rng::seed_from_u64(7) };
        let sizes = draws.file_sizes().unwrap();
        let mut next = vec![0; FILES];
        for FileWrite { file, page, pages } in draws.first_writes(&sizes).unwrap() {
            assert_eq!(page, next[file]);
            next[file] += pages;
        }
        assert_eq!(next, sizes);
    }
}
