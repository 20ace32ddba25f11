//! Asking the server of a mounted image for the volume's figures: `flexfs info` of an image that is in use,
//! and `flexfs top`.
//!
//! The server listens on a Unix socket without a file, whose name is made of the image's device and inode. A question is
//! one byte, the form of the answer; the answer is the text to show, up to the end of the connection. Invariants: the
//! server answers only root and its own user; an answer counts only if it comes from root, from who asks, or from the
//! image's owner; neither side waits longer for the other than [`PATIENCE`].

use std::fs;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::net::Shutdown;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Uid, geteuid};

/// How long one side waits for the other to read or write.
const PATIENCE: Duration = Duration::from_secs(10);

/// How figures are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Table,
    Json,
}

impl Form {
    fn to_byte(self) -> u8 {
        match self {
            Form::Table => b't',
            Form::Json => b'j',
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [Form::Table, Form::Json].into_iter().find(|form| form.to_byte() == byte)
    }
}

/// Takes questions until it is dropped.
pub struct Monitor {
    listener: Arc<UnixListener>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    /// Takes questions about the volume in `image`; they wait until [`Monitor::answer`].
    ///
    /// Looks at the image by its name, so that it must come before a mount that may cover that. Fails where another
    /// server takes questions about it already, as with two read-only mounts of one image.
    pub fn of(image: &Path) -> io::Result<Self> {
        Ok(Self { listener: Arc::new(UnixListener::bind_addr(&address(image)?)?), thread: None })
    }

    /// Answers questions with what `answer` gives; where that is nothing, with nothing.
    pub fn answer(&mut self, answer: impl Fn(Form) -> Option<String> + Send + 'static) -> io::Result<()> {
        let listener = Arc::clone(&self.listener);
        let accept = move || {
            // The end of the listener ends this.
            while let Ok((stream, _)) = listener.accept() {
                // Whoever asks and does not listen gets no answer.
                let _ = serve(stream, &answer);
            }
        };
        self.thread = Some(thread::Builder::new().name("monitor".into()).spawn(accept)?);
        Ok(())
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let ended = rustix::net::shutdown(&self.listener, Shutdown::Both);
        if let Some(thread) = self.thread.take()
            && ended.is_ok()
        {
            // A question that cannot be answered is nothing that the mount's end depends on.
            let _ = thread.join();
        }
    }
}

/// Answers one question.
fn serve(mut stream: UnixStream, answer: &impl Fn(Form) -> Option<String>) -> io::Result<()> {
    set_patience(&stream)?;
    let asker = socket_peercred(&stream)?.uid;
    if asker != Uid::ROOT && asker != geteuid() {
        return Ok(());
    }
    let mut question = [0];
    stream.read_exact(&mut question)?;
    match Form::from_byte(question[0]).and_then(answer) {
        Some(text) => stream.write_all(text.as_bytes()),
        None => Ok(()),
    }
}

/// What the server of a mounted image tells; `None` where there is no server that tells anything.
pub fn ask(image: &Path, form: Form) -> Option<String> {
    let text = asked(image, form).ok()?;
    (!text.is_empty()).then_some(text)
}

/// Whether a server takes questions about an image, even if it answers none.
pub fn is_served(image: &Path) -> bool {
    address(image).and_then(|address| UnixStream::connect_addr(&address)).is_ok()
}

fn asked(image: &Path, form: Form) -> io::Result<String> {
    let mut stream = UnixStream::connect_addr(&address(image)?)?;
    let (answerer, owner) = (socket_peercred(&stream)?.uid, Uid::from_raw(fs::metadata(image)?.uid()));
    if ![Uid::ROOT, geteuid(), owner].contains(&answerer) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    set_patience(&stream)?;
    stream.write_all(&[form.to_byte()])?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

fn set_patience(stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// Where the server of an image listens.
fn address(image: &Path) -> io::Result<SocketAddr> {
    let file = fs::metadata(image)?;
    SocketAddr::from_abstract_name(format!("flexfs-{:x}-{:x}", file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_monitor_answers_in_the_form_asked_for_until_it_ends() {
        let image = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(ask(image.path(), Form::Json), None);
        let mut monitor = Monitor::of(image.path()).unwrap();
        monitor.answer(|form| (form == Form::Json).then(|| "{}".to_owned())).unwrap();
        assert_eq!(ask(image.path(), Form::Json).as_deref(), Some("{}"));
        assert_eq!(ask(image.path(), Form::Table), None);
        assert!(is_served(image.path()));
        assert!(Monitor::of(image.path()).is_err(), "two servers answer for one image");
        drop(monitor);
        assert!(!is_served(image.path()));
        assert_eq!(ask(image.path(), Form::Json), None);
        Monitor::of(image.path()).unwrap();
    }
}
