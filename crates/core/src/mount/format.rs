//! Formatting a chip: a root directory is logged, and a first checkpoint makes it a volume. Before that every block is
//! erased, unless the chip is new.

use alloc::string::String;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use crate::error::{Error, Result};
use crate::flash::block_test::{ReadsBack, Tester};
use crate::flash::newest;
use crate::flash::shape::{Shape, slot_bytes};
use crate::flash::slots::{ChipSetup, Slots};
use crate::flash::{Flash, Phase};
use crate::format::anchor::{ANCHOR_BLOCKS, LABEL_BYTES, fits_tables};
use crate::format::cells::CellRecord;
use crate::format::crc::crc32c;
use crate::format::inode::{Inode, ROOT_INO, kind};
use crate::format::manager::ManagerRecord;
use crate::format::node::Body;
use crate::format::table::{BLOCK_BYTES, BlockEntry, Use};
use crate::index::Index;
use crate::policy::wear::Goal;
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
    /// The chip is known to be blank, as it comes from the factory: no block is erased. A chip that merely reads as blank
    /// may have been left in the middle of an erase.
    pub blank: bool,
    /// The life that is to be guaranteed from now on, if one is.
    pub goal: Option<Goal>,
    /// What is known of the chip's cells, for whoever opens the chip next.
    pub cells: CellRecord,
    pub now_ns: i64,
}

impl Default for FormatOptions {
    /// A root directory of root's, on a chip that is not known to be blank. The identity is for the caller to choose.
    fn default() -> Self {
        Self {
            volume_id: [0; 16],
            label: String::new(),
            root_mode: 0o755,
            root_uid: 0,
            root_gid: 0,
            blank: false,
            goal: None,
            cells: CellRecord::default(),
            now_ns: 0,
        }
    }
}

/// The blocks that a volume can have on a chip of such pages: as many as its block table can list.
pub fn most_blocks(page_bytes: u32) -> u32 {
    let slot_bytes = slot_bytes(page_bytes) as usize;
    let mut tables = 0;
    while fits_tables(slot_bytes, tables + 1) {
        tables += 1;
    }
    u32::try_from(tables * (slot_bytes / BLOCK_BYTES)).unwrap_or(u32::MAX)
}

/// What was told of a chip's cells when the volume on it was made, read without knowing how they are programmed: the first
/// pages of a block are SLC pages in any order. `None`: there is no volume, or nothing was told.
pub fn recorded_cells<N: Nand>(nand: &mut N) -> Result<Option<CellRecord>> {
    let shape = Shape::of(nand)?;
    let anchor = newest::any_early_anchor(nand, &shape)?;
    Ok(anchor.map(|anchor| anchor.cells).filter(CellRecord::is_told))
}

/// Formats the chip; everything on it is lost. A chip that cannot carry a volume is refused unchanged.
pub fn format<N: Nand>(nand: &mut N, options: &FormatOptions) -> Result<()> {
    let shape = Shape::of(nand)?;
    if options.label.len() > LABEL_BYTES {
        return Err(Error::Invalid("a label is at most 32 bytes long"));
    }
    let blocks = shape.geometry.blocks;
    let tables = Tables::empty(blocks, shape.slot_bytes);
    if !fits_tables(shape.slot_bytes, tables.slots.len()) {
        return Err(Error::Unsuitable("it has more blocks than a block table can list"));
    }
    let entry = |block| match nand.is_bad(block) {
        true => BlockEntry { used_as: Use::Bad, ..BlockEntry::default() },
        false => BlockEntry { erased: options.blank, ..BlockEntry::default() },
    };
    let entries = (0..blocks).map(entry).collect();
    let good = (0..ANCHOR_BLOCKS.min(blocks)).filter(|&block| !nand.is_bad(block)).count();
    if good < 2 {
        return Err(Error::Unsuitable("fewer than two of its first 16 blocks are good"));
    }
    let chip = ChipSetup { shape, seed: volume_seed(&options.volume_id), entries, lanes: 1 };
    let mut flash = Flash::new(nand, chip, 64, Phase::Formatting);
    if !options.blank {
        erase_all(&mut flash)?;
        // A block that was not erased may hold anchors of the volume before.
        Tester(&mut flash).finish_all(ReadsBack::Easily)?;
    }
    let is_good = |entry: BlockEntry| entry.used_as == Use::Free && !entry.failing;
    let mut good = (0..ANCHOR_BLOCKS).filter(|&block| is_good(flash.blocks().get(block).entry));
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
        manager: options.goal.map_or_else(ManagerRecord::default, |goal| {
            ManagerRecord::new(goal.life_ns, goal.window_ns, options.now_ns)
        }),
        cells: options.cells,
    };
    let mut store = Store::new(flash, Index::default(), volume, tables, mount);
    let mode = kind::DIR | options.root_mode & 0o7777;
    let root = Inode { parent: ROOT_INO, ..Inode::new(mode, options.root_uid, options.root_gid, options.now_ns) };
    store.records_mut().derive_inode(ROOT_INO, root);
    store.records_mut().push(ROOT_INO, Body::Inode(root))?;
    store.checkpoint_as(true)
}

/// Erases every block that is not bad. Older anchors of another volume go first, then its newest, then the rest: cut
/// anywhere, that leaves the volume whole, or none.
fn erase_all<N: Nand>(flash: &mut Flash<N>) -> Result<()> {
    let shape = flash.shape().clone();
    let slots = flash.slots_mut();
    let newest = newest::find(slots.nand_mut(), &shape).ok().map(|found| found.block);
    let good: Vec<u32> = (0..slots.blocks().len()).filter(|&block| !slots.nand().is_bad(block)).collect();
    let older = |slots: &mut Slots<_>, block| Some(block) != newest && slots.holds_anchor(block).unwrap_or(false);
    let mut order: Vec<u32> = good.iter().copied().filter(|&block| older(slots, block)).collect();
    order.extend(newest);
    let rest: Vec<u32> = good.into_iter().filter(|block| !order.contains(block)).collect();
    order.into_iter().chain(rest).try_for_each(|block| slots.erase(block, Cause::Metadata).map(|_| ()))
}

/// What seeds the checksums of a volume.
pub fn volume_seed(id: &[u8; 16]) -> u32 {
    crc32c(b"FlexFS volume", id)
}

/// What seeds the name hash of a volume.
pub fn name_seed(id: &[u8; 16]) -> u64 {
    u64::from(crc32c(b"FlexFS names", id)) << 32 | u64::from(volume_seed(id))
}
