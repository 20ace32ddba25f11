//! Where the bytes of pages live: in RAM, all of them or the spare ones with chosen data, or in an image file.
//!
//! A store knows bytes and blocks, not rules. Invariant: bytes are meaningful only where the chip's table says that a
//! page holds some; for a chip in an image, [`Store::commit`] is the one moment at which an operation takes effect.

mod block_bytes;
mod ram;
mod spare;

use std::io;

use crate::{
    image::ImageStore,
    table::{BlockMeta, PageState},
};

pub(crate) use ram::RamStore;
pub(crate) use spare::SpareStore;

use ram::BlockData;
use spare::BlockSpare;

#[derive(Debug)]
pub(crate) enum Medium {
    Ram(RamStore),
    Spare(SpareStore),
    Image(ImageStore),
}

#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) medium: Medium,
    /// Makes every write fail: [`crate::FaultConfig::medium_errno`].
    pub(crate) failing: Option<i32>,
}

/// The contents of a block that is being erased, for as long as the erase may still be undone. In an image they stay
/// where they are until then.
#[derive(Clone, Debug)]
pub(crate) enum ErasedContents {
    Pages(BlockData),
    Spare(BlockSpare),
    InPlace,
}

impl Store {
    pub(crate) fn new(medium: Medium) -> Self {
        Self { medium, failing: None }
    }

    pub(crate) fn is_image(&self) -> bool {
        matches!(self.medium, Medium::Image(_))
    }

    fn writable(&self) -> io::Result<()> {
        match self.failing {
            None => Ok(()),
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Puts bytes into a page; spare bytes past the end of `spare` are `0xFF`. Without `keep`, a medium that has a choice
    /// lets the data go.
    pub(crate) fn put(&mut self, block: u32, page: u32, data: &[u8], spare: &[u8], keep: bool) -> io::Result<()> {
        self.writable()?;
        match &mut self.medium {
            Medium::Ram(ram) => ram.put(block, page, data, spare),
            Medium::Spare(store) => store.put(block, page, keep.then_some(data), spare),
            Medium::Image(image) => image.put(block, page, data, spare)?,
        }
        Ok(())
    }

    /// Gets bytes of a page from `column` on, and its first spare bytes.
    pub(crate) fn get(
        &self,
        block: u32,
        page: u32,
        column: usize,
        data: &mut [u8],
        spare: &mut [u8],
    ) -> io::Result<()> {
        match &self.medium {
            Medium::Ram(ram) => ram.get(block, page, column, data, spare),
            Medium::Spare(store) => store.get(block, page, column, data, spare),
            Medium::Image(image) => image.get(block, page, column, data, spare)?,
        }
        Ok(())
    }

    /// Whether the data that was put into a page is there to be got.
    pub(crate) fn holds_data(&self, block: u32, page: u32) -> bool {
        match &self.medium {
            Medium::Ram(_) | Medium::Image(_) => true,
            Medium::Spare(store) => store.holds_data(block, page),
        }
    }

    /// Empties a block; what it held is kept until [`Store::forget`] or [`Store::bring_back`].
    pub(crate) fn erase(&mut self, block: u32) -> ErasedContents {
        match &mut self.medium {
            Medium::Ram(ram) => ErasedContents::Pages(ram.erase(block)),
            Medium::Spare(store) => ErasedContents::Spare(store.erase(block)),
            Medium::Image(_) => ErasedContents::InPlace,
        }
    }

    /// Gives up the contents of an erased block.
    pub(crate) fn forget(&mut self, block: u32, erased: ErasedContents) {
        match (&mut self.medium, erased) {
            (Medium::Ram(ram), ErasedContents::Pages(data)) => ram.recycle(data),
            (Medium::Image(image), _) => image.punch(block),
            _ => {}
        }
    }

    /// Undoes an erase.
    pub(crate) fn bring_back(&mut self, block: u32, erased: ErasedContents) {
        match (&mut self.medium, erased) {
            (Medium::Ram(ram), ErasedContents::Pages(data)) => ram.bring_back(block, data),
            (Medium::Spare(store), ErasedContents::Spare(spare)) => store.bring_back(block, spare),
            _ => {}
        }
    }

    /// Makes what happened to a block last.
    pub(crate) fn commit(&mut self, block: u32, meta: &BlockMeta, states: &[PageState], now_ns: u64) -> io::Result<()> {
        self.writable()?;
        match &mut self.medium {
            Medium::Ram(_) | Medium::Spare(_) => Ok(()),
            Medium::Image(image) => image.commit(block, meta, states, now_ns),
        }
    }
}
