//! One mounted server: it is kept connected, and its tools are called. Read [`keep`], then [`Caller::call`].

#[cfg(test)]
mod end_tests;
mod session;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use config::MountConfig;
use ovos_toolbox_wire::{Failure, Object};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ServerResult};
use rmcp::service::{PeerRequestOptions, ServiceError};
use rmcp::{Peer, RoleClient};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::session::serve;
use crate::checked::Checked;
use crate::connect::{Era, connect, failed};
use crate::peer::Heard;
use crate::result::Answered;
use crate::secrets::{Secrets, cut};
use crate::tools::Tools;
use crate::voice::{Backend, Level, Voice};

/// The delay before a server is tried again; it doubles up to `LAST_RETRY`.
pub(crate) const FIRST_RETRY: Duration = Duration::from_millis(500);
pub(crate) const LAST_RETRY: Duration = Duration::from_secs(60);

/// A server that worked for so long is tried again at once when it ends.
const STEADY: Duration = Duration::from_secs(30);

/// How long a failed call waits to learn why the server is gone.
pub(crate) const WHY: Duration = Duration::from_secs(1);

/// How it stands with a server.
#[derive(Clone)]
pub(crate) enum State {
    Starting,
    Ready(Peer<RoleClient>),
    Down(String),
}

/// A call of a tool.
pub(crate) struct Call {
    pub(crate) run: u64,
    pub(crate) tool: String,
    pub(crate) args: Object,
    pub(crate) wants_progress: bool,
    pub(crate) wants_content: bool,
    /// Told when the call is to end.
    pub(crate) cancelled: CancellationToken,
}

/// Why a call has no result.
pub(crate) enum NoResult {
    Failed(Failure),
    Cancelled,
}

/// One mounted server.
pub(crate) struct Mount {
    shared: Arc<Shared>,
    state: watch::Receiver<State>,
    task: JoinHandle<()>,
}

/// What the tasks and the calls of a mount share.
pub(crate) struct Shared {
    id: String,
    pub(crate) config: MountConfig,
    token: Option<String>,
    secrets: Arc<Secrets>,
    voice: Voice,
    pub(crate) heard: Arc<Heard>,
    tools: Mutex<Arc<Tools>>,
    /// How many calls the server has now.
    calls: watch::Sender<usize>,
    /// Told when a call could not reach the server.
    pub(crate) missed: Notify,
    /// Told when a call was given up before the server had answered it.
    pub(crate) unanswered: Notify,
    pub(crate) end: CancellationToken,
}

impl Mount {
    /// Begins to keep a server connected.
    pub(crate) fn open(id: &str, config: MountConfig, voice: Voice) -> Self {
        let token = config
            .bearer_env
            .as_ref()
            .and_then(|name| std::env::var(name).ok());
        let secrets = Arc::new(Secrets::of(&config, token.as_deref()));
        let shared = Arc::new(Shared {
            id: id.to_owned(),
            voice: voice.hiding(secrets.clone()),
            secrets,
            config,
            token,
            heard: Arc::default(),
            tools: Mutex::default(),
            calls: watch::Sender::default(),
            missed: Notify::new(),
            unanswered: Notify::new(),
            end: CancellationToken::new(),
        });
        let (says, state) = watch::channel(State::Starting);
        let task = tokio::spawn(keep(shared.clone(), says));
        Self { shared, state, task }
    }

    /// Its tools; those that it had while it is away.
    pub(crate) fn tools(&self) -> Arc<Tools> {
        self.shared.tools()
    }

    /// Waits until its server is kept no longer, though nothing closes it, and says why. Cancel-safe; not to be asked again.
    pub(crate) async fn given_up(&mut self) -> String {
        match (&mut self.task).await {
            Ok(()) => {
                "the command of its server, or its script, has changed: the service has to check it again"
                    .to_owned()
            }
            Err(error) => {
                format!("a bug of ovos-tools: the task that keeps its server connected has ended: {error}")
            }
        }
    }

    /// Ends the server.
    pub(crate) async fn close(self) {
        self.shared.end.cancel();
        _ = self.task.await;
    }

    /// A handle for calls, which may outlive a borrow of the mount.
    pub(crate) fn caller(&self) -> Caller {
        Caller {
            shared: self.shared.clone(),
            state: self.state.clone(),
        }
    }
}

