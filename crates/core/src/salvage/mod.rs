//! Salvage: a volume made again of what can be read on a chip whose index is lost, and mended where only parts are.
//!
//! The log says nearly everything, so the index is only a shortcut: all data and nodes on the chip are applied in the
//! order of their numbers. What the log does not say is what was deleted, where the record of that has been erased since:
//! see `judge`. Invariant: what may have been deleted is never put back into its place.

mod apply;
mod cuts;
mod judge;
mod remains;
mod seed;
mod settle;
mod sums;
mod survey;

use alloc::vec::Vec;

use nand::Nand;

pub use judge::Doubt;

use self::judge::{Judgement, judge};
use self::remains::Remains;
use self::survey::{Known, Survey, Witness};
use crate::error::{Error, Result};
use crate::flash::block_test::ReadsBack;
use crate::flash::shape::Shape;
use crate::flash::slots::{ChipSetup, Slots};
use crate::flash::{Flash, Phase, newest};
use crate::format::anchor::Anchor;
use crate::format::inode::ROOT_INO;
use crate::format::key::Key;
use crate::format::table::{BlockEntry, Use};
use crate::index::Index;
use crate::mount::actions::{self, Action, Basis};
use crate::mount::format::{name_seed, volume_seed};
use crate::mount::open::check_anchor;
use crate::policy::budget::Call;
use crate::store::Store;
use crate::store::checkpoint::Tables;
use crate::store::options::MountOptions;
use crate::store::records::{Records, Volume};

/// What became of a volume that was salvaged or mended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Files and directories there are now.
    pub files: u64,
    /// What was put into `lost+found`: the path there, and why.
    pub moved: Vec<(Vec<u8>, Doubt)>,
    /// Paths that led to nothing of which anything is left.
    pub lost: Vec<Vec<u8>>,
    /// Remains of deleted files and directories that were left out.
    pub deleted: u64,
    /// Pages of data or metadata (slots) that could not be read.
    pub unreadable: u64,
    /// Slots that a power cut left of operations that never completed.
    pub unfinished: u64,
    /// Attributes left out because they may have been removed, or are not whole.
    pub attributes: u64,
    /// Whether the volume has a new identity because nothing tells its old one.
    pub renamed: bool,
}

/// Makes a volume again of what can be read on a chip, and mounts it: see [`Fs::salvage`](crate::Fs::salvage).
pub fn salvage<N: Nand>(
    mut nand: N,
    volume_id: [u8; 16],
    options: MountOptions,
    told: &mut dyn FnMut(u32, u32),
) -> core::result::Result<(Store<N>, Salvaged), (N, Error)> {
    let anchor = match Shape::of(&nand).map(|shape| (newest::find(&mut nand, &shape), shape)) {
        Ok((Ok(found), shape)) => {
            let sound = check_anchor(&found.anchor, &shape).is_ok() && has_room(&found.anchor);
            Ok((sound.then_some((found.anchor, found.block)), shape))
        }
        Ok((Err(Error::NotFlexfs(_)), shape)) => Ok((None, shape)),
        Ok((Err(error), _)) | Err(error) => Err(error),
    };
    let (anchor, shape) = match anchor {
        Ok(parts) => parts,
        Err(error) => return Err((nand, error)),
    };
    let entries = alloc::vec![BlockEntry::default(); shape.geometry.blocks as usize];
    let cache_slots = options.cache_bytes / 2 / shape.slot_bytes;
    let tables = Tables::empty(shape.geometry.blocks, shape.slot_bytes);
    let chip = ChipSetup { shape, seed: 0, entries, lanes: 1 };
    let mut flash = Flash::new(nand, chip, cache_slots, Phase::Formatting);
    let of_anchor = anchor.as_ref().map(|(anchor, _)| anchor);
    let found = read_chip(of_anchor, &mut flash, volume_id, options.now_ns, told);
    let (volume, left) = match found {
        Ok(found) => found,
        Err(error) => return Err((flash.into_nand(), error)),
    };
    let mut store = Store::new(flash, Index::default(), volume, tables, options);
    match (Mender { store: &mut store }).salvage_all(anchor, &left) {
        Ok(salvaged) => Ok((store, salvaged)),
        Err(error) => Err((store.into_chip(), error)),
    }
}

