//! What goes wrong under a mount: answered to the program that asked, and told to whoever keeps the volume.
//!
//! Invariant: a line is told once a mount, however often what it says happens, and there is an end to how many are.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use flexfs_core::Error;
use fuser::Errno;

use crate::{image, output};

/// The most lines of one mount.
const LINES_MAX: usize = 1000;

/// What was told of one mount.
pub struct Complaints {
    /// What they are about.
    name: PathBuf,
    told: Mutex<HashSet<String>>,
}

impl Complaints {
    pub fn about(name: &Path) -> Self {
        Self { name: name.to_path_buf(), told: Mutex::default() }
    }

    /// What a program gets to see of an error; what it cannot know of is told too.
    pub fn answer(&self, error: &Error) -> Errno {
        let errno = Errno::from_i32(error.errno());
        if errno.code() != Errno::EIO.code() {
            return errno;
        }
        if image::is_full_disk(error) {
            self.disk_is_full();
            return Errno::ENOSPC;
        }
        self.tell(&image::explain(error, &self.name));
        errno
    }

    /// The same for an error of the disk under the image.
    pub fn answer_disk(&self, error: std::io::Error) -> Errno {
        if error.kind() == std::io::ErrorKind::StorageFull {
            self.disk_is_full();
        } else {
            self.tell(&format!("syncing the image failed: {error}; check the disk that holds it"));
        }
        Errno::from(error)
    }

    fn disk_is_full(&self) {
        self.tell(
            "no space is left on the file system that holds this image, and nothing more is written in this mount; \
             free some, then unmount and mount again: what was synced is there",
        );
    }

    /// Tells whoever keeps the volume, once.
    pub fn tell(&self, why: &str) {
        // A set is changed in one step: whoever panicked left it whole.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < LINES_MAX && told.insert(why.to_owned()) {
            let more = if told.len() == LINES_MAX { "; what else goes wrong is not told any more" } else { "" };
            output::complain(&format!("{}: {why}{more}", self.name.display()));
        }
    }
}
