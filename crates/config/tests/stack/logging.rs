//! The log settings, and what the bus may change.

use ovos_tools_config::{LogLevel, Patch};
use serde_json::{Map, Value, json};

use crate::machine::{Machine, SYSTEM, USER};

#[test]
fn logging_is_read_as_ovos_writes_it() {
    // Columns: the file, the variable, the expected level, folder, size and count.
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
    // A wrong value is reported and does not stop the service.
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
            "home/.config/mycroft/mycroft.conf: logging.logs.max_bytes: found -1, expected a whole number, 0 or more",
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
fn a_patch_from_the_bus_changes_the_log_level_and_nothing_else() {
    let patch = |config: Value| json!({"config": config}).as_object().unwrap().clone();
    let ours = json!({"PHAL": {"ovos-phal-plugin-tools": {"service": {"operator_tools": true}}}});
    // Columns: the message, the level after it, whether it has this service's section, whether it has logging keys.
    type Row = (Map<String, Value>, LogLevel, bool, bool);
    let rows: [Row; 9] = [
        (
            patch(json!({"logging": {"log_level": "DEBUG"}})),
            LogLevel::Debug,
            false,
            true,
        ),
        (
            patch(json!({"log_level": "ERROR"})),
            LogLevel::Warning,
            false,
            true,
        ),
        (
            patch(json!({"logging": {"ovos_tools": {"log_level": "ERROR"}}})),
            LogLevel::Error,
            false,
            true,
        ),
        (
            patch(json!({"logging": {"log_level": "LOUD"}})),
            LogLevel::Warning,
            false,
            true,
        ),
        (patch(json!({"logging": "DEBUG"})), LogLevel::Warning, false, true),
        (patch(ours), LogLevel::Warning, true, false),
        (patch(json!({"PHAL": null})), LogLevel::Warning, true, false),
        (
            patch(json!({"PHAL": {"other": {}}, "lang": "x"})),
            LogLevel::Warning,
            false,
            false,
        ),
        (
            json!({"config": 5}).as_object().unwrap().clone(),
            LogLevel::Warning,
            false,
            false,
        ),
    ];
    let machine = Machine::new(&[(USER, r#"{"logging": {"log_level": "WARNING"}}"#)], &[]);
    let config = machine.load().unwrap();
    for (message, level, touches_us, touches_logging) in rows {
        let mut patches = Patch::default();
        let report = patches.accept(&message);
        assert_eq!(patches.level(&config), level, "{message:?}");
        assert_eq!(
            (report.touches_us, report.touches_logging),
            (touches_us, touches_logging),
            "{message:?}"
        );
    }
    // An administrator can forbid even a change of the level.
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
