//! Files whose pages a rule spreads over the channels, without collection: each write programs new pages.
//!
//! Invariant: a page stands where its last write put it, and the count of a file's pages on a channel is the number of its
//! pages that stand there.

use flexfs_core::channel::{CHANNELS_MAX, ChannelView, WINDOW_PAGES};

mod placement;

pub use placement::{ChannelChoice, DieStriping, FilePlacement};

use super::load::{FileSizes, PageSpan};
use super::shape::DriveShape;
use super::{BackgroundStep, CommandKind, DriveError, PageStore, PendingTimes, PlannedRequest};

/// Channels that files are apart by where their places decide.
const CHANNELS_BETWEEN_FILES: u32 = 5;

/// Where a page stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SpreadPlace {
    channel: u8,
    die: u8,
    /// Pages of one number were programmed as one command; 0 is no number.
    pair: u32,
    /// What number the page is of those that its die programmed.
    number: u32,
}

/// Where a channel goes on.
#[derive(Clone, Copy, Debug, Default)]
struct ChannelHead {
    /// The die of its open block, and the pages of that.
    die: u8,
    programmed: u32,
    /// The last plane pair, and its die.
    pair: u32,
    die_of_pair: u8,
    /// Pages that it was ever given, and that were ever read from it.
    issued: u64,
    read: u64,
}

/// Files, spread by a rule.
#[derive(Clone)]
pub struct SpreadFiles {
    placement: FilePlacement,
    shape: DriveShape,
    pages_per_block: u32,
    files: FileSizes,
    /// Of the pages of all files, where they were written.
    places: Vec<Option<SpreadPlace>>,
    /// Pages of each file on each channel.
    of_file: Vec<[u32; CHANNELS_MAX]>,
    heads: Vec<ChannelHead>,
    /// Stamps of what each die programmed.
    dies: Vec<Vec<u64>>,
    turn: u64,
    pairs_ever: u32,
}

impl SpreadFiles {
    /// Files of which no page is written. Fails where the shape makes no sense.
    pub fn new(
        placement: FilePlacement,
        shape: DriveShape,
        pages_per_block: u32,
        files: &FileSizes,
    ) -> Result<Self, DriveError> {
        shape.check()?;
        let channels = usize::from(shape.channels);
        Ok(Self {
            placement,
            shape,
            pages_per_block,
            files: files.clone(),
            places: vec![None; files.pages() as usize],
            of_file: vec![[0; CHANNELS_MAX]; files.files() as usize],
            heads: vec![ChannelHead::default(); channels],
            dies: vec![Vec::new(); channels * usize::from(shape.dies_per_channel())],
            turn: 0,
            pairs_ever: 0,
        })
    }

    /// The pages of each file on each channel.
    pub fn pages_by_channel(&self) -> impl Iterator<Item = Vec<u64>> {
        let channels = usize::from(self.shape.channels);
        self.of_file.iter().map(move |counts| counts[..channels].iter().map(|&pages| u64::from(pages)).collect())
    }

    /// The pages that each channel was ever given.
    pub fn issued(&self) -> impl Iterator<Item = u64> {
        self.heads.iter().map(|head| head.issued)
    }

    /// The pages that were ever read from each channel.
    pub fn pages_read(&self) -> impl Iterator<Item = u64> {
        self.heads.iter().map(|head| head.read)
    }

    fn die_number(&self, channel: u8, die: u8) -> usize {
        usize::from(channel) * usize::from(self.shape.dies_per_channel()) + usize::from(die)
    }

    /// The channel of each page of a write.
    fn channels_of(&mut self, span: &PageSpan, pending: &PendingTimes) -> Vec<u8> {
        let channels = usize::from(self.shape.channels);
        let mut of_request = [0; CHANNELS_MAX];
        let mut chosen = Vec::with_capacity(span.pages as usize);
        for offset in span.offset..span.offset + span.pages {
            let channel = match self.placement.channel {
                ChannelChoice::ByOffset => (offset + CHANNELS_BETWEEN_FILES * span.file) as usize % channels,
                ChannelChoice::ByRule(rule) => {
                    let mut views = [ChannelView::default(); CHANNELS_MAX];
                    if rule.asks_for_channels() {
                        self.look(&mut views[..channels], span.file, &of_request, pending);
                    }
                    if rule.asks_for_neighbours() {
                        self.count_neighbours(&mut views, span, offset, &chosen);
                    }
                    let channel = rule.choose(span.pages, &views[..channels], self.turn);
                    self.turn = rule.turn_after(span.pages, channels, self.turn, channel);
                    channel
                }
            };
            of_request[channel] += 1;
            self.of_file[span.file as usize][channel] += 1;
            self.heads[channel].issued += 1;
            chosen.push(channel as u8);
        }
        chosen
    }

