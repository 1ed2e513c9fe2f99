//! Who may speak to a door that an issuer protects: tokens of every kind, scopes, principals, and an issuer that does not answer.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::mcp::door::{Listening, Stage};
use crate::support::process::{Process, Sandbox, free_port};
use crate::support::python::mcp_python;

/// The URL for which tokens are made. It need not be the address of the door.
const AUDIENCE: &str = "http://localhost/robot/mcp";

/// The local issuer.
struct Issuer {
    url: String,
    _process: Process,
    _sandbox: Sandbox,
}

impl Issuer {
    /// `None` where there is no Python.
    fn start(audience: &str) -> Option<Self> {
        let python = mcp_python()?;
        let (port, sandbox) = (free_port(), Sandbox::new());
        let mut command: Command = sandbox.command(python);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/issuer.py");
        command.arg("-u").arg(script).args([&port.to_string(), audience]);
        let mut process = Process::start("issuer", &sandbox, command);
        let url = format!("http://127.0.0.1:{port}");
        process.until("the issuer", |_| {
            let metadata = format!("{url}/.well-known/openid-configuration");
            curl(&[&metadata])
                .filter(|answer| answer.status == 200)
                .map(|_| ())
        });
        Some(Self {
            url,
            _process: process,
            _sandbox: sandbox,
        })
    }

    /// A token with these keys, as the issuer's script reads them.
    fn token(&self, keys: &Value) -> String {
        self.post("token-of", keys)
    }

    /// Changes how the issuer behaves. Returns how often its keys were fetched before.
    fn set(&self, keys: &Value) -> u64 {
        let reply: Value = serde_json::from_str(&self.post("mode", keys)).unwrap();
        reply["fetches"].as_u64().unwrap()
    }

    fn post(&self, path: &str, keys: &Value) -> String {
        let answer = curl(&["--json", &keys.to_string(), &format!("{}/{path}", self.url)]).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.text.rsplit("\r\n\r\n").next().unwrap().to_owned()
    }
}

struct Answer {
    status: u16,
    /// The head and the body.
    text: String,
}

fn curl(arguments: &[&str]) -> Option<Answer> {
    let mut command = Command::new("curl");
    let out = command
        .args(["-s", "-i", "--max-time", "20"])
        .args(arguments)
        .output()
        .expect("curl");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let status = text.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, text })
}

fn post(url: &str, token: Option<&str>, method: &str, params: Value, more: &[&str]) -> Answer {
    let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "door:admin", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut arguments = vec![
        "--json".to_owned(),
        message.to_string(),
        "-H".to_owned(),
        "Accept: application/json, text/event-stream".to_owned(),
        "-H".to_owned(),
        "MCP-Protocol-Version: 2026-07-28".to_owned(),
        "-H".to_owned(),
        format!("Mcp-Method: {method}"),
    ];
    if let Some(name) = message["params"]["name"].as_str() {
        arguments.extend(["-H".to_owned(), format!("Mcp-Name: {name}")]);
    }
    if let Some(token) = token {
        arguments.extend(["-H".to_owned(), format!("Authorization: Bearer {token}")]);
    }
    arguments.extend(more.iter().map(ToString::to_string));
    arguments.push(url.to_owned());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    curl(&arguments).expect("an answer")
}

fn call(url: &str, token: &str, tool: &str, arguments: Value) -> Answer {
    post(
        url,
        Some(token),
        "tools/call",
        json!({"name": tool, "arguments": arguments}),
        &[],
    )
}

fn list(url: &str, token: Option<&str>) -> Answer {
    post(url, token, "tools/list", json!({}), &[])
}

fn keys(issuer: &Issuer) -> Value {
    json!({
        "http_token": false,
        "sign_in": {
            "issuer": issuer.url,
            "public_url": AUDIENCE,
            "allow": [
                {"subject": "ada", "client": "tablet", "principal": "door:tablet"},
                {"subject": "ada", "principal": "door:ada"},
                {"client": "home", "principal": "door:home"},
            ],
        },
    })
}

/// The steps of `assemble`, which moves something for a moment.
fn moves() -> Value {
    json!({"subsystems": ["left_arm"], "steps": 1, "step_ms": 1})
}

