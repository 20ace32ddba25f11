//! Errors of the core about a volume, with an action for its owner.
//!
//! Invariant: an action that takes a command names the command with the image in it.

use std::path::Path;

use flexfs_core::Error;
use nand::NandError;
use rustix::io::Errno;

use crate::any_chip::is_device;

/// Whether the disk under the image is full, as opposed to the volume.
pub fn is_full_disk(error: &Error) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT].map(Errno::raw_os_error);
    matches!(error, Error::Nand(NandError::Medium { errno, .. }) if full.contains(errno))
}

/// An error of the core in words, with an action for it where there is any.
pub fn explain(error: &Error, path: &Path) -> String {
    let size = if is_device(path) { "" } else { " --size SIZE" };
    let path = path.display();
    match error {
        Error::NotFlexfs(_) => format!("{error}; `flexfs mkfs {path}{size} --force` makes it anew (all on it is lost)"),
        Error::Version { found, supported } if found > supported => format!("{error}; use a newer flexfs"),
        Error::Version { .. } => format!(
            "{error}; copy its files with the flexfs that made it, then make it anew with `flexfs mkfs {path}{size} --force`"
        ),
        Error::Unsuitable(_) => format!("{error}; make one for another chip with `flexfs mkfs`"),
        Error::Corrupt { .. } => format!("{error}; `flexfs fsck {path}` tells more"),
        error if is_full_disk(error) => {
            "no space is left on the file system that holds the image; free some".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_volume_of_another_version_is_told_what_to_do() {
        let told = |found| explain(&Error::Version { found, supported: 2 }, Path::new("flash.img"));
        assert_eq!(told(3), "the volume has format version 3; this program reads version 2; use a newer flexfs");
        assert!(
            told(1).contains("format version 1") && told(1).ends_with("`flexfs mkfs flash.img --size SIZE --force`")
        );
    }
}
