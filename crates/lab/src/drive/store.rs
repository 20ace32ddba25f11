//! What a drive asks of the layers above it. Invariant: what a store plans for a request is all that the request waits for.

use super::DriveError;
use super::command::{BackgroundStep, CommandKind, PageCommand};
use super::load::PageSpan;
use super::pending::PendingTimes;

/// What stands between the pages of files and the dies of a drive.
pub trait PageStore {
    /// Plans the read of pages, with the stamp of each.
    fn read(&mut self, span: &PageSpan, out: &mut PlannedRequest) -> Result<(), DriveError>;

    /// Places the pages of a write on a drive that has so much to do. Page *n* of it is stamped `first_stamp` + *n*.
    fn write(
        &mut self,
        span: &PageSpan,
        first_stamp: u64,
        pending: &PendingTimes,
        out: &mut PlannedRequest,
    ) -> Result<(), DriveError>;

    /// The next background step on a channel, if one is due and its die is idle.
    fn background(&mut self, channel: u8, is_idle: &dyn Fn(u8) -> bool) -> Result<Option<BackgroundStep>, DriveError>;

    /// Whether a channel may have a background step.
    fn is_collecting(&self, channel: u8) -> bool;
}

/// What a request comes to.
#[derive(Clone, Debug, Default)]
pub struct PlannedRequest {
    pub commands: Vec<PageCommand>,
    /// The plane pair of each command, 0 for none.
    pairs: Vec<u32>,
    /// Background steps that do not wait for an idle die: they follow the commands.
    pub steps: Vec<BackgroundStep>,
    /// Of a read, the stamp of each page in their order.
    pub stamps: Vec<u64>,
}

impl PlannedRequest {
    pub fn clear(&mut self) {
        self.commands.clear();
        self.pairs.clear();
        self.steps.clear();
        self.stamps.clear();
    }

    /// Adds a page on a die of a channel. Pages of one plane pair are one command, of at most so many planes.
    pub fn add(&mut self, kind: CommandKind, channel: u8, die: u8, (pair, planes): (u32, u8)) {
        let together = self.pairs.iter().rposition(|&other| pair != 0 && other == pair);
        match together.and_then(|at| self.commands.get_mut(at)).filter(|command| command.pages < planes) {
            Some(command) => command.pages += 1,
            None => {
                self.commands.push(PageCommand { kind, channel, die, pages: 1 });
                self.pairs.push(pair);
            }
        }
    }
}
