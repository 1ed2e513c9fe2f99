//! Who may speak to the door over HTTP, how it is started, and what it says where it cannot.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::json;

use crate::mcp::door::{Listening, Stage, service_binary};
use crate::support::process::{DEADLINE, Sandbox};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"gate","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// Posts a body with these headers beside the usual ones; returns the whole answer.
fn post(door: &Listening, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    send(door, "POST", path, headers, body)
}

fn send(door: &Listening, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let address = door
        .url
        .strip_prefix("http://")
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut all = vec![
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
        ("Connection", "close"),
    ];
    if !headers.iter().any(|(name, _)| *name == "Host") {
        all.push(("Host", address));
    }
    all.extend(headers);
    let lines: String = all
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let head = format!(
        "{method} {path} HTTP/1.1\r\n{lines}Content-Length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).unwrap();
    // A server that refuses a large body may close before it has read all of it.
    _ = socket.write_all(body.as_bytes());
    let mut answer = Vec::new();
    _ = socket.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn only_a_client_with_the_token_from_an_allowed_place_is_let_in() {
    let stage =
        Stage::new(&json!({ "http_origins": ["http://localhost:3000"], "http_hosts": ["robot.test"] }));
    let door = Listening::start(&stage);
    let right = format!("Bearer {}", door.token);
    let with_token = ("Authorization", right.as_str());
    let own = door.url.strip_suffix("/mcp").unwrap();
    let large = format!("{{\"x\":\"{}\"}}", "x".repeat(5 << 20));
    for (path, headers, body, expected) in [
        ("/mcp", &[with_token][..], LIST, " 200 "),
        (
            "/mcp",
            &[with_token, ("Origin", "http://localhost:3000")],
            LIST,
            " 200 ",
        ),
        ("/mcp", &[with_token, ("Host", "robot.test")], LIST, " 200 "),
        ("/mcp", &[with_token, ("Origin", own)], LIST, " 200 "),
        ("/mcp", &[], LIST, " 401 "),
        ("/mcp", &[("Authorization", "Bearer wrong")], LIST, " 401 "),
        (
            "/mcp",
            &[with_token, ("Origin", "http://evil.test")],
            LIST,
            " 403 ",
        ),
        ("/mcp", &[with_token, ("Host", "evil.test")], LIST, " 403 "),
        ("/other", &[with_token], LIST, " 404 "),
        ("/mcp", &[with_token], &large, " 413 "),
        ("/mcp", &[with_token], "{", " 4"),
    ] {
        let answer = post(&door, path, headers, body);
        let status = answer.lines().next().unwrap_or_default().to_owned();
        assert!(
            status.contains(expected),
            "{path} {headers:?}: {status}\n{}",
            door.process.log()
        );
        let challenged = answer.to_lowercase().contains("\r\nwww-authenticate: bearer");
        assert_eq!(challenged, expected == " 401 ", "{answer}");
        if expected == " 200 " {
            assert!(answer.contains("\"emergency_stop\""), "{answer}");
        }
    }
}

/// As a browser does: a preflight without a token, then the request.
#[test]
fn pages_of_listed_origins_get_through_and_no_others() {
    let stage = Stage::new(&json!({ "http_origins": ["http://app.test:3000", "https://any.test"] }));
    let door = Listening::start(&stage);
    let right = format!("Bearer {}", door.token);
    for (origin, is_listed) in [
        ("http://app.test:3000", true),
        ("https://any.test:8443", true),
        ("http://app.test:3001", false),
        ("https://app.test:3000", false),
        ("http://evil.test", false),
        ("null", false),
    ] {
        let allowed = format!("\r\naccess-control-allow-origin: {origin}\r\n");
        let asks = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            (
                "Access-Control-Request-Headers",
                "authorization,content-type,mcp-protocol-version",
            ),
        ];
        let preflight = send(&door, "OPTIONS", "/mcp", &asks, "").to_lowercase();
        assert_eq!(preflight.starts_with("http/1.1 204"), is_listed, "{preflight}");
        assert_eq!(preflight.contains(&allowed), is_listed, "{preflight}");
        let headers = "access-control-allow-headers: authorization,content-type,mcp-protocol-version";
        assert_eq!(preflight.contains(headers), is_listed, "{preflight}");
        // A page reads why it was not let in, too.
        for (headers, status) in [
            (
                &[("Origin", origin), ("Authorization", right.as_str())][..],
                " 200 ",
            ),
            (&[("Origin", origin)], " 401 "),
        ] {
            let answer = post(&door, "/mcp", headers, LIST).to_lowercase();
            let expected = if is_listed { status } else { " 403 " };
            assert!(
                answer.starts_with(&format!("http/1.1{expected}")),
                "{origin}: {answer}"
            );
            assert_eq!(answer.contains(&allowed), is_listed, "{answer}");
        }
    }
    let program = post(&door, "/mcp", &[("Authorization", &right)], LIST).to_lowercase();
    assert!(!program.contains("access-control-allow-origin"), "{program}");
}

#[test]
fn the_token_is_made_once_said_once_and_readable_by_its_owner_alone() {
    let stage = Stage::new(&json!({}));
    let mut first = Listening::start(&stage);
    assert!(first.process.output().contains(&first.token) && first.token.len() == 64);
    let file = stage.scene.sandbox.path("state/ovos-tools/mcp-token");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    first.process.signal(Signal::TERM);
    assert!(first.process.end_within(DEADLINE).success());

    let second = Listening::start(&stage);
    assert_eq!(second.token, first.token);
    assert!(!second.process.output().contains(&second.token));

    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let mut third = stage.door("third", &["--http", "127.0.0.1:0"]);
    assert_eq!(third.end_within(DEADLINE).code(), Some(5));
    assert!(
        third.output().contains("can be read by others"),
        "{}",
        third.output()
    );
}

#[test]
fn without_a_token_it_listens_nowhere_else() {
    let stage = Stage::new(&json!({ "http_token": false }));
    let mut open = stage.door("open", &["--http", "0.0.0.0:0"]);
    assert_eq!(open.end_within(DEADLINE).code(), Some(5));
    assert!(
        open.output().contains("loopback address only"),
        "{}",
        open.output()
    );
    let local = Listening::start(&stage);
    let answer = post(&local, "/mcp", &[], LIST);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn the_toolset_is_configured() {
    let stage = Stage::new(
        &json!({ "effects": { "allow": ["read"] }, "tools": { "deny": ["add"] }, "warn_list_bytes": 1024 }),
    );
    let door = Listening::start(&stage);
    let right = format!("Bearer {}", door.token);
    let answer = post(&door, "/mcp", &[("Authorization", &right)], LIST);
    for (name, seen) in [
        ("emergency_stop", true),
        ("ping", true),
        ("add", false),
        ("assemble", false),
    ] {
        assert_eq!(
            answer.contains(&format!("\"name\":\"{name}\"")),
            seen,
            "{name}: {answer}"
        );
    }
    let output = door.process.output();
    assert!(
        output.contains("more than warn_list_bytes (1024); the largest are"),
        "{output}"
    );
}

/// The door says it itself: it may have a configuration that the service does not know.
#[test]
fn patterns_of_its_toolset_that_match_nothing_are_warned_of_with_the_nearest_name() {
    let stage = Stage::new(&json!({}));
    let toolset = json!({
        "http_token": false,
        "tools": { "allow": ["add", "asemble", "testbed__*"], "deny": ["joint_*"] },
        "toolboxes": { "deny": ["tesbed", "testbed_dup"] },
    });
    let own = json!({"PHAL": {"ovos-phal-plugin-tools": {"service": {"doors": {"mcp": toolset}}}}});
    let file = stage.scene.sandbox.path("own.conf");
    fs::write(&file, own.to_string()).unwrap();
    let mut door = stage.door(
        "door",
        &["--http", "127.0.0.1:0", "--config", file.to_str().unwrap()],
    );
    let expected = [
        "tools.allow: `asemble` matches no loaded tool; did you mean `assemble`?",
        "tools.deny: `joint_*` matches no loaded tool",
        "toolboxes.deny: `tesbed` matches no toolbox that is installed; did you mean `testbed`?",
    ];
    let output = door.until("its warnings", |door| {
        let output = door.output();
        expected
            .iter()
            .all(|warning| output.contains(warning))
            .then_some(output)
    });
    let warnings = output.lines().filter(|line| line.contains("service.doors.mcp."));
    assert_eq!(warnings.count(), expected.len(), "{output}");
}

/// `ovos-tools mcp` is `ovos-tools-mcp`, and says so where that is not there.
#[test]
fn the_command_line_finds_its_doors() {
    let sandbox = Sandbox::new();
    let run = |program: &std::path::Path, arguments: &[&str]| {
        let mut command = sandbox.command(program);
        let output = command.args(arguments).output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let ours = std::path::Path::new(service_binary());
    let (code, output) = run(ours, &["mcp", "--help"]);
    assert!(
        code == Some(0) && output.contains("Usage: ovos-tools mcp"),
        "{code:?} {output}"
    );
    let (code, output) = run(ours, &["--bus", "foo", "mcp"]);
    assert!(
        code == Some(2) && output.contains("expected an address"),
        "{code:?} {output}"
    );
    let (code, output) = run(ours, &["lst"]);
    assert!(code == Some(2) && output.contains("'list'"), "{code:?} {output}");

    let alone = sandbox.path("ovos-tools");
    fs::copy(ours, &alone).unwrap();
    let (code, output) = run(&alone, &["mcp"]);
    assert!(
        code == Some(2) && output.contains("ovos-tools-mcp, which is neither next to"),
        "{code:?} {output}"
    );
}

/// A client at stdin that says nothing or nothing sensible costs nothing and hears nothing but the protocol.
#[test]
fn stdout_carries_the_protocol_only() {
    let stage = Stage::new(&json!({}));
    let mut door = stage.at_stdio(&["-vv"]);
    let mut stdin = door.stdin.take().unwrap();
    for line in [
        LIST,
        "not json",
        &LIST
            .replace("tools/list", "prompts/list")
            .replace("\"id\":1", "\"id\":2"),
    ] {
        writeln!(stdin, "{line}").unwrap();
    }
    drop(stdin);
    let mut text = String::new();
    door.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(door.wait().unwrap().success());
    let answers: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |id: u64| {
        answers
            .iter()
            .find(|answer| answer["id"] == id)
            .unwrap_or_else(|| panic!("{id}: {text}"))
    };
    assert_eq!(of(1)["result"]["tools"][0]["name"], "emergency_stop");
    assert_eq!(of(2)["error"]["code"], -32601);
}
