//! The conversations of this program, and the requests on the bus to join more of them.

use std::path::PathBuf;
use std::sync::Arc;

use client::payload::{VoiceJoinRequest, VoiceJoinResponse};
use client::{Request, Requests};
use config::VoiceDoor;
use door::Door;
use rustls::ClientConfig;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use url::{Host, Url};

use crate::chat::Chat;
use crate::claim::ClaimError;
use crate::dialect::{Dialect, Key, Target};
use crate::hume::Hume;
use crate::line::{ChatError, Line};
use crate::openai::OpenAi;

/// How many conversations are served at the same time.
const MAX_CHATS: usize = 8;

/// The names of the dialects.
const DIALECTS: &str = "\"hume\" or \"openai\"";

/// A speech service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Hume,
    OpenAi,
}

/// The conversations of this program.
pub(crate) struct Bridge {
    pub(crate) door: Arc<Door>,
    pub(crate) config: VoiceDoor,
    pub(crate) trust: Arc<ClientConfig>,
    pub(crate) claims: PathBuf,
    places: Arc<Semaphore>,
}

/// Why a conversation is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    #[error("{0}")]
    Request(String),
    #[error("{MAX_CHATS} conversations are served already")]
    Full,
    #[error("the environment variable {0} does not hold a key")]
    Key(String),
    #[error("{0}")]
    Chat(#[from] ChatError),
}

impl JoinError {
    /// The word before the colon of an answer's `error`.
    fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) | Self::Chat(ChatError::Target(_)) => "ValueError",
            Self::Full => "BusyError",
            Self::Key(_) | Self::Chat(_) => "RuntimeError",
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
        })
    }

    fn line(&self, service: Service) -> Result<Arc<Line>, JoinError> {
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
        // A service on this machine is a test's.
        if key.is_none() && !is_here(url) {
            return Err(JoinError::Key(variable.to_owned()));
        }
        Ok(Arc::new(Line {
            door: Arc::clone(&self.door),
            dialect,
            key: key.map(Key),
            trust: Arc::clone(&self.trust),
            config: self.config.clone(),
            claims: self.claims.clone(),
        }))
    }

    /// Opens a conversation; what it returns serves it to its end.
    ///
    /// # Cancel safety
    /// Safe: a dropped attempt leaves nothing behind.
    pub(crate) async fn open(
        &self,
        service: Service,
        target: Target,
    ) -> Result<impl Future<Output = Result<(), ChatError>> + Send + use<>, JoinError> {
        let line = self.line(service)?;
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| JoinError::Full)?;
        let leave = self.door.shutdown.clone();
        let (chat, socket) = Chat::open(line, target, leave).await?;
        Ok(async move {
            let _place = place;
            chat.serve(socket).await
        })
    }

    /// Answers requests to join conversations until the door closes.
    ///
    /// # Cancel safety
    /// If dropped, requests that are under way are answered all the same.
    pub(crate) async fn answer_joins(self: Arc<Self>, mut requests: Requests) {
        loop {
            let request = tokio::select! {
                () = self.door.shutdown.cancelled() => return,
                request = requests.next() => request,
            };
            let Some(request) = request else { return };
            let bridge = Arc::clone(&self);
            self.door
                .tasks
                .spawn(async move { bridge.answer_join(request).await });
        }
    }

    async fn answer_join(&self, request: Request) {
        let answer = match self.join(&request).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(%error, "no conversation is joined");
                json!({"error": format!("{}: {error}", error.kind())})
            }
        };
        if let Err(error) = request.answer(&answer).await {
            tracing::warn!(%error, "a request to join got no answer");
        }
    }

    async fn join(&self, request: &Request) -> Result<Value, JoinError> {
        let asked: VoiceJoinRequest =
            serde_json::from_value(Value::Object(request.data.clone())).map_err(|error| {
                JoinError::Request(format!(
                    "expected dialect and the id of the conversation: {error}"
                ))
            })?;
        let (service, chat) = wanted(&asked).map_err(JoinError::Request)?;
        match self.open(service, Target::Joined(chat)).await {
            Ok(serving) => _ = self.door.tasks.spawn(serving),
            // Asked for twice, as by an app that asks at its every start.
            Err(JoinError::Chat(ChatError::Claim(ClaimError::Taken))) => {}
            Err(error) => return Err(error),
        }
        let answer = VoiceJoinResponse {
            request: asked,
            joined: true,
        };
        Ok(json!(answer))
    }
}

/// Which conversation a request means.
fn wanted(asked: &VoiceJoinRequest) -> Result<(Service, String), String> {
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

fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}
