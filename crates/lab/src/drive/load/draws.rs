//! Requests as a trace has them: how long, of which file, and where in it. Invariant: a request lies in its file.

use rand::RngExt;
use rand::distr::Distribution;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_distr::weighted::WeightedAliasIndex;

use super::{DiceStream, FileRequest, FileSizes, OffsetDraw, PageCounts, PageSpan, TraceShape, dice};
use crate::drive::{CommandKind, DriveError};

/// A file shorter than its request is drawn again so often.
const DRAWS_MAX: u32 = 200;

/// How long requests of a kind are, and of which files.
#[derive(Clone, Debug)]
struct KindDraws {
    pages: PageCounts,
    file: WeightedAliasIndex<f64>,
    offsets: OffsetDraw,
}

impl KindDraws {
    /// `order` has the files by popularity.
    fn new(mean_pages: f64, trace: &TraceShape, zipf: f64, order: &[u32]) -> Result<Self, DriveError> {
        let mut weights = vec![0.0; order.len()];
        for (rank, &file) in (1..).zip(order) {
            weights[file as usize] = f64::from(rank).powf(-zipf);
        }
        Ok(Self {
            pages: PageCounts::with_mean(mean_pages, trace.size_sigma, trace.request_pages_max)?,
            file: WeightedAliasIndex::new(weights).map_err(|error| DriveError::Plan(error.to_string()))?,
            offsets: trace.offsets,
        })
    }

    /// Pages anywhere in a file that is long enough, if one is found.
    fn span(&self, files: &FileSizes, dice: &mut ChaCha8Rng) -> PageSpan {
        let wanted = self.pages.draw(dice);
        let mut file = 0;
        for _ in 0..DRAWS_MAX {
            file = self.file.sample(dice) as u32;
            if files.size(file) >= wanted {
                break;
            }
        }
        let pages = wanted.min(files.size(file));
        let last = files.size(file) - pages;
        let offset = match self.offsets {
            OffsetDraw::Even => dice.random_range(0..=last),
            OffsetDraw::NearFront => (dice.random::<f64>().powi(3) * f64::from(last + 1)) as u32,
        };
        files.span(file, offset.min(last), pages)
    }
}

/// Draws the requests of a trace, without an end.
#[derive(Clone, Debug)]
pub struct RequestSource<'a> {
    files: &'a FileSizes,
    read_share: f64,
    reads: KindDraws,
    writes: KindDraws,
    dice: ChaCha8Rng,
}

impl<'a> RequestSource<'a> {
    pub fn new(trace: &TraceShape, files: &'a FileSizes, seed: u64) -> Result<Self, DriveError> {
        let mut order: Vec<u32> = (0..files.files()).collect();
        order.shuffle(&mut dice(seed, DiceStream::Popularity));
        Ok(Self {
            files,
            read_share: trace.read_share,
            reads: KindDraws::new(trace.read_pages_mean(), trace, trace.read_zipf, &order)?,
            writes: KindDraws::new(trace.write_pages_mean(), trace, trace.write_zipf, &order)?,
            dice: dice(seed, DiceStream::Requests),
        })
    }

    /// The same popularity, and other requests: those that come before time begins.
    pub fn before(trace: &TraceShape, files: &'a FileSizes, seed: u64) -> Result<Self, DriveError> {
        Ok(Self { dice: dice(seed, DiceStream::Overwrites), ..Self::new(trace, files, seed)? })
    }

    /// The pages of another write.
    pub fn write(&mut self) -> PageSpan {
        self.span(CommandKind::Program)
    }

    /// Whether the next one reads or writes.
    pub(super) fn kind(&mut self) -> CommandKind {
        match self.dice.random_bool(self.read_share) {
            true => CommandKind::Read,
            false => CommandKind::Program,
        }
    }

    /// The pages of another request of that kind.
    pub(super) fn span(&mut self, kind: CommandKind) -> PageSpan {
        let draws = if kind == CommandKind::Read { &self.reads } else { &self.writes };
        draws.span(self.files, &mut self.dice)
    }