#[test]
fn a_token_counts_only_as_the_issuer_made_it_for_this_door() {
    let Some(issuer) = Issuer::start(AUDIENCE) else {
        return;
    };
    let stage = Stage::new(&keys(&issuer));
    let door = Listening::start(&stage);
    for (token, expected, says) in [
        (json!({}), 200, ""),
        (json!({"kind": "elliptic"}), 200, ""),
        (json!({"aud": ["https://other.test", AUDIENCE]}), 200, ""),
        (json!({"kind": "issuer"}), 401, "from another issuer"),
        (json!({"kind": "audience"}), 401, "its audience (aud) is not"),
        (
            json!({"kind": "no audience"}),
            401,
            "with the claims iss, aud, exp and sub",
        ),
        (json!({"kind": "none"}), 401, "its algorithm is not accepted"),
        (
            json!({"kind": "public key as secret"}),
            401,
            "its algorithm is not accepted",
        ),
        (json!({"kind": "expired"}), 401, "it has expired"),
        (json!({"kind": "not yet"}), 401, "it is not valid yet"),
        (json!({"kind": "unknown key"}), 401, "the issuer has no such key"),
        (json!({"kind": "stranger"}), 401, "its signature is wrong"),
        (json!({"kind": "widened"}), 401, "its signature is wrong"),
    ] {
        let answer = list(&door.url, Some(&issuer.token(&token)));
        assert_eq!(answer.status, expected, "{token}: {}", answer.text);
        assert!(answer.text.contains(says), "{token}: {}", answer.text);
        let challenges = answer.text.contains("error=\"invalid_token\"");
        assert_eq!(challenges, expected == 401, "{token}: {}", answer.text);
    }
    let right = issuer.token(&json!({"scope": "read act move"}));
    let challenge = "WWW-Authenticate: Bearer realm=\"ovos-tools\", scope=\"read\", \
                     resource_metadata=\"http://localhost/.well-known/oauth-protected-resource/robot/mcp\"";
    let none = list(&door.url, None);
    assert_eq!(none.status, 401);
    let found = none.text.to_ascii_lowercase();
    assert!(found.contains(&challenge.to_ascii_lowercase()), "{}", none.text);
    for (url, more) in [
        (format!("{}?access_token={right}", door.url), &[][..]),
        (door.url.clone(), &["-H", "Authorization: Basic YTpi"]),
        // Of two it is not clear which one counts.
        (
            door.url.clone(),
            &["-H", "Authorization: Bearer a", "-H", "Authorization: Bearer b"],
        ),
    ] {
        let answer = post(&url, None, "tools/list", json!({}), more);
        assert_eq!(answer.status, 401, "{more:?}: {}", answer.text);
    }
    let output = door.process.output();
    assert!(!output.contains(&right[..40]), "a token is in the log: {output}");

    let own = door.url.strip_suffix("/mcp").unwrap();
    for path in ["", "/mcp", "/robot/mcp"] {
        let answer = curl(&[&format!("{own}/.well-known/oauth-protected-resource{path}")]).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        let metadata: Value = serde_json::from_str(answer.text.rsplit("\r\n\r\n").next().unwrap()).unwrap();
        assert_eq!(metadata["resource"], AUDIENCE);
        assert_eq!(metadata["authorization_servers"], json!([issuer.url]));
        assert_eq!(metadata["scopes_supported"], json!(["read", "act", "move"]));
    }
    let elsewhere = curl(&[&format!("{own}/.well-known/oauth-protected-resource/other")]).unwrap();
    assert_eq!(elsewhere.status, 404);
}

#[test]
fn a_token_never_allows_more_than_its_scopes_and_the_principal_that_the_owner_wrote() {
    let Some(issuer) = Issuer::start(AUDIENCE) else {
        return;
    };
    let scene_keys = keys(&issuer);
    let stage = Stage::with_policy(
        &scene_keys,
        &json!([
            {"who": "door:tablet", "effects": ["motion"], "decide": "deny", "reason": "the tablet only looks"},
            {"who": "door:admin", "decide": "allow"},
        ]),
    );
    let door = Listening::start(&stage);
    let all = "read act move";
    for (token, tool, arguments, status, says) in [
        (
            json!({"scope": "read"}),
            "add",
            json!({"a": 1, "b": 2}),
            200,
            "\"result\":3",
        ),
        (
            json!({"scope": "read"}),
            "assemble",
            moves(),
            403,
            "insufficient_scope",
        ),
        (
            json!({"scope": "move"}),
            "add",
            json!({"a": 1, "b": 2}),
            403,
            "scope=\"read move\"",
        ),
        (
            json!({"scope": "read act"}),
            "assemble",
            moves(),
            403,
            "scope=\"read act move\"",
        ),
        (
            json!({"scope": ""}),
            "add",
            json!({"a": 1, "b": 2}),
            403,
            "insufficient_scope",
        ),
        (
            json!({"scope": "admin *"}),
            "add",
            json!({"a": 1, "b": 2}),
            403,
            "insufficient_scope",
        ),
        (
            json!({"scope": "read act"}),
            "no_such_tool",
            json!({}),
            403,
            "insufficient_scope",
        ),
        (
            json!({"scope": all}),
            "assemble",
            moves(),
            200,
            "\"success\":true",
        ),
        (
            json!({"scope": all, "client": "tablet"}),
            "assemble",
            moves(),
            200,
            "the tablet only looks",
        ),
        (
            json!({"scope": all, "client": "tablet", "subject": "bob"}),
            "assemble",
            moves(),
            403,
            "sign_in.allow",
        ),
        (
            json!({"scope": all, "client": "home", "subject": "bob"}),
            "assemble",
            moves(),
            200,
            "\"success\":true",
        ),
        // Names that the client or the person chose count for nothing.
        (
            json!({"scope": all, "subject": "eve", "client": "x", "name": "ada", "client_name": "door:admin",
                "principal": "door:admin", "preferred_username": "ada", "azp": "home"}),
            "assemble",
            moves(),
            403,
            "sign_in.allow",
        ),
        // A stop needs no more than a token that counts.
        (
            json!({"scope": "", "subject": "eve"}),
            "stop_moving",
            json!({}),
            200,
            "running here",
        ),
        (
            json!({"scope": "read"}),
            "emergency_stop",
            json!({}),
            200,
            "\"confirmed\":true",
        ),
    ] {
        let answer = call(&door.url, &issuer.token(&token), tool, arguments);
        assert_eq!(answer.status, status, "{token} {tool}: {}", answer.text);
        let text = answer.text.replace("\\\"", "\"");
        assert!(text.contains(says), "{token} {tool}: {text}");
    }
    let refused = call(
        &door.url,
        &issuer.token(&json!({"kind": "expired"})),
        "emergency_stop",
        json!({}),
    );
    assert_eq!(refused.status, 401, "{}", refused.text);
    let unlisted = list(
        &door.url,
        Some(&issuer.token(&json!({"subject": "eve", "scope": all}))),
    );
    assert_eq!(unlisted.status, 403, "{}", unlisted.text);
}

