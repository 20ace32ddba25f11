//! Asking the server of an image that is mounted, or served as a disk, for its figures, for the structures on its chip, and
//! for its place: `flexfs info`, `top` and `dump` of an image that is in use.
//!
//! The server listens on a Unix socket without a file, whose name is made of the image's device and inode. A question is
//! one byte, and of a block its number; the answer is the text to show, or a place, up to the end of the connection. Invariants: the
//! server answers only root and its own user; an answer counts only if it comes from root, from who asks, or from the
//! image's owner; neither side waits longer for the other than [`PATIENCE`].

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::net::Shutdown;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Uid, geteuid};

/// How long one side waits for the other to read or write.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same for a question that others wait for in turn, and whose answer takes no time.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);

/// How figures are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Table,
    Json,
}

/// What a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    Figures(Form),
    /// Where it is mounted; nothing is the answer once it is no more.
    Mountpoint,
    /// Where clients find the disk; nothing is the answer of a mount.
    DiskAddress,
    /// The structures on the chip of a disk: an overview, or a block.
    Structures(Form, Option<u32>),
}

impl Question {
    fn to_bytes(self) -> Vec<u8> {
        let of_block = |letter, block: u32| [&[letter], block.to_be_bytes().as_slice()].concat();
        match self {
            Self::Figures(Form::Table) => b"t".to_vec(),
            Self::Figures(Form::Json) => b"j".to_vec(),
            Self::Mountpoint => b"m".to_vec(),
            Self::DiskAddress => b"a".to_vec(),
            Self::Structures(Form::Table, None) => b"s".to_vec(),
            Self::Structures(Form::Json, None) => b"S".to_vec(),
            Self::Structures(Form::Table, Some(block)) => of_block(b'b', block),
            Self::Structures(Form::Json, Some(block)) => of_block(b'B', block),
        }
    }

    /// The question that comes; `None` where it is not known.
    fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut letter = [0];
        from.read_exact(&mut letter)?;
        let mut block = || {
            let mut block = [0; 4];
            from.read_exact(&mut block).map(|()| Some(u32::from_be_bytes(block)))
        };
        Ok(Some(match letter[0] {
            b't' => Self::Figures(Form::Table),
            b'j' => Self::Figures(Form::Json),
            b'm' => Self::Mountpoint,
            b'a' => Self::DiskAddress,
            b's' => Self::Structures(Form::Table, None),
            b'S' => Self::Structures(Form::Json, None),
            b'b' => Self::Structures(Form::Table, block()?),
            b'B' => Self::Structures(Form::Json, block()?),
            _ => return Ok(None),
        }))
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
    pub fn answer(&mut self, answer: impl Fn(Question) -> Option<Vec<u8>> + Send + 'static) -> io::Result<()> {
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
fn serve(mut stream: UnixStream, answer: &impl Fn(Question) -> Option<Vec<u8>>) -> io::Result<()> {
    set_patience(&stream, PATIENCE)?;
    let asker = socket_peercred(&stream)?.uid;
    if asker != Uid::ROOT && asker != geteuid() {
        return Ok(());
    }
    match Question::read(&mut stream)?.and_then(answer) {
        Some(answer) => stream.write_all(&answer),
        None => Ok(()),
    }
}

/// The figures that the server of an image tells; `None` where there is no server that tells anything.
pub fn ask(image: &Path, form: Form) -> Option<String> {
    told(image, Question::Figures(form), PATIENCE)
}

/// The structures that the server of a disk tells; `None` where there is no server, or none of a disk.
pub fn structures(image: &Path, form: Form, block: Option<u32>) -> Option<String> {
    told(image, Question::Structures(form, block), PATIENCE)
}

/// Where the server of an image says that clients find the disk; `None` where it serves none.
pub fn disk_address(image: &Path) -> Option<String> {
    told(image, Question::DiskAddress, SHORT_PATIENCE)
}

fn told(image: &Path, question: Question, patience: Duration) -> Option<String> {
    let text = String::from_utf8(asked(image, question, patience).ok()?).ok()?;
    (!text.is_empty()).then_some(text)
}

/// Where the server of an image says it is mounted; `None` where it is not, or no server says anything.
pub fn mountpoint(image: &Path) -> Option<PathBuf> {
    let path = asked(image, Question::Mountpoint, SHORT_PATIENCE).ok()?;
    (!path.is_empty()).then(|| OsString::from_vec(path).into())
}

/// Whether a server takes questions about an image, even if it answers none.
pub fn is_served(image: &Path) -> bool {
    address(image).and_then(|address| UnixStream::connect_addr(&address)).is_ok()
}

fn asked(image: &Path, question: Question, patience: Duration) -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect_addr(&address(image)?)?;
    let (answerer, owner) = (socket_peercred(&stream)?.uid, Uid::from_raw(fs::metadata(image)?.uid()));
    if ![Uid::ROOT, geteuid(), owner].contains(&answerer) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    set_patience(&stream, patience)?;
    stream.write_all(&question.to_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

fn set_patience(stream: &UnixStream, patience: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))
}

/// Where the server of an image listens.
fn address(image: &Path) -> io::Result<SocketAddr> {
    let file = fs::metadata(image)?;
    SocketAddr::from_abstract_name(format!("flexfs-{:x}-{:x}", file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_monitor_answers_in_the_form_asked_for_until_it_ends() {
        let image = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(ask(image.path(), Form::Json), None);
        let mut monitor = Monitor::of(image.path()).unwrap();
        let answer = |question| match question {
            Question::Figures(Form::Json) => Some(b"{}".to_vec()),
            Question::Mountpoint => Some(b"/m\xff".to_vec()),
            Question::Structures(Form::Json, Some(block)) => Some(block.to_string().into_bytes()),
            Question::Figures(Form::Table) | Question::DiskAddress | Question::Structures(..) => None,
        };
        monitor.answer(answer).unwrap();
        assert_eq!(mountpoint(image.path()), Some(OsStr::from_bytes(b"/m\xff").into()));
        assert_eq!(ask(image.path(), Form::Json).as_deref(), Some("{}"));
        assert_eq!(ask(image.path(), Form::Table), None);
        assert_eq!(structures(image.path(), Form::Json, Some(258)).as_deref(), Some("258"));
        assert!(is_served(image.path()));
        assert!(Monitor::of(image.path()).is_err(), "two servers answer for one image");
        drop(monitor);
        assert!(!is_served(image.path()));
        assert_eq!(ask(image.path(), Form::Json), None);
        Monitor::of(image.path()).unwrap();
    }
}
