//! The stack: which files are read, in which order, in which syntax, and which layer may set which key.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use ovos_tools_config::{Config, Environment, LayerState, Notice, Origin, Overrides, StandsIn};
use serde_json::{Value, json};

use crate::machine::{DISTRIBUTION, Machine, RUNTIME, SYSTEM, USER, XDG};

/// A file with one distinctive value, to show which layer takes precedence.
fn named(name: &str) -> String {
    json!({"lang": name, "nested": {name: true, "last": name}}).to_string()
}

#[test]
fn later_layers_win_and_objects_merge() {
    let files = [DISTRIBUTION, SYSTEM, RUNTIME, XDG, USER].map(|path| (path, named(path)));
    let mut written: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let default = named("default");
    written.push(("opt/default.conf", &default));
    // Removing the topmost file makes the next one effective.
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
    // Columns: variables, the file written, whether it is read.
    type Row<'a> = (&'a [(&'a str, &'a str)], &'a str, bool);
    let rows: &[Row<'_>] = &[
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
    // The first folder of XDG_CONFIG_DIRS has the lowest precedence, and the user's has the highest.
    let files = [
        ("a/mycroft/mycroft.conf", r#"{"lang": "a"}"#),
        ("b/mycroft/mycroft.conf", r#"{"lang": "b"}"#),
    ];
    let machine = Machine::new(&files, &[("XDG_CONFIG_DIRS", "{root}/a:{root}/b")]);
    assert_eq!(machine.load().unwrap().stack().get(&["lang"]), Some(&json!("b")));
}

#[test]
fn a_home_directory_that_is_no_text_is_refused() {
    struct NotUnicode;
    impl Environment for NotUnicode {
        fn var(&self, _name: &str) -> Option<String> {
            None
        }
        fn home(&self) -> Option<PathBuf> {
            Some(OsStr::from_bytes(b"/home/\xff").into())
        }
    }
    let error = Config::load(&NotUnicode, &Overrides::default(), None).expect_err("no text");
    assert!(error.to_string().starts_with("$HOME: "), "{error}");
    assert!(error.to_string().contains("expected a UTF-8 path"), "{error}");
}

#[test]
fn files_are_read_in_their_syntax() {
    let big = serde_json::from_str(r#"{"1": "a", "true": "b", "c": 10000000000000000000000000}"#).unwrap();
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
        user("m.yaml", "1: a\ntrue: b\nc: 10000000000000000000000000", big),
        user("m.yaml", "a: 1\na: 2", json!({"a": 2})),
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
            "line 1: expected `,` or `}` (OVOS allows comments only on a line of their own)",
        ),
        ("mycroft.conf", b"", "the file is empty"),
        (
            "mycroft.conf",
            b"[1]",
            "the file contains a list, expected an object",
        ),
        ("mycroft.conf", b"\"text\"", "the file contains \"text\""),
        ("mycroft.conf", b"{\"a\": NaN}", "line 1: expected value"),
        ("mycroft.conf", b"{\"a\": \"\xff\"}", "not UTF-8 at byte 7"),
        ("m.yaml", b"a: [1", "did not find expected"),
        (
            "m.yaml",
            b"a: !python/object:os.system x",
            "a: YAML tags (!...) are not supported at line 1",
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
        [Notice::BrokenLayer {
            stands_in: StandsIn::InForce,
            ..
        }]
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
    // Columns: the restricted author, the protected key, the file that sets it, whether the key is kept out.
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
        // OVOS treats the distribution as a user here.
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
    // Protections are effective only in an administrator's file, and those of the distribution replace those of the
    // system.
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

    // If the administrator's folder is also among the XDG folders, its file is not merged a second time above the
    // assistant's.
    let system = r#"{"system": {"disable_user_config": true}, "lang": "system"}"#;
    let files = [(SYSTEM, system), (RUNTIME, r#"{"lang": "assistant"}"#)];
    let machine = Machine::new(&files, &[("XDG_CONFIG_DIRS", "{root}/etc")]);
    assert_eq!(
        machine.load().unwrap().stack().get(&["lang"]),
        Some(&json!("assistant"))
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
        // Inherited from the service section.
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
        let error = machine.plain(Config::load(&machine, &given(name), None).expect_err(expected));
        assert_eq!(error, format!("--config {name}: {expected}"));
    }
}
