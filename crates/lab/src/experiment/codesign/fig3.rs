//! The co-design paper's Fig. 3: an overwrite out of place, and the collection of the block that it leaves.
//!
//! Invariant: what is counted is the trace of the chip under the drive; where pages stand is what the file system's index says.

use emulator::{Chip, TraceEntry, TraceOp};
use flexfs_core::{FormatOptions, Fs, Ino, NewNode, ROOT_INO, kind};
use ftl::{BlockMapDrive, DriveCounts, DriveFormat};
use nand::{Cause, CellMode, Nand};
use serde::{Deserialize, Serialize};
use torture::crash::BASE_NS;

use super::real::{bytes_of, drive_error, mounted, profile, told};
use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row};
use crate::layers::LayerError;

pub const CO_FIG3: Experiment = Experiment {
    id: "co-fig3",
    title: "Co-design, Fig. 3 and §III.A: an overwrite out of place, and garbage collection",
    about: "Of block 0 page 1 alone is valid, and the updating block k is at page 2. Page 1 is overwritten; or block 0 is the \
            victim of a collection: its page moves, a block TRIM follows, and the drive erases.",
    differs: "Block 0 is whichever block the pages come to stand in. FlexFS collects when the next calls need blocks, not below \
              5 % of free space, and reads the summary of a victim to learn what stands in it.",
    jobs,
    finish,
};

const JOB: &str = "co-fig3.example";
const BLOCKS: u32 = 40;
const PAGES_PER_BLOCK: u32 = 16;
const PAGE_BYTES: u64 = 4096;
/// The page of block 0 that stays valid, and the next page of the updating block.
const VALID: u32 = 1;
const UPDATING: u32 = 2;
/// Time between two writes, and between two steps of idle time.
const PAUSE_NS: i64 = 1_000_000;
/// Writes after which a state of the volume is taken for one that never comes.
const WRITES_MAX: u64 = 2_000;

/// What the job gives.
#[derive(Serialize, Deserialize)]
struct WorkedExample {
    overwrite: OverwriteStep,
    collection: CollectionStep,
}

/// An overwrite of the valid page.
#[derive(Serialize, Deserialize)]
struct OverwriteStep {
    programs: u64,
    /// The page of the updating block that it went to.
    page: u32,
    /// Whether it went to the updating block.
    in_updating_block: bool,
    /// What was valid in block 0 before and after.
    valid_before: u64,
    valid_after: u64,
    /// Programs and erases of the drive's own.
    added: u64,
}

/// The collection of block 0.
#[derive(Serialize, Deserialize)]
struct CollectionStep {
    page_reads: u64,
    summary_reads: u64,
    programs: u64,
    trims: u64,
    erases: u64,
    added: u64,
}

/// What an erase of a block comes to.
struct TrimmedBlock {
    trims: u64,
    erases: u64,
    /// Programs and erases of the drive's own.
    added: u64,
}

type DriveFs = Fs<BlockMapDrive<Chip>>;

/// The state of the figure.
struct FigureState {
    fs: DriveFs,
    file: Ino,
    filler: Ino,
    /// Block 0 of the figure, as the file system counts.
    block: u32,
    /// The updating block.
    updating: u32,
    writes: u64,
    now_ns: i64,
}

fn jobs() -> Vec<Job> {
    vec![Job::new(JOB, || {
        Ok(WorkedExample { overwrite: overwrite(prepared()?)?, collection: collection(prepared()?)? })
    })]
}

fn never(what: &str) -> ExperimentError {
    ExperimentError::Never(what.to_owned())
}

/// The figure's state: the file fills block 0, all its pages but one are written anew, and other writes follow until the
/// next page of a block is the updating one.
fn prepared() -> Result<FigureState, ExperimentError> {
    let mut profile = profile()?;
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (BLOCKS, PAGES_PER_BLOCK);
    let chip = Chip::new(&profile, 1).map_err(LayerError::Chip)?;
    let drive = BlockMapDrive::create(chip, &DriveFormat { number: 1, blank: true });
    let mut drive = drive.map_err(|(_, source)| drive_error(source))?;
    let options = FormatOptions { volume_id: [3; 16], now_ns: BASE_NS, blank: true, ..FormatOptions::default() };
    told("formatting", Fs::format(&mut drive, &options))?;
    let mut fs = mounted(drive)?;
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let [file, filler] = [b"file", b"fill"].map(|name| fs.create(ROOT_INO, name, node, BASE_NS));
    let (file, filler) = (told("creating", file)?.ino, told("creating", filler)?.ino);
    let mut state = FigureState { fs, file, filler, block: 0, updating: 0, writes: 0, now_ns: 0 };
    let last = state.fill_until(|before, now| (now.0 != before.0).then_some(before.1))?;
    state.fill_until(|_, now| (now.1 == last).then_some(()))?;
    for page in 0..=last {
        state.write(file, page)?;
    }
    state.block = state.place(file, VALID)?.0;
    for page in (0..=last).filter(|&page| page != VALID) {
        state.write(file, page)?;
    }
    state.updating = state.fill_until(|_, now| (now.1 + 1 == UPDATING).then_some(now.0))?;
    match state.place(file, VALID)? == (state.block, VALID) && state.updating != state.block {
        true => Ok(state),
        false => Err(never("the state of the figure")),
    }
}

