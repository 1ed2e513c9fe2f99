//! One attempt to connect to the bus: TCP, TLS for `wss`, websocket handshake.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
#[cfg(target_os = "linux")]
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use crate::in_process_link::InProcessLink;
use crate::shown::shown;
use crate::websocket::handshake::{self, HandshakeError};
use crate::websocket::socket::{Duplex, QuickAck};

/// Longest time for the whole attempt: a bus on the same machine takes a millisecond.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest time for a TCP connection to one address. The first packet to an absent machine is lost; the kernel sends
/// the second one after a second and the third after three. A new attempt reaches a returned machine sooner.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(2500);

/// How long sent data may stay unacknowledged before the connection fails: the same 16 s in which keepalive detects
/// an idle dead peer.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(16);

/// An open websocket.
pub(super) struct Line {
    pub(super) stream: Box<dyn Duplex>,
    /// Bytes received behind the handshake.
    pub(super) read: BytesMut,
}

/// Why an attempt to connect failed.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The URL is not a bus address.
    #[error("invalid bus address {}: expected ws://host:port/route or wss://host:port/route", shown(.0))]
    Address(Url),
    /// Nothing listens there, or it cannot be reached.
    #[error("no bus at {}: {source}", shown(url))]
    Unreachable {
        /// The bus.
        url: Url,
        /// The cause.
        source: io::Error,
    },
    /// The attempt took longer than ten seconds.
    #[error("no bus at {}: no answer within {DIAL_TIMEOUT:?}", shown(.0))]
    TimedOut(Url),
    /// The extra CA file cannot be used.
    #[error("certificate file {path}: {cause}: expected certificates in PEM format")]
    ExtraCa {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
    /// There are no trusted certificates to verify the bus's certificate with.
    #[error(
        "cannot verify {}: there are no trusted certificates on this machine; install ca-certificates or set \
         websocket.ssl_cert to a CA file",
        shown(.0)
    )]
    NoTrust(Url),
    /// The TLS handshake failed.
    #[error("TLS with {}: {source}", shown(url))]
    Tls {
        /// The bus.
        url: Url,
        /// The cause, such as an untrusted certificate.
        source: io::Error,
    },
    /// Something listens at the address, but it is not a bus.
    #[error("no bus at {}: {cause}", shown(url))]
    NotABus {
        /// The address.
        url: Url,
        /// What it answered instead.
        cause: String,
    },
}

/// A source of connections; tests substitute their own.
pub(super) trait Dial: Send + 'static {
    /// Makes one attempt to connect.
    ///
    /// # Cancel safety
    /// Safe: a dropped attempt leaves nothing behind.
    fn dial(&mut self) -> impl Future<Output = Result<Line, DialError>> + Send;
}

impl Dial for Dialer {
    async fn dial(&mut self) -> Result<Line, DialError> {
        match timeout(DIAL_TIMEOUT, self.attempt()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(DialError::TimedOut(self.url.clone())),
        }
    }
}

/// Opens websockets to one address and keeps the TLS configuration between attempts.
pub(super) struct Dialer {
    url: Url,
    extra_ca: Option<PathBuf>,
    own: Option<Arc<InProcessLink>>,
    /// Built from the machine's certificates on first use, only for `wss`.
    tls: Option<Arc<ClientConfig>>,
}

impl Dialer {
    pub(super) fn new(config: &super::config::ClientConfig) -> Self {
        Self {
            url: config.url.clone(),
            extra_ca: config.extra_ca.clone(),
            own: config.own.clone(),
            tls: None,
        }
    }

    async fn attempt(&mut self) -> Result<Line, DialError> {
        let url = self.url.clone();
        if let Some(own) = &self.own {
            let connected = own.connect().await;
            let stream = connected.map_err(|source| DialError::Unreachable { url, source })?;
            return Ok(Line {
                stream: Box::new(stream),
                read: BytesMut::new(),
            });
        }
        let secure = match url.scheme() {
            "ws" => false,
            "wss" => true,
            _ => return Err(DialError::Address(url)),
        };
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(DialError::Address(url));
        };
        let name = match host {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let socket = connect(&name, port)
            .await
            .map_err(|source| DialError::Unreachable {
                url: url.clone(),
                source,
            })?;
        // Without this option a dead peer is detected only after a quarter of an hour while sent data is
        // unacknowledged.
        #[cfg(target_os = "linux")]
        let _ = SockRef::from(&socket).set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        let socket = QuickAck::new(socket);
        let mut stream: Box<dyn Duplex> = if secure {
            let server = ServerName::try_from(name).map_err(|_| DialError::Address(url.clone()))?;
            let connector = TlsConnector::from(self.tls().await?);
            let secured = connector.connect(server, socket).await;
            Box::new(secured.map_err(|source| DialError::Tls {
                url: url.clone(),
                source,
            })?)
        } else {
            Box::new(socket)
        };
        let authority = match url.port() {
            Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
            None => url.host_str().unwrap_or_default().to_owned(),
        };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        match handshake::ask(stream.as_mut(), &authority, &path).await {
            Ok(read) => Ok(Line { stream, read }),
            Err(HandshakeError::Io(source)) => Err(DialError::Unreachable { url, source }),
            Err(error) => Err(DialError::NotABus {
                url,
                cause: error.to_string(),
            }),
        }
    }

    async fn tls(&mut self) -> Result<Arc<ClientConfig>, DialError> {
        if let Some(tls) = &self.tls {
            return Ok(Arc::clone(tls));
        }
        let roots = self.roots()?;
        // Chosen explicitly: the process-wide default may be unset, or set by another library.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| DialError::Tls {
                url: self.url.clone(),
                source: io::Error::other(error),
            })?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::clone(self.tls.insert(Arc::new(config))))
    }

    fn roots(&self) -> Result<RootCertStore, DialError> {
        let mut roots = RootCertStore::empty();
        let native = rustls_native_certs::load_native_certs();
        for error in &native.errors {
            tracing::warn!(%error, "a certificate of this machine cannot be read");
        }
        roots.add_parsable_certificates(native.certs);
        if let Some(path) = &self.extra_ca {
            add_file(&mut roots, path).map_err(|cause| DialError::ExtraCa {
                path: path.clone(),
                cause,
            })?;
        }
        if roots.is_empty() {
            Err(DialError::NoTrust(self.url.clone()))
        } else {
            Ok(roots)
        }
    }
}

/// Connects to the first address of a name that accepts, within `CONNECT_TIMEOUT` for each.
async fn connect(name: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for address in tokio::net::lookup_host((name, port)).await? {
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(socket)) => return Ok(socket),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())?;
    let mut added = 0;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
        added += 1;
    }
    if added == 0 {
        Err("no certificate in it".to_owned())
    } else {
        Ok(())
    }
}
