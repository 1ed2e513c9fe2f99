//! Serves clients over HTTP: one endpoint, `/mcp`, for both eras of the protocol.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use door::{PendingStop, Token, TokenError};
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::admission::{Admission, PATH};
use crate::answer::{self, INVALID_PARAMS, INVALID_REQUEST, refused};
use crate::arrival::{self, Arrival, MODERN, Stop};
use crate::early_answer::{Answer, respond_early};
use crate::grant::{self, Grant, Scope, Scopes};
use crate::issuer;
use crate::origin::{Allowed, Source, is_preflight};
use crate::padding::{MotionCount, narrow_socket};
use crate::presence::{Connection, Watched};
use crate::sessions::Sessions;
use crate::shared::Door;

/// How many connections may be open.
const CONNECTIONS: usize = 256;

/// How long a client may take to send the head of a request.
const HEAD_WAIT: Duration = Duration::from_secs(10);

/// The largest body that is read.
const LARGEST: usize = 4 << 20;

/// The protocol's code for headers that differ from the body.
const HEADER_MISMATCH: i32 = -32020;

/// The header with the id of a session of the legacy era.
const SESSION: &str = "mcp-session-id";

/// The header with the version of the protocol.
const VERSION: &str = "mcp-protocol-version";

/// How long sent bytes may stay unacknowledged before a connection counts as dead.
const UNACKNOWLEDGED_MS: u32 = 3_000;

/// How long open connections may take to end when the door closes.
const END_WAIT: Duration = Duration::from_secs(3);

/// Why the door cannot listen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error(
        "--http {0}: without a token the door listens on a loopback address only, such as 127.0.0.1:{port}; set \
         service.doors.mcp.http_token to true, or let clients sign in (sign_in)",
        port = .0.port()
    )]
    Unprotected(SocketAddr),
    #[error("--http {address}: {cause}; choose another port or address")]
    Listen { address: SocketAddr, cause: io::Error },
    #[error("{0}")]
    Token(#[from] TokenError),
    #[error(
        "service.doors.mcp.sign_in: no connection with https can be made to the issuer: {0}; install the package ca-certificates"
    )]
    Issuer(io::Error),
}

/// An address on which the door listens, with its requirements for clients.
pub(crate) struct Http {
    listener: TcpListener,
    address: SocketAddr,
    admission: Admission,
    /// The text of the token, if the token is new.
    made: Option<String>,
}

impl Http {
    /// Binds the address.
    pub(crate) async fn bind(address: SocketAddr, door: &Door) -> Result<Self, HttpError> {
        let config = &door.config;
        let (token, made) = if config.http_token {
            let found = Token::of_file(&config.token_file, "service.doors.mcp.token_file")?;
            (Some(found.token), found.is_new.then_some(found.text))
        } else if address.ip().is_loopback() || config.sign_in.is_some() {
            (None, None)
        } else {
            return Err(HttpError::Unprotected(address));
        };
        let admission = Admission::new(token, config.sign_in.as_ref()).map_err(HttpError::Issuer)?;
        let failed = |cause| HttpError::Listen { address, cause };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            admission,
            made,
        })
    }

    /// Returns a text for the operator: the address on which the door listens, and the token if it is new and `shows_token`.
    pub(crate) fn greeting(&self, door: &Door, shows_token: bool) -> String {
        let url = format!("http://{}{PATH}", self.address);
        let file = door.config.token_file.display();
        let issuer = door
            .config
            .sign_in
            .as_ref()
            .map(|sign_in| sign_in.issuer.as_str());
        match (door.config.http_token, issuer, &self.made) {
            (false, None, _) => format!("MCP server listening at {url}, without a token\n"),
            (false, Some(issuer), _) => {
                format!("MCP server listening at {url}; clients sign in at {issuer}\n")
            }
            (true, _, made) if made.is_none() || !shows_token => {
                format!("MCP server listening at {url}; the token is in {file}\n")
            }
            (true, _, made) => {
                let text = made.as_deref().unwrap_or_default();
                format!(
                    "MCP server listening at {url}; a new token was made, and is not shown again (it is in {file}):\n{text}\n"
                )
            }
        }
    }

    /// Serves clients until the door closes.
    ///
    /// # Cancel safety
    /// Not safe: calls may go on; cancel the door's shutdown instead.
    pub(crate) async fn serve(self, door: &Arc<Door>) {
        let mut hosts = door.config.http_hosts.clone();
        hosts.extend(self.admission.public_host());
        let gate = Arc::new(Gate {
            sessions: Sessions::new(door),
            admission: self.admission,
            allowed: Allowed {
                origins: door.config.http_origins.clone(),
                hosts,
                own: vec![
                    format!("http://{}", self.address),
                    format!("http://localhost:{}", self.address.port()),
                ],
            },
            door: Arc::clone(door),
        });
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        if gate.admission.issuer().is_some() {
            let gate = Arc::clone(&gate);
            door.link.tasks.spawn(async move { gate.keep_keys().await });
        }
        loop {
            let accepted = tokio::select! {
                () = door.link.shutdown.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
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
            let (gate, shutdown) = (Arc::clone(&gate), door.link.shutdown.clone());
            door.link.tasks.spawn(async move {
                let _place = place;
                converse(stream, gate, shutdown).await;
            });
        }
        if timeout(END_WAIT, door.link.calls.none_left()).await.is_err() {
            tracing::warn!("calls did not end within {END_WAIT:?}");
        }
    }
}

