//! The published toolboxes as a user finds them: without any configuration, and in place of the published service.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::python_toolboxes::compare::loaded;
use crate::support::client::Client;
use crate::support::process::{Process, Sandbox, free_port};
use crate::support::python::opm_python;
use crate::support::service_with_bus::ServiceWithBus;
use crate::support::status;

/// The names that `math` shares with `ovos-math-tools`.
const SHARED: [&str; 4] = [
    "evaluate_expression",
    "solve_equation",
    "statistics_summary",
    "unit_convert",
];

/// A machine on which `python` has no configuration, and these keys of the published service are its only ones.
fn machine(port: u16, tools: &Value) -> Sandbox {
    let sandbox = Sandbox::with_bus(port);
    fs::remove_file(sandbox.path("etc/mycroft/mycroft.conf")).unwrap();
    let mut conf = json!({ "websocket": { "host": "127.0.0.1", "port": port } });
    if !tools.is_null() {
        conf["PHAL"] = json!({ "ovos-phal-plugin-tools": tools });
    }
    fs::write(sandbox.path("config/mycroft/mycroft.conf"), conf.to_string()).unwrap();
    sandbox
}

/// The service, in the virtual environment of an interpreter.
fn serve(sandbox: &Sandbox, python: &Path, bus: &str, plugins: &Path) -> Process {
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_ovos-tools"));
    command
        .env("VIRTUAL_ENV", python.ancestors().nth(2).unwrap())
        .args(["serve", "--embedded-bus", bus, "--plugins"])
        .arg(plugins);
    Process::start("ovos-tools", sandbox, command)
}

/// The toolboxes that list a tool.
fn owners(client: &mut Client, tool: &str) -> Vec<String> {
    let list = client.ask("ovos.tools.list", &json!({}));
    let tools = list["tools"].as_array().unwrap().iter();
    let named = tools.filter(|one| one["name"] == tool);
    named
        .map(|one| one["toolbox_id"].as_str().unwrap().to_owned())
        .collect()
}

fn invoke(client: &mut Client, name: &str, args: &Value) -> Value {
    client.ask("ovos.tools.invoke", &json!({ "name": name, "args": args }))
}

#[test]
fn without_configuration_they_are_all_there_and_math_leaves_them_its_names() {
    let Some(python) = opm_python() else { return };
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let plugins = tempfile::tempdir().unwrap();
    let built = Command::new(checkout.join("scripts/plugins.sh"))
        .arg("debug")
        .arg(plugins.path())
        .arg("toolboxes/math")
        .status();
    assert!(built.unwrap().success(), "the toolbox math does not build");

    let port = free_port();
    let sandbox = machine(port, &Value::Null);
    let process = serve(&sandbox, python, "always", plugins.path());
    let mut service = ServiceWithBus {
        process,
        sandbox,
        port,
    };
    let mut client = Client::connect(port);
    loaded(&mut service.process, &mut client, "ovos_tools");
    let status = client.ask("ovos.tools.status", &json!({}));
    let hosted = &status["pythons"][0];
    let interpreter = Path::new(hosted["interpreter"].as_str().unwrap());
    assert_eq!(interpreter.parent(), python.parent(), "{status}");
    assert_eq!(hosted["toolboxes"].as_array().unwrap().len(), 12, "{hosted}");
    assert_eq!(status["failed"], json!([]), "{status}");
    let ready = status["toolboxes"].as_array().unwrap().iter();
    assert_eq!(
        ready.filter(|one| one["state"] == "ready").count(),
        13,
        "{status}"
    );

    // Of the tools that are not known to only read, people are told that they count as `write`.
    for (toolbox, unstated) in [
        ("ovos-filesystem-tools", json!(["write_file"])),
        ("ovos-math-tools", Value::Null),
    ] {
        let status = status::toolbox(&mut client, toolbox);
        assert_eq!(status["unstated_effects"], unstated, "{status}");
    }

    let math = status::toolbox(&mut client, "math");
    let yielded = math["yielded_tools"].as_array().unwrap();
    assert_eq!(yielded.len(), SHARED.len(), "{math}");
    for name in SHARED {
        assert_eq!(owners(&mut client, name), ["ovos-math-tools"], "{name}");
        let left = format!(
            "`{name}` is hidden because `ovos-math-tools` offers it, too; list it in `tools.allow` to show both"
        );
        assert!(yielded.contains(&json!(left)), "{math}");
    }
    let sum = json!({ "expression": "2 + 3" });
    let answer = invoke(&mut client, "evaluate_expression", &sum);
    assert_eq!(answer["result"]["result"].as_f64(), Some(5.0), "{answer}");
    let answer = invoke(&mut client, "math__evaluate_expression", &sum);
    assert_eq!(answer["result"]["result"].as_f64(), Some(5.0), "{answer}");

    let allow = json!({ "math": { "tools": { "allow": ["unit_convert"] } } });
    let conf = json!({ "websocket": { "host": "127.0.0.1", "port": port }, "PHAL": { "ovos-phal-plugin-tools": allow } });
    fs::write(
        service.sandbox.path("config/mycroft/mycroft.conf"),
        conf.to_string(),
    )
    .unwrap();
    client.send("configuration.updated", &json!({}));
    client.ask("ovos.tools.reload", &json!({}));
    assert_eq!(owners(&mut client, "unit_convert"), ["math", "ovos-math-tools"]);
    let answer = invoke(
        &mut client,
        "unit_convert",
        &json!({ "value": 3, "from_unit": "km", "to_unit": "m" }),
    );
    let error = answer["error"].as_str().unwrap_or_default();
    assert!(error.starts_with("AmbiguousToolError"), "{answer}");
}

