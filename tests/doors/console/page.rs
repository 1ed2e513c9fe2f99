//! The page, in a real browser and by requests that no browser sends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::client::Client;
use crate::support::console::{address, binary, browser, serving};
use crate::support::process::{DEADLINE, Process, free_port};
use crate::support::python::console_python;
use crate::support::scene::Scene;
use crate::support::service::{BusKind, testbed_plugins};

/// A service, and a console whose page listens.
struct Stage {
    client: Client,
    console: Process,
    _service: Process,
    _bus: Process,
    scene: Scene,
    port: u16,
    /// With the token of an operator.
    url: String,
}

impl Stage {
    fn new() -> Self {
        let port = free_port();
        let scene = Scene::new(&json!({
            "doors": {"console": {"address": format!("127.0.0.1:{port}")}},
            "policy": [{"who": "bus", "tools": ["echo"], "decide": "confirm"}],
        }));
        let (bus, service, client) = scene.open();
        let console = serving(&scene);
        let url = address(&scene, &[]);
        Self {
            client,
            console,
            _service: service,
            _bus: bus,
            scene,
            port,
            url,
        }
    }

    /// The headers of the page itself, signed in with the token of an address.
    fn signed_in(&self, url: &str) -> Vec<String> {
        let (_, token) = url.split_once("#token=").unwrap();
        let here = format!("127.0.0.1:{}", self.port);
        let mut headers = vec![
            format!("Host: {here}"),
            format!("Origin: http://{here}"),
            "x-ovos-tools: 1".to_owned(),
        ];
        let body = json!({ "token": token }).to_string();
        let (_, answer) = self.send("POST /api/session", &headers, &body);
        let cookie = answer
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "))
            .unwrap();
        headers.push(format!("Cookie: {}", cookie.split(';').next().unwrap()));
        headers
    }

    /// Begins a request, and does not wait for its answer.
    fn begin(&self, head: &str, headers: &[String], body: impl AsRef<[u8]>) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let body = body.as_ref();
        let length = body.len();
        write!(
            stream,
            "{head} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        )
        .unwrap();
        stream.write_all(body).unwrap();
        stream
    }

    /// Sends a request as it is written, and returns the status and the whole answer.
    fn send(&self, head: &str, headers: &[String], body: impl AsRef<[u8]>) -> (u16, String) {
        let mut stream = self.begin(head, headers, body);
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }
}

