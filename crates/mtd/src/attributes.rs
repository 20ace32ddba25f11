//! What Linux tells of an MTD device under `/sys/class/mtd`.
//!
//! Invariant: a device is known by its number, which comes from the device file and never from its name.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::MtdError;

/// The major number of MTD devices. Device `n` has the minor numbers `2 n` and, for reading alone, `2 n + 1`.
const MAJOR: u32 = 90;

/// Where Linux tells of its devices.
const CLASS: &str = "/sys/class/mtd";

/// The number of an MTD device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MtdNumber {
    pub number: u32,
    /// By this name it can only be read.
    pub read_only: bool,
}

impl MtdNumber {
    /// The number behind a name; `None` where the name leads to something else, or nowhere.
    pub fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok().filter(|found| found.file_type().is_char_device())?;
        let (major, minor) = (rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
        (major == MAJOR).then_some(Self { number: minor / 2, read_only: minor % 2 == 1 })
    }
}

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MtdAttributes {
    /// `nand`, `mlc-nand`, `nor`, and so on.
    pub(crate) kind: String,
    /// What the driver calls the chip, or the partition of it.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) block_bytes: u32,
    pub(crate) page_bytes: u32,
    pub(crate) all_spare_bytes: u32,
    pub(crate) free_spare_bytes: u32,
    /// Data bytes of a codeword; 0: not told.
    pub(crate) codeword_bytes: u32,
    /// Bits that can be corrected in each codeword.
    pub(crate) correctable_bits: u32,
    /// Corrected bits from which the driver wants the page to be written anew.
    pub(crate) refresh_bits: u32,
}

impl MtdAttributes {
    pub(crate) fn of(number: u32) -> Result<Self, MtdError> {
        Self::in_folder(&Path::new(CLASS).join(format!("mtd{number}")))
    }

    fn in_folder(folder: &Path) -> Result<Self, MtdError> {
        Ok(Self {
            kind: text(folder, "type")?,
            name: text(folder, "name")?,
            bytes: count(folder, "size")?,
            block_bytes: small(folder, "erasesize")?,
            page_bytes: small(folder, "writesize")?,
            all_spare_bytes: small(folder, "oobsize")?,
            free_spare_bytes: small(folder, "oobavail")?,
            codeword_bytes: small(folder, "ecc_step_size")?,
            correctable_bits: small(folder, "ecc_strength")?,
            refresh_bits: small(folder, "bitflip_threshold")?,
        })
    }
}

fn unknown(path: &Path, why: String) -> MtdError {
    MtdError::Attribute { path: path.to_path_buf(), why }
}

fn text(folder: &Path, name: &str) -> Result<String, MtdError> {
    let path: PathBuf = folder.join(name);
    let text = fs::read_to_string(&path).map_err(|error| unknown(&path, error.to_string()))?;
    Ok(text.trim().to_owned())
}

fn count(folder: &Path, name: &str) -> Result<u64, MtdError> {
    let text = text(folder, name)?;
    text.parse().map_err(|_| unknown(&folder.join(name), format!("\"{text}\" is no number")))
}

fn small(folder: &Path, name: &str) -> Result<u32, MtdError> {
    let count = count(folder, name)?;
    u32::try_from(count).map_err(|_| unknown(&folder.join(name), format!("{count} is out of range")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attributes of nandsim with pages of 4 KiB.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let attributes = [
            ("type", "nand"),
            ("name", "NAND simulator partition 0"),
            ("size", "67108864"),
            ("erasesize", "524288"),
            ("writesize", "4096"),
            ("oobsize", "128"),
            ("oobavail", "78"),
            ("ecc_step_size", "256"),
            ("ecc_strength", "1"),
            ("bitflip_threshold", "1"),
        ];
        for (name, value) in attributes {
            fs::write(folder.path().join(name), format!("{value}\n")).unwrap();
        }
        folder
    }

    #[test]
    fn a_device_is_read_from_its_folder() {
        let folder = folder();
        let found = MtdAttributes::in_folder(folder.path()).unwrap();
        assert_eq!((found.kind.as_str(), found.bytes, found.block_bytes), ("nand", 64 << 20, 512 << 10));
        assert_eq!((found.page_bytes, found.all_spare_bytes, found.free_spare_bytes), (4096, 128, 78));
    }

    #[test]
    fn an_attribute_that_is_missing_or_no_number_is_named() {
        let folder = folder();
        fs::write(folder.path().join("erasesize"), "many\n").unwrap();
        let told = MtdAttributes::in_folder(folder.path()).unwrap_err().to_string();
        assert!(told.contains("erasesize") && told.contains("\"many\" is no number"), "{told}");
        fs::remove_file(folder.path().join("size")).unwrap();
        let told = MtdAttributes::in_folder(folder.path()).unwrap_err().to_string();
        assert!(told.contains("/size") && told.contains("No such file"), "{told}");
    }

    #[test]
    fn other_files_have_no_number() {
        for path in ["/dev/null", "/", "/nowhere"] {
            assert_eq!(MtdNumber::of(Path::new(path)), None);
        }
    }
}
