//! One mounted server: keeps it connected, and calls its tools. Read [`keep`], then [`Caller::call`].

#[cfg(test)]
mod end_tests;
mod session;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use config::MountConfig;
use ovos_toolbox_wire::{Failure, Object};
use parking_lot::Mutex;
use program::{Steps, level};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ServerResult};
use rmcp::service::{PeerRequestOptions, ServiceError};
use rmcp::{Peer, RoleClient};
use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::session::serve;
use self::shared::{FIRST_RETRY, LAST_RETRY, Shared, State, WHY};
use crate::connect::{Era, TokenRefusal, connect, failed};
use crate::credentials::Credentials;
use crate::reporter::{Backend, Reporter};
use crate::result::CallOutput;
use crate::secrets::{Secrets, cut};
use crate::server_files::ServerFiles;
use crate::tools::Tools;

/// A server that worked for this long and ends is reconnected at once.
const STEADY: Duration = Duration::from_secs(30);

/// A call of a tool.
pub(crate) struct Call {
    /// What reports its progress, if its caller wants any.
    pub(crate) steps: Option<Steps>,
    pub(crate) tool: String,
    pub(crate) args: Object,
    pub(crate) wants_content: bool,
    /// Cancelled when the call should end.
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

impl Mount {
    /// Starts to keep a server connected.
    pub(crate) fn open(id: &str, config: MountConfig, reporter: Reporter) -> Self {
        let token = config
            .bearer_env
            .as_ref()
            .and_then(|name| std::env::var(name).ok());
        let secrets = Arc::new(Secrets::of(&config, token.as_deref()));
        let shared = Arc::new(Shared {
            id: id.to_owned(),
            reporter: reporter.hiding(secrets.clone()),
            secrets,
            config,
            token,
            notifications: Arc::default(),
            tools: Mutex::default(),
            calls: watch::Sender::default(),
            missed: Notify::new(),
            unanswered: Notify::new(),
            end: CancellationToken::new(),
        });
        let (states, state) = watch::channel(State::Starting);
        let task = tokio::spawn(keep(shared.clone(), states));
        Self { shared, state, task }
    }

    /// Waits until this program no longer keeps the server connected, although the mount was not closed, and returns the reason.
    /// Cancel-safe; must not be called again after it has returned.
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

    /// Returns a handle for calls, which may outlive a borrow of the mount.
    pub(crate) fn caller(&self) -> Caller {
        Caller {
            shared: self.shared.clone(),
            state: self.state.clone(),
        }
    }
}

/// Calls the tools of a mount.
#[derive(Clone)]
pub(crate) struct Caller {
    shared: Arc<Shared>,
    state: watch::Receiver<State>,
}

impl Caller {
    /// The tools of the server. If it is away, those that it had last.
    pub(crate) fn tools(&self) -> Arc<Tools> {
        self.shared.tools()
    }

    /// Calls a tool. The server is told about a cancelled call, and its answer is not waited for.
    ///
    /// # Errors
    /// The tool failed, the server is not there, or the call was cancelled.
    pub(crate) async fn call(self, call: Call) -> Result<CallOutput, NoResult> {
        let shared = self.shared.clone();
        match self.call_as_said(call).await {
            Ok(answered) => Ok(answered.hiding(&shared.secrets)),
            Err(NoResult::Failed(failure)) => Err(NoResult::Failed(shared.secrets.failure(failure))),
            Err(NoResult::Cancelled) => Err(NoResult::Cancelled),
        }
    }

