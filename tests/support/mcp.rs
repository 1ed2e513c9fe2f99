//! A client of the MCP door at stdin and stdout, of the revision of 2026-07-28.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout};

use serde_json::{Value, json};

/// A client of a door that it ends with itself.
pub(crate) struct StdioClient {
    door: Child,
    lines: BufReader<ChildStdout>,
    asked: u64,
    /// What it says that it can do.
    pub(crate) capabilities: Value,
    /// Whether it asks for progress.
    pub(crate) wants_progress: bool,
    /// How many notices of progress have come.
    pub(crate) progress: usize,
}

impl StdioClient {
    /// A client of this door, whose stdin and stdout are pipes.
    pub(crate) fn of(mut door: Child) -> Self {
        let lines = BufReader::new(door.stdout.take().unwrap());
        Self {
            door,
            lines,
            asked: 0,
            capabilities: json!({}),
            wants_progress: false,
            progress: 0,
        }
    }

    /// Sends a request; its id.
    pub(crate) fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.asked += 1;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        if self.wants_progress {
            params["_meta"]["progressToken"] = self.asked.into();
        }
        self.write(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}));
        self.asked
    }

    /// Cancels a request.
    pub(crate) fn cancel(&mut self, id: u64) {
        let params = json!({ "requestId": id });
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the door has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
            self.progress += usize::from(message["method"] == "notifications/progress");
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.door.stdin.as_mut().unwrap(), "{message}").unwrap();
    }
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        drop(self.door.stdin.take());
        _ = self.door.wait();
    }
}
