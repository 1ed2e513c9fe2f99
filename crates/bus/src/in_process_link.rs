//! What an embedded bus and a client in the same process know of each other. Read [`InProcessLink`].

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::OnceLock;

use parking_lot::Mutex;
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;
use tungstenite::Utf8Bytes;

/// How many urgent answers may be on their way to the bus; further ones are relayed in order.
const ON_THE_WAY: usize = 1024;

/// How many bytes may be on their way in each direction. As many as a client joins into one write.
const PIPE: usize = 256 << 10;

/// Tells which messages of a client overtake others.
type Overtakes = Box<dyn Fn(&Utf8Bytes) -> bool + Send + Sync>;

/// Connects an [`EmbeddedBus`](crate::EmbeddedBus) with the [`BusClient`](crate::BusClient) that it was started for.
///
/// The client connects through memory: no other process can take its place, no socket of another client stands in its way,
/// and each message costs four system calls less. Its frames are those of every client. Its
/// [urgent answers](crate::BusClient::answer_urgent) overtake what waits for the other clients: the client leaves a copy of
/// each here, and the bus compares.
pub struct InProcessLink {
    connect: mpsc::Sender<DuplexStream>,
    connected: Mutex<Option<mpsc::Receiver<DuplexStream>>>,
    urgent: Mutex<VecDeque<Utf8Bytes>>,
    overtakes: OnceLock<Overtakes>,
}

impl InProcessLink {
    /// Creates a link.
    #[must_use]
    pub fn new() -> Self {
        // A client opens its next connection when it has lost the one before.
        let (connect, connected) = mpsc::channel(1);
        Self {
            connect,
            connected: Mutex::new(Some(connected)),
            urgent: Mutex::default(),
            overtakes: OnceLock::new(),
        }
    }

    /// Sets which messages of other clients overtake what waits for a client. The function gets each message that the
    /// bus relays, on the task that reads its sender, so it must be quick. It may act on the message at once; the client gets
    /// it from the bus all the same. Only the first call counts.
    pub fn overtake(&self, overtakes: impl Fn(&Utf8Bytes) -> bool + Send + Sync + 'static) {
        // A second function is ignored.
        _ = self.overtakes.set(Box::new(overtakes));
    }

    /// Connects the client.
    ///
    /// # Errors
    /// The bus has ended.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn connect(&self) -> io::Result<DuplexStream> {
        let (ours, theirs) = duplex(PIPE);
        let sent = self.connect.send(theirs).await;
        sent.map_err(|_| io::Error::new(io::ErrorKind::ConnectionRefused, "the embedded bus has ended"))?;
        Ok(ours)
    }

    /// Where the connections of the client arrive. Only for the first bus.
    pub(crate) fn connections(&self) -> Option<mpsc::Receiver<DuplexStream>> {
        self.connected.lock().take()
    }

    /// Called by the client before it writes an urgent answer.
    pub(crate) fn sends_urgent(&self, text: &Utf8Bytes) {
        let mut urgent = self.urgent.lock();
        if urgent.len() < ON_THE_WAY {
            urgent.push_back(text.clone());
        }
    }

    /// Called by the client when it has lost its connection: what it wrote there does not arrive any more.
    pub(crate) fn lost(&self) {
        self.urgent.lock().clear();
    }

    /// Whether this message, which the bus read from its own client, is urgent. The bus reads them in the order in
    /// which the client writes them.
    pub(crate) fn is_urgent_answer(&self, text: &str) -> bool {
        let mut urgent = self.urgent.lock();
        let is_next = urgent.front().is_some_and(|next| next.as_str() == text);
        if is_next {
            urgent.pop_front();
        }
        is_next
    }

    /// Whether this message of another client overtakes others.
    pub(crate) fn is_urgent_request(&self, text: &Utf8Bytes) -> bool {
        self.overtakes.get().is_some_and(|overtakes| overtakes(text))
    }
}

impl Default for InProcessLink {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for InProcessLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessLink").finish_non_exhaustive()
    }
}
