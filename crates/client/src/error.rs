//! What can go wrong between a client and the service.

use std::time::Duration;

use bus::{DialError, shown};
use ovos_toolbox_wire::FailureKind;
use url::Url;

use crate::payload::ErrorDetail;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The first connection failed.
    #[error("{0}{advice}", advice = advice(.0))]
    NoBus(#[source] DialError),
    /// The bus did not accept the first connection in time.
    #[error(
        "no bus at {}: no answer within {wait:?}; start ovos-messagebus, or run `ovos-tools serve --embedded-bus auto`, or name another \
         bus with --bus",
        shown(url)
    )]
    NoBusInTime {
        /// The bus.
        url: Url,
        /// How long the client waited.
        wait: Duration,
    },
    /// The connection broke before the answer arrived. It is not known whether the request was carried out.
    #[error("the bus at {} closed the connection: {cause}", shown(url))]
    Lost {
        /// The bus.
        url: Url,
        /// The reason, as far as it is known.
        cause: String,
    },
    /// The bus is away, or too many messages wait to be sent to it. The request was not sent; the client reconnects
    /// by itself.
    #[error(
        "cannot send to the bus at {} at the moment: try again when the connection is back",
        shown(url)
    )]
    NotSent {
        /// The bus.
        url: Url,
    },
    /// The message was not sent: the bus would close the connection.
    #[error("a message under {topic} has {size} bytes, and the bus takes at most {limit}: send less at once")]
    TooLarge {
        /// The topic.
        topic: String,
        /// Its size as a frame, in bytes.
        size: usize,
        /// The largest frame, in bytes.
        limit: usize,
    },
    /// The bus is connected, and no service on it answered.
    #[error(
        "no ovos-tools service answered on {} within {wait:?}: start one with `ovos-tools serve`",
        shown(url)
    )]
    NoService {
        /// The bus.
        url: Url,
        /// How long the client waited.
        wait: Duration,
    },
    /// The service ended and another one began while the call ran. The new service knows nothing of the call.
    #[error(
        "the ovos-tools service on {} was restarted while the call ran, which ended the call: see `ovos-tools status` before you ask again",
        shown(url)
    )]
    Restarted {
        /// The bus.
        url: Url,
    },
    /// No answer arrived in time. It is not known whether the request was carried out.
    #[error(
        "no answer to {topic} on {} within {wait:?}: check that ovos-tools is running on this bus",
        shown(url)
    )]
    NoAnswer {
        /// The bus.
        url: Url,
        /// The topic.
        topic: &'static str,
        /// How long the client waited.
        wait: Duration,
    },
    /// The answer is an error.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The answer does not have the shape of its topic's answers.
    #[error("the answer to {topic} cannot be read: {cause}")]
    Unreadable {
        /// The topic.
        topic: &'static str,
        /// Why it cannot be read.
        cause: serde_json::Error,
    },
    /// The message cannot be written as a JSON object.
    #[error("a message under {topic} cannot be written as a JSON object: {cause}")]
    Unwritable {
        /// The topic.
        topic: String,
        /// Why it cannot be written.
        cause: serde_json::Error,
    },
}

impl ClientError {
    /// Whether the request was not sent, so that it was certainly not carried out.
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        matches!(
            self,
            Self::NoBus(_)
                | Self::NoBusInTime { .. }
                | Self::NotSent { .. }
                | Self::TooLarge { .. }
                | Self::Unwritable { .. }
        )
    }
}

/// An answer that is an error.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// The `error` of the answer: `Kind: message`, or a text that the published contract fixes.
    pub text: String,
    /// Details; present if the request has `"detail": true`.
    pub detail: Option<ErrorDetail>,
}

impl Refusal {
    /// The kind of the error, such as `TimeoutError`; none where the published contract fixes a text without one.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        if let Some(detail) = &self.detail {
            return Some(&detail.kind);
        }
        let (kind, _) = self.text.split_once(": ")?;
        let is_word = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_word.then_some(kind)
    }

    /// The kind of the error, if it is one of the service's own kinds.
    #[must_use]
    pub fn known_kind(&self) -> Option<FailureKind> {
        self.kind()?.parse().ok()
    }
}

fn advice(error: &DialError) -> &'static str {
    match error {
        DialError::Unreachable { .. } | DialError::TimedOut(_) | DialError::NotABus { .. } => {
            "; start ovos-messagebus, or run `ovos-tools serve --embedded-bus auto`, or name another bus with --bus"
        }
        DialError::Tls { .. } => "; if its certificate is self-signed, name it in websocket.ssl_cert",
        DialError::Address(_) | DialError::ExtraCa { .. } | DialError::NoTrust(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_the_word_before_the_colon_where_there_is_one() {
        for (text, kind) in [
            ("TimeoutError: not done within 5 s", Some("TimeoutError")),
            ("Unknown tool: 'add'", None),
            ("Missing required field: 'name'", None),
            (": x", None),
            ("broken", None),
        ] {
            let refusal = Refusal {
                text: text.to_owned(),
                detail: None,
            };
            assert_eq!(refusal.kind(), kind, "{text}");
        }
    }
}
