//! Bytes for writes, named by a seed instead of carried around: any part of them can be made again, so a long
//! history of writes costs no memory. Invariant: byte `i` of a fill depends on nothing but the fill and `i`.

use serde::{Deserialize, Serialize};

/// What a write writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    pub seed: u64,
    /// Where in the endless stream of this seed the bytes start.
    pub start: u64,
    pub texture: Texture,
}

/// How the bytes look to a compressor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Texture {
    /// Incompressible.
    Noise,
    /// Words that repeat: compresses well.
    Text,
    /// Nothing but zeros, written rather than left out.
    Zeros,
}

impl Fill {
    /// The same stream, `bytes` further on.
    pub fn skip(self, bytes: u64) -> Self {
        Self { start: self.start + bytes, ..self }
    }

    /// The first `len` bytes.
    pub fn bytes(self, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        // Up to the first whole word, then word by word.
        let lead = (self.start % 8) as usize;
        let (head, whole) = out.split_at_mut(((8 - lead) % 8).min(len));
        for (to, from) in head.iter_mut().zip(self.word(self.start / 8).to_le_bytes().into_iter().skip(lead)) {
            *to = from;
        }
        for (piece, word) in whole.chunks_mut(8).zip(self.start.div_ceil(8)..) {
            piece.copy_from_slice(&self.word(word).to_le_bytes()[..piece.len()]);
        }
        out
    }

    fn word(self, index: u64) -> u64 {
        match self.texture {
            Texture::Noise => mix(self.seed ^ mix(index)),
            Texture::Text => mix(self.seed ^ (index / 64 % 3)) & 0x0f0f_0f0f_0f0f_0f0f | 0x6060_6060_6060_6060,
            Texture::Zeros => 0,
        }
    }
}

/// SplitMix64's finaliser: a cheap permutation of 64 bits without visible structure.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_fill_is_the_rest_of_the_fill() {
        for texture in [Texture::Noise, Texture::Text, Texture::Zeros] {
            let fill = Fill { seed: 9, start: 3, texture };
            let whole = fill.bytes(1000);
            assert_eq!(fill.skip(117).bytes(883), whole[117..]);
        }
    }
}