/// Calls the tools of a mount.
pub(crate) struct Caller {
    shared: Arc<Shared>,
    state: watch::Receiver<State>,
}

impl Caller {
    /// Calls a tool. A cancelled call is told to the server, and not waited for.
    ///
    /// # Errors
    /// The tool failed, the server is not there, or the call was cancelled.
    pub(crate) async fn call(self, call: Call) -> Result<Answered, NoResult> {
        let shared = self.shared.clone();
        match self.call_as_said(call).await {
            Ok(answered) => Ok(answered.hiding(&shared.secrets)),
            Err(NoResult::Failed(failure)) => Err(NoResult::Failed(shared.secrets.failure(failure))),
            Err(NoResult::Cancelled) => Err(NoResult::Cancelled),
        }
    }

    /// The same; what it returns may still have secrets.
    async fn call_as_said(mut self, call: Call) -> Result<Answered, NoResult> {
        let Some(remote) = self.shared.tools().remote(&call.tool).map(str::to_owned) else {
            let why = format!(
                "the server of mount `{}` has no tool `{}` now",
                self.shared.id, call.tool
            );
            return Err(NoResult::Failed(Failure::new("ToolError", why)));
        };
        let peer = tokio::select! {
            () = call.cancelled.cancelled() => return Err(NoResult::Cancelled),
            peer = self.ready() => peer.map_err(NoResult::Failed)?,
        };
        let _under_way = UnderWay::new(&self.shared);
        let params = CallToolRequestParams::new(remote).with_arguments(call.args);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let mut sent = match sent.await {
            Ok(sent) => sent,
            Err(error) => return Err(NoResult::Failed(self.failure(error).await)),
        };
        // This thread also reads what the server says: nothing can have come yet.
        let _follows = call.wants_progress.then(|| {
            let voice = self.shared.voice.clone();
            self.shared
                .heard
                .follow(sent.progress_token.clone(), call.run, voice)
        });
        let answer = tokio::select! {
            answer = &mut sent.rx => answer.unwrap_or(Err(ServiceError::TransportClosed)),
            () = call.cancelled.cancelled() => {
                self.shared.unanswered.notify_one();
                tokio::spawn(async move {
                    // A server that is gone needs no cancel.
                    _ = sent.cancel(Some("the caller cancelled it, or its time is over".to_owned())).await;
                });
                return Err(NoResult::Cancelled);
            }
        };
        match answer {
            Ok(result) => self.read(&result, call.wants_content).map_err(NoResult::Failed),
            Err(error) => Err(NoResult::Failed(self.failure(error).await)),
        }
    }

    fn read(&self, result: &ServerResult, wants_content: bool) -> Result<Answered, Failure> {
        let result = serde_json::to_value(result);
        let result =
            result.map_err(|error| Failure::new("ToolError", format!("its result is no JSON: {error}")))?;
        Answered::read(&result, self.shared.config.output, wants_content)
    }

    /// Waits while the server starts.
    async fn ready(&mut self) -> Result<Peer<RoleClient>, Failure> {
        let settled = self
            .state
            .wait_for(|state| !matches!(state, State::Starting))
            .await;
        let settled = settled.map(|state| state.clone());
        match settled {
            Ok(State::Ready(peer)) => Ok(peer),
            Ok(State::Down(reason)) => {
                // The next caller need not wait for the next attempt.
                self.shared.missed.notify_one();
                Err(self.down(&reason))
            }
            _ => Err(self.down("the mount is closed")),
        }
    }

    fn down(&self, reason: &str) -> Failure {
        let why = format!("the server of mount `{}` is not there: {reason}", self.shared.id);
        Failure::new("ConnectionError", why)
    }

    async fn failure(&mut self, error: ServiceError) -> Failure {
        match error {
            ServiceError::McpError(error) => Failure {
                kind: "McpError".to_owned(),
                message: format!("{} (code {})", error.message, error.code.0),
                data: Some(json!({"code": error.code.0, "data": error.data})),
            },
            ServiceError::TransportSend(_) | ServiceError::TransportClosed => {
                let said = failed(&error);
                self.shared.missed.notify_one();
                let gone = self.state.wait_for(|state| matches!(state, State::Down(_)));
                let gone = match timeout(WHY, gone).await {
                    Ok(Ok(state)) => Some(state.clone()),
                    _ => None,
                };
                match gone {
                    Some(State::Down(reason)) => self.down(&reason),
                    _ => self.down(&said),
                }
            }
            other => Failure::new("ToolError", failed(&other)),
        }
    }
}

