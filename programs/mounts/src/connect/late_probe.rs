//! A transport that survives a late answer to the probe of the modern era. Read [`IgnoresLateProbe`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// The library asks `server/discover`, and `initialize` after 10 s without an answer. A server that takes longer to start answers
/// both, and the library takes the first answer for a wrong one to the second request, and gives up. This transport drops it.
pub(super) struct IgnoresLateProbe<T> {
    inner: T,
    probe: Option<RequestId>,
    /// Whether the probe was given up.
    is_late: bool,
    /// Set when the late answer says that the server knows the modern era.
    is_modern: Arc<AtomicBool>,
}

impl<T> IgnoresLateProbe<T> {
    pub(super) fn new(inner: T, is_modern: Arc<AtomicBool>) -> Self {
        Self {
            inner,
            probe: None,
            is_late: false,
            is_modern,
        }
    }

    /// Whether a message is the answer that nothing waits for any more.
    fn drops(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        if !self.is_late || self.probe.is_none() {
            return false;
        }
        match message {
            JsonRpcMessage::Response(answer) if Some(&answer.id) == self.probe.as_ref() => {
                self.is_modern.store(true, Ordering::Relaxed);
                true
            }
            JsonRpcMessage::Error(error) => error.id.is_some() && error.id == self.probe,
            _ => false,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for IgnoresLateProbe<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message {
            match &request.request {
                ClientRequest::DiscoverRequest(_) => self.probe = Some(request.id.clone()),
                ClientRequest::InitializeRequest(_) => self.is_late = self.probe.is_some(),
                _ => {}
            }
        }
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            if !self.drops(&message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rmcp::service::ClientServiceExt as _;
    use rmcp::transport::async_rw::AsyncRwTransport;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex};

    use super::*;
    use crate::connect::lifecycle;

    /// Serves a client like a server that needs 20 s to start, and then answers what has arrived in order.
    async fn slow_server(io: tokio::io::DuplexStream, probe: Value) {
        let (read, mut write) = tokio::io::split(io);
        let mut lines = BufReader::new(read).lines();
        tokio::time::sleep(Duration::from_secs(20)).await;
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).expect("JSON");
            let mut answer = match request["method"].as_str() {
                Some("server/discover") => probe.clone(),
                Some("initialize") => {
                    json!({"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "slow", "version": "1"}}})
                }
                Some("tools/list") => json!({"result": {"tools": []}}),
                _ => continue,
            };
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = request["id"].clone();
            let text = format!("{answer}\n");
            if write.write_all(text.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_takes_long_to_start_is_greeted_whatever_it_answers_to_the_probe() {
        let discovered = json!({"result": {"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete",
            "ttlMs": 0, "cacheScope": "private", "instructions": "", "_meta": {}}});
        for (probe, is_modern) in [
            (
                json!({"error": {"code": -32601, "message": "server/discover"}}),
                false,
            ),
            (
                json!({"error": {"code": -32602, "message": "before initialize"}}),
                false,
            ),
            (discovered, true),
        ] {
            let (ours, theirs) = duplex(1 << 16);
            let server = tokio::spawn(slow_server(theirs, probe));
            let (read, write) = tokio::io::split(ours);
            let late = Arc::new(AtomicBool::new(false));
            let transport = AsyncRwTransport::new_client(read, write);
            let transport = IgnoresLateProbe::new(transport, Arc::clone(&late));
            let greeted = ().serve_with_lifecycle(transport, lifecycle(None)).await;
            let client = greeted.expect("it is greeted");
            client.list_all_tools().await.expect("it is served");
            assert_eq!(late.load(Ordering::Relaxed), is_modern);
            server.abort();
        }
    }
}
