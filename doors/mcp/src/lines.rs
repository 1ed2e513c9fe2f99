//! The client at stdin and stdout: one message a line. Lines are read by a task of their own, so that a stop waits for nothing,
//! and so that calls have the order of their arrival.

use std::io;
use std::sync::Arc;

use door::{Arrivals, PendingStop};
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetExtensions as _};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::{Mutex, mpsc};
use tokio::time::sleep;

use crate::answer::{self, INVALID_PARAMS, INVALID_REQUEST, refused};
use crate::arrival::{self, Arrival, MODERN, Stop};
use crate::padding::{EVERY, MotionCount};
use crate::shared::Door;

/// The longest line that is read, as over HTTP.
const LONGEST: u64 = 16 << 20;

/// How many messages may wait for the library. More are answered with an error, because what reads must not wait.
const WAITING: usize = 1024;

/// JSON-RPC: the server cannot take more.
const OVERLOADED: i32 = -32000;

type Out<W> = Arc<Mutex<Option<W>>>;

/// The connection, as the library uses it.
pub(crate) struct Lines<W> {
    messages: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    out: Out<W>,
}

struct Reading<W> {
    door: Arc<Door>,
    arrivals: Arrivals,
    messages: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
    out: Out<W>,
    moving: MotionCount,
    /// Whether a request opened the connection. The library ends a connection that begins with anything else.
    open: bool,
    /// Whether the client speaks the modern era, as far as it has said so.
    modern: bool,
}

