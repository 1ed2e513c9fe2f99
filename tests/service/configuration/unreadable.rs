//! Files that cannot be read: what stays allowed, and what a reload mends.

use super::*;

/// A file that is broken when the service starts: the last good copy stands in for what toolboxes drive and for what is
/// forbidden, and nothing is moved or changed until the file is mended.
#[test]
fn a_configuration_that_cannot_be_read_closes() {
    let section = json!({ "PHAL": { "ovos-phal-plugin-tools": { "testbed": { "greeting": "good day", "tools": { "deny": ["add"] } } } } });
    let scene = Scene::new(&json!({}));
    scene.configure(
        &json!({ "policy": [{ "tools": ["count_marks"], "decide": "deny" }] }),
        &section,
    );
    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let file = scene.sandbox.path("config/mycroft/mycroft.conf");
    let good = fs::read_to_string(&file).unwrap();
    drop(scene.service(&mut client));
    let copy = scene.sandbox.path("state/ovos-tools/last-good.json");
    let mode = fs::metadata(&copy).expect("the copy").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    type Break = fn(&std::path::Path, &str);
    let broken: [(&str, Break); 3] = [
        ("EOF while parsing", |file, good| {
            fs::write(file, good.strip_suffix('}').unwrap()).unwrap()
        }),
        ("comments only on a line of their own", |file, good| {
            fs::write(file, good.replacen('{', "{ // mine\n", 1)).unwrap();
        }),
        ("Permission denied", |file, _| {
            fs::set_permissions(file, fs::Permissions::from_mode(0o000)).unwrap();
        }),
    ];
    for (expected, break_it) in broken {
        fs::write(&file, &good).unwrap();
        break_it(&file, &good);
        let mut service = without_capabilities(&scene);
        ready(&mut service, &mut client);
        service.until("the ready line", |service| {
            service.output().contains("Try: ").then_some(())
        });
        assert!(
            service
                .output()
                .contains(", closed: the configuration cannot be read"),
            "{}",
            service.output()
        );
        let status = client.ask("ovos.tools.status", &json!({}));
        let closed = status["closed"]
            .as_str()
            .unwrap_or_else(|| panic!("{expected}: {status:#}"));
        assert!(
            closed.contains("mycroft.conf") && closed.contains(expected),
            "{closed}"
        );

        for tool in ["assemble", "set_mark"] {
            let error = client.invoke(tool, &json!({}))["error"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            assert!(
                error.starts_with("PermissionError: ") && error.contains(expected),
                "{tool}: {error}"
            );
        }
        let ruled = client.invoke("count_marks", &json!({}));
        assert!(
            ruled["error"]
                .as_str()
                .unwrap()
                .contains("rule 1 of service.policy"),
            "{ruled}"
        );
        assert_eq!(
            greeting(&mut client),
            "good day",
            "its section is that of the copy"
        );
        let denied = client.invoke("add", &json!({"a": 1, "b": 2}));
        assert!(
            denied["error"].as_str().unwrap().starts_with("Unknown tool"),
            "{denied}"
        );
        let stopped = client.ask("ovos.tools.stop", &json!({}));
        assert_eq!(stopped["toolboxes"][0]["ok"], true, "{stopped}");
        let stop_id = stopped["toolboxes"][0]["stop_id"].clone();
        client.ask(
            "ovos.tools.resume",
            &json!({"toolbox_id": "testbed", "stop_id": stop_id}),
        );

        // A mended file opens it at the next reload.
        _ = fs::set_permissions(&file, fs::Permissions::from_mode(0o644));
        fs::write(&file, &good).unwrap();
        let reload = client.ask("ovos.tools.reload", &json!({"detail": true}));
        assert_eq!(reload["closed"], Value::Null, "{reload:#}");
        let changed = client.invoke("set_mark", &json!({}));
        assert_eq!(changed.get("error"), None, "{changed}");
    }
}

/// Without a copy nothing is known of what a toolbox drives.
#[test]
fn without_a_copy_no_simulator_takes_the_place_of_a_machine() {
    let scene = Scene::new(&json!({}));
    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let file = scene.sandbox.path("config/mycroft/mycroft.conf");
    let good = fs::read_to_string(&file).unwrap();
    let websocket = json!({ "websocket": { "port": scene.port } });
    fs::write(
        scene.sandbox.path("etc/mycroft/mycroft.conf"),
        websocket.to_string(),
    )
    .unwrap();
    fs::write(&file, good.strip_suffix('}').unwrap()).unwrap();
    let robots = plugins_with("robot");
    let robots = robots.to_str().unwrap();
    let plugins = testbed_plugins();
    let url = scene.url();
    let all = [
        "serve",
        "--bus",
        &url,
        "--plugins",
        plugins.to_str().unwrap(),
        "--plugins",
        robots,
    ];
    let mut service = scene.ours("service", &all);
    ready(&mut service, &mut client);
    let list = client.ask("ovos.tools.list", &json!({})).to_string();
    assert!(!list.contains("\"robot\""), "{list}");
    let stopped = client.ask("ovos.tools.stop", &json!({"toolbox_id": "robot"}));
    let entries = stopped["toolboxes"].as_array().unwrap();
    let robot = entries
        .iter()
        .find(|entry| entry["toolbox_id"] == "robot")
        .expect("an entry for it");
    assert_eq!(robot["ok"], false);
    let error = robot["error"].as_str().unwrap();
    assert!(error.contains("not reached: backend unknown"), "{error}");
    let called = client.ask("ovos.tools.invoke", &json!({"name": "robot__wave", "args": {}}));
    assert!(
        called["error"].as_str().unwrap().contains("backend unknown"),
        "{called}"
    );

    fs::write(&file, &good).unwrap();
    client.ask("ovos.tools.reload", &json!({}));
    let list = client.ask("ovos.tools.list", &json!({})).to_string();
    assert!(list.contains("\"robot\""), "{list}");
}