    /// The pages of another request of that kind that begins there, and ends with the file at the latest.
    pub(super) fn span_from(&mut self, kind: CommandKind, (file, offset): (u32, u32)) -> PageSpan {
        let draws = if kind == CommandKind::Read { &self.reads } else { &self.writes };
        let pages = draws.pages.draw(&mut self.dice).min(self.files.size(file) - offset);
        self.files.span(file, offset, pages)
    }

    /// Whether something happens that has that chance.
    pub(super) fn happens(&mut self, chance: f64) -> bool {
        self.dice.random_bool(chance)
    }
}

impl Iterator for RequestSource<'_> {
    type Item = FileRequest;

    fn next(&mut self) -> Option<FileRequest> {
        let kind = self.kind();
        Some(FileRequest { kind, span: self.span(kind) })
    }
}

/// The writes that make the files, some files at a time, in requests as long as those of the trace.
pub fn first_writes(trace: &TraceShape, files: &FileSizes, seed: u64) -> Result<Vec<PageSpan>, DriveError> {
    let lengths = PageCounts::with_mean(trace.write_pages_mean(), trace.size_sigma, trace.request_pages_max)?;
    let mut dice = dice(seed, DiceStream::FirstWrites);
    let (mut writes, mut unwritten, mut open) = (Vec::new(), 0..files.files(), Vec::new());
    loop {
        open.extend(unwritten.by_ref().take(trace.writers - open.len()).map(|file| (file, 0)));
        if open.is_empty() {
            return Ok(writes);
        }
        let at = dice.random_range(0..open.len());
        let (file, offset) = open[at];
        let pages = lengths.draw(&mut dice).min(files.size(file) - offset);
        writes.push(files.span(file, offset, pages));
        match offset + pages < files.size(file) {
            true => open[at].1 += pages,
            false => drop(open.swap_remove(at)),
        }
    }
}

/// The writes that come then, to as many pages as the trace says.
pub fn overwrites(trace: &TraceShape, files: &FileSizes, seed: u64) -> Result<Vec<PageSpan>, DriveError> {
    let wanted = (trace.overwritten * f64::from(files.pages())) as u64;
    let (mut source, mut writes, mut written) = (RequestSource::before(trace, files, seed)?, Vec::new(), 0);
    while written < wanted {
        let write = source.write();
        written += u64::from(write.pages);
        writes.push(write);
    }
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::load::TRACES;

    #[test]
    fn first_writes_make_every_page_of_every_file_once() {
        for trace in &TRACES {
            let files = FileSizes::count(trace, 7, 500).unwrap();
            let mut next = vec![0; 500];
            for write in first_writes(trace, &files, 7).unwrap() {
                assert_eq!(write.offset, next[write.file as usize]);
                next[write.file as usize] += write.pages;
            }
            assert!((0..500).all(|file| next[file as usize] == files.size(file)));
        }
    }

    #[test]
    fn requests_lie_in_their_files_and_favour_popular_ones() {
        let trace = &TRACES[1];
        let files = FileSizes::filling(trace, 7, 30_000).unwrap();
        assert_eq!(files.pages(), 30_000);
        let mut of_file = vec![0; files.files() as usize];
        let requests = RequestSource::new(trace, &files, 7).unwrap();
        let (mut reads, mut count) = (0, 0);
        for FileRequest { kind, span } in requests.take(20_000) {
            assert!(span.pages > 0 && span.offset + span.pages <= files.size(span.file));
            assert_eq!(span.first, files.span(span.file, 0, 0).first + span.offset);
            count += 1;
            if kind == CommandKind::Read {
                reads += 1;
                of_file[span.file as usize] += 1;
            }
        }
        assert!((f64::from(reads) / f64::from(count) - trace.read_share).abs() < 0.02, "{reads} of {count}");
        of_file.sort_unstable_by(|a, b| b.cmp(a));
        let popular: u32 = of_file.iter().take(of_file.len() / 10).sum();
        assert!(popular > reads / 2, "a tenth of the files has {popular} of {reads} reads");
    }

    #[test]
    fn a_seed_gives_the_same_requests_and_another_seed_others() {
        let files = FileSizes::count(&TRACES[0], 1, 200).unwrap();
        let drawn = |seed| RequestSource::new(&TRACES[0], &files, seed).unwrap().take(50).collect::<Vec<_>>();
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }
}
