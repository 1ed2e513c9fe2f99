//! Elements that fail, hang or crash, in the real service: they cost no other toolbox a call, and pipelines that may
//! be restarted are.
//!
//! Needs the built toolbox (`cargo build -p gstreamer-toolbox`) and GStreamer's tools; where one is missing the test says
//! so and checks nothing.
mod confined;

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::fixture::FixtureFolder;
use crate::support::process::DEADLINE;
use crate::support::service_with_bus::ServiceWithBus;

const LIVE: &str = "videotestsrc is-live=true ! fakesink";

#[test]
fn a_failing_pipeline_costs_no_other_toolbox_a_call() {
    let fixtures = FixtureFolder::new();
    let Some(service) = Service::start(&fixtures, &json!({})) else {
        return;
    };

    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let neighbour = scope.spawn(|| {
            let mut calls = 0;
            while !over.load(Ordering::SeqCst) {
                let answer = service.ask(&["invoke", "work"]);
                assert!(
                    answer["result"].is_object(),
                    "the neighbour's call {calls}: {answer}"
                );
                calls += 1;
            }
            calls
        });
        let finished = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| misbehave(&service)));
        over.store(true, Ordering::SeqCst);
        let calls = neighbour.join().unwrap();
        if let Err(panic) = finished {
            println!("{}", service.0.process.log());
            std::panic::resume_unwind(panic);
        }
        println!("{calls} calls of the neighbour were answered meanwhile");
        assert!(calls >= 10, "only {calls} calls were made");
    });
}

/// The call that started a pipeline has ended when the user says "stop": the toolbox gets the message from the bus.
#[test]
fn the_users_stop_reaches_pipelines_that_run() {
    let fixtures = FixtureFolder::new();
    let Some(service) = Service::start(&fixtures, &json!({"stop_ends_pipelines": true})) else {
        return;
    };
    let mut user = Client::connect(service.0.port);
    for stop in ["ovos.stop", "mycroft.stop"] {
        let started = service.invoke("start_pipeline", &json!({"pipeline": LIVE}));
        assert_eq!(started["result"]["state"], "playing", "{started}");
        user.send(stop, &json!({}));
        let end = Instant::now() + DEADLINE;
        loop {
            let running = service.invoke("get_running_instances", &json!({}));
            if running["result"]["instances"] == json!([]) {
                let ended = running["result"]["ended"].as_array().unwrap().last().unwrap();
                assert_eq!(ended["reason"], "stopped", "{running:#}");
                break;
            }
            assert!(Instant::now() < end, "{stop} does not end it: {running:#}");
            thread::park_timeout(Duration::from_millis(100));
        }
    }
}

fn misbehave(service: &Service) {
    for args in [
        json!({"pipeline": LIVE, "name": "stubborn", "restart": "on_failure"}),
        json!({"pipeline": LIVE, "name": "plain"}),
    ] {
        let started = service.invoke("start_pipeline", &args);
        assert_eq!(started["result"]["state"], "playing", "{started}");
    }
    let failed = service.invoke("start_pipeline", &json!({"pipeline": "faultyerror"}));
    assert!(
        failed["error"].as_str().unwrap().contains("it was told to fail"),
        "{failed}"
    );

    // An element that hangs delays only its own pipeline.
    let hung = service.invoke(
        "start_pipeline",
        &json!({"pipeline": "faultyhang", "name": "hung", "wait_ms": 300}),
    );
    assert_eq!(hung["result"]["state"], "starting", "{hung}");
    let status = service.invoke("pipeline_status", &json!({"instance_id": "plain"}));
    assert_eq!(status["result"]["state"], "playing", "{status}");

    // An element that crashes ends its own pipeline, and is named.
    let crashed = service.invoke(
        "start_pipeline",
        &json!({"pipeline": "faultycrash name=culprit", "name": "bomb"}),
    );
    let error = crashed["error"].as_str().unwrap();
    for said in ["PipelineError", "culprit", "SIGABRT"] {
        assert!(error.contains(said), "{crashed}");
    }
    let stopped = service.invoke("stop_pipeline", &json!({"instance_id": "hung", "force": true}));
    assert_eq!(stopped["result"]["files_finished"], false, "{stopped}");
    let running = service.invoke("get_running_instances", &json!({}))["result"].clone();
    let playing: Vec<&Value> = running["instances"].as_array().unwrap().iter().collect();
    assert_eq!(playing.len(), 2, "{running:#}");
    assert!(
        playing.iter().all(|entry| entry["state"] == "playing"),
        "{running:#}"
    );
}

