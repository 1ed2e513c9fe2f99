//! Connects to the server of a mount. Read [`connect`].

mod chain;
mod https;
mod late_probe;
mod lost_session;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use config::{MountConfig, MountTransport};
use http::{HeaderName, HeaderValue};
use rmcp::model::{ClientRequest, CustomRequest, ProtocolVersion};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpClient, StreamableHttpClientTransportConfig,
};
use rmcp::{Peer, RoleClient};
use serde_json::{Value, json};

pub(crate) use self::chain::chain;
pub(crate) use self::https::client as oauth_http;
use self::late_probe::IgnoresLateProbe;
use self::lost_session::NoticesLostSession;
use crate::credentials::Credentials;
use crate::peer::{Client, Notifications};
use crate::process::ServerProcess;
use crate::reporter::Reporter;
use crate::server_files::ServerFiles;

/// How long a process may take to end after its output has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The reason where a server asks its clients to sign in.
const SIGN_IN: &str = "it asks for signing in";

/// The most tools of a server, and the most bytes of their list.
const MAX_TOOLS: usize = 1000;
const MAX_LIST: usize = 4 << 20;

/// The most pages of a list of tools.
const MAX_PAGES: usize = 100;

/// The generation of the protocol that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Versions up to 2025-11-25, which begin with `initialize`.
    Legacy,
    /// Versions from 2026-07-28 on, which begin with `server/discover`.
    Modern,
}

/// A server that has answered.
pub(crate) struct Connection {
    pub(crate) service: RunningService<RoleClient, Client>,
    /// The process of the server, if it has one.
    pub(crate) process: Option<ServerProcess>,
    pub(crate) era: Era,
    /// The version of the protocol, for people.
    pub(crate) version: String,
}

/// Why there is no connection.
pub(crate) struct NoConnection {
    /// The reason, for people. It may contain secrets.
    pub(crate) reason: String,
    /// The era to try next: that of an old server which the probe may have confused, or of a new one which answered it late.
    pub(crate) next: Option<Era>,
    /// What the server says about signing in, if it asks for that.
    pub(crate) challenge: Option<String>,
}

impl From<String> for NoConnection {
    fn from(reason: String) -> Self {
        Self {
            reason,
            next: None,
            challenge: None,
        }
    }
}

impl From<ServiceError> for NoConnection {
    fn from(error: ServiceError) -> Self {
        let (reason, challenge) = match TokenRefusal::of(&error) {
            Some(TokenRefusal::SignIn(challenge)) => (SIGN_IN.to_owned(), Some(challenge)),
            Some(TokenRefusal::More(challenge)) => (failed(&error), Some(challenge)),
            None => (failed(&error), None),
        };
        Self {
            challenge: challenge.map(str::to_owned),
            ..reason.into()
        }
    }
}

impl NoConnection {
    /// The reason, with what the owner of the mount can do.
    pub(crate) fn into_reason(self, id: &str) -> String {
        let how = self
            .challenge
            .map(|_| format!(": run `ovos-tools mounts sign-in {id}` as the user of the service"));
        self.reason + &how.unwrap_or_default()
    }
}

/// Starts or reaches a server, and greets it. `era` is the known era of the server; without it, a probe of an old server takes up
/// to 10 s.
///
/// # Errors
/// Why the server cannot be used.
pub(crate) async fn connect(
    mount: &MountConfig,
    checked: &ServerFiles,
    token: Option<&str>,
    credentials: Option<&Credentials>,
    era: Option<Era>,
    notifications: Arc<Notifications>,
    reporter: &Reporter,
) -> Result<Connection, NoConnection> {
    let client = Client(notifications);
    match mount.transport {
        Some(MountTransport::Http) => connect_http(mount, token, credentials, era, client).await,
        _ => connect_process(mount, checked, era, client, reporter).await,
    }
}

