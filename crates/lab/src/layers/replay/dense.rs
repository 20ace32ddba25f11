//! Where on a device the ranges of a trace's disks stand: what the trace touches, without what lies between.
//!
//! Disks are cut into chunks. Those that reads and writes touch stand one behind the other, by disk and address. Invariant:
//! neighbours stay neighbours, so that a range of a disk is one range of the device.

use std::collections::BTreeSet;

use crate::trace::block::{BlockOp, BlockRequest, BlockTrace};

/// Bytes of the device, or of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub offset: u64,
    pub bytes: u64,
}

impl Range {
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// The chunks that a trace touches.
#[derive(Clone, Debug)]
pub struct Dense {
    chunk_bytes: u64,
    /// Disk and number, in ascending order.
    chunks: Vec<(u32, u64)>,
}

impl Dense {
    /// Trims alone touch nothing: what was never written holds nothing that could be trimmed.
    pub fn new(trace: &BlockTrace, chunk_bytes: u64) -> Self {
        let touch = |request: &&BlockRequest| matches!(request.op, BlockOp::Read | BlockOp::Write);
        let touched = trace.requests.iter().filter(touch).flat_map(|request| {
            let (first, end) = (request.offset / chunk_bytes, (request.offset + request.bytes).div_ceil(chunk_bytes));
            (first..end).map(|chunk| (request.disk, chunk))
        });
        let chunks: BTreeSet<(u32, u64)> = touched.collect();
        Self { chunk_bytes, chunks: chunks.into_iter().collect() }
    }

    /// Bytes of all chunks.
    pub fn bytes(&self) -> u64 {
        self.chunks.len() as u64 * self.chunk_bytes
    }

    /// Where a request's range stands; of a trim that which is touched, if any of it is.
    pub fn place(&self, request: &BlockRequest) -> Option<Range> {
        let (first, end) = (request.offset, request.offset + request.bytes);
        let at = self.chunks.partition_point(|&chunk| chunk < (request.disk, first / self.chunk_bytes));
        let after = self.chunks.partition_point(|&chunk| chunk < (request.disk, end.div_ceil(self.chunk_bytes)));
        let touched = self.chunks.get(at..after)?;
        let (&(_, first_chunk), &(_, last_chunk)) = (touched.first()?, touched.last()?);
        let first_within = first.saturating_sub(first_chunk * self.chunk_bytes);
        let end_within = end.min((last_chunk + 1) * self.chunk_bytes) - last_chunk * self.chunk_bytes;
        let offset = at as u64 * self.chunk_bytes + first_within;
        Some(Range { offset, bytes: (after as u64 - 1) * self.chunk_bytes + end_within - offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(disk: u32, op: BlockOp, offset: u64, bytes: u64) -> BlockRequest {
        BlockRequest { at_ns: 0, disk, op, offset, bytes }
    }

    #[test]
    fn touched_chunks_stand_behind_each_other_and_a_trim_is_of_those_alone() {
        let requests = vec![
            request(1, BlockOp::Read, 5 << 20, 512),
            request(0, BlockOp::Write, 4096 * 9 - 512, 1024),
            request(0, BlockOp::Write, 4096 * 100, 4096 * 2),
            request(0, BlockOp::Trim, 0, 1 << 30),
            request(1, BlockOp::Trim, 0, 1024),
            request(0, BlockOp::Trim, 4096 * 9 + 512, 1024),
        ];
        let trace = BlockTrace { requests, device: None };
        let dense = Dense::new(&trace, 4096);
        assert_eq!(dense.bytes(), 5 * 4096);
        let places: Vec<_> = trace.requests.iter().map(|request| dense.place(request)).collect();
        let range = |offset, bytes| Some(Range { offset, bytes });
        assert_eq!(places[..3], [range(4 * 4096, 512), range(4096 - 512, 1024), range(2 * 4096, 2 * 4096)]);
        assert_eq!(places[3..], [range(0, 4 * 4096), None, range(4096 + 512, 1024)]);
    }
}
