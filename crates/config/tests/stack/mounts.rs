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
    for (mount, expected) in [
        (
            json!({}),
            found("", "found no command, expected a command to start"),
        ),
        (json!(5), found("", "found a number, expected an object")),
        (
            json!("https://u:p-secret@h"),
            found("", "found a string, expected an object"),
        ),
        (
            json!({"url": "h?key=q-secret"}),
            found(".url", "found a string, expected a URL"),
        ),
        (
            json!({"url": "http://h", "headers": "Bearer h-secret"}),
            found(".headers", "found a string, expected an object"),
        ),
        (
            json!({"command": "a", "env": "A=e-secret"}),
            found(".env", "found a string, expected an object"),
        ),
        (
            json!({"url": "http://h", "bearer_env": "t-secret"}),
            found(".bearer_env", "found a string, expected the name of a variable"),
        ),
        (
            json!({"type": "http"}),
            found("", "found no url, expected the server's address"),
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
            found(".url", "found a string, expected a URL that starts with http://"),
        ),
        (
            json!({"url": "http://h", "transport": "sse"}),
            found(
                ".transport",
                "found \"sse\", expected \"stdio\" or \"http\"; the older \"sse\"",
            ),
        ),
        (
            json!({"url": "http://h", "transport": "http", "type": "stdio"}),
            found(".type", "found \"stdio\", expected the same value as `transport`"),
        ),
        (
            json!({"command": "a", "env": {"A": "${B}"}}),
            found(
                ".env.A",
                "found ${B}, expected the variable `B` in the environment of the service; set it where the service is started",
            ),
        ),
        (
            json!({"command": "a", "args": ["x", "--key=${env:B_2}"]}),
            found(".args", "found ${env:B_2}, expected the variable `B_2` in"),
        ),
        (
            json!({"url": "https://${HOST}/mcp?key=q-secret"}),
            found(".url", "found ${HOST}, expected the variable `HOST` in"),
        ),
        (
            json!({"url": "http://h", "headers": {"X-Api-Key": "${input:key}"}}),
            found(
                ".headers.\"X-Api-Key\"",
                "found ${input:key}, expected ${NAME}, ${env:NAME} or ${NAME:-text}",
            ),
        ),
        (
            json!({"command": "a", "filled_in": ["x"]}),
            found(".filled_in", "unknown key"),
        ),
        (
            json!({"url": "http://h", "headers": {"A": "b\n"}}),
            found(".headers", "found an object, expected an object of header names"),
        ),
        (
            json!({"url": "http://h", "bearer_env": "ab cd"}),
            found(".bearer_env", "found a string, expected the name of a variable"),
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
        assert!(error.contains(&expected), "{mount}: {error}");
        assert!(!error.contains("-secret"), "{error}");
        assert!(
            error.starts_with("home/.config/mycroft/mycroft.conf") || error.contains("mycroft.conf: PHAL"),
            "{error}"
        );
        let config = load(json!({"m": mount, "good": {"command": "a"}}));
        assert!(config.mounts["good"].is_ok() && config.mounted("m").is_err());
    }
    for (mounts, expected) in [
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
            notice.contains(expected) && notice.ends_with("this mount is left out"),
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
    let entries: Vec<_> = programs
        .iter()
        .map(|program| (program.name.as_str(), program.args.join(" "), program.enabled))
        .collect();
    let alone = |id: &str| format!("--alone {id}");
    assert_eq!(
        entries,
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

#[test]
fn variables_of_the_service_are_filled_in_and_their_values_are_shown_nowhere() {
    let variables = [
        ("TOKEN", "t-secret"),
        ("KEY", "k-secret"),
        ("PLACE", "https://h.example/s-secret"),
        ("EMPTY", ""),
    ];
    let machine = Machine::new(&[], &variables);
    let mounts = json!({
        "local": {
            "command": "a",
            "args": ["--key=${KEY}", "plain", "${NONE:-otherwise}", "$TOKEN", "${open"],
            "env": {"GITHUB_TOKEN": "${TOKEN}", "BOTH": "${env:TOKEN}-${KEY}", "NO": "${EMPTY}"},
        },
        "web": {"url": "${PLACE}/mcp", "headers": {"X-Api-Key": "${KEY}", "Authorization": "Bearer ${TOKEN}"}},
    });
    let old = json!({"command": "a", "args": ["${KEY}"], "env": {"A": "${KEY}"}});
    let ours = json!({"service": {"mounts": mounts}, "ovos-mcp-toolbox": old});
    machine.write(
        USER,
        &json!({"PHAL": {"ovos-phal-plugin-tools": ours}}).to_string(),
    );
    let config = machine.load().unwrap();
    let local = config.mounts["local"].as_ref().unwrap();
    assert_eq!(
        local.args,
        ["--key=k-secret", "plain", "otherwise", "$TOKEN", "${open"]
    );
    assert_eq!(local.env["GITHUB_TOKEN"], "t-secret");
    assert_eq!(
        (local.env["BOTH"].as_str(), local.env["NO"].as_str()),
        ("t-secret-k-secret", "")
    );
    let web = config.mounts["web"].as_ref().unwrap();
    assert_eq!(web.url.as_deref(), Some("https://h.example/s-secret/mcp"));
    assert_eq!(web.headers["Authorization"], "Bearer t-secret");
    let section = config.mounted("web").unwrap();
    assert_eq!(
        section.toolbox.own["filled_in"],
        json!(["k-secret", "t-secret", "https://h.example/s-secret"]),
        "the program hides them, too"
    );
    let old = config.mounts["ovos-mcp-toolbox"].as_ref().unwrap();
    assert_eq!(old.args, ["k-secret"]);
    let settings = config.settings();
    let settings: Vec<String> = settings
        .map(|setting| format!("{} {}", setting.key, setting.value))
        .collect();
    let settings = settings.join("\n");
    assert!(!settings.contains("-secret"), "{settings}");
    assert!(settings.contains("--key=(not shown)"), "{settings}");
}

#[test]
fn a_secret_in_the_path_of_a_url_is_not_shown() {
    for (url, shown) in [
        (
            "https://mcp.zapier.com/api/mcp/s/ODk0NmYwZTItZWE3Yi00/mcp",
            "https://mcp.zapier.com/api/mcp/s/(not shown)/mcp",
        ),
        (
            "https://h/0b1c2d3e-4f56-7890-abcd-ef0123456789",
            "https://h/(not shown)",
        ),
        (
            "https://h/abcdefghijklmnopqrstuvwxyzabcdefgh/x",
            "https://h/(not shown)/x",
        ),
        (
            "http://a-host-with-a-long-name-1.example:80/streamable-http-server/v1",
            "http://a-host-with-a-long-name-1.example/streamable-http-server/v1",
        ),
    ] {
        let config = load(json!({"m": {"url": url}}));
        let mut settings = config.settings();
        let setting = settings
            .find(|setting| setting.key.ends_with("mounts.m.url"))
            .unwrap();
        assert_eq!(setting.value, shown);
    }
}

/// As the documentation of these hosts has them.
#[test]
fn servers_of_other_hosts_are_taken_as_they_are() {
    let machine = Machine::new(&[], &[("GITHUB_TOKEN", "t-secret")]);
    let pasted = json!({
        // Claude Desktop and Claude Code.
        "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"]},
        "api-server": {
            "type": "http", "url": "${API_BASE_URL:-https://api.example.com}/mcp",
            "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"},
        },
        // VS Code.
        "playwright": {
            "type": "stdio", "command": "npx", "args": ["-y", "@microsoft/mcp-server-playwright"],
            "envFile": "${workspaceFolder}/.env", "gallery": true, "dev": {"watch": "src/**"}, "headers": {},
        },
        // Cursor.
        "cursor-local": {
            "command": "python", "args": ["${env:GITHUB_TOKEN}"], "env": {"A": "b"}, "envFile": ".env",
        },
        "cursor-remote": {"url": "http://localhost:3000/mcp", "headers": {"API_KEY": "${env:GITHUB_TOKEN}"}, "env": {}},
        // Gemini CLI.
        "gemini": {
            "httpUrl": "http://localhost:3001/mcp", "timeout": 600000, "trust": true, "includeTools": ["a"],
        },
        // Windsurf.
        "windsurf": {"serverUrl": "https://h.example/mcp", "disabled": true, "disabledTools": ["a"]},
        // Cline, Roo Code and Copilot.
        "cline": {
            "command": "node", "args": [], "url": "", "timeout": 1800, "disabled": false, "alwaysAllow": ["a"], "autoApprove": [],
        },
        "copilot": {"type": "http", "url": "https://h.example/mcp", "tools": ["a", "b*"]},
        "old": {"type": "sse", "url": "https://h.example/sse"},
    });
    let written = |mounts: Value| {
        json!({"PHAL": {"ovos-phal-plugin-tools": {"service": {"mounts": mounts}}}}).to_string()
    };
    machine.write(USER, &written(json!({"mcpServers": pasted})));
    let config = machine.load().unwrap();
    let one = |id: &str| {
        config.mounts[id]
            .as_ref()
            .unwrap_or_else(|error| panic!("{error}"))
    };
    for (id, transport, url) in [
        ("filesystem", MountTransport::Stdio, None),
        (
            "api-server",
            MountTransport::Http,
            Some("https://api.example.com/mcp"),
        ),
        ("playwright", MountTransport::Stdio, None),
        ("cursor-local", MountTransport::Stdio, None),
        (
            "cursor-remote",
            MountTransport::Http,
            Some("http://localhost:3000/mcp"),
        ),
        ("gemini", MountTransport::Http, Some("http://localhost:3001/mcp")),
        ("windsurf", MountTransport::Http, Some("https://h.example/mcp")),
        ("cline", MountTransport::Stdio, None),
        ("copilot", MountTransport::Http, Some("https://h.example/mcp")),
    ] {
        let mount = one(id);
        assert_eq!(
            (mount.transport, mount.url.as_deref()),
            (Some(transport), url),
            "{id}"
        );
        assert_eq!(mount.is_enabled(), id != "windsurf", "{id}");
        assert!(config.mounted(id).is_ok(), "{id}");
    }
    assert_eq!(one("gemini").timeout, 600.0, "in milliseconds there");
    assert_eq!(one("cline").timeout, 1800.0, "in seconds there");
    assert_eq!(
        one("copilot").tools.allow,
        Some(vec!["a".to_owned(), "b*".to_owned()])
    );
    assert_eq!(one("gemini").tools.allow, Some(vec!["a".to_owned()]));
    assert_eq!(one("windsurf").tools.deny, ["a"]);
    let old = config.mounts["old"].as_ref().unwrap_err().to_string();
    assert!(old.contains("the older \"sse\" is not supported"), "{old}");
    let notices: Vec<String> = config.notices.iter().map(ToString::to_string).collect();
    let notices = notices.join("\n");
    for unused in [
        "mcpServers.playwright: ignored keys that only other MCP hosts use: envFile, gallery, dev\n",
        "mcpServers.\"cursor-local\": ignored keys that only other MCP hosts use: envFile\n",
        "mcpServers.gemini: ignored keys that only other MCP hosts use: trust\n",
        "mcpServers.cline: ignored keys that only other MCP hosts use: alwaysAllow",
    ] {
        assert!(notices.contains(unused), "{unused}: {notices}");
    }
    machine.write(USER, &written(json!({"m": {"command": "a", "envFile": ".env"}})));
    let config = machine.load().unwrap();
    let strict = config.mounts["m"].as_ref().unwrap_err().to_string();
    assert!(strict.contains("envFile: unknown key"), "{strict}");
}
