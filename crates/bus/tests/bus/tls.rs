//! A bus with TLS: accepted if its certificate is trusted, refused with a reason if not.

use std::path::PathBuf;
use std::sync::Arc;

use crate::support::{Hearing, Recorder, soon};
use futures_util::{SinkExt, StreamExt};
use ovos_tools_bus::{BusClient, ClientConfig, DialError, Message};
use serde_json::{Map, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use url::Url;

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

/// Connects once; the connection ends with the guard.
async fn connect(url: Url, trusted: Option<PathBuf>) -> (Result<BusClient, DialError>, Hearing, DropGuard) {
    let (recorder, hearing) = Recorder::new();
    let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
    let config = ClientConfig {
        extra_ca: trusted,
        ..ClientConfig::new(url)
    };
    let connected = BusClient::connect(config, recorder, &tasks, shutdown.clone());
    let connected = soon("the handshake", connected).await;
    (connected, hearing, shutdown.drop_guard())
}

#[tokio::test]
async fn a_bus_is_trusted_by_its_certificate() {
    let bus = TlsBus::start().await;
    for host in ["127.0.0.1", "localhost"] {
        let (client, mut hearing, _end) = connect(bus.url(host), Some(bus.certificate.clone())).await;
        let client = client.unwrap();
        let data = Map::from_iter([("text".to_owned(), json!("zażółć"))]);
        assert!(
            client.notify(Message::new("test.ask", data.clone()).to_text()),
            "{host}"
        );
        let answer = loop {
            if let crate::support::Heard::Frame(text) = hearing.next().await {
                break Message::parse(&text).unwrap();
            }
        };
        assert_eq!(
            (answer.kind.as_str(), answer.data),
            ("test.ask.response", data),
            "{host}"
        );
    }
}

#[tokio::test]
async fn an_unknown_certificate_is_refused_with_the_reason() {
    let bus = TlsBus::start().await;
    let (refused, _, _) = connect(bus.url("127.0.0.1"), None).await;
    let error = refused
        .err()
        .expect("a certificate that no authority signed")
        .to_string();
    assert!(error.contains("ertificate"), "{error}");
    assert!(error.contains(&bus.url("127.0.0.1").to_string()), "{error}");
}
