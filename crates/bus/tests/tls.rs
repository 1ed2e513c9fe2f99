//! A bus with TLS: accepted if its certificate is trusted, refused with a reason if not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use ovos_tools_bus::Caller;
use serde_json::{Map, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_tungstenite::tungstenite::Message as Frame;
use url::Url;

const DEADLINE: Duration = Duration::from_secs(20);

/// A bus with a self-signed certificate that answers every request with the request's data, as `<type>.response`.
struct TlsBus {
    port: u16,
    certificate: PathBuf,
    _folder: tempfile::TempDir,
}

impl TlsBus {
    async fn start() -> Self {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let certificate = folder.path().join("bus.crt");
        std::fs::write(&certificate, cert.pem()).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // Ends with the test's runtime.
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that does not trust the certificate disconnects here.
                let Ok(stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else {
                    continue;
                };
                while let Some(Ok(frame)) = socket.next().await {
                    let Frame::Text(text) = frame else { continue };
                    let answer = text.replacen("\"test.ask\"", "\"test.ask.response\"", 1);
                    socket.send(Frame::text(answer)).await.unwrap();
                }
            }
        });
        Self {
            port,
            certificate,
            _folder: folder,
        }
    }

    fn url(&self, host: &str) -> Url {
        format!("wss://{host}:{}/core", self.port).parse().unwrap()
    }
}

#[tokio::test]
async fn a_bus_is_trusted_by_its_certificate() {
    let bus = TlsBus::start().await;
    for host in ["127.0.0.1", "localhost"] {
        let trusted = Some(bus.certificate.clone());
        let mut caller = Caller::connect(bus.url(host), trusted, DEADLINE).await.unwrap();
        let data = Map::from_iter([("text".to_owned(), json!("zażółć"))]);
        let answer = caller
            .request("test.ask", data.clone(), DEADLINE, |_| {})
            .await
            .unwrap();
        assert_eq!(answer.data, data, "{host}");
    }
}

#[tokio::test]
async fn an_unknown_certificate_is_refused_with_the_reason() {
    let bus = TlsBus::start().await;
    let refused = Caller::connect(bus.url("127.0.0.1"), None, Duration::from_secs(2)).await;
    let error = refused
        .err()
        .expect("a certificate that no authority signed")
        .to_string();
    assert!(error.contains("ertificate"), "{error}");
    assert!(error.contains(&bus.url("127.0.0.1").to_string()), "{error}");
}
