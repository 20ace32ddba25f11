//! The bytes of a file in the model: only pieces that hold something other than zero are kept.
//!
//! Invariant: two values that read the same have the same pieces and the same digest, whatever sequence of
//! writes, truncations and holes made them; bytes past the size are zero.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::digest::hash_piece;

/// The unit the model keeps and digests bytes in. It need not be the chunk of the file system under test.
pub const PIECE_BYTES: usize = 4096;

const PIECE: u64 = PIECE_BYTES as u64;

type Piece = Arc<[u8; PIECE_BYTES]>;

/// A sparse, cheaply cloned sequence of bytes.
#[derive(Clone, Debug, Default)]
pub struct SparseBytes {
    size: u64,
    pieces: BTreeMap<u64, Piece>,
    digest: u64,
}

impl SparseBytes {
    /// What is known of bytes that were only looked at: how many, and their digest. They read as zeros.
    pub fn glimpse(size: u64, digest: u64) -> Self {
        Self { size, pieces: BTreeMap::new(), digest }
    }

    /// The digest that a piece adds.
    pub fn piece_digest(index: u64, bytes: &[u8]) -> u64 {
        if *bytes == [0; PIECE_BYTES][..bytes.len().min(PIECE_BYTES)] {
            return 0;
        }
        if bytes.len() == PIECE_BYTES {
            return hash_piece(index, bytes);
        }
        let mut piece = [0; PIECE_BYTES];
        piece[..bytes.len()].copy_from_slice(bytes);
        hash_piece(index, &piece)
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Pieces that hold something other than zero.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// A digest of the contents, without the size.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Overwrites, and grows the size where the data ends past it.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let mut at = offset;
        let mut rest = data;
        while !rest.is_empty() {
            let within = (at % PIECE) as usize;
            let count = rest.len().min(PIECE_BYTES - within);
            let (head, tail) = rest.split_at(count);
            self.edit(at / PIECE, |piece| piece[within..within + count].copy_from_slice(head));
            at += count as u64;
            rest = tail;
        }
        if !data.is_empty() {
            self.size = self.size.max(at);
        }
    }

    /// Zeroes a range within the size.
    pub fn punch(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.size);
        if offset >= end {
            return;
        }
        let (first, last) = (offset / PIECE, (end - 1) / PIECE);
        let touched: Vec<u64> = self.pieces.range(first..=last).map(|(&index, _)| index).collect();
        for index in touched {
            let start = index * PIECE;
            let from = offset.saturating_sub(start).min(PIECE) as usize;
            let to = (end - start).min(PIECE) as usize;
            self.edit(index, |piece| piece[from..to].fill(0));
        }
    }

    /// Sets the size; what is cut off is gone, what is added reads as zeros.
    pub fn resize(&mut self, size: u64) {
        if size < self.size {
            self.punch(size, self.size - size);
        }
        self.size = size;
    }

    /// Reads up to `len` bytes; fewer only at the end.
    pub fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let end = offset.saturating_add(len as u64).min(self.size);
        let mut out = vec![0; end.saturating_sub(offset) as usize];
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let within = (at % PIECE) as usize;
            let count = (out.len() - done).min(PIECE_BYTES - within);
            if let Some(piece) = self.pieces.get(&(at / PIECE)) {
                out[done..done + count].copy_from_slice(&piece[within..within + count]);
            }
            done += count;
        }
        out
    }

    /// The first offset at which two files differ, if any.
    pub fn first_difference(&self, other: &SparseBytes) -> Option<u64> {
        let mut indices: Vec<u64> = self.pieces.keys().chain(other.pieces.keys()).copied().collect();
        indices.sort_unstable();
        indices.dedup();
        let zero: Piece = Arc::new([0; PIECE_BYTES]);
        for index in indices {
            let (a, b) = (self.pieces.get(&index).unwrap_or(&zero), other.pieces.get(&index).unwrap_or(&zero));
            if let Some(within) = a.iter().zip(b.iter()).position(|(x, y)| x != y) {
                return Some(index * PIECE + within as u64);
            }
        }
        None
    }

    fn edit(&mut self, index: u64, change: impl FnOnce(&mut [u8; PIECE_BYTES])) {
        let mut piece = match self.pieces.remove(&index) {
            Some(piece) => {
                self.digest = self.digest.wrapping_sub(hash_piece(index, &piece[..]));
                piece
            }
            None => Arc::new([0; PIECE_BYTES]),
        };
        change(Arc::make_mut(&mut piece));
        if piece.iter().any(|&byte| byte != 0) {
            self.digest = self.digest.wrapping_add(hash_piece(index, &piece[..]));
            self.pieces.insert(index, piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_and_written_zeros_have_one_digest() {
        let mut hole = SparseBytes::default();
        hole.resize(10_000);
        let mut zeros = SparseBytes::default();
        zeros.write(0, &[0; 10_000]);
        assert_eq!((hole.digest(), hole.pieces()), (zeros.digest(), zeros.pieces()));
    }

    #[test]
    fn what_a_truncation_cuts_off_does_not_come_back() {
        let mut bytes = SparseBytes::default();
        bytes.write(4000, &[7; 300]);
        bytes.resize(4100);
        bytes.resize(5000);
        assert_eq!(bytes.read(4098, 10), [7, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn punching_leaves_the_size_and_the_bytes_around() {
        let mut bytes = SparseBytes::default();
        bytes.write(0, &[1; 9000]);
        bytes.punch(1, 8998);
        assert_eq!(bytes.size(), 9000);
        assert_eq!((bytes.read(0, 2), bytes.read(8998, 9)), (vec![1, 0], vec![0, 1]));
        assert_eq!(bytes.pieces(), 2);
    }

    #[test]
    fn the_digest_is_the_sum_of_the_pieces_digests() {
        let data: Vec<u8> = (0..10_000u32).map(|i| if i / 4096 == 1 { 0 } else { (i % 251) as u8 }).collect();
        let mut bytes = SparseBytes::default();
        bytes.write(0, &data);
        let pieces = data.chunks(PIECE_BYTES).zip(0..);
        let sum = pieces.fold(0u64, |sum, (piece, index)| sum.wrapping_add(SparseBytes::piece_digest(index, piece)));
        assert_eq!(bytes.digest(), sum);
    }

    #[test]
    fn the_digest_depends_on_the_bytes_not_on_the_way_there() {
        let mut a = SparseBytes::default();
        a.write(0, &[1; 5000]);
        a.write(100, &[2; 10]);
        let mut b = SparseBytes::default();
        b.write(100, &[2; 10]);
        b.write(0, &[1; 100]);
        b.write(110, &[1; 4890]);
        assert_eq!(a.digest(), b.digest());
        assert_eq!(a.first_difference(&b), None);
        b.write(4999, &[3]);
        assert_eq!(a.first_difference(&b), Some(4999));
    }
}
