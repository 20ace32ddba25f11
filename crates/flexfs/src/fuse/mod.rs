//! A mounted volume as a process: the kernel's requests, the timer, signals, and the way out.
//!
//! Life of a mount: [`Serving::start`] attaches it to the tree, [`Serving::run`] serves until the kernel lets go
//! (a signal makes it, or an `umount` from outside), then the volume is unmounted: synced, and marked clean.
//! Invariant: the program ends well only if that last step did.

pub mod acl;
pub mod attr;
mod caller;
mod complaints;
pub mod connection;
mod data;
mod directory;
mod handed_times;
pub mod handover;
mod kept_listings;
mod kernel_cache;
mod make;
mod manner;
pub mod mountpoint;
pub mod pacing;
pub mod power;
mod recorded;
mod removed;
mod server;
pub mod volume;

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use flexfs_core::Fs;
use fuser::{Notifier, Session};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::any_chip::AnyChip;
use crate::clock::now_ns;
use crate::monitor::{Monitor, Question};
use crate::{image, output};
use connection::connect;
pub use manner::MountManner;
use mountpoint::Mounted;
use recorded::Recorded;
pub use recorded::Recordings;
use server::Server;
use volume::Volume;

/// The timer's longest sleep.
const TICK: Duration = Duration::from_millis(250);

/// The signals that end a mount. Taken as early as can be, so that none is lost while the mount comes up.
pub fn take_signals() -> Result<Signals> {
    Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot take signals")
}

/// A volume that is attached to the tree.
pub struct Serving {
    session: Session<Server>,
    keeper: Keeper,
    /// `None` where another server answers for the image.
    monitor: Option<Monitor>,
}

/// What is attached, and where.
pub struct Attach<'a> {
    /// What the mount table names as the device, and complaints as what they are about.
    pub name: &'a Path,
    /// The image that holds the chip, to sync it; `None` where there is none, or nothing is written to it.
    pub image: Option<File>,
    /// The directory to attach it to, an absolute path.
    pub mountpoint: &'a Path,
    pub recordings: Recordings,
    pub manner: MountManner,
}

/// What is needed to end a mount, from whichever thread comes to it.
#[derive(Clone)]
struct Keeper {
    name: PathBuf,
    volume: Arc<Volume>,
    mounted: Arc<Mounted>,
}

impl Serving {
    /// Attaches `fs` to the tree. Where that fails the volume is unmounted again.
    pub fn start(mut fs: Fs<AnyChip>, to: Attach) -> Result<Self> {
        let (name, shown) = (to.name, to.name.display());
        let stat = fs.statfs().map_err(|error| anyhow!("{shown}: {error}"))?;
        let monitor = Monitor::of(name);
        let (mounted, device) = match Mounted::new(to.mountpoint, name, &to.manner) {
            Ok(mounted) => mounted,
            Err(error) => {
                let (_, left) = fs.unmount(now_ns());
                left.map_err(|left| anyhow!("{shown}: cannot unmount: {left}"))?;
                return Err(error.context(to.mountpoint.display().to_string()));
            }
        };
        let volume = Arc::new(Volume::new(Recorded::new(fs, to.recordings), name, to.image, &to.manner));
        let server = Server::new(Arc::clone(&volume), stat.chunk_bytes, to.manner);
        let kernel_cache = server.kernel_cache();
        let keeper = Keeper { name: name.to_path_buf(), volume, mounted: Arc::new(mounted) };
        match connect(server, &keeper.mounted, device) {
            Ok(session) => {
                kernel_cache.connect(session.notifier());
                let monitor = monitor.and_then(|monitor| keeper.answer(monitor)).ok();
                Ok(Self { session, keeper, monitor })
            }
            Err(error) => {
                keeper.let_go();
                keeper.close()?;
                Err(anyhow!("{}: the kernel does not take the mount: {error}", to.mountpoint.display()))
            }
        }
    }

    /// The mount in the tree.
    pub fn mounted(&self) -> Arc<Mounted> {
        Arc::clone(&self.keeper.mounted)
    }

    /// The volume behind the mount.
    pub fn volume(&self) -> Arc<Volume> {
        Arc::clone(&self.keeper.volume)
    }

    /// What makes the kernel forget.
    pub fn notifier(&self) -> Notifier {
        self.session.notifier()
    }

    /// Serves until the mount is gone, which a signal brings about too, then unmounts the volume.
    pub fn run(self, mut signals: Signals) -> Result<()> {
        let name = self.keeper.name.clone();
        let handle = signals.handle();
        let on_signal = self.keeper.clone();
        let signalled = thread::Builder::new().name("signals".into()).spawn(move || {
            for (count, _) in signals.forever().enumerate() {
                if count == 0 { on_signal.let_go() } else { on_signal.leave_at_once() }
            }
        })?;
        let served = self.serve();
        handle.close();
        let ended = signalled.join();
        served?;
        ended.map_err(|_| anyhow!("{}: the signal thread failed", name.display()))
    }

    /// Serves until the mount is gone, then unmounts the volume.
    pub fn serve(self) -> Result<()> {
        let Self { session, keeper, monitor } = self;
        let (stop, stopped) = mpsc::channel();
        let volume = Arc::clone(&keeper.volume);
        let timer = thread::Builder::new().name("timer".into()).spawn(move || keep_time(&volume, &stopped))?;
        let served = session.run();
        drop(stop);
        let timer_ended = timer.join();
        drop(monitor);
        keeper.close()?;
        let name = keeper.name.display();
        end_of_session(served).with_context(|| format!("{name}: serving the mount failed"))?;
        timer_ended.map_err(|_| anyhow!("{name}: the timer failed"))
    }
}

/// How a session ended: a mount taken off the tree may end as an aborted connection.
pub fn end_of_session(served: io::Result<()>) -> io::Result<()> {
    match served {
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(()),
        served => served,
    }
}

/// Syncs what has grown old and does background work until `stopped` is hung up.
fn keep_time(volume: &Volume, stopped: &mpsc::Receiver<()>) {
    volume.warn();
    let mut pause = TICK;
    while stopped.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
        pause = volume.tick(TICK);
    }
}

impl Keeper {
    /// Answers what `monitor` is asked.
    fn answer(&self, mut monitor: Monitor) -> io::Result<Monitor> {
        let Self { name, volume, mounted } = self.clone();
        monitor.answer(move |question| match question {
            Question::Figures(form) => Some(volume.figures(&name, mounted.path())?.shown(form).into_bytes()),
            Question::DiskAddress | Question::Structures(..) => None,
            Question::Mountpoint => mounted.is_there().then(|| mounted.path().as_os_str().as_bytes().to_vec()),
        })?;
        Ok(monitor)
    }

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
        let _ = handover::sync(self.mounted.path());
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
        output::complain(&format!("{}: {status}", self.name.display()));
        std::process::exit(1);
    }

    /// Unmounts the volume and syncs the image.
    fn close(&self) -> Result<()> {
        let name = self.name.display();
        let fs = self.volume.close().ok_or_else(|| {
            anyhow!(
                "{name}: the server failed within; the image is as after a power cut, and the next mount recovers it"
            )
        })?;
        image::leave(fs, &self.name, now_ns())
    }
}
