//! An HTTP client that notices a lost session even if the server does not report it with 404. Read [`NoticesLostSession`].

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use reqwest::Client;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;
type Error = StreamableHttpError<reqwest::Error>;

/// The examples of the TypeScript SDK, and servers made from them, report an unknown session with 400 and an error without an id.
/// Such an error matches no request, so the request would wait until its time is over. The server has not carried out the request,
/// so this client sends it again in a new session.
#[derive(Clone)]
pub(crate) struct NoticesLostSession(pub(crate) Client);

impl StreamableHttpClient for NoticesLostSession {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let is_asked = is_request_in(session.as_ref(), &message);
        let answer = self.0.post_message(uri, message, session, auth, headers).await;
        noticed(is_asked, answer)
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
        limit: usize,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let is_asked = is_request_in(session.as_ref(), &message);
        let answer = self
            .0
            .post_message_with_max_sse_event_size(uri, message, session, auth, headers, limit);
        noticed(is_asked, answer.await)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<(), Error> {
        self.0.delete_session(uri, session, auth, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<Events, Error> {
        self.0.get_stream(uri, session, last_event, auth, headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
        limit: usize,
    ) -> Result<Events, Error> {
        self.0
            .get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, limit)
            .await
    }
}

fn is_request_in(session: Option<&Arc<str>>, message: &ClientJsonRpcMessage) -> bool {
    session.is_some() && matches!(message, JsonRpcMessage::Request(_))
}

fn noticed(
    is_asked: bool,
    answered: Result<StreamableHttpPostResponse, Error>,
) -> Result<StreamableHttpPostResponse, Error> {
    match answered {
        Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), _))
            if is_asked && error.id.is_none() =>
        {
            Err(StreamableHttpError::SessionExpired)
        }
        answered => answered,
    }
}
