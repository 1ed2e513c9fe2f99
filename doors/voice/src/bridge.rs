//! The conversations of this program, and the bus requests to join more of them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use client::payload::{VoiceJoinRequest, VoiceJoinResponse};
use client::{Client, Request, Requests};
use config::{VoiceDoor, is_this_machine};
use door::Door;
use futures_util::FutureExt as _;
use ovos_toolbox_wire::FailureKind;
use parking_lot::Mutex;
use rustls::ClientConfig;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use url::Url;

use crate::chat::Chat;
use crate::claim::ClaimError;
use crate::dialect::{Dialect, Key, Target};
use crate::hume::Hume;
use crate::line::{ChatError, Line};
use crate::openai::OpenAi;

/// How many conversations are served at the same time.
const MAX_CHATS: usize = 8;

/// How many requests to join are handled at the same time. Each may dial for 10 s.
const MAX_ASKING: usize = 32;

/// The name of a request to join in the rules of the policy.
const WORK: &str = "voice.join";

/// The names of the dialects, for error messages.
const DIALECTS: &str = "\"hume\" or \"openai\"";

/// A speech service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Service {
    Hume,
    OpenAi,
}

/// The lock that is held while a conversation is joined.
type Turn = Arc<tokio::sync::Mutex<()>>;

/// The conversations of this program.
pub(crate) struct Bridge {
    pub(crate) door: Arc<Door>,
    pub(crate) config: VoiceDoor,
    pub(crate) trust: Arc<ClientConfig>,
    pub(crate) claims: PathBuf,
    places: Arc<Semaphore>,
    asking: Arc<Semaphore>,
    /// The conversations that are being joined now.
    joining: Mutex<HashMap<(Service, String), Turn>>,
}

/// Why a conversation is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    #[error("{0}")]
    Request(String),
    /// An error with its kind.
    #[error("{0}")]
    Read(String),
    #[error("{MAX_ASKING} requests to join wait already: ask again later")]
    Asked,
    #[error("the voice door is shutting down: ask again when it runs")]
    Closes,
    #[error("this door already serves {MAX_CHATS} conversations: end one first")]
    Full,
    #[error("set the environment variable {0} to the API key where the door is started")]
    Key(String),
    #[error("{0}")]
    Chat(#[from] ChatError),
}

impl JoinError {
    /// The kind of the error: the word before the colon of an answer's `error`.
    fn kind(&self) -> FailureKind {
        match self {
            Self::Request(_) | Self::Read(_) | Self::Chat(ChatError::Target(_)) => FailureKind::ValueError,
            Self::Full | Self::Asked | Self::Closes => FailureKind::BusyError,
            Self::Key(_) | Self::Chat(_) => FailureKind::RuntimeError,
        }
    }
}

impl Bridge {
    pub(crate) fn new(
        door: Arc<Door>,
        config: VoiceDoor,
        trust: Arc<ClientConfig>,
        claims: PathBuf,
    ) -> Arc<Self> {
        Arc::new(Self {
            door,
            config,
            trust,
            claims,
            places: Arc::new(Semaphore::new(MAX_CHATS)),
            asking: Arc::new(Semaphore::new(MAX_ASKING)),
            joining: Mutex::default(),
        })
    }

    fn line(&self, service: Service, client: Client) -> Result<Arc<Line>, JoinError> {
        let (dialect, url, variable): (Box<dyn Dialect>, &Url, &str) = match service {
            Service::Hume => {
                let hume = &self.config.hume;
                let dialect = Hume {
                    url: hume.url.clone(),
                    config_id: hume.config_id.clone(),
                };
                (Box::new(dialect), &hume.url, &hume.key_env)
            }
            Service::OpenAi => {
                let openai = &self.config.openai;
                let url = openai.url.clone();
                (Box::new(OpenAi { url }), &openai.url, &openai.key_env)
            }
        };
        let key = std::env::var(variable).ok();
        let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        // A service on this machine is used in tests and needs no key.
        if key.is_none() && !is_this_machine(url) {
            return Err(JoinError::Key(variable.to_owned()));
        }
        Ok(Arc::new(Line {
            door: Arc::clone(&self.door),
            client,
            dialect,
            key: key.map(Key),
            trust: Arc::clone(&self.trust),
            config: self.config.clone(),
            claims: self.claims.clone(),
        }))
    }

