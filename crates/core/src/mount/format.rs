//! Formatting a chip: every block is erased, a root directory is logged, and a first checkpoint makes it a volume.

use nand::{Cause, Nand};

use super::ongoing::Tables;
use crate::error::{Error, Result};
use crate::flash::Flash;
use crate::flash::shape::Shape;
use crate::format::anchor::{ANCHOR_BLOCKS, LABEL_BYTES, changes_max};
use crate::format::crc::crc32c;
use crate::format::inode::Inode;
use crate::format::node::Body;
use crate::format::table::{BlockEntry, Use};
use crate::fs::inodes::Inodes;
use crate::fs::log::Log;
use crate::fs::types::{FormatOptions, MountOptions, ROOT_INO, kind};
use crate::fs::{Fs, Volume};
use crate::index::Index;

impl<N: Nand> Fs<N> {
    /// Formats the chip; everything on it is lost. A chip that cannot carry a volume is refused unchanged.
    pub fn format(nand: &mut N, options: &FormatOptions) -> Result<()> {
        let shape = Shape::of(nand)?;
        if options.label.len() > LABEL_BYTES {
            return Err(Error::Invalid("a label is at most 32 bytes long"));
        }
        let blocks = shape.geometry.blocks;
        let tables = Tables::empty(blocks, shape.slot_bytes);
        if changes_max(shape.slot_bytes, tables.slots.len()) < 16 {
            return Err(Error::Unsuitable("it has more blocks than a block table can list"));
        }
        let entry = |block| BlockEntry {
            used_as: if nand.is_bad(block) { Use::Bad } else { Use::Free },
            ..BlockEntry::default()
        };
        let entries = (0..blocks).map(entry).collect();
        let good = (0..ANCHOR_BLOCKS.min(blocks)).filter(|&block| !nand.is_bad(block)).count();
        if good < 2 {
            return Err(Error::Unsuitable("fewer than two of its first 16 blocks are good"));
        }
        let mut flash = Flash::new(nand, shape, volume_seed(&options.volume_id), entries, 64);
        for block in 0..blocks {
            if flash.blocks.get(block).entry.used_as == Use::Free {
                flash.erase(block, Cause::Metadata)?;
            }
        }
        let mut good = (0..ANCHOR_BLOCKS).filter(|&block| flash.blocks.get(block).entry.used_as == Use::Free);
        let (Some(first), Some(second)) = (good.next(), good.next()) else {
            return Err(Error::Unsuitable("fewer than two of its first 16 blocks are good"));
        };
        drop(good);
        flash.anchors.pair = [first, second];
        flash.anchors.own = true;
        for block in [first, second] {
            if let Some(mut found) = flash.blocks.get_mut(block) {
                (found.entry.used_as, found.entry.erased) = (Use::Anchor, false);
            }
        }
        let mount = MountOptions { now_ns: options.now_ns, ..MountOptions::default() };
        let volume = Volume {
            id: options.volume_id,
            label: options.label.clone(),
            created_ns: options.now_ns,
            epoch: 1,
            checkpoint: 0,
            next_ino: ROOT_INO + 1,
            files: 1,
            hash_seed: name_seed(&options.volume_id),
            clean: true,
        };
        let mut fs = Fs::assemble(flash, Index::default(), volume, tables, mount);
        let mode = kind::DIR | options.root_mode & 0o7777;
        let root = Inode { parent: ROOT_INO, ..Inode::new(mode, options.root_uid, options.root_gid, options.now_ns) };
        fs.inodes.update(ROOT_INO, root);
        fs.push(ROOT_INO, Body::Inode(root))?;
        fs.checkpoint_as(true)
    }

    /// A mounted volume of these parts.
    pub(crate) fn assemble(
        flash: Flash<N>,
        index: Index,
        volume: Volume,
        tables: Tables,
        options: MountOptions,
    ) -> Self {
        let inodes = Inodes::new(options.cache_bytes / 4 / 256);
        Self {
            flash,
            index,
            log: Log::default(),
            inodes,
            volume,
            tables,
            checkpoint: None,
            collector: None,
            options,
            collections: 0,
            index_reserve: 0,
            fruitless_at: None,
            ended: None,
            scrub: Default::default(),
        }
    }
}

/// What seeds the checksums of a volume.
pub(crate) fn volume_seed(id: &[u8; 16]) -> u32 {
    crc32c(b"FlexFS volume", id)
}

/// What seeds the name hash of a volume.
pub(crate) fn name_seed(id: &[u8; 16]) -> u64 {
    u64::from(crc32c(b"FlexFS names", id)) << 32 | u64::from(volume_seed(id))
}
