//! The manager record: what the wear manager must know of a volume's life over a mount (FlexFS §4.2).
//!
//! Invariant: any bytes decode to a record, and encoding it gives the same fields again.

use zerocopy::little_endian::{I64, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of an encoded record.
pub const RECORD_BYTES: usize = 96;
/// Wear windows of which the record says how much arrived in them: IW is their mean.
pub const WINDOWS: usize = 3;

/// The life of a volume, as far as the wear manager follows it. All zero: it follows none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ManagerRecord {
    /// When the life to be guaranteed began, ns since 1970.
    pub life_start_ns: i64,
    /// The goal: the lifetime to be guaranteed from then on (L_min), ns. 0: none.
    pub life_ns: u64,
    /// When the current wear window began (t_i), ns since 1970.
    pub window_start_ns: i64,
    /// Length of a wear window (T_s), ns. 0: windows are not kept.
    pub window_ns: u64,
    /// The writing budget used when the current window began, W(t_i), bytes.
    pub used_bytes: u64,
    /// What arrived in the windows before, the latest first, bytes.
    pub arrived_bytes: [u64; WINDOWS],
    /// How long the volume was mounted in all, ns.
    pub mounted_ns: u64,
}

/// The record as it stands in an anchor.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
pub struct RawRecord {
    life_start_ns: I64,
    life_ns: U64,
    window_start_ns: I64,
    window_ns: U64,
    used_bytes: U64,
    arrived_bytes: [U64; WINDOWS],
    mounted_ns: U64,
    reserved: [U64; 3],
}

const _: () = assert!(size_of::<RawRecord>() == RECORD_BYTES);

impl ManagerRecord {
    /// The record of a volume made at this time, ns since 1970: its life and its first window begin.
    pub fn new(now_ns: i64) -> Self {
        Self { life_start_ns: now_ns, window_start_ns: now_ns, ..Self::default() }
    }

    /// The record's bytes.
    pub fn encode(&self) -> RawRecord {
        RawRecord {
            life_start_ns: I64::new(self.life_start_ns),
            life_ns: U64::new(self.life_ns),
            window_start_ns: I64::new(self.window_start_ns),
            window_ns: U64::new(self.window_ns),
            used_bytes: U64::new(self.used_bytes),
            arrived_bytes: self.arrived_bytes.map(U64::new),
            mounted_ns: U64::new(self.mounted_ns),
            reserved: [U64::new(0); 3],
        }
    }

    /// The record in these bytes.
    pub fn decode(raw: &RawRecord) -> Self {
        Self {
            life_start_ns: raw.life_start_ns.get(),
            life_ns: raw.life_ns.get(),
            window_start_ns: raw.window_start_ns.get(),
            window_ns: raw.window_ns.get(),
            used_bytes: raw.used_bytes.get(),
            arrived_bytes: raw.arrived_bytes.map(U64::get),
            mounted_ns: raw.mounted_ns.get(),
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
            window_start_ns: 3,
            window_ns: 4,
            used_bytes: 5,
            arrived_bytes: [6, 7, 8],
            mounted_ns: 9,
        };
        assert_eq!(ManagerRecord::decode(&record.encode()), record);
    }
}
