//! News from the bus that answer no request.

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::payload::EventMessage;

/// How many news items may wait for a reader.
pub(crate) const EVENTS: usize = 1024;

/// An event, or a change after which older answers may be out of date.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum News {
    /// An event of a toolbox.
    Event(EventMessage),
    /// The user said "stop" (`ovos.stop`, `mycroft.stop`) to a client other than this one. The service ends the calls of the
    /// session, or all calls if there is no session.
    UserStop {
        /// The session; `None` if the message has no session or the default one.
        session_id: Option<String>,
    },
    /// A client asked for an emergency stop on the bus. (Every stop, also by a tool, by the control socket, by a signal and by
    /// a toolbox itself, is an event of the kind `emergency_stop`, too.)
    EmergencyStop,
    /// A reload ended, whichever client asked for it. Ask for the list again.
    Reloaded,
    /// The bus is connected again. Older answers may be out of date, so ask for the list again.
    Connected,
    /// The bus is away; the client reconnects by itself.
    Disconnected {
        /// The reason, as far as it is known.
        reason: String,
    },
    /// How many items were lost because the reader was too slow.
    Missed(u64),
}

/// The news since the call of [`Client::events`](crate::Client::events).
#[derive(Debug)]
pub struct Events(pub(crate) broadcast::Receiver<News>);

impl Events {
    /// Waits for the next news; `None` when the client is gone.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&mut self) -> Option<News> {
        match self.0.recv().await {
            Ok(news) => Some(news),
            Err(RecvError::Lagged(missed)) => Some(News::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }

    /// Returns the next news if one has already arrived.
    pub fn arrived(&mut self) -> Option<News> {
        match self.0.try_recv() {
            Ok(news) => Some(news),
            Err(TryRecvError::Lagged(missed)) => Some(News::Missed(missed)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}
