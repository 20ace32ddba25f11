//! The names of this program: how the command line of a server is told from others.
//!
//! Invariant: every name that a server can be started by is known here, and only here.

use std::ffi::OsStr;
use std::path::Path;

/// The helper of mount(8) for the type `fuse.flexfs`.
pub const HELPER: &str = "mount.fuse.flexfs";

/// The helper of mount(8) for the type `flexfs`.
const SHORT_HELPER: &str = "mount.flexfs";

/// The command that serves.
const SERVING_COMMAND: &str = "mount";

/// Whether a program that was started by this name is the helper of mount(8).
pub fn is_helper(program: &OsStr) -> bool {
    let name = Path::new(program).file_name();
    [HELPER, SHORT_HELPER].iter().any(|helper| name == Some(OsStr::new(helper)))
}

/// Whether a command line is a server's: `flexfs mount`, or the helper of mount(8).
pub fn is_server<'a>(line: impl IntoIterator<Item = &'a OsStr>) -> bool {
    let mut words = line.into_iter();
    words.next().is_some_and(is_helper) || words.any(|word| word == SERVING_COMMAND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_the_name_of_the_helper_or_the_command() {
        let serves = |line: &str| is_server(line.split(' ').map(OsStr::new));
        for line in ["/sbin/mount.fuse.flexfs a.img /mnt", "mount.flexfs a.img /mnt", "flexfs mount a.img /mnt"] {
            assert!(serves(line), "{line}");
        }
        for line in ["", "mount", "flexfs fsck a.img", "/sbin/mount.fuse a.img /mnt", "mount.flexfs/flexfs info a.img"]
        {
            assert!(!serves(line), "{line}");
        }
    }
}
