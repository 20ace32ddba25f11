//! Table 6: response times and throughput of a phone's half hour. Invariant: each figure is a ratio to pure SLC with the same
//! host, of one trace.

use serde::Deserialize;

use crate::experiment::workload::phone::{self, Played, Sample, Scheme};
use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row, Table, schemes};
use crate::play::{HostCost, PlayError, Setting};

pub const TABLE6: Experiment = Experiment {
    id: "table6",
    title: "Table 6: Performance under a mobile workload",
    about: "Half an hour of a phone, as §5.2.1 describes it: 43,000 reads and writes of short messages, addresses, memos and a \
            game, nine pictures and six songs, and nothing for 89 % of the time. FlexFS with the paper's techniques and its \
            controller of wear, and ours, against the same file system on SLC alone. The paper's chip is empty at first, \
            and so are chips of the same size with three and four bits in a cell. A write's response contains the sync that \
            belongs to it; throughput is that of the songs.",
    differs: "Reads of the paper's two configurations differ by 9 %, ours do not: a read costs the same wherever the \
              page is. Ours writes faster than SLC alone, since chunks wait in memory and are written together, \
              which SLC alone does not do. The counts of JFFS2 are of large files, not of the songs.",
    jobs,
    finish,
};

/// What is played: bits in a cell, the scheme, and the host's time for a page.
#[derive(Clone, Copy)]
struct Play {
    bits_per_cell: u8,
    scheme: Scheme,
    host: HostCost,
}

const NONE: HostCost = HostCost::NONE;
const BOARD: HostCost = HostCost::PAPER_TABLE6;
const OMAP: HostCost = HostCost::OMAP2420;

const PLAYS: [(u8, Scheme, HostCost); 19] = [
    (2, Scheme::SlcOnly, NONE),
    (2, Scheme::SlcOnly, BOARD),
    (2, Scheme::Paper, NONE),
    (2, Scheme::Paper, BOARD),
    (2, Scheme::Paper, OMAP),
    (2, Scheme::SlcBuffer, NONE),
    (2, Scheme::Ours, NONE),
    (2, Scheme::Ours, BOARD),
    (2, Scheme::Ours, OMAP),
    (2, Scheme::MlcOnly, NONE),
    (2, Scheme::MlcOnly, OMAP),
    (3, Scheme::SlcOnly, NONE),
    (3, Scheme::Paper, NONE),
    (3, Scheme::Ours, NONE),
    (3, Scheme::MlcOnly, NONE),
    (4, Scheme::SlcOnly, NONE),
    (4, Scheme::Paper, NONE),
    (4, Scheme::Ours, NONE),
    (4, Scheme::MlcOnly, NONE),
];

impl Play {
    fn of((bits_per_cell, scheme, host): (u8, Scheme, HostCost)) -> Self {
        Self { bits_per_cell, scheme, host }
    }

    /// The same of another scheme.
    fn by(self, scheme: Scheme) -> Self {
        Self { scheme, ..self }
    }

    fn cells(self) -> &'static str {
        match self.bits_per_cell {
            3 => "tlc-",
            4 => "qlc-",
            _ => "",
        }
    }

    fn job_name(self) -> String {
        format!("table6.{}{}.{}", self.cells(), self.scheme.name(), self.host.name)
    }

    /// What rows call it.
    fn name(self) -> String {
        format!("{}{}, host {}", self.cells(), self.scheme.name(), self.host.name)
    }

    fn setting(self) -> Result<Setting, PlayError> {
        Ok(self.scheme.setting_on(schemes::chip(self.bits_per_cell)?, self.host, phone::GOAL))
    }

    fn parameters(self) -> Result<Parameters, PlayError> {
        let parameters = Parameters::of(&self.setting()?).with("workload", "a phone's half hour, seed 1");
        Ok(parameters.with("scheme", self.scheme.name()))
    }

    fn row(self, what: &str, ours: f64, unit: &'static str) -> Result<Row, PlayError> {
        Ok(Row::shown(format!("{}: {what}", self.name()), ours, unit, &self.parameters()?))
    }
}

fn jobs() -> Vec<Job> {
    let play = |play: Play| move || Ok(phone::play(&play.setting()?, &phone::trace())?);
    PLAYS.map(Play::of).map(|one| Job::new(one.job_name(), play(one))).into()
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let played = |play: Play| results.get::<Played>(&play.job_name());
    let mut outcome = Outcome::default();
    if played(Play::of((2, Scheme::Paper, BOARD)))?.is_some() {
        outcome.rows.extend(workload(&Play::of((2, Scheme::Paper, BOARD)).parameters()?));
    }
    for play in PLAYS.map(Play::of) {
        let (Some(slc), Some(found)) = (played(play.by(Scheme::SlcOnly))?, played(play)?) else { continue };
        if play.scheme != Scheme::SlcOnly {
            outcome.rows.extend(over_slc(play, &slc, &found)?);
        }
    }
    for play in PLAYS.map(Play::of).into_iter().filter(|play| [Scheme::Paper, Scheme::Ours].contains(&play.scheme)) {
        let (Some(mlc), Some(found)) = (played(play.by(Scheme::MlcOnly))?, played(play)?) else { continue };
        let ratio = found.song_bytes_s / mlc.song_bytes_s;
        let row = play.row("songs, throughput over native cells alone", ratio, "times")?;
        outcome.rows.push(match play.scheme {
            Scheme::Ours if play.host == OMAP => row.bar(Bar::AtLeast(1.2)),
            Scheme::Ours if play.bits_per_cell == 2 => row.bar(Bar::AtLeast(2.0)),
            _ => row,
        });
    }
    for play in PLAYS.map(Play::of) {
        let Some(found) = played(play)? else { continue };
        outcome.rows.extend(over_jffs2(play, &found)?);
        outcome.rows.push(play.row("callers' pages to SLC", found.slc_share, "of all")?);
        outcome.rows.push(play.row("energy of all operations", found.energy_mj, "mJ")?);
        if let Some(share) = found.life_share {
            outcome.rows.push(play.row("budget of three years used", share * 1e6, "millionths")?);
        }
        let name = format!("blocks-{}{}-{}", play.cells(), play.scheme.name(), play.host.name);
        outcome.tables.push(blocks(name, &found));
    }
    Ok(outcome)
}

