//! The keys of the service and the bus address.

use std::path::PathBuf;
use std::time::Duration;

use ovos_tools_config::{Config, EmbeddedBus, LogLevel, OnBusLoss, Origin, Overrides};
use serde_json::json;

use crate::machine::{Machine, USER};

#[test]
fn plugins_that_came_with_the_program_are_found() {
    for (program, own) in [
        ("{root}/venv/bin/ovos-tools", Some("venv/lib/ovos-tools/plugins")),
        ("{root}/usr/bin/ovos-tools", None),
        ("{root}/usr/local/bin/ovos-tools", None),
        ("{root}/tree/target/debug/ovos-tools", None),
    ] {
        let machine = Machine::new(&[], &[("PROGRAM", program)]);
        let found = machine.load().unwrap().service.plugins_dir.clone();
        let others = ["usr/local/lib/ovos-tools/plugins", "usr/lib/ovos-tools/plugins"];
        let first = "home/.local/share/ovos-tools/plugins";
        let expected = std::iter::once(first).chain(own).chain(others);
        let expected: Vec<PathBuf> = expected.map(|dir| machine.path(dir)).collect();
        assert_eq!(found, expected, "{program}");
    }
}

#[test]
fn without_files_everything_has_its_default() {
    let machine = Machine::new(&[], &[]);
    let config = machine.load().unwrap();
    let service = &config.service;
    assert_eq!(config.bus.url.as_str(), "ws://127.0.0.1:8181/core");
    assert_eq!(config.bus.max_message_bytes, 25 << 20);
    let dirs = [
        "home/.local/share/ovos-tools/plugins",
        "usr/local/lib/ovos-tools/plugins",
        "usr/lib/ovos-tools/plugins",
    ];
    assert_eq!(service.plugins_dir, dirs.map(|dir| machine.path(dir)));
    assert_eq!(service.state_dir, machine.path("home/.local/state/ovos-tools"));
    assert_eq!(service.stage_dirs, [machine.path("home/.cache/ovos-tools/stage")]);
    assert_eq!(service.embedded_bus, EmbeddedBus::Never);
    assert_eq!(service.on_bus_loss, OnBusLoss::Halt);
    assert_eq!((service.max_calls, service.limits.max_waiting), (4096, 64));
    assert_eq!(
        (service.drain, service.limits.grace),
        (Duration::from_secs(10), Duration::from_millis(500))
    );
    assert!(!service.operator_tools && !service.answer_as_phal);
    assert_eq!(service.facts_mb, 32);
    assert_eq!(config.logging.level, LogLevel::Info);
    assert_eq!(
        config.logging.dir,
        Some(machine.path("home/.local/state/mycroft"))
    );
    assert_eq!(
        (config.logging.max_bytes, config.logging.backup_count),
        (50_000_000, 3)
    );
    assert!(config.settings().all(|setting| setting.origin == Origin::Default));
    assert!(config.toolboxes.is_empty() && config.notices.is_empty());

    let machine = Machine::new(&[], &[("XDG_RUNTIME_DIR", "/run/user/1")]);
    let stages = machine.load().unwrap().service.stage_dirs.clone();
    assert_eq!(
        stages,
        [
            PathBuf::from("/run/user/1/ovos-tools"),
            machine.path("home/.cache/ovos-tools/stage")
        ]
    );
}