#[test]
fn with_the_published_service_switched_off_each_request_has_one_answer() {
    let Some(python) = opm_python() else { return };
    let port = free_port();
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a.txt"), "one").unwrap();
    // The section of the published service, with its toolboxes' own, as it stays when it is switched off.
    let section = json!({ "enabled": false, "ovos-filesystem-tools": { "root_path": root.path() } });
    let sandbox = machine(port, &section);
    let module = |name: &str| {
        let mut command = sandbox.command(python);
        command.args(["-m", name]).env("OVOS_DEFAULT_LOG_LEVEL", "ERROR");
        Process::start(name, &sandbox, command)
    };
    let mut bus = module("ovos_messagebus");
    let mut client = bus.until("the bus", |_| Client::try_connect(port));
    let mut phal = module("ovos_PHAL");
    loaded(&mut phal, &mut client, "PHAL");
    let plugins = root.path().join("plugins");
    fs::create_dir(&plugins).unwrap();
    let mut ours = serve(&sandbox, python, "never", &plugins);
    loaded(&mut ours, &mut client, "ovos_tools");

    let read = json!({ "path": "a.txt" });
    for (topic, data, answers) in [
        ("ovos.tools.list", json!({}), 1),
        ("ovos.tools.get", json!({ "name": "read_file" }), 1),
        (
            "ovos.tools.invoke",
            json!({ "name": "read_file", "args": read }),
            1,
        ),
        ("ovos.tools.invoke", json!({ "name": "absent" }), 1),
        ("ovos.tools.reload", json!({}), 1),
        // Each toolbox answers.
        ("ovos.persona.tools.discover", json!({}), 12),
        (
            "ovos.persona.tools.call",
            json!({ "toolbox_id": "ovos-filesystem-tools", "name": "read_file", "kwargs": read }),
            1,
        ),
        (
            "ovos.persona.tools.ovos-filesystem-tools.call",
            json!({ "name": "read_file", "kwargs": read }),
            1,
        ),
        ("mycroft.PHAL.all_loaded", json!({}), 1),
    ] {
        let ident = client.send(topic, &data);
        let mut found = Vec::new();
        let is_answer = |frame: &Value| {
            let kind = frame["type"].as_str().unwrap_or_default();
            frame["context"]["ident"] == ident.as_str() && kind.ends_with(".response")
        };
        client.until(topic, |frame| {
            found.extend(is_answer(frame).then(|| frame["data"].clone()));
            (found.len() == answers).then_some(())
        });
        // A second service would have answered by then.
        let end = Instant::now() + Duration::from_millis(700);
        while let Some(frame) = client.next(end) {
            found.extend(is_answer(&frame).then(|| frame["data"].clone()));
        }
        assert_eq!(found.len(), answers, "{topic}: {found:?}");
        if data.to_string().contains("a.txt") {
            assert!(
                found[0]["result"].to_string().contains("one"),
                "{topic}: {found:?}"
            );
        }
    }

    let asks = "from ovos_bus_client import Message, MessageBusClient\n\
                bus = MessageBusClient()\n\
                bus.run_in_thread()\n\
                bus.connected_event.wait(10)\n\
                ask = Message('ovos.tools.invoke', {'name': 'read_file', 'args': {'path': 'a.txt'}})\n\
                print(bus.wait_for_response(ask, timeout=10).data)\n";
    let mut command = sandbox.command(python);
    command.args(["-c", asks]);
    let output = Process::start("client", &sandbox, command).finish();
    assert!(output.contains("'name': 'read_file', 'result': "), "{output}");
}