/// Serves one connection to its end.
async fn converse(stream: TcpStream, gate: Arc<Gate>, shutdown: CancellationToken) {
    // If the kernel does not support an option, a dead peer is noticed later.
    _ = stream.set_nodelay(true);
    _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, UNACKNOWLEDGED_MS);
    narrow_socket(&stream);
    let (closed, blocked) = (CancellationToken::new(), CancellationToken::new());
    let io = TokioIo::new(Watched::new(stream, closed.clone(), blocked.clone()));
    let answer = service_fn(|request: Request<Incoming>| {
        let (gate, closed, blocked) = (Arc::clone(&gate), closed.clone(), blocked.clone());
        async move { Ok::<_, Infallible>(gate.answer(request, &closed, &blocked).await) }
    });
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WAIT)
            .serve_connection(io, answer)
    );
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            timeout(END_WAIT, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
    closed.cancel();
}

/// What every request is answered with.
struct Gate {
    door: Arc<Door>,
    sessions: Arc<Sessions>,
    admission: Admission,
    allowed: Allowed,
}

impl Gate {
    /// Fetches the keys of the issuer from time to time, so that neither a call nor a stop waits for them.
    async fn keep_keys(&self) {
        let Some(issuer) = self.admission.issuer() else {
            return;
        };
        let mut due = tokio::time::interval(issuer::EVERY);
        loop {
            tokio::select! {
                () = self.door.link.shutdown.cancelled() => return,
                _ = due.tick() => issuer.renew().await,
            }
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        closed: &CancellationToken,
        blocked: &CancellationToken,
    ) -> Response<Answer> {
        let metadata = self.admission.metadata(request.uri().path());
        if request.uri().path() != PATH && metadata.is_none() {
            return plain_response(StatusCode::NOT_FOUND, "the endpoint is /mcp");
        }
        if !self.allowed.host(&request) {
            let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
            let host = host.or_else(|| request.uri().host()).unwrap_or_default();
            return plain_response(
                StatusCode::FORBIDDEN,
                format!(
                    "the host name {host:?} is not one of this machine: to allow it, list it in service.doors.mcp.http_hosts"
                ),
            );
        }
        let source = self.allowed.source(request.headers());
        let mut response = if source == Source::Foreign {
            plain_response(
                StatusCode::FORBIDDEN,
                "rejected: web pages of this Origin may not use this server; to allow them, list it in \
                 service.doors.mcp.http_origins",
            )
        } else if is_preflight(&request) {
            let mut response = plain_response(StatusCode::NO_CONTENT, "");
            source.permit_sending(request.headers(), response.headers_mut());
            response
        } else if let Some(metadata) = metadata {
            if request.method() == Method::GET {
                metadata
            } else {
                plain_response(StatusCode::METHOD_NOT_ALLOWED, "expected GET")
            }
        } else {
            match self.admission.admit(request.headers()).await {
                Ok(grant) => self.admitted(request, grant, closed, blocked).await,
                Err(refused) => *refused,
            }
        };
        source.permit(response.headers_mut());
        response
    }

    /// Answers a client that may use the door.
    async fn admitted(
        &self,
        request: Request<Incoming>,
        grant: Grant,
        closed: &CancellationToken,
        blocked: &CancellationToken,
    ) -> Response<Answer> {
        let (mut parts, body) = request.into_parts();
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let session = header(SESSION).map(str::to_owned);
        let named = header(VERSION).map(str::to_owned);
        let is_modern = named.as_deref().is_some_and(|version| version >= MODERN);
        let body = match Limited::new(body, LARGEST).collect().await {
            Ok(body) => body.to_bytes(),
            Err(_) => {
                return plain_response(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "the request body is over the limit of 4 MiB",
                );
            }
        };
        // What follows up to the turn waits for nothing: requests have the order in which they were read.
        let mut version = named;
        let mut body = body;
        let mut opens = false;
        let (mut needed, mut is_stop) = (Scopes::from([Scope::Read]), false);
        if parts.method == Method::POST {
            match self.read(&body, is_modern) {
                Reading::Stops(stops) => {
                    if is_modern && let Some(answer) = stops.header_mismatch(&parts.headers) {
                        return answer;
                    }
                    return stops.answer().await;
                }
                Reading::Refused { id, why } => {
                    let status = if is_modern {
                        StatusCode::BAD_REQUEST
                    } else {
                        StatusCode::OK
                    };
                    return json(status, &refused(&id, INVALID_PARAMS, &why));
                }
                Reading::Passes {
                    message,
                    is_call,
                    stops,
                } => {
                    needed = grant::needed(&message, &self.door.link.listing(), &self.door.config);
                    is_stop = stops;
                    if let Some(asked) = arrival::asked_version(&message) {
                        version = Some(asked.to_owned());
                        opens = true;
                    }
                    body = Bytes::from(message.to_string());
                    if stops && is_modern {
                        // No header holds a stop either.
                        let name = message["params"]["name"].as_str().unwrap_or_default();
                        if let Ok(name) = HeaderValue::from_str(name) {
                            parts.headers.insert("mcp-name", name);
                        }
                        let method = HeaderValue::from_static("tools/call");
                        parts.headers.insert("mcp-method", method);
                    }
                    if is_call {
                        let turn = self.sessions.arrivals(session.as_deref()).turn();
                        parts.extensions.insert(Arc::new(turn));
                    }
                }
                Reading::Unreadable => {}
            }
        }
        if let Some(refused) = self.admission.lacks(&grant, &needed, is_stop) {
            return refused;
        }
        let ends = parts.method == Method::DELETE && session.is_some();
        let principal = grant.principal.clone();
        let is_unknown = |id: &str| {
            (ends && !self.sessions.is_known(id)) || self.sessions.is_foreign(id, principal.as_ref())
        };
        if session.as_deref().is_some_and(is_unknown) {
            return plain_response(StatusCode::NOT_FOUND, "unknown session: initialize again");
        }
        if opens && !self.sessions.make_room().await {
            return plain_response(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many sessions are in use: end one with DELETE, or try again later",
            );
        }
        let connection = Connection {
            closed: closed.child_token(),
            moving: MotionCount::default(),
            blocked: blocked.clone(),
        };
        let over = connection.closed.clone().drop_guard();
        let moving = connection.moving.clone();
        parts.extensions.insert(connection);
        parts.extensions.insert(grant);
        let in_use = session.as_deref().and_then(|id| self.sessions.in_use(id));
        // Clients of the oldest version with sessions do not say their version after the first request.
        let mcp = self.sessions.mcp(session.as_deref(), version.as_deref());
        let request = Request::from_parts(parts, Full::new(body));
        let mut response = if is_modern {
            let mcp = mcp.clone();
            respond_early(async move { mcp.handle(request).await }, moving).await
        } else {
            mcp.handle(request).await.map(|body| body.boxed_unsync())
        };
        if opens && let Some(id) = response.headers().get(SESSION).and_then(|id| id.to_str().ok()) {
            self.sessions.opened(id, version.as_deref(), principal.as_ref());
        }
        if ends && response.status() == StatusCode::ACCEPTED {
            self.sessions.ended(session.as_deref().unwrap_or_default());
            *response.status_mut() = StatusCode::OK;
        }
        // When the body is dropped, whether it was sent or not, the request has ended.
        response.map(|body| {
            let with_guards = move |never: Infallible| {
                _ = (&over, &in_use);
                never
            };
            body.map_err(with_guards).boxed_unsync()
        })
    }

    /// Reads the message of a body, and carries out the stops in it.
    fn read(&self, body: &[u8], is_modern: bool) -> Reading {
        let listing = self.door.link.listing();
        let read = |text: &[u8]| arrival::read(text, self.door.config.find_tools, |name| listing.stops(name));
        let parts = arrival::split_batch(body);
        if let [part] = &*parts
            && let Cow::Borrowed(text) = part
        {
            return match read(text) {
                Arrival::Stop(stop) => Reading::Stops(self.stops([Err(stop)], false, is_modern)),
                Arrival::IllFormed { id, why } => Reading::Refused { id, why },
                Arrival::Unreadable => Reading::Unreadable,
                Arrival::Call { mut message, stops } => {
                    if stops && is_modern && arrival::version(&message).is_none() {
                        arrival::introduce(&mut message);
                    }
                    checked(message, is_modern, true, stops)
                }
                Arrival::Other(message) => checked(message, is_modern, false, false),
            };
        }
        // A batch, which the protocol had for one version. The library does not take it, but the stops in it count.
        let answers = parts.iter().map(|part| match read(part) {
            Arrival::Stop(stop) => Err(stop),
            Arrival::Call { message, .. } | Arrival::Other(message) => Ok(refused(
                &message["id"],
                INVALID_REQUEST,
                "batches are not supported: send each message in a request of its own",
            )),
            Arrival::IllFormed { id, why } => Ok(refused(&id, INVALID_PARAMS, &why)),
            Arrival::Unreadable => Ok(refused(&Value::Null, INVALID_REQUEST, "Invalid request")),
        });
        Reading::Stops(self.stops(answers, true, is_modern))
    }

    fn stops(
        &self,
        answers: impl IntoIterator<Item = Result<Value, Stop>>,
        is_batch: bool,
        is_modern: bool,
    ) -> Stops {
        let replies = answers.into_iter().map(|answer| {
            answer.map_err(|stop| {
                let stopping = self.door.link.begin_stop(stop.tool);
                (stop, stopping)
            })
        });
        Stops {
            answers: replies.collect(),
            is_batch,
            is_modern,
        }
    }
}

/// What the body of a request is.
enum Reading {
    /// Stops, which have been carried out, or a batch.
    Stops(Stops),
    /// A message for the library.
    Passes {
        message: Value,
        is_call: bool,
        stops: bool,
    },
    /// A request that cannot be carried out.
    Refused { id: Value, why: String },
    /// The library says what is wrong with it.
    Unreadable,
}

/// The answers to stops, and to what came with them in a batch.
struct Stops {
    answers: Vec<Result<Value, (Stop, PendingStop)>>,
    is_batch: bool,
    is_modern: bool,
}

impl Stops {
    /// The protocol wants headers that say the same as the body. The stop was carried out anyway.
    fn header_mismatch(&self, headers: &http::HeaderMap) -> Option<Response<Answer>> {
        let [Err((stop, _))] = self.answers.as_slice() else {
            return None;
        };
        let says = |name: &str, expected: &str| headers.get(name).is_some_and(|value| value == expected);
        if says("mcp-method", "tools/call") && says("mcp-name", stop.called()) {
            return None;
        }
        let id = stop.id.clone().unwrap_or_default();
        let why = "the headers Mcp-Method and Mcp-Name differ from the body; the stop was carried out";
        Some(json(StatusCode::BAD_REQUEST, &refused(&id, HEADER_MISMATCH, why)))
    }

