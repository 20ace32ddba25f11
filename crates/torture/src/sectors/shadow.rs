//! What the sectors of a device must hold: the version that each was given last.
//!
//! Invariant: a sector's bytes follow from its number and its version alone; version 0 is zeros.

use std::collections::BTreeMap;

use ftl::{BlockDevice, Error};

use super::script::Step;
use crate::content::mix;

/// What a power cut leaves of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Those that were acknowledged; of the one under way, all or nothing.
    Whole,
    /// Those that were acknowledged; of the one under way, which may be split where blocks of so many pages end, a beginning.
    Parts { pages: u64 },
    /// Those that were acknowledged; of the one under way, each sector is there or not.
    Sectors,
    /// What was acknowledged before the last flush; each sector may hold what it was given since.
    AtFlush,
}

/// The versions of all sectors that were ever written.
#[derive(Clone, Debug, Default)]
pub struct Shadow {
    versions: BTreeMap<u64, u64>,
    /// What sectors held at the last flush, and were given since, but for their version now.
    earlier: BTreeMap<u64, Vec<u64>>,
    /// The version that the next write gets.
    next: u64,
}

impl Shadow {
    /// The version of a sector.
    pub fn version(&self, sector: u64) -> u64 {
        self.versions.get(&sector).copied().unwrap_or(0)
    }

    /// The bytes of a write, the next version of each of its sectors.
    pub fn bytes_of_next(&self, sector: u64, count: u64, sector_bytes: usize) -> Vec<u8> {
        let sectors = (sector..sector + count).flat_map(|sector| words(sector, self.next + 1, sector_bytes));
        sectors.flat_map(u64::to_le_bytes).collect()
    }

    /// A step was acknowledged.
    pub fn did(&mut self, step: &Step) {
        match *step {
            Step::Write { sector, count } => {
                self.next += 1;
                self.give(sector, count, self.next);
            }
            Step::Trim { sector, count } => self.give(sector, count, 0),
            Step::Flush | Step::Remount => self.earlier.clear(),
            Step::Idle => {}
        }
    }

    fn give(&mut self, sector: u64, count: u64, version: u64) {
        for sector in sector..sector + count {
            let was = self.versions.insert(sector, version).unwrap_or(0);
            self.earlier.entry(sector).or_default().push(was);
        }
    }

    /// Every one of these sectors holds what it was given last.
    pub fn judge(&self, device: &mut impl BlockDevice, sectors: &[u64]) -> Result<(), String> {
        sectors.iter().try_for_each(|&sector| {
            let version = self.version(sector);
            holds(device, sector, &[version]).map(drop)
        })
    }

    /// The same after a cut, where a step may have been done or not, as the promise has it. Becomes what is found.
    pub fn judge_cut(
        &mut self,
        step: &Step,
        promise: Promise,
        device: &mut impl BlockDevice,
        sectors: &[u64],
    ) -> Result<(), String> {
        let mut after = self.clone();
        after.did(step);
        let mut is_done = None;
        let mut found = Vec::new();
        for &sector in sectors {
            let (old, new) = (self.version(sector), after.version(sector));
            let earlier = self.earlier.get(&sector).filter(|_| promise == Promise::AtFlush);
            let versions: Vec<u64> = [old, new].into_iter().chain(earlier.into_iter().flatten().copied()).collect();
            let version = holds(device, sector, &versions)?;
            if old != new {
                let this = version == new;
                let was_done = is_done.replace(this).unwrap_or(this);
                let may_differ = match promise {
                    Promise::Whole => false,
                    Promise::Parts { pages } => was_done && sector.is_multiple_of(pages),
                    Promise::Sectors | Promise::AtFlush => true,
                };
                if was_done != this && !may_differ && matches!(step, Step::Write { .. }) {
                    return Err(format!("sector {sector}: {step} was done in part"));
                }
            }
            found.push((sector, version));
        }
        self.versions.extend(found);
        self.earlier.clear();
        self.next = after.next;
        Ok(())
    }
}

/// The version among `versions` whose bytes a sector holds.
fn holds(device: &mut impl BlockDevice, sector: u64, versions: &[u64]) -> Result<u64, String> {
    let mut page = vec![0xA5; device.sector_bytes()];
    device.read(sector, &mut page).map_err(|error: Error| format!("sector {sector}: {error}"))?;
    versions.iter().copied().find(|&version| is_at(&page, sector, version)).ok_or_else(|| {
        let found = page.get(..8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
        format!("sector {sector}: its bytes are none of version {versions:?}, the first are {found:#x}")
    })
}

/// The words of a sector at a version.
fn words(sector: u64, version: u64, sector_bytes: usize) -> impl Iterator<Item = u64> {
    let seed = if version == 0 { 0 } else { mix(sector ^ mix(version)) };
    (0..sector_bytes as u64 / 8).map(move |at| seed.wrapping_mul(2 * at + 1))
}

fn is_at(page: &[u8], sector: u64, version: u64) -> bool {
    page.chunks_exact(8).zip(words(sector, version, page.len())).all(|(bytes, word)| bytes == word.to_le_bytes())
}