#[test]
fn a_wrong_service_key_is_explained() {
    let at = "home/.config/mycroft/mycroft.conf: PHAL.\"ovos-phal-plugin-tools\".service";
    let rows = [
        (
            json!({"grace_ms": "5s"}),
            ".grace_ms: found \"5s\", expected a whole number of milliseconds from 0 to 60000",
        ),
        (
            json!({"grace_ms": -1}),
            ".grace_ms: found -1, expected a whole number",
        ),
        (
            json!({"grace_ms": 1.5}),
            ".grace_ms: found 1.5, expected a whole number",
        ),
        (json!({"grace_ms": 60001}), ".grace_ms: found 60001, expected"),
        (
            serde_json::from_str(r#"{"grace_ms": 123456789012345678901234567890}"#).unwrap(),
            ".grace_ms: found 123456789012345678901234567890, expected a whole number of milliseconds from 0",
        ),
        (
            json!({"embedded_bus_clients": 7}),
            ".embedded_bus_clients: found 7, expected a whole number from 8 to 65536",
        ),
        (
            json!({"embedded_bus_http_origins": [5]}),
            ".embedded_bus_http_origins: found ",
        ),
        (
            json!({"max_calls": 0}),
            ".max_calls: found 0, expected a whole number from 1 to 65536",
        ),
        (
            json!({"operator_tools": "yes"}),
            ".operator_tools: found \"yes\", expected true or false",
        ),
        (
            json!({"on_bus_loss": "stop"}),
            ".on_bus_loss: found \"stop\", expected \"halt\" or \"continue\"",
        ),
        (
            json!({"embedded_bus": true}),
            ".embedded_bus: found true, expected one of \"never\", \"auto\", \"always\"",
        ),
        (
            json!({"plugins_dir": "plugins"}),
            ".plugins_dir: found \"plugins\", expected an absolute path or one that starts with ~/",
        ),
        (
            json!({"plugins_dir": ["/ok", 5]}),
            ".plugins_dir: found a list, expected an absolute path",
        ),
        (
            json!({"state_dir": {}}),
            ".state_dir: found an object, expected an absolute path",
        ),
        (
            json!({"embedded_bus_host": ""}),
            ".embedded_bus_host: found \"\", expected a host name or address",
        ),
        (
            json!({"policy": {}}),
            ".policy: found an object, expected a list of rules",
        ),
        (
            json!({"policy": [{"decide": "allow"}, "deny"]}),
            ".policy: found a list, expected rule 2 to be an object",
        ),
        (
            json!({"policy": [{"decide": "ask"}]}),
            ".policy: found a list, expected in rule 1: \"decide\": allow, confirm or deny",
        ),
        (
            json!({"policy": [{"who": "bus"}]}),
            ".policy: found a list, expected in rule 1: missing field \"decide\"",
        ),
        (
            json!({"policy": [{"decide": "deny", "whom": "bus"}]}),
            ".policy: found a list, expected in rule 1: one of \"who\", \"tools\"",
        ),
        (
            json!({"policy": [{"decide": "deny", "who": ["bus", "mcp"]}]}),
            ".policy: found a list, expected in rule 1: \"who\": door, hive, bus or machine",
        ),
        (
            json!({"policy": [{"decide": "deny", "who": "local"}]}),
            ".policy: found a list, expected in rule 1: \"who\": door, hive, bus or machine",
        ),
        (
            json!({"policy": [{"decide": "deny", "who": []}]}),
            ".policy: found a list, expected in rule 1: \"who\"",
        ),
        (
            json!({"policy": [{"decide": "deny", "tools": [""]}]}),
            ".policy: found a list, expected in rule 1: \"tools\": a list of tool names",
        ),
        (
            json!({"policy": [{"decide": "deny", "effects": ["stop"]}]}),
            ".policy: found a list, expected in rule 1: \"effects\": a list of read, write, motion, safe and resume",
        ),
        (
            json!({"policy": [{"decide": "deny", "backend": "real"}]}),
            ".policy: found a list, expected in rule 1: \"backend\": simulated or hardware",
        ),
        (
            json!({"reconnect_first_ms": 9000, "reconnect_max_ms": 8000}),
            ".reconnect_max_ms: found 8000, expected at least reconnect_first_ms (9000)",
        ),
        (
            json!({"grace_sm": 1}),
            ".grace_sm: unknown key (did you mean \"grace_ms\"?); accepted: answer_as_phal, confirm_ms, default_timeout_ms, doors, drain_ms",
        ),
        (
            json!({"operator-tools": true}),
            ".\"operator-tools\": unknown key (did you mean \"operator_tools\"?)",
        ),
        (json!({"zzz": 1}), ".zzz: unknown key; accepted: answer_as_phal"),
        (
            json!({"door": {}}),
            ".door: unknown key (did you mean \"doors\"?)",
        ),
        (json!({"limits": {}}), ".limits: unknown key"),
        (json!([]), ": found a list, expected an object"),
    ];
    for (service, expected) in rows {
        let machine = Machine::with_service(service.clone());
        let errors = machine.load().expect_err(expected);
        let error = machine.plain(&errors);
        assert!(
            error.starts_with(&format!("{at}{expected}")),
            "{service}: {error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    // All errors are reported at once.
    let machine = Machine::with_service(json!({"a": 1, "b": 2, "max_calls": "x", "drain_ms": null}));
    let error = machine.load().expect_err("three mistakes").to_string();
    assert_eq!(error.lines().count(), 3, "{error}");
}

#[test]
fn service_keys_take_effect() {
    let machine = Machine::with_service(json!({
        "plugins_dir": "~/mine", "state_dir": "/s", "stage_dir": "/t", "embedded_bus": "auto",
        "on_bus_loss": "continue", "max_failures": 0, "settle_ms": 0, "operator_tools": true, "max_wait_ms": null,
    }));
    let service = machine.load().unwrap().service.clone();
    assert_eq!(service.plugins_dir, [machine.path("home/mine")]);
    assert_eq!(
        (service.state_dir, service.stage_dirs),
        ("/s".into(), vec!["/t".into()])
    );
    assert_eq!(service.embedded_bus, EmbeddedBus::Auto);
    assert_eq!(
        (service.on_bus_loss, service.max_failures),
        (OnBusLoss::Continue, 0)
    );
    assert_eq!(
        (service.limits.settle, service.limits.max_wait),
        (Duration::ZERO, Duration::from_secs(30))
    );
    assert!(service.operator_tools);
}

#[test]
fn yaml_switches_may_say_yes() {
    for (word, expected) in [
        ("yes", Some(true)),
        ("Off", Some(false)),
        ("true", Some(true)),
        ("maybe", None),
    ] {
        let text = format!("PHAL:\n  ovos-phal-plugin-tools:\n    service:\n      operator_tools: {word}\n");
        let machine = Machine::new(
            &[("home/.config/mycroft/m.yml", &text)],
            &[("OVOS_CONFIG_FILENAME", "m.yml")],
        );
        assert_eq!(
            machine.load().ok().map(|config| config.service.operator_tools),
            expected,
            "{word}"
        );
    }
}

#[test]
fn the_bus_address_comes_from_websocket_or_the_command_line() {
    let rows = [
        (json!({}), None, Ok("ws://127.0.0.1:8181/core")),
        (
            json!({"host": "bus.local", "port": 1, "route": "x", "ssl": true}),
            None,
            Ok("wss://bus.local:1/x"),
        ),
        (
            json!({"host": "::1", "port": "8182"}),
            None,
            Ok("ws://[::1]:8182/core"),
        ),
        (
            json!({"shared_connection": true, "filter": 5, "unheard_of": {}}),
            None,
            Ok("ws://127.0.0.1:8181/core"),
        ),
        (json!({"host": "a"}), Some("wss://b:2/c"), Ok("wss://b:2/c")),
        (json!({"route": "/r"}), Some("ws://b:2"), Ok("ws://b:2/r")),
        // Only paths of this machine may start with the home directory.
        (json!({"route": "~/r"}), None, Ok("ws://127.0.0.1:8181/~/r")),
        (
            json!({}),
            Some("http://b"),
            Err("--bus: URL: found \"http://b\", expected an address such as ws://"),
        ),
        (json!({}), Some("b:2"), Err("--bus: URL: found \"b:2\"")),
        (
            json!({"port": 0}),
            None,
            Err("websocket.port: found 0, expected a port from 1 to 65535"),
        ),
        (json!({"port": 70000}), None, Err("websocket.port: found 70000")),
        (
            json!({"host": 5}),
            None,
            Err("websocket.host: found 5, expected a host name"),
        ),
        (
            json!({"host": "a b"}),
            None,
            Err("websocket.host: found \"a b\", expected a host name"),
        ),
        (
            json!({"secret_key": "k"}),
            None,
            Err("websocket.secret_key: encrypted bus frames are deprecated"),
        ),
        (json!({"secret_key": ""}), None, Ok("ws://127.0.0.1:8181/core")),
        (json!({"secret_key": null}), None, Ok("ws://127.0.0.1:8181/core")),
        (json!(5), None, Err("websocket: found 5, expected an object")),
    ];
    for (websocket, bus, expected) in rows {
        let machine = Machine::new(&[(USER, &json!({"websocket": websocket}).to_string())], &[]);
        let overrides = Overrides {
            bus: bus.map(str::to_owned),
            ..Overrides::default()
        };
        match (Config::load(&machine, &overrides, None), expected) {
            (Ok(config), Ok(url)) => assert_eq!(config.bus.url.as_str(), url, "{websocket}"),
            (Err(errors), Err(text)) => {
                let error = machine.plain(&errors).replace(&format!("{USER}: "), "");
                assert!(error.starts_with(text), "{websocket}: {error}");
            }
            (found, expected) => panic!("{websocket}: {found:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn a_bus_on_this_machine_is_tried_more_often() {
    let rows = [
        (json!({}), json!({}), (200, 500)),
        (json!({"host": "localhost"}), json!({}), (200, 500)),
        (json!({"host": "::1"}), json!({}), (200, 500)),
        (json!({"host": "bus.local"}), json!({}), (500, 2000)),
        (
            json!({"host": "192.168.1.2"}),
            json!({"reconnect_max_ms": 9000}),
            (500, 9000),
        ),
        // The default of the longest delay is at least the first delay.
        (json!({}), json!({"reconnect_first_ms": 9000}), (9000, 9000)),
    ];
    for (websocket, service, expected) in rows {
        let machine = Machine::new(&[(USER, &bus_and_service(&websocket, &service))], &[]);
        let config = machine.load().unwrap();
        let (first, max) = (config.service.reconnect_first, config.service.reconnect_max);
        assert_eq!(
            (first.as_millis(), max.as_millis()),
            expected,
            "{websocket} {service}"
        );
    }
}

#[test]
fn an_embedded_bus_with_tls_is_refused() {
    let tls = json!({"ssl": true});
    let elsewhere = json!({"ssl": true, "host": "bus.local"});
    // Columns: websocket, embedded_bus, --embedded-bus, --bus, the origin named by the error.
    let rows = [
        (&tls, "always", None, None, Some(USER)),
        (&tls, "auto", None, None, Some(USER)),
        (&elsewhere, "always", None, None, Some(USER)),
        (
            &tls,
            "never",
            Some(EmbeddedBus::Auto),
            None,
            Some("--embedded-bus"),
        ),
        (&json!({}), "auto", None, Some("wss://127.0.0.1/core"), Some(USER)),
        (&tls, "never", None, None, None),
        (&tls, "always", Some(EmbeddedBus::Never), None, None),
        (&tls, "always", None, Some("ws://127.0.0.1:8181/core"), None),
        // No embedded bus is opened for a bus on another machine.
        (&elsewhere, "auto", None, None, None),
    ];
    for (websocket, written, embedded_bus, bus, refused) in rows {
        let conf = bus_and_service(websocket, &json!({ "embedded_bus": written }));
        let machine = Machine::new(&[(USER, &conf)], &[]);
        let overrides = Overrides {
            embedded_bus,
            bus: bus.map(str::to_owned),
            ..Overrides::default()
        };
        let error = Config::load(&machine, &overrides, None)
            .err()
            .map(|errors| machine.plain(&errors));
        match (&error, refused) {
            (None, None) => {}
            (Some(error), Some(place)) if error.starts_with(&format!("{place}: embedded_bus: ")) => {
                for part in ["has no TLS", "wss://", "\"never\"", "websocket.ssl to false"] {
                    assert!(error.contains(part), "{error}");
                }
            }
            _ => panic!("{conf} {overrides:?}: {error:?}"),
        }
    }
}

fn bus_and_service(websocket: &serde_json::Value, service: &serde_json::Value) -> String {
    json!({ "websocket": websocket, "PHAL": { "ovos-phal-plugin-tools": { "service": service } } })
        .to_string()
}

#[test]
fn keys_without_an_effect_are_accepted_and_said_once() {
    let machine = Machine::with_section(json!({
        "service": {"isolation": "in_process", "max_generations": 4096},
        "box": {"isolation": "in_process", "confine": {}, "x": 1},
        "other": {"isolation": null},
    }));
    let config = machine.load().unwrap();
    let notices: Vec<String> = config.notices.iter().map(ToString::to_string).collect();
    for key in ["service.isolation", "service.max_generations", "box.isolation"] {
        let about_key = notices
            .iter()
            .filter(|notice| notice.contains(&format!(".{key}: this key has no effect")));
        assert_eq!(about_key.count(), 1, "{key}: {notices:#?}");
    }
    assert_eq!(notices.len(), 3, "{notices:#?}");
    let section = config.toolbox("box").unwrap();
    assert!(section.toolbox.confine.is_some());
    assert_eq!(section.toolbox.own, *json!({"x": 1}).as_object().unwrap());
}
