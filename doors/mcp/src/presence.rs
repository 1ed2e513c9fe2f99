//! Finds out whether the client of a call is still there.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::padding::{MotionCount, MotionGuard};
use ovos_toolbox_wire::Effect;
use rmcp::model::{PingRequest, ProtocolVersion, ServerRequest};
use rmcp::service::{PeerRequestOptions, RequestContext};
use rmcp::{Peer, RoleServer, ServiceError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How often a client is pinged while something moves for it, and how long it may take to answer.
const PING: Duration = Duration::from_secs(2);

/// How long a call that changes nothing may go on after its client is gone: what was piped in gets its answers.
const LAST_READS: Duration = Duration::from_secs(1);

/// How long a write to a client may take.
const WRITE_WAIT: Duration = Duration::from_secs(2);

/// The HTTP connection of a request. `closed` is cancelled when the connection closes, or when the response has been sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connection {
    pub(crate) closed: CancellationToken,
    pub(crate) moving: MotionCount,
    /// Cancelled when the client does not read.
    pub(crate) blocked: CancellationToken,
}

/// Why a call ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    Cancelled,
    Closed,
    Silent,
    Shutdown,
}

impl Farewell {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Cancelled => "the client cancelled it",
            Self::Closed => "the client closed its connection",
            Self::Silent => "the client stopped responding",
            Self::Shutdown => "ovos-tools-mcp is shutting down",
        }
    }
}

/// Whether a request belongs to the protocol of 2026-07-28 or later, in which closing the connection cancels the request.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Waits until the client of a call cancels it or is gone. While a call moves something, a client that does not answer pings
/// counts as gone.
///
/// # Cancel safety
/// Safe.
pub(crate) async fn farewell(
    context: &RequestContext<RoleServer>,
    session: &CancellationToken,
    shutdown: &CancellationToken,
    effect: Effect,
) -> Farewell {
    let silent = async {
        if is_modern(context) || effect != Effect::Motion {
            std::future::pending::<()>().await;
        }
        silence(&context.peer).await;
    };
    tokio::select! {
        biased;
        left = leaves(context, session, shutdown, effect) => left,
        () = silent => Farewell::Silent,
    }
}

/// Does the same as [`farewell`] while nothing moves. A client whose user is being asked need not answer pings.
///
/// Before 2026-07-28, closing the HTTP connection does not end most calls, but it ends a call that moves a machine.
///
/// # Cancel safety
/// Safe.
pub(crate) async fn leaves(
    context: &RequestContext<RoleServer>,
    session: &CancellationToken,
    shutdown: &CancellationToken,
    effect: Effect,
) -> Farewell {
    let connection = connection(context);
    let gone = async {
        session.cancelled().await;
        if effect == Effect::Read {
            sleep(LAST_READS).await;
        }
    };
    let closed = async {
        match connection {
            Some(connection) if is_modern(context) || effect == Effect::Motion => {
                connection.closed.cancelled().await;
            }
            _ => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = gone => Farewell::Closed,
        () = closed => Farewell::Closed,
        () = context.ct.cancelled() => Farewell::Cancelled,
        () = shutdown.cancelled() => Farewell::Shutdown,
    }
}

/// Waits until the client of a call whose request was answered is gone. Over HTTP the connection may be closed then, and only tells
/// that the client does not read the answer; else the lease of the call ends it.
///
/// # Cancel safety
/// Safe.
pub(crate) async fn remains(
    context: &RequestContext<RoleServer>,
    sessions: [Option<&CancellationToken>; 2],
    shutdown: &CancellationToken,
    effect: Effect,
) -> Farewell {
    let closed = |session: Option<&CancellationToken>| {
        let session = session.cloned();
        async move {
            match session {
                Some(session) => session.cancelled().await,
                None => std::future::pending().await,
            }
        }
    };
    let silent = async {
        if is_modern(context) || effect != Effect::Motion || !is_at_stdio(context) {
            std::future::pending::<()>().await;
        }
        silence(&context.peer).await;
    };
    let [one, other] = sessions.map(closed);
    let blocked = closed(connection(context).map(|connection| &connection.blocked));
    tokio::select! {
        biased;
        () = one => Farewell::Closed,
        () = other => Farewell::Closed,
        () = shutdown.cancelled() => Farewell::Shutdown,
        () = blocked => Farewell::Silent,
        () = silent => Farewell::Silent,
    }
}

/// Waits until a client of the legacy era for which something moves shows that it is there: it is answered with a handle only then.
/// `false` if it does not.
///
/// # Cancel safety
/// Safe.
pub(crate) async fn is_present(context: &RequestContext<RoleServer>, effect: Effect) -> bool {
    is_modern(context) || effect != Effect::Motion || answers_ping(&context.peer).await
}

/// Whether the client of a request is at stdin and stdout.
pub(crate) fn is_at_stdio(context: &RequestContext<RoleServer>) -> bool {
    context.extensions.get::<http::request::Parts>().is_none()
}

fn connection(context: &RequestContext<RoleServer>) -> Option<&Connection> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    parts.extensions.get::<Connection>()
}