/// Neither a killed toolbox nor a killed service leaves the process of a pipeline behind, or its port.
#[test]
fn what_is_killed_leaves_no_pipeline_behind() {
    let fixtures = FixtureFolder::new();
    let Some(service) = Service::start(&fixtures, &json!({})) else {
        return;
    };
    let own = service.0.process.pid();
    for of_service in [false, true] {
        let port = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let end = Instant::now() + DEADLINE;
        let pipeline = format!("udpsrc address=127.0.0.1 port={port} ! fakesink async=false");
        while service.invoke("start_pipeline", &json!({"pipeline": pipeline}))["result"]["state"] != "playing"
        {
            assert!(Instant::now() < end, "{}", service.0.process.log());
        }
        let toolboxes = children(own);
        let (toolbox, workers) = toolboxes
            .iter()
            .map(|toolbox| (*toolbox, children(*toolbox)))
            .find(|(_, workers)| !workers.is_empty())
            .expect("the toolbox has a worker");
        assert!(UdpSocket::bind(("127.0.0.1", port)).is_err());
        let killed = if of_service { own } else { toolbox };
        assert!(
            Command::new("kill")
                .args(["-KILL", &killed.to_string()])
                .status()
                .unwrap()
                .success()
        );
        // A process that has ended has no command line, even while nothing has reaped it.
        let is_there = |process: &u32| {
            fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|command| !command.is_empty())
        };
        let end = Instant::now() + DEADLINE;
        while workers.iter().any(is_there) || UdpSocket::bind(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "{workers:?} and port {port} are left");
            thread::park_timeout(Duration::from_millis(20));
        }
    }
}

/// The processes that a process has started.
fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let children = children.collect::<String>();
    children
        .split_whitespace()
        .map(|child| child.parse().unwrap())
        .collect()
}

struct Service(ServiceWithBus);

impl Service {
    /// With additional keys in the toolbox's section; `None` if something is missing, which it reports.
    fn start(fixtures: &FixtureFolder, keys: &Value) -> Option<Self> {
        Self::start_as(Path::new(env!("CARGO_BIN_EXE_ovos-tools")), fixtures, keys)
    }

    fn start_as(program: &Path, fixtures: &FixtureFolder, keys: &Value) -> Option<Self> {
        let Some(library) = built() else {
            skip::skip(
                "gstreamer",
                "libgstreamer_toolbox.so was not built (cargo build -p gstreamer-toolbox)",
            );
            return None;
        };
        let Some(elements) = faulty(fixtures.path()) else {
            skip::skip("gstreamer", "its development files or tools are not installed");
            return None;
        };
        let plugins = fixtures.path().join("plugins");
        fs::create_dir(&plugins).unwrap();
        fs::rename(fixtures.build("well_behaved", &[]), plugins.join("good.so")).unwrap();
        fs::copy(&library, plugins.join("gstreamer.so")).unwrap();
        let mut service = ServiceWithBus::start(program, &plugins, |sandbox| {
            let mut section = json!({
                "isolation": "process",
                "state_dir": sandbox.path("state/gstreamer"),
                "allow_elements": ["faultyerror", "faultyhang", "faultycrash"],
                "env": {"GST_PLUGIN_PATH": elements, "GST_REGISTRY": elements.join("registry")},
            });
            for (key, value) in keys.as_object().unwrap() {
                section[key] = value.clone();
            }
            json!({ "gstreamer": section })
        });
        service.toolboxes_until("two toolboxes", |toolboxes| {
            let ready = toolboxes.iter().filter(|toolbox| toolbox["state"] == "ready");
            (ready.count() == 2).then_some(())
        });
        Some(Self(service))
    }

    fn ask(&self, arguments: &[&str]) -> Value {
        self.0.ask(arguments)
    }

    fn invoke(&self, tool: &str, args: &Value) -> Value {
        self.ask(&["--timeout", "60", "invoke", tool, &args.to_string()])
    }
}

/// The newest build of the toolbox beside the service.
pub(crate) fn built() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_BIN_EXE_ovos-tools"))
        .parent()
        .unwrap()
        .to_owned();
    ["libgstreamer_toolbox.so", "deps/libgstreamer_toolbox.so"]
        .iter()
        .map(|name| folder.join(name))
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
        .max()
        .map(|(_, path)| path)
}

/// A folder with the misbehaving elements and a registry that has them: to scan all plugins of a machine takes longer
/// than a toolbox may take to open.
fn faulty(folder: &Path) -> Option<PathBuf> {
    let elements = folder.join("elements");
    fs::create_dir(&elements).unwrap();
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "gstreamer-1.0"])
        .output()
        .ok()
        .filter(|flags| flags.status.success())?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("toolboxes/gstreamer/tests/fixtures/faulty.c");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(elements.join("libgstfaulty.so"))
        .arg(source)
        .args(String::from_utf8_lossy(&flags.stdout).split_whitespace())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let inspection = Command::new("gst-inspect-1.0")
        .arg("faultycrash")
        .env("GST_PLUGIN_PATH", &elements)
        .env("GST_REGISTRY", elements.join("registry"))
        .output()
        .ok()?;
    assert!(
        inspection.status.success(),
        "{}",
        String::from_utf8_lossy(&inspection.stderr)
    );
    Some(elements)
}
