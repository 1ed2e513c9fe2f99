//! Reads the data socket of a process. Read [`Reader::read`], then [`Reader::serve`].

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ovos_toolbox_wire::Manifest;
use parking_lot::Mutex;
use protocol::{MAX_CONTROL, Notice, REMOTE};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::transport::greeting;
use crate::transport::members::Members;
use crate::transport::peer::Peer;
use crate::transport::sockets::Sockets;
use program::data_lane::DataReader;
use program::{frame, json};

/// Hears what a process says on its data socket. A task of the runtime reads it, so that an answer reaches the task of its call
/// without waking another thread; when the process has ended, its keeper reads the rest.
pub(super) struct Reader {
    peer: Arc<Peer>,
    sockets: Arc<Sockets>,
    members: Option<Arc<Members>>,
    state: Mutex<State>,
    /// Why nothing more is read. Outside the lock, because the keeper must not wait while a long notice is read.
    ended: OnceLock<String>,
}

struct State {
    lane: DataReader,
    /// Whether the hello was read.
    greeted: bool,
}

/// The data socket, as the runtime watches it.
struct DataSocket(Arc<Sockets>);

impl AsRawFd for DataSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.data.stream().as_raw_fd()
    }
}

impl Reader {
    pub(super) fn new(peer: Arc<Peer>, sockets: Arc<Sockets>, members: Option<Arc<Members>>) -> Self {
        let state = State {
            lane: DataReader::new(),
            greeted: false,
        };
        Self {
            peer,
            sockets,
            members,
            state: Mutex::new(state),
            ended: OnceLock::new(),
        }
    }

    /// Why nothing more is read, if so.
    pub(super) fn ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// Hears what the process says until it ends, and sends what its socket did not take at once.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn serve(self: Arc<Self>) {
        if let Err(error) = self.watch().await {
            self.end(format!("its data connection broke: {error}"));
        }
    }

    #[expect(
        deprecated,
        reason = "its successor is unsafe, for types whose descriptor changes or is closed early; those of these two never do"
    )]
    async fn watch(self: &Arc<Self>) -> std::io::Result<()> {
        let lane = &self.sockets.data;
        let woken = AsyncFd::with_interest(lane.woken().clone(), Interest::READABLE)?;
        loop {
            // A socket that takes everything at once is not watched for room: each order that the process reads would wake a
            // thread.
            let behind = lane.is_behind();
            let interest = if behind {
                Interest::READABLE.add(Interest::WRITABLE)
            } else {
                Interest::READABLE
            };
            let socket = AsyncFd::with_interest(DataSocket(self.sockets.clone()), interest)?;
            while lane.is_behind() == behind {
                tokio::select! {
                    ready = socket.readable() => {
                        let mut ready = ready?;
                        if self.read_in_turn().await {
                            tokio::task::yield_now().await;
                            continue;
                        }
                        if self.ended().is_some() {
                            return Ok(());
                        }
                        ready.clear_ready();
                    }
                    ready = socket.writable(), if behind => {
                        let mut ready = ready?;
                        lane.flush();
                        ready.clear_ready();
                    }
                    ready = woken.readable() => {
                        let mut ready = ready?;
                        lane.woken().clear();
                        ready.clear_ready();
                    }
                }
            }
        }
    }

    /// Reads, on a thread for blocking work if there is much to read. True if there may be more.
    async fn read_in_turn(self: &Arc<Self>) -> bool {
        if !self.read() {
            return false;
        }
        let reader = self.clone();
        let read = tokio::task::spawn_blocking(move || while reader.read() {});
        // An error means that the runtime ends, or that a notice could not be heard because of a bug.
        read.await.is_err()
    }

    /// Hears what one read brings. True if there may be more.
    fn read(&self) -> bool {
        self.read_under(&mut self.state.lock())
    }

    /// Hears what is left, as far as it is heard within `limit`.
    pub(super) fn read_rest(&self, limit: Duration) {
        let until = std::time::Instant::now() + limit;
        let Some(mut state) = self.state.try_lock_until(until) else {
            return;
        };
        // Another process may hold the other end open, and write there.
        while self.read_under(&mut state) && std::time::Instant::now() < until {}
    }

    fn read_under(&self, State { lane, greeted }: &mut State) -> bool {
        if self.ended().is_some() {
            return false;
        }
        let read = lane.read(&self.sockets.data, |body| self.take(greeted, body));
        read.unwrap_or_else(|end| {
            self.end(end.to_string());
            false
        })
    }

    fn end(&self, reason: String) {
        // The first reason counts.
        _ = self.ended.set(reason);
        self.sockets.wake.signal();
    }

    /// Hears the body of a frame.
    fn take(&self, greeted: &mut bool, body: &[u8]) -> Result<(), String> {
        let (peer, sockets) = (&self.peer, &self.sockets);
        let notice = frame::read(body).map_err(|error| error.to_string())?;
        if !*greeted {
            if body.len() > MAX_CONTROL {
                return Err(format!(
                    "its hello is {} bytes; the limit is {MAX_CONTROL}",
                    body.len()
                ));
            }
            match &self.members {
                Some(members) => greet_several(&notice, members)?,
                None => greet(&notice, &peer.manifest.id)?,
            }
            if let Notice::Hello(hello) = &notice {
                let remote = hello.features.iter().any(|feature| feature == REMOTE);
                sockets.remote.store(remote, Ordering::SeqCst);
            }
            *greeted = true;
            sockets.greeted.send_replace(true);
            return Ok(());
        }
        let closed = matches!(notice, Notice::Closed { .. });
        if let Some(members) = &self.members {
            let toolbox = frame::address(body).map_err(|error| error.to_string())?;
            if !members.hear(peer, toolbox.as_deref(), notice) {
                let of = toolbox.map_or_else(|| "no toolbox".to_owned(), |id| format!("toolbox {id:?}"));
                peer.unasked.complain(&format!(
                    "it sent a notice about {of}, which is not open or has no such notice"
                ));
            }
        } else {
            peer.hear(notice);
        }
        if closed {
            sockets.wake.signal();
        }
        Ok(())
    }
}

/// Checks the first notice. A program may send another manifest than when it was examined, but not another toolbox id, and
/// exactly one.
fn greet(notice: &Notice, id: &str) -> Result<(), String> {
    let hello = greeting::hello(notice).map_err(|what| format!("it {what}"))?;
    if greeting::has_several(hello) {
        return Err("its hello now names several toolboxes; run `ovos-tools reload`".to_owned());
    }
    // Its answer to the order to open has the reason, and the kind of the failure.
    if hello.refusal.is_some() {
        return Ok(());
    }
    if let [manifest] = hello.toolboxes.as_slice()
        && json::read::<Manifest>(manifest.text()).is_ok_and(|manifest| manifest.id == id)
    {
        return Ok(());
    }
    Err(format!(
        "its hello no longer names toolbox `{id}`; run `ovos-tools reload`"
    ))
}

/// As `greet`, for a program that is several toolboxes.
fn greet_several(notice: &Notice, members: &Members) -> Result<(), String> {
    let hello = greeting::hello(notice).map_err(|what| format!("it {what}"))?;
    if !greeting::has_several(hello) {
        return Err("its hello no longer names several toolboxes; run `ovos-tools reload`".to_owned());
    }
    let offers = greeting::several(hello).map_err(|what| format!("it {what}"))?;
    members.list(&offers);
    Ok(())
}
