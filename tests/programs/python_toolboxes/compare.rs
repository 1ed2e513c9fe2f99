//! The published toolboxes, here and under the published service, each on a bus of its own.
//!
//! tests/python/opm_compare.py asks both the same, and has the list of all differences.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::process::{Process, Sandbox, free_port};
use crate::support::python::opm_python;
use crate::support::service_with_bus::ServiceWithBus;

/// Neither side gets a network: answers would differ, and a dictionary would be downloaded.
const NO_NETWORK: &str = "http://127.0.0.1:9";

#[test]
fn the_published_toolboxes_answer_as_under_the_published_service() {
    let Some(python) = opm_python() else { return };
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let samples = samples(checkout, folder.path());
    let mut env = json!({
        "PYTHONPATH": samples, "OVOS_DEFAULT_LOG_LEVEL": "ERROR", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
    });
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
    ] {
        env[name] = json!(NO_NETWORK);
    }
    let sections = |side: &str| {
        let root = folder.path().join(side);
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a.txt"), "one\ntwo\n").unwrap();
        json!({ "ovos-filesystem-tools": { "root_path": root }, "ovos-shell-tools": { "allow_shell": true } })
    };

    // The published service and bus.
    let port = free_port();
    let sandbox = Sandbox::with_bus(port);
    let conf = json!({
        "websocket": { "host": "127.0.0.1", "port": port },
        "PHAL": { "ovos-phal-plugin-tools": sections("theirs") },
    });
    fs::write(sandbox.path("config/mycroft/mycroft.conf"), conf.to_string()).unwrap();
    let module = |name: &str| {
        let mut command = sandbox.command(python);
        command.args(["-m", name]);
        let variables = env.as_object().unwrap().iter();
        command.envs(variables.map(|(name, value)| (name, value.as_str().unwrap())));
        Process::start(name, &sandbox, command)
    };
    let mut bus = module("ovos_messagebus");
    let mut client = bus.until("the bus", |_| Client::try_connect(port));
    let mut theirs = module("ovos_PHAL");
    loaded(&mut theirs, &mut client, "PHAL");

    // Ours.
    let plugins = folder.path().join("plugins");
    fs::create_dir(&plugins).unwrap();
    let entry = json!({ "enabled": true, "interpreter": python, "env": env, "toolboxes": ["ovos-*", "sample-tools"] });
    let mut conf = sections("ours");
    conf["service"] = json!({ "programs": { "python": entry }, "probe_ms": 30_000 });
    let program = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
    let mut ours = ServiceWithBus::start(program, &plugins, |_| conf);
    let mut client = Client::connect(ours.port);
    loaded(&mut ours.process, &mut client, "ovos_tools");
    let status = client.ask("ovos.tools.status", &json!({}));
    assert_eq!(status["failed"], json!([]), "{status}");

    let asking = Sandbox::new();
    let mut command = asking.command(python);
    command
        .arg(checkout.join("tests/python/opm_compare.py"))
        .args([port, ours.port].map(|port| format!("ws://127.0.0.1:{port}/core")))
        .arg(folder.path());
    println!("{}", Process::start("compare", &asking, command).finish());
}

/// A package with the one toolbox of the samples whose tools fail, each in its own way.
fn samples(checkout: &Path, folder: &Path) -> PathBuf {
    let site = folder.join("site");
    let metadata = site.join("opm_samples-1.dist-info");
    fs::create_dir_all(&metadata).unwrap();
    let module = checkout.join("programs/python/tests/samples/opm_samples.py");
    fs::copy(module, site.join("opm_samples.py")).unwrap();
    fs::write(
        metadata.join("METADATA"),
        "Metadata-Version: 2.1\nName: opm-samples\nVersion: 1\n",
    )
    .unwrap();
    let point = "[opm.agents.toolbox]\nsample-tools = opm_samples:SampleTools\n";
    fs::write(metadata.join("entry_points.txt"), point).unwrap();
    site
}

pub(crate) fn loaded(service: &mut Process, client: &mut Client, name: &str) {
    let topic = format!("mycroft.{name}.all_loaded");
    service.until("all toolboxes", |_| {
        let answer: Value = client.ask_within(&topic, &json!({}), Duration::from_millis(200))?;
        (answer["status"] == true).then_some(())
    });
}
