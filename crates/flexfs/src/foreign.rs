//! What a file is that is not, or not yet, a chip image.
//!
//! Invariants: it is only read; a file counts as an image half made only where it holds what making one leaves behind, so
//! that nobody is told to remove what holds something.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Error, anyhow};
use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// What a file holds of another kind: where its mark stands, the mark, and its name.
const KINDS: [(u64, &[u8], &str); 10] = [
    (1080, b"\x53\xef", "an ext2, ext3 or ext4 file system"),
    (65_600, b"_BHRfS_M", "a btrfs file system"),
    (32_769, b"CD001", "an ISO 9660 file system"),
    (1024, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    (0, b"XFSB", "an XFS file system"),
    (0, b"hsqs", "a SquashFS file system"),
    (0, b"UBI#", "a UBI image"),
    (4086, b"SWAPSPACE2", "a swap area"),
    (512, b"EFI PART", "a partition table"),
    (510, b"\x55\xaa", "a partition table, or a file system that one boots from"),
];

/// How an image begins whose mark is not there: with zeros, then the version of the format.
const HEADLESS: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];

/// Bytes read at a time.
const PIECE_BYTES: usize = 1 << 16;

/// Why a file that does not begin as a chip image is none.
pub fn refused(path: &Path) -> Error {
    let shown = path.display();
    // Opening a pipe would wait for whoever is at its other end.
    let opened = if path.is_file() { File::open(path).ok() } else { None };
    let what = opened.map_or(What::Other, |file| What::of(&file));
    match what {
        What::Blank => anyhow!(
            "{shown}: the chip image is half made and holds nothing; remove it and make it again with `flexfs mkfs`"
        ),
        What::Headless => anyhow!("{shown}: a chip image whose first 8 bytes are lost; restore a backup"),
        What::Kind(kind) => anyhow!("{shown}: {kind}, not a chip image; it is left alone, check the name"),
        What::Other => anyhow!(
            "{shown}: not a chip image (a file beginning with \"FLXCHIP\" was expected); it is left alone, check the name"
        ),
    }
}

/// What a file holds.
enum What {
    /// Zeros, as the making of an image leaves it.
    Blank,
    /// An image's header, but for the mark it begins with.
    Headless,
    /// Something else that is known.
    Kind(&'static str),
    Other,
}

impl What {
    fn of(file: &File) -> Self {
        let mut head = [0; 12];
        let begun = file.read_exact_at(&mut head, 0).is_ok() && head == HEADLESS;
        match kind_of(file) {
            _ if begun => Self::Headless,
            Some(kind) => Self::Kind(kind),
            None if is_blank(file).unwrap_or(false) => Self::Blank,
            None => Self::Other,
        }
    }
}

/// The kind of what is known to hold something else.
fn kind_of(file: &File) -> Option<&'static str> {
    let is_there = |(at, mark, _): &&(u64, &[u8], &str)| {
        let mut found = vec![0; mark.len()];
        file.read_exact_at(&mut found, *at).is_ok() && found == *mark
    };
    KINDS.iter().find(is_there).map(|(_, _, name)| *name)
}

/// Whether a file holds zeros alone; of holes nothing is read.
fn is_blank(file: &File) -> io::Result<bool> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut offset = 0;
    loop {
        match rustix::fs::seek(file, SeekFrom::Data(offset)) {
            Ok(data) => offset = data,
            Err(Errno::NXIO) => return Ok(true),
            // Not every file system knows its holes.
            Err(_) => {}
        }
        match file.read_at(&mut piece, offset)? {
            0 => return Ok(true),
            count if piece[..count].iter().any(|&byte| byte != 0) => return Ok(false),
            count => offset += count as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(bytes: &[(u64, &[u8])], length: u64) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(length).unwrap();
        bytes.iter().for_each(|(at, bytes)| file.as_file().write_all_at(bytes, *at).unwrap());
        refused(file.path()).to_string()
    }

    #[test]
    fn what_holds_something_is_told_by_its_kind_and_never_as_half_made() {
        for (at, mark, name) in KINDS {
            let told = said(&[(at, mark)], 1 << 20);
            assert!(told.contains(name) && told.contains("left alone"), "{told}");
        }
        assert!(said(&[(8, &[1]), (5000, b"x")], 1 << 20).contains("first 8 bytes are lost"));
        for at in [0, 96, 5000, (8 << 20) - 1] {
            assert!(said(&[(at, b"x")], 8 << 20).contains("not a chip image (a file beginning"), "{at}");
        }
    }

    #[test]
    fn only_zeros_are_half_made() {
        for (bytes, length) in [(&[][..], 0), (&[][..], 8), (&[][..], 8 << 30), (&[(0, &[0; 9000][..])][..], 1 << 20)] {
            assert!(said(bytes, length).contains("half made and holds nothing; remove it"), "{length}");
        }
    }
}
