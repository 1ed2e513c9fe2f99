//! Serves clients over HTTP: one endpoint, `/mcp`, for both eras of the protocol.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::presence::{Connection, Watched};
use crate::server::Session;
use crate::shared::Door;
use crate::token::{Token, TokenError};

const PATH: &str = "/mcp";

/// How many connections may be open.
const CONNECTIONS: usize = 256;

/// How long a client may take to send the head of a request.
const HEAD_WAIT: Duration = Duration::from_secs(10);

/// How often a stream without messages sends a comment, so that the door notices a client that is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// How long sent bytes may stay unacknowledged before a connection counts as dead.
const UNACKNOWLEDGED_MS: u32 = 3_000;

/// How long open connections may take to end when the door closes.
const END_WAIT: Duration = Duration::from_secs(3);

/// Why the door cannot listen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error(
        "--http {0}: without a token the door listens on a loopback address only, such as 127.0.0.1:{port}; set \
         service.doors.mcp.http_token to true",
        port = .0.port()
    )]
    Unprotected(SocketAddr),
    #[error("--http {address}: {cause}; choose another port or address")]
    Listen { address: SocketAddr, cause: io::Error },
    #[error("{0}")]
    Token(#[from] TokenError),
}

type Answer = BoxBody<Bytes, Infallible>;
type Mcp = StreamableHttpService<Session, LocalSessionManager>;

/// An address on which the door listens, with its requirements for clients.
pub(crate) struct Http {
    listener: TcpListener,
    address: SocketAddr,
    token: Option<Token>,
    /// The text of the token, if the token is new.
    made: Option<String>,
}

impl Http {
    /// Binds the address.
    pub(crate) async fn bind(address: SocketAddr, door: &Door) -> Result<Self, HttpError> {
        let config = &door.config;
        let (token, made) = if config.http_token {
            let found = Token::of_file(&config.token_file)?;
            (Some(found.token), found.made)
        } else if address.ip().is_loopback() {
            (None, None)
        } else {
            return Err(HttpError::Unprotected(address));
        };
        let failed = |cause| HttpError::Listen { address, cause };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            token,
            made,
        })
    }

    /// Returns a text for the operator: the address on which the door listens, and the token if it is new.
    pub(crate) fn greeting(&self, door: &Door) -> String {
        let url = format!("http://{}{PATH}", self.address);
        let file = door.config.token_file.display();
        match (&self.token, &self.made) {
            (None, _) => format!("MCP at {url}, without a token\n"),
            (Some(_), None) => format!("MCP at {url}; the token is in {file}\n"),
            (Some(_), Some(text)) => {
                format!("MCP at {url}; a token was made, and is not shown again (it is in {file}):\n{text}\n")
            }
        }
    }

    /// Serves clients until the door closes.
    ///
    /// # Cancel safety
    /// Not safe: calls may go on; cancel the door's shutdown instead.
    pub(crate) async fn serve(self, door: &Arc<Door>) {
        let mcp = service(door, self.address);
        let token = self.token.map(Arc::new);
        let room = Arc::new(Semaphore::new(CONNECTIONS));
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
            let (mcp, token, shutdown) = (mcp.clone(), token.clone(), door.link.shutdown.clone());
            door.link.tasks.spawn(async move {
                let _place = place;
                converse(stream, mcp, token, shutdown).await;
            });
        }
        if timeout(END_WAIT, door.link.calls.none_left()).await.is_err() {
            tracing::warn!("calls did not end within {END_WAIT:?}");
        }
    }
}

fn service(door: &Arc<Door>, address: SocketAddr) -> Mcp {
    // The door's own origin is allowed: the door serves no pages, so it is not the origin of a foreign page.
    let own = [
        format!("http://{address}"),
        format!("http://localhost:{}", address.port()),
    ];
    let mut config = StreamableHttpServerConfig::default()
        .with_allowed_origins(door.config.http_origins.iter().cloned().chain(own))
        .enforce_origin_validation()
        .with_sse_keep_alive(Some(KEEP_ALIVE))
        .with_cancellation_token(door.link.shutdown.child_token());
    config
        .allowed_hosts
        .extend(door.config.http_hosts.iter().cloned());
    let door = Arc::clone(door);
    let session = move || Ok(Session::new(Arc::clone(&door), CancellationToken::new()));
    StreamableHttpService::new(session, Arc::new(LocalSessionManager::default()), config)
}

/// Serves one connection to its end.
async fn converse(stream: TcpStream, mcp: Mcp, token: Option<Arc<Token>>, shutdown: CancellationToken) {
    // If the kernel does not support an option, a dead peer is noticed later.
    _ = stream.set_nodelay(true);
    _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, UNACKNOWLEDGED_MS);
    let closed = CancellationToken::new();
    let io = TokioIo::new(Watched::new(stream, closed.clone()));
    let answer = service_fn(|request: Request<Incoming>| {
        let (mcp, token, closed) = (mcp.clone(), token.clone(), closed.clone());
        async move { Ok::<_, Infallible>(answer(request, &mcp, token.as_deref(), &closed).await) }
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

async fn answer(
    mut request: Request<Incoming>,
    mcp: &Mcp,
    token: Option<&Token>,
    closed: &CancellationToken,
) -> Response<Answer> {
    let connection = Connection(closed.child_token());
    let over = connection.0.clone().drop_guard();
    let response = if request.uri().path() != PATH {
        plain(StatusCode::NOT_FOUND, "the endpoint is /mcp")
    } else if token.is_some_and(|token| !token.is_shown(request.headers().get(AUTHORIZATION))) {
        let mut response = plain(
            StatusCode::UNAUTHORIZED,
            "expected the header Authorization: Bearer TOKEN; the token is in the file that ovos-tools-mcp names at its start",
        );
        let challenge = HeaderValue::from_static("Bearer realm=\"ovos-tools\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        response
    } else {
        request.extensions_mut().insert(connection);
        mcp.handle(request).await
    };
    // When the body is dropped, whether it was sent or not, the request has ended.
    response.map(|body| {
        let with_guard = move |never: Infallible| {
            _ = &over;
            never
        };
        body.map_err(with_guard).boxed()
    })
}

fn plain(status: StatusCode, text: &'static str) -> Response<Answer> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
