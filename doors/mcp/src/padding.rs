//! Notices clients of the modern era that do not read.
//!
//! In that era a server asks its client nothing, so there is no ping. While something moves for a client, the door sends it text
//! without meaning instead: comments in an event stream, spaces before the next line. A client that reads never sees it. What a
//! frozen one does not read soon fills the buffers between the two, and a write that blocks ends its calls ([`crate::presence`]).

use std::convert::Infallible;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often text without meaning is sent to a client at stdout, and how soon the answer to a call that moves something begins.
pub(crate) const EVERY: Duration = Duration::from_millis(500);

/// How often it is sent into an event stream, and how much of it. What a client's system takes for a program that does not read is
/// usually 64 KiB, and half a second fills that. A system takes more for a program that has read as much at once before, so that each
/// piece is smaller.
const COMMENTS_EVERY: Duration = Duration::from_millis(125);
const COMMENTS: usize = 16 << 10;

/// How much may be on the way to a client that does not read.
const SEND_BUFFER: usize = 16 << 10;

/// The size of the pipe to a client at stdout, and how much goes into it at a time.
const PIPE: usize = 4 << 10;

/// Counts the calls that move something for one client.
#[derive(Clone, Debug, Default)]
pub(crate) struct MotionCount(Arc<AtomicUsize>);

/// Counts one call that moves something, until it is dropped.
pub(crate) struct MotionGuard(MotionCount);

impl MotionCount {
    /// Counts a call until its guard is dropped.
    pub(crate) fn begin(&self) -> MotionGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        MotionGuard(self.clone())
    }

    pub(crate) fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for MotionGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Limits how much may be on the way to a client, and returns how many bytes fill the pipe. `None` if that cannot be limited: a
/// client that does not read is noticed late then.
pub(crate) fn narrow(out: impl AsFd) -> Option<usize> {
    // Some hosts give their servers a pair of sockets as stdin and stdout.
    if set_socket_send_buffer_size(&out, PIPE).is_ok() {
        return Some(PIPE);
    }
    // A pipe that holds more than the new size keeps its own.
    fcntl_setpipe_size(&out, PIPE)
        .or_else(|_| fcntl_getpipe_size(&out))
        .ok()
}

/// Limits how much may be on the way to a client over HTTP.
pub(crate) fn narrow_socket(out: impl AsFd) {
    // If the kernel does not allow it, a frozen client is noticed later.
    _ = set_socket_send_buffer_size(out, SEND_BUFFER);
}

/// An event stream with comments in it while something moves for its client.
pub(crate) struct Padded<B> {
    inner: B,
    moving: MotionCount,
    due: Interval,
}

impl<B> Padded<B> {
    pub(crate) fn new(inner: B, moving: MotionCount) -> Self {
        let due = ticks(COMMENTS_EVERY);
        Self { inner, moving, due }
    }
}

/// An interval whose first tick comes after one period.
pub(crate) fn ticks(every: Duration) -> Interval {
    let mut due = interval(every);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    due.reset();
    due
}

impl<B: Body<Data = Bytes, Error = Infallible> + Unpin> Body for Padded<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // Each frame of the inner body is a whole event.
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        loop {
            ready!(self.due.poll_tick(cx));
            if self.moving.is_any() {
                return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&COMMENT)))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Comments of an event stream, as lines that are not too long for any reader.
static COMMENT: [u8; COMMENTS] = comment();

const fn comment() -> [u8; COMMENTS] {
    let mut text = [b' '; COMMENTS];
    let mut line = 0;
    while line < COMMENTS {
        text[line] = b':';
        text[line + 1023] = b'\n';
        line += 1024;
    }
    text
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, StreamBody};
    use tokio::time::{Instant, advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn comments_are_sent_only_while_something_moves() {
        let moving = MotionCount::default();
        let never = futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>();
        let mut body = Padded::new(StreamBody::new(never).boxed(), moving.clone());
        let start = Instant::now();
        let rests = tokio::time::timeout(Duration::from_secs(60), body.frame()).await;
        assert!(rests.is_err() && start.elapsed() >= Duration::from_secs(60));
        let moves = moving.begin();
        advance(EVERY).await;
        let frame = body.frame().await.expect("a frame").expect("no error");
        let text = frame.into_data().expect("data");
        assert!(
            text.split(|byte| *byte == b'\n')
                .all(|line| line.is_empty() || line[0] == b':')
        );
        drop(moves);
        let rests = tokio::time::timeout(Duration::from_secs(60), body.frame()).await;
        assert!(rests.is_err());
    }
}
