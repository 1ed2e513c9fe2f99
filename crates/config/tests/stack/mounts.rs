//! The mounted servers.

use ovos_tools_config::{Config, MountConfig, MountOutput, MountTransport};
use serde_json::{Value, json};

use crate::machine::{Machine, USER};

const PAGE: &str = include_str!("../../../../docs/mounts.md");

fn load(mounts: Value) -> std::sync::Arc<Config> {
    Machine::with_service(json!({"mounts": mounts})).load().unwrap()
}

fn one(mount: Value) -> Result<MountConfig, String> {
    let config = load(json!({"m": mount}));
    let mount = config.mounts["m"].as_ref();
    mount
        .map(|mount| MountConfig::clone(mount))
        .map_err(ToString::to_string)
}

#[test]
fn every_example_of_the_page_is_accepted() {
    let examples: Vec<&str> = PAGE.split("```json\n").skip(1).collect();
    let examples = examples.iter().map(|rest| rest.split("```").next().unwrap());
    let mut ids = Vec::new();
    for example in examples {
        let config = Machine::new(&[(USER, example)], &[]).load().unwrap();
        assert!(!config.mounts.is_empty(), "{example}");
        for (id, mount) in &config.mounts {
            assert!(mount.is_ok(), "{id}: {mount:?}");
            assert!(config.mounted(id).is_ok(), "{id}: {:?}", config.mounted(id));
            ids.push(id.clone());
        }
    }
    assert_eq!(
        ids,
        ["home", "time", "my_files", "weather", "notes", "ovos-mcp-toolbox"]
    );
}

#[test]
fn the_keys_of_other_hosts_count() {
    let http = one(json!({"type": "streamable-http", "url": "http://h/mcp", "disabled": true})).unwrap();
    assert_eq!(http.transport, Some(MountTransport::Http));
    assert!(!http.is_enabled());
    let stdio = json!({"command": "npx", "args": ["-y", "~/x"], "autoApprove": ["a"], "timeout": 2.5});
    let stdio = one(stdio).unwrap();
    assert_eq!(stdio.transport, Some(MountTransport::Stdio));
    assert_eq!((stdio.timeout, stdio.startup_timeout), (2.5, 60.0));
    assert_eq!(stdio.args, ["-y", "~/x"], "no shell reads them elsewhere, either");
    assert!(stdio.is_enabled());
}

#[test]
fn a_wrong_mount_costs_itself_and_is_explained() {
    let found = |key: &str, rest: &str| format!(".service.mounts.m{key}: {rest}");
    for (mount, told) in [
        (json!({}), found("", "found no command, expected what is started")),
        (json!(5), found("", "found a number, expected an object")),
        (
            json!("https://u:p-secret@h"),
            found("", "found a text, expected an object"),
        ),
        (
            json!({"url": "h?key=q-secret"}),
            found(".url", "found a text, expected a URL"),
        ),
        (
            json!({"url": "http://h", "headers": "Bearer h-secret"}),
            found(".headers", "found a text, expected an object"),
        ),
        (
            json!({"command": "a", "env": "A=e-secret"}),
            found(".env", "found a text, expected an object"),
        ),
        (
            json!({"url": "http://h", "bearer_env": "t-secret"}),
            found(".bearer_env", "found a text, expected the name of a variable"),
        ),
        (
            json!({"type": "http"}),
            found("", "found no url, expected where the server is"),
        ),
        (
            json!({"command": "a b"}),
            found(".command", "found \"a b\", expected an absolute path"),
        ),
        (
            json!({"command": "a", "comand": 1}),
            found(".comand", "unknown key (did you mean \"command\"?)"),
        ),
        (
            json!({"command": "a", "url": "http://h"}),
            found(
                ".command",
                "found the key, expected no such key for a server with a URL",
            ),
        ),
        (
            json!({"url": "ftp://h"}),
            found(".url", "found a text, expected a URL that starts with http://"),
        ),
        (
            json!({"url": "http://h", "transport": "sse"}),
            found(
                ".transport",
                "found \"sse\", expected \"stdio\" or \"http\"; the old \"sse\"",
            ),
        ),
        (
            json!({"url": "http://h", "transport": "http", "type": "stdio"}),
            found(".type", "found \"stdio\", expected what `transport` says"),
        ),
        (
            json!({"command": "a", "env": {"A": "${B}"}}),
            found(
                ".env",
                "found an object, expected an object of variable names and texts; ${...}",
            ),
        ),
        (
            json!({"url": "http://h", "headers": {"A": "b\n"}}),
            found(".headers", "found an object, expected an object of header names"),
        ),
        (
            json!({"url": "http://h", "bearer_env": "ab cd"}),
            found(".bearer_env", "found a text, expected the name of a variable"),
        ),
        (
            json!({"command": "a", "effects": {"x": "motion"}}),
            found(
                ".effects",
                "found an object, expected an object of tool names and \"read\" or \"write\"",
            ),
        ),
        (
            json!({"command": "a", "tools": {"only": []}}),
            found(".tools", "found an object, expected an object {allow, deny}"),
        ),
        (
            json!({"command": "a", "timeout": 0}),
            found(".timeout", "found 0, expected a number of seconds from 0.1"),
        ),
        (
            json!({"command": "a", "cwd": "b"}),
            found(".cwd", "found \"b\", expected an absolute path"),
        ),
    ] {
        let error = one(mount.clone()).unwrap_err();
        assert!(error.contains(&told), "{mount}: {error}");
        assert!(!error.contains("-secret"), "{error}");
        assert!(
            error.starts_with("home/.config/mycroft/mycroft.conf") || error.contains("mycroft.conf: PHAL"),
            "{error}"
        );
        let config = load(json!({"m": mount, "good": {"command": "a"}}));
        assert!(config.mounts["good"].is_ok() && config.mounted("m").is_err());
    }
    for (mounts, told) in [
        (
            json!({"My X": {"command": "a"}, "my_x": {"command": "b"}}),
            "a second mount that is toolbox \"my_x\"",
        ),
        (
            json!({"all": {"command": "a"}}),
            "found the name \"all\", expected a name that becomes a toolbox id",
        ),
    ] {
        let mut mounts = mounts;
        mounts["good"] = json!({"command": "a"});
        let config = load(mounts);
        let [notice] = config.notices.as_slice() else {
            panic!("{:?}", config.notices);
        };
        let notice = notice.to_string();
        assert!(
            notice.contains(told) && notice.ends_with("this mount is left out"),
            "{notice}"
        );
        assert!(config.mounts["good"].is_ok(), "the others stay");
        if let Some(first) = config.mounts.get("my_x") {
            assert_eq!(
                first.as_ref().unwrap().command.as_deref(),
                Some("a"),
                "the first one stays"
            );
        }
    }
}

