//! Formatting a chip: every block is erased, a root directory is logged, and a first checkpoint makes it a volume.

use alloc::string::String;

use nand::{Cause, Nand};

use crate::error::{Error, Result};
use crate::flash::shape::Shape;
use crate::flash::{Flash, Phase};
use crate::format::anchor::{ANCHOR_BLOCKS, LABEL_BYTES, changes_max};
use crate::format::crc::crc32c;
use crate::format::inode::{Inode, ROOT_INO, kind};
use crate::format::node::Body;
use crate::format::table::{BlockEntry, Use};
use crate::index::Index;
use crate::store::Store;
use crate::store::checkpoint::Tables;
use crate::store::options::MountOptions;
use crate::store::records::Volume;

/// How a chip is formatted.
#[derive(Clone, Debug)]
pub struct FormatOptions {
    /// The volume's identity; seeds every checksum, so it must differ from what the chip held before.
    pub volume_id: [u8; 16],
    /// A name for people, at most 32 bytes of UTF-8.
    pub label: String,
    pub root_mode: u32,
    pub root_uid: u32,
    pub root_gid: u32,
    pub now_ns: i64,
}

/// Formats the chip; everything on it is lost. A chip that cannot carry a volume is refused unchanged.
pub fn format<N: Nand>(nand: &mut N, options: &FormatOptions) -> Result<()> {
    let shape = Shape::of(nand)?;
    if options.label.len() > LABEL_BYTES {
        return Err(Error::Invalid("a label is at most 32 bytes long"));
    }
    let blocks = shape.geometry.blocks;
    let tables = Tables::empty(blocks, shape.slot_bytes);
    if changes_max(shape.slot_bytes, tables.slots.len()) < 16 {
        return Err(Error::Unsuitable("it has more blocks than a block table can list"));
    }
    let entry =
        |block| BlockEntry { used_as: if nand.is_bad(block) { Use::Bad } else { Use::Free }, ..BlockEntry::default() };
    let entries = (0..blocks).map(entry).collect();
    let good = (0..ANCHOR_BLOCKS.min(blocks)).filter(|&block| !nand.is_bad(block)).count();
    if good < 2 {
        return Err(Error::Unsuitable("fewer than two of its first 16 blocks are good"));
    }
    let mut flash = Flash::new(nand, shape, volume_seed(&options.volume_id), entries, 64, Phase::Formatting);
    for block in 0..blocks {
        if flash.blocks().get(block).entry.used_as == Use::Free {
            flash.slots_mut().erase(block, Cause::Metadata)?;
        }
    }
    let mut good = (0..ANCHOR_BLOCKS).filter(|&block| flash.blocks().get(block).entry.used_as == Use::Free);
    let (Some(first), Some(second)) = (good.next(), good.next()) else {
        return Err(Error::Unsuitable("fewer than two of its first 16 blocks are good"));
    };
    drop(good);
    flash.begin_anchors([first, second]);
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
    let mut store = Store::new(flash, Index::default(), volume, tables, mount);
    let mode = kind::DIR | options.root_mode & 0o7777;
    let root = Inode { parent: ROOT_INO, ..Inode::new(mode, options.root_uid, options.root_gid, options.now_ns) };
    store.records_mut().inodes().update(ROOT_INO, root);
    store.records_mut().push(ROOT_INO, Body::Inode(root))?;
    store.checkpoint_as(true)
}

/// What seeds the checksums of a volume.
pub fn volume_seed(id: &[u8; 16]) -> u32 {
    crc32c(b"FlexFS volume", id)
}

/// What seeds the name hash of a volume.
pub fn name_seed(id: &[u8; 16]) -> u64 {
    u64::from(crc32c(b"FlexFS names", id)) << 32 | u64::from(volume_seed(id))
}