#[test]
fn a_person_sees_runs_approves_stops_and_looks_back_in_a_browser() {
    let Some(browser) = browser() else { return };
    let Some(python) = console_python() else { return };
    let mut stage = Stage::new();
    for at in 0..39 {
        stage
            .client
            .call(&format!("slow-{at}"), "slow", &json!({"seconds": 500}));
    }
    stage.client.call(
        "moves",
        "assemble",
        &json!({"hang_at": "join", "timeout_ms": 500_000}),
    );
    stage.scene.until_moving("moves");
    let waits = stage.client.ask(
        "ovos.tools.invoke",
        &json!({"name": "echo", "args": {"text": "hello"}, "detail": true}),
    );
    assert!(waits["confirm"]["id"].is_string(), "{waits}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = stage.scene.sandbox.command(python);
    command
        .args(["-u"])
        .arg(root.join("tests/python/console_page.py"))
        .arg(browser)
        .args([&stage.url, &address(&stage.scene, &["--viewer"])])
        .arg(root.join("target/console-pictures"))
        .arg(env!("CARGO_BIN_EXE_ovos-tools"))
        .arg(stage.console.pid().to_string());
    let mut browser = Process::start("browser", &stage.scene.sandbox, command);
    // It is approved on the phone, and runs when it is asked for again.
    let mut approved = false;
    while !approved && browser.ended().is_none() {
        std::thread::park_timeout(Duration::from_millis(500));
        if stage.console.ended().is_some() {
            stage.console = serving(&stage.scene);
        }
        let again = json!({"name": "echo", "args": {"text": "hello"}});
        let answer = stage.client.ask("ovos.tools.invoke", &again);
        approved = answer["result"]["text"] == "hello";
    }
    let text = browser.finish();
    assert!(approved && text.contains("done"), "{text}");
    // What ran when the stop came did not go on.
    let status = stage.client.ask("ovos.tools.status", &json!({}));
    assert_eq!(status["calls"], json!([]));
}

#[test]
fn what_moves_for_a_page_that_is_closed_or_a_console_that_is_killed_comes_to_rest() {
    let mut stage = Stage::new();
    let headers = stage.signed_in(&stage.url);
    let run = |stage: &Stage, id: &str| {
        let args = json!({"hang_at": "join", "timeout_ms": 500_000});
        let body = json!({"toolbox_id": "testbed", "name": "assemble", "args": args, "call_id": id});
        let connection = stage.begin("POST /api/run", &headers, body.to_string());
        stage.scene.until_moving(id);
        connection
    };
    drop(run(&stage, "closed"));
    until_no_call(&mut stage.client);
    let _open = run(&stage, "killed");
    stage.console.kill();
    until_no_call(&mut stage.client);
    stage.scene.until_at_rest();
}

/// Waits until no call is under way.
#[track_caller]
fn until_no_call(client: &mut Client) {
    let end = Instant::now() + DEADLINE;
    loop {
        let status = client.ask("ovos.tools.status", &json!({}));
        if status["calls"] == json!([]) {
            return;
        }
        assert!(Instant::now() < end, "{}", status["calls"]);
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn only_the_page_itself_gets_answers_and_only_with_a_token() {
    let stage = Stage::new();
    let (_, token) = stage.url.split_once("#token=").unwrap();
    let here = format!("127.0.0.1:{}", stage.port);
    let host = format!("Host: {here}");
    let origin = format!("Origin: http://{here}");
    let mark = "x-ovos-tools: 1".to_owned();
    let ours = [host.clone(), origin.clone(), mark.clone()];
    let sign_in = |token: &str| stage.send("POST /api/session", &ours, json!({ "token": token }).to_string());
    assert_eq!(sign_in("guess").0, 401);
    let (status, answer) = sign_in(token);
    assert_eq!(status, 200, "{answer}");
    let cookie = answer
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let bearer = format!("Authorization: Bearer {token}");

    for (head, headers, expected) in [
        ("GET /", &[&host][..], 200),
        ("GET /app.js", &[&host], 200),
        ("GET /nothing", &[&host], 404),
        ("GET /", &[&"Host: evil.test".to_owned()], 403),
        ("GET /metrics", &[&host], 401),
        ("GET /metrics", &[&host, &bearer], 200),
        ("GET /metrics", &[&host, &cookie], 200),
        ("GET /api/state", &[&host], 401),
        // A program has the token in no other place than for the metrics.
        ("GET /api/state", &[&host, &bearer], 401),
        ("GET /api/state", &[&host, &cookie], 200),
        (
            "GET /api/state",
            &[&host, &cookie, &"Sec-Fetch-Site: cross-site".to_owned()],
            403,
        ),
        ("GET /api/calls?limit=1", &[&host, &cookie], 200),
        ("GET /api/stop", &[&host, &cookie], 405),
        ("POST /api/stop", &[&host, &origin, &mark], 401),
        ("POST /api/stop", &[&host, &cookie], 403),
        ("POST /api/stop", &[&host, &cookie, &mark], 403),
        ("POST /api/stop", &[&host, &cookie, &origin], 403),
        (
            "POST /api/stop",
            &[&host, &cookie, &mark, &"Origin: http://evil.test".to_owned()],
            403,
        ),
        (
            "POST /api/stop",
            &[&"Host: evil.test".to_owned(), &cookie, &mark, &origin],
            403,
        ),
        ("POST /api/stop", &[&host, &cookie, &mark, &origin], 200),
    ] {
        let headers: Vec<String> = headers.iter().map(|header| (*header).clone()).collect();
        let (status, answer) = stage.send(head, &headers, "{}");
        assert_eq!(status, expected, "{head} {headers:?}: {answer}");
        for rule in [
            "content-security-policy: default-src 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
        ] {
            assert!(answer.contains(rule), "{head}: {answer}");
        }
        assert!(!answer.contains("access-control-allow"), "{answer}");
    }
    // Whatever a request to stop is made of, it stops everything.
    for body in [&b""[..], b"\xff\xfe", b"[7]", b"{\"toolbox_id\": 7}"] {
        let headers = [&host, &cookie, &mark, &origin].map(Clone::clone);
        let (status, answer) = stage.send("POST /api/stop", &headers, body);
        assert!(
            status == 200 && answer.contains("\"testbed\""),
            "{body:?}: {answer}"
        );
    }
    // After five wrong tokens the right one has to wait, too.
    for _ in 0..4 {
        assert_eq!(sign_in("guess").0, 401);
    }
    assert_eq!(sign_in(token).0, 429);
    assert!(!stage.console.log().contains("panicked"));
}

/// Every combination of what a request says of itself, and who may do what.
#[test]
fn the_matrix_of_host_origin_token_and_method() {
    let stage = Stage::new();
    let here = format!("127.0.0.1:{}", stage.port);
    let cookie = |url: &str| stage.signed_in(url).pop().unwrap();
    let viewer = cookie(&address(&stage.scene, &["--viewer"]));
    let operator = cookie(&stage.url);
    let hosts = [None, Some(here.as_str()), Some("localhost"), Some("evil.test")];
    let origins = [
        None,
        Some(here.as_str()),
        Some("localhost"),
        Some("evil.test"),
        Some("null"),
    ];
    let cookies = [
        None,
        Some(viewer.as_str()),
        Some(operator.as_str()),
        Some("Cookie: ovos-tools-console=0"),
    ];
    for (method, path) in [
        ("GET", "/api/state"),
        ("POST", "/api/cancel"),
        ("POST", "/api/stop"),
        ("GET", "/"),
    ] {
        let mut requests = Vec::new();
        for host in hosts {
            for origin in origins {
                for cookie in cookies {
                    requests.extend([true, false].map(|marked| (host, origin, cookie, marked)));
                }
            }
        }
        for (host, origin, cookie, marked) in requests {
            let mut headers: Vec<String> = host.iter().map(|host| format!("Host: {host}")).collect();
            headers.extend(origin.iter().map(|origin| match *origin {
                "null" => "Origin: null".to_owned(),
                origin => format!("Origin: http://{origin}"),
            }));
            headers.extend(cookie.map(str::to_owned));
            headers.extend(marked.then(|| "x-ovos-tools: 1".to_owned()));
            let body = r#"{"call_id": "none"}"#;
            let (status, answer) = stage.send(&format!("{method} {path}"), &headers, body);
            let is_own_host = host == Some(here.as_str()) || host == Some("localhost");
            let same = origin == host || (origin.is_none() && method == "GET");
            let signed_in = cookie == Some(viewer.as_str()) || cookie == Some(operator.as_str());
            let expected = match (path, is_own_host) {
                (_, false) => 403,
                ("/", true) => 200,
                _ if !same || (method == "POST" && !marked) => 403,
                _ if !signed_in => 401,
                ("/api/cancel", true) if cookie == Some(viewer.as_str()) => 403,
                _ => 200,
            };
            assert_eq!(status, expected, "{method} {path} {headers:?}: {answer}");
        }
    }
    let call = json!({"toolbox_id": "testbed", "name": "assemble", "args": {}});
    let read = json!({"toolbox_id": "testbed", "name": "ping", "args": {}});
    for (path, body, of_viewer, of_operator) in [
        ("plan", call.clone(), 200, 200),
        ("run", read, 200, 200),
        ("run", call, 403, 200),
        ("cancel", json!({"call_id": "none"}), 403, 200),
        ("approve", json!({"id": "none"}), 403, 409),
        ("deny", json!({"id": "none"}), 403, 409),
        (
            "resume",
            json!({"toolbox_id": "testbed", "stop_id": "none"}),
            403,
            200,
        ),
        ("stop", json!({"toolbox_id": "testbed"}), 200, 200),
    ] {
        for (url, expected) in [
            (address(&stage.scene, &["--viewer"]), of_viewer),
            (stage.url.clone(), of_operator),
        ] {
            let headers = stage.signed_in(&url);
            let (status, answer) = stage.send(&format!("POST /api/{path}"), &headers, body.to_string());
            assert_eq!(status, expected, "{path} {body} {url}: {answer}");
        }
    }
    assert!(!stage.console.log().contains("panicked"));
}

/// The token is for a person at a terminal, and the page is there as soon as the service is.
#[test]
fn serve_console_starts_the_page_and_tells_a_terminal_its_address() {
    let port = free_port();
    let scene = Scene::new(&json!({
        "doors": {"console": {"address": format!("127.0.0.1:{port}")}},
    }));
    let _bus = scene.bus(BusKind::Embedded);
    let plugins = testbed_plugins();
    let serve = format!(
        "{} serve --console --plugins {}",
        env!("CARGO_BIN_EXE_ovos-tools"),
        plugins.display()
    );
    let mut command = scene.sandbox.command("script");
    command
        .args(["-q", "-e", "-c", &serve])
        .arg(scene.sandbox.path("typescript"));
    let mut terminal = Process::start("terminal", &scene.sandbox, command);
    let url = terminal.until("address", |terminal| {
        let log = terminal.log();
        let (_, url) = log.split_once("The page is at ")?;
        Some(url.split_whitespace().next()?.to_owned())
    });
    assert_eq!(url, address(&scene, &[]));
    let mut client = Client::connect(scene.port);
    let status = client.ask("ovos.tools.status", &json!({}));
    assert_eq!(status["doors"][0]["name"], "console", "{status}");
    // No log has it, nor does one to which the terminal is not connected.
    let (_, token) = url.split_once("#token=").unwrap();
    let kept = scene.sandbox.path("state");
    for file in ["ovos-tools.log", "tools.log"] {
        let log = std::fs::read_to_string(kept.join("mycroft").join(file)).unwrap_or_default();
        assert!(!log.contains(token), "{file}: {log}");
    }
}

#[test]
fn beyond_loopback_the_page_has_tls_and_a_phone_is_led_there() {
    let Some(python) = console_python() else { return };
    let port = free_port();
    let scene = Scene::new(&json!({
        "doors": {"console": {"address": format!("0.0.0.0:{port}"), "hosts": ["localhost"]}},
    }));
    let _bus = scene.bus(BusKind::Embedded);
    let _console = serving(&scene);
    let url = address(&scene, &["--qr"]);
    assert!(
        url.starts_with(&format!("https://localhost:{port}/#token=")),
        "{url}"
    );
    let mut command = scene.sandbox.command(python);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/console_tls.py"))
        .arg(&url)
        .arg(scene.sandbox.path("state/ovos-tools/console-certificate.pem"));
    let text = Process::start("tls", &scene.sandbox, command).finish();
    assert!(text.contains("done"), "{text}");

    // A page for this machine only says what a phone needs.
    scene.configure(
        &json!({ "doors": {"console": {"address": format!("127.0.0.1:{port}")}} }),
        &json!({}),
    );
    let out = scene
        .sandbox
        .command(binary())
        .args(["address", "--qr"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(5), "{text}");
    assert!(text.contains("service.doors.console.address"), "{text}");
}
