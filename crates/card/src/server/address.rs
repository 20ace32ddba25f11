//! Where a server listens: a port of a host, or a socket in the file system.
//!
//! Invariant: a socket's file is removed when the server ends, and a dead server's file gives way to a new one's.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::stream::ClientStream;

/// The port of NBD.
const PORT: u16 = 10_809;

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl Default for ListenAddress {
    fn default() -> Self {
        Self::Tcp { host: "localhost".to_owned(), port: PORT }
    }
}

impl FromStr for ListenAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORMS: &str = "an address is unix:PATH, HOST:PORT or HOST";
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(FORMS) } else { Ok(Self::Unix(path.into())) };
        }
        // An IPv6 address has colons of its own, between brackets.
        let (host, port) = match text.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
            Some((host, port)) => (host, port.parse().map_err(|_| "a port is a number up to 65535")?),
            None => (text, PORT),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() { Err(FORMS) } else { Ok(Self::Tcp { host: host.to_owned(), port }) }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => write!(out, "{host}:{port}"),
            Self::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

impl ListenAddress {
    /// Whether it can be reached from this machine alone.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp { host, port } => (host.as_str(), *port)
                .to_socket_addrs()
                .is_ok_and(|mut found| found.all(|address| address.ip().is_loopback())),
        }
    }
}

/// A socket that clients come to.
pub enum Listener {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    pub fn bind(at: &ListenAddress) -> io::Result<Self> {
        match at {
            ListenAddress::Tcp { host, port } => {
                let listener = TcpListener::bind((host.as_str(), *port))?;
                listener.set_nonblocking(true)?;
                let address = listener.local_addr()?;
                Ok(Self::Tcp(listener, address))
            }
            ListenAddress::Unix(path) => {
                let listener = match UnixListener::bind(path) {
                    Err(error) if error.kind() == ErrorKind::AddrInUse && is_dead(path) => {
                        std::fs::remove_file(path)?;
                        UnixListener::bind(path)?
                    }
                    bound => bound?,
                };
                listener.set_nonblocking(true)?;
                // Clients may be elsewhere, and the file is removed wherever this process is then.
                Ok(Self::Unix(listener, std::path::absolute(path)?))
            }
        }
    }

    pub fn uri(&self) -> String {
        match self {
            Self::Tcp(_, address) => format!("nbd://{address}"),
            Self::Unix(_, path) => format!("nbd+unix:///?socket={}", path.display()),
        }
    }

    /// A client that comes within a time.
    pub fn accept_within(&self, time: Duration) -> io::Result<Option<ClientStream>> {
        let fd = match self {
            Self::Tcp(listener, _) => listener.as_fd(),
            Self::Unix(listener, _) => listener.as_fd(),
        };
        let timeout = Timespec { tv_sec: 0, tv_nsec: time.as_nanos() as _ };
        match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&timeout)) {
            // A signal: whoever waits looks whether it is to end.
            Err(rustix::io::Errno::INTR) | Ok(0) => return Ok(None),
            polled => polled?,
        };
        let accepted = match self {
            Self::Tcp(listener, _) => listener.accept().and_then(|(stream, _)| ClientStream::tcp(stream)),
            Self::Unix(listener, _) => listener.accept().and_then(|(stream, _)| ClientStream::unix(stream)),
        };
        match accepted {
            Ok(stream) => Ok(Some(stream)),
            // It went before it was let in, or there are too many files open for now.
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether an error of one client keeps none of the next ones away.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errnos = [Errno::AGAIN, Errno::CONNABORTED, Errno::PROTO, Errno::MFILE, Errno::NFILE, Errno::NOBUFS];
    let errno = error.raw_os_error();
    errnos.iter().any(|known| errno == Some(known.raw_os_error())) || error.kind() == ErrorKind::Interrupted
}

/// Whether the socket of a server is there that is gone.
fn is_dead(path: &PathBuf) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // Somebody may have removed it already.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_socket_a_host_or_a_host_with_a_port() {
        let tcp = |host: &str, port| Ok(ListenAddress::Tcp { host: host.to_owned(), port });
        assert_eq!("unix:/run/card".parse(), Ok(ListenAddress::Unix("/run/card".into())));
        assert_eq!("localhost:99".parse(), tcp("localhost", 99));
        assert_eq!("0.0.0.0".parse(), tcp("0.0.0.0", PORT));
        assert_eq!("[::1]:7".parse(), tcp("::1", 7));
        assert_eq!("[::1]".parse(), tcp("::1", PORT));
        for wrong in ["", "unix:", ":7", "localhost:port", "localhost:65536"] {
            assert!(wrong.parse::<ListenAddress>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_is_local_if_only_this_machine_reaches_it() {
        let is_local = |text: &str| text.parse::<ListenAddress>().is_ok_and(|address| address.is_local());
        assert!(is_local("unix:/run/card") && is_local("127.0.0.1:7") && ListenAddress::default().is_local());
        assert!(!is_local("0.0.0.0:7") && !is_local("192.0.2.1"));
    }
}
