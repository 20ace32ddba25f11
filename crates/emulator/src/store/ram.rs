//! Pages in RAM, shared between snapshots until one of them changes.
//!
//! A block is a shared list of shared pages: a snapshot clones one pointer a block, the first program after it one
//! pointer a page. Invariant: a page buffer in the pool has one owner, so reusing it changes no snapshot.

use std::sync::Arc;

use crate::{
    image::ImageStore,
    spec::Spec,
    table::{PageState, Table},
};

/// A page's data, followed by as many spare bytes as were programmed.
type Page = Arc<Vec<u8>>;
/// A block's pages.
pub(crate) type BlockData = Arc<Box<[Option<Page>]>>;

#[derive(Debug)]
pub(crate) struct RamStore {
    blocks: Vec<BlockData>,
    /// What every erased block points to.
    empty: BlockData,
    page_bytes: usize,
    /// Buffers and lists of erased blocks, to be used again.
    spare_pages: Vec<Page>,
    spare_blocks: Vec<BlockData>,
}

impl RamStore {
    pub(crate) fn new(blocks: u32, pages_per_block: u32, page_bytes: u32) -> Self {
        let empty: BlockData = Arc::new(vec![None; pages_per_block as usize].into_boxed_slice());
        Self {
            blocks: vec![Arc::clone(&empty); blocks as usize],
            empty,
            page_bytes: page_bytes as usize,
            spare_pages: Vec::new(),
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
        if Arc::ptr_eq(slot, &self.empty)
            && let Some(list) = self.spare_blocks.pop()
        {
            *slot = list;
        }
        let mut buffer = self.spare_pages.pop().unwrap_or_default();
        match Arc::get_mut(&mut buffer) {
            Some(bytes) => fill(bytes, data, spare),
            None => {
                let mut bytes = Vec::new();
                fill(&mut bytes, data, spare);
                buffer = Arc::new(bytes);
            }
        }
        Arc::make_mut(slot)[page as usize] = Some(buffer);
    }

    pub(crate) fn get(&self, block: u32, page: u32, column: usize, data: &mut [u8], spare: &mut [u8]) {
        let Some(bytes) = &self.blocks[block as usize][page as usize] else {
            data.fill(0xFF);
            spare.fill(0xFF);
            return;
        };
        data.copy_from_slice(&bytes[column..column + data.len()]);
        let stored = &bytes[self.page_bytes..];
        let known = spare.len().min(stored.len());
        spare[..known].copy_from_slice(&stored[..known]);
        spare[known..].fill(0xFF);
    }

    pub(crate) fn erase(&mut self, block: u32) -> BlockData {
        std::mem::replace(&mut self.blocks[block as usize], Arc::clone(&self.empty))
    }

    pub(crate) fn bring_back(&mut self, block: u32, data: BlockData) {
        self.blocks[block as usize] = data;
    }

    /// Keeps the buffers of a block that nobody else shares.
    pub(crate) fn recycle(&mut self, mut data: BlockData) {
        let most_pages = 2 * self.empty.len();
        let Some(pages) = Arc::get_mut(&mut data) else { return };
        for page in pages.iter_mut() {
            if let Some(mut buffer) = page.take()
                && self.spare_pages.len() < most_pages
                && Arc::get_mut(&mut buffer).is_some()
            {
                self.spare_pages.push(buffer);
            }
        }
        if self.spare_blocks.len() < 4 {
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
            spare_pages: Vec::new(),
            spare_blocks: Vec::new(),
        }
    }
}

fn fill(bytes: &mut Vec<u8>, data: &[u8], spare: &[u8]) {
    bytes.clear();
    bytes.reserve_exact(data.len() + spare.len());
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(spare);
}
