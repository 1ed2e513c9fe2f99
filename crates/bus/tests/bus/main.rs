//! The bus on the wire: our client, our server, and TLS.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

mod client;
mod server;
mod support;
mod tls;
