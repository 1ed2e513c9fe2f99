//! The server of the page: its address, what every request has to pass, and which function answers it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Extension;
use axum::extract::{DefaultBodyLimit, FromRequestParts, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ORIGIN, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use config::ConsoleDoor;
use door::{Door, TokenError};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::console::Console;
use crate::gate::Here;
use crate::history::intake::Intake;
use crate::people::{NotSignedIn, People, Role};
use crate::tls::{Tls, TlsError};
use crate::{api, files, gate, metrics, reach, tls};

/// How many connections may be open.
const CONNECTIONS: usize = 128;

/// How long a browser may take to send the head of a request.
const HEAD_WAIT: Duration = Duration::from_secs(10);

/// How long open connections may take to end when the console does.
const END_WAIT: Duration = Duration::from_secs(1);

/// The largest body that is read.
const LARGEST: usize = 1 << 20;

/// What every answer says: what the page may load, and that no other page may hold it.
const RULES: [(HeaderName, &str); 4] = [
    (
        HeaderName::from_static("content-security-policy"),
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebError {
    #[error(
        "service.doors.console.address: to be reached from other machines the page needs TLS: {0}. Or set the address to 127.0.0.1, put a \
         proxy with TLS in front, and list its name in service.doors.console.hosts"
    )]
    Tls(#[from] TlsError),
    #[error(
        "the page cannot be served at {address}: {cause}; if the console runs already, `ovos-tools console address` prints its \
         address, else choose another service.doors.console.address"
    )]
    Listen { address: SocketAddr, cause: io::Error },
    #[error("{0}")]
    Token(#[from] TokenError),
}

/// An address at which the page is served.
pub(crate) struct Web {
    listener: TcpListener,
    people: People,
    config: ConsoleDoor,
    address: SocketAddr,
    /// Beyond loopback.
    tls: Option<Tls>,
}

impl Web {
    /// Binds the address.
    pub(crate) async fn bind(config: &ConsoleDoor) -> Result<Self, WebError> {
        let address = config.address;
        let tls = (!address.ip().is_loopback())
            .then(|| tls::acceptor(config))
            .transpose()?;
        if let Some(Tls { missing_names, .. }) = &tls
            && !missing_names.is_empty()
        {
            tracing::warn!(
                names = missing_names.join(", "),
                certificate = %config.certificate_file.display(),
                key = %config.key_file.display(),
                "the certificate does not have all names of the page, so browsers warn of it again; to have a new one made, delete \
                 it and its key, and start the console again"
            );
        }
        let people = People::of(config)?;
        let failed = |cause| WebError::Listen { address, cause };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        Ok(Self {
            address: listener.local_addr().map_err(failed)?,
            listener,
            people,
            config: config.clone(),
            tls,
        })
    }

    /// The address of the page.
    pub(crate) fn url(&self) -> String {
        reach::url(&self.config, self.address)
    }

    /// The address for phones, with the token of an operator, and the fingerprint of the page's certificate; `None` where the page
    /// has no TLS of its own.
    pub(crate) fn for_phones(&self) -> Option<(String, &str)> {
        let url = reach::phone_url(&self.config, self.address)?;
        let token = self.people.token(Role::Operator);
        Some((format!("{url}#token={token}"), &self.tls.as_ref()?.fingerprint))
    }

    /// The address with the token of an operator. What follows `#` is not sent to any server, and is in no log.
    pub(crate) fn url_with_token(&self) -> String {
        format!("{}#token={}", self.url(), self.people.token(Role::Operator))
    }

    /// Serves until the door closes.
    ///
    /// # Cancel safety
    /// Not safe: cancel the door's shutdown instead.
    pub(crate) async fn serve(self, door: Arc<Door>, intake: Arc<Intake>) {
        let shutdown = door.shutdown.clone();
        let tasks = door.tasks.clone();
        let router = router(Arc::new(Console {
            door,
            intake,
            people: self.people,
            hosts: self.config.hosts,
        }));
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let accepted = tokio::select! {
                () = shutdown.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
                tracing::warn!("more than {CONNECTIONS} connections: one was closed");
                continue;
            };
            // If the kernel does not support it, answers are a little later.
            _ = stream.set_nodelay(true);
            let here = Here {
                // An address of IPv4 also where one socket serves both.
                ip: stream
                    .local_addr()
                    .map_or(self.address.ip(), |local| local.ip())
                    .to_canonical(),
                peer: peer.ip().to_canonical(),
                tls: self.tls.is_some(),
            };
            let router = router.clone().layer(Extension(here));
            let (tls, shutdown) = (
                self.tls.as_ref().map(|tls| tls.acceptor.clone()),
                shutdown.clone(),
            );
            tasks.spawn(async move {
                let _place = place;
                let end = shutdown.cancelled();
                match tls {
                    None => converse(stream, router, end).await,
                    Some(tls) => match timeout(HEAD_WAIT, tls.accept(stream)).await {
                        Ok(Ok(stream)) => converse(stream, router, end).await,
                        Ok(Err(error)) => tracing::debug!(%error, "a connection without TLS"),
                        Err(_) => tracing::debug!("a connection did not begin with TLS in time"),
                    },
                }
            });
        }
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    end: impl Future<Output = ()>,
) {
    let mut connection = std::pin::pin!(
        hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WAIT)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
    );
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = end => {
            connection.as_mut().graceful_shutdown();
            timeout(END_WAIT, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

fn router(console: Arc<Console>) -> Router {
    let pass = middleware::from_fn_with_state(Arc::clone(&console), pass);
    Router::new()
        .route("/api/session", post(sign_in))
        .route("/api/state", get(api::state))
        .route("/api/tools", get(api::tools))
        .route("/api/facts", get(api::facts))
        .route("/api/calls", get(api::calls))
        .route("/api/under-way", get(api::under_way))
        .route("/api/call", get(api::call))
        .route("/api/plan", post(api::plan))
        .route("/api/run", post(api::run))
        .route("/api/cancel", post(api::cancel))
        .route("/api/stop", post(api::stop))
        .route("/api/resume", post(api::resume))
        .route("/api/approve", post(api::approve))
        .route("/api/deny", post(api::deny))
        .route("/metrics", get(metrics_page))
        .fallback(file)
        .layer(DefaultBodyLimit::max(LARGEST))
        .layer(pass)
        .with_state(console)
}

/// What every request has to pass.
async fn pass(
    State(console): State<Arc<Console>>,
    Extension(here): Extension<Here>,
    mut request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    let admitted = gate::admit(request.method(), &path, request.headers(), &console.hosts, here);
    let role = console.people.role(request.headers());
    let mut response = match (admitted, role) {
        (Err(foreign), _) => refusal(StatusCode::FORBIDDEN, &foreign.to_string()),
        (Ok(()), None) if path.starts_with("/api/") && path != "/api/session" => refusal(
            StatusCode::UNAUTHORIZED,
            "sign in with the token that `ovos-tools console address` prints",
        ),
        (Ok(()), role) => {
            if let Some(role) = role {
                request.extensions_mut().insert(role);
            }
            next.run(request).await
        }
    };
    let headers = response.headers_mut();
    for (name, value) in RULES {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

fn refusal(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}

/// The role of the person who is signed in.
impl<S: Sync> FromRequestParts<S> for Role {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        parts
            .extensions
            .get::<Self>()
            .copied()
            .ok_or(StatusCode::UNAUTHORIZED)
    }
}

#[derive(Deserialize)]
struct SignIn {
    token: String,
}

async fn sign_in(
    State(console): State<Arc<Console>>,
    Extension(here): Extension<Here>,
    headers: HeaderMap,
    Json(shown): Json<SignIn>,
) -> Response {
    match console.people.sign_in(&shown.token, here.peer, Instant::now()) {
        Ok((role, mut cookie)) => {
            // A proxy adds TLS to the page's address, not to the connection.
            let secret = |origin: &HeaderValue| origin.as_bytes().starts_with(b"https:");
            if here.tls || headers.get(ORIGIN).is_some_and(secret) {
                cookie.push_str("; Secure");
            }
            let mut response = Json(json!({ "role": role })).into_response();
            if let Ok(cookie) = HeaderValue::from_str(&cookie) {
                response.headers_mut().insert(SET_COOKIE, cookie);
            }
            response
        }
        Err(NotSignedIn::Wrong) => refusal(
            StatusCode::UNAUTHORIZED,
            "this is not the token: `ovos-tools console address` prints it",
        ),
        Err(NotSignedIn::Wait) => refusal(
            StatusCode::TOO_MANY_REQUESTS,
            "too many wrong tokens: try again in a minute",
        ),
    }
}

async fn metrics_page(State(console): State<Arc<Console>>, headers: HeaderMap) -> Response {
    let people = &console.people;
    if people.role(&headers).or(people.bearer(&headers)).is_none() {
        return refusal(
            StatusCode::UNAUTHORIZED,
            "expected the header Authorization: Bearer TOKEN, with the token of a viewer or an operator",
        );
    }
    let status = console.door.client.recent_status(Duration::from_secs(1)).await;
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, metrics::text(status.as_deref())).into_response()
}

async fn file(request: Request) -> Response<Body> {
    files::answer(request.uri().path(), request.headers())
}