#[test]
fn the_session_of_one_person_is_not_there_for_another_one() {
    let Some(issuer) = Issuer::start(AUDIENCE) else {
        return;
    };
    let stage = Stage::new(&keys(&issuer));
    let door = Listening::start(&stage);
    let opening = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let legacy = |token: &str, session: Option<&str>, message: &Value| {
        let authorization = format!("Authorization: Bearer {token}");
        let session = session.map(|id| format!("Mcp-Session-Id: {id}"));
        let text = message.to_string();
        let mut arguments = vec![
            "--json",
            &text,
            "-H",
            "Accept: application/json, text/event-stream",
            "-H",
            &authorization,
        ];
        if let Some(session) = &session {
            arguments.extend(["-H", session, "-H", "MCP-Protocol-Version: 2025-11-25"]);
        }
        arguments.push(&door.url);
        curl(&arguments).unwrap()
    };
    let (ada, bob) = (
        issuer.token(&json!({})),
        issuer.token(&json!({"subject": "bob", "client": "home"})),
    );
    let opened = legacy(&ada, None, &opening);
    let head = opened.text.to_ascii_lowercase();
    let (_, rest) = head.split_once("mcp-session-id: ").expect("a session");
    let session = rest.lines().next().unwrap().trim();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    assert_eq!(legacy(&ada, Some(session), &ping).status, 200);
    assert_eq!(legacy(&bob, Some(session), &ping).status, 404);
    // A renewed token of the same person goes on with the session.
    assert_eq!(
        legacy(&issuer.token(&json!({})), Some(session), &ping).status,
        200
    );
}

#[test]
fn without_keys_nothing_is_let_in_and_new_keys_are_found() {
    for mode in ["slow", "huge", "dead"] {
        let Some(issuer) = Issuer::start(AUDIENCE) else {
            return;
        };
        issuer.set(&json!({"mode": mode}));
        let stage = Stage::new(&keys(&issuer));
        let mut door = Listening::start(&stage);
        let right = issuer.token(&json!({}));
        let answer = list(&door.url, Some(&right));
        assert_eq!(answer.status, 503, "{mode}: {}", answer.text);
        assert_eq!(list(&door.url, None).status, 401, "{mode}");
        issuer.set(&json!({"mode": "good"}));
        let url = door.url.clone();
        door.process.until("the keys", |_| {
            (list(&url, Some(&right)).status == 200).then_some(())
        });
        if mode != "dead" {
            continue;
        }
        // An issuer that is gone takes nothing from those whose keys are known, and gives nothing to others.
        issuer.set(&json!({"mode": "dead"}));
        assert_eq!(list(&url, Some(&right)).status, 200);
        let unknown = issuer.token(&json!({"kind": "unknown key"}));
        let before = issuer.set(&json!({"mode": "dead"}));
        for _ in 0..20 {
            assert_eq!(list(&url, Some(&unknown)).status, 401);
        }
        let fetches = issuer.set(&json!({"mode": "dead"})) - before;
        assert!(fetches < 10, "{fetches} fetches for 20 tokens");
        issuer.set(&json!({"mode": "rotated"}));
        let new = issuer.token(&json!({}));
        door.process.until("the new key", |_| {
            (list(&url, Some(&new)).status == 200).then_some(())
        });
        assert_eq!(list(&url, Some(&right)).status, 401, "the old key is withdrawn");
    }
}

#[test]
fn a_published_client_signs_in_and_asks_for_more_when_it_needs_more() {
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let Some(issuer) = Issuer::start(&url) else { return };
    let mut written = keys(&issuer);
    written["sign_in"]["public_url"] = json!(url);
    let stage = Stage::new(&written);
    let mut door = stage.door("door", &["--http", &format!("127.0.0.1:{port}")]);
    door.until("its address", |door| {
        door.output().contains("clients sign in at").then_some(())
    });
    let output = stage.script("mcp_signs_in.py", &[&url]).finish();
    assert!(output.contains("asked for more when more was needed"), "{output}");
}
