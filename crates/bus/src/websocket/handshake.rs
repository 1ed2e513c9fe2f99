//! The opening handshake, for client and server.
//!
//! The bus sends its greeting at once, so bytes may arrive together with the handshake. They are returned to the caller.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tungstenite::handshake::client::{Response, generate_key};
use tungstenite::handshake::derive_accept_key;
use tungstenite::handshake::machine::TryParse;
use tungstenite::handshake::server::{Request, create_response, write_response};
use tungstenite::http::StatusCode;
use tungstenite::http::header::CONTENT_LENGTH;

use super::origin::{Foreign, OriginPolicy};

/// Longest accepted head of a request or a response, in bytes.
const HEAD_LIMIT: usize = 16 * 1024;

/// Longest text of a refusal that is read, in bytes.
const REASON_LIMIT: usize = 1024;

/// Why the handshake failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("connection closed during the websocket handshake")]
    Closed,
    #[error("not a websocket: {0}")]
    NotWebsocket(String),
    #[error("answered {status}: check the route, which is {path}")]
    Refused { status: String, path: String },
    #[error("answered {status}: {reason}")]
    Forbidden { status: String, reason: String },
    #[error("{0}")]
    Foreign(#[from] Foreign),
}

/// Requests a websocket at `path`; returns the bytes received after the response.
pub(crate) async fn ask<S>(stream: &mut S, host: &str, path: &str) -> Result<BytesMut, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    let key = generate_key();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nUser-Agent: ovos-tools/{}\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let (response, rest) = read_head::<Response, _>(stream).await?;
    let status = response.status();
    if status == StatusCode::FORBIDDEN {
        let length = response.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        return Err(HandshakeError::Forbidden {
            status: status.to_string(),
            reason: read_reason(stream, rest, length.unwrap_or(0)).await,
        });
    }
    if status != 101 {
        return Err(HandshakeError::Refused {
            status: status.to_string(),
            path: path.to_owned(),
        });
    }
    let accepted = response.headers().get("Sec-WebSocket-Accept");
    if accepted.is_none_or(|value| value.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes()) {
        return Err(HandshakeError::NotWebsocket(
            "the header Sec-WebSocket-Accept of its answer does not fit the request".to_owned(),
        ));
    }
    Ok(rest)
}

/// The text with which a bus refuses a client; empty if there is none.
async fn read_reason<S: AsyncRead + Unpin + ?Sized>(stream: &mut S, rest: BytesMut, length: usize) -> String {
    let mut text = rest;
    let length = length.min(REASON_LIMIT);
    while text.len() < length {
        match stream.read_buf(&mut text).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    text.truncate(length);
    String::from_utf8_lossy(&text).into_owned()
}

/// Accepts a request for a websocket at `route`, if the policy allows its origin; returns the bytes received after it. Any other
/// request is refused in the words of tornado, the server of the Python bus.
pub(crate) async fn answer<S>(
    stream: &mut S,
    route: &str,
    policy: &OriginPolicy,
) -> Result<BytesMut, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    let (request, rest) = match read_head::<Request, _>(stream).await {
        Ok(head) => head,
        Err(HandshakeError::NotWebsocket(cause)) => {
            refuse(stream, "400 Bad Request", "").await?;
            return Err(HandshakeError::NotWebsocket(cause));
        }
        Err(error) => return Err(error),
    };
    let path = request.uri().path();
    if path != route {
        let status = "404 Not Found";
        let body = "<html><title>404: Not Found</title><body>404: Not Found</body></html>";
        refuse(stream, status, body).await?;
        return Err(HandshakeError::Refused {
            status: status.to_owned(),
            path: path.to_owned(),
        });
    }
    if let Err(foreign) = policy.check(request.headers()) {
        let status = match foreign {
            Foreign::Malformed => "400 Bad Request",
            Foreign::Host(_) | Foreign::Origin { .. } => "403 Forbidden",
        };
        refuse(stream, status, &escaped(&foreign.to_string())).await?;
        return Err(HandshakeError::Foreign(foreign));
    }
    let response = match create_response(&request) {
        Ok(response) => response,
        Err(error) => {
            refuse(
                stream,
                "400 Bad Request",
                "Can \"Upgrade\" only to \"WebSocket\".",
            )
            .await?;
            return Err(HandshakeError::NotWebsocket(error.to_string()));
        }
    };
    let mut head = Vec::new();
    write_response(&mut head, &response).map_err(|error| HandshakeError::NotWebsocket(error.to_string()))?;
    stream.write_all(&head).await?;
    Ok(rest)
}

async fn read_head<H, S>(stream: &mut S) -> Result<(H, BytesMut), HandshakeError>
where
    H: TryParse,
    S: AsyncRead + Unpin + ?Sized,
{
    let mut buffer = BytesMut::with_capacity(4096);
    loop {
        if stream.read_buf(&mut buffer).await? == 0 {
            return Err(HandshakeError::Closed);
        }
        let parsed =
            H::try_parse(&buffer).map_err(|error| HandshakeError::NotWebsocket(error.to_string()))?;
        if let Some((size, head)) = parsed {
            return Ok((head, buffer.split_off(size)));
        }
        if buffer.len() > HEAD_LIMIT {
            return Err(HandshakeError::NotWebsocket(format!(
                "the head is longer than {HEAD_LIMIT} bytes"
            )));
        }
    }
}

/// Escapes a text for a page of HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

async fn refuse<S: AsyncWrite + Unpin + ?Sized>(stream: &mut S, status: &str, body: &str) -> io::Result<()> {
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=UTF-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}
