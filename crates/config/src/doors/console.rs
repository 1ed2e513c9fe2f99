//! The keys of the door for people with a browser, and of its history.

use std::net::SocketAddr;
use std::path::PathBuf;

use section::fields::{Whole, path, texts};
use serde::{Deserialize, Serialize};

use super::toolset::{at, socket};
use crate::reader::Reader;
use crate::service::ServiceConfig;

/// `service.doors.console`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleDoor {
    /// Whether the service starts the door, watches it, and ends it with itself.
    pub start: bool,
    /// The address at which the page is served: on a loopback address without TLS, on any other with it.
    #[serde(deserialize_with = "socket")]
    pub address: SocketAddr,
    /// Host names, with or without a port, under which browsers may reach the page, in addition to those of this machine: its
    /// name in the network, or that of a proxy.
    #[serde(deserialize_with = "texts")]
    pub hosts: Vec<String>,
    /// The certificate of the page beyond loopback, and those that vouch for it, in PEM. The door makes one of its own if this file and
    /// `key_file` are missing.
    #[serde(deserialize_with = "path")]
    pub certificate_file: PathBuf,
    /// The private key of the certificate, in PEM.
    #[serde(deserialize_with = "path")]
    pub key_file: PathBuf,
    /// The file of the token with which an operator signs in. The door creates it if it is missing.
    #[serde(deserialize_with = "path")]
    pub token_file: PathBuf,
    /// The file of the token with which a viewer signs in, who may look, read and stop. The door creates it if it is missing.
    #[serde(deserialize_with = "path")]
    pub viewer_token_file: PathBuf,
    /// The database of the history.
    #[serde(deserialize_with = "path")]
    pub history_file: PathBuf,
    /// How many days calls stay in the history.
    #[serde(with = "Whole::<1, 36_500>")]
    pub keep_days: u32,
    /// How many megabytes the history may take.
    #[serde(with = "Whole::<1, 1_048_576>")]
    pub keep_mb: u32,
}

impl ConsoleDoor {
    pub(super) fn read(reader: &mut Reader<'_>, service: &ServiceConfig) -> Self {
        let path = at(&["console"]);
        let written = reader.written(&path);
        let defaults = Self {
            start: false,
            address: SocketAddr::from(([127, 0, 0, 1], 8770)),
            hosts: Vec::new(),
            certificate_file: service.state_dir.join("console-certificate.pem"),
            key_file: service.state_dir.join("console-key.pem"),
            token_file: service.state_dir.join("console-token"),
            viewer_token_file: service.state_dir.join("console-viewer-token"),
            history_file: service.state_dir.join("history.sqlite"),
            keep_days: 90,
            keep_mb: 256,
        };
        let (door, rest) = reader.open(&path, written, defaults);
        reader.refuse(&path, &door, rest, &[]);
        door
    }
}