    /// Opens a conversation whose calls this client makes. The returned future serves it to its end.
    ///
    /// # Cancel safety
    /// Safe: a dropped attempt leaves nothing behind.
    pub(crate) async fn open(
        &self,
        service: Service,
        target: Target,
        client: Client,
    ) -> Result<impl Future<Output = Result<(), ChatError>> + Send + use<>, JoinError> {
        let line = self.line(service, client)?;
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| JoinError::Full)?;
        let leave = self.door.shutdown.clone();
        let (chat, socket) = Chat::open(line, target, leave).await?;
        Ok(async move {
            let _place = place;
            chat.serve(socket).await
        })
    }

    /// Answers requests to join conversations until the door closes, and then those that still wait.
    ///
    /// # Cancel safety
    /// If dropped, requests that are under way are still answered.
    pub(crate) async fn answer_joins(self: Arc<Self>, mut requests: Requests) {
        loop {
            let request = tokio::select! {
                () = self.door.shutdown.cancelled() => break,
                request = requests.next() => request,
            };
            let Some(request) = request else { return };
            let Ok(place) = Arc::clone(&self.asking).try_acquire_owned() else {
                self.answer(&request, Err(JoinError::Asked));
                continue;
            };
            let bridge = Arc::clone(&self);
            self.door.tasks.spawn(async move {
                let _place = place;
                let joined = tokio::select! {
                    joined = bridge.join(&request) => joined,
                    () = bridge.door.shutdown.cancelled() => Err(JoinError::Closes),
                };
                bridge.answer(&request, joined);
            });
        }
        while let Some(Some(request)) = requests.next().now_or_never() {
            self.answer(&request, Err(JoinError::Closes));
        }
    }

    fn answer(&self, request: &Request, joined: Result<Value, JoinError>) {
        let answer = joined.unwrap_or_else(|error| {
            tracing::warn!(%error, "no conversation is joined");
            match error {
                JoinError::Read(error) => json!({ "error": error }),
                error => json!({"error": format!("{}: {error}", error.kind())}),
            }
        });
        if let Err(error) = self.door.client.answer(request, &answer) {
            tracing::warn!(%error, "a request to join got no answer");
        }
    }

    async fn join(self: &Arc<Self>, request: &Request) -> Result<Value, JoinError> {
        if let Some(error) = request.refused() {
            return Err(JoinError::Read(error.to_owned()));
        }
        let join: VoiceJoinRequest =
            serde_json::from_value(Value::Object(request.data().clone())).map_err(|error| {
                JoinError::Request(format!(
                    "expected dialect and the id of the conversation: {error}"
                ))
            })?;
        let (service, chat) = conversation(&join).map_err(JoinError::Request)?;
        let client = self.door.client_for(request, WORK).map_err(JoinError::Read)?;
        // Later requests for the same conversation wait for the outcome of the first.
        let turn = Arc::clone(self.joining.lock().entry((service, chat.clone())).or_default());
        let joined = {
            let _turn = turn.lock().await;
            self.open(service, Target::Joined(chat.clone()), client).await
        };
        let mut joining = self.joining.lock();
        // One reference is this one's, the other the table's.
        if Arc::strong_count(&turn) <= 2 {
            joining.remove(&(service, chat));
        }
        drop(joining);
        match joined {
            Ok(serving) => _ = self.door.tasks.spawn(serving),
            // The conversation is requested twice, for example by an app that requests it at every start.
            Err(JoinError::Chat(ChatError::Claim(ClaimError::Taken))) => {}
            Err(error) => return Err(error),
        }
        let answer = VoiceJoinResponse {
            request: join,
            joined: true,
        };
        Ok(json!(answer))
    }
}

/// Returns the conversation that a request names.
fn conversation(asked: &VoiceJoinRequest) -> Result<(Service, String), String> {
    let (service, key, chat) = match asked.dialect.as_str() {
        "hume" => (Service::Hume, "chat_id", &asked.chat_id),
        "openai" => (Service::OpenAi, "call_id", &asked.call_id),
        other => return Err(format!("dialect: expected {DIALECTS}, found {other:?}")),
    };
    match chat {
        Some(chat) => Ok((service, chat.clone())),
        None => Err(format!("{key} is missing: {} needs it", asked.dialect)),
    }
}
