//! The mounted file system as several threads share it: one lock, and what the lock must know of time.
//!
//! Every request, the timer and the unmount go through [`Volume`]. Invariants: the volume hears of every request, and when
//! it came; background work, which makes old changes durable, is done only while no request waits for the lock; after
//! [`Volume::close`], or after a panic under the lock, every request gets `EIO` and nothing more reaches the chip.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flexfs_core::{Error, Fs, Ino, ROOT_INO, Times};
use fuser::Errno;

use super::MountManner;
use super::complaints::Complaints;
use super::pacing::{Pacing, Timing};
use super::power;
use super::recorded::Recorded;
use crate::any_chip::AnyChip;
use crate::clock::{now_ns, stamp_ns};
use crate::figures::{Figures, Live};
use crate::health::Health;

struct Open {
    fs: Recorded,
    /// When the chip's health was looked at last.
    health_seen: Option<Instant>,
    /// How operations take the chip's time, where they do.
    pacing: Option<Pacing>,
    power: power::Seen,
}

/// Between two looks at the chip's health.
const HEALTH_EVERY: Duration = Duration::from_secs(600);

/// A mounted file system behind its lock.
pub struct Volume {
    open: Mutex<Option<Open>>,
    waiting: AtomicUsize,
    /// The image once more, to sync it while the lock is free; `None` where there is none.
    image: Option<File>,
    complaints: Complaints,
    manner: MountManner,
    /// What the volume's time counts from.
    begun: Instant,
}

impl Volume {
    /// A volume, by the name under which one complains of it, whose syncs reach as far as `image`, if there is one.
    pub fn new(fs: Recorded, name: &Path, image: Option<File>, manner: &MountManner) -> Self {
        let pacing = fs.chip().emulated().filter(|_| manner.timing == Timing::Chip).map(Pacing::begin);
        let open = Mutex::new(Some(Open { fs, health_seen: None, pacing, power: power::Seen::default() }));
        let complaints = Complaints::about(name);
        Self { open, waiting: AtomicUsize::new(0), image, complaints, manner: *manner, begun: Instant::now() }
    }

    /// The time of a change of contents: a stamp, unless the kernel keeps those.
    pub fn contents_ns(&self) -> i64 {
        match self.manner.times() {
            Times::OfCaller => now_ns(),
            Times::OfVolume => stamp_ns(),
        }
    }

    /// Runs an operation that changes nothing a sync would have to cover.
    pub fn read<T>(&self, op: impl FnOnce(&mut Recorded) -> Result<T, Error>) -> Result<T, Errno> {
        self.request(op)
    }

    /// Runs an operation whose effect a later sync must cover, or one at once where the mount is synchronous.
    pub fn change<T>(&self, op: impl FnOnce(&mut Recorded) -> Result<T, Error>) -> Result<T, Errno> {
        let result = self.request(op)?;
        if self.manner.eager() {
            self.sync(ROOT_INO)?;
        }
        Ok(result)
    }

    /// Makes everything done so far durable, for the sake of an inode: on the chip, and the chip on the disk under its image.
    pub fn sync(&self, ino: Ino) -> Result<(), Errno> {
        self.request(|fs| fs.sync(ino))?;
        self.sync_image()
    }

    /// Runs an operation for a request of the kernel.
    fn request<T>(&self, op: impl FnOnce(&mut Recorded) -> Result<T, Error>) -> Result<T, Errno> {
        self.locked(|open| {
            open.fs.request(self.mono_ns());
            op(&mut open.fs)
        })
    }

    /// Time since the volume was mounted.
    fn mono_ns(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    fn sync_image(&self) -> Result<(), Errno> {
        match &self.image {
            Some(image) => image.sync_data().map_err(|error| self.complaints.answer_disk(error)),
            None => Ok(()),
        }
    }

    /// What the timer does: one step of background work.
    ///
    /// Says how long the timer may sleep; errors have been told.
    pub fn tick(&self, longest: Duration) -> Duration {
        if self.waiting.load(Ordering::Acquire) > 0 {
            return longest.min(Duration::from_millis(1));
        }
        self.warn();
        if self.manner.read_only() {
            return longest;
        }
        let mut synced = false;
        let next = self.locked(|open| {
            if let Some(power) = self.manner.power.and_then(|source| open.power.changed(source)) {
                open.fs.set_power(power);
            }
            let before = open.fs.is_durable();
            let next = open.fs.background(self.mono_ns(), now_ns());
            synced = !before && open.fs.is_durable();
            next
        });
        if synced {
            // Where that fails it has been told; nobody waits for it.
            let _ = self.sync_image();
        }
        match next {
            Ok(Some(at_ns)) => Duration::from_nanos(u64::try_from(at_ns - self.mono_ns()).unwrap_or(0)).min(longest),
            Ok(None) | Err(_) => longest,
        }
    }

    /// The figures of the volume in `image`, mounted on `mountpoint`; `None` once it is closed or broken. Not a request:
    /// who watches does not keep the volume from its work.
    pub fn figures(&self, image: &Path, mountpoint: &Path) -> Option<Figures> {
        let live =
            |counters| Live { mountpoint: mountpoint.display().to_string(), elapsed: self.begun.elapsed(), counters };
        let looked = self.locked(|open| {
            let counters = *open.fs.chip().counters();
            Ok(Figures::of(open.fs.unrecorded(), image)?.with_live(live(counters)))
        });
        looked.ok()
    }

    /// Says what the chip's owner should know of its health, if it is time to look.
    pub fn warn(&self) {
        let looked = self.locked(|open| {
            if open.health_seen.is_some_and(|seen| seen.elapsed() < HEALTH_EVERY) {
                return Ok(None);
            }
            open.health_seen = Some(Instant::now());
            Ok(Health::of_volume(open.fs.unrecorded()))
        });
        if let Ok(Some(Health { warning: Some(warning), .. })) = looked {
            self.complaints.tell(warning);
        }
    }

    /// Takes the file system out for its unmount; `None` when it is gone already or was left broken by a panic.
    pub fn close(&self) -> Option<Fs<AnyChip>> {
        let (fs, recorded) = self.open.lock().ok()?.take()?.fs.into_fs();
        if let Err(error) = recorded {
            self.complaints.tell(&unrecorded(&error));
        }
        Some(fs)
    }

    fn locked<T>(&self, op: impl FnOnce(&mut Open) -> Result<T, Error>) -> Result<T, Errno> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let guard = self.open.lock();
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        let mut guard = guard.map_err(|_| Errno::EIO)?;
        let open = guard.as_mut().ok_or(Errno::EIO)?;
        if let (Some(pacing), Some(chip)) = (&open.pacing, open.fs.unrecorded().chip_mut().emulated_mut()) {
            pacing.catch_up(chip);
        }
        let result = op(open);
        if let (Some(pacing), Some(chip)) = (&open.pacing, open.fs.chip().emulated()) {
            pacing.wait_for(chip);
        }
        let failure = open.fs.take_failure();
        // Whoever reads complaints may wait for this volume.
        drop(guard);
        if let Some(failure) = failure {
            self.complaints.tell(&unrecorded(&failure));
        }
        result.map_err(|error| self.complaints.answer(&error))
    }
}

/// What is said where the recording ended early.
fn unrecorded(error: &io::Error) -> String {
    format!("it is not recorded any more: {error}")
}