/// What is left of a log on a chip, and what that says, in order.
struct LogRemains {
    remains: Remains,
    actions: Vec<Action>,
}

/// Reads everything that is left on a chip, and lists its blocks. The volume it is of, as far as its anchor tells.
fn read_chip<N: Nand>(
    anchor: Option<&Anchor>,
    flash: &mut Flash<N>,
    volume_id: [u8; 16],
    now_ns: i64,
    told: &mut dyn FnMut(u32, u32),
) -> Result<(Volume, LogRemains)> {
    let volume = identify(anchor, flash, volume_id, now_ns)?;
    let remains = Remains::read(flash.slots_mut(), anchor.map(|anchor| anchor.seq), told)?;
    if remains.slots.is_empty() {
        return Err(Error::NotFlexfs(match anchor {
            Some(_) => "it has anchors, but nothing of a log can be read",
            None => "nothing on it is of a volume",
        }));
    }
    list_blocks(&remains, flash.slots_mut());
    let actions = actions::in_order(flash.slots_mut(), &remains.slots, u64::MAX, Basis::Nothing)?;
    Ok((volume, LogRemains { remains, actions }))
}

/// Takes the volume's identity from its anchor; without one, another that the checksums agree with.
fn identify<N: Nand>(
    anchor: Option<&Anchor>,
    flash: &mut Flash<N>,
    volume_id: [u8; 16],
    now_ns: i64,
) -> Result<Volume> {
    let id = match anchor {
        Some(anchor) => anchor.volume_id,
        None => {
            let seed = remains::find_seed(flash.slots_mut())?;
            let id = seed.and_then(|seed| seed::identity_of(seed, volume_id, volume_seed));
            id.ok_or(Error::NotFlexfs("nothing on it is of a volume"))?
        }
    };
    if let Some(anchor) = anchor {
        flash.remember_anchor(anchor);
    }
    flash.slots_mut().set_seed(volume_seed(&id));
    Ok(Volume {
        id,
        label: anchor.map(|anchor| anchor.label.clone()).unwrap_or_default(),
        created_ns: anchor.map_or(now_ns, |anchor| anchor.created_ns),
        epoch: anchor.map_or(1, |anchor| anchor.epoch + 1),
        checkpoint: anchor.map_or(0, |anchor| anchor.checkpoint),
        next_ino: anchor.map_or(0, |anchor| anchor.next_ino).max(ROOT_INO + 1),
        files: 0,
        hash_seed: name_seed(&id),
        clean: false,
        manager: anchor.map(|anchor| anchor.manager).unwrap_or_default(),
        cells: anchor.map(|anchor| anchor.cells).unwrap_or_default(),
    })
}

/// Fills the block table: what holds data or nodes is of the log, the rest is free or bad. Where no tag tells how often
/// a block was erased, it counts as erased as often as the others were on average.
fn list_blocks<N: Nand>(remains: &Remains, slots: &mut Slots<N>) {
    let known: Vec<u64> = remains.blocks.iter().filter_map(|found| found.erases).map(u64::from).collect();
    let mean = (known.iter().sum::<u64>() / (known.len() as u64).max(1)) as u32;
    for block in 0..slots.blocks().len() {
        let bad = slots.nand().is_bad(block);
        if let Some(mut listed) = slots.blocks_mut().get_mut(block) {
            listed.entry.erases = mean;
            listed.entry.used_as = if bad { Use::Bad } else { Use::Free };
        }
    }
    for found in &remains.blocks {
        if let Some(mut listed) = slots.blocks_mut().get_mut(found.block) {
            let failing = listed.entry.used_as == Use::Bad;
            let (native, sealed, erases) = (found.native, found.sealed, found.erases.unwrap_or(mean));
            listed.entry = BlockEntry { used_as: Use::Log, native, sealed, failing, erases, ..BlockEntry::default() };
        }
    }
    slots.blocks_mut().recount();
}

