//! The configuration keeps its promises: the layers in OVOS's order, every value with its origin, every mistake with
//! file, key and what is accepted, and a mistake in one toolbox's section nobody else's problem.
//!
//! All machines here are made up ([`Machine`]): the process environment is neither read nor written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ovos_tools::config::{
    Config, ConfigErrors, EmbeddedBus, Environment, Isolation, LayerState, LogLevel, Notice, OnBusLoss,
    Origin, Overrides, Patch,
};
use serde_json::{Map, Value, json};

const DISTRIBUTION: &str = "usr/share/mycroft/mycroft.conf";
const SYSTEM: &str = "etc/mycroft/mycroft.conf";
const RUNTIME: &str = "home/.config/mycroft/runtime.conf";
const XDG: &str = "etc/xdg/mycroft/mycroft.conf";
const USER: &str = "home/.config/mycroft/mycroft.conf";

/// A machine in a temporary folder: files below it, and variables whose values may say `{root}`.
struct Machine {
    dir: tempfile::TempDir,
    vars: BTreeMap<String, String>,
}

impl Environment for Machine {
    fn var(&self, name: &str) -> Option<String> {
        self.vars.get(name).cloned()
    }

    fn home(&self) -> Option<PathBuf> {
        Some(self.path("home"))
    }

    fn root(&self) -> &Path {
        self.dir.path()
    }
}

impl Machine {
    fn new(files: &[(&str, &str)], vars: &[(&str, &str)]) -> Self {
        let mut machine = Self {
            dir: tempfile::tempdir().unwrap(),
            vars: BTreeMap::new(),
        };
        for (name, value) in vars {
            let value = value.replace("{root}", machine.root().to_str().unwrap());
            machine.vars.insert((*name).to_owned(), value);
        }
        for (path, text) in files {
            machine.write(path, text);
        }
        machine
    }

    /// A machine whose user's file holds `service` as our service section.
    fn with_service(service: Value) -> Self {
        Self::with_section(json!({"service": service}))
    }

