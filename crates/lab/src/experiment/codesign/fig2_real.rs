//! The co-design paper's Fig. 2, by the real file system: how evenly each file's pages stand on the channels.
//!
//! Invariant: where a page stands is what the file system's index says, and every page is compared after a remount.

use std::collections::BTreeMap;

use emulator::Chip;
use flexfs_core::dump::ChannelPages;
use flexfs_core::{FormatOptions, Fs, Ino, MountOptions, NewNode, Policy, ROOT_INO, kind};
use nand::Nand;
use serde::{Deserialize, Serialize};

use super::even_load::FILES;
use super::laid_files::{BY_MANY_MOST, DIFFERENCE_MANY, OVER_ONE_MOST, share_of_paper};
use super::real::{bytes_of, one_bit_profile, told};
use crate::drive::load::{FileSizes, TRACES, TraceShape, first_writes, overwrites};
use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row};
use crate::layers::LayerError;
use crate::play::PlayError;
use torture::crash::BASE_NS;

pub const CO_FIG2_REAL: Experiment = Experiment {
    id: "co-fig2-real",
    title: "Co-design, Fig. 2: the imbalance rate of files, by the real file system",
    about: "The files of co-fig2 are written by FlexFS to a chip of 8 channels, under each channel rule. The paper finds 26 % of the \
            files of Exchange and 67 % of those of MSNStorage uneven under Round-Robin; the rate of Eq. 1 is over 1 for 6.3 and \
            27.9 %.",
    differs: "The traces' files are not published: their sizes are log-normal, with the medians and deviations for which \
              Round-Robin comes to the paper's shares of uneven files. A file of fewer than 8 pages counts as even where no \
              channel holds two of them. A job takes up to 2.6 GB of memory, that of LiveMaps most.",
    jobs,
    finish,
};

const PAGE_BYTES: u64 = 4096;
const SEED: u64 = 1;

/// How far ours may be from the paper's share of uneven files, points.
const POINTS: f64 = 4.0;

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
}

fn job_name(trace: &TraceShape, rule: &str) -> String {
    format!("co-fig2-real.{}-{rule}", trace.name)
}

fn jobs() -> Vec<Job> {
    let pairs = TRACES.iter().flat_map(|trace| RULES.map(|rule| (trace, rule)));
    pairs.map(|(trace, (rule, name))| Job::new(job_name(trace, name), move || balance(trace, rule))).collect()
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
fn balance(trace: &TraceShape, rule: &str) -> Result<BalanceOfFiles, ExperimentError> {
    let files = FileSizes::count(trace, SEED, FILES)?;
    let mut writes = first_writes(trace, &files, SEED)?;
    writes.extend(overwrites(trace, &files, SEED)?);
    let mut chip = Chip::new(&one_bit_profile()?, SEED).map_err(LayerError::Chip)?;
    let options = FormatOptions { volume_id: [2; 16], now_ns: BASE_NS, blank: true, ..FormatOptions::default() };
    told("formatting", Fs::format(&mut chip, &options))?;
    let mut fs = mounted(chip, rule)?;
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let mut inodes = Vec::<Ino>::new();
    for file in 0..FILES {
        inodes.push(told("creating", fs.create(ROOT_INO, format!("f{file}").as_bytes(), node, BASE_NS))?.ino);
    }
    let mut last_writes: Vec<Vec<usize>> = (0..files.files()).map(|file| vec![0; files.size(file) as usize]).collect();
    for (number, write) in writes.iter().enumerate() {
        let (file, page, pages) = (write.file as usize, u64::from(write.offset), u64::from(write.pages));
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
    })
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    for trace in &TRACES {
        for (rule, name) in RULES {
            if let Some(found) = results.get::<BalanceOfFiles>(&job_name(trace, name))? {
                outcome.rows.extend(rows_of(trace, rule, &found));
            }
        }
    }
    Ok(outcome)
}

fn rows_of(trace: &TraceShape, rule: &str, found: &BalanceOfFiles) -> Vec<Row> {
    let parameters = Parameters::default()
        .with("chip", "codesign-mlc8 with one bit a cell")
        .with("policy", format!("slc-only:channel={rule}"))
        .with("trace", trace.assumed())
        .with("files", FILES.to_string())
        .with("written at a time", trace.writers.to_string())
        .with("overwritten", format!("{:.0} %", 100.0 * trace.overwritten));
    let named = |what: &str| format!("{}, {rule}: {what}", trace.name);
    let share =
        |what: &str, files: u64| Row::shown(named(what), 100.0 * files as f64 / found.files as f64, "%", &parameters);
    let (uneven, over_one) = (share("uneven files", found.uneven), share("files with a rate over 1", found.over_one));
    let pages = Row::shown(named("pages"), found.pages as f64, "", &parameters);
    let by_many = share("files with a channel over 2 pages ahead", found.by_many);
    match (rule, share_of_paper(trace)) {
        ("round-robin", Some((of_uneven, of_over_one))) => vec![
            pages,
            uneven.paper(of_uneven).bar(Bar::Between(of_uneven - POINTS, of_uneven + POINTS)),
            over_one.paper(of_over_one),
            by_many,
        ],
        ("round-robin", None) => vec![pages, uneven, over_one, by_many],
        ("fairness", _) => vec![uneven, over_one, by_many],
        _ => vec![uneven, over_one.bar(Bar::AtMost(OVER_ONE_MOST)), by_many.bar(Bar::AtMost(BY_MANY_MOST))],
    }
}
