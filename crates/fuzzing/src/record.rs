//! Inputs as fixed-size records: what libFuzzer inserts, drops or moves in one stays in that one.
//!
//! Invariant: any bytes are records; a last one that is short is filled up with zeros.

/// Bytes of a record.
pub(crate) const RECORD_BYTES: usize = 16;

/// One record, read field by field.
#[derive(Clone, Copy)]
pub(crate) struct Record([u8; RECORD_BYTES]);

impl Record {
    pub(crate) fn u8(&self, at: usize) -> u8 {
        self.0[at]
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }

    /// The last 8 bytes.
    pub(crate) fn tail(&self) -> [u8; 8] {
        let [.., a, b, c, d, e, f, g, h] = self.0;
        [a, b, c, d, e, f, g, h]
    }

    pub(crate) fn tail_u64(&self) -> u64 {
        u64::from_le_bytes(self.tail())
    }

    /// A number for a field of a tag: the last 8 bytes or the first of these, or an end of the range.
    pub(crate) fn field_value(&self, form: u8) -> u64 {
        match form % 4 {
            0 => self.tail_u64(),
            1 => self.tail_u64() & 0xff,
            2 => u64::MAX,
            _ => 0,
        }
    }
}

/// The first `HEAD` bytes, filled up with zeros, and the records behind them.
pub(crate) fn split<const HEAD: usize>(bytes: &[u8]) -> ([u8; HEAD], impl Iterator<Item = Record>) {
    let (head, rest) = bytes.split_at(HEAD.min(bytes.len()));
    (padded(head), rest.chunks(RECORD_BYTES).map(|bytes| Record(padded(bytes))))
}

/// Up to `N` bytes, filled up with zeros.
pub(crate) fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    for (to, from) in out.iter_mut().zip(bytes) {
        *to = *from;
    }
    out
}
