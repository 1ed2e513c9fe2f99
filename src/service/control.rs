//! The control socket: approvals, refusals, resumes and stops from people on this machine, independent of the bus.
//!
//! The kernel identifies the user at the other end: only the user of the service and root are served. Each line is a
//! request of at most 64 KiB, answered in one line; only a request for the facts is answered in many. A stop is never refused: if the
//! rest of its line cannot be read, it stops everything. Read [`Control::start`].

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixStream as Probe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::fact_record::FactRecord;
use crate::api::Api;
use crate::policy::{PendingCall, Policy};
use client::payload::{ControlAnswer, ControlRequest, FactPosition, StopResponse, WaitingCall};
use engine::StopTarget;
use host::descriptors;

/// The longest line, in bytes.
const LINE: u64 = 64 << 10;

/// How long a connection may be silent, and how long it may take to read its answer.
const SILENCE: Duration = Duration::from_secs(10);

/// How many connections are served at a time; further ones are closed.
const CONNECTIONS: usize = 64;

/// How many of them may follow the facts: these connections last, and must leave places for a stop.
const STREAMS: usize = 8;

/// Serves the control socket.
pub(super) struct Control {
    pub(super) api: Arc<Api>,
    pub(super) policy: Arc<Policy>,
    pub(super) record: Arc<FactRecord>,
}

/// The bound socket; its drop removes the socket's file.
struct Bound {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for Bound {
    fn drop(&mut self) {
        // If this fails, the next service removes the file.
        _ = std::fs::remove_file(&self.path);
    }
}

impl Control {
    /// Listens, and serves until `end` is cancelled.
    ///
    /// # Errors
    /// The socket cannot be made, or another service listens on it.
    pub(super) fn start(self, path: &Path, tracker: &TaskTracker, end: CancellationToken) -> io::Result<()> {
        let bound = bind(path)?;
        let own = tracker.clone();
        tracker.spawn(async move {
            let control = Arc::new(self);
            tokio::select! {
                () = control.accept(&bound.listener, &own, &end) => {}
                () = end.cancelled() => {}
            }
        });
        Ok(())
    }

    async fn accept(
        self: &Arc<Self>,
        listener: &UnixListener,
        tracker: &TaskTracker,
        end: &CancellationToken,
    ) {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let streams = Arc::new(Semaphore::new(STREAMS));
        loop {
            let (stream, spare) = match listener.accept().await {
                Ok((stream, _)) => (stream, None),
                Err(error) => {
                    // The usual cause is a lack of descriptors, and this may be a stop.
                    let spare = descriptors::spare();
                    tracing::warn!(%error, "accepted a connection to the control socket with a reserved file descriptor");
                    let accepted = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
                    match accepted {
                        Ok(Ok((stream, _))) => (stream, Some(spare)),
                        Ok(Err(_)) => {
                            tokio::time::sleep(Duration::from_millis(100)).await;
                            continue;
                        }
                        Err(_) => continue,
                    }
                }
            };
            let Ok(place) = places.clone().try_acquire_owned() else {
                continue;
            };
            if !is_operator(&stream) {
                tracing::warn!("another user connected to the control socket and was turned away");
                continue;
            }
            let (control, streams, end) = (self.clone(), streams.clone(), end.clone());
            tracker.spawn(async move {
                tokio::select! {
                    served = control.serve(stream, &streams) => {
                        if let Err(error) = served {
                            tracing::debug!(%error, "a connection to the control socket broke");
                        }
                    }
                    () = end.cancelled() => {}
                }
                drop((place, spare));
            });
        }
    }

    async fn serve(&self, stream: UnixStream, streams: &Semaphore) -> io::Result<()> {
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        loop {
            let mut line = Vec::new();
            let mut bounded = (&mut read).take(LINE);
            let count = timeout(SILENCE, bounded.read_until(b'\n', &mut line)).await;
            let count = count.unwrap_or_else(|silent| Err(silent.into()));
            if !says_stop(&line) && count? == 0 {
                return Ok(());
            }
            let whole = line.last() == Some(&b'\n');
            let response = match serde_json::from_slice(&line) {
                Ok(request @ ControlRequest::Stop { .. }) => self.respond(request).await,
                _ if says_stop(&line) => self.respond(ControlRequest::Stop { toolbox_id: None }).await,
                _ if !whole => refused(format!("a request is one line of at most {LINE} bytes")).into(),
                Ok(request) => self.respond(request).await,
                Err(error) => refused(format!("not a request: {error}")).into(),
            };
            let answer = match response {
                Response::Answer(answer) => answer,
                Response::Facts { after } => match streams.try_acquire() {
                    Ok(_place) => return self.record.stream(after, &mut read, &mut write, SILENCE).await,
                    Err(_) => refused(format!(
                        "{STREAMS} programs already follow the record of calls, which is the limit: end one of them"
                    )),
                },
            };
            let mut answer = serde_json::to_vec(&answer)?;
            answer.push(b'\n');
            timeout(SILENCE, write.write_all(&answer)).await??;
            if !whole {
                return Ok(());
            }
        }
    }

