//! The manager record: what the wear manager must know of a volume's life over a mount (FlexFS §4.2).
//!
//! Invariant: any bytes decode to a record, and encoding it gives the same fields again.

use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of an encoded record.
pub const RECORD_BYTES: usize = 96;
/// Wear windows of which the record says how much arrived in them: IW is their mean.
pub const WINDOWS: usize = 3;

/// The wear index of a life that begins: everything may go to SLC, millionths.
const ALL: u32 = 1_000_000;

/// The life of a volume, as far as the wear manager follows it. All zero: it follows none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ManagerRecord {
    /// When the life to be guaranteed began by the wall clock, ns since 1970; put right where that jumped.
    pub life_start_ns: i64,
    /// The goal: the lifetime to be guaranteed (L_min), ns. 0: none.
    pub life_ns: u64,
    /// Length of a wear window (T_s), ns.
    pub window_ns: u64,
    /// How much of the life is over, ns.
    pub elapsed_ns: u64,
    /// The writing budget of the whole life, bytes; 0: the next mount for writing says it.
    pub budget_bytes: u64,
    /// The share of callers' pages that may go to SLC (δ), millionths.
    pub wear_index: u32,
    /// What arrived in the last eighth of a wear window, KiB.
    pub recent_kib: u32,
    /// What arrived in the windows before, the latest first, bytes.
    pub arrived_bytes: [u64; WINDOWS],
    /// What arrived in the current window so far, bytes.
    pub arriving_bytes: u64,
    /// What arrived in all the life, and went to SLC blocks of that, bytes.
    pub total_bytes: u64,
    pub slc_bytes: u64,
}

/// The record as it stands in an anchor.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
pub struct RawRecord {
    life_start_ns: I64,
    life_ns: U64,
    window_ns: U64,
    elapsed_ns: U64,
    budget_bytes: U64,
    wear_index: U32,
    recent_kib: U32,
    arrived_bytes: [U64; WINDOWS],
    arriving_bytes: U64,
    total_bytes: U64,
    slc_bytes: U64,
}

const _: () = assert!(size_of::<RawRecord>() == RECORD_BYTES);

impl ManagerRecord {
    /// The record of a life that begins at `wall_ns` since 1970.
    pub fn new(life_ns: u64, window_ns: u64, wall_ns: i64) -> Self {
        Self { life_start_ns: wall_ns, life_ns, window_ns, wear_index: ALL, ..Self::default() }
    }

    /// The record's bytes.
    pub fn encode(&self) -> RawRecord {
        RawRecord {
            life_start_ns: I64::new(self.life_start_ns),
            life_ns: U64::new(self.life_ns),
            window_ns: U64::new(self.window_ns),
            elapsed_ns: U64::new(self.elapsed_ns),
            budget_bytes: U64::new(self.budget_bytes),
            wear_index: U32::new(self.wear_index),
            recent_kib: U32::new(self.recent_kib),
            arrived_bytes: self.arrived_bytes.map(U64::new),
            arriving_bytes: U64::new(self.arriving_bytes),
            total_bytes: U64::new(self.total_bytes),
            slc_bytes: U64::new(self.slc_bytes),
        }
    }

    /// The record in these bytes.
    pub fn decode(raw: &RawRecord) -> Self {
        Self {
            life_start_ns: raw.life_start_ns.get(),
            life_ns: raw.life_ns.get(),
            window_ns: raw.window_ns.get(),
            elapsed_ns: raw.elapsed_ns.get(),
            budget_bytes: raw.budget_bytes.get(),
            wear_index: raw.wear_index.get(),
            recent_kib: raw.recent_kib.get(),
            arrived_bytes: raw.arrived_bytes.map(U64::get),
            arriving_bytes: raw.arriving_bytes.get(),
            total_bytes: raw.total_bytes.get(),
            slc_bytes: raw.slc_bytes.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_comes_back() {
        let record = ManagerRecord {
            life_start_ns: -1,
            life_ns: 2,
            window_ns: 3,
            elapsed_ns: 4,
            budget_bytes: 5,
            wear_index: 6,
            recent_kib: 7,
            arrived_bytes: [8, 9, 10],
            arriving_bytes: 11,
            total_bytes: 12,
            slc_bytes: 13,
        };
        assert_eq!(ManagerRecord::decode(&record.encode()), record);
    }
}
