//! The beginning of an answer over HTTP. The library begins one with its first message, which for a call without progress is its
//! result, so a client that is frozen cannot be told from one that waits. While something moves for a client, its answer begins
//! earlier, as a stream into which padding is sent that a frozen client does not read ([`crate::padding`]).

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::{BoxBody, Collect, UnsyncBoxBody};
use hyper::body::{Body, Frame};

use crate::padding::{EVERY, MotionCount, Padded, ticks};

/// The body of an answer.
pub(crate) type Answer = UnsyncBoxBody<Bytes, Infallible>;

/// What the library answers with.
type Answered = Response<BoxBody<Bytes, Infallible>>;

const STREAM: &str = "text/event-stream";

/// Waits until a request of the modern era is answered, or until something moves for its client.
///
/// # Cancel safety
/// Dropping it, or the body that it returns, drops `answering`.
pub(crate) async fn respond_early(
    answering: impl Future<Output = Answered> + Send + 'static,
    moving: MotionCount,
) -> Response<Answer> {
    let mut answering: BoxFuture<'static, Answered> = Box::pin(answering);
    let mut due = ticks(EVERY);
    loop {
        tokio::select! {
            biased;
            response = &mut answering => return padded(response, moving),
            _ = due.tick() => if moving.is_any() {
                break;
            }
        }
    }
    let mut response = Response::new(Padded::new(LateStream::Waits(answering), moving).boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn padded(response: Answered, moving: MotionCount) -> Response<Answer> {
    let is_stream = is_stream(&response);
    response.map(|body| {
        if is_stream {
            Padded::new(body, moving).boxed_unsync()
        } else {
            body.boxed_unsync()
        }
    })
}

fn is_stream(response: &Answered) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(STREAM.as_bytes()))
}

/// An event stream that has begun before the library's answer.
enum LateStream {
    Waits(BoxFuture<'static, Answered>),
    Streams(BoxBody<Bytes, Infallible>),
    /// An answer that is no stream becomes one event.
    Collects(Pin<Box<Collect<BoxBody<Bytes, Infallible>>>>),
    Ended,
}

impl Body for LateStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            match &mut *self {
                Self::Waits(answering) => {
                    let response = ready!(answering.as_mut().poll(cx));
                    *self = if is_stream(&response) {
                        Self::Streams(response.into_body())
                    } else {
                        Self::Collects(Box::pin(response.into_body().collect()))
                    };
                }
                Self::Streams(body) => return Pin::new(body).poll_frame(cx),
                Self::Collects(body) => {
                    let Ok(whole) = ready!(body.as_mut().poll(cx));
                    *self = Self::Ended;
                    let event = [b"data: ", &*whole.to_bytes(), b"\n\n"].concat();
                    return Poll::Ready(Some(Ok(Frame::data(event.into()))));
                }
                Self::Ended => return Poll::Ready(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::StreamExt as _;
    use http::StatusCode;
    use http_body_util::{BodyStream, Full};
    use tokio::time::sleep;

    use super::*;

    fn answer(kind: &'static str, status: StatusCode, text: &'static str) -> Answered {
        let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
        *response.status_mut() = status;
        let kind = HeaderValue::from_static(kind);
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }

    async fn text(response: Response<Answer>) -> String {
        let mut frames = BodyStream::new(response.into_body());
        let mut text = String::new();
        while let Some(Ok(frame)) = frames.next().await {
            text += std::str::from_utf8(&frame.into_data().expect("data")).expect("text");
        }
        text.lines()
            .filter(|line| !line.starts_with(':'))
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_begins_early_only_while_something_moves() {
        for (moves, kind, status, expected) in [
            (
                false,
                STREAM,
                StatusCode::OK,
                (STREAM, StatusCode::OK, "data: {}\n"),
            ),
            (
                false,
                "application/json",
                StatusCode::BAD_REQUEST,
                ("application/json", StatusCode::BAD_REQUEST, "{}"),
            ),
            (
                true,
                STREAM,
                StatusCode::OK,
                (STREAM, StatusCode::OK, "data: {}\n"),
            ),
            (
                true,
                "application/json",
                StatusCode::BAD_REQUEST,
                (STREAM, StatusCode::OK, "data: {}\n"),
            ),
        ] {
            let moving = MotionCount::default();
            let moves = moves.then(|| moving.begin());
            let sent = if kind == STREAM { "data: {}\n\n" } else { "{}" };
            let answering = async move {
                sleep(Duration::from_secs(60)).await;
                drop(moves);
                answer(kind, status, sent)
            };
            let response = respond_early(answering, moving).await;
            let kind = response.headers()[CONTENT_TYPE]
                .to_str()
                .expect("text")
                .to_owned();
            let status = response.status();
            let text = text(response).await;
            assert_eq!((kind.as_str(), status, text.as_str()), expected);
        }
    }
}
