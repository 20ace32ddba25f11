//! A pair in the state that years of use leave it in. Invariant: the measured time begins where a collection begins.

use super::StoragePair;
use crate::drive::load::{FileSizes, PageSpan, RequestSource};
use crate::drive::{DriveError, DriveShape, DriveTimes, PendingTimes, PlannedRequest, ShadowedStore};

/// Pages of a request that fills a file.
const FILL_PAGES: u32 = 64;
/// Steps of collection that time would have been for, for each page that is written before time begins.
const STEPS_PER_PAGE: u32 = 2;

/// Writes every file once, then draws overwrites until as many blocks were erased as the drive has, and on to the next begin of
/// a collection.
pub fn condition(
    pair: &mut ShadowedStore<StoragePair>,
    files: &FileSizes,
    overwrites: &mut RequestSource,
) -> Result<(), DriveError> {
    let log = pair.store.log.shape();
    let shape = DriveShape { channels: log.channels, ..DriveShape::eight_channels(log.dies_per_channel, 1) };
    let (planned, pending) = (PlannedRequest::default(), PendingTimes::none(shape, DriveTimes::TABLE_I));
    let mut before = Conditioner { pair, planned, pending, channel: 0 };
    for file in 0..files.files() {
        for offset in (0..files.size(file)).step_by(FILL_PAGES as usize) {
            before.write(&files.span(file, offset, FILL_PAGES.min(files.size(file) - offset)))?;
        }
    }
    let blocks = u64::from(before.pair.store.log.shape().blocks());
    while before.pair.store.counts().erases < blocks {
        before.write(&overwrites.write())?;
    }
    let begins = |before: &Conditioner| before.pair.store.begins().sum::<u64>();
    let so_far = begins(&before);
    while begins(&before) == so_far {
        before.write(&overwrites.write())?;
    }
    Ok(())
}

struct Conditioner<'a> {
    pair: &'a mut ShadowedStore<StoragePair>,
    planned: PlannedRequest,
    /// Time has not begun.
    pending: PendingTimes,
    /// Which one may take the next step.
    channel: u8,
}

impl Conditioner<'_> {
    fn write(&mut self, span: &PageSpan) -> Result<(), DriveError> {
        self.pair.write(span, &self.pending, &mut self.planned)?;
        let channels = self.pair.store.log.shape().channels;
        for _ in 0..span.pages * STEPS_PER_PAGE {
            self.channel = (self.channel + 1) % channels;
            if self.pair.is_collecting(self.channel) {
                self.pair.background(self.channel, &|_| true)?;
            }
        }
        Ok(())
    }
}
