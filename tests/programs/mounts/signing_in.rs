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

/// A browser that follows where it is sent; its person says yes to everything.
fn browser(sandbox: &Sandbox) -> String {
    let path = sandbox.path("browser");
    fs::write(
        &path,
        "#!/bin/sh\nexec curl -sL --max-time 20 -o /dev/null \"$1\"\n",
    )
    .unwrap();
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
    let said = [out.stdout, out.stderr].concat();
    (out.status.success(), String::from_utf8_lossy(&said).into_owned())
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
        let (done, said) = sign_in(&scene, name, &browser);
        assert!(!done && said.contains(why), "{said}");
    }
    let (done, said) = sign_in(&scene, "guarded", &browser);
    assert!(
        done && said.contains("Signed in: guarded lists 2 tools"),
        "{said}"
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
    let told = scene.call("guarded", "token", &json!({}))["result"].to_string();
    assert!(told.contains("(not shown)"), "{told}");

    // It is renewed before it expires, without a person.
    server.until("a renewal", |server| {
        _ = scene.call("guarded", "who", &json!({}));
        server.output().contains("RENEWED").then_some(())
    });
    let later = read();
    let token = |kept: &Value, name: &str| {
        kept["credentials"]["token_response"][name]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_ne!(token(&first, "access_token"), token(&later, "access_token"));
    let answer = scene.call("guarded", "who", &json!({}));
    assert!(answer["result"].is_object(), "{answer}");
    let told = scene.call("guarded", "token", &json!({}))["result"].to_string();

    let status = scene.client.ask("ovos.tools.status", &json!({})).to_string();
    let all = format!("{status}{}{told}{said}", scene.service.output());
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

/// Runs the scenarios of the protocol's own suite in which a client signs in. What fails has to be in the baseline.
#[test]
fn signing_in_is_as_the_suite_requires() {
    let sandbox = Sandbox::new();
    let Some(mut suite) = node("@modelcontextprotocol/conformance/dist/index.js", &sandbox) else {
        return;
    };
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let client = checkout.join("tests/programs/mounts/scripts/signs_in.sh");
    let program = Path::new(env!("CARGO_BIN_EXE_ovos-tools")).with_file_name("ovos-tools-mounts");
    suite
        .args(["client", "--suite", "auth", "--command", client.to_str().unwrap()])
        .arg("--expected-failures")
        .arg(checkout.join("tests/programs/mounts/baseline.yml"))
        .env("MOUNTS", program)
        .env("BROWSER", browser(&sandbox));
    let said = Process::start("suite", &sandbox, suite).finish();
    println!("{said}");
    for scenario in [
        "auth/metadata-default",
        "auth/iss-supported",
        "auth/scope-from-www-authenticate",
    ] {
        assert!(said.contains(&format!("✓ {scenario}: ")), "{scenario}: {said}");
    }
}
