//! The 16 bytes in the spare area of every page: what the page holds, when it was programmed, and a checksum.
//!
//! The spare area of small-page parts is outside the chip's ECC, so the checksum also corrects one wrong bit of the tag,
//! as many as the chip's Hamming code corrects in the page. Invariant: a tag is believed only if the checksum over the
//! volume, the page's bytes and the tag itself is right.

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;
const BODY_BYTES: usize = 12;
const END: u8 = 0x80;

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sector, at its own place of a data block or, where pages are mapped, anywhere.
    Data,
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
        match self {
            Kind::Data => 1,
            Kind::Log => 2,
            Kind::Merged => 3,
            Kind::Trim => 4,
            Kind::Hole => 5,
            Kind::Lost => 6,
            Kind::Map => 7,
            Kind::Anchor => 8,
            Kind::Filler => 9,
        }
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
        Self::ALL.into_iter().find(|kind| kind.code() == code)
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

    /// The tag's bytes, with the checksum over `data` of a volume.
    pub fn encode(&self, volume: u32, data: &[u8]) -> [u8; TAG_BYTES] {
        let mut body = [0; BODY_BYTES];
        let stamp = self.stamp.to_le_bytes();
        let bytes = [self.kind.code() | if self.ends { END } else { 0 }]
            .into_iter()
            .chain(self.logical.to_le_bytes())
            .chain(stamp.into_iter().take(5))
            .chain(self.extra.to_le_bytes());
        body.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = byte);
        let mut tag = [0; TAG_BYTES];
        let crc = checksum(volume, data, &body).to_le_bytes();
        tag.iter_mut().zip(body.into_iter().chain(crc)).for_each(|(slot, byte)| *slot = byte);
        tag
    }

    /// The tag in `spare`, if the checksum over `data` is right, or is so after one bit of the tag is corrected.
    pub fn decode(spare: &[u8; TAG_BYTES], volume: u32, data: &[u8]) -> Option<Self> {
        let (body, crc) = spare.split_first_chunk::<BODY_BYTES>()?;
        let mut body = *body;
        let crc = u32::from_le_bytes(crc.try_into().ok()?);
        let wrong = checksum(volume, data, &body) ^ crc;
        if wrong != 0 && wrong.count_ones() > 1 {
            correct(&mut body, wrong)?;
        }
        let mut bytes = body.into_iter();
        let mut take =
            |count: u32| (0..count).fold(0, |all, at| all | u64::from(bytes.next().unwrap_or(0)) << (8 * at));
        let (code, logical, stamp, extra) = (take(1) as u8, take(4) as u32, take(5), take(2) as u16);
        Some(Self { kind: Kind::from_code(code & !END)?, ends: code & END != 0, logical, stamp, extra })
    }
}

/// Flips the one bit of `body` that explains a checksum wrong by `wrong`; `None` where no bit does.
fn correct(body: &mut [u8; BODY_BYTES], wrong: u32) -> Option<()> {
    let bit = FLIPS.iter().position(|&flip| flip == wrong)?;
    *body.get_mut(bit / 8)? ^= 1 << (bit % 8);
    Some(())
}

/// What each wrong bit of a body changes in the checksum, which is linear: nothing else matters to it.
static FLIPS: [u32; 8 * BODY_BYTES] = flips();

#[allow(clippy::indexing_slicing, reason = "evaluated when the crate is built")]
const fn flips() -> [u32; 8 * BODY_BYTES] {
    /// CRC-32C's polynomial, lowest power first.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut flips = [0; 8 * BODY_BYTES];
    let mut bit = 8 * BODY_BYTES;
    let mut flip = POLYNOMIAL;
    // From the last byte's highest bit to the first byte's lowest one, each is a step further from the end.
    while bit > 0 {
        bit -= 1;
        flips[bit] = flip;
        flip = flip >> 1 ^ if flip & 1 != 0 { POLYNOMIAL } else { 0 };
    }
    flips
}

/// CRC-32C of a page's bytes and a tag without its checksum, begun with a volume's number.
#[cfg(feature = "std")]
pub fn checksum(volume: u32, data: &[u8], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(volume, data), body)
}

/// CRC-32C of a page's bytes and a tag without its checksum, begun with a volume's number.
#[cfg(not(feature = "std"))]
pub fn checksum(volume: u32, data: &[u8], body: &[u8]) -> u32 {
    static CRC: crc::Crc<u32, crc::Table<16>> = crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISCSI);
    // What comes before is put in its place: the digest starts from the bits of a checksum, the other way round.
    let mut digest = CRC.digest_with_initial((!volume).reverse_bits());
    digest.update(data);
    digest.update(body);
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
            assert_eq!(Tag::decode(&tag.encode(9, b"page"), 9, b"page"), Some(tag));
        }
    }

    #[test]
    fn any_one_wrong_bit_of_a_tag_is_corrected() {
        let spare = TAG.encode(9, b"page");
        for bit in 0..8 * TAG_BYTES {
            let mut wrong = spare;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Tag::decode(&wrong, 9, b"page"), Some(TAG), "bit {bit}");
        }
    }

    #[test]
    fn the_checksum_is_crc32c_begun_with_the_volume_s_number() {
        assert_eq!(checksum(0, b"1234", b"56789"), 0xE306_9283);
        assert_eq!(checksum(checksum(0, b"12", b""), b"34", b"56789"), 0xE306_9283);
    }

    #[test]
    fn another_volume_s_page_and_one_with_other_bytes_are_not_believed() {
        let spare = TAG.encode(9, b"page");
        assert_eq!(Tag::decode(&spare, 8, b"page"), None);
        assert_eq!(Tag::decode(&spare, 9, b"pag3"), None);
        assert_eq!(Tag::decode(&[0xff; TAG_BYTES], 9, &[0xff; 4]), None);
    }
}