/// Reaches a server with a URL, and greets it. If a person has signed in there, the token is sent.
///
/// # Errors
/// Why the server cannot be used.
pub(crate) async fn connect_http(
    mount: &MountConfig,
    token: Option<&str>,
    credentials: Option<&Credentials>,
    era: Option<Era>,
    client: Client,
) -> Result<Connection, NoConnection> {
    let address = address(mount, token)?;
    let http = NoticesLostSession(https::client(&address.uri)?);
    let signed_in = match credentials {
        Some(credentials) => credentials.manager().await.map_err(|error| chain(&error))?,
        None => None,
    };
    let service = match signed_in {
        Some(manager) => greet(mount, AuthClient::new(http, manager), address, era, client).await?,
        None => greet(mount, http, address, era, client).await?,
    };
    Ok(Connection::new(service, None))
}

/// Greets a server over HTTP.
async fn greet(
    mount: &MountConfig,
    http: impl StreamableHttpClient + Sync + 'static,
    address: StreamableHttpClientTransportConfig,
    era: Option<Era>,
    client: Client,
) -> Result<RunningService<RoleClient, Client>, NoConnection> {
    let transport = StreamableHttpClientTransport::with_client(http, address);
    let greeted = client.serve_with_lifecycle(transport, lifecycle(era));
    let greeted = tokio::time::timeout(Duration::from_secs_f64(mount.startup_timeout), greeted).await;
    let greeted = greeted.map_err(|_| NoConnection {
        next: Some(Era::Legacy),
        ..late(mount).into()
    })?;
    greeted.map_err(|error| {
        let asks = error.is_authorization_required() && mount.credentials.is_some();
        NoConnection {
            next: (!matches!(error, ClientInitializeError::TransportError { .. })).then_some(Era::Legacy),
            challenge: asks.then(|| error.auth_challenge().unwrap_or_default().to_owned()),
            reason: match asks {
                true => SIGN_IN.to_owned(),
                false => handshake_error(&error),
            },
        }
    })
}

fn late(mount: &MountConfig) -> String {
    format!(
        "it did not answer within {} s (startup_timeout)",
        mount.startup_timeout
    )
}

async fn connect_process(
    mount: &MountConfig,
    checked: &ServerFiles,
    era: Option<Era>,
    client: Client,
    reporter: &Reporter,
) -> Result<Connection, NoConnection> {
    let limit = Duration::from_secs_f64(mount.startup_timeout);
    let (mut process, output, input) = ServerProcess::start(mount, &checked.command, reporter)?;
    let is_modern = Arc::new(AtomicBool::new(false));
    let transport = AsyncRwTransport::new_client(output, input);
    let transport = IgnoresLateProbe::new(transport, Arc::clone(&is_modern));
    let greeted = client.serve_with_lifecycle(transport, lifecycle(era));
    let greeted = match tokio::time::timeout(limit, greeted).await {
        Ok(Ok(service)) => Ok(service),
        Ok(Err(error)) => match tokio::time::timeout(LAST_WORDS, process.ended()).await {
            Ok(end) => Err(NoConnection::from(end)),
            Err(_) => {
                let reason = format!("{}{}", handshake_error(&error), process.last_words());
                let next = is_modern.load(Ordering::Relaxed).then_some(Era::Modern);
                Err(NoConnection {
                    next,
                    ..reason.into()
                })
            }
        },
        Err(_) => Err(NoConnection {
            next: Some(Era::Legacy),
            ..format!("{}{}", late(mount), process.last_words()).into()
        }),
    };
    match greeted {
        Ok(service) => Ok(Connection::new(service, Some(process))),
        Err(error) => {
            process.end().await;
            Err(error)
        }
    }
}

impl Connection {
    fn new(service: RunningService<RoleClient, Client>, process: Option<ServerProcess>) -> Self {
        let version = service.peer_info().map(|info| info.protocol_version.clone());
        let era = match &version {
            Some(version) if !version.has_initialize() => Era::Modern,
            _ => Era::Legacy,
        };
        Self {
            service,
            process,
            era,
            version: version.map(|version| version.to_string()).unwrap_or_default(),
        }
    }
}

