//! Figures about a mounted volume, for `info` and for tests.

use alloc::string::String;
use alloc::vec::Vec;

use nand::Nand;

use super::Store;
use super::spread::{DieInfo, LaneInfo};
use crate::error::Error;
use crate::format::anchor::VERSION;
use crate::format::table::Use;
use crate::manage::admission::AdmittedShare;
use crate::manage::job::View;
use crate::manage::life::Outlook;
use crate::manage::work::WorkKind;
use crate::policy::Policy;
use crate::policy::allocate::WHOLE;
use crate::policy::budget::Call;
use crate::policy::space::SpaceView;

/// Why nothing can be written any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// Too few good blocks are left.
    NoBlocks,
    /// Something that would have to be written anew cannot be read, or the chip is not as the volume says.
    Damaged,
    /// The chip failed.
    Chip,
    /// Programs or erases failed on block after block: nothing was marked bad, and a later mount may write again.
    WriteOutage,
}

/// What `statfs` tells, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatFs {
    pub chunk_bytes: u32,
    pub capacity_bytes: u64,
    pub free_bytes: u64,
    /// Of the free ones, those that [`Fs::allocate`](crate::Fs::allocate) can reserve: the rest is for their place in the
    /// index.
    pub reservable_bytes: u64,
    /// Inodes in use.
    pub files: u64,
}

/// The state of a mounted volume, for `info` and for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    pub volume_id: [u8; 16],
    pub label: String,
    pub version: u32,
    pub epoch: u32,
    /// Checkpoints written in the life of the volume.
    pub checkpoints: u64,
    pub clean: bool,
    pub chunk_bytes: u32,
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    pub files: u64,
    /// Blocks by what they are.
    pub blocks: BlockCounts,
    /// Erase counts over all blocks that are not bad: least, sum and greatest.
    pub erases_min: u32,
    pub erases_total: u64,
    pub erases_max: u32,
    /// Bytes programmed in the volume's life, in the order of [`nand::Cause::ALL`].
    pub written_bytes: [u64; nand::Cause::ALL.len()],
    /// Bytes that space is reserved for.
    pub reserved_bytes: u64,
    /// Blocks that failed a program or an erase and wait to be emptied and tested.
    pub failing_blocks: u32,
    /// Blocks whose bit errors come near to what can be corrected: they wait to be written anew.
    pub fading_blocks: u32,
    /// More blocks that may go bad before nothing can be written any more, what is stored staying as it is.
    pub spare_blocks: u32,
    /// Why nothing can be written in this mount, unless it was asked to be read-only.
    pub ended: Option<Ended>,
    /// Reads whose checksum failed or that the chip could not correct, since mount.
    pub corrupt_reads: u64,
    /// Those of them that the chip read well: a wrong bit that its ECC does not cover cost the slot.
    pub wrong_checksums: u64,
    /// The times forced migration or collection ran since mount.
    pub collections: u64,
    /// What this mount was asked to follow. On a chip with one bit a cell it decides about no region: there is one kind of block.
    pub policy: Policy,
    /// Free blocks less those that must stay so for a call to begin; negative: callers make room.
    pub headroom_blocks: i64,
    /// The share of callers' pages that goes to SLC by the idle time there is (α), millionths, where the policy allocates by that.
    pub slc_share: Option<u32>,
    /// The share of callers' next pages that goes to SLC, and by which rule; `None` where the policy does not allocate.
    pub admitted: Option<AdmittedShare>,
    /// How the chip's life stands, if one is to be guaranteed.
    pub life: Option<Outlook>,
    /// Program/erase cycles begun in all blocks.
    pub cycles: u64,
    /// Steps that idle time has done since mount, in the order of [`WorkKind::ALL`].
    pub idle_steps: [u64; WorkKind::ALL.len()],
    /// Blocks of the SLC region that idle time has emptied since mount.
    pub migrated_blocks: u64,
    /// What is under way, its next step to come in idle time or with a call.
    pub under_way: Option<WorkKind>,
    /// The lanes of every head, and the dies of the chip.
    pub lanes: Vec<LaneInfo>,
    pub dies: Vec<DieInfo>,
}

impl Info {
    /// The same share α, of 1.
    pub fn alpha(&self) -> Option<f64> {
        self.slc_share.map(|millionths| f64::from(millionths) / f64::from(WHOLE))
    }
}

/// How many blocks are what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// Erased, or holding nothing that is needed.
    pub free: u32,
    /// In the SLC region.
    pub slc: u32,
    /// Of those in the SLC region, the ones that hot data has to itself.
    pub hot: u32,
    /// In the native (MLC, TLC, QLC) region.
    pub native: u32,
    /// Index, tables and anchors.
    pub metadata: u32,
    pub bad: u32,
}

