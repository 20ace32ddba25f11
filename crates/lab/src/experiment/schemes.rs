//! The paper's schemes by the names of its figures. Invariant: this is the only place that says which policy a scheme is.

use flexfs_core::Policy;

/// Table 2's Baseline: what is written goes to SLC, and moves when free blocks run out.
pub const BASELINE: Policy = Policy::BASELINE;
/// The same, with background migration.
pub const BM: Policy = Policy::BM;
/// The same, with dynamic allocation.
pub const DA: Policy = Policy::DA;
/// The same, with hot data kept in SLC.
pub const LA: Policy = Policy::LA;
/// What SSDs do: an eighth of the blocks is a buffer of SLC.
pub const SLC_BUFFER: Policy = Policy::slc_buffer(12);
/// Pure SLC programming, the speed to compare with.
pub const SLC_ONLY: Policy = Policy::SLC_ONLY;

/// §5.1.2: no migration, and background migration that uses 10, 50 and 100 % of the idle time.
pub fn idle_shares() -> [(&'static str, Policy); 4] {
    let migrating = |t_trig_ns| BM.with_t_trig(t_trig_ns);
    [("OPT", BASELINE), ("U10", migrating(15_000_000)), ("U50", migrating(3_000_000)), ("U100", migrating(0))]
}