    /// Calls a tool; the result may still contain secrets.
    async fn call_as_said(mut self, call: Call) -> Result<CallOutput, NoResult> {
        let Some(remote) = self.shared.tools().remote(&call.tool).map(str::to_owned) else {
            let why = format!(
                "the MCP server of mount `{}` no longer offers tool `{}`",
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
        // This thread also reads from the server, so no progress can have arrived yet.
        let _follows = call.steps.map(|steps| {
            let reporter = self.shared.reporter.clone();
            self.shared
                .notifications
                .follow(sent.progress_token.clone(), steps, reporter)
        });
        let answer = tokio::select! {
            answer = &mut sent.rx => answer.unwrap_or(Err(ServiceError::TransportClosed)),
            () = call.cancelled.cancelled() => {
                self.shared.unanswered.notify_one();
                tokio::spawn(async move {
                    // A server that is gone needs no cancel.
                    _ = sent.cancel(Some("the caller cancelled it, or its timeout has passed".to_owned())).await;
                });
                return Err(NoResult::Cancelled);
            }
        };
        match answer {
            Ok(result) => self.read(&result, call.wants_content).map_err(NoResult::Failed),
            Err(error) => Err(NoResult::Failed(self.failure(error).await)),
        }
    }

    fn read(&self, result: &ServerResult, wants_content: bool) -> Result<CallOutput, Failure> {
        let result = serde_json::to_value(result);
        let result =
            result.map_err(|error| Failure::new("ToolError", format!("its result is not JSON: {error}")))?;
        CallOutput::read(&result, self.shared.config.output, wants_content)
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
        let why = format!(
            "the MCP server of mount `{}` is unavailable: {reason}",
            self.shared.id
        );
        Failure::new("ConnectionError", why)
    }

    /// The failure of a call for which the token does not allow enough. A person has to sign in again, or replace the token.
    fn allowed_too_little(&self, challenge: &str) -> Failure {
        let id = &self.shared.id;
        let Some(credentials) = Credentials::of(&self.shared.config, &self.shared.secrets) else {
            let why = format!(
                "the token of mount `{id}` does not allow what its MCP server asks for; its owner has to replace it with one that does, \
                 in the variable that bearer_env names or in the header Authorization"
            );
            return Failure::new("PermissionError", why);
        };
        if let Err(error) = credentials.want(challenge) {
            let why = format!(
                "cannot save what the MCP server of mount `{id}` asks for at the next sign-in: {error}"
            );
            self.shared
                .reporter
                .log(level::WARN, "mounts", &self.shared.secrets.hide(&why));
        }
        let why = format!(
            "the sign-in of mount `{id}` does not allow what its MCP server asks for; a person has to run `ovos-tools mounts sign-in {id}` \
             as the user of the service"
        );
        Failure::new("PermissionError", why)
    }

    async fn failure(&mut self, error: ServiceError) -> Failure {
        if let Some(TokenRefusal::More(challenge)) = TokenRefusal::of(&error) {
            return self.allowed_too_little(challenge);
        }
        match error {
            ServiceError::McpError(error) => Failure {
                kind: "McpError".to_owned(),
                message: format!("{} (code {})", error.message, error.code.0),
                data: Some(json!({"code": error.code.0, "data": error.data})),
            },
            ServiceError::TransportSend(_) | ServiceError::TransportClosed => {
                let text = failed(&error);
                self.shared.missed.notify_one();
                let gone = self.state.wait_for(|state| matches!(state, State::Down(_)));
                let gone = match timeout(WHY, gone).await {
                    Ok(Ok(state)) => Some(state.clone()),
                    _ => None,
                };
                match gone {
                    Some(State::Down(reason)) => self.down(&reason),
                    _ => self.down(&text),
                }
            }
            other => Failure::new("ToolError", failed(&other)),
        }
    }
}

/// A call that the server has now.
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

/// Keeps a server connected until the mount is closed, or until its files are no longer those that the service has checked.
async fn keep(shared: Arc<Shared>, states: watch::Sender<State>) {
    // The service has checked these files just now.
    let checked = ServerFiles::of(&shared.config);
    let mut era = None;
    let mut delay = FIRST_RETRY;
    let mut last_reason = String::new();
    shared
        .reporter
        .backend(Backend::Starting, "its MCP server is starting");
    loop {
        if ServerFiles::of(&shared.config) != checked {
            return;
        }
        let began = Instant::now();
        let Some(reason) = serve_once(&shared, &states, &checked, &mut era).await else {
            return;
        };
        if began.elapsed() > STEADY {
            delay = FIRST_RETRY;
        }
        let reason = cut(&shared.secrets.hide(&reason));
        states.send_replace(State::Down(reason.clone()));
        let message = format!("{reason}; retrying in {} s", delay.as_secs_f64());
        shared.reporter.backend(Backend::Down, &message);
        if reason != last_reason {
            shared.reporter.log(level::WARN, "mounts", &message);
            last_reason = reason;
        }
        // A call that finds no server causes another attempt, but not faster than the first delay.
        let woken = async {
            sleep(FIRST_RETRY).await;
            shared.missed.notified().await;
        };
        tokio::select! {
            () = shared.end.cancelled() => return,
            () = sleep(delay) => {}
            () = woken => {}
        }
        // A call during the delay is answered with the reason.
        delay = (delay * 2).min(LAST_RETRY);
    }
}

/// Connects once, and serves that connection to its end. Returns why it ended; `None` if the mount is closed.
async fn serve_once(
    shared: &Arc<Shared>,
    states: &watch::Sender<State>,
    checked: &ServerFiles,
    era: &mut Option<Era>,
) -> Option<String> {
    let credentials = Credentials::of(&shared.config, &shared.secrets);
    let connecting = connect(
        &shared.config,
        checked,
        shared.token.as_deref(),
        credentials.as_ref(),
        *era,
        shared.notifications.clone(),
        &shared.reporter,
    );
    let connection = tokio::select! {
        // If the attempt is dropped while it connects, the keeper ends the server.
        () = shared.end.cancelled() => return None,
        connection = connecting => connection,
    };
    let connection = match connection {
        Ok(connection) => connection,
        Err(failed) => {
            // The server may be another one now. A server that the probe confuses may understand the old greeting.
            *era = match era {
                None => failed.next,
                Some(_) => None,
            };
            return Some(failed.into_reason(&shared.id));
        }
    };
    *era = Some(connection.era);
    serve(shared, states, connection).await
}
