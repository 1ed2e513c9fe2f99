//! `ovos-tools new`: what it writes builds, passes its own test and `check`, and answers in a real service.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::process::Sandbox;
use crate::support::service_with_bus::ServiceWithBus;

const OURS: &str = env!("CARGO_BIN_EXE_ovos-tools");

/// Runs `ovos-tools` in the sandbox's home.
fn ours(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    sandbox.command(OURS).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .concat()
}

/// Runs a command, which has to succeed.
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    text(&output)
}

/// Writes the project of a language, and returns its folder.
fn project(sandbox: &Sandbox, name: &str, language: &str) -> PathBuf {
    let checkout = env!("CARGO_MANIFEST_DIR");
    let mut arguments = vec!["new", name, "--lang", language, "--json"];
    // The target folder of this test may be elsewhere.
    if language == "rust" {
        arguments.extend(["--sdk", checkout]);
    }
    let written = ours(sandbox, &arguments);
    assert!(written.status.success(), "{}", text(&written));
    let written: Value = serde_json::from_slice(&written.stdout).unwrap();
    let folder = PathBuf::from(written["folder"].as_str().unwrap());
    for file in written["files"].as_array().unwrap() {
        let text = fs::read_to_string(folder.join(file.as_str().unwrap())).unwrap();
        for left in [
            "hello_c.",
            "hello_c\"",
            "greeter\"",
            "{file}",
            "{library}",
            "to copy",
        ] {
            assert!(!text.contains(left), "{file} has {left}");
        }
    }
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    assert!(readme.starts_with(&format!("# {name}\n")) && !readme.contains("{name}"));
    folder
}

/// `check` has nothing to say against a file of the project, a service loads it, and one of its tools answers.
fn serves(sandbox: &Sandbox, file: &Path, sections: Value, tool: &str, expected: &str) {
    let checked = ours(sandbox, &["check", file.to_str().unwrap()]);
    assert!(text(&checked).contains("no problems found"), "{}", text(&checked));
    let plugins = sandbox.path("plugins");
    fs::create_dir(&plugins).unwrap();
    if file.extension().is_some_and(|ending| ending == "so") {
        fs::copy(file, plugins.join("my-arm.so")).unwrap();
    }
    let mut service = ServiceWithBus::start(Path::new(OURS), &plugins, |_| sections);
    service.toolboxes_until("the toolbox", |toolboxes| {
        let is_it = |it: &Value| it["toolbox_id"] == "my-arm" && it["tools"].as_u64() > Some(0);
        toolboxes.iter().any(is_it).then_some(())
    });
    let answer = service.ask(&["invoke", tool, "name=Ada"]);
    assert!(answer["result"].to_string().contains(expected), "{answer}");
}

#[test]
fn a_project_in_rust_builds_and_serves() {
    let sandbox = Sandbox::new();
    let folder = project(&sandbox, "my-arm", "rust");
    // The versions and the target folder of this workspace, so that its builds are used.
    fs::copy(
        concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock"),
        folder.join("Cargo.lock"),
    )
    .unwrap();
    let target = Path::new(OURS).ancestors().nth(2).unwrap();
    let cargo = |arguments: &[&str]| {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.current_dir(&folder).args(arguments).arg("--offline");
        cargo.env("CARGO_TARGET_DIR", target);
        if std::env::var_os("CARGO_PROFILE_DEV_DEBUG").is_none() {
            cargo.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
        }
        done(&mut cargo)
    };
    let tested = cargo(&["test"]);
    assert!(tested.contains("it_greets ... ok"), "{tested}");
    cargo(&["build"]);
    let library = target.join("debug/libtoolbox_my_arm.so");
    serves(&sandbox, &library, json!({}), "my-arm", "Hello, Ada!");
}

#[test]
fn a_project_in_c_builds_and_serves() {
    let sandbox = Sandbox::new();
    let folder = project(&sandbox, "my-arm", "c");
    for target in ["test", "my-arm.so"] {
        done(Command::new("make").current_dir(&folder).arg(target));
    }
    serves(
        &sandbox,
        &folder.join("my-arm.so"),
        json!({}),
        "my-arm",
        "Hello, Ada!",
    );
    // Its test can fail.
    let source = fs::read_to_string(folder.join("toolbox.c")).unwrap();
    fs::write(folder.join("toolbox.c"), source.replace("Hello, %", "Bye, %")).unwrap();
    let tested = Command::new("make").current_dir(&folder).arg("test").output();
    assert!(text(&tested.unwrap()).contains("expected 0"));
}

#[test]
fn a_project_in_python_serves() {
    let sandbox = Sandbox::new();
    let folder = project(&sandbox, "my-arm", "python");
    let tested = done(
        sandbox
            .command("python3")
            .current_dir(&folder)
            .args(["-m", "unittest"]),
    );
    assert!(tested.contains("\nOK"), "{tested}");
    let configuration = fs::read_to_string(folder.join("mycroft.conf")).unwrap();
    let mut configuration: Value = serde_json::from_str(&configuration).unwrap();
    let sections = configuration["PHAL"]["ovos-phal-plugin-tools"].take();
    serves(
        &sandbox,
        &folder.join("toolbox.py"),
        sections,
        "greet",
        "Hello, Ada!",
    );
}

#[test]
fn what_cannot_be_written_is_refused() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("taken")).unwrap();
    for (arguments, expected) in [
        (&["taken", "--lang", "c"][..], "exists; choose another name"),
        (&["service"], "neither `service` nor `all`"),
        (&["3d"], "expected a letter"),
        (&["Arm"], "up to 63 of a-z"),
        (&["../arm", "--lang", "c"], "up to 63 of a-z"),
        (
            &["arm", "--sdk", "taken"],
            "taken has no toolboxes/sdk: run `git clone",
        ),
        (&["arm", "--sdk", "taken", "--lang", "c"], "only for --lang rust"),
    ] {
        let refused = ours(&sandbox, &[&["new"], arguments].concat());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(
            text(&refused).contains(expected),
            "{arguments:?}: {}",
            text(&refused)
        );
    }
    assert!(fs::read_dir(sandbox.path("taken")).unwrap().next().is_none());
    assert!(!sandbox.path("arm").exists());
}

/// The SDK is that of the checkout around the folder.
#[test]
fn the_sdk_is_found() {
    let sandbox = Sandbox::new();
    let sdk = sandbox.path("checkout/toolboxes/sdk");
    fs::create_dir_all(&sdk).unwrap();
    fs::write(sdk.join("Cargo.toml"), "[package]\nname = \"ovos-toolbox-sdk\"\n").unwrap();
    let mut new = sandbox.command(OURS);
    done(new.current_dir(&sdk).args(["new", "arm"]));
    let manifest = fs::read_to_string(sdk.join("arm/Cargo.toml")).unwrap();
    let expected = format!("{{ path = \"{}\", version", sdk.canonicalize().unwrap().display());
    assert_eq!(manifest.matches(&expected).count(), 2, "{manifest}");
}
