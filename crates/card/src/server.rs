//! The server: it lets clients in, one thread each, and ends when it is told to.
//!
//! Invariants: clients in their handshake, and clients with requests, are each of a bounded number; a handshake takes a
//! bounded time; at the end every request that was accepted is answered before the connection closes.

mod address;
mod deadline;
mod stream;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::client::{Agreement, ClientError, ExportOffer, handshake, transmit};
use crate::disk::Disk;

pub use address::ListenAddress;
use address::Listener;
use deadline::DeadlineStream;
use stream::ClientStream;

/// How often a server that waits for clients looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// The limits that clients are kept to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Clients with requests at most.
    pub clients: usize,
    /// Clients in their handshake at most.
    pub handshakes: usize,
    /// Time for a whole handshake.
    pub handshake: Duration,
    /// Time that a client may take to receive an answer.
    pub answer: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self { clients: 16, handshakes: 256, handshake: Duration::from_secs(10), answer: Duration::from_secs(60) }
    }
}

/// A server that listens.
pub struct CardServer {
    listener: Listener,
    limits: ClientLimits,
    offer: ExportOffer,
    clients: Arc<Clients>,
}

/// The clients that are connected now.
#[derive(Default)]
struct Clients {
    handshakes: AtomicUsize,
    transmissions: AtomicUsize,
    /// To end their connections, by their numbers.
    streams: Mutex<BTreeMap<u64, ClientStream>>,
}

impl Clients {
    fn streams(&self) -> MutexGuard<'_, BTreeMap<u64, ClientStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among a bounded number, which is free again when this is dropped.
struct ClientPlace<'a>(&'a AtomicUsize);

impl<'a> ClientPlace<'a> {
    fn among(taken: &'a AtomicUsize, most: usize) -> Option<Self> {
        let more = |count: usize| (count < most).then_some(count + 1);
        taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok().then_some(Self(taken))
    }
}

impl Drop for ClientPlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl CardServer {
    /// Listens for clients, which wait until [`Self::run`].
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn bind(at: &ListenAddress, offer: ExportOffer, limits: ClientLimits) -> io::Result<Self> {
        Ok(Self { listener: Listener::bind(at)?, limits, offer, clients: Arc::default() })
    }

    /// The address for clients, as a URI.
    pub fn uri(&self) -> String {
        self.listener.uri()
    }

    /// Tells how many clients have requests, from any thread.
    pub fn client_counter(&self) -> impl Fn() -> usize + Send + Sync + 'static {
        let clients = Arc::clone(&self.clients);
        move || clients.transmissions.load(Ordering::SeqCst)
    }

    /// Serves the disk to whoever comes while `goes_on`; `complain` hears of clients that broke the protocol.
    ///
    /// # Errors
    /// No more clients can be let in.
    pub fn run(
        &self,
        disk: &Arc<dyn Disk>,
        goes_on: &dyn Fn() -> bool,
        complain: &(impl Fn(&ClientError) + Clone + Send + 'static),
    ) -> io::Result<()> {
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        let mut outcome = Ok(());
        for number in 0.. {
            let stream = match self.wait(goes_on) {
                Ok(Some(stream)) => stream,
                Ok(None) => break,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            };
            threads.retain(|thread| !thread.is_finished());
            let Ok(handle) = stream.try_clone() else { continue };
            self.clients.streams().insert(number, handle);
            let (clients, disk, complain) = (Arc::clone(&self.clients), Arc::clone(disk), complain.clone());
            let (offer, limits) = (self.offer.clone(), self.limits);
            let serve = move || {
                match serve(stream, &offer, limits, &clients, &*disk) {
                    Err(error @ ClientError::Protocol(_)) => complain(&error),
                    // Clients come and go.
                    Ok(()) | Err(ClientError::Connection(_)) => {}
                }
                clients.streams().remove(&number);
            };
            match thread::Builder::new().name("client".into()).spawn(serve) {
                Ok(thread) => threads.push(thread),
                Err(_) => drop(self.clients.streams().remove(&number)),
            }
        }
        self.clients.streams().values().for_each(ClientStream::end_requests);
        // A thread that panicked has answered what it could.
        threads.into_iter().for_each(|thread| drop(thread.join()));
        outcome
    }

    /// The next client; `None` where the server is to end.
    fn wait(&self, goes_on: &dyn Fn() -> bool) -> io::Result<Option<ClientStream>> {
        while goes_on() {
            if let Some(stream) = self.listener.accept_within(LOOK)? {
                return Ok(Some(stream));
            }
        }
        Ok(None)
    }
}

/// Serves one client.
fn serve(
    mut stream: ClientStream,
    offer: &ExportOffer,
    limits: ClientLimits,
    clients: &Clients,
    disk: &dyn Disk,
) -> Result<(), ClientError> {
    let Some(place) = ClientPlace::among(&clients.handshakes, limits.handshakes) else { return Ok(()) };
    let admitted = std::cell::OnceCell::new();
    let admits = || admitted.get_or_init(|| ClientPlace::among(&clients.transmissions, limits.clients)).is_some();
    let agreement = handshake(&mut DeadlineStream::new(&mut stream, limits.handshake), offer, admits)?;
    drop(place);
    match agreement {
        Agreement::Part => Ok(()),
        Agreement::Transmit(kind) => {
            stream.set_patience(None, Some(limits.answer))?;
            transmit(&mut stream, disk, kind)
        }
    }
}
