//! Requests that come in bursts, with reads again of what was just read: found by search among loads under which the paper's own
//! schemes come to its figures. Invariant: a request lies in its file, and a read again is the last read, whole.

use super::traces::{DEVELOPMENT, EXCHANGE, LIVE_MAPS, MSN_STORAGE};
use super::{FileRequest, FileSizes, OffsetDraw, PageSpan, RequestSource, TraceShape};
use crate::drive::{CommandKind, DriveError};

/// Files and requests of a trace, and how they come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstShape {
    /// Shares and mean sizes of the paper's trace; the rest is assumed for the bursts.
    pub trace: TraceShape,
    pub files: usize,
    /// How busy the requests' pages would keep the channels, if each were one die.
    pub load: f64,
    /// Requests of a burst in the mean: each begins one with that chance, so many mean gaps after the request before.
    pub requests_mean: f64,
    /// The chance that a read is the last read once more.
    pub again: f64,
    /// The chance that another request goes on where the last of its kind ended.
    pub goes_on: f64,
}

/// Those of the four traces, in the paper's order.
pub const BURSTS: [BurstShape; 4] = [
    BurstShape {
        trace: TraceShape {
            size_sigma: 0.6,
            request_pages_max: 128,
            read_of_write: 4.0,
            offsets: OffsetDraw::NearFront,
            read_zipf: 0.4,
            writers: 16,
            overwritten: 0.0,
            ..LIVE_MAPS
        },
        files: 1_000,
        load: 0.10,
        requests_mean: 8.0,
        again: 0.8,
        goes_on: 0.0,
    },
    BurstShape {
        trace: TraceShape {
            size_sigma: 0.75,
            read_of_write: 4.0,
            file_median_pages: 4.0,
            offsets: OffsetDraw::NearFront,
            read_zipf: 1.8,
            writers: 16,
            ..EXCHANGE
        },
        files: 1_000,
        load: 0.55,
        requests_mean: 16.0,
        again: 0.9,
        goes_on: 0.0,
    },
    BurstShape {
        trace: TraceShape {
            size_sigma: 0.6,
            request_pages_max: 256,
            read_of_write: 1.0,
            file_median_pages: 96.0,
            offsets: OffsetDraw::NearFront,
            read_zipf: 0.8,
            write_zipf: 0.4,
            writers: 64,
            overwritten: 1.0,
            ..DEVELOPMENT
        },
        files: 300,
        load: 0.50,
        requests_mean: 8.0,
        again: 0.3,
        goes_on: 0.5,
    },
    BurstShape {
        trace: TraceShape {
            size_sigma: 1.3,
            read_of_write: 4.0,
            offsets: OffsetDraw::NearFront,
            read_zipf: 0.8,
            write_zipf: 0.4,
            writers: 64,
            overwritten: 0.5,
            ..MSN_STORAGE
        },
        files: 1_000,
        load: 0.40,
        requests_mean: 8.0,
        again: 0.7,
        goes_on: 0.5,
    },
];

/// Draws the requests of bursts, without an end.
#[derive(Clone, Debug)]
pub struct BurstSource<'a> {
    source: RequestSource<'a>,
    files: &'a FileSizes,
    again: f64,
    goes_on: f64,
    last_read: Option<PageSpan>,
    last_write: Option<PageSpan>,
}

impl<'a> BurstSource<'a> {
    pub fn new(shape: &BurstShape, files: &'a FileSizes, seed: u64) -> Result<Self, DriveError> {
        let source = RequestSource::new(&shape.trace, files, seed)?;
        Ok(Self { source, files, again: shape.again, goes_on: shape.goes_on, last_read: None, last_write: None })
    }

    /// Where a request begins that goes on behind another: at the front of the file where that came to its end.
    fn place_behind(&self, last: PageSpan) -> (u32, u32) {
        let end = last.offset + last.pages;
        (last.file, if end < self.files.size(last.file) { end } else { 0 })
    }
}

impl Iterator for BurstSource<'_> {
    type Item = FileRequest;

    fn next(&mut self) -> Option<FileRequest> {
        let kind = self.source.kind();
        let last = if kind == CommandKind::Read { self.last_read } else { self.last_write };
        let span = match last {
            Some(last) if kind == CommandKind::Read && self.source.happens(self.again) => last,
            Some(last) if self.source.happens(self.goes_on) => {
                let place = self.place_behind(last);
                self.source.span_from(kind, place)
            }
            _ => self.source.span(kind),
        };
        match kind {
            CommandKind::Read => self.last_read = Some(span),
            CommandKind::Program => self.last_write = Some(span),
        }
        Some(FileRequest { kind, span })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_come_again_and_requests_go_on_as_often_as_said() {
        for shape in &BURSTS {
            let files = FileSizes::count(&shape.trace, 3, shape.files).unwrap();
            let requests: Vec<_> = BurstSource::new(shape, &files, 3).unwrap().take(20_000).collect();
            assert!(requests.iter().all(|FileRequest { span, .. }| span.offset + span.pages <= files.size(span.file)));
            let of = |kind| requests.iter().filter(move |request| request.kind == kind).map(|request| request.span);
            let reads: Vec<_> = of(CommandKind::Read).collect();
            let share = |happens: &dyn Fn(&[PageSpan]) -> bool, spans: &[PageSpan]| {
                spans.windows(2).filter(|pair| happens(pair)).count() as f64 / spans.len() as f64
            };
            let again = share(&|pair| pair[0] == pair[1], &reads);
            assert!((again - shape.again).abs() < 0.05, "{}: {again} of the reads came again", shape.trace.name);
            let writes: Vec<_> = of(CommandKind::Program).collect();
            let goes_on = share(&|pair| pair[1].first == pair[0].first + pair[0].pages, &writes);
            assert!(goes_on <= shape.goes_on + 0.05, "{}: {goes_on} of the writes went on", shape.trace.name);
            assert!(shape.goes_on == 0.0 || goes_on > 0.1, "{}: {goes_on} of the writes went on", shape.trace.name);
        }
    }
}
