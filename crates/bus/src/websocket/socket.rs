//! TCP sockets for the bus: no Nagle's algorithm, no delayed ACK, keepalive to detect dead peers.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A byte stream, plain TCP or TLS.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A TCP stream that acknowledges received data at once.
///
/// The Python bus and the Rust bus leave Nagle's algorithm on: they hold back a frame until the previous one is
/// acknowledged, and the kernel delays that acknowledgement by 40 ms. `TCP_QUICKACK` is not permanent, so it is set
/// again after every read.
#[derive(Debug)]
pub(crate) struct QuickAck(TcpStream);

impl QuickAck {
    /// Wraps a new connection and sets its options. An option that cannot be set is ignored.
    pub(crate) fn new(stream: TcpStream) -> Self {
        let _ = stream.set_nodelay(true);
        let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(10));
        #[cfg(target_os = "linux")]
        let keepalive = keepalive.with_interval(Duration::from_secs(2)).with_retries(3);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
        let stream = Self(stream);
        stream.arm();
        stream
    }

    fn arm(&self) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let _ = SockRef::from(&self.0).set_tcp_quickack(true);
    }
}

impl AsyncRead for QuickAck {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = ready!(Pin::new(&mut self.0).poll_read(cx, buffer));
        self.arm();
        Poll::Ready(outcome)
    }
}

impl AsyncWrite for QuickAck {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
