//! The session with one host, and the questions on it: each gets one answer, or the news that there is none. Read [`Line::ask`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{Failure, FailureKind};
use parking_lot::Mutex;
use protocol::Answer;
use serde::de::DeserializeOwned;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::query::{ConsolidationMode, Reply};
use zenoh::sample::SampleKind;
use zenoh::{Session, Wait as _};

use crate::folder::{Folder, Identity, wall_clock};
use crate::messages::{Ask, Right, key};
use crate::session::{mount_config, reason};

/// How long a host may say nothing until it is dialled anew: Zenoh dials again by itself, but not after a link that ended while it was
/// being made, and TCP tries a network that was dark for long only every minute.
const SILENT: Duration = Duration::from_secs(2);

/// How a question travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Ahead of everything; lost where the network does not take it, so it is repeated. Never waits.
    Urgent,
    /// In order, and waits for the network.
    Data,
}

/// The line to a host.
#[derive(Debug)]
pub(crate) struct Line {
    folder: Folder,
    /// Who asks.
    pub(crate) identity: Identity,
    /// The host's name, which its certificate has to have.
    pub(crate) host: String,
    /// Its address.
    pub(crate) endpoint: String,
    session: Mutex<Option<Dialled>>,
}

/// A session with the host, which dials again by itself where its link is lost.
#[derive(Clone, Debug)]
struct Dialled {
    session: Session,
    /// Another machine has answered at the address: nothing is asked of it, and nothing that it says is heard.
    is_other: Arc<AtomicBool>,
    /// When it was opened, or something was heard last.
    last_answer: Arc<Mutex<Instant>>,
    /// When the certificate of this machine ends that it was opened with, in seconds since 1970.
    valid_until: u64,
}

impl Dialled {
    fn is_usable(&self) -> bool {
        // Zenoh ends a link with the certificate behind it, but for one that is made in its last second.
        wall_clock() < self.valid_until
            && !self.is_other.load(Ordering::SeqCst)
            && self.last_answer.lock().elapsed() < SILENT
    }
}

impl Line {
    pub(crate) fn new(folder: Folder, identity: Identity, host: String, endpoint: String) -> Self {
        Self {
            folder,
            identity,
            host,
            endpoint,
            session: Mutex::default(),
        }
    }

    /// Opens the session, if there is none on which the host was heard of late. May take seconds.
    ///
    /// # Errors
    /// Nobody answers there, or who answers is another machine.
    pub(crate) fn open(&self) -> Result<(), String> {
        if let Some(dialled) = &*self.session.lock()
            && dialled.is_usable()
        {
            return Ok(());
        }
        self.close();
        // Read again: it may have been made anew meanwhile.
        let identity = self.folder.valid_identity().map_err(|error| error.to_string())?;
        let config = mount_config(&self.folder, &self.endpoint)?;
        let session = zenoh::open(config).wait().map_err(|error| {
            format!(
                "no connection to {}: {}; `ovos-tools fabric doctor {} {}` looks closer",
                self.endpoint,
                reason(&*error),
                self.host,
                self.endpoint
            )
        })?;
        let watched = self.watch(&session);
        if let Err(why) = self.check(&session) {
            _ = session.close().wait();
            return Err(why);
        }
        let is_other = watched?;
        *self.session.lock() = Some(Dialled {
            session,
            is_other,
            last_answer: Arc::new(Mutex::new(Instant::now())),
            valid_until: identity.valid_until,
        });
        Ok(())
    }

    /// Notes where a link is made to another machine.
    fn watch(&self, session: &Session) -> Result<Arc<AtomicBool>, String> {
        let is_other = Arc::new(AtomicBool::new(false));
        let (host, seen) = (self.host.clone(), is_other.clone());
        session
            .info()
            .link_events_listener()
            .history(true)
            .callback(move |event| {
                let is_host = event.link().auth_identifier() == Some(host.as_str());
                if event.kind() == SampleKind::Put && !is_host {
                    seen.store(true, Ordering::SeqCst);
                }
            })
            .background()
            .wait()
            .map_err(|error| format!("watch the connection: {error}"))?;
        Ok(is_other)
    }

