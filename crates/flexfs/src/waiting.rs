//! Waiting for an image that is in use: how long that makes sense.
//!
//! A server that was unmounted still writes, or has files open: one waits for its end, as long as it does anything with the
//! image. Invariants: a signal ends a wait; who has the image mounted, or serves it as a disk, is not waited for.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use crate::any_chip::{AnyChip, OpenFailure};
use crate::holder::{Holder, server_of};
use crate::interrupt::{Interrupt, Interrupted};
use crate::output;

/// How long an image may still be in use by something else than a server before that is an error, and how long one waits
/// for a server without saying so.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a server is waited for that neither reads nor writes its image.
const QUIET: Duration = Duration::from_secs(60);

/// Between two tries: at first, and once it takes longer.
const SOON: Duration = Duration::from_millis(20);
const LATER: Duration = Duration::from_millis(200);

/// Why there is no chip.
pub enum Unavailable {
    Chip(OpenFailure),
    Interrupted(Interrupted),
}

/// Opens the chip in an image file, or behind a device, waiting for a server that was unmounted, and a little for anybody else.
pub fn wait_for_chip(path: &Path, read_only: bool, interrupt: &Interrupt) -> Result<AnyChip, Unavailable> {
    let (start, mut wait, mut activity) = (Instant::now(), Wait::default(), None);
    loop {
        match AnyChip::open(path, read_only) {
            Err(error) if error.is_in_use() => {
                let activity = activity.get_or_insert_with(|| Activity::of(path));
                match wait.turn(start.elapsed(), server_of(path).as_ref(), activity.seen()) {
                    Turn::End => return Err(Unavailable::Chip(error)),
                    Turn::Tell => output::complain(&format!("{}: waiting for its server to end", path.display())),
                    Turn::Wait => {}
                }
            }
            opened => return opened.map_err(Unavailable::Chip),
        }
        interrupt.came().map_err(Unavailable::Interrupted)?;
        thread::sleep(if start.elapsed() < PATIENCE { SOON } else { LATER });
    }
}

/// What a wait does next.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    Wait,
    /// Says that it waits, and does.
    Tell,
    End,
}

/// A wait under way; its times are those since it began.
#[derive(Default)]
struct Wait {
    server_seen: Duration,
    /// When the image was read or written last.
    used: Duration,
    told: bool,
}

impl Wait {
    /// What to do at this time, with the image in use by `holder`, and read or written since the last turn if `active`.
    fn turn(&mut self, at: Duration, holder: Option<&Holder>, active: bool) -> Turn {
        if active {
            self.used = at;
        }
        match holder {
            Some(Holder::Mounted(_) | Holder::Disk { .. }) => return Turn::End,
            // The kernel's table of locks may leave one out while others come and go.
            None if at.saturating_sub(self.server_seen) >= PATIENCE => return Turn::End,
            None => return Turn::Wait,
            Some(Holder::Server(_)) => self.server_seen = at,
        }
        if at.saturating_sub(self.used) >= QUIET {
            return Turn::End;
        }
        let tells = at >= PATIENCE && !self.told;
        self.told |= tells;
        if tells { Turn::Tell } else { Turn::Wait }
    }
}

/// Whether anybody reads or writes an image, whatever its name; where the kernel cannot watch it, nobody does.
struct Activity(Option<OwnedFd>);

impl Activity {
    fn of(path: &Path) -> Self {
        let watched = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).and_then(|queue| {
            inotify::add_watch(&queue, path, WatchFlags::ACCESS | WatchFlags::MODIFY)?;
            Ok(queue)
        });
        Self(watched.ok())
    }

    /// Whether it was read or written since it was asked last.
    fn seen(&self) -> bool {
        let mut events = [0u8; 4096];
        let mut seen = false;
        while let Some(queue) = &self.0
            && rustix::io::read(queue, &mut events).is_ok_and(|bytes| bytes > 0)
        {
            seen = true;
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    fn at(wait: &mut Wait, seconds: u64, holder: &Holder, active: bool) -> Turn {
        wait.turn(Duration::from_secs(seconds), Some(holder), active)
    }

    /// Commands waited for ever for a server that did nothing.
    #[test]
    fn a_server_is_waited_for_until_it_has_done_nothing_with_its_image_for_a_minute() {
        let (server, mut wait) = (Holder::Server("7".into()), Wait::default());
        assert_eq!(at(&mut wait, 1, &server, false), Turn::Wait);
        assert_eq!(at(&mut wait, 2, &server, false), Turn::Tell);
        assert_eq!(at(&mut wait, 59, &server, false), Turn::Wait);
        assert_eq!(at(&mut wait, 60, &server, true), Turn::Wait, "it works");
        assert_eq!(at(&mut wait, 119, &server, false), Turn::Wait);
        assert_eq!(at(&mut wait, 120, &server, false), Turn::End);
    }

    #[test]
    fn whoever_has_it_mounted_is_not_waited_for_and_others_are_for_a_moment() {
        let (server, mounted) = (Holder::Server("7".into()), Holder::Mounted(PathBuf::from("/mnt")));
        assert_eq!(at(&mut Wait::default(), 0, &mounted, true), Turn::End);
        let mut wait = Wait::default();
        assert_eq!(wait.turn(Duration::from_secs(1), None, true), Turn::Wait);
        assert_eq!(at(&mut wait, 30, &server, true), Turn::Tell);
        assert_eq!(wait.turn(Duration::from_secs(31), None, true), Turn::Wait);
        assert_eq!(wait.turn(Duration::from_secs(32), None, true), Turn::End);
    }

    #[test]
    fn an_image_is_seen_to_be_read_and_written_by_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let [image, link] = ["image", "link"].map(|name| dir.path().join(name));
        fs::write(&image, "bytes").unwrap();
        fs::hard_link(&image, &link).unwrap();
        let activity = Activity::of(&image);
        assert!(!activity.seen());
        fs::read(&link).unwrap();
        assert!(activity.seen() && !activity.seen());
        fs::write(&link, "other bytes").unwrap();
        assert!(activity.seen() && !activity.seen());
    }
}
