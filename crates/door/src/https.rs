//! The HTTP client of the doors, for the services that their configuration names. Read [`https_client`].

use std::io;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};

/// A client for HTTP and HTTPS. It follows no redirects.
pub type HttpsClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Creates a client for a service at this URL.
///
/// # Errors
/// The URL begins with `https:`, and the certificates of this machine cannot be read.
pub fn https_client(url: &str) -> io::Result<HttpsClient> {
    let connector = if url.starts_with("https:") {
        HttpsConnectorBuilder::new().with_native_roots()?
    } else {
        // A machine may have no certificates. It needs none for a service of its own.
        let no_roots = ClientConfig::builder()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        HttpsConnectorBuilder::new().with_tls_config(no_roots)
    };
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    // A request is small and nothing follows it, so delaying it to fill a packet would cost 40 ms.
    http.set_nodelay(true);
    let connector = connector.https_or_http().enable_http1().wrap_connector(http);
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// An error with its causes.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let cause_text = inner.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        cause = inner.source();
    }
    text
}
