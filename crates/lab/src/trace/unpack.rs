//! Traces as they are distributed: packed. Invariant: a packed file unpacks in full or is refused, and it never unpacks
//! to more than the limit.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

/// How gzip, xz and zstd begin.
const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The most that a file unpacks to, bytes.
const UNPACKED_BYTES_MAX: u64 = 4 << 30;

/// Why a file does not unpack.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("it is packed by xz: xz -dc FILE | flexfs replay -")]
    Xz,
    #[error("it is packed by zstd: zstd -dc FILE | flexfs replay -")]
    Zstd,
    #[error("the gzip file ends in the middle: it is cut, or something short follows it")]
    Cut,
    #[error("the gzip file is damaged, or something follows it: {0}")]
    Damaged(io::Error),
    #[error("it unpacks to more than {limit} bytes")]
    TooLong { limit: u64 },
}

/// The bytes of a file, unpacked if it is packed by gzip; others are given back as they are, without a copy.
///
/// # Errors
/// A gzip file that is cut or damaged, that something else follows, or that unpacks to more than 4 GiB; xz; zstd.
pub fn unpacked(bytes: Vec<u8>) -> Result<Vec<u8>, UnpackError> {
    match () {
        () if bytes.starts_with(GZIP) => gunzip(&bytes, UNPACKED_BYTES_MAX),
        () if bytes.starts_with(XZ) => Err(UnpackError::Xz),
        () if bytes.starts_with(ZSTD) => Err(UnpackError::Zstd),
        () => Ok(bytes),
    }
}

/// All members of a gzip file, one after the other.
fn gunzip(packed: &[u8], limit: u64) -> Result<Vec<u8>, UnpackError> {
    let mut bytes = Vec::new();
    let read = MultiGzDecoder::new(packed).take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => UnpackError::Cut,
        _ => UnpackError::Damaged(error),
    })?;
    if bytes.len() as u64 > limit { Err(UnpackError::TooLong { limit }) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn every_cut_of_a_gzip_file_is_refused() {
        let packed = gzip(b"1 2 3\n");
        for length in GZIP.len()..packed.len() {
            let refused = unpacked(packed[..length].to_vec()).unwrap_err();
            assert!(matches!(refused, UnpackError::Cut), "{length} bytes: {refused}");
        }
        assert_eq!(unpacked(packed).unwrap(), b"1 2 3\n");
    }

    #[test]
    fn a_gzip_file_that_is_damaged_or_followed_is_refused() {
        let packed = gzip(b"1 2 3\n");
        let mut flipped = packed.clone();
        flipped[packed.len() - 8] ^= 1;
        let followed = [&packed[..], b"and twelve bytes"].concat();
        for (bytes, said) in [(flipped, "checksum"), (followed, "invalid gzip header")] {
            let refused = unpacked(bytes).unwrap_err().to_string();
            assert!(refused.contains("damaged") && refused.contains(said), "{refused}");
        }
    }

    #[test]
    fn members_of_a_gzip_file_follow_each_other() {
        assert_eq!(unpacked([gzip(b"1 2\n"), gzip(b"3\n")].concat()).unwrap(), b"1 2\n3\n");
    }

    #[test]
    fn a_file_unpacks_to_no_more_than_the_limit() {
        let packed = gzip(&[0; 5_000]);
        assert_eq!(gunzip(&packed, 5_000).unwrap().len(), 5_000);
        let refused = gunzip(&packed, 4_999).unwrap_err();
        assert_eq!(refused.to_string(), "it unpacks to more than 4999 bytes");
    }

    #[test]
    fn xz_and_zstd_are_refused_with_the_command_that_unpacks() {
        for (magic, command) in [(XZ, "xz -dc FILE | flexfs replay -"), (ZSTD, "zstd -dc FILE | flexfs replay -")] {
            let refused = unpacked([magic, b"rest"].concat()).unwrap_err().to_string();
            assert!(refused.ends_with(command) && !refused.contains('\n'), "{refused}");
        }
    }

    #[test]
    fn a_plain_file_is_not_copied() {
        let bytes = b"1 2 3\n".to_vec();
        let at = bytes.as_ptr();
        let plain = unpacked(bytes).unwrap();
        assert_eq!(plain.as_ptr(), at);
    }
}