impl StatFs {
    /// Of a volume's space.
    pub fn of(space: &SpaceView<'_>) -> Self {
        let (chunk_bytes, free_bytes) = (space.chip.slot_bytes, space.free_bytes());
        Self {
            chunk_bytes,
            capacity_bytes: space.capacity_bytes(),
            free_bytes,
            reservable_bytes: free_bytes / space.reserved_bytes_each() * u64::from(chunk_bytes),
            files: space.files,
        }
    }
}

/// The work under way.
fn under_way<N: Nand>(store: &Store<N>) -> Option<WorkKind> {
    match (&store.commit, store.checkpointer.is_under_way()) {
        (Some(_), _) => Some(WorkKind::Commit),
        (None, true) => Some(WorkKind::Checkpoint),
        (None, false) => store.collector.work(),
    }
}

impl<N: Nand> Store<N> {
    /// Why nothing can be written, unless the mount was asked to be read-only.
    fn ended(&self) -> Option<Ended> {
        let broken = self.records.flash().broken().map(|error| match error {
            Error::Nand(_) => Ended::Chip,
            Error::WriteOutage => Ended::WriteOutage,
            Error::Corrupt { .. } => Ended::Damaged,
            _ => Ended::NoBlocks,
        });
        self.ended.or(broken)
    }

    /// Blocks by which what is stored, with the reserve, is less than the chip holds.
    fn spare_blocks(&self) -> u32 {
        let free_bytes = self.records.space().free_bytes();
        let block_bytes = self.records.flash().shape().geometry.block_bytes().max(1);
        u32::try_from(free_bytes / block_bytes).unwrap_or(u32::MAX)
    }

    /// The volume's figures.
    pub fn info(&self) -> Info {
        let mut blocks = BlockCounts::default();
        let free = self.records.flash().free();
        let (mut erases_min, mut erases_total, mut erases_max) = (u32::MAX, 0, 0);
        for (number, block) in self.records.flash().blocks().iter() {
            let entry = block.entry;
            let count = match entry.used_as {
                Use::Bad => &mut blocks.bad,
                Use::Anchor => &mut blocks.metadata,
                _ if free.holds(number) => &mut blocks.free,
                Use::Free => &mut blocks.free,
                Use::Meta => &mut blocks.metadata,
                Use::Log if entry.native => &mut blocks.native,
                Use::Log => &mut blocks.slc,
            };
            *count += 1;
            blocks.hot += u32::from(entry.hot && entry.used_as == Use::Log && !free.holds(number));
            if entry.used_as != Use::Bad {
                erases_min = erases_min.min(entry.erases);
                erases_total += u64::from(entry.erases);
                erases_max = erases_max.max(entry.erases);
            }
        }
        Info {
            volume_id: self.records.volume.id,
            label: self.records.volume.label.clone(),
            version: VERSION,
            epoch: self.records.volume.epoch,
            checkpoints: self.records.volume.checkpoint,
            clean: self.records.volume.clean,
            chunk_bytes: self.records.flash().shape().slot_bytes as u32,
            capacity_bytes: self.records.space().capacity_bytes(),
            used_bytes: self.records.space().used_bytes(),
            files: self.records.volume.files,
            blocks,
            erases_min: erases_min.min(erases_max),
            erases_total,
            erases_max,
            written_bytes: self.records.flash().slots().written_bytes(),
            reserved_bytes: self.records.index.reserved_chunks().saturating_mul(self.records.chunk_bytes()),
            failing_blocks: self.records.flash().blocks().failing_count(),
            fading_blocks: self.records.flash().blocks().fading_count(),
            spare_blocks: self.spare_blocks(),
            ended: self.ended(),
            corrupt_reads: self.records.flash().slots().corrupt_reads(),
            wrong_checksums: self.records.flash().slots().wrong_checksums(),
            collections: self.records.manager.collections(),
            policy: self.records.options.policy,
            headroom_blocks: self.look(Call::REMOVAL).headroom(),
            slc_share: self.records.manager.slc_share(),
            admitted: self.records.manager.admitted_share(&self.look(Call::CHANGE)),
            life: self.records.manager.outlook(),
            cycles: self.records.flash().blocks().cycles(),
            idle_steps: self.records.manager.ledger().steps(),
            migrated_blocks: self.records.manager.ledger().migrated_blocks(),
            under_way: under_way(self),
            lanes: LaneInfo::all(self.records.flash()),
            dies: DieInfo::all(self.records.flash()),
        }
    }
}
