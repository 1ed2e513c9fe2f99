//! In which forms clients get results, and how much of them.

use serde_json::{Value, json};

use crate::mcp::door::{Listening, Stage};
use crate::mcp::sessions::{Http, initialize, message, read};

const BUDGET: usize = 8192;

/// The answer to a call of a client that introduced itself like this.
fn called(door: &Listening, version: &str, client: &str, call: &Value) -> Value {
    let is_modern = version >= "2026-07-28";
    let mut http = Http::of(door);
    if is_modern {
        http = Http::new(door, true);
    } else {
        let mut opening = initialize();
        opening["params"]["protocolVersion"] = json!(version);
        opening["params"]["clientInfo"]["name"] = json!(client);
        let opened = read(http.send("POST", &opening.to_string()));
        http.adopt(&opened, version);
    }
    let mut request = message(7, call, is_modern);
    if is_modern {
        request["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] = json!(client);
    }
    Http::answer_in(7, &read(http.send("POST", &request.to_string())))
}

#[test]
fn text_and_structure_say_the_same_within_one_budget_to_clients_that_read_both() {
    let stage = Stage::new(&json!({ "http_token": false, "result_bytes": BUDGET }));
    let door = Listening::start(&stage);
    for (version, client, has_structure) in [
        ("2024-11-05", "mcp", false),
        ("2025-03-26", "mcp", false),
        ("2025-06-18", "mcp", true),
        ("2025-11-25", "mcp", true),
        ("2026-07-28", "mcp", true),
        ("2025-11-25", "claude-code", false),
        ("2026-07-28", "claude-code", false),
    ] {
        for (words, is_short) in [(3, false), (10_000, true)] {
            let text = "word ".repeat(words);
            let call =
                json!({"method": "tools/call", "params": {"name": "echo", "arguments": {"text": text}}});
            let answer = called(&door, version, client, &call);
            let result = &answer["result"];
            let what = format!("{version} {client} {words}: {answer:#}");
            assert_eq!(result["isError"], false, "{what}");
            let structure = &result["structuredContent"];
            assert_eq!(structure.is_object(), has_structure, "{what}");
            let text = result["content"][0]["text"].as_str().unwrap();
            let read: Value = serde_json::from_str(text).unwrap();
            assert!(!has_structure || read == *structure, "{what}");
            assert_eq!(read["shortened"].is_string(), is_short, "{what}");
            let size = text.len()
                + if has_structure {
                    structure.to_string().len()
                } else {
                    0
                };
            // What is said about it comes on top, once in each form.
            assert!(size < BUDGET + 600, "{size}, {what}");
            assert_eq!(
                result["content"][1]["type"] == "resource_link",
                is_short,
                "{what}"
            );
        }
    }
}
