//! A second copy of what the host wrote, beside a store. Invariant: every page that is read carries the stamp of the last write
//! to it.

use super::load::PageSpan;
use super::{BackgroundStep, DriveError, PageStore, PendingTimes, PlannedRequest};

/// A store, and the stamp of each page of all files.
#[derive(Clone)]
pub struct ShadowedStore<S> {
    pub store: S,
    /// 0 where a page was never written.
    stamps: Vec<u64>,
    next_stamp: u64,
    pages_compared: u64,
}

impl<S: PageStore> ShadowedStore<S> {
    /// Over a store in which none of so many pages is written.
    pub fn new(store: S, pages: u32) -> Self {
        Self { store, stamps: vec![0; pages as usize], next_stamp: 1, pages_compared: 0 }
    }

    /// Pages that were read and compared.
    pub fn pages_compared(&self) -> u64 {
        self.pages_compared
    }

    /// Plans a read, and compares what it reads.
    pub fn read(&mut self, span: &PageSpan, out: &mut PlannedRequest) -> Result<(), DriveError> {
        out.clear();
        self.store.read(span, out)?;
        let expected = &self.stamps[span.first as usize..(span.first + span.pages) as usize];
        if expected != out.stamps {
            let pairs = (span.first..).zip(expected.iter().zip(&out.stamps));
            let other = pairs.map(|(page, (&expected, &found))| (page, expected, found));
            let (page, expected, found) =
                other.into_iter().find(|(_, expected, found)| expected != found).unwrap_or((span.first, 0, 0));
            return Err(DriveError::OtherData { page, expected, found });
        }
        self.pages_compared += u64::from(span.pages);
        Ok(())
    }

    /// Plans a write on a drive that has so much to do.
    pub fn write(
        &mut self,
        span: &PageSpan,
        pending: &PendingTimes,
        out: &mut PlannedRequest,
    ) -> Result<(), DriveError> {
        out.clear();
        self.store.write(span, self.next_stamp, pending, out)?;
        for stamp in &mut self.stamps[span.first as usize..(span.first + span.pages) as usize] {
            *stamp = self.next_stamp;
            self.next_stamp += 1;
        }
        Ok(())
    }

    pub fn background(
        &mut self,
        channel: u8,
        is_idle: &dyn Fn(u8) -> bool,
    ) -> Result<Option<BackgroundStep>, DriveError> {
        self.store.background(channel, is_idle)
    }

    pub fn is_collecting(&self, channel: u8) -> bool {
        self.store.is_collecting(channel)
    }
}