impl FigureState {
    /// Writes a page of a file, durably.
    fn write(&mut self, ino: Ino, page: u32) -> Result<(), ExperimentError> {
        self.writes += 1;
        self.now_ns += PAUSE_NS;
        self.fs.request(self.now_ns);
        let bytes = bytes_of(self.writes);
        told("writing", self.fs.write(ino, u64::from(page) * PAGE_BYTES, &bytes, BASE_NS + self.now_ns))?;
        told("syncing", self.fs.sync())
    }

    /// Idle time until there is nothing to do, or what was valid in block 0 has just been moved.
    fn rest(&mut self) -> Result<(), ExperimentError> {
        let had_valid = self.valid_bytes() > 0;
        while let Some(next_ns) = told("collecting", self.fs.background(self.now_ns, BASE_NS))? {
            self.now_ns = next_ns.max(self.now_ns + PAUSE_NS);
            if had_valid && self.valid_bytes() == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Where a page of a file stands: the block, as the file system counts, and the page in it.
    fn place(&mut self, ino: Ino, page: u32) -> Result<(u32, u32), ExperimentError> {
        let mut found = None;
        let visit = &mut |entry: flexfs_core::dump::IndexEntry| {
            let covers = (entry.offset..entry.offset + entry.count).contains(&page.into());
            if entry.ino == ino && entry.kind == "data" && covers {
                found = entry.slot.map(|slot| slot + u64::from(page) - entry.offset);
            }
            true
        };
        told("looking", self.fs.index_entries(visit))?;
        let slot = found.ok_or_else(|| never("the page that was written"))?;
        Ok(((slot / u64::from(PAGES_PER_BLOCK)) as u32, (slot % u64::from(PAGES_PER_BLOCK)) as u32))
    }

    /// Overwrites the other file until its place, beside the one before, is what is wanted.
    fn fill_until<T>(&mut self, wanted: impl Fn((u32, u32), (u32, u32)) -> Option<T>) -> Result<T, ExperimentError> {
        self.write(self.filler, 0)?;
        let mut before = self.place(self.filler, 0)?;
        for _ in 0..WRITES_MAX {
            self.write(self.filler, 0)?;
            let now = self.place(self.filler, 0)?;
            if let Some(found) = wanted(before, now) {
                return Ok(found);
            }
            before = now;
        }
        Err(never("the place that a page was to come to"))
    }

    /// Bytes that are valid in block 0.
    fn valid_bytes(&self) -> u64 {
        self.fs.blocks().nth(self.block as usize).map_or(0, |block| block.live_bytes.into())
    }

    /// The block TRIMs and erases of something that is done, if a block of the chip is erased in it.
    fn erase_of(
        &mut self,
        physical: u32,
        done: impl FnOnce(&mut Self) -> Result<(), ExperimentError>,
    ) -> Result<Option<TrimmedBlock>, ExperimentError> {
        let before = self.counts();
        self.trace();
        done(self)?;
        let entries = self.traced();
        let erased = entries.iter().any(|entry| entry.op == TraceOp::Erase && entry.block == physical);
        let after = self.counts();
        Ok(erased.then(|| TrimmedBlock {
            trims: after.trims - before.trims,
            erases: count(&entries, TraceOp::Erase),
            added: added(before, after),
        }))
    }

    fn counts(&self) -> DriveCounts {
        *self.fs.chip().counts()
    }

    fn trace(&mut self) {
        self.fs.chip_mut().chip_mut().start_trace(usize::MAX);
    }

    fn traced(&mut self) -> Vec<TraceEntry> {
        self.fs.chip_mut().chip_mut().take_trace().entries
    }
}

/// Programs and erases of the drive's own between two looks.
fn added(before: DriveCounts, after: DriveCounts) -> u64 {
    let own = |counts: DriveCounts| counts.own_programs + counts.own_erases + counts.trial_operations;
    own(after) - own(before)
}

fn count(entries: &[TraceEntry], op: TraceOp) -> u64 {
    entries.iter().filter(|entry| entry.op == op).count() as u64
}

fn overwrite(mut state: FigureState) -> Result<OverwriteStep, ExperimentError> {
    let (before, valid_before) = (state.counts(), state.valid_bytes());
    state.trace();
    state.write(state.file, VALID)?;
    let entries = state.traced();
    let (block, page) = state.place(state.file, VALID)?;
    Ok(OverwriteStep {
        programs: count(&entries, TraceOp::Program),
        page,
        in_updating_block: block == state.updating,
        valid_before: valid_before / PAGE_BYTES,
        valid_after: state.valid_bytes() / PAGE_BYTES,
        added: added(before, state.counts()),
    })
}

/// Fills the volume until idle time has collected block 0, and on until it is erased.
fn collection(mut state: FigureState) -> Result<CollectionStep, ExperimentError> {
    let physical = state.fs.chip().physical(state.block).ok_or_else(|| never("block 0 on the chip"))?;
    let summary = state.fs.chip().layout(CellMode::Native).page(PAGES_PER_BLOCK - 1);
    let (mut page, mut collected, mut of_drive) = (0, Vec::new(), 0);
    while state.valid_bytes() > 0 {
        page += 1;
        state.write(state.filler, page)?;
        let before = state.counts();
        state.trace();
        state.rest()?;
        collected = state.traced();
        of_drive = added(before, state.counts());
    }
    // Other blocks may have been emptied before it.
    let in_collection: Vec<TraceEntry> = collected
        .into_iter()
        .skip_while(|entry| entry.block != physical || entry.op != TraceOp::Read)
        .filter(|entry| entry.cause == Cause::Gc)
        .collect();
    let of_victim: Vec<TraceEntry> = in_collection.iter().filter(|entry| entry.block == physical).copied().collect();
    let summary_reads =
        of_victim.iter().filter(|entry| entry.op == TraceOp::Read && Some(entry.index) == summary).count() as u64;
    let TrimmedBlock { trims, erases, added: of_trim } = loop {
        if state.writes > WRITES_MAX {
            return Err(never("the erase of block 0"));
        }
        let writes = state.writes as u32;
        if let Some(found) = state.erase_of(physical, |state| state.write(state.filler, writes % page))? {
            break found;
        }
        if let Some(found) = state.erase_of(physical, FigureState::rest)? {
            break found;
        }
    };
    Ok(CollectionStep {
        page_reads: count(&of_victim, TraceOp::Read) - summary_reads,
        summary_reads,
        programs: count(&in_collection, TraceOp::Program),
        trims,
        erases,
        added: of_drive + of_trim,
    })
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let Some(WorkedExample { overwrite, collection }) = results.get::<WorkedExample>(JOB)? else {
        return Ok(Outcome::default());
    };
    let parameters =
        Parameters::default().with("chip", "codesign-mlc8 with one bit a cell and one channel, 40 blocks of 16 pages");
    let shown = |name: &str, ours: u64| Row::shown(name, ours as f64, "", &parameters);
    let exactly = |name: &str, ours: u64, expected: u32| {
        shown(name, ours).paper(expected.into()).bar(Bar::Exactly(expected.into()))
    };
    let rows = vec![
        exactly("overwrite: programs", overwrite.programs, 1),
        exactly("overwrite: in the updating block (1: yes)", overwrite.in_updating_block.into(), 1),
        exactly("overwrite: at its page", overwrite.page.into(), UPDATING),
        exactly("overwrite: valid pages of block 0 before", overwrite.valid_before, 1),
        exactly("overwrite: valid pages of block 0 after", overwrite.valid_after, 0),
        exactly("overwrite: operations that the drive adds", overwrite.added, 0),
        exactly("collection: valid pages read", collection.page_reads, 1),
        shown("collection: reads of the summary of block 0", collection.summary_reads).bar(Bar::Exactly(1.0)),
        exactly("collection: programs", collection.programs, 1),
        exactly("collection: block TRIMs when block 0 is taken again", collection.trims, 1),
        exactly("collection: erases then, of its physical block", collection.erases, 1),
        exactly("collection: operations that the drive adds", collection.added, 0),
    ];
    Ok(Outcome { rows, ..Outcome::default() })
}