/// Writes, reads and songs of a volume against pure SLC, with the bars and the paper's figures.
fn over_slc(play: Play, slc: &Played, found: &Played) -> Result<[Row; 3], PlayError> {
    let (bars, told) = match (play.bits_per_cell, play.scheme, play.host) {
        // Table 6: writes take 334 and 345, reads 34 and 37; songs come with 3.02 and 2.93 MB/s.
        (2, Scheme::Paper, BOARD) => (Some([1.04, 1.02, 0.966]), Some([345.0 / 334.0, 37.0 / 34.0, 2.93 / 3.02])),
        (2, Scheme::Ours, NONE) => (Some([1.01, 1.02, 0.99]), None),
        _ => (None, None),
    };
    let write = play.row("write response over SLC alone", found.write_ns / slc.write_ns, "times")?;
    let read = play.row("read response over SLC alone", found.read_ns / slc.read_ns, "times")?;
    let songs = play.row("songs, throughput over SLC alone", found.song_bytes_s / slc.song_bytes_s, "times")?;
    let barred = match bars {
        Some([most_write, most_read, least]) => {
            [write.bar(Bar::AtMost(most_write)), read.bar(Bar::AtMost(most_read)), songs.bar(Bar::AtLeast(least))]
        }
        None => [write, read, songs],
    };
    let Some([write, read, songs]) = told else { return Ok(barred) };
    let [row_write, row_read, row_songs] = barred;
    Ok([row_write.paper(write), row_read.paper(read), row_songs.paper(songs)])
}

/// What JFFS2 was counted to take on the chip.
#[derive(Deserialize)]
struct Counted {
    how: String,
    workload: String,
    files: u64,
    file_bytes: u64,
    page_bytes: u64,
    programs: u64,
    reads: u64,
    erases: u64,
}

const JFFS2: &str = include_str!("../../../fixtures/jffs2.json");

/// The throughput of songs over JFFS2's of large files: its counted operations at the native times of the paper's chip, and the
/// host's time for each page.
fn over_jffs2(play: Play, found: &Played) -> Result<Option<Row>, ExperimentError> {
    let told = match (play.bits_per_cell, play.scheme, play.host) {
        (2, Scheme::Ours | Scheme::Paper, NONE | OMAP) | (2, Scheme::Ours, BOARD) => None,
        // Table 6: 2.93 and 2.12 MB/s.
        (2, Scheme::Paper, BOARD) => Some(2.93 / 2.12),
        _ => return Ok(None),
    };
    let counted: Counted = serde_json::from_str(JFFS2)
        .map_err(|source| ExperimentError::Result { job: "the counts of JFFS2".into(), source })?;
    let native = &schemes::chip(2).map_err(PlayError::from)?.timing.native;
    let mean_ns = |times: &[u64]| times.iter().sum::<u64>() as f64 / times.len().max(1) as f64;
    let flash_ns = counted.programs as f64 * mean_ns(&native.program_ns)
        + counted.reads as f64 * mean_ns(&native.read_ns)
        + counted.erases as f64 * native.erase_ns as f64;
    let (bytes, pages) = (counted.files * counted.file_bytes, counted.files * counted.file_bytes / counted.page_bytes);
    let bytes_s = bytes as f64 * 1e9 / (flash_ns + play.host.of_ns(0, pages) as f64);
    let row = play.row("songs, throughput over JFFS2", found.song_bytes_s / bytes_s, "times")?;
    let parameters = row.parameters.clone().with("jffs2", format!("{}: {}", counted.how, counted.workload));
    let row = Row { parameters, ..row };
    Ok(Some(match told {
        Some(told) => row.paper(told),
        None => row,
    }))
}

/// Blocks and shares every 30 s.
fn blocks(name: String, played: &Played) -> Table {
    let row = |sample: &Sample| {
        let Sample { at_s, slc_blocks, native_blocks, alpha, delta } = sample;
        vec![
            at_s.to_string(),
            slc_blocks.to_string(),
            native_blocks.to_string(),
            format!("{alpha:.3}"),
            format!("{delta:.3}"),
        ]
    };
    let header = vec!["s", "slc_blocks", "native_blocks", "alpha", "delta"];
    Table { name, header, rows: played.samples.iter().map(row).collect() }
}

/// The trace in figures, beside the paper's.
fn workload(parameters: &Parameters) -> [Row; 4] {
    let summary = phone::trace().summary();
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let figures = [
        ("trace: reads and writes", summary.requests as f64, "", 43_000.0),
        ("trace: read", mib(summary.read_bytes), "MiB", 5.7),
        ("trace: written", mib(summary.written_bytes), "MiB", 39.0),
        ("trace: idle time", 100.0 * summary.idle_share, "%", 89.0),
    ];
    figures.map(|(name, ours, unit, paper)| {
        Row::shown(name, ours, unit, parameters).paper(paper).bar(Bar::Within { percent: 2.0, of: paper })
    })
}