    /// What each channel has of a request and its file, and how long the die is busy that takes the next page.
    fn look(&self, views: &mut [ChannelView], file: u32, of_request: &[u32], pending: &PendingTimes) {
        let dies = self.shape.dies_per_channel();
        for (number, view) in views.iter_mut().enumerate() {
            let head = &self.heads[number];
            let die = match self.placement.striping {
                DieStriping::Always => (head.die_of_pair + 1) % dies,
                DieStriping::Never | DieStriping::LongRequests => head.die,
            };
            *view = ChannelView {
                of_request: of_request[number],
                of_file: self.of_file[file as usize][number],
                near: 0,
                issued: head.issued,
                reads_pending: pending.reads_of_channel(number as u8),
                pending_ns: pending.of_die_ns(number as u8, die, of_request[number]),
            };
        }
    }

    /// Counts the pages of the file near a page on their channels; those of the request before it were given to `chosen`.
    fn count_neighbours(&self, views: &mut [ChannelView], span: &PageSpan, offset: u32, chosen: &[u8]) {
        let window = WINDOW_PAGES as u32;
        let end = (offset + window + 1).min(self.files.size(span.file));
        for near in (offset.saturating_sub(window)..end).filter(|&near| near != offset) {
            let of_request = near.checked_sub(span.offset).and_then(|at| chosen.get(at as usize)).copied();
            let stands = || self.places[(span.first - span.offset + near) as usize].map(|place| place.channel);
            if let Some(channel) = of_request.or_else(stands) {
                views[usize::from(channel)].near += 1;
            }
        }
    }

    /// The die and the plane pair of the next page on a channel, to which a request has given `before` of its pages.
    fn next_die(&mut self, channel: u8, request_pages: u32, before: u32) -> (u8, u32) {
        let dies = self.shape.dies_per_channel();
        let head = &mut self.heads[usize::from(channel)];
        if !self.placement.striping.holds_for(request_pages) {
            let die = head.die;
            head.programmed += 1;
            if head.programmed == self.pages_per_block {
                *head = ChannelHead { die: (die + 1) % dies, programmed: 0, ..*head };
            }
            return (die, 0);
        }
        if before.is_multiple_of(u32::from(self.shape.planes_per_die)) {
            self.pairs_ever += 1;
            (head.pair, head.die_of_pair) = (self.pairs_ever, (head.die_of_pair + 1) % dies);
        }
        (head.die_of_pair, head.pair)
    }
}

impl PageStore for SpreadFiles {
    fn read(&mut self, span: &PageSpan, out: &mut PlannedRequest) -> Result<(), DriveError> {
        for page in span.first..span.first + span.pages {
            let place = self.places[page as usize].ok_or(DriveError::NeverWritten { page })?;
            self.heads[usize::from(place.channel)].read += 1;
            out.stamps.push(self.dies[self.die_number(place.channel, place.die)][place.number as usize]);
            out.add(CommandKind::Read, place.channel, place.die, (place.pair, self.shape.planes_per_die));
        }
        Ok(())
    }

    fn write(
        &mut self,
        span: &PageSpan,
        first_stamp: u64,
        pending: &PendingTimes,
        out: &mut PlannedRequest,
    ) -> Result<(), DriveError> {
        // Its old places are given up before the new ones are chosen.
        for page in span.first..span.first + span.pages {
            if let Some(place) = self.places[page as usize].take() {
                self.of_file[span.file as usize][usize::from(place.channel)] -= 1;
            }
        }
        let channels = self.channels_of(span, pending);
        let mut before = [0; CHANNELS_MAX];
        for (page, &channel) in (span.first..).zip(&channels) {
            let number = usize::from(channel);
            let (die, pair) = self.next_die(channel, span.pages, before[number]);
            before[number] += 1;
            let stamps_at = self.die_number(channel, die);
            let stamps = &mut self.dies[stamps_at];
            stamps.push(first_stamp + u64::from(page - span.first));
            let place = SpreadPlace { channel, die, pair, number: stamps.len() as u32 - 1 };
            self.places[page as usize] = Some(place);
            out.add(CommandKind::Program, channel, die, (pair, self.shape.planes_per_die));
        }
        Ok(())
    }

    fn background(&mut self, _: u8, _: &dyn Fn(u8) -> bool) -> Result<Option<BackgroundStep>, DriveError> {
        Ok(None)
    }

    fn is_collecting(&self, _: u8) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
