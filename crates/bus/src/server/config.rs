//! Where the embedded bus listens, and its limits.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::in_process_link::InProcessLink;

/// Where the bus listens, and its limits.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Address or name to bind; loopback by default.
    pub host: String,
    /// TCP port; 0 for any free one.
    pub port: u16,
    /// Path of the websocket.
    pub route: String,
    /// Largest message in bytes; the bus disconnects a client that sends a longer one.
    pub max_message: usize,
    /// How many messages may be queued for one client; the bus disconnects a client that would exceed it.
    pub client_queue_messages: usize,
    /// How many bytes may be queued for one client; an empty queue takes a batch of any size.
    pub client_queue_bytes: usize,
    /// How many clients may be connected, those included that have not completed their handshake. For one more the bus
    /// ends another: the oldest that has not completed its handshake, then the oldest that has sent nothing, then the one
    /// that has been silent for the longest time.
    pub max_clients: usize,
    /// How many clients may come from the same address; for loopback addresses there is no such limit.
    pub max_clients_per_address: usize,
    /// How long a client may take to send a message.
    pub frame_wait: Duration,
    /// How many bytes of unfinished messages the bus keeps for all clients together; beyond that it disconnects the client
    /// with the longest one.
    pub unfinished_bytes: usize,
    /// Names, with or without a port, under which clients may reach the bus, in addition to addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Origins of web pages that may use the bus, such as `http://localhost:3000`.
    pub origins: Vec<String>,
    /// The client in this process, if there is one.
    pub own: Option<Arc<InProcessLink>>,
    /// The runtime for work that may take long: what is written to clients, what the client in this process sends, and a look at
    /// long messages. The task that runs the bus then only reads its clients, so that an urgent message waits for none of that.
    /// `None`: everything is done where the bus runs.
    pub workers: Option<Handle>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 8181,
            route: "/core".to_owned(),
            max_message: 25 << 20,
            client_queue_messages: 65_536,
            client_queue_bytes: 64 << 20,
            max_clients: 256,
            max_clients_per_address: 64,
            frame_wait: Duration::from_secs(30),
            unfinished_bytes: 64 << 20,
            hosts: Vec::new(),
            origins: Vec::new(),
            own: None,
            workers: None,
        }
    }
}
