//! Which background work is under way on a volume, told from outside.
//!
//! Invariant: nothing that is asked here changes the volume or its chip.

use crate::crash::{TestedChip, Twin};

/// What of a volume's own work is begun and not done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnderWay {
    pub checkpoint: bool,
    pub emptying: bool,
}

/// What is under way: the blocks of the index hold pages that the newest anchor does not count, or the block that was
/// copied from last still holds something.
pub(super) fn under_way(twin: &mut Twin<TestedChip>) -> Result<UnderWay, String> {
    let stat = twin.fs.statfs().map_err(|error| format!("statfs: {error}"))?;
    let Some(anchor) = twin.fs.anchor() else { return Ok(UnderWay::default()) };
    let settled_bytes = (anchor.index_pages + anchor.tables.len() as u64) * u64::from(stat.chunk_bytes);
    let copied_from = twin.fs.chip().copied_from();
    let (mut index_bytes, mut emptying) = (0, false);
    for block in twin.fs.blocks() {
        match block.used_as {
            "index" => index_bytes += u64::from(block.live_bytes),
            "log" => emptying |= copied_from == Some(block.number) && block.live_bytes > 0,
            _ => {}
        }
    }
    Ok(UnderWay { checkpoint: index_bytes > settled_bytes, emptying })
}