/// Brings counts up to what is there, and what cannot be read out of the volume: see [`Fs::mend`](crate::Fs::mend).
pub fn mend<N: Nand>(store: &mut Store<N>, all: bool, now_ns: i64) -> Result<Option<Salvaged>> {
    store.begin(Call::REMOVAL)?;
    store.checkpoint_now()?;
    let mut mender = Mender { store };
    let (survey, unreadable) = mender.survey()?;
    let judgement = judge(&survey, Witness::Index, unreadable.len() as u64);
    let attributes = survey.values().all(Known::has_whole_attributes);
    let sound = unreadable.is_empty() && attributes && judgement.keeps_all(&survey);
    if !sound && !all {
        return Ok(None);
    }
    mender.records().recovery().enter(Phase::Recovering);
    let salvaged = mender.settle_all((&survey, Witness::Index), &judgement, &unreadable, now_ns)?;
    Ok(Some(Salvaged { unreadable: unreadable.len() as u64, ..salvaged }))
}

/// Makes a volume of what was found, in a store whose phase makes it count only as a whole.
struct Mender<'a, N: Nand> {
    store: &'a mut Store<N>,
}

impl<N: Nand> Mender<'_, N> {
    fn records(&mut self) -> &mut Records<N> {
        self.store.records_mut()
    }

    fn salvage_all(&mut self, anchor: Option<(Anchor, u32)>, left: &LogRemains) -> Result<Salvaged> {
        let LogRemains { remains, actions } = left;
        let unseen = self.apply_remains(remains, actions)?;
        self.cut_behind_ends()?;
        let (mut survey, unreadable) = self.survey()?;
        for (ino, unseen) in unseen {
            survey.entry(ino).and_modify(|known| known.unseen = unseen);
        }
        let all_unreadable = unreadable.len() as u64 + remains.unreadable;
        let judgement = judge(&survey, Witness::Log, all_unreadable);
        self.records().recovery().go_on_with(remains.next_seq);
        self.records().recovery().take_anchor_pair(anchor.as_ref().map(|&(_, block)| block))?;
        let now_ns = self.records().options().now_ns;
        let salvaged = self.settle_all((&survey, Witness::Log), &judgement, &unreadable, now_ns)?;
        // The anchors of before, which a mount might come across first, are not needed any more.
        self.records().recovery().complete_anchor_pair()?;
        let (unfinished, renamed) = (remains.dropped, anchor.is_none());
        Ok(Salvaged { unreadable: all_unreadable, unfinished, renamed, ..salvaged })
    }

    /// Makes what was judged a checkpoint. As in a recovery, what is written counts only with that.
    fn settle_all(
        &mut self,
        survey: (&Survey, Witness),
        judgement: &Judgement,
        unreadable: &[Key],
        now_ns: i64,
    ) -> Result<Salvaged> {
        let settled = self.settle(survey, judgement, unreadable, now_ns)?;
        self.store.checkpoint_as(false)?;
        self.records().recovery().enter(Phase::Mounted);
        // A block that was not erased may hold what looks like an anchor.
        self.records().recovery().test_blocks(ReadsBack::Easily)?;
        Ok(Salvaged {
            files: self.records().volume().files,
            moved: settled.moved,
            lost: settled.lost,
            deleted: judgement.dead.len() as u64,
            attributes: settled.attributes,
            ..Salvaged::default()
        })
    }
}

/// Whether an anchor's counters can go on.
fn has_room(anchor: &Anchor) -> bool {
    let counters = [anchor.seq, anchor.serial, anchor.checkpoint, anchor.next_ino];
    counters.iter().all(|&counter| counter < 1 << 39) && anchor.epoch < 1 << 30
}
