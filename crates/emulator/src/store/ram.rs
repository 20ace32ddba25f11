//! Pages in RAM: those of a block lie in one buffer, shared between snapshots until one of them changes it.
//!
//! Invariant: a buffer in the pool has one owner, so reusing it changes no snapshot.

use std::sync::Arc;

use super::block_bytes::BlockBytes;
use crate::{
    image::ImageStore,
    spec::Spec,
    table::{PageState, Table},
};

/// A block's pages.
pub(crate) type BlockData = Arc<BlockPages>;

/// Where a page lies in its block's buffer: its data, followed by as many spare bytes as were programmed.
#[derive(Clone, Copy, Debug)]
struct PagePlace {
    start: usize,
    spare_bytes: usize,
}

/// The bytes of a block.
#[derive(Debug)]
pub(crate) struct BlockPages {
    bytes: BlockBytes,
    places: Box<[Option<PagePlace>]>,
}

impl BlockPages {
    fn empty(pages: u32) -> Self {
        Self { bytes: BlockBytes::new(), places: vec![None; pages as usize].into_boxed_slice() }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.places.fill(None);
    }

    fn put(&mut self, page: u32, data: &[u8], spare: &[u8]) {
        let length = data.len() + spare.len();
        self.bytes.make_room(length * self.places.len());
        let place = &mut self.places[page as usize];
        match place.filter(|place| place.spare_bytes == spare.len()) {
            Some(PagePlace { start, .. }) => {
                let (to_data, to_spare) = self.bytes[start..start + length].split_at_mut(data.len());
                to_data.copy_from_slice(data);
                to_spare.copy_from_slice(spare);
            }
            None => {
                *place = Some(PagePlace { start: self.bytes.len(), spare_bytes: spare.len() });
                self.bytes.extend(data);
                self.bytes.extend(spare);
            }
        }
    }
}

impl Clone for BlockPages {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), places: self.places.clone() }
    }

    fn clone_from(&mut self, from: &Self) {
        self.bytes.clone_from(&from.bytes);
        self.places.copy_from_slice(&from.places);
    }
}

#[derive(Debug)]
pub(crate) struct RamStore {
    blocks: Vec<BlockData>,
    /// What every erased block points to.
    empty: BlockData,
    page_bytes: usize,
    /// Buffers of erased blocks, to be used again.
    spare_blocks: Vec<BlockData>,
}

/// Buffers that are kept for later.
const SPARE_BLOCKS_MAX: usize = 4;

impl RamStore {
    pub(crate) fn new(blocks: u32, pages_per_block: u32, page_bytes: u32) -> Self {
        let empty: BlockData = Arc::new(BlockPages::empty(pages_per_block));
        Self {
            blocks: vec![Arc::clone(&empty); blocks as usize],
            empty,
            page_bytes: page_bytes as usize,
            spare_blocks: Vec::new(),
        }
    }

    /// Reads every programmed page of an image; those that the host fails to read become uncorrectable in `table`.
    pub(crate) fn load(image: &ImageStore, spec: &Spec, table: &mut Table) -> Self {
        let shape = &spec.geometry;
        let mut ram = Self::new(shape.blocks, shape.pages_per_block, shape.page_bytes);
        let mut data = vec![0; shape.page_bytes as usize];
        let mut spare = vec![0; shape.spare_bytes as usize];
        for block in 0..shape.blocks {
            for page in 0..shape.pages_per_block {
                if table.state(block, page).reads_erased() {
                    continue;
                }
                match image.get(block, page, 0, &mut data, &mut spare) {
                    Ok(()) => ram.put(block, page, &data, &spare),
                    Err(_) => table.set_state(block, page, PageState::Uncorrectable),
                }
            }
        }
        ram
    }

    pub(crate) fn put(&mut self, block: u32, page: u32, data: &[u8], spare: &[u8]) {
        let slot = &mut self.blocks[block as usize];
        if Arc::get_mut(slot).is_none()
            && let Some(mut own) = self.spare_blocks.pop()
        {
            Arc::make_mut(&mut own).clone_from(slot);
            *slot = own;
        }
        Arc::make_mut(slot).put(page, data, spare);
    }

    pub(crate) fn get(&self, block: u32, page: u32, column: usize, data: &mut [u8], spare: &mut [u8]) {
        let BlockPages { bytes, places } = &*self.blocks[block as usize];
        let Some(PagePlace { start, spare_bytes }) = places[page as usize] else {
            data.fill(0xFF);
            spare.fill(0xFF);
            return;
        };
        data.copy_from_slice(&bytes[start + column..start + column + data.len()]);
        let known = spare.len().min(spare_bytes);
        let stored = start + self.page_bytes;
        spare[..known].copy_from_slice(&bytes[stored..stored + known]);
        spare[known..].fill(0xFF);
    }

    pub(crate) fn erase(&mut self, block: u32) -> BlockData {
        std::mem::replace(&mut self.blocks[block as usize], Arc::clone(&self.empty))
    }

    pub(crate) fn bring_back(&mut self, block: u32, data: BlockData) {
        self.blocks[block as usize] = data;
    }

    /// Keeps the buffer of a block that nobody else shares.
    pub(crate) fn recycle(&mut self, mut data: BlockData) {
        if self.spare_blocks.len() < SPARE_BLOCKS_MAX
            && let Some(pages) = Arc::get_mut(&mut data)
        {
            pages.clear();
            self.spare_blocks.push(data);
        }
    }
}

impl Clone for RamStore {
    fn clone(&self) -> Self {
        Self {
            blocks: self.blocks.clone(),
            empty: Arc::clone(&self.empty),
            page_bytes: self.page_bytes,
            spare_blocks: Vec::new(),
        }
    }
}
