//! CRC-32C over a slot's tag and data: hardware where `std` finds it, a 16-way table elsewhere.

/// The checksum of `head` followed by `body`.
#[cfg(feature = "std")]
pub fn crc32c(head: &[u8], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(head), body)
}

/// The checksum of `head` followed by `body`.
#[cfg(not(feature = "std"))]
pub fn crc32c(head: &[u8], body: &[u8]) -> u32 {
    static CRC: crc::Crc<u32, crc::Table<16>> = crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISCSI);
    let mut digest = CRC.digest();
    digest.update(head);
    digest.update(body);
    digest.finalize()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_crc32c() {
        assert_eq!(super::crc32c(b"1234", b"56789"), 0xE306_9283);
    }
}