    async fn answer(self) -> Response<Answer> {
        let mut answers = Vec::new();
        for answer in self.answers {
            match answer {
                Ok(answer) => answers.push(answer),
                Err((stop, stopping)) => {
                    let report = stopping.await;
                    let Some(id) = stop.id else { continue };
                    let is_modern = stop
                        .version
                        .map_or(self.is_modern, |version| version.as_str() >= MODERN);
                    let result = answer::result_value(report, is_modern);
                    answers.push(json!({"jsonrpc": "2.0", "id": id, "result": result}));
                }
            }
        }
        match (self.is_batch, answers.pop()) {
            (_, None) => plain_response(StatusCode::ACCEPTED, ""),
            (false, Some(answer)) => json(StatusCode::OK, &answer),
            (true, Some(last)) => {
                answers.push(last);
                json(StatusCode::OK, &Value::Array(answers))
            }
        }
    }
}

/// Refuses a request that the door knows and whose params the library cannot read. The library would say that there is no such
/// method.
fn checked(message: Value, is_modern: bool, is_call: bool, stops: bool) -> Reading {
    let method = message["method"].as_str().unwrap_or_default();
    // The modern era has no `initialize`.
    if !(is_modern && method == "initialize")
        && let Some(why) = arrival::ill_formed(method)
        && let Some(id) = message.get("id").filter(|id| id.is_string() || id.is_number())
        && let Ok(ClientJsonRpcMessage::Request(request)) = serde_json::from_value(message.clone())
        && matches!(request.request, ClientRequest::CustomRequest(_))
    {
        let id = id.clone();
        return Reading::Refused { id, why };
    }
    Reading::Passes {
        message,
        is_call,
        stops,
    }
}

fn json(status: StatusCode, value: &Value) -> Response<Answer> {
    let mut response = Response::new(Full::new(Bytes::from(value.to_string())).boxed_unsync());
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn plain_response(status: StatusCode, text: impl Into<Bytes>) -> Response<Answer> {
    let mut response = Response::new(Full::new(text.into()).boxed_unsync());
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