#[test]
fn a_mount_takes_no_section_of_a_plugin_with_its_id() {
    for mount in [
        json!({"command": "a"}),
        json!({"command": "a", "enabled": false}),
        json!({"comand": "a"}),
    ] {
        let section = json!({"address": "udp://:14540", "limits": {"max_waiting": 3}});
        let ours = json!({"service": {"mounts": {"drone": mount}}, "drone": section});
        let config = Machine::with_section(ours).load().unwrap();
        let plugin = config.toolbox("drone").unwrap();
        assert!(plugin.toolbox.enabled, "{mount}");
        assert_eq!(plugin.toolbox.own["address"], "udp://:14540", "{mount}");
        assert!(!plugin.toolbox.own.contains_key("command"), "{mount}");
    }
}

#[test]
fn a_mount_is_a_program_and_its_secrets_are_shown_nowhere() {
    let machine = Machine::new(&[], &[("TOKEN", "t-secret")]);
    let mounts = json!({
        "web": {"url": "https://u:p-secret@h/mcp?key=q-secret", "bearer_env": "TOKEN", "headers": {"A": "h-secret"}},
        "local": {"command": "a", "env": {"B": "e-secret"}},
        "off": {"command": "a", "enabled": false},
    });
    let ours = json!({"service": {"mounts": mounts}, "ovos-mcp-toolbox": {"command": "a", "env": {"C": "o-secret"}}});
    machine.write(
        USER,
        &json!({"PHAL": {"ovos-phal-plugin-tools": ours}}).to_string(),
    );
    let config = machine.load().unwrap();
    let programs = config.mount_programs("/usr/bin/mounts", &machine);
    let shown: Vec<_> = programs
        .iter()
        .map(|program| (program.name.as_str(), program.args.join(" "), program.enabled))
        .collect();
    let alone = |id: &str| format!("--alone {id}");
    assert_eq!(
        shown,
        [
            ("mounts/local", alone("local"), true),
            ("mounts/off", alone("off"), false),
            ("mounts/ovos-mcp-toolbox", alone("ovos-mcp-toolbox"), true),
            ("mounts/web", alone("web"), true),
        ]
    );
    assert_eq!(programs[3].env["TOKEN"], "t-secret");
    assert!(programs[0].env.is_empty() && programs[0].may_offer("local"));
    let section = config.mounted("local").unwrap();
    assert_eq!(section.toolbox.own["env"]["B"], "e-secret");
    assert!(section.toolbox.env.is_empty(), "they are the server's");
    let old = config.mounted("ovos-mcp-toolbox").unwrap();
    assert_eq!(old.toolbox.own["output"], "adapter");
    assert_eq!(
        config.mounts["local"].as_ref().unwrap().output,
        MountOutput::Structured
    );
    assert!(!config.mounted("off").unwrap().toolbox.enabled);
    let settings: Vec<String> = config
        .settings()
        .map(|setting| setting.value.to_string())
        .collect();
    assert!(!settings.join("\n").contains("-secret"), "{settings:#?}");
}

#[test]
fn keys_of_a_mount_in_the_section_of_its_toolbox_are_explained() {
    let section = |section: Value| {
        let mounts = json!({"m": {"command": "a"}});
        let config = Machine::with_section(json!({"service": {"mounts": mounts}, "m": section})).load();
        config.unwrap().mounted("m").map_err(|error| error.to_string())
    };
    assert!(section(json!({"limits": {"max_waiting": 3}, "tools": {"deny": ["x"]}})).is_ok());
    let error = section(json!({"command": "b"})).unwrap_err();
    assert!(
        error.contains("expected the keys of the mount in service.mounts.m"),
        "{error}"
    );
}
