//! What the greeting and `ovos-tools check` say of a file.

use std::path::Path;

use host::Greeter;

use crate::support::fixture::{FixtureFolder, within};

#[tokio::test]
async fn output_and_threads_of_a_file_after_its_probe_are_ignored() {
    let fixtures = FixtureFolder::new();
    let path = fixtures.build("constructor_talks", &[]);
    let greeter = Greeter::with_program(env!("CARGO_BIN_EXE_ovos-tools"));
    assert_eq!(
        within(host::greet(&path, &path, &greeter)).await.unwrap().id,
        "hostile"
    );
    let none = Greeter::with_program("/no/such/program");
    let failure = within(host::greet(&path, Path::new("/shown.so"), &none))
        .await
        .unwrap_err();
    assert!(
        failure.contains("/no/such/program") && failure.contains("/shown.so"),
        "{failure}"
    );
}

#[tokio::test]
async fn an_author_is_told_everything_at_once() {
    let fixtures = FixtureFolder::new();
    let program = Greeter::with_program(env!("CARGO_BIN_EXE_ovos-tools"));
    for (fixture, errors, warnings) in [
        ("well_behaved", &[][..], &["no `description`", "no `licence`"][..]),
        (
            "bad_tools",
            &[
                "tool `fine`: its name is taken",
                "tool `no good`",
                "tool `bare`",
                "tool `arm`: it has no `effect`; write what the tool does: \"effect\": \"read\"",
                "tool `ahead`: `argument_schema`: schema at #/properties/x/pattern: the pattern \"(?=a)\"",
            ],
            &[
                "no `description`",
                "no `licence`",
                "tool `arm`: unknown keys, which are ignored: `efect`",
            ],
        ),
        ("bad_manifest", &["All Arms"], &[]),
        ("no_entry", &["has no symbol"], &["something_else"]),
        ("constructor_crashes", &["SIGSEGV"], &[]),
    ] {
        let path = fixtures.build(fixture, &[]);
        let found = within(host::inspect(&path, &program)).await;
        for (found, expected) in [(&found.errors, errors), (&found.warnings, warnings)] {
            assert_eq!(found.len(), expected.len(), "{fixture}: {found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    found.contains(expected),
                    "{fixture}: {found:?} should contain {expected:?}"
                );
            }
        }
    }
    let found = within(host::inspect(Path::new("/no/such.so"), &program)).await;
    assert!(found.errors[0].contains("No such file"), "{found:?}");
}

#[test]
fn a_check_uses_the_environment_of_the_section_with_the_files_name() {
    let fixtures = FixtureFolder::new();
    let path = fixtures.build_as("needy", "needs_environment", &[("ID", "\"needy\"")]);
    let config = fixtures.path().join("mycroft.conf");
    for (env, code, expected) in [
        (r#"{}"#, 1, "where is ROS"),
        (r#"{"AMENT_PREFIX_PATH": "/opt/ros/humble"}"#, 0, "needy"),
        (
            r#"{"AMENT_PREFIX_PATH": 5}"#,
            1,
            "the configuration is invalid, so `env` was not applied",
        ),
    ] {
        let section = format!(r#"{{"PHAL": {{"ovos-phal-plugin-tools": {{"needy": {{"env": {env}}}}}}}}}"#);
        std::fs::write(&config, section).unwrap();
        let mut check = std::process::Command::new(env!("CARGO_BIN_EXE_ovos-tools"));
        check.env_remove("AMENT_PREFIX_PATH");
        let ended = check
            .arg("--config")
            .arg(&config)
            .arg("check")
            .arg(&path)
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.status.code(), Some(code), "{env}: {output}");
        assert!(output.contains(expected), "{env}: {output}");
    }
}
