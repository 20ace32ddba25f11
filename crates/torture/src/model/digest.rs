//! Digests of model states that are sums over their parts, so that one change costs one subtraction and one
//! addition. Invariant: equal states have equal digests; unequal ones collide about once in 2^64.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The digest of one piece of a file at its place.
pub fn hash_piece(index: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, index ^ 0x5048_4543_4942_5953)
}

/// Collects the fields of one thing (an entry, an inode, an attribute) into a digest.
pub struct Fields(Vec<u8>);

impl Fields {
    /// Starts a digest; things of different `kind` never look alike.
    pub fn of(kind: &[u8]) -> Self {
        // Room for those of most things.
        let mut fields = Vec::with_capacity(256);
        fields.extend_from_slice(kind);
        Self(fields)
    }

    pub fn number(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub fn bytes(mut self, value: &[u8]) -> Self {
        self.0.extend_from_slice(&(value.len() as u64).to_le_bytes());
        self.0.extend_from_slice(value);
        self
    }

    pub fn digest(self) -> u64 {
        xxh3_64(&self.0)
    }
}
