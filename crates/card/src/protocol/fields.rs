//! Numbers of the protocol, most significant byte first, as they are taken from the front of a message.
//!
//! Invariant: a message that is too short gives nothing, and what was not taken is left.

/// The bytes of a message that are still to be read.
#[derive(Clone, Copy, Debug)]
pub struct MessageFields<'a>(&'a [u8]);

impl<'a> MessageFields<'a> {
    pub fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Bytes with their count (4 bytes) before them.
    pub fn counted(&mut self) -> Option<&'a [u8]> {
        let count = self.u32()?;
        self.bytes(usize::try_from(count).ok()?)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
