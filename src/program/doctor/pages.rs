//! Checks whether the messagebus takes web pages for clients. Read [`check_origin`].

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

use super::finding::Finding;

/// How long the bus may take to answer.
const WAIT: Duration = Duration::from_secs(2);

/// The page that asks; a name like this has no owner.
const ORIGIN: &str = "http://page.invalid";

/// Asks the bus for a connection as a page in a browser would, and sends nothing over it. No finding if there is no bus, or
/// one that needs TLS.
pub(super) async fn check_origin(url: &Url) -> Option<Finding> {
    if url.scheme() != "ws" {
        return None;
    }
    let status = timeout(WAIT, fetch_status(url)).await.ok()?.ok()?;
    finding(&status)
}

fn finding(status: &str) -> Option<Finding> {
    let part = "web pages";
    match status {
        "101" => Some(Finding::limited(
            part,
            "any web page that is open in a browser on this machine can connect to the messagebus and call every tool: \
             ovos-messagebus does not check the Origin header",
            "use the embedded bus, which rejects web pages (`embedded_bus`: \"always\" in mycroft.conf, and ovos-messagebus \
             stopped), or require a confirmation for motion (`service.policy`)",
        )),
        "403" => Some(Finding::good(
            part,
            "the messagebus rejects web pages of other origins",
        )),
        _ => None,
    }
}

/// The status of the answer.
async fn fetch_status(url: &Url) -> std::io::Result<String> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(80);
    let path = url.path();
    let mut stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nOrigin: {ORIGIN}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await?;
    Ok(String::from_utf8_lossy(&head[9..]).into_owned())
}