    async fn respond(&self, request: ControlRequest) -> Response {
        let now = Instant::now();
        let answer = match request {
            ControlRequest::Waiting {} => {
                let mut confirmations = self.policy.confirmations();
                let calls = confirmations.waiting(now).iter();
                let mut calls: Vec<_> = calls.map(|call| line(call, now)).collect();
                calls.extend(confirmations.refused(now).map(|call| WaitingCall {
                    refused: true,
                    ..line(call, now)
                }));
                waiting(calls)
            }
            ControlRequest::Approve { id } => match self.policy.confirmations().approve(&id, now) {
                Ok(call) => {
                    tracing::info!(id, principal = %call.subject.asker(), tool = call.subject.tool(), "approved");
                    waiting(vec![line(&call, now)])
                }
                Err(unknown) => refused(unknown.to_string()),
            },
            ControlRequest::Deny { id } => match self.policy.confirmations().deny(&id, now) {
                Ok(call) => {
                    tracing::info!(id, principal = %call.subject.asker(), tool = call.subject.tool(), "denied");
                    waiting(vec![line(&call, now)])
                }
                Err(unknown) => refused(unknown.to_string()),
            },
            ControlRequest::Resume { toolbox_id, stop_id } => toolboxes(
                self.api
                    .lift_stop(&toolbox_id, &stop_id, "the control socket")
                    .await,
            ),
            ControlRequest::Facts { after } => return Response::Facts { after },
            ControlRequest::Stop { toolbox_id } => {
                let target = toolbox_id.map_or(StopTarget::All, |id| StopTarget::Toolboxes(vec![id]));
                let stopped = self.api.stop(&target, "the control socket").await;
                toolboxes(StopResponse { toolboxes: stopped })
            }
        };
        answer.into()
    }
}

/// What follows a request.
enum Response {
    /// One line.
    Answer(ControlAnswer),
    /// The facts after one that is known, without an end.
    Facts { after: Option<FactPosition> },
}

impl From<ControlAnswer> for Response {
    fn from(answer: ControlAnswer) -> Self {
        Self::Answer(answer)
    }
}

/// Whether a line asks for a stop: as JSON or, if it is not readable as a whole, by its beginning.
fn says_stop(line: &[u8]) -> bool {
    const BEGINS: &[u8] = br#"{"do":"stop""#;
    let written = line.iter().filter(|byte| !byte.is_ascii_whitespace());
    written.take(BEGINS.len()).eq(BEGINS)
        || serde_json::from_slice::<Value>(line).is_ok_and(|request| request["do"] == "stop")
}

fn waiting(calls: Vec<WaitingCall>) -> ControlAnswer {
    ControlAnswer {
        waiting: Some(calls),
        ..ControlAnswer::default()
    }
}

fn toolboxes(response: StopResponse) -> ControlAnswer {
    ControlAnswer {
        toolboxes: Some(response.toolboxes),
        ..ControlAnswer::default()
    }
}

fn refused(error: String) -> ControlAnswer {
    ControlAnswer {
        error: Some(error),
        ..ControlAnswer::default()
    }
}

fn line(call: &PendingCall, now: Instant) -> WaitingCall {
    let left = call.until.saturating_duration_since(now);
    WaitingCall {
        id: call.id.clone(),
        principal: call.subject.asker().to_string(),
        toolbox_id: call.subject.toolbox_id().to_owned(),
        tool: call.subject.tool().to_owned(),
        text: call.description.text.clone(),
        plan: call.description.plan.clone(),
        approved: call.approved,
        refused: false,
        expires_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
    }
}

/// Whether the other end is the user of the service, or root.
fn is_operator(stream: &UnixStream) -> bool {
    let own = geteuid().as_raw();
    stream
        .peer_cred()
        .is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}

fn bind(path: &Path) -> io::Result<Bound> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    if Probe::connect(path).is_ok() {
        return Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another service listens on it",
        ));
    }
    match std::fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    let bound = Bound {
        listener,
        path: path.to_owned(),
    };
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(bound)
}
