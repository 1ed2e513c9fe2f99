//! The sections of toolboxes.

use std::path::PathBuf;
use std::time::Duration;

use ovos_tools_config::ToolFilter;
use serde_json::{Value, json};

use crate::machine::Machine;

#[test]
fn a_wrong_section_affects_only_its_toolbox() {
    let at = "home/.config/mycroft/mycroft.conf: PHAL.\"ovos-phal-plugin-tools\"";
    let rows = [
        (
            "box",
            json!({"enabled": "no"}),
            ".box.enabled: found \"no\", expected true or false",
        ),
        (
            "box",
            json!({"limits": {"grace": 1}}),
            ".box.limits.grace: unknown key (did you mean \"grace_ms\"?); accepted: close_ms, default_timeout_ms",
        ),
        (
            "box",
            json!({"limits": {"close_ms": 1}}),
            ".box.limits.close_ms: found 1, expected a whole number of milliseconds from 100",
        ),
        (
            "box",
            json!({"limits": {"memory_mb": 1}}),
            ".box.limits.memory_mb: found 1, expected a whole number of MiB from 16",
        ),
        (
            "box",
            json!({"limits": 5}),
            ".box.limits: found 5, expected an object",
        ),
        (
            "box",
            json!({"tools": {"allow": "add"}}),
            ".box.tools.allow: found \"add\", expected a list of tool names",
        ),
        (
            "box",
            json!({"tools": {"only": []}}),
            ".box.tools.only: unknown key; accepted: allow, deny",
        ),
        (
            "box",
            json!({"isolation": "process", "confine": {"paths": []}}),
            ".box.confine.paths: unknown key (did you mean \"paths_ro\"?)",
        ),
        (
            "box",
            json!({"allow_sha256": ["12"]}),
            ".box.allow_sha256: found a list, expected a list of SHA-256 hashes",
        ),
        (
            "box",
            json!({"env": {"A": 1}}),
            ".box.env: found an object, expected an object of variable names and strings",
        ),
        ("box", json!({"env": {"A=B": "1"}}), ".box.env: found an object"),
        (
            "box",
            json!({"confine": 5}),
            ".box.confine: found 5, expected an object",
        ),
        ("box", json!("on"), ".box: found \"on\", expected an object"),
        (
            "My.Box",
            json!({}),
            ": \"My.Box\" cannot be a toolbox_id: it may hold lower-case letters, digits, _ and - only",
        ),
        ("", json!({}), ": \"\" cannot be a toolbox_id: it may hold"),
        (
            "all",
            json!({}),
            ": \"all\" cannot be a toolbox_id: the name is reserved",
        ),
    ];
    for (id, section, expected) in rows {
        let machine =
            Machine::with_section(json!({id: section, "good": {"x": 1}, "service": {"max_calls": 3}}));
        let config = machine.load().unwrap();
        assert_eq!(config.service.max_calls, 3);
        assert!(config.toolboxes["good"].is_ok());
        let errors = config.toolboxes[id].as_ref().expect_err(expected);
        assert_eq!(config.toolbox(id).as_ref(), Err(errors));
        let error = machine.plain(errors);
        assert!(error.starts_with(&format!("{at}{expected}")), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let machine = Machine::with_section(json!({"enabled": "the plugin's own", "box": null}));
    assert!(machine.load().unwrap().toolboxes.is_empty());
    assert!(machine.load().unwrap().toolbox("service").is_err());
}

#[test]
fn a_toolbox_section_splits_into_the_hosts_keys_and_its_own() {
    let machine = Machine::with_section(json!({
        "service": {"grace_ms": 77, "settle_ms": 88},
        "arm-7_x": {
            "enabled": false, "isolation": "process", "limits": {"grace_ms": 5, "memory_mb": 64, "open_ms": 60000},
            "confine": {"paths_rw": ["~/data"]}, "tools": {"allow": ["pick_*", "home"], "deny": ["*_fast"]},
            "allow_sha256": ["A".repeat(64)], "env": {"ROS_DOMAIN_ID": "4", "ROS_HOME": "~/ros"},
            "backend": "sim", "service": {"kept": [1, null]}, "port": 123456789012345678u64,
        },
    }));
    let config = machine.load().unwrap();
    let toolbox = config.toolbox("arm-7_x").unwrap();
    assert!(!toolbox.toolbox.enabled);
    let limits = &toolbox.limits;
    assert_eq!(
        (limits.calls.grace, limits.calls.settle),
        (Duration::from_millis(5), Duration::from_millis(88))
    );
    assert_eq!(limits.memory_mb, Some(64));
    assert_eq!(
        (limits.open, limits.close),
        (Duration::from_secs(60), Duration::from_secs(10))
    );
    let confine = toolbox.toolbox.confine.as_ref().unwrap();
    assert_eq!(
        (confine.paths_rw.as_slice(), confine.network),
        ([machine.path("home/data")].as_slice(), false)
    );
    assert_eq!(toolbox.toolbox.allow_sha256, ["a".repeat(64)]);
    assert_eq!(
        (
            toolbox.toolbox.env["ROS_DOMAIN_ID"].as_str(),
            toolbox.toolbox.env["ROS_HOME"].as_str()
        ),
        ("4", "~/ros")
    );
    let own = json!({"backend": "sim", "service": {"kept": [1, null]}, "port": 123456789012345678u64});
    assert_eq!(Value::Object(toolbox.toolbox.own.clone()), own);
    for (tool, permitted) in [
        ("pick_up", true),
        ("pick_fast", false),
        ("home", true),
        ("homes", false),
        ("wave", false),
    ] {
        assert_eq!(toolbox.tools.permits(tool), permitted, "{tool}");
    }
    // A toolbox without a section has the values of the service.
    let other = config.toolbox("other").unwrap();
    assert_eq!(
        (other.toolbox.enabled, other.limits.calls.grace),
        (true, Duration::from_millis(77))
    );
    assert!(
        other.toolbox.own.is_empty() && other.toolbox.confine.is_none() && other.tools.permits("anything")
    );
}

#[test]
fn gstreamer_is_confined_to_its_section() {
    let confinement = |section: Value| {
        let machine = Machine::with_section(json!({"gstreamer": section}));
        let toolbox = machine.load().unwrap().toolbox("gstreamer").unwrap();
        (machine, toolbox.toolbox.confine.clone())
    };
    let has = |paths: &[PathBuf], path: &str| paths.contains(&PathBuf::from(path));

    // Without a section, too.
    let machine = Machine::with_section(json!({}));
    let bare = machine.load().unwrap().toolbox("gstreamer").unwrap();
    let bare = bare.toolbox.confine.clone().unwrap();
    let state = machine.path("home/.local/state/ovos-tools/gstreamer");
    assert!(bare.network && bare.paths_rw.contains(&state), "{bare:?}");
    assert!(has(&bare.devices, "/dev/video*") && has(&bare.devices, "/dev/snd"));
    let default = bare.default.unwrap();
    assert!(default.make.contains(&state) && default.temp.starts_with(&state));

    let (_, own) = confinement(json!({
        "state_dir": "/s", "snapshot_dir": "/pictures", "read_roots": ["/in"], "write_roots": ["/out"],
        "devices": ["/dev/video7", "/dev/pts/*"], "network_targets": [],
        "env": {"GST_PLUGIN_PATH": "/opt/a:/opt/b", "GST_REGISTRY": "/cache/registry", "OTHER": "/secret"},
    }));
    let own = own.unwrap();
    assert!(!own.network);
    assert_eq!(
        own.devices[..2],
        [PathBuf::from("/dev/video7"), "/dev/pts".into()]
    );
    assert!(!has(&own.devices, "/dev/video*") && !has(&own.devices, "/dev/snd"));
    assert_eq!(
        own.paths_rw,
        ["/s", "/cache", "/s/scratch", "/pictures", "/out"].map(PathBuf::from)
    );
    for (path, readable) in [
        ("/in", true),
        ("/opt/a", true),
        ("/opt/b", true),
        ("/secret", false),
    ] {
        assert_eq!(has(&own.paths_ro, path), readable, "{path}");
    }
    let (_, cards) = confinement(json!({"devices": ["hw:1"]}));
    assert!(has(&cards.unwrap().devices, "/dev/snd"));

    for (section, confined, by_itself) in [
        (json!({"confine": null}), true, true),
        (json!({"confine": {}}), true, false),
        (json!({"confine": false}), false, false),
    ] {
        let (_, confine) = confinement(section.clone());
        assert_eq!(confine.is_some(), confined, "{section}");
        assert_eq!(
            confine.is_some_and(|it| it.default.is_some()),
            by_itself,
            "{section}"
        );
    }
}

#[test]
fn tool_patterns_match_whole_names() {
    let rows = [
        ("add", "add", true),
        ("add", "adds", false),
        ("*", "", true),
        ("*", "x", true),
        ("a*", "a", true),
        ("a*", "ba", false),
        ("*a", "ba", true),
        ("a*c", "abc", true),
        ("a*c", "ac", true),
        ("a*a", "a", false),
        ("a*b*c", "axbxc", true),
        ("a*b*c", "axc", false),
        ("**", "x", true),
        ("", "", true),
        ("", "x", false),
    ];
    for (pattern, name, expected) in rows {
        let filter = ToolFilter {
            allow: Some(vec![pattern.to_owned()]),
            deny: Vec::new(),
        };
        assert_eq!(filter.permits(name), expected, "{pattern:?} {name:?}");
    }
}

#[test]
fn paths_below_the_home_folder_are_read_alike_everywhere() {
    let machine = Machine::with_section(json!({"gstreamer": {
        "write_roots": ["~/Videos", "~"], "deep": {"file": "~/x"}, "text": "~x", "confine": {"paths_rw": ["~/data"]},
    }}));
    let config = machine.load().unwrap();
    let section = config.toolbox("gstreamer").unwrap();
    let home = machine.path("home").display().to_string();
    assert_eq!(
        serde_json::Value::Object(section.toolbox.own.clone()),
        json!({"write_roots": [format!("{home}/Videos"), home], "deep": {"file": format!("{home}/x")}, "text": "~x"})
    );
    assert_eq!(
        section.toolbox.confine.as_ref().unwrap().paths_rw,
        [machine.path("home/data")]
    );
}
