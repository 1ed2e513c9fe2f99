//! The keys of the door for clients of the Model Context Protocol.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::sign_in::SignIn;
use super::toolset::{Toolset, at, socket};
use crate::reader::Reader;
use crate::service::ServiceConfig;
use section::fields::{Millis, Whole, path, texts};

/// `service.doors.mcp`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpDoor {
    /// Which tools clients see.
    #[serde(skip)]
    pub toolset: Toolset,
    /// Whose access tokens clients may show over HTTP, and for whom they count.
    #[serde(skip)]
    pub sign_in: Option<SignIn>,
    /// Whether the service starts the door, watches it, and ends it with itself.
    pub start: bool,
    /// Whether the list of tools contains their output schemas, which make the list several times as long.
    pub output_schemas: bool,
    /// Whether clients see the tool `run_steps`, which runs several tools of the list in one call.
    pub run_steps: bool,
    /// Whether clients see `find_tools`, `call_tool` and the stops instead of the list of tools, which is long for a model.
    pub find_tools: bool,
    /// Whether clients see the tools `schedule_call`, `list_schedules` and `cancel_schedule`, which the schedule door answers.
    pub schedule: bool,
    /// The size of the list of tools, in bytes of JSON, above which the door warns and names the largest tools.
    #[serde(with = "Whole::<1024, 16_777_216>")]
    pub warn_list_bytes: usize,
    /// The longest result that a model is given, in bytes of JSON. A longer one is shortened; the whole is a resource.
    #[serde(with = "Whole::<1024, 16_777_216>")]
    pub result_bytes: usize,
    /// How soon a call is answered, with its outcome or with a handle. `None`: in 4 s; later for clients that are known to wait.
    #[serde(rename = "reply_within_ms", with = "super::patience")]
    pub reply_within: Option<Duration>,
    /// How long a call that was answered with a handle goes on after its client asked for it.
    #[serde(rename = "lease_ms", with = "Millis::<100, 600_000>")]
    pub lease: Duration,
    /// The address at which a door that the service starts serves clients over HTTP.
    #[serde(deserialize_with = "socket")]
    pub http_address: SocketAddr,
    /// Host names, with or without a port, under which clients may reach the door over HTTP, in addition to those of this
    /// machine.
    #[serde(deserialize_with = "texts")]
    pub http_hosts: Vec<String>,
    /// Origins of web pages that may use the door over HTTP, such as `http://localhost:3000`.
    #[serde(deserialize_with = "texts")]
    pub http_origins: Vec<String>,
    /// Whether the token in `token_file` lets a client in over HTTP. Without it and without `sign_in` every client is let in, and the
    /// door listens on a loopback address only.
    pub http_token: bool,
    /// The file of the token. The door creates it if it is missing.
    #[serde(deserialize_with = "path")]
    pub token_file: PathBuf,
}

impl Default for McpDoor {
    /// What holds where nothing is written. The token is in the state folder of the service.
    fn default() -> Self {
        Self {
            toolset: Toolset::default(),
            sign_in: None,
            start: false,
            output_schemas: false,
            run_steps: false,
            find_tools: false,
            schedule: false,
            warn_list_bytes: 64 << 10,
            result_bytes: 32 << 10,
            reply_within: None,
            lease: Duration::from_secs(30),
            http_address: SocketAddr::from(([127, 0, 0, 1], 8765)),
            http_hosts: Vec::new(),
            http_origins: Vec::new(),
            http_token: true,
            token_file: PathBuf::from("mcp-token"),
        }
    }
}

impl McpDoor {
    pub(super) fn read(reader: &mut Reader<'_>, service: &ServiceConfig) -> Self {
        let path = at(&["mcp"]);
        let written = reader.written(&path);
        let defaults = Self {
            token_file: service.state_dir.join("mcp-token"),
            ..Self::default()
        };
        let (door, rest) = reader.open(&path, written, defaults);
        reader.refuse(&path, &door, rest, &[&Toolset::KEYS[..], &["sign_in"]].concat());
        Self {
            toolset: Toolset::read(reader, "mcp"),
            sign_in: SignIn::read(reader, "mcp"),
            ..door
        }
    }
}
