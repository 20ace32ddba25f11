//! The paper's schemes by the names of its figures, and chips like the paper's. Invariant: this is the only place that says which
//! policy a scheme is.

use emulator::{Profile, ProfileError};
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

/// Pages of a block with three or four bits in a cell: about as many as the paper's, in whole word lines of either.
const DENSE_BLOCK_PAGES: u32 = 120;
/// With four bits in a cell: what published parts tell (ISSCC 2018-2020), a word line programmed at once.
const QLC_READ_NS: u64 = 110_000;
const QLC_PROGRAM_NS: u64 = 2_150_000;
/// 3.3 V times 25 mA.
const NJ_PER_US: u64 = 82;
/// The paper's chip has so many bytes.
const CHIP_BYTES: u64 = 512 << 20;

/// The paper's chip, or one of the same size with more bits in a cell, whose pages and blocks are like the paper's.
pub fn chip(bits_per_cell: u8) -> Result<Profile, ProfileError> {
    let paper = Profile::default();
    if bits_per_cell <= paper.geometry.bits_per_cell {
        return Ok(paper);
    }
    let mut profile = Profile::builtin("tlc-3d")?;
    (profile.geometry.pages_per_block, profile.geometry.page_bytes) = (DENSE_BLOCK_PAGES, paper.geometry.page_bytes);
    (profile.geometry.planes_per_die, profile.timing.bus_ps_per_byte) = (1, 0);
    profile.geometry.bits_per_cell = bits_per_cell;
    if bits_per_cell > 3 {
        (profile.timing.native.read_ns, profile.timing.native.program_ns) = (vec![QLC_READ_NS], vec![QLC_PROGRAM_NS]);
        profile.energy.native.read_nj = vec![QLC_READ_NS * NJ_PER_US / 1000];
        profile.energy.native.program_nj = vec![QLC_PROGRAM_NS * NJ_PER_US / 1000];
    }
    profile.with_capacity(CHIP_BYTES / profile.block_bytes() * profile.block_bytes())
}

/// §5.1.2: no migration, and background migration that uses 10, 50 and 100 % of the idle time.
pub fn idle_shares() -> [(&'static str, Policy); 4] {
    let migrating = |t_trig_ns| BM.with_t_trig(t_trig_ns);
    [("OPT", BASELINE), ("U10", migrating(15_000_000)), ("U50", migrating(3_000_000)), ("U100", migrating(0))]
}