fn lifecycle(era: Option<Era>) -> ClientLifecycleMode {
    match era {
        Some(Era::Legacy) => ClientLifecycleMode::Initialize,
        Some(Era::Modern) => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
        None => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
    }
}

fn address(mount: &MountConfig, token: Option<&str>) -> Result<StreamableHttpClientTransportConfig, String> {
    let url = mount.url.clone().unwrap_or_default();
    let mut address = StreamableHttpClientTransportConfig::with_uri(url);
    let mut headers = HashMap::new();
    for (name, value) in &mount.headers {
        let wrong = |_| format!("the header `{name}` cannot be sent");
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong(()))?;
        value.set_sensitive(true);
        headers.insert(
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong(()))?,
            value,
        );
    }
    address = address.custom_headers(headers);
    if let Some(name) = &mount.bearer_env {
        let token = token.ok_or_else(|| {
            // A text with lower-case letters may be a token that was written here by mistake.
            let name = if name.bytes().any(|b| b.is_ascii_lowercase()) {
                "(not shown)"
            } else {
                name.as_str()
            };
            format!("the variable `{name}` (bearer_env) is not in the environment of the service; set it where the service is started")
        })?;
        address = address.auth_header(token);
    }
    Ok(address)
}

/// Asks for all tools and returns them as the server wrote them, so that a broken tool affects only itself.
///
/// # Errors
/// The server does not answer, or not with a list.
pub(crate) async fn list(peer: &Peer<RoleClient>) -> Result<Vec<Value>, NoConnection> {
    let (mut tools, mut cursor, mut bytes) = (Vec::new(), Value::Null, 0);
    for _ in 0..MAX_PAGES {
        let params = (!cursor.is_null()).then(|| json!({"cursor": cursor}));
        let request = ClientRequest::CustomRequest(CustomRequest::new("tools/list", params));
        let page = peer.send_request(request).await;
        let page = serde_json::to_value(page?);
        let Ok(Value::Object(mut page)) = page else {
            return Err(ServiceError::UnexpectedResponse.into());
        };
        let Some(Value::Array(more)) = page.shift_remove("tools") else {
            return Err(ServiceError::UnexpectedResponse.into());
        };
        bytes += more.iter().map(|tool| tool.to_string().len()).sum::<usize>();
        tools.extend(more);
        if tools.len() > MAX_TOOLS || bytes > MAX_LIST {
            return Err(format!(
                "it lists more than {MAX_TOOLS} tools, or more than {} MiB of them",
                MAX_LIST >> 20
            )
            .into());
        }
        cursor = page.shift_remove("nextCursor").unwrap_or_default();
        if cursor.is_null() {
            return Ok(tools);
        }
    }
    Err(format!("its list of tools has more than {MAX_PAGES} pages").into())
}

/// What a server says when it refuses a request because of the token.
pub(crate) enum TokenRefusal<'a> {
    /// It counts no more, or not here.
    SignIn(&'a str),
    /// It allows too little.
    More(&'a str),
}

impl<'a> TokenRefusal<'a> {
    /// The reason for an error, if it is one of these.
    pub(crate) fn of(error: &'a ServiceError) -> Option<Self> {
        let ServiceError::TransportSend(error) = error else {
            return None;
        };
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error.error.as_ref());
        while let Some(current) = source {
            if let Some(refused) = current.downcast_ref::<InsufficientScopeError>() {
                return Some(Self::More(&refused.www_authenticate_header));
            }
            if let Some(refused) = current.downcast_ref::<AuthRequiredError>() {
                return Some(Self::SignIn(&refused.www_authenticate_header));
            }
            source = current.source();
        }
        None
    }
}

fn handshake_error(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => {
            format!("it could not be reached: {}", chain(&*error.error))
        }
        error => format!("MCP initialization failed: {}", chain(error)),
    }
}

/// Describes why a request failed.
pub(crate) fn failed(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportSend(error) => chain(&*error.error),
        error => chain(error),
    }
}
