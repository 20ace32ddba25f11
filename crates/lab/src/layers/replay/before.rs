//! What must stand on a device before a trace begins. Invariant: a sector that the trace reads, or writes a part of, before it
//! gives it bytes of its own stands there before.

use crate::trace::block::{BlockOp, BlockTrace};

use super::checked::{Sectors, touched, whole};
use super::dense::Dense;

/// The sectors that must be there, in ascending order, those beside each other together but in blocks of so many.
pub fn before(trace: &BlockTrace, dense: &Dense, sector_bytes: u64, block_sectors: u64) -> Vec<Sectors> {
    let sectors = dense.bytes() / sector_bytes;
    let (mut settled, mut needed) = (vec![false; sectors as usize], vec![false; sectors as usize]);
    for request in &trace.requests {
        let Some(range) = dense.place(request) else { continue };
        let inner = match request.op {
            BlockOp::Read | BlockOp::Flush => 0..0,
            BlockOp::Write | BlockOp::Trim => whole(range, sector_bytes),
        };
        if matches!(request.op, BlockOp::Read | BlockOp::Write) {
            let asked = touched(range, sector_bytes).filter(|sector| !inner.contains(sector));
            for sector in asked.map(|sector| sector as usize) {
                needed[sector] |= !settled[sector];
                settled[sector] = true;
            }
        }
        inner.for_each(|sector| settled[sector as usize] = true);
    }
    let numbers: Vec<u64> = (0..).zip(needed).filter(|&(_, needed)| needed).map(|(sector, _)| sector).collect();
    let is_one = |one: &u64, other: &u64| one + 1 == *other && !other.is_multiple_of(block_sectors);
    let runs = numbers.chunk_by(is_one);
    runs.filter_map(|run| Some(*run.first()?..run.last()? + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::block::BlockRequest;

    #[test]
    fn what_is_read_or_written_in_part_before_it_is_written_whole_must_be_there() {
        let request = |op, offset: u64, bytes: u64| BlockRequest { at_ns: 0, disk: 0, op, offset, bytes };
        let requests = vec![
            request(BlockOp::Write, 0, 2048),
            request(BlockOp::Read, 0, 4096),
            request(BlockOp::Write, 5120, 4096),
            request(BlockOp::Trim, 10240, 2048),
            request(BlockOp::Read, 10240, 4096),
            request(BlockOp::Flush, 0, 0),
        ];
        let trace = BlockTrace { requests, device: None };
        let dense = Dense::new(&trace, 8192);
        // Sectors 1; 2 and 4 of the write in part; 5, since a part of it was trimmed alone; 6.
        assert_eq!(before(&trace, &dense, 2048, 4), [1..3, 4..5, 6..7]);
    }
}
