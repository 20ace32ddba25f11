//! The 16 bytes in the spare area of every page: what the page holds, when it was programmed, and a checksum.
//!
//! The spare area of small-page parts is outside the chip's ECC, so the checksum also corrects one wrong bit of the tag,
//! as many as the chip's Hamming code corrects in the page. Invariant: a tag is believed only if the checksum over the
//! volume, the page's bytes and the tag itself is right.

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;
const BODY_BYTES: usize = 12;
const BODY_BITS: usize = 8 * BODY_BYTES;
const STAMP_BITS: u32 = 40;
const END: u8 = 0x80;

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sector, at its own place of a data block or, where pages are mapped, anywhere.
    Data = 1,
    /// A sector in a log block.
    Log,
    /// A sector that was copied.
    Merged,
    /// Sectors that were given up; which ones, stands in the page.
    Trim,
    /// A sector that reads as zeros.
    Hole,
    /// A sector whose bytes the chip lost before they could be copied.
    Lost,
    /// A part of the block map.
    Map,
    /// A volume's parameters.
    Anchor,
    /// Nothing: the page may have been half programmed when the power went.
    Filler,
}

impl Kind {
    /// In the order of their codes.
    const ALL: [Kind; 9] = [
        Kind::Data,
        Kind::Log,
        Kind::Merged,
        Kind::Trim,
        Kind::Hole,
        Kind::Lost,
        Kind::Map,
        Kind::Anchor,
        Kind::Filler,
    ];

    fn code(self) -> u8 {
        self as u8
    }

    /// Its name where a volume is shown.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Data => "data",
            Kind::Log => "log",
            Kind::Merged => "merged",
            Kind::Trim => "trim",
            Kind::Hole => "hole",
            Kind::Lost => "lost",
            Kind::Map => "map",
            Kind::Anchor => "anchor",
            Kind::Filler => "filler",
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// Whether the page holds a host's bytes, which simulations leave out.
    pub fn is_payload(self) -> bool {
        matches!(self, Kind::Data | Kind::Log | Kind::Merged)
    }
}

/// What a page's spare area says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    pub kind: Kind,
    /// The page ends a sequence: a request, or a change of the map.
    pub ends: bool,
    /// The sector, or a number of the kind's own.
    pub logical: u32,
    /// Place in the order of all programs of the volume, 40 bits.
    pub stamp: u64,
    /// A number of the kind's own.
    pub extra: u16,
}

impl Tag {
    /// The tag of a page that ends what it is part of. [`super::Flash`] gives the stamp.
    pub fn new(kind: Kind, logical: u32) -> Self {
        Self { kind, ends: true, logical, stamp: 0, extra: 0 }
    }

    /// The tag's bytes, with the checksum that goes on from that of a page's bytes.
    pub fn encode(&self, page_sum: u32) -> [u8; TAG_BYTES] {
        let code = self.kind.code() | if self.ends { END } else { 0 };
        let stamp = u128::from(self.stamp) & ((1 << STAMP_BITS) - 1);
        let body = u128::from(code) | u128::from(self.logical) << 8 | stamp << 40 | u128::from(self.extra) << 80;
        let sum = checksum(page_sum, body_of(&body.to_le_bytes()));
        (body | u128::from(sum) << BODY_BITS).to_le_bytes()
    }

    /// The tag in `spare`, if the checksum that goes on from that of the page's bytes is right, or is so after one bit of the
    /// tag is corrected.
    pub fn decode(spare: &[u8; TAG_BYTES], page_sum: u32) -> Option<Self> {
        let mut number = u128::from_le_bytes(*spare);
        let wrong = checksum(page_sum, body_of(spare)) ^ (number >> BODY_BITS) as u32;
        if wrong.count_ones() > 1 {
            // The one bit of the body that explains the checksum, if any does.
            number ^= 1 << FLIPS.iter().position(|&flip| flip == wrong)?;
        }
        let code = number as u8;
        Some(Self {
            kind: Kind::from_code(code & !END)?,
            ends: code & END != 0,
            logical: (number >> 8) as u32,
            stamp: (number >> 40) as u64 & ((1 << STAMP_BITS) - 1),
            extra: (number >> 80) as u16,
        })
    }
}

/// A tag without its checksum.
fn body_of(tag: &[u8; TAG_BYTES]) -> &[u8] {
    tag.first_chunk::<BODY_BYTES>().map_or(&[], |body| body.as_slice())
}

/// What each wrong bit of a body changes in the checksum, which is linear: nothing else matters to it.
static FLIPS: [u32; BODY_BITS] = flips();

#[allow(clippy::indexing_slicing, reason = "evaluated when the crate is built")]
const fn flips() -> [u32; BODY_BITS] {
    /// CRC-32C's polynomial, lowest power first.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut flips = [0; BODY_BITS];
    let mut bit = BODY_BITS;
    let mut flip = POLYNOMIAL;
    // From the last byte's highest bit to the first byte's lowest one, each is a step further from the end.
    while bit > 0 {
        bit -= 1;
        flips[bit] = flip;
        flip = flip >> 1 ^ if flip & 1 != 0 { POLYNOMIAL } else { 0 };
    }
    flips
}

/// CRC-32C of bytes that come after others with a checksum; that of none is a volume's number.
#[cfg(feature = "std")]
pub fn checksum(before: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(before, bytes)
}

/// CRC-32C of bytes that come after others with a checksum; that of none is a volume's number.
#[cfg(not(feature = "std"))]
pub fn checksum(before: u32, bytes: &[u8]) -> u32 {
    static CRC: crc::Crc<u32, crc::Table<16>> = crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISCSI);
    // What comes before is put in its place: the digest starts from the bits of a checksum, the other way round.
    let mut digest = CRC.digest_with_initial((!before).reverse_bits());
    digest.update(bytes);
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: Tag = Tag { kind: Kind::Log, ends: true, logical: 0x0102_0304, stamp: 0xff_0000_0001, extra: 77 };

    #[test]
    fn a_tag_reads_as_it_was_written() {
        for kind in Kind::ALL {
            let tag = Tag { kind, ..TAG };
            assert_eq!(Tag::decode(&tag.encode(77), 77), Some(tag));
        }
    }

    #[test]
    fn any_one_wrong_bit_of_a_tag_is_corrected() {
        let spare = TAG.encode(77);
        for bit in 0..8 * TAG_BYTES {
            let mut wrong = spare;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Tag::decode(&wrong, 77), Some(TAG), "bit {bit}");
        }
    }

    #[test]
    fn the_checksum_is_crc32c_begun_with_the_volume_s_number() {
        assert_eq!(checksum(0, b"123456789"), 0xE306_9283);
        assert_eq!(checksum(checksum(checksum(0, b"12"), b""), b"3456789"), 0xE306_9283);
    }

    #[test]
    fn another_volume_s_page_and_one_with_other_bytes_are_not_believed() {
        let spare = TAG.encode(checksum(9, b"page"));
        assert_eq!(Tag::decode(&spare, checksum(9, b"page")), Some(TAG));
        assert_eq!(Tag::decode(&spare, checksum(8, b"page")), None);
        assert_eq!(Tag::decode(&spare, checksum(9, b"pag3")), None);
        assert_eq!(Tag::decode(&[0xff; TAG_BYTES], checksum(9, &[0xff; 4])), None);
    }
}
