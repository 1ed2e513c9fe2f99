//! An embedded bus with a service that answers by script.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bus::{BusClient, BusHandler, ClientConfig, EmbeddedBus, Message, ServerConfig, Utf8Bytes};
use ovos_tools_client::payload::{CallOptions, GetRequest, InvokeRequest};
use ovos_tools_client::{Address, Client};
use serde_json::{Map, Value};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Far longer than any step here takes; a test that waits this long has failed.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

pub(crate) async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    timeout(DEADLINE, future)
        .await
        .unwrap_or_else(|_| panic!("{what}: not within {DEADLINE:?}"))
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

/// An embedded bus that ends when it is dropped.
pub(crate) struct Bus {
    pub(crate) url: String,
    pub(crate) port: u16,
    tasks: TaskTracker,
    end: DropGuard,
}

impl Bus {
    pub(crate) async fn start(port: u16) -> Self {
        let config = ServerConfig {
            port,
            ..ServerConfig::default()
        };
        let bus = EmbeddedBus::bind(config).await.unwrap();
        let (url, port) = (bus.url(), bus.local_addr().port());
        let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(bus.run(shutdown.clone()));
        let end = shutdown.drop_guard();
        Self {
            url,
            port,
            tasks,
            end,
        }
    }

    pub(crate) async fn stop(self) {
        drop(self.end);
        self.tasks.close();
        soon("the bus ends", self.tasks.wait()).await;
    }

    pub(crate) fn address(&self) -> Address {
        Address {
            url: self.url.parse().unwrap(),
            certificate: None,
        }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address(), "test", DEADLINE).await.unwrap()
    }

    /// A service that answers every message as the script tells.
    pub(crate) async fn service(
        &self,
        script: impl FnMut(&Message) -> Vec<Message> + Send + 'static,
    ) -> DropGuard {
        let scripted = Arc::new(Scripted {
            script: Mutex::new(Box::new(script)),
            bus: OnceLock::new(),
        });
        let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
        let config = ClientConfig::new(self.url.parse().unwrap());
        let client = BusClient::connect(config, scripted.clone(), &tasks, shutdown.clone());
        let client = soon("the service's connection", client).await.unwrap();
        assert!(scripted.bus.set(client).is_ok());
        shutdown.drop_guard()
    }
}

type Script = Box<dyn FnMut(&Message) -> Vec<Message> + Send>;

struct Scripted {
    script: Mutex<Script>,
    bus: OnceLock<BusClient>,
}

impl BusHandler for Scripted {
    fn frame(&self, text: Utf8Bytes) {
        let (Ok(message), Some(bus)) = (Message::parse(&text), self.bus.get()) else {
            return;
        };
        for reply in (self.script.lock().unwrap())(&message) {
            assert!(bus.notify(reply.to_text()));
        }
    }

    fn connected(&self) {}

    fn disconnected(&self, _: &str) {}

    fn instead(&self, _: &str, _: &str) -> Option<String> {
        None
    }
}

pub(crate) fn get(name: &str) -> GetRequest {
    GetRequest {
        name: name.to_owned(),
        ..GetRequest::default()
    }
}

pub(crate) fn call(name: &str, call_id: &str) -> InvokeRequest {
    InvokeRequest {
        name: name.to_owned(),
        options: CallOptions {
            call_id: Some(call_id.to_owned()),
            progress: true,
            ..CallOptions::default()
        },
        ..InvokeRequest::default()
    }
}
