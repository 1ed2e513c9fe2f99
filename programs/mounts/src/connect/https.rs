//! The HTTP client for servers with a URL. Read [`client`].

use reqwest::{Client, StatusCode, redirect};

use super::chain::chain;

/// The most redirects that are followed.
const MAX_REDIRECTS: usize = 10;

/// Creates a client for one server.
///
/// # Errors
/// The server needs certificates, and the machine has none.
pub(crate) fn client(url: &str) -> Result<Client, String> {
    let is_plain = url
        .get(..7)
        .is_some_and(|start| start.eq_ignore_ascii_case("http://"));
    // Connections are not reused: a used connection stalls if the answer before was not read to its end.
    let builder = Client::builder().pool_max_idle_per_host(0).redirect(redirects());
    let builder = match is_plain {
        // No certificates are needed: redirects to https are not followed.
        true => builder.tls_certs_only([]),
        false => builder,
    };
    builder.build().map_err(|error| {
        format!(
            "no connection with https can be made: {}; install the package ca-certificates, or set SSL_CERT_FILE to a file \
             with the certificates of authorities where the service is started",
            chain(&error)
        )
    })
}

/// Follows redirects only to the same origin, because headers with secrets are sent along, and only if the body of the message is
/// sent along.
fn redirects() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let keeps_body = matches!(
            attempt.status(),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        let first = attempt.previous().first();
        let same_place = first.is_some_and(|first| first.origin() == attempt.url().origin());
        if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error(format!("more than {MAX_REDIRECTS} redirects"))
        } else if keeps_body && same_place {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}
