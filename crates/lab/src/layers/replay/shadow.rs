//! What a device must hold, in units of a trace's sector: the version that each was given last.
//!
//! Invariant: a unit's bytes follow from its number and its version alone; version 0 is zeros.

use crate::trace::block::SECTOR_BYTES;
use torture::content::mix;

use super::dense::Range;

const UNIT: usize = SECTOR_BYTES as usize;

/// The versions of all units of a device.
#[derive(Clone, Debug)]
pub struct Shadow {
    versions: Vec<u32>,
    /// Requests that warm the device up: their versions come before those of the requests that are counted.
    warm_up: u32,
}

impl Shadow {
    /// A device of so many bytes that was never written, and is warmed up by so many requests.
    pub fn new(bytes: u64, warm_up: u32) -> Self {
        Self { versions: vec![0; (bytes / SECTOR_BYTES) as usize], warm_up }
    }

    pub fn bytes(&self) -> u64 {
        self.versions.len() as u64 * SECTOR_BYTES
    }

    /// A range was given a version.
    pub fn give(&mut self, range: Range, version: u32) {
        let units = (range.offset / SECTOR_BYTES) as usize..(range.end() / SECTOR_BYTES) as usize;
        self.versions.get_mut(units).into_iter().flatten().for_each(|unit| *unit = version);
    }

    /// Whether any of a range holds something.
    pub fn holds(&self, range: Range) -> bool {
        let units = (range.offset / SECTOR_BYTES) as usize..(range.end() / SECTOR_BYTES) as usize;
        self.versions.get(units).is_some_and(|units| units.iter().any(|&version| version != 0))
    }

    /// What was read at an offset is what was given there last, or where and how it is not.
    pub fn judge(&self, offset: u64, read: &[u8], sector_bytes: u64) -> Result<(), String> {
        let versions = self.versions.get((offset / SECTOR_BYTES) as usize..).unwrap_or_default();
        for ((unit, bytes), &version) in (offset / SECTOR_BYTES..).zip(read.chunks_exact(UNIT)).zip(versions) {
            if let Some(byte) = differs(unit, version, bytes) {
                let (sector, within) = (unit * SECTOR_BYTES / sector_bytes, unit * SECTOR_BYTES % sector_bytes);
                let (expected, found) = (self.told(version), self.told_of(unit, bytes));
                let at = within + byte as u64;
                return Err(format!("sector {sector} differs from byte {at} on: it holds {found}, and not {expected}"));
            }
        }
        Ok(())
    }

    /// A version in words: the first request gives version 2.
    fn told(&self, version: u32) -> String {
        match version {
            0 => "zeros".into(),
            1 => "what was there before the trace".into(),
            version if version - 1 > self.warm_up => {
                format!("what request {} wrote (version {version})", version - 1 - self.warm_up)
            }
            version => format!("what request {} wrote when it warmed up (version {version})", version - 1),
        }
    }

    /// What a unit holds in words.
    fn told_of(&self, unit: u64, bytes: &[u8]) -> String {
        let first = bytes.first_chunk().copied().map_or(0, u64::from_le_bytes);
        let version = u32::try_from(first).ok().filter(|&version| differs(unit, version, bytes).is_none());
        let unknown = || format!("no version of it: {:02x?}…", bytes.get(..16).unwrap_or(bytes));
        version.map_or_else(unknown, |version| self.told(version))
    }
}

/// Writes a version of the units from an offset on.
pub fn fill(offset: u64, version: u32, buffer: &mut [u8]) {
    for (unit, bytes) in (offset / SECTOR_BYTES..).zip(buffer.chunks_exact_mut(UNIT)) {
        bytes
            .chunks_exact_mut(8)
            .zip(words(unit, version))
            .for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
    }
}

/// The words of a unit at a version: the first one says which.
fn words(unit: u64, version: u32) -> impl Iterator<Item = u64> {
    let seed = if version == 0 { 0 } else { mix(unit ^ mix(version.into())) };
    std::iter::once(version.into()).chain((0..).map(move |at: u64| seed.wrapping_mul(2 * at + 1)))
}

/// The first byte that is not the version's.
fn differs(unit: u64, version: u32, bytes: &[u8]) -> Option<usize> {
    let mut wrong = bytes.chunks_exact(8).zip(words(unit, version)).enumerate();
    let (at, (found, word)) = wrong.find(|(_, (found, word))| *found != word.to_le_bytes())?;
    found.iter().zip(word.to_le_bytes()).position(|(found, byte)| *found != byte).map(|byte| at * 8 + byte)
}