/// Counts a call that moves something for a client of the modern era, until the guard is dropped.
pub(crate) fn moves(context: &RequestContext<RoleServer>, effect: Effect) -> Option<MotionGuard> {
    if effect != Effect::Motion || !is_modern(context) {
        return None;
    }
    let moving = match connection(context) {
        Some(connection) => &connection.moving,
        None => context.extensions.get::<MotionCount>()?,
    };
    Some(moving.begin())
}

/// Pings a client until it no longer answers.
async fn silence(peer: &Peer<RoleServer>) {
    loop {
        sleep(PING).await;
        if !answers_ping(peer).await {
            return;
        }
    }
}

async fn answers_ping(peer: &Peer<RoleServer>) -> bool {
    let ping = async {
        let request = ServerRequest::PingRequest(PingRequest::default());
        let sent = peer.send_request_with_option(request, PeerRequestOptions::with_timeout(PING));
        sent.await?.await_response().await
    };
    // An error is an answer, too.
    matches!(
        timeout(PING, ping).await,
        Ok(Ok(_) | Err(ServiceError::McpError(_)))
    )
}

/// A connection that notices when its peer closes it, or does not read for [`WRITE_WAIT`].
pub(crate) struct Watched<T> {
    inner: T,
    gone: CancellationToken,
    does_not_read: CancellationToken,
    blocked: Option<Pin<Box<Sleep>>>,
}

impl<T> Watched<T> {
    /// Creates the connection. `gone` is cancelled when the peer is gone, `does_not_read` when it is so because nothing can be written
    /// to it.
    pub(crate) fn new(inner: T, gone: CancellationToken, does_not_read: CancellationToken) -> Self {
        Self {
            inner,
            gone,
            does_not_read,
            blocked: None,
        }
    }

    /// Passes on the result of a write, and fails the write if it takes too long.
    fn written<V>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<V>>) -> Poll<io::Result<V>> {
        match poll {
            Poll::Ready(result) => {
                self.blocked = None;
                if result.is_err() {
                    self.does_not_read.cancel();
                    self.gone.cancel();
                }
                Poll::Ready(result)
            }
            Poll::Pending => {
                let end = || Box::pin(tokio::time::sleep_until(Instant::now() + WRITE_WAIT));
                let blocked = self.blocked.get_or_insert_with(end);
                match blocked.as_mut().poll(cx) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(()) => {
                        self.does_not_read.cancel();
                        self.gone.cancel();
                        Poll::Ready(Err(io::Error::new(
                            io::ErrorKind::TimedOut,
                            "the client does not read",
                        )))
                    }
                }
            }
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let room = buf.remaining();
        let poll = Pin::new(&mut self.inner).poll_read(cx, buf);
        let ended = match &poll {
            Poll::Ready(Ok(())) => room > 0 && buf.filled().len() == before,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if ended {
            self.gone.cancel();
        }
        poll
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.written(cx, poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.inner).poll_flush(cx);
        self.written(cx, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn an_end_that_closes_is_noticed() {
        let (ours, theirs) = duplex(64);
        let gone = CancellationToken::new();
        let mut watched = Watched::new(ours, gone.clone(), CancellationToken::new());
        drop(theirs);
        assert_eq!(watched.read(&mut [0; 8]).await.ok(), Some(0));
        assert!(gone.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_that_does_not_read_is_gone_after_two_seconds_and_a_slow_one_is_not() {
        let (ours, mut theirs) = duplex(8);
        let gone = CancellationToken::new();
        let mut watched = Watched::new(ours, gone.clone(), CancellationToken::new());
        for _ in 0..3 {
            watched.write_all(&[0; 8]).await.expect("there is room");
            let slow = async {
                sleep(WRITE_WAIT - Duration::from_millis(1)).await;
                theirs.read_exact(&mut [0; 8]).await.expect("what was written")
            };
            let (written, _) = tokio::join!(watched.write_all(&[1; 8]), slow);
            written.expect("it was read in time");
            theirs.read_exact(&mut [0; 8]).await.expect("what was written");
        }
        assert!(!gone.is_cancelled());
        watched.write_all(&[0; 8]).await.expect("there is room");
        let start = Instant::now();
        let error = watched.write_all(&[0; 8]).await.expect_err("nothing reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(gone.is_cancelled() && start.elapsed() <= WRITE_WAIT + Duration::from_millis(2));
    }
}
