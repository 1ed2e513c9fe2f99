//! The sessions of clients of the legacy era over HTTP: bounded, and each served as its version of the protocol asks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use config::Principal;
use door::Arrivals;
use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::server::Session;
use crate::shared::Door;

/// How many sessions there may be. The one that was unused for the longest ends when one more opens.
const MOST: usize = 256;

/// The first version whose clients understand an empty event that only gives the stream an id.
const PRIMED: &str = "2025-11-25";

/// How often a stream without messages sends a comment, so that the door notices a client that is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// The protocol's library, as it serves clients over HTTP.
pub(crate) type Mcp = StreamableHttpService<Session, LocalSessionManager>;

/// The clients over HTTP.
pub(crate) struct Sessions {
    door: Arc<Door>,
    older: Served,
    newer: Served,
    known: Mutex<SessionTable>,
    /// The order of the requests that belong to no session.
    modern: Arrivals,
}

struct Served {
    mcp: Mcp,
    manager: Arc<LocalSessionManager>,
}

#[derive(Default)]
struct SessionTable {
    by_id: HashMap<String, Entry>,
    /// Counts the uses, to find the session that was unused for the longest.
    uses: u64,
}

struct Entry {
    /// For whom its first request counted.
    principal: Option<Principal>,
    arrivals: Arrivals,
    is_older: bool,
    /// How many of its requests are under way, its stream among them.
    open: usize,
    used: u64,
}

/// A request of a session that is under way.
pub(crate) struct InUse {
    sessions: Arc<Sessions>,
    id: String,
}

impl Served {
    fn new(door: &Arc<Door>, primed: bool) -> Self {
        let mut manager = LocalSessionManager::default();
        let mut config = StreamableHttpServerConfig::default()
            // The door checks both before.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            .with_cancellation_token(door.link.shutdown.child_token());
        if !primed {
            config = config.with_sse_retry(None);
            manager.session_config.sse_retry = None;
        }
        let manager = Arc::new(manager);
        let door = Arc::clone(door);
        let session = move || Ok(Session::new(Arc::clone(&door), CancellationToken::new()));
        Self {
            mcp: StreamableHttpService::new(session, Arc::clone(&manager), config),
            manager,
        }
    }
}

impl Sessions {
    pub(crate) fn new(door: &Arc<Door>) -> Arc<Self> {
        Arc::new(Self {
            older: Served::new(door, false),
            newer: Served::new(door, true),
            known: Mutex::default(),
            modern: door.link.arrivals(),
            door: Arc::clone(door),
        })
    }

    fn served(&self, is_older: bool) -> &Served {
        if is_older { &self.older } else { &self.newer }
    }

    /// The library for a request of this session, or for one that opens a session with this version.
    pub(crate) fn mcp(&self, session: Option<&str>, version: Option<&str>) -> &Mcp {
        let sessions = self.known.lock();
        let entry = session.and_then(|id| sessions.by_id.get(id));
        let is_older = entry.map_or(version.is_some_and(|version| version < PRIMED), |entry| {
            entry.is_older
        });
        &self.served(is_older).mcp
    }

    /// The order of the requests of a session, or of those that belong to none.
    pub(crate) fn arrivals(&self, session: Option<&str>) -> Arrivals {
        let sessions = self.known.lock();
        let entry = session.and_then(|id| sessions.by_id.get(id));
        entry.map_or_else(|| self.modern.clone(), |entry| entry.arrivals.clone())
    }

    /// Whether there is a session with this id.
    pub(crate) fn is_known(&self, session: &str) -> bool {
        self.known.lock().by_id.contains_key(session)
    }

    /// Whether a session was opened for another principal. A client that learned its id gains nothing by it.
    pub(crate) fn is_foreign(&self, session: &str, principal: Option<&Principal>) -> bool {
        let sessions = self.known.lock();
        let entry = sessions.by_id.get(session);
        entry.is_some_and(|entry| entry.principal.as_ref() != principal)
    }

    /// Makes room for one more session. `false` if all are in use.
    pub(crate) async fn make_room(&self) -> bool {
        self.forget_ended().await;
        loop {
            let ended = {
                let mut sessions = self.known.lock();
                if sessions.by_id.len() < MOST {
                    return true;
                }
                let idle = sessions.by_id.iter().filter(|(_, entry)| entry.open == 0);
                let Some((id, is_older)) = idle
                    .min_by_key(|(_, entry)| entry.used)
                    .map(|(id, entry)| (id.clone(), entry.is_older))
                else {
                    return false;
                };
                sessions.by_id.remove(&id);
                (id, is_older)
            };
            let (id, is_older) = ended;
            tracing::debug!(
                session = id,
                "more than {MOST} sessions: one that was unused ended"
            );
            self.close(&id, is_older).await;
        }
    }

    async fn close(&self, id: &str, is_older: bool) {
        if let Err(error) = self.served(is_older).manager.close_session(&id.into()).await {
            tracing::debug!(session = id, %error, "a session did not close");
        }
    }

    /// Forgets the sessions that the library ended because they were unused for minutes.
    async fn forget_ended(&self) {
        if self.known.lock().by_id.len() < MOST {
            return;
        }
        for (served, is_older) in [(&self.older, true), (&self.newer, false)] {
            let living = served.manager.sessions.read().await;
            let mut sessions = self.known.lock();
            sessions
                .by_id
                .retain(|id, entry| entry.is_older != is_older || living.contains_key(id.as_str()));
        }
    }

    /// Records a session that was opened with this version.
    pub(crate) fn opened(&self, id: &str, version: Option<&str>, principal: Option<&Principal>) {
        let mut sessions = self.known.lock();
        sessions.uses += 1;
        let entry = Entry {
            principal: principal.cloned(),
            arrivals: self.door.link.arrivals(),
            is_older: version.is_some_and(|version| version < PRIMED),
            open: 0,
            used: sessions.uses,
        };
        sessions.by_id.insert(id.to_owned(), entry);
    }

    /// Records that a client ended its session.
    pub(crate) fn ended(&self, id: &str) {
        self.known.lock().by_id.remove(id);
    }

    /// Counts a request of a session as under way until the guard is dropped.
    pub(crate) fn in_use(self: &Arc<Self>, id: &str) -> Option<InUse> {
        let mut known = self.known.lock();
        known.uses += 1;
        let used = known.uses;
        let entry = known.by_id.get_mut(id)?;
        entry.open += 1;
        entry.used = used;
        Some(InUse {
            sessions: Arc::clone(self),
            id: id.to_owned(),
        })
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(entry) = self.sessions.known.lock().by_id.get_mut(&self.id) {
            entry.open = entry.open.saturating_sub(1);
        }
    }
}
