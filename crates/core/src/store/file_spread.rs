//! The pages of files on each channel, for rules that choose a channel by them.
//!
//! Invariant: the pages of a file are counted once and then kept, or forgotten and counted again.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use crate::format::inode::Ino;
use crate::policy::channel::CHANNELS_MAX;

/// Files whose pages are counted.
const FILES_MAX: usize = 1024;

/// Pages of files on each channel.
pub(super) struct FileSpreads {
    files: BTreeMap<Ino, Box<[u32]>>,
    dies: u32,
    channels: u32,
}

/// The pages of a file on each channel, without the page that is placed.
#[derive(Clone, Copy)]
pub(super) struct PageSpread {
    /// Its other pages.
    pub of_file: [u32; CHANNELS_MAX],
    /// The neighbours of the page.
    pub near: [u32; CHANNELS_MAX],
}

impl FileSpreads {
    /// Of a chip with so many dies, told apart as so many channels.
    pub fn new(dies: u32, channels: u8) -> Self {
        Self { files: BTreeMap::new(), dies: dies.max(1), channels: u32::from(channels.max(1)) }
    }

    /// Channels that are told apart.
    pub fn channels(&self) -> usize {
        self.channels as usize
    }

    /// The channel of a block.
    pub fn channel_of(&self, block: u32) -> usize {
        (block % self.dies % self.channels) as usize
    }

    /// A page of a file went to one block, and if it stood in another before, not any more.
    pub fn heard_of_page(&mut self, ino: Ino, from: Option<u32>, to: u32) {
        let (from, to) = (from.map(|block| self.channel_of(block)), self.channel_of(to));
        let Some(counts) = self.files.get_mut(&ino) else { return };
        if let Some(count) = from.and_then(|from| counts.get_mut(from)) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = counts.get_mut(to) {
            *count += 1;
        }
    }

    /// Pages of a file on each channel, as far as they are counted.
    pub fn pages(&self, ino: Ino) -> Option<&[u32]> {
        self.files.get(&ino).map(|counts| &**counts)
    }

    /// Whether the pages of a file are counted.
    pub fn counts(&self, ino: Ino) -> bool {
        self.files.contains_key(&ino)
    }

    /// The count of a file is out of date.
    pub fn forget(&mut self, ino: Ino) {
        self.files.remove(&ino);
    }

    /// The same of every file.
    pub fn forget_all(&mut self) {
        self.files.clear();
    }

    /// Keeps what was counted of a file.
    pub fn remember(&mut self, ino: Ino, counts: Box<[u32]>) {
        if self.files.len() >= FILES_MAX {
            self.files.pop_first();
        }
        self.files.insert(ino, counts);
    }
}
