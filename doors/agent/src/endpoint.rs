//! The endpoint of a model: sends a request and returns its answer.

use std::io;
use std::time::Duration;

use config::AgentDoor;
use door::{HttpsClient, chain, https_client};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::end::End;

/// The largest answer that is read, in bytes.
const LARGEST: usize = 8 << 20;

/// The delay before the first repetition; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest delay before a repetition, even if the endpoint asks for a longer one.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The maximum length of an endpoint's error text that is shown.
const TOLD: usize = 300;

/// Why the endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    // The name is not shown: it may be the key itself, written in the wrong place.
    #[error(
        "the environment variable that service.doors.agent.key_env names is not set: export it, or remove the key"
    )]
    NoKey,
    #[error(
        "the environment variable that service.doors.agent.key_env names has characters that no header can have"
    )]
    BadKey,
    #[error("service.doors.agent.headers: '{0}' is not a header that can be sent")]
    BadHeader(String),
    #[error("the certificates of this machine cannot be read: {0}")]
    NoCertificates(io::Error),
}

/// The endpoint of a model.
pub(crate) struct Endpoint {
    client: HttpsClient,
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    timeout: Duration,
    retries: u32,
}

/// Why a request failed.
#[derive(Debug)]
enum Failure {
    /// There was no connection, or it broke.
    Connection(String),
    /// The answer was late.
    Late,
    /// An HTTP status other than success, the text of the error, and how long to wait before a repetition.
    Status(StatusCode, String, Option<Duration>),
    /// The answer is not JSON.
    Unreadable(String),
}

impl Endpoint {
    /// Creates an endpoint from the configuration; `variable` looks up the key.
    ///
    /// # Errors
    /// [`EndpointError`].
    pub(crate) fn new(
        config: &AgentDoor,
        variable: impl FnOnce(&str) -> Option<String>,
    ) -> Result<Self, EndpointError> {
        let mut headers = vec![
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (
                USER_AGENT,
                HeaderValue::from_static(concat!("ovos-tools-agent/", env!("CARGO_PKG_VERSION"))),
            ),
        ];
        if !config.key_env.is_empty() {
            let name = &config.key_env;
            let key = variable(name).filter(|key| !key.trim().is_empty());
            let key = key.ok_or(EndpointError::NoKey)?;
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.trim()))
                .map_err(|_| EndpointError::BadKey)?;
            value.set_sensitive(true);
            headers.push((AUTHORIZATION, value));
        }
        for (name, text) in &config.headers {
            let bad = || EndpointError::BadHeader(name.clone());
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(text).map_err(|_| bad())?;
            // Some endpoints take their key in this header.
            value.set_sensitive(true);
            headers.push((header, value));
        }
        let client = https_client(&config.url).map_err(EndpointError::NoCertificates)?;
        Ok(Self {
            client,
            url: format!("{}/chat/completions", config.url.trim_end_matches('/')),
            headers,
            timeout: config.timeout,
            retries: config.retries,
        })
    }

    /// Sends a request, and repeats it if that may help.
    ///
    /// # Errors
    /// The reason for the end of the run.
    ///
    /// # Cancel safety
    /// If dropped, the endpoint may continue to work on the answer.
    pub(crate) async fn complete(&self, request: &Value) -> Result<Value, End> {
        let body = Bytes::from(request.to_string());
        let mut wait = FIRST_WAIT;
        let mut tries = 0;
        loop {
            let failure = match timeout(self.timeout, self.send_once(body.clone())).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::Late,
            };
            tries += 1;
            let retry_after = match &failure {
                Failure::Connection(_) => None,
                Failure::Status(status, _, asked)
                    if *status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() =>
                {
                    *asked
                }
                // There is no reason to expect an earlier or a different answer to a repetition.
                Failure::Late | Failure::Status(..) | Failure::Unreadable(_) => {
                    return Err(self.end(failure, tries));
                }
            };
            if tries > self.retries {
                return Err(self.end(failure, tries));
            }
            let pause = retry_after.unwrap_or(wait).min(LONGEST_WAIT);
            tracing::warn!(?failure, ?pause, "asking the model again");
            sleep(pause).await;
            wait *= 2;
        }
    }

    async fn send_once(&self, body: Bytes) -> Result<Value, Failure> {
        let connection = |error: &dyn std::error::Error| Failure::Connection(chain(error));
        let mut request = Request::builder().method(Method::POST).uri(&self.url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::new(body))
            .map_err(|error| connection(&error))?;
        let response = self
            .client
            .request(request)
            .await
            .map_err(|error| connection(&error))?;
        let status = response.status();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok())
            .map(Duration::from_secs);
        let body = Limited::new(response.into_body(), LARGEST)
            .collect()
            .await
            .map_err(|error| match error.downcast_ref::<LengthLimitError>() {
                Some(_) => Failure::Unreadable(format!("it is larger than {LARGEST} bytes")),
                None => connection(error.as_ref()),
            })?
            .to_bytes();
        if !status.is_success() {
            let text = String::from_utf8_lossy(&body);
            let text = crate::prompt::cut(text.trim(), TOLD);
            return Err(Failure::Status(status, text, retry_after));
        }
        serde_json::from_slice(&body).map_err(|error| Failure::Unreadable(format!("it is not JSON: {error}")))
    }

    fn end(&self, failure: Failure, tries: u32) -> End {
        let url = &self.url;
        match failure {
            Failure::Connection(why) => End::ModelUnreachable(format!("{url}: {why} ({tries} tries)")),
            Failure::Late => End::ModelTimeout(format!(
                "{url}: no answer within {} s",
                self.timeout.as_secs_f64()
            )),
            Failure::Status(status, text, _)
                if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() =>
            {
                End::ModelUnreachable(format!("{url}: HTTP {status} ({tries} tries): {text}"))
            }
            Failure::Status(status, text, _) => End::ModelRefused(format!("{url}: HTTP {status}: {text}")),
            Failure::Unreadable(why) => End::ModelUnreadable(format!("{url}: {why}")),
        }
    }
}
