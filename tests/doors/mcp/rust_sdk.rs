//! The client of the Rust SDK, rmcp: one that gives up after 3, 5 and 10 s while a machine moves for longer, and one with tasks.

use std::process::Stdio;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    ClientCapabilities, ClientConfig, ClientRequest, GetTaskParams, Implementation, ProtocolVersion,
    ServerResult, TaskStatus,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, PeerRequestOptions, RoleClient, RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::mcp::door::{Listening, Stage, binary};

/// A client of one era, and the door that it has started.
struct Session {
    service: RunningService<RoleClient, ClientConfig>,
    _door: Option<Child>,
}

impl Session {
    async fn new(stage: &Stage, listening: Option<&Listening>, is_modern: bool) -> Self {
        let capabilities = if is_modern {
            ClientCapabilities::builder().enable_tasks().build()
        } else {
            ClientCapabilities::default()
        };
        let config = ClientConfig::new(capabilities, Implementation::new("patience", "1"))
            .with_protocol_version(ProtocolVersion::V_2025_11_25);
        let lifecycle = if is_modern {
            ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            }
        } else {
            ClientLifecycleMode::Initialize
        };
        if let Some(door) = listening {
            // This fails if another test has done it.
            _ = rustls::crypto::ring::default_provider().install_default();
            let address = StreamableHttpClientTransportConfig::with_uri(door.url.clone())
                .auth_header(door.token.clone());
            let transport = StreamableHttpClientTransport::from_config(address);
            let service = config.serve_with_lifecycle(transport, lifecycle).await.unwrap();
            return Self { service, _door: None };
        }
        let mut door = Command::from(stage.scene.sandbox.command(binary()))
            .args(["--bus", &stage.scene.url()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (output, input) = (door.stdout.take().unwrap(), door.stdin.take().unwrap());
        let transport = AsyncRwTransport::new_client(output, input);
        let service = config.serve_with_lifecycle(transport, lifecycle).await.unwrap();
        Self {
            service,
            _door: Some(door),
        }
    }

    /// Calls a tool, and gives up after `patience`.
    async fn call(
        &self,
        name: &str,
        arguments: &Value,
        patience: Duration,
    ) -> Result<CallToolResult, ServiceError> {
        let request = CallToolRequest::new(params(name, arguments));
        let options = PeerRequestOptions::with_timeout(patience);
        let request = ClientRequest::CallToolRequest(request);
        let sent = self.service.send_request_with_option(request, options).await?;
        match sent.await_response().await? {
            ServerResult::CallToolResult(result) => Ok(result),
            other => panic!("{other:?}"),
        }
    }

    /// Begins a motion that takes longer than clients wait; the id of its call.
    async fn begin(&self, part: &str, seconds: u64, patience: Duration) -> Value {
        let left = self
            .call("assemble", &motion(part, seconds), patience)
            .await
            .unwrap();
        let left = left.structured_content.unwrap();
        assert_eq!(left["state"], "running", "{left}");
        json!({ "call_id": left["call_id"] })
    }
}

fn params(name: &str, arguments: &Value) -> CallToolRequestParams {
    CallToolRequestParams::new(name.to_owned()).with_arguments(arguments.as_object().unwrap().clone())
}

fn motion(part: &str, seconds: u64) -> Value {
    json!({"subsystems": [part], "step_ms": 2, "steps": seconds * 125, "timeout_ms": 300_000})
}

async fn waits(stage: &Stage, listening: Option<&Listening>, part: &str, seconds: u64) {
    let client = Session::new(stage, listening, false).await;
    let patience = Duration::from_secs(seconds);
    // It goes on, and its end can be asked for.
    let whole = client.begin(part, 6, patience).await;
    let ended = loop {
        let ended = client.call("wait_call", &whole, patience).await.unwrap();
        if ended.structured_content.as_ref().unwrap()["state"] != "running" {
            break ended.structured_content.unwrap();
        }
    };
    assert_eq!(ended["success"], true, "{ended}");
    // A cancel ends it.
    let left = client.begin(part, 60, patience).await;
    let cancelled = client.call("cancel_call", &left, patience).await.unwrap();
    let text = serde_json::to_string(&cancelled).unwrap();
    assert!(
        cancelled.is_error == Some(true) && text.contains("its client cancelled it"),
        "{text}"
    );
    // And so does a request that is given up.
    let left = client.begin(part, 60, patience).await;
    let late = client.call("wait_call", &left, Duration::from_millis(500)).await;
    assert!(matches!(late, Err(ServiceError::Timeout { .. })), "{late:?}");
    let ended = client.call("wait_call", &left, patience).await.unwrap();
    assert_eq!(ended.is_error, Some(true), "{ended:?}");
}

fn gives_up(is_http: bool) {
    let stage = Stage::new(&json!({ "reply_within_ms": 1000, "lease_ms": 4000 }));
    let listening = is_http.then(|| Listening::start(&stage));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        tokio::join!(
            waits(&stage, listening.as_ref(), "left_arm", 3),
            waits(&stage, listening.as_ref(), "right_arm", 5),
            waits(&stage, listening.as_ref(), "gantry", 10),
        );
    });
}

#[test]
fn rust_over_stdio() {
    gives_up(false);
}

#[test]
fn rust_over_http() {
    gives_up(true);
}

/// The SDK's own requests for tasks.
#[test]
fn a_rust_client_with_tasks_gets_one_and_ends_it() {
    for is_http in [false, true] {
        let mut stage = Stage::new(&json!({ "reply_within_ms": 200, "lease_ms": 5000 }));
        let listening = is_http.then(|| Listening::start(&stage));
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let client = runtime.block_on(Session::new(&stage, listening.as_ref(), true));
        let begin = |seconds| {
            runtime.block_on(async {
                let called = client
                    .service
                    .call_tool_once(params("assemble", &motion("gantry", seconds)));
                match called.await.unwrap() {
                    CallToolResponse::Task(task) => task.task.task_id,
                    other => panic!("{other:?}"),
                }
            })
        };
        let get = |id: &str| {
            let task = client.service.get_task(GetTaskParams::new(id.to_owned()));
            runtime.block_on(task).unwrap().task
        };
        let id = begin(1);
        let ended = loop {
            let task = get(&id);
            if task.status() != TaskStatus::Working {
                break task;
            }
            std::thread::park_timeout(Duration::from_millis(50));
        };
        let answer = serde_json::to_value(&ended).unwrap();
        assert_eq!(answer["status"], "completed", "{answer}");
        assert_eq!(answer["result"]["structuredContent"]["success"], true, "{answer}");
        let id = begin(60);
        let cancelled = client.service.cancel_task(CancelTaskParams::new(id.clone()));
        runtime.block_on(cancelled).unwrap();
        stage.client.until_phases(&[]);
        assert_eq!(get(&id).status(), TaskStatus::Cancelled);
    }
}
