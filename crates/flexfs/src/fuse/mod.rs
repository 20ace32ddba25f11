//! A mounted volume as a process: the kernel's requests, the timer, signals, and the way out.
//!
//! Life of a mount: [`Serving::start`] attaches it to the tree, [`Serving::run`] serves until the kernel lets go
//! (a signal makes it, or an `umount` from outside), then the volume is unmounted: synced, and marked clean.
//! Invariant: the program ends well only if that last step did.

mod attr;
mod directory;
pub mod mountpoint;
mod server;
pub mod volume;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use emulator::Chip;
use flexfs_core::Fs;
use fuser::{Config, Session, SessionACL};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::output;
use mountpoint::Mounted;
use server::Server;
use volume::{Volume, now_ns};

/// The timer's longest sleep.
const TICK: Duration = Duration::from_millis(250);

/// Threads that serve requests, each with a descriptor of its own.
const SERVER_THREADS: usize = 2;

/// The signals that end a mount. Taken as early as can be, so that none is lost while the mount comes up.
pub fn take_signals() -> Result<Signals> {
    Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot take signals")
}

/// A volume that is attached to the tree.
pub struct Serving {
    session: Session<Server>,
    keeper: Keeper,
}

/// What is needed to end a mount, from whichever thread comes to it.
#[derive(Clone)]
struct Keeper {
    image: PathBuf,
    volume: Arc<Volume>,
    mounted: Arc<Mounted>,
}

impl Serving {
    /// Attaches `fs`, from `image`, to the directory `mountpoint`; both paths are absolute.
    ///
    /// Where that fails the volume is unmounted again.
    pub fn start(mut fs: Fs<Chip>, image: &Path, mountpoint: &Path, read_only: bool) -> Result<Self> {
        let to_sync = if read_only { None } else { Some(File::open(image)?) };
        let chunk_bytes = fs.statfs().map(|stat| stat.chunk_bytes);
        let chunk_bytes = chunk_bytes.map_err(|error| anyhow!("{}: {error}", image.display()))?;
        let (mounted, device) = match Mounted::new(mountpoint, image, read_only) {
            Ok(mounted) => mounted,
            Err(error) => {
                let (_, left) = fs.unmount(now_ns());
                left.map_err(|left| anyhow!("{}: cannot unmount: {left}", image.display()))?;
                return Err(error.context(mountpoint.display().to_string()));
            }
        };
        let mut config = Config::default();
        config.n_threads = Some(SERVER_THREADS);
        config.clone_fd = !mounted.by_helper();
        let acl = if mounted.by_helper() { SessionACL::Owner } else { SessionACL::All };
        config.acl = acl;
        let volume = Arc::new(Volume::new(fs, to_sync));
        let server = Server::new(Arc::clone(&volume), chunk_bytes);
        let keeper = Keeper { image: image.to_path_buf(), volume, mounted: Arc::new(mounted) };
        match Session::from_fd(server, device, acl, config) {
            Ok(session) => Ok(Self { session, keeper }),
            Err(error) => {
                keeper.let_go();
                keeper.close()?;
                Err(anyhow!("{}: the kernel does not take the mount: {error}", mountpoint.display()))
            }
        }
    }

    /// Serves until the mount is gone, then unmounts the volume.
    pub fn run(self, mut signals: Signals) -> Result<()> {
        let Self { session, keeper } = self;
        let (stop, stopped) = mpsc::channel();
        let volume = Arc::clone(&keeper.volume);
        let timer = thread::Builder::new().name("timer".into()).spawn(move || keep_time(&volume, &stopped))?;
        let handle = signals.handle();
        let on_signal = keeper.clone();
        let signalled = thread::Builder::new().name("signals".into()).spawn(move || {
            for (count, _) in signals.forever().enumerate() {
                if count == 0 { on_signal.let_go() } else { on_signal.leave_at_once() }
            }
        })?;
        let served = session.run();
        drop(stop);
        handle.close();
        let threads_ended = timer.join().is_ok() & signalled.join().is_ok();
        keeper.close()?;
        match served {
            // A mount taken off the tree may end as an aborted connection.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            served => served.with_context(|| format!("{}: serving the mount failed", keeper.image.display()))?,
        }
        if threads_ended { Ok(()) } else { Err(anyhow!("{}: the timer failed", keeper.image.display())) }
    }
}

/// Syncs what has grown old and does background work until `stopped` is hung up.
fn keep_time(volume: &Volume, stopped: &mpsc::Receiver<()>) {
    let mut pause = TICK;
    while stopped.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
        pause = volume.tick(TICK);
    }
}

impl Keeper {
    /// Takes the mount off the tree; the session ends when the kernel has let go.
    fn let_go(&self) {
        match self.mounted.unmount(false) {
            Ok(()) => return,
            Err(Errno::BUSY) => {}
            Err(errno) => output::complain(&format!("cannot unmount: {}", std::io::Error::from(errno))),
        }
        output::complain(
            "files are still open: taken off the tree, ends with the last of them (or at a second signal)",
        );
        // What programs have written so far need not wait for them to close it. Where this fails they are told so.
        let _ = self.mounted.sync();
        if let Err(errno) = self.mounted.unmount(true) {
            output::complain(&format!("cannot unmount: {}", std::io::Error::from(errno)));
        }
    }

    /// Unmounts the volume under whoever still uses it.
    fn leave_at_once(&self) {
        let status = match self.close() {
            Ok(()) => "left while files were open: what was not yet handed over is lost".to_owned(),
            Err(error) => format!("{error:#}"),
        };
        output::complain(&format!("{}: {status}", self.image.display()));
        std::process::exit(1);
    }

    /// Unmounts the volume and syncs the image.
    fn close(&self) -> Result<()> {
        let image = self.image.display();
        let fs = self.volume.close().ok_or_else(|| {
            anyhow!(
                "{image}: the server failed within; the image is as after a power cut, and the next mount recovers it"
            )
        })?;
        let (mut chip, unmounted) = fs.unmount(now_ns());
        unmounted
            .map_err(|error| anyhow!("{image}: cannot unmount: {error}; the next mount recovers what was synced"))?;
        chip.sync_image().map_err(|error| anyhow!("{error}"))
    }
}