    fn with_section(section: Value) -> Self {
        Self::new(
            &[(
                USER,
                &json!({"PHAL": {"ovos-phal-plugin-tools": section}}).to_string(),
            )],
            &[],
        )
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn load(&self) -> Result<Arc<Config>, ConfigErrors> {
        Config::load(self, &Overrides::default(), None)
    }

    /// A text with the machine's folder taken out.
    fn plain(&self, text: impl ToString) -> String {
        text.to_string()
            .replace(&format!("{}/", self.root().display()), "")
    }

    fn origin(&self, config: &Config, key: &str) -> String {
        let setting = config
            .settings()
            .find(|setting| setting.key == key)
            .unwrap_or_else(|| panic!("no setting {key}"));
        self.plain(&setting.origin)
    }
}

/// One word at one key, to see which layer wins.
fn named(name: &str) -> String {
    json!({"lang": name, "nested": {name: true, "last": name}}).to_string()
}

#[test]
fn later_layers_win_and_objects_merge() {
    let files = [DISTRIBUTION, SYSTEM, RUNTIME, XDG, USER].map(|path| (path, named(path)));
    let mut written: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let default = named("default");
    written.push(("opt/default.conf", &default));
    // Taking the topmost file away lets the one below it show.
    for expected in [USER, XDG, RUNTIME, SYSTEM, DISTRIBUTION, "default"] {
        let machine = Machine::new(&written, &[("OVOS_DEFAULT_CONFIG", "{root}/opt/default.conf")]);
        let config = machine.load().unwrap();
        assert_eq!(config.stack().get(&["lang"]), Some(&json!(expected)));
        assert_eq!(config.stack().get(&["nested", "last"]), Some(&json!(expected)));
        let file = if expected == "default" {
            "opt/default.conf"
        } else {
            expected
        };
        assert_eq!(config.stack().origin(&["lang"]), Origin::File(machine.path(file)));
        assert_eq!(
            config
                .stack()
                .get(&["nested"])
                .unwrap()
                .as_object()
                .unwrap()
                .len(),
            written.len() + 1
        );
        written.retain(|(path, _)| *path != expected);
    }
}

#[test]
fn variables_move_the_layers() {
    // Variables, the file written, and whether it is read.
    let rows: &[(&[(&str, &str)], &str, bool)] = &[
        (&[], USER, true),
        (&[], "home/.mycroft/mycroft.conf", false),
        (&[], "usr/share/ovos/mycroft.conf", false),
        (
            &[("XDG_CONFIG_HOME", "{root}/cfg")],
            "cfg/mycroft/mycroft.conf",
            true,
        ),
        (
            &[("XDG_CONFIG_HOME", "{root}/cfg")],
            "cfg/mycroft/runtime.conf",
            true,
        ),
        (&[("XDG_CONFIG_HOME", "{root}/cfg")], USER, false),
        (&[("XDG_CONFIG_HOME", "relative")], USER, true),
        (&[("XDG_CONFIG_HOME", "")], USER, true),
        (
            &[("XDG_CONFIG_DIRS", "{root}/a:relative:{root}/b")],
            "a/mycroft/mycroft.conf",
            true,
        ),
        (
            &[("XDG_CONFIG_DIRS", "{root}/a:relative:{root}/b")],
            "b/mycroft/mycroft.conf",
            true,
        ),
        (&[("XDG_CONFIG_DIRS", "{root}/a")], XDG, false),
        (&[("XDG_CONFIG_DIRS", "relative")], XDG, true),
        (
            &[("OVOS_CONFIG_BASE_FOLDER", "neon")],
            "home/.config/neon/mycroft.conf",
            true,
        ),
        (
            &[("OVOS_CONFIG_BASE_FOLDER", "neon")],
            "etc/neon/mycroft.conf",
            true,
        ),
        (
            &[("OVOS_CONFIG_BASE_FOLDER", "neon")],
            "home/.config/neon/runtime.conf",
            true,
        ),
        (&[("OVOS_CONFIG_BASE_FOLDER", "")], USER, true),
        (
            &[("OVOS_CONFIG_FILENAME", "neon.json")],
            "usr/share/mycroft/neon.json",
            true,
        ),
        (&[("OVOS_CONFIG_FILENAME", "neon.json")], RUNTIME, true),
        (&[("OVOS_CONFIG_FILENAME", "neon.json")], USER, false),
        (&[("OVOS_DISTRIBUTION_CONFIG", "{root}/d.conf")], "d.conf", true),
        (
            &[("OVOS_DISTRIBUTION_CONFIG", "{root}/d.conf")],
            DISTRIBUTION,
            false,
        ),
        (&[("OVOS_DISTRIBUTION_CONFIG", "")], DISTRIBUTION, false),
        (&[("MYCROFT_SYSTEM_CONFIG", "{root}/s.conf")], "s.conf", true),
        (&[("MYCROFT_SYSTEM_CONFIG", "{root}/s.conf")], SYSTEM, false),
        (&[("OVOS_DEFAULT_CONFIG", "{root}/o.conf")], "o.conf", true),
        (&[("OVOS_DEFAULT_CONFIG", "")], SYSTEM, true),
    ];
    for (vars, file, read) in rows {
        let machine = Machine::new(&[(file, r#"{"lang": "here"}"#)], vars);
        let config = machine.load().unwrap();
        assert_eq!(config.stack().get(&["lang"]).is_some(), *read, "{vars:?} {file}");
    }
    // The first folder of XDG_CONFIG_DIRS has the least to say, and the user has the most.
    let files = [
        ("a/mycroft/mycroft.conf", r#"{"lang": "a"}"#),
        ("b/mycroft/mycroft.conf", r#"{"lang": "b"}"#),
    ];
    let machine = Machine::new(&files, &[("XDG_CONFIG_DIRS", "{root}/a:{root}/b")]);
    assert_eq!(machine.load().unwrap().stack().get(&["lang"]), Some(&json!("b")));
}

#[test]
fn files_are_read_in_their_syntax() {
    let user = |name: &'static str, text: &'static str, expected: Value| (name, text, expected);
    let rows = [
        user(
            "mycroft.conf",
            "{\n  // note\n  # note\n\t// note\n  \"a\": 1\n}",
            json!({"a": 1}),
        ),
        user(
            "mycroft.conf",
            "{\"url\": \"http://x\", \"hash\": \"#1\"}",
            json!({"url": "http://x", "hash": "#1"}),
        ),
        user("mycroft.conf", "{\"a\": \"one\ntwo\"}", json!({"a": "one two"})),
        user("mycroft.conf", "{\"a\": 1}\r\n// end\r\n", json!({"a": 1})),
        user(
            "mycroft.conf",
            "{\"a\": 123456789012345678901234567890}",
            serde_json::from_str("{\"a\": 123456789012345678901234567890}").unwrap(),
        ),
        user("mycroft.conf", "[]", json!({})),
        user("mycroft.conf", "null", json!({})),
        user(
            "m.yml",
            "a: {b: 1}\nc: [x, 1.5]",
            json!({"a": {"b": 1}, "c": ["x", 1.5]}),
        ),
        user(
            "m.yaml",
            "a: &base {b: 1}\nd:\n  <<: *base\n  e: true",
            json!({"a": {"b": 1}, "d": {"b": 1, "e": true}}),
        ),
        user("m.yaml", "", json!({})),
        user("m.yaml", "# only a comment\n", json!({})),
    ];
    for (name, text, expected) in rows {
        let path = format!("home/.config/mycroft/{name}");
        let machine = Machine::new(&[(&path, text)], &[("OVOS_CONFIG_FILENAME", name)]);
        let config = machine.load().unwrap();
        assert_eq!(Value::Object(config.stack().merged().clone()), expected, "{text}");
        assert_eq!(config.notices, [], "{text}");
    }
}

#[test]
fn a_broken_layer_is_told_and_skipped() {
    let rows: &[(&str, &[u8], &str)] = &[
        (
            "mycroft.conf",
            b"{\n// note\n\"a\": 1,\n}",
            "line 4: trailing comma",
        ),
        (
            "mycroft.conf",
            b"{\"a\": 1 // no comment\n}",
            "line 1: expected `,` or `}`",
        ),
        ("mycroft.conf", b"", "the file is empty"),
        (
            "mycroft.conf",
            b"[1]",
            "the file holds a list, expected an object",
        ),
        ("mycroft.conf", b"\"text\"", "the file holds \"text\""),
        ("mycroft.conf", b"{\"a\": NaN}", "line 1: expected value"),
        ("mycroft.conf", b"{\"a\": \"\xff\"}", "not UTF-8 at byte 7"),
        ("m.yaml", b"a: [1", "did not find expected"),
        (
            "m.yaml",
            b"a: !python/object:os.system x",
            "the tag !python/object:os.system is not accepted",
        ),
    ];
    for (name, text, expected) in rows {
        let machine = Machine::new(
            &[(SYSTEM, "{}"), (RUNTIME, r#"{"lang": "kept"}"#)],
            &[("OVOS_CONFIG_FILENAME", name)],
        );
        fs::write(machine.path("home/.config/mycroft").join(name), text).unwrap();
        let config = machine.load().unwrap();
        assert_eq!(config.stack().get(&["lang"]), Some(&json!("kept")), "{expected}");
        assert_eq!(config.stack().layers().last().unwrap().state, LayerState::Broken);
        let [notice] = config.notices.as_slice() else {
            panic!("{expected}: {:?}", config.notices)
        };
        let notice = machine.plain(notice);
        assert!(
            notice.starts_with(&format!("home/.config/mycroft/{name}: ")),
            "{notice}"
        );
        assert!(
            notice.contains(expected) && notice.ends_with("this file is skipped"),
            "{notice} / {expected}"
        );
    }
}

#[test]
fn a_file_that_breaks_later_keeps_its_last_good_content() {
    let machine = Machine::with_service(json!({"max_calls": 7}));
    let before = machine.load().unwrap();
    machine.write(USER, "{ half a file");
    let after = Config::load(&machine, &Overrides::default(), Some(&before)).unwrap();
    assert_eq!(after.service.max_calls, 7);
    assert!(matches!(
        after.notices.as_slice(),
        [Notice::BrokenLayer { kept: true, .. }]
    ));
    assert!(before.changes(&after).is_empty());
}

#[test]
fn the_administrator_can_protect_keys() {
    let all = json!({"a": 1, "b": {"c": 2, "d": {"e": 3, "f": 4}}});
    let without = |keys: &str| match keys {
        "a" => json!({"b": {"c": 2, "d": {"e": 3, "f": 4}}}),
        "b:d:e" => json!({"a": 1, "b": {"c": 2, "d": {"f": 4}}}),
        "b" => json!({"a": 1}),
        _ => all.clone(),
    };
    let protect = |who: &str, keys: &str| json!({"system": {"protected_keys": {who: [keys]}}});
    // Who is protected against, which key, the file that tries, and whether the key is kept out.
    let rows = [
        ("user", "a", USER, true),
        ("user", "b:d:e", USER, true),
        ("user", "b", USER, true),
        ("user", "a", XDG, true),
        ("user", "a", RUNTIME, false),
        ("user", "a:x:y", USER, false),
        ("user", "nothing", USER, false),
        ("assistant", "a", RUNTIME, true),
        ("assistant", "a", USER, false),
        // OVOS counts the distribution among the users here.
        ("user", "a", DISTRIBUTION, true),
    ];
    for (who, key, file, kept_out) in rows {
        let protections = protect(who, key).to_string();
        let machine = Machine::new(&[(SYSTEM, &protections), (file, &all.to_string())], &[]);
        let config = machine.load().unwrap();
        let mut merged = config.stack().merged().clone();
        merged.remove("system");
        assert_eq!(
            Value::Object(merged),
            if kept_out { without(key) } else { all.clone() },
            "{who} {key} {file}"
        );
        if kept_out && key == "a" {
            assert_eq!(
                config.stack().origin(&["a"]),
                Origin::Default,
                "a value that is kept out came from nowhere"
            );
        }
    }
    // Protections count only where an administrator writes, and the distribution's replace the system's.
    let ask = protect("user", "a");
    for (files, protected) in [
        (vec![(USER, ask.clone())], false),
        (vec![(RUNTIME, ask.clone())], false),
        (vec![(DISTRIBUTION, ask.clone())], true),
        (
            vec![(DISTRIBUTION, json!({"system": {"x": 1}})), (SYSTEM, ask.clone())],
            false,
        ),
        (
            vec![(DISTRIBUTION, json!({"system": {}})), (SYSTEM, ask.clone())],
            true,
        ),
    ] {
        let machine = Machine::new(&[("etc/xdg/mycroft/mycroft.conf", r#"{"a": 1}"#)], &[]);
        for (path, value) in &files {
            machine.write(path, &value.to_string());
        }
        assert_eq!(
            machine.load().unwrap().stack().get(&["a"]).is_none(),
            protected,
            "{files:?}"
        );
    }
}

#[test]
fn the_administrator_can_switch_user_files_off() {
    let off = r#"{"system": {"disable_user_config": true}}"#;
    for (file, read) in [(USER, false), (XDG, false), (RUNTIME, true), ("given.conf", true)] {
        let machine = Machine::new(&[(SYSTEM, off), (file, r#"{"lang": "x"}"#)], &[]);
        let config = (file == "given.conf").then(|| machine.path(file));
        let config = Config::load(
            &machine,
            &Overrides {
                config,
                ..Overrides::default()
            },
            None,
        )
        .unwrap();
        assert_eq!(config.stack().get(&["lang"]).is_some(), read, "{file}");
        let layer = config
            .stack()
            .layers()
            .iter()
            .find(|layer| layer.path == machine.path(file))
            .unwrap();
        assert_eq!(
            layer.state,
            if read {
                LayerState::Read
            } else {
                LayerState::Disabled
            },
            "{file}"
        );
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
    assert_eq!(service.isolation, Isolation::InProcess);
    assert_eq!(service.embedded_bus, EmbeddedBus::Never);
    assert_eq!(service.on_bus_loss, OnBusLoss::Halt);
    assert_eq!(
        (
            service.max_calls,
            service.limits.max_waiting,
            service.max_generations
        ),
        (4096, 64, 64)
    );
    assert_eq!(
        (service.drain, service.limits.grace),
        (Duration::from_secs(10), Duration::from_millis(500))
    );
    assert!(!service.operator_tools && !service.answer_as_phal);
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
fn every_value_remembers_its_file() {
    let ours = |service: Value| {
        json!({"PHAL": {"ovos-phal-plugin-tools": {"service": service, "math": {"digits": 3, "limits": {"grace_ms": 9}}}}}).to_string()
    };
    let machine = Machine::new(
        &[
            (
                SYSTEM,
                &ours(json!({"max_calls": 5, "drain_ms": 6, "settle_ms": 8})),
            ),
            (
                USER,
                r#"{"websocket": {"port": 9}, "PHAL": {"ovos-phal-plugin-tools": {"service": {"drain_ms": 7}}}}"#,
            ),
        ],
        &[("OVOS_DEFAULT_LOG_LEVEL", "debug")],
    );
    let overrides = Overrides {
        plugins: vec!["/p".into()],
        ..Overrides::default()
    };
    let config = Config::load(&machine, &overrides, None).unwrap();
    let service = "PHAL.\"ovos-phal-plugin-tools\".service";
    let math = "PHAL.\"ovos-phal-plugin-tools\".math";
    for (key, value, origin) in [
        ("bus".to_owned(), json!("ws://127.0.0.1:9/core"), USER),
        ("websocket.port".to_owned(), json!(9), USER),
        ("websocket.host".to_owned(), json!("127.0.0.1"), "default"),
        (format!("{service}.max_calls"), json!(5), SYSTEM),
        (format!("{service}.drain_ms"), json!(7), USER),
        (format!("{service}.plan_ms"), json!(1000), "default"),
        (format!("{service}.plugins_dir"), json!(["/p"]), "--plugins"),
        (
            "logging.log_level".to_owned(),
            json!("DEBUG"),
            "$OVOS_DEFAULT_LOG_LEVEL",
        ),
        (format!("{math}.digits"), json!(3), SYSTEM),
        (format!("{math}.enabled"), json!(true), "default"),
        (format!("{math}.limits.grace_ms"), json!(9), SYSTEM),
        // Taken over from the service section.
        (format!("{math}.limits.settle_ms"), json!(8), SYSTEM),
        (format!("{math}.limits.max_wait_ms"), json!(30000), "default"),
    ] {
        let found = config
            .settings()
            .find(|setting| setting.key == key)
            .unwrap_or_else(|| panic!("{key}"));
        assert_eq!(found.value, value, "{key}");
        assert_eq!(machine.origin(&config, &key), origin, "{key}");
    }
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
            json!({"max_calls": 0}),
            ".max_calls: found 0, expected a whole number from 1 to 65536",
        ),
        (
            json!({"operator_tools": "yes"}),
            ".operator_tools: found \"yes\", expected true or false",
        ),
        (
            json!({"isolation": "thread"}),
            ".isolation: found \"thread\", expected one of \"process\", \"in_process\"",
        ),
        (
            json!({"on_bus_loss": "stop"}),
            ".on_bus_loss: found \"stop\", expected one of \"halt\", \"continue\"",
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
            json!({"reconnect_first_ms": 9000, "reconnect_max_ms": 8000}),
            ".reconnect_max_ms: found 8000, expected at least reconnect_first_ms (9000)",
        ),
        (
            json!({"grace_sm": 1}),
            ".grace_sm: unknown key (did you mean \"grace_ms\"?); accepted: answer_as_phal, default_timeout_ms, drain_ms",
        ),
        (
            json!({"operator-tools": true}),
            ".\"operator-tools\": unknown key (did you mean \"operator_tools\"?)",
        ),
        (json!({"zzz": 1}), ".zzz: unknown key; accepted: answer_as_phal"),
        (json!({"limits": {}}), ".limits: unknown key"),
        (json!([]), ": found a list, expected an object"),
    ];
    for (service, expected) in rows {
        let machine = Machine::with_service(service.clone());
        let errors = machine.load().expect_err(expected);
        let told = machine.plain(&errors);
        assert!(told.starts_with(&format!("{at}{expected}")), "{service}: {told}");
        assert_eq!(errors.iter().count(), 1, "{told}");
    }
    // All of them at once.
    let machine = Machine::with_service(json!({"a": 1, "b": 2, "max_calls": "x", "drain_ms": null}));
    assert_eq!(machine.load().expect_err("three mistakes").iter().count(), 3);
    // A section that is no object is blamed where it is.
    let machine = Machine::new(&[(USER, r#"{"PHAL": 5}"#)], &[]);
    let told = machine.plain(machine.load().expect_err("no object"));
    assert_eq!(
        told,
        "home/.config/mycroft/mycroft.conf: PHAL: found 5, expected an object"
    );
}

#[test]
fn service_keys_take_effect() {
    let machine = Machine::with_service(json!({
        "plugins_dir": "~/mine", "state_dir": "/s", "stage_dir": "/t", "isolation": "process", "embedded_bus": "auto",
        "on_bus_loss": "continue", "max_failures": 0, "settle_ms": 0, "operator_tools": true, "max_wait_ms": null,
    }));
    let service = machine.load().unwrap().service.clone();
    assert_eq!(service.plugins_dir, [machine.path("home/mine")]);
    assert_eq!(
        (service.state_dir, service.stage_dirs),
        ("/s".into(), vec!["/t".into()])
    );
    assert_eq!(
        (service.isolation, service.embedded_bus),
        (Isolation::Process, EmbeddedBus::Auto)
    );
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
                let told = machine.plain(&errors).replace(&format!("{USER}: "), "");
                assert!(told.starts_with(text), "{websocket}: {told}");
            }
            (found, expected) => panic!("{websocket}: {found:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn the_given_file_replaces_the_users_and_has_to_work() {
    let lang = |name: &str| json!({"lang": name, name: true}).to_string();
    let machine = Machine::new(
        &[
            (SYSTEM, &lang("system")),
            (USER, &lang("user")),
            ("my.conf", &lang("mine")),
        ],
        &[],
    );
    let given = |name: &str| Overrides {
        config: Some(machine.path(name)),
        ..Overrides::default()
    };
    let config = Config::load(&machine, &given("my.conf"), None).unwrap();
    assert_eq!(
        Value::Object(config.stack().merged().clone()),
        json!({"lang": "mine", "system": true, "mine": true})
    );
    for (name, text, expected) in [
        ("none.conf", None, "there is no such file"),
        ("bad.conf", Some("{"), "line 1: EOF while parsing an object"),
    ] {
        if let Some(text) = text {
            machine.write(name, text);
        }
        let told = machine.plain(Config::load(&machine, &given(name), None).expect_err(expected));
        assert_eq!(told, format!("--config {name}: {expected}"));
    }
}

#[test]
fn a_wrong_toolbox_section_is_that_toolboxes_problem() {
    let at = "home/.config/mycroft/mycroft.conf: PHAL.\"ovos-phal-plugin-tools\"";
    let rows = [
        (
            "box",
            json!({"enabled": "no"}),
            ".box.enabled: found \"no\", expected true or false",
        ),
        (
            "box",
            json!({"isolation": "jail"}),
            ".box.isolation: found \"jail\", expected one of",
        ),
        (
            "box",
            json!({"limits": {"grace": 1}}),
            ".box.limits.grace: unknown key (did you mean \"grace_ms\"?); accepted: default_timeout_ms",
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
            json!({"confine": {"paths": []}}),
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
            ".box.env: found an object, expected an object of variable names and texts",
        ),
        ("box", json!({"env": {"A=B": "1"}}), ".box.env: found an object"),
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
        let told = machine.plain(errors);
        assert!(told.starts_with(&format!("{at}{expected}")), "{told}");
        assert_eq!(errors.iter().count(), 1, "{told}");
    }
    let machine = Machine::with_section(json!({"enabled": "the plugin's own", "box": null}));
    assert!(machine.load().unwrap().toolboxes.is_empty());
    assert!(machine.load().unwrap().toolbox("service").is_err());
}

#[test]
fn a_toolbox_section_splits_into_the_hosts_keys_and_its_own() {
    let machine = Machine::with_section(json!({
        "service": {"isolation": "process", "grace_ms": 77, "settle_ms": 88},
        "arm-7_x": {
            "enabled": false, "isolation": "in_process", "limits": {"grace_ms": 5, "memory_mb": 64},
            "confine": {"paths_rw": ["~/data"]}, "tools": {"allow": ["pick_*", "home"], "deny": ["*_fast"]},
            "allow_sha256": ["A".repeat(64)], "env": {"ROS_DOMAIN_ID": "4"},
            "backend": "sim", "service": {"kept": [1, null]}, "port": 123456789012345678u64,
        },
    }));
    let config = machine.load().unwrap();
    let toolbox = config.toolbox("arm-7_x").unwrap();
    assert!(!toolbox.enabled);
    assert_eq!(toolbox.isolation, Isolation::InProcess);
    assert_eq!(
        (toolbox.limits.grace, toolbox.limits.settle),
        (Duration::from_millis(5), Duration::from_millis(88))
    );
    assert_eq!(toolbox.memory_mb, Some(64));
    let confine = toolbox.confine.as_ref().unwrap();
    assert_eq!(
        (confine.paths_rw.as_slice(), confine.network),
        ([machine.path("home/data")].as_slice(), false)
    );
    assert_eq!(toolbox.allow_sha256, ["a".repeat(64)]);
    assert_eq!(toolbox.env["ROS_DOMAIN_ID"], "4");
    let own = json!({"backend": "sim", "service": {"kept": [1, null]}, "port": 123456789012345678u64});
    assert_eq!(Value::Object(toolbox.own.clone()), own);
    for (tool, permitted) in [
        ("pick_up", true),
        ("pick_fast", false),
        ("home", true),
        ("homes", false),
        ("wave", false),
    ] {
        assert_eq!(toolbox.tools.permits(tool), permitted, "{tool}");
    }
    // A toolbox nobody wrote about has what the service says.
    let other = config.toolbox("other").unwrap();
    assert_eq!(
        (other.enabled, other.isolation, other.limits.grace),
        (true, Isolation::Process, Duration::from_millis(77))
    );
    assert!(other.own.is_empty() && other.confine.is_none() && other.tools.permits("anything"));
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
        let filter = ovos_tools::config::ToolFilter {
            allow: Some(vec![pattern.to_owned()]),
            deny: Vec::new(),
        };
        assert_eq!(filter.permits(name), expected, "{pattern:?} {name:?}");
    }
}

#[test]
fn logging_is_read_as_ovos_writes_it() {
    // The file, the variable, and the expected level, folder, size and count.
    let home = "home/.local/state/mycroft";
    let rows = [
        (
            json!({"log_level": "DEBUG"}),
            "",
            LogLevel::Debug,
            Some(home),
            50_000_000,
            3,
        ),
        (
            json!({"logging": {"log_level": "warning"}, "log_level": "DEBUG"}),
            "",
            LogLevel::Warning,
            Some(home),
            50_000_000,
            3,
        ),
        (
            json!({"logging": {"log_level": "INFO", "ovos_tools": {"log_level": "CRITICAL"}}}),
            "",
            LogLevel::Error,
            Some(home),
            50_000_000,
            3,
        ),
        (
            json!({"logging": {"log_level": 10}}),
            "ERROR",
            LogLevel::Debug,
            Some(home),
            50_000_000,
            3,
        ),
        (json!({}), "error", LogLevel::Error, Some(home), 50_000_000, 3),
        (
            json!({"logging": {"logs": {"path": "~/logs", "max_bytes": 10, "backup_count": 6}}}),
            "",
            LogLevel::Info,
            Some("home/logs"),
            10,
            6,
        ),
        (
            json!({"logs": {"path": "~/old"}}),
            "",
            LogLevel::Info,
            Some("home/old"),
            50_000_000,
            3,
        ),
        (
            json!({"logging": {"logs": {"path": "~/all", "max_bytes": 10}, "ovos_tools": {"logs": {"path": "~/us"}}}}),
            "",
            LogLevel::Info,
            Some("home/us"),
            50_000_000,
            3,
        ),
        (
            json!({"logging": {"logs": {"path": "stdout"}}}),
            "",
            LogLevel::Info,
            None,
            50_000_000,
            3,
        ),
        (
            json!({"logging": {"bus": {"log_level": "DEBUG"}}}),
            "",
            LogLevel::Info,
            Some(home),
            50_000_000,
            3,
        ),
    ];
    for (file, variable, level, dir, max_bytes, backup_count) in rows {
        let machine = Machine::new(
            &[(USER, &file.to_string())],
            &[("OVOS_DEFAULT_LOG_LEVEL", variable)],
        );
        let config = machine.load().unwrap();
        let logging = &config.logging;
        assert_eq!(
            (logging.level, logging.dir.clone()),
            (level, dir.map(|dir| machine.path(dir))),
            "{file}"
        );
        assert_eq!(
            (logging.max_bytes, logging.backup_count),
            (max_bytes, backup_count),
            "{file}"
        );
        assert_eq!(config.notices, [], "{file}");
    }
    // What is wrong is told, and does not stop anything.
    for (file, variable, expected) in [
        (
            json!({"logging": {"log_level": "LOUD"}}),
            "",
            "home/.config/mycroft/mycroft.conf: logging.log_level: found \"LOUD\", expected one of",
        ),
        (
            json!({"logging": {"logs": {"path": "logs"}}}),
            "",
            "home/.config/mycroft/mycroft.conf: logging.logs.path: found \"logs\", expected an absolute",
        ),
        (
            json!({"logging": {"logs": {"max_bytes": -1}}}),
            "",
            "home/.config/mycroft/mycroft.conf: logging.logs.max_bytes: found -1",
        ),
        (
            json!({}),
            "LOUD",
            "$OVOS_DEFAULT_LOG_LEVEL: level: found \"LOUD\"",
        ),
    ] {
        let machine = Machine::new(
            &[(USER, &file.to_string())],
            &[("OVOS_DEFAULT_LOG_LEVEL", variable)],
        );
        let config = machine.load().unwrap();
        let [notice] = config.notices.as_slice() else {
            panic!("{expected}: {:?}", config.notices)
        };
        assert!(machine.plain(notice).starts_with(expected), "{notice}");
        assert_eq!(
            (config.logging.level, config.logging.max_bytes),
            (LogLevel::Info, 50_000_000)
        );
    }
}

#[test]
fn changes_name_what_differs() {
    let section = |drain: u64, digits: u64| json!({"PHAL": {"ovos-phal-plugin-tools": {"service": {"drain_ms": drain}, "math": {"digits": digits}, "same": {}}}});
    let machine = Machine::new(&[(USER, &section(1, 1).to_string())], &[]);
    let before = machine.load().unwrap();
    let drain = "PHAL.\"ovos-phal-plugin-tools\".service.drain_ms";
    for (file, keys, toolboxes) in [
        (section(1, 1), vec![], vec![]),
        (section(2, 1), vec![drain], vec![]),
        (section(1, 2), vec![], vec!["math"]),
        (json!({}), vec![drain], vec!["math"]),
        (
            json!({"PHAL": {"ovos-phal-plugin-tools": {"service": {"drain_ms": 1}, "math": 5}}}),
            vec![],
            vec!["math"],
        ),
    ] {
        machine.write(USER, &file.to_string());
        let changes = before.changes(&machine.load().unwrap());
        assert_eq!(
            (changes.keys, changes.toolboxes),
            (vec_of(&keys), vec_of(&toolboxes)),
            "{file}"
        );
    }
    // The same words in another file change nothing.
    machine.write(USER, "{}");
    machine.write(SYSTEM, &section(1, 1).to_string());
    assert!(before.changes(&machine.load().unwrap()).is_empty());
}

fn vec_of(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn a_patch_from_the_bus_changes_the_log_level_and_nothing_else() {
    let patch = |config: Value| json!({"config": config}).as_object().unwrap().clone();
    let ours = json!({"PHAL": {"ovos-phal-plugin-tools": {"service": {"operator_tools": true}}}});
    // The message, the level after it, whether it touches us, whether it speaks of logging, and what is ignored.
    let rows: [(Map<String, Value>, LogLevel, bool, bool, &[&str]); 9] = [
        (
            patch(json!({"logging": {"log_level": "DEBUG"}})),
            LogLevel::Debug,
            false,
            true,
            &[],
        ),
        (
            patch(json!({"log_level": "ERROR"})),
            LogLevel::Warning,
            false,
            true,
            &[],
        ),
        (
            patch(json!({"logging": {"ovos_tools": {"log_level": "ERROR"}}})),
            LogLevel::Error,
            false,
            true,
            &[],
        ),
        (
            patch(json!({"logging": {"log_level": "LOUD"}})),
            LogLevel::Warning,
            false,
            true,
            &[],
        ),
        (
            patch(json!({"logging": "DEBUG"})),
            LogLevel::Warning,
            false,
            true,
            &[],
        ),
        (patch(ours), LogLevel::Warning, true, false, &["PHAL"]),
        (
            patch(json!({"PHAL": null})),
            LogLevel::Warning,
            true,
            false,
            &["PHAL"],
        ),
        (
            patch(json!({"PHAL": {"other": {}}, "lang": "x"})),
            LogLevel::Warning,
            false,
            false,
            &["PHAL", "lang"],
        ),
        (
            json!({"config": 5}).as_object().unwrap().clone(),
            LogLevel::Warning,
            false,
            false,
            &[],
        ),
    ];
    let machine = Machine::new(&[(USER, r#"{"logging": {"log_level": "WARNING"}}"#)], &[]);
    let config = machine.load().unwrap();
    for (message, level, touches_us, touches_logging, ignored) in rows {
        let mut patches = Patch::default();
        let report = patches.accept(&message);
        assert_eq!(patches.level(&config), level, "{message:?}");
        assert_eq!(
            (report.touches_us, report.touches_logging),
            (touches_us, touches_logging),
            "{message:?}"
        );
        assert_eq!(report.ignored, ignored, "{message:?}");
        patches.clear();
        assert_eq!(patches.level(&config), LogLevel::Warning);
    }
    // An administrator can forbid even that.
    for forbid in [
        json!({"disable_user_config": true}),
        json!({"protected_keys": {"user": ["logging:log_level"]}}),
    ] {
        let file = json!({"system": forbid, "logging": {"log_level": "ERROR"}}).to_string();
        let config = Machine::new(&[(SYSTEM, &file)], &[]).load().unwrap();
        let mut patches = Patch::default();
        patches.accept(&patch(json!({"logging": {"log_level": "DEBUG"}})));
        assert_eq!(patches.level(&config), LogLevel::Error, "{file}");
    }
}