impl<W: AsyncWrite + Send + Unpin + 'static> Lines<W> {
    /// Begins to read. `spaces` fill the way to a client that does not read.
    pub(crate) fn new(
        door: &Arc<Door>,
        read: impl AsyncRead + Send + Unpin + 'static,
        write: W,
        spaces: Option<usize>,
    ) -> Self {
        let (sender, messages) = mpsc::channel(WAITING);
        let out = Arc::new(Mutex::new(Some(write)));
        let reading = Reading {
            door: Arc::clone(door),
            arrivals: door.link.arrivals(),
            messages: sender,
            out: Arc::clone(&out),
            moving: MotionCount::default(),
            open: false,
            modern: false,
        };
        let moving = reading.moving.clone();
        let (filled, shutdown) = (Arc::clone(&out), door.link.shutdown.clone());
        if let Some(spaces) = spaces {
            door.link.tasks.spawn(async move {
                tokio::select! {
                    () = shutdown.cancelled() => {}
                    () = fill(&filled, &moving, spaces) => {}
                }
            });
        }
        let shutdown = door.link.shutdown.clone();
        door.link.tasks.spawn(async move {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = reading.read(read) => {}
            }
        });
        Self { messages, out }
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Reading<W> {
    async fn read(mut self, read: impl AsyncRead + Unpin) {
        let mut read = BufReader::new(read);
        let mut line = Vec::new();
        loop {
            line.clear();
            let got = (&mut read).take(LONGEST).read_until(b'\n', &mut line).await;
            match got {
                Ok(0) | Err(_) => return,
                Ok(_) if !line.ends_with(b"\n") && line.len() as u64 == LONGEST => {
                    tracing::warn!("a line of more than {LONGEST} bytes was dropped");
                    if !skip_line(&mut read).await {
                        return;
                    }
                }
                Ok(_) => {
                    for part in arrival::split_batch(line.trim_ascii()) {
                        self.arrived(&part);
                    }
                }
            }
        }
    }

    fn arrived(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        let arrival = {
            let listing = self.door.link.listing();
            arrival::read(text, self.door.config.find_tools, |name| listing.stops(name))
        };
        match arrival {
            Arrival::Stop(stop) => {
                let stopping = self.door.link.begin_stop(stop.tool);
                self.answer_stop(stop, stopping);
            }
            Arrival::Call { mut message, stops } => {
                // A stop of a toolbox waits neither for the client to introduce itself nor for what it does not say.
                if stops && (self.modern || !self.open) && arrival::version(&message).is_none() {
                    arrival::introduce(&mut message);
                }
                self.pass(message, true);
            }
            Arrival::Other(message) => self.pass(message, false),
            Arrival::IllFormed { id, why } => self.refuse(&id, INVALID_PARAMS, &why),
            // An answer to what is no message could be taken for one by a client that echoes.
            Arrival::Unreadable => tracing::debug!(bytes = text.len(), "dropped a line that is not JSON"),
        }
    }

    /// Gives a message to the library.
    fn pass(&mut self, message: Value, is_call: bool) {
        let id = message.get("id").cloned();
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let version = arrival::version(&message).or_else(|| arrival::asked_version(&message));
        let is_opening = version.is_some();
        let modern = version.is_some_and(|version| version >= MODERN);
        let mut read = match serde_json::from_value::<ClientJsonRpcMessage>(message) {
            Ok(read) => read,
            Err(error) => {
                tracing::debug!(%error, "dropped a message that is not one of the protocol");
                if id.is_some() || method.is_none() {
                    self.refuse(&id.unwrap_or_default(), INVALID_REQUEST, "Invalid request");
                }
                return;
            }
        };
        let id = id.unwrap_or_default();
        match &mut read {
            ClientJsonRpcMessage::Request(request) => {
                if let ClientRequest::CustomRequest(_) = &request.request
                    && let Some(why) = method.as_deref().and_then(arrival::ill_formed)
                {
                    return self.refuse(&id, INVALID_PARAMS, &why);
                }
                self.open |= is_opening;
                self.modern |= modern;
                if is_call {
                    let extensions = request.request.extensions_mut();
                    extensions.insert(Arc::new(self.arrivals.turn()));
                    extensions.insert(self.moving.clone());
                }
            }
            _ if !self.open => return,
            _ => {}
        }
        if let Err(mpsc::error::TrySendError::Full(_)) = self.messages.try_send(read) {
            let why = format!("more than {WAITING} messages wait; try again");
            self.refuse(&id, OVERLOADED, &why);
        }
    }

    fn refuse(&self, id: &Value, code: i32, why: &str) {
        let (out, answer) = (Arc::clone(&self.out), refused(id, code, why));
        self.door
            .link
            .tasks
            .spawn(async move { write(&out, &answer).await });
    }

    fn answer_stop(&self, stop: Stop, stopping: PendingStop) {
        let Some(id) = stop.id else { return };
        let modern = stop
            .version
            .map_or(self.modern, |version| version.as_str() >= MODERN);
        let out = Arc::clone(&self.out);
        self.door.link.tasks.spawn(async move {
            let result = answer::result_value(stopping.await, modern);
            write(&out, &json!({"jsonrpc": "2.0", "id": id, "result": result})).await
        });
    }
}

/// Writes spaces before the next line while something moves for a client of the modern era.
async fn fill<W: AsyncWrite + Unpin>(out: &Out<W>, moving: &MotionCount, spaces: usize) {
    let spaces = vec![b' '; spaces];
    loop {
        sleep(EVERY).await;
        if !moving.is_any() {
            continue;
        }
        let mut out = out.lock().await;
        let Some(out) = out.as_mut() else { return };
        // If it fails, the client is gone, and its calls end.
        if out.write_all(&spaces).await.is_err() || out.flush().await.is_err() {
            return;
        }
    }
}

/// Skips the rest of a line. `false` if there is no end of it.
async fn skip_line(read: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> bool {
    loop {
        let Ok(rest) = read.fill_buf().await else {
            return false;
        };
        if rest.is_empty() {
            return false;
        }
        let end = rest.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(rest.len(), |end| end + 1);
        read.consume(used);
        if end.is_some() {
            return true;
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(out: &Out<W>, message: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut out = out.lock().await;
    let Some(out) = out.as_mut() else {
        return Err(io::ErrorKind::NotConnected.into());
    };
    out.write_all(&line).await?;
    out.flush().await
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for Lines<W> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let out = Arc::clone(&self.out);
        async move { write(&out, &message).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.out.lock().await.take();
        Ok(())
    }
}