/// A call that the server has.
struct UnderWay(Arc<Shared>);

impl UnderWay {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.calls.send_modify(|calls| *calls += 1);
        Self(shared.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.calls.send_modify(|calls| *calls -= 1);
    }
}

impl Shared {
    /// Ends when the server has had no call for so long, pauses between calls added up. While it has one it may answer nothing
    /// else, and is well.
    pub(crate) async fn idle_for(&self, time: Duration) {
        let (mut calls, mut left) = (self.calls.subscribe(), time);
        loop {
            // Its sender lives as long as this.
            _ = calls.wait_for(|calls| *calls == 0).await;
            let pause = Instant::now();
            if timeout(left, calls.changed()).await.is_err() {
                return;
            }
            left = left.saturating_sub(pause.elapsed());
        }
    }

    fn tools(&self) -> Arc<Tools> {
        // Whole values only: a panic leaves nothing half done.
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes what the server lists.
    pub(crate) fn publish(&self, listed: &[Value], version: &str) {
        let tools = Tools::read(listed, &self.config).hiding(&self.secrets);
        let mut told = format!("{} tools, MCP {version}", tools.definitions.len());
        for problem in &tools.problems {
            told = format!("{told}; {problem}");
        }
        let told = cut(&told);
        let old = self.tools();
        if old.problems != tools.problems {
            for problem in &tools.problems {
                self.voice.log(Level::Warning, "mounts", problem);
            }
        }
        let changed = old.definitions != tools.definitions;
        let tools = Arc::new(tools);
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools;
        if changed {
            self.voice.tools_changed();
        }
        self.voice.backend(Backend::Ready, &told);
    }
}

/// Keeps a server connected until the mount is closed, or what it starts is no longer what the service has checked.
async fn keep(shared: Arc<Shared>, says: watch::Sender<State>) {
    // The service has checked it just now.
    let checked = Checked::of(&shared.config);
    let mut era = None;
    let mut delay = FIRST_RETRY;
    let mut said = String::new();
    shared
        .voice
        .backend(Backend::Starting, "its server is being started");
    loop {
        if Checked::of(&shared.config) != checked {
            return;
        }
        let began = Instant::now();
        let Some(reason) = once(&shared, &says, &checked, &mut era).await else {
            return;
        };
        if began.elapsed() > STEADY {
            delay = FIRST_RETRY;
        }
        let reason = cut(&shared.secrets.hide(&reason));
        says.send_replace(State::Down(reason.clone()));
        let told = format!("{reason}; it is tried again in {} s", delay.as_secs_f64());
        shared.voice.backend(Backend::Down, &told);
        if reason != said {
            shared.voice.log(Level::Warning, "mounts", &told);
            said = reason;
        }
        // A call that misses the server has it tried again, but not faster than at first.
        let woken = async {
            sleep(FIRST_RETRY).await;
            shared.missed.notified().await;
        };
        tokio::select! {
            () = shared.end.cancelled() => return,
            () = sleep(delay) => {}
            () = woken => {}
        }
        // A call meanwhile is answered with the reason.
        delay = (delay * 2).min(LAST_RETRY);
    }
}

/// Connects once, and serves that connection to its end. Returns why it ended; nothing if the mount is closed.
async fn once(
    shared: &Arc<Shared>,
    says: &watch::Sender<State>,
    checked: &Checked,
    era: &mut Option<Era>,
) -> Option<String> {
    let connecting = connect(
        &shared.config,
        checked,
        shared.token.as_deref(),
        *era,
        shared.heard.clone(),
        &shared.voice,
    );
    let connection = tokio::select! {
        // Dropped while it connects, a server is ended by its keeper.
        () = shared.end.cancelled() => return None,
        connection = connecting => connection,
    };
    let connection = match connection {
        Ok(connection) => connection,
        Err(failed) => {
            // It may be another server now; and one that the probe confuses may understand the old greeting.
            *era = match era {
                None if failed.may_be_legacy => Some(Era::Legacy),
                _ => None,
            };
            return Some(failed.reason);
        }
    };
    *era = Some(connection.era);
    serve(shared, says, connection).await
}
