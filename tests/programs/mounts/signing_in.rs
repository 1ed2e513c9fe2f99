//! Servers at which a person has to sign in: with a browser that goes where it is sent, at the issuer of fastmcp.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::mounts::scene::{Scene, script};
use crate::support::process::{Process, Sandbox, free_port};
use crate::support::python::{mcp_python, node};
use crate::support::status;

/// A browser that follows where it is sent; its person says yes to everything. It writes down its environment.
fn browser(sandbox: &Sandbox) -> String {
    let path = sandbox.path("browser");
    let curl = "exec curl -sL --max-time 20 -o /dev/null \"$1\"";
    fs::write(&path, format!("#!/bin/sh\nenv >\"$0.env\"\n{curl}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn protected(python: &Path, sandbox: &Sandbox, port: u16, seconds: u32) -> Process {
    let mut command = sandbox.command(python);
    command
        .arg("-u")
        .arg(script("protected.py"))
        .args([port.to_string(), seconds.to_string()]);
    Process::start("protected", sandbox, command)
}

/// Signs in at a mount; returns whether that succeeded, and what was said.
fn sign_in(scene: &Scene, name: &str, browser: &str) -> (bool, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
    let mut command: Command = scene.sandbox.command(program);
    command.args(["mounts", "sign-in", name]).env("BROWSER", browser);
    command.stdin(std::process::Stdio::null());
    let out = command.output().unwrap();
    let output = [out.stdout, out.stderr].concat();
    (
        out.status.success(),
        String::from_utf8_lossy(&output).into_owned(),
    )
}

#[test]
fn a_server_that_asks_for_it_is_signed_in_at_once_and_for_good() {
    let Some(python) = mcp_python() else { return };
    let (port, servers) = (free_port(), Sandbox::new());
    // The library renews a token that counts for less than half a minute.
    let mut server = protected(python, &servers, port, 31);
    let url = format!("http://127.0.0.1:{port}/mcp");
    let browser = browser(&servers);
    let mut scene = Scene::of(|_| json!({ "guarded": { "url": url }, "local": { "command": "true" } }));
    let state = status::toolbox_until(&mut scene.client, "guarded", "how to sign in", |toolbox| {
        toolbox["backend"]["reason"]
            .to_string()
            .contains("mounts sign-in guarded")
    });
    assert_eq!(state["backend"]["state"], "down", "{state}");

    for (name, why) in [("nobody", "there is no mount 'nobody'"), ("local", "has no url")] {
        let (done, text) = sign_in(&scene, name, &browser);
        assert!(!done && text.contains(why), "{text}");
    }
    let (done, report) = sign_in(&scene, "guarded", &browser);
    assert!(
        done && report.contains("Signed in: guarded lists 2 tools"),
        "{report}"
    );
    scene.client.ask("ovos.tools.reload", &json!({}));
    scene.until("guarded", "ready");
    let who = scene.call("guarded", "who", &json!({}))["result"].to_string();
    assert!(who.len() > 10, "{who}");

    let file = scene.sandbox.path("state/ovos-tools/mounts/guarded.json");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    let read = || -> Value { serde_json::from_slice(&fs::read(&file).unwrap()).unwrap() };
    let first = read();
    let text = scene.call("guarded", "token", &json!({}))["result"].to_string();
    assert!(text.contains("(not shown)"), "{text}");

    // It is renewed before it expires, without a person.
    let token = |kept: &Value, name: &str| {
        kept["credentials"]["token_response"][name]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let later = server.until("a renewal", |server| {
        _ = scene.call("guarded", "who", &json!({}));
        let is_said = server.output().contains("RENEWED");
        Some(read()).filter(|later| is_said && token(later, "access_token") != token(&first, "access_token"))
    });
    let answer = scene.call("guarded", "who", &json!({}));
    assert!(answer["result"].is_object(), "{answer}");
    let text = scene.call("guarded", "token", &json!({}))["result"].to_string();

    let status = scene.client.ask("ovos.tools.status", &json!({})).to_string();
    let all = format!("{status}{}{text}{report}", scene.service.output());
    for kept in [&first, &later] {
        for name in ["access_token", "refresh_token"] {
            let secret = token(kept, name);
            assert!(!all.contains(&secret), "{name} is shown: {all}");
        }
    }

    // Tokens are for one server: at another address the mount is not signed in.
    let other = json!({ "guarded": { "url": format!("http://localhost:{port}/mcp") } });
    scene.reload(&other);
    status::toolbox_until(&mut scene.client, "guarded", "how to sign in", |toolbox| {
        toolbox["backend"]["reason"]
            .to_string()
            .contains("mounts sign-in guarded")
    });
}

/// Without a browser a person signs in elsewhere, with a code. The issuer gives its client a secret, and wants to see it each time.
#[test]
fn a_machine_without_a_browser_is_signed_in_with_a_code() {
    let Some(python) = mcp_python() else { return };
    let (port, servers) = (free_port(), Sandbox::new());
    let mut command = servers.command(python);
    command
        .arg("-u")
        .arg(script("gives_codes.py"))
        .arg(port.to_string());
    let _server = Process::start("gives_codes", &servers, command);
    let url = format!("http://127.0.0.1:{port}/mcp");
    let mut scene = Scene::of(|_| json!({ "codes": { "url": url } }));
    status::toolbox_until(&mut scene.client, "codes", "how to sign in", |toolbox| {
        toolbox["backend"]["reason"]
            .to_string()
            .contains("mounts sign-in codes")
    });
    let program = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
    let mut command: Command = scene.sandbox.command(program);
    command
        .args(["mounts", "sign-in", "codes"])
        .stdin(std::process::Stdio::null());
    for browser in ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"] {
        command.env_remove(browser);
    }
    let mut signing_in = Process::start("sign-in", &scene.sandbox, command);
    let code = signing_in.until("a code", |signing_in| {
        let output = signing_in.output();
        let (_, rest) = output.split_once("It asks for this code:  ")?;
        Some(rest.split_once('\n')?.0.to_owned())
    });
    assert!(
        signing_in
            .output()
            .contains(&format!("\n  http://127.0.0.1:{port}/device\n")),
        "{}",
        signing_in.output()
    );
    let page = format!("http://127.0.0.1:{port}/device?user_code={code}");
    let yes = Command::new("curl").args(["-sf", &page]).output().unwrap();
    assert!(yes.status.success(), "{yes:?}");
    let output = signing_in.finish();
    assert!(output.contains("Signed in: codes lists 1 tools"), "{output}");
    let text = format!("Signing in at the issuer http://127.0.0.1:{port}; tokens come from 127.0.0.1.");
    assert!(output.contains(&text), "{output}");
    scene.client.ask("ovos.tools.reload", &json!({}));
    scene.until("codes", "ready");
    assert!(scene.call("codes", "who", &json!({}))["result"].is_object());
    let file = scene.sandbox.path("state/ovos-tools/mounts/codes.json");
    let kept: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let status = scene.client.ask("ovos.tools.status", &json!({})).to_string();
    for secret in [
        &kept["client_secret"],
        &kept["credentials"]["token_response"]["access_token"],
    ] {
        let secret = secret.as_str().unwrap_or_else(|| panic!("{kept}"));
        assert!(
            !output.contains(secret) && !status.contains(secret) && !scene.service.output().contains(secret)
        );
    }
    // The token counts no more. The issuer of the secret is kept, and the browser does not get the secret.
    let mut stale = kept.clone();
    stale["credentials"]["token_response"]["access_token"] = json!("stale");
    fs::write(&file, stale.to_string()).unwrap();
    let (id, secret) = (&kept["credentials"]["client_id"], &kept["client_secret"]);
    let browser = browser(&scene.sandbox);
    let mut command: Command = scene.sandbox.command(program);
    command
        .args([
            "mounts",
            "sign-in",
            "codes",
            "--device",
            "--client-secret-env",
            "SECRET",
        ])
        .args(["--client-id", id.as_str().unwrap()])
        .env("SECRET", secret.as_str().unwrap())
        .env("BROWSER", &browser)
        .stdin(std::process::Stdio::null());
    let output = Process::start("again", &scene.sandbox, command).finish();
    assert!(output.contains("Signed in: codes lists 1 tools"), "{output}");
    let environment = fs::read_to_string(format!("{browser}.env")).unwrap();
    assert!(
        environment.contains("BROWSER=") && !environment.contains(secret.as_str().unwrap()),
        "{environment}"
    );
    for (words, why) in [
        (
            &["--client-secret-env", "SECRET"][..],
            "also needs --client-id ID",
        ),
        (
            &["--client-id", "x", "--client-secret-env", "NOT_THERE"],
            "there is no variable `NOT_THERE`",
        ),
        // A secret goes to the issuer that it is for, and to no other that a server names.
        (
            &["--client-id", "x", "--client-secret-env", "SECRET"],
            &format!("add --issuer http://127.0.0.1:{port}"),
        ),
        (
            &[
                "--client-id",
                "x",
                "--client-secret-env",
                "SECRET",
                "--issuer",
                "https://other.test",
            ],
            "another issuer than https://other.test; nothing was sent there",
        ),
        (
            &["--issuer", "https://other.test"],
            "another issuer than https://other.test",
        ),
        (&["--code"], "expected --config FILE"),
    ] {
        fs::remove_file(&file).ok();
        let mut command: Command = scene.sandbox.command(program);
        let out = command
            .args(["mounts", "sign-in", "codes"])
            .args(words)
            .env("SECRET", "the-secret-of-x")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&out.stderr);
        assert!(
            !out.status.success() && output.contains(why),
            "{words:?}: {output}"
        );
    }
}

/// The scenarios of the newest revision, which are in no suite of their own.
const NEWEST: [&str; 11] = [
    "auth/authorization-server-migration",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
];

/// Runs the scenarios of the protocol's own suite in which a client signs in.
#[test]
fn signing_in_is_as_the_suite_requires() {
    let sandbox = Sandbox::new();
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let client = checkout.join("tests/programs/mounts/scripts/signs_in.sh");
    let program = Path::new(env!("CARGO_BIN_EXE_ovos-tools")).with_file_name("ovos-tools-mounts");
    let run = |arguments: &[&str]| {
        let mut suite = node("@modelcontextprotocol/conformance/dist/index.js", &sandbox)?;
        suite
            .args(["client", "--command", client.to_str().unwrap()])
            .args(arguments)
            .env("MOUNTS", &program)
            .env("TOOLS", env!("CARGO_BIN_EXE_ovos-tools"))
            .env("PORT", free_port().to_string())
            .env("BROWSER", browser(&sandbox));
        Some(Process::start("suite", &sandbox, suite).finish())
    };
    let Some(said) = run(&["--suite", "auth"]) else {
        return;
    };
    println!("{said}");
    for scenario in [
        "auth/metadata-default",
        "auth/scope-from-www-authenticate",
        "auth/scope-step-up",
        "auth/basic-cimd",
        "auth/pre-registration",
    ] {
        assert!(said.contains(&format!("✓ {scenario}: ")), "{scenario}: {said}");
    }
    for scenario in NEWEST {
        let output = run(&["--scenario", scenario]).unwrap();
        assert!(output.contains("OVERALL: PASSED"), "{scenario}: {output}");
    }
}