    /// Whether the machine at the other end is the host that is meant.
    fn check(&self, session: &Session) -> Result<(), String> {
        for link in session.info().links().wait() {
            match link.auth_identifier() {
                Some(name) if name == self.host => {}
                other => {
                    return Err(format!(
                        "the machine at {} is `{}`, not `{}`: correct the name or the address",
                        self.endpoint,
                        other.unwrap_or("without a certificate"),
                        self.host
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether what is at the other end now is still the host: a session dials again by itself.
    pub(crate) fn check_again(&self) {
        let dialled = self.session.lock().clone();
        if let Some(Dialled {
            session, is_other, ..
        }) = dialled
            && self.check(&session).is_err()
        {
            // The next beat opens another one.
            is_other.store(true, Ordering::SeqCst);
        }
    }

    /// Ends the session.
    pub(crate) fn close(&self) {
        let dialled = self.session.lock().take();
        if let Some(dialled) = dialled {
            _ = dialled.session.close().wait();
        }
    }

    /// Asks a question that has one answer; `done` is called once, from any thread, with `None` where none comes in time.
    pub(crate) fn ask<T: DeserializeOwned>(
        &self,
        right: Right,
        way: Way,
        limit: Duration,
        ask: &Ask,
        done: impl FnOnce(Option<Answer<T>>) + Send + 'static,
    ) {
        let once = Once(Mutex::new(Some(done)));
        self.ask_many(right, way, limit, ask, move |reply| {
            let Some(reply) = reply else {
                return once.call(None);
            };
            let answer = serde_json::from_slice(reply).ok();
            once.call(Some(answer.unwrap_or_else(|| {
                let text = "the host's answer cannot be read; is it of another release?";
                Answer::from(Err(Failure::new(FailureKind::ValueError, text)))
            })));
        });
    }

    /// Asks a question that has one answer, and waits for it; `None` where none comes in time.
    pub(crate) fn answer<T: DeserializeOwned + Send + 'static>(
        &self,
        right: Right,
        limit: Duration,
        ask: &Ask,
    ) -> Option<Answer<T>> {
        let (sender, receiver) = channel();
        self.ask(right, Way::Urgent, limit, ask, move |answer| {
            _ = sender.send(answer);
        });
        receiver.recv_timeout(limit).ok().flatten()
    }

    /// Asks a question that has any number of answers; `heard` is called with each of them, and with `None` after the last.
    pub(crate) fn ask_many(
        &self,
        right: Right,
        way: Way,
        limit: Duration,
        ask: &Ask,
        on_answer: impl Fn(Option<&[u8]>) + Send + Sync + 'static,
    ) {
        let dialled = self.session.lock().clone();
        let end = End(on_answer);
        // Without a session the end is heard now; otherwise when Zenoh drops the callback.
        let Some(Dialled {
            session,
            is_other,
            last_answer,
            ..
        }) = dialled
        else {
            return;
        };
        if is_other.load(Ordering::SeqCst) {
            return;
        }
        let Ok(payload) = serde_json::to_string(ask) else {
            return;
        };
        // What is not urgent shares a packet with what waits beside it; where nothing waits it leaves at once, too.
        let (congestion, priority, express) = match way {
            Way::Urgent => (CongestionControl::Drop, Priority::RealTime, true),
            Way::Data => (CongestionControl::Block, Priority::Data, false),
        };
        let sent = session
            .get(key(&self.host, &self.identity.name, right))
            .payload(payload)
            .congestion_control(congestion)
            .priority(priority)
            .express(express)
            .consolidation(ConsolidationMode::None)
            .timeout(limit)
            .callback(move |reply: Reply| {
                if let Ok(sample) = reply.result()
                    && !is_other.load(Ordering::SeqCst)
                {
                    *last_answer.lock() = Instant::now();
                    (end.0)(Some(&sample.payload().to_bytes()));
                }
            })
            .wait();
        if let Err(error) = sent {
            tracing::debug!(%error, "a question was not sent");
        }
    }
}

/// Tells that no more answers come when it is dropped.
struct End<F: Fn(Option<&[u8]>)>(F);

impl<F: Fn(Option<&[u8]>)> Drop for End<F> {
    fn drop(&mut self) {
        (self.0)(None);
    }
}

/// Calls a function at most once.
struct Once<F>(Mutex<Option<F>>);

impl<F> Once<F> {
    fn call<T>(&self, value: T)
    where
        F: FnOnce(T),
    {
        let call = self.0.lock().take();
        if let Some(call) = call {
            call(value);
        }
    }
}
