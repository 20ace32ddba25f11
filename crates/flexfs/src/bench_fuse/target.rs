//! A mounted file system under measurement: FlexFS on a chip in memory, or the null file system.
//!
//! Invariant: the mount goes with the value, whatever happened on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow};
use emulator::{Chip, Profile};
use flexfs_core::{Error, Fs, MountOptions, Policy};
use fuser::Notifier;

use super::null::Null;
use crate::any_chip::AnyChip;
use crate::clock::now_ns;
use crate::fuse::connection::connect;
use crate::fuse::mountpoint::Mounted;
use crate::fuse::{Attach, MountManner, Recordings, Serving, end_of_session};
use crate::new_image;

/// Decides the chance events of the chip.
const SEED: u64 = 1;

/// A mounted file system.
pub struct Target {
    pub root: PathBuf,
    /// Makes the kernel forget what it holds of the file system.
    pub notifier: Notifier,
    /// Bytes of file data that the file system has had to fetch so far.
    pub fetched_bytes: Box<dyn Fn() -> Result<u64>>,
    mounted: Arc<Mounted>,
    server: Option<JoinHandle<Result<()>>>,
}

impl Target {
    /// A FlexFS on a fresh chip in memory, mounted on `root` as `flexfs mount` does.
    pub fn flexfs(root: &Path, profile: &Profile, policy: Policy) -> Result<Self> {
        let mut chip = Chip::new(profile, SEED)?;
        let refused = |error: Error| anyhow!("{}: {error}", profile.name);
        Fs::format(&mut chip, &new_image::format_options("bench")?).map_err(refused)?;
        let manner = MountManner::default();
        let options = MountOptions { policy, times: manner.times(), now_ns: now_ns(), ..MountOptions::default() };
        let fs = Fs::mount(AnyChip::from(chip), options).map_err(|(_, error)| refused(error))?;
        let to = Attach {
            name: Path::new("chip-in-memory"),
            image: None,
            mountpoint: root,
            recordings: Recordings::default(),
            manner,
        };
        let serving = Serving::start(fs, to)?;
        let page_bytes = u64::from(profile.geometry.page_bytes);
        let (mounted, notifier, volume) = (serving.mounted(), serving.notifier(), serving.volume());
        let fetched_bytes = Box::new(move || {
            let pages = volume.read(|fs| Ok(fs.chip().counters().reads.total()));
            Ok(pages.map_err(|errno| std::io::Error::from_raw_os_error(errno.code()))? * page_bytes)
        });
        Self::served(root, notifier, fetched_bytes, mounted, move || serving.serve())
    }

    /// The null file system, mounted on `root` in the same way.
    pub fn null(root: &Path) -> Result<Self> {
        let (mounted, device) = Mounted::new(root, Path::new("null"), &MountManner::default())?;
        let mounted = Arc::new(mounted);
        let null = Null::default();
        let read_bytes = null.read_bytes();
        let session = match connect(null, &mounted, device) {
            Ok(session) => session,
            Err(error) => {
                take_down(&mounted);
                return Err(error).context("the kernel does not take the mount");
            }
        };
        let fetched_bytes = Box::new(move || Ok(read_bytes.load(Ordering::Relaxed)));
        Self::served(root, session.notifier(), fetched_bytes, mounted, move || {
            end_of_session(session.run()).context("serving the null file system failed")
        })
    }

    fn served(
        root: &Path,
        notifier: Notifier,
        fetched_bytes: Box<dyn Fn() -> Result<u64>>,
        mounted: Arc<Mounted>,
        serve: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<Self> {
        let server = match thread::Builder::new().name("server".into()).spawn(serve) {
            Ok(server) => Some(server),
            Err(error) => {
                take_down(&mounted);
                return Err(error).context("cannot start the server");
            }
        };
        Ok(Self { root: root.to_path_buf(), notifier, fetched_bytes, mounted, server })
    }

    /// Unmounts; an error of the server is one here.
    pub fn end(mut self) -> Result<()> {
        take_down(&self.mounted);
        let server = self.server.take().map(JoinHandle::join);
        server.unwrap_or(Ok(Ok(()))).map_err(|_| anyhow!("the server failed within"))?
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            take_down(&self.mounted);
            // The error that led here is the one to report.
            let _ = server.join();
        }
    }
}

fn take_down(mounted: &Mounted) {
    if mounted.unmount(false).is_err() {
        // A file is still open on it: off the tree, it goes with the file. Where even that fails nothing helps.
        let _ = mounted.unmount(true);
    }
}
