//! Files whose pages a rule spreads over the channels, without collection: each write programs new pages.
//!
//! Invariant: a page stands where its last write put it, and the count of a file's pages on a channel is the number of its
//! pages that stand there.

use flexfs_core::channel::{CHANNELS_MAX, ChannelRule, ChannelView};

use super::load::{FileSizes, PageSpan};
use super::shape::DriveShape;
use super::{BackgroundStep, CommandKind, DriveError, PageStore, PlannedRequest};

/// How the channel of a page is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelChoice {
    /// By a rule of the file system, which places each write anew.
    ByRule(ChannelRule),
    /// By the page's place in its file: each write goes to the channel of the one before. File *n* begins at channel
    /// 5 *n* mod 8.
    ByOffset,
}

/// Where pages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePlacement {
    pub name: &'static str,
    pub channel: ChannelChoice,
    /// The pages of a request on a channel go to plane pairs, these to its dies in turn. Else a channel has one open block.
    pub is_striped: bool,
}

impl FilePlacement {
    /// One counter of pages over all channels.
    pub const ROUND_ROBIN: Self =
        Self { name: "round-robin", channel: ChannelChoice::ByRule(ChannelRule::RoundRobin), is_striped: false };
    pub const ROUND_ROBIN_STRIPED: Self =
        Self { name: "round-robin, striped dies", is_striped: true, ..Self::ROUND_ROBIN };
    pub const STATIC: Self = Self { name: "static striping", channel: ChannelChoice::ByOffset, is_striped: false };
    /// File Channel Fairness (§III.C.1).
    pub const FAIRNESS: Self =
        Self { name: "fairness", channel: ChannelChoice::ByRule(ChannelRule::FileFairness), is_striped: false };
}

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
    die: u8,
    /// Pages of the open block.
    programmed: u32,
    /// Pages that were ever given to it.
    issued: u64,
    /// The last plane pair.
    pair: u32,
}

/// Files, spread by a rule.
#[derive(Clone)]
pub struct SpreadFiles {
    placement: FilePlacement,
    shape: DriveShape,
    pages_per_block: u32,
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

    fn die_number(&self, channel: u8, die: u8) -> usize {
        usize::from(channel) * usize::from(self.shape.dies_per_channel()) + usize::from(die)
    }

    /// The channel of each page of a write.
    fn channels_of(&mut self, span: &PageSpan) -> Vec<u8> {
        let channels = usize::from(self.shape.channels);
        let mut of_request = [0; CHANNELS_MAX];
        let mut chosen = Vec::with_capacity(span.pages as usize);
        for offset in span.offset..span.offset + span.pages {
            let channel = match self.placement.channel {
                ChannelChoice::ByOffset => (offset + CHANNELS_BETWEEN_FILES * span.file) as usize % channels,
                ChannelChoice::ByRule(rule) => {
                    let mut views = [ChannelView::default(); CHANNELS_MAX];
                    for (number, view) in views.iter_mut().enumerate().take(channels) {
                        view.of_request = of_request[number];
                        view.of_file = self.of_file[span.file as usize][number];
                        view.issued = self.heads[number].issued;
                    }
                    let channel = rule.choose(span.pages, &views[..channels], self.turn);
                    self.turn += 1;
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

    /// The die and the plane pair of the next page on a channel, to which the request has given `before` pages.
    fn next_die(&mut self, channel: u8, before: u32) -> (u8, u32) {
        let dies = self.shape.dies_per_channel();
        let head = &mut self.heads[usize::from(channel)];
        if !self.placement.is_striped {
            let die = head.die;
            head.programmed += 1;
            if head.programmed == self.pages_per_block {
                *head = ChannelHead { die: (die + 1) % dies, programmed: 0, ..*head };
            }
            return (die, 0);
        }
        if before.is_multiple_of(u32::from(self.shape.planes_per_die)) {
            head.die = (head.die + 1) % dies;
            self.pairs_ever += 1;
            head.pair = self.pairs_ever;
        }
        (head.die, head.pair)
    }
}

impl PageStore for SpreadFiles {
    fn read(&mut self, span: &PageSpan, out: &mut PlannedRequest) -> Result<(), DriveError> {
        for page in span.first..span.first + span.pages {
            let place = self.places[page as usize].ok_or(DriveError::NeverWritten { page })?;
            out.stamps.push(self.dies[self.die_number(place.channel, place.die)][place.number as usize]);
            out.add(CommandKind::Read, place.channel, place.die, (place.pair, self.shape.planes_per_die));
        }
        Ok(())
    }

    fn write(&mut self, span: &PageSpan, first_stamp: u64, out: &mut PlannedRequest) -> Result<(), DriveError> {
        // Its old places are given up before the new ones are chosen.
        for page in span.first..span.first + span.pages {
            if let Some(place) = self.places[page as usize].take() {
                self.of_file[span.file as usize][usize::from(place.channel)] -= 1;
            }
        }
        let channels = self.channels_of(span);
        let mut before = [0; CHANNELS_MAX];
        for (page, &channel) in (span.first..).zip(&channels) {
            let number = usize::from(channel);
            let (die, pair) = self.next_die(channel, before[number]);
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
