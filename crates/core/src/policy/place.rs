//! Which region something goes to that is about to be written.

use super::{Policy, Region};

/// Something on its way to flash.
#[derive(Clone, Copy, Debug)]
pub enum Write {
    /// What a caller wrote and nobody waits for.
    Host,
    /// A part of a sync.
    Synced {
        /// Slots the whole sync takes.
        slots: u32,
        /// Slots after which an earlier native page can no longer be endangered.
        pair_slots: u32,
        /// Something of what it promises went to native blocks before.
        follows_native: bool,
    },
    /// Content that is moved out of a block.
    Copy {
        /// Where that block is.
        native: bool,
        live_bytes: u32,
        /// What an SLC block takes.
        slc_bytes: u32,
        /// More is stored than SLC cells have space for, some of it natively.
        overfull: bool,
    },
}

/// The region for a write.
pub fn region(policy: Policy, write: &Write) -> Region {
    match *write {
        Write::Host => policy.host(),
        // A sync smaller than the pairing distance goes to SLC: natively each of its pages would cost the pages that it
        // is paired with.
        Write::Synced { slots, pair_slots, follows_native } if slots < pair_slots && !follows_native => {
            policy.small_syncs()
        }
        Write::Synced { .. } => policy.host(),
        // What one SLC block does not hold stays native in any case: there may be no more than one block for it. Where
        // more is stored than SLC cells have space for, nothing could be gained otherwise.
        Write::Copy { native, live_bytes, slc_bytes, overfull } => {
            let stays = overfull || native && live_bytes > slc_bytes;
            if stays { Region::Native } else { policy.relocated() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_syncs_of_a_native_volume_go_to_slc() {
        let synced = |slots, follows_native| Write::Synced { slots, pair_slots: 8, follows_native };
        let native = |write| region(Policy::NATIVE_ONLY, &write) == Region::Native;
        assert!(native(Write::Host) && native(synced(8, false)) && native(synced(1, true)));
        assert!(!native(synced(7, false)));
        assert!(Policy::PRESETS.iter().all(|&policy| region(policy, &synced(1, false)) == Region::Slc));
    }

    #[test]
    fn on_cells_of_one_bit_everything_goes_to_one_region() {
        let synced = Write::Synced { slots: 1, pair_slots: 8, follows_native: false };
        let copy = Write::Copy { native: false, live_bytes: 1, slc_bytes: 100, overfull: false };
        for policy in Policy::PRESETS.map(Policy::on_one_bit_cells) {
            assert!(policy.uses_one_region(), "{policy}");
            assert!(
                [Write::Host, synced, copy].iter().all(|write| region(policy, write) == Region::Native),
                "{policy}"
            );
        }
        assert!(!Policy::PRESETS.into_iter().any(Policy::uses_one_region));
    }

    #[test]
    fn what_slc_has_no_space_for_stays_native() {
        let copy = |native, live_bytes, overfull| Write::Copy { native, live_bytes, slc_bytes: 100, overfull };
        let moved = |policy, write| region(policy, &write);
        assert_eq!(moved(Policy::BASELINE, copy(false, 10, false)), Region::Native);
        assert_eq!(moved(Policy::SLC_ONLY, copy(true, 100, false)), Region::Slc);
        assert_eq!(moved(Policy::SLC_ONLY, copy(true, 101, false)), Region::Native);
        assert_eq!(moved(Policy::SLC_ONLY, copy(false, 10, true)), Region::Native);
    }
}
