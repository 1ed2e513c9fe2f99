//! The programs by which the protocol's own makers test a server: their conformance suite, and the Inspector.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::mcp::door::{Listening, Stage, binary};
use crate::support::process::Process;
use crate::support::python::node;
use crate::support::service::plugins_with;

const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";
const INSPECTOR: &str = ".bin/mcp-inspector";

/// A folder with the toolbox that has the suite's tools.
fn fixture() -> tempfile::TempDir {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let out = Command::new("cc")
        .args(["-shared", "-fPIC", "-fvisibility=hidden", "-pthread", "-I"])
        .arg(checkout.join("toolboxes/abi"))
        .arg(checkout.join("tests/toolboxes/conformance/conformance.c"))
        .arg("-o")
        .arg(folder.path().join("conformance.so"))
        .output()
        .expect("a C compiler (cc) is needed for the fixture: apt install gcc");
    assert!(
        out.status.success(),
        "cc: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    folder
}

/// Runs the scenarios that `arguments` choose. What fails has to be in the baseline, and what is there has to fail. `unscored` are
/// scenarios that must pass, beside those that every choice has.
fn conforms(arguments: &[&str], unscored: &[&str]) {
    let toolbox = fixture();
    // The tools that the suite wants as tasks take longer than 1 s, all others at most half of one.
    let keys = json!({ "http_token": false, "reply_within_ms": 800 });
    let stage = Stage::with(&keys, &[toolbox.path().to_owned()]);
    let Some(mut suite) = node(SUITE, &stage.scene.sandbox) else {
        return;
    };
    let door = Listening::start(&stage);
    let baseline = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doors/mcp/baseline.yml");
    suite.args(["server", "--url", &door.url]).args(arguments);
    suite.arg("--expected-failures").arg(baseline);
    let output = Process::start("suite", &stage.scene.sandbox, suite).finish();
    let passed = |scenario: &str| output.contains(&format!("✓ {scenario}: "));
    let required = [
        "tools-list",
        "tools-call-simple-text",
        "tools-call-error",
        "tools-call-with-progress",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
    ];
    for scenario in required.iter().chain(unscored) {
        assert!(passed(scenario), "{scenario}: {output}");
    }
    println!("{}", output.rsplit("=== SUMMARY ===").next().unwrap_or_default());
}

#[test]
fn the_modern_era_is_as_the_suite_requires() {
    conforms(
        &["--requirements", "2026-07-28"],
        &["http-header-validation", "http-custom-header-server-validation"],
    );
}

#[test]
fn the_legacy_era_is_as_the_suite_requires() {
    conforms(&["--requirements", "2025-11-25"], &["server-session-lifecycle"]);
}

/// Drafts and extensions, too, each in the newest revision that it is for.
#[test]
fn the_baseline_names_all_that_fails_of_the_whole_suite() {
    let tasks = [
        "tasks-capability-negotiation",
        "tasks-wire-fields",
        "tasks-request-state-removal",
    ];
    let unscored = [&["ping", "http-header-validation"][..], &tasks].concat();
    conforms(&["--suite", "all"], &unscored);
}

/// Every tool of the toolboxes that tests have, as strict clients read it, in both eras and over both transports.
#[test]
fn the_inspector_has_nothing_to_say_about_our_tools() {
    let toolbox = fixture();
    let folders = [
        plugins_with("robot"),
        plugins_with("drone"),
        toolbox.path().to_owned(),
    ];
    // What these take is any value on purpose.
    let keys = json!({ "http_token": false, "tools": { "deny": ["ask", "emit_event", "show"] } });
    let stage = Stage::with(&keys, &folders);
    let door = Listening::start(&stage);
    let (program, bus) = (binary(), stage.scene.url());
    // The Inspector starts the door with few variables of its own environment.
    let folder = stage.scene.sandbox.path("config");
    let config = format!("XDG_CONFIG_HOME={}", folder.display());
    let stdio = ["env", &config, program.to_str().unwrap(), "--bus", &bus];
    let inspect = |target: &[&str], arguments: &[&str]| {
        let mut command = node(INSPECTOR, &stage.scene.sandbox)?;
        command
            .args(["--cli"])
            .args(target)
            .args(arguments)
            .args(["-q", "--format", "json"]);
        let out = command.output().unwrap();
        let output = String::from_utf8_lossy(&out.stdout).into_owned();
        let found = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && found.is_empty(), "{found}");
        Some(output)
    };
    for (target, era) in [(&[door.url.as_str()][..], "modern"), (&stdio, "legacy")] {
        let era = ["--protocol-era", era];
        let list = [&["--method", "tools/list", "--strict"][..], &era].concat();
        let Some(said) = inspect(target, &list) else {
            return;
        };
        for tool in ["emergency_stop", "add", "wave", "takeoff", "test_header"] {
            assert!(said.contains(&format!("\"name\":\"{tool}\"")), "{tool}: {said}");
        }
        let call = [
            "--method",
            "tools/call",
            "--tool-name",
            "add",
            "--tool-arg",
            "a=2",
            "b=3",
        ];
        let output = inspect(target, &[&call[..], &era].concat()).unwrap();
        assert!(
            output.contains("\"structuredContent\":{\"result\":5}"),
            "{output}"
        );
    }
}
