//! Where the requests of a trace go on a device. Invariant: a request is one range, which the device has as a whole.

use std::collections::BTreeSet;

use crate::trace::block::{BlockRequest, BlockTrace};

use super::super::LayerError;
use super::config::TracePlacement;
use super::dense::{Dense, Range};

/// The places of all requests of a trace.
pub enum RequestPlaces {
    Dense(Dense),
    AsRecorded {
        /// What the trace touches, in pieces of a block.
        touched_bytes: u64,
        /// The end of the last range.
        end: u64,
    },
}

impl RequestPlaces {
    /// The places, in pieces of so many bytes.
    ///
    /// # Errors
    /// Addresses of several disks cannot all be those of one device.
    pub fn new(placement: TracePlacement, trace: &BlockTrace, chunk_bytes: u64) -> Result<Self, LayerError> {
        let dense = Dense::new(trace, chunk_bytes);
        if placement == TracePlacement::Dense {
            return Ok(Self::Dense(dense));
        }
        let disks: BTreeSet<u32> = trace.requests.iter().map(|request| request.disk).collect();
        if disks.len() > 1 {
            return Err(LayerError::SeveralDisks { disks: disks.len() });
        }
        let end = trace.requests.iter().map(|request| request.offset + request.bytes).max();
        Ok(Self::AsRecorded { touched_bytes: dense.bytes(), end: end.unwrap_or(0) })
    }

    /// Bytes that the trace touches, in whole pieces.
    pub fn touched_bytes(&self) -> u64 {
        match self {
            Self::Dense(dense) => dense.bytes(),
            Self::AsRecorded { touched_bytes, .. } => *touched_bytes,
        }
    }

    /// Bytes that a device must hold.
    pub fn needed_bytes(&self) -> u64 {
        match self {
            Self::Dense(dense) => dense.bytes(),
            Self::AsRecorded { end, .. } => *end,
        }
    }

    /// That a device of so many bytes has all places.
    pub fn fit(&self, holds_bytes: u64) -> Result<(), LayerError> {
        match self {
            Self::Dense(dense) if dense.bytes() > holds_bytes => {
                Err(LayerError::NoRoom { touched_bytes: dense.bytes(), holds_bytes })
            }
            Self::AsRecorded { end, .. } if *end > holds_bytes => {
                Err(LayerError::BeyondDevice { end: *end, holds_bytes })
            }
            Self::Dense(_) | Self::AsRecorded { .. } => Ok(()),
        }
    }

    /// Where a request's range stands; of a trim of the dense placement that which is touched, if any of it is.
    pub fn place(&self, request: &BlockRequest) -> Option<Range> {
        match self {
            Self::Dense(dense) => dense.place(request),
            Self::AsRecorded { .. } => Some(Range { offset: request.offset, bytes: request.bytes }),
        }
    }
}
