//! The console's page with the toolboxes that come with the service: what a person sees there is what the machines do.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::console::{address, browser, serving};
use crate::support::process::{Process, free_port};
use crate::support::python::{console_python, mavsdk_server};
use crate::support::scene::{Scene, ready};
use crate::support::service::{BusKind, plugins_with};

/// A folder with robot, drone and GStreamer, and the sections of their simulators.
pub(crate) struct Machines {
    pub(crate) folder: PathBuf,
    pub(crate) sections: Value,
    pub(crate) has_gstreamer: bool,
}

impl Machines {
    /// `None` where something is missing that is named.
    pub(crate) fn in_folder_of(scene: &Scene) -> Option<Self> {
        let Some(server) = mavsdk_server() else {
            skip::skip("mavsdk", "no mavsdk_server (scripts/venv.sh gets it)");
            return None;
        };
        let drone = json!({
            "mavsdk_server": server,
            "px4_sim": plugins_with("drone").join("px4-sim"),
            "simulator": {"speed": 4, "args": ["--seed", "1"]},
        });
        let folder = scene.sandbox.path("plugins");
        fs::create_dir(&folder).unwrap();
        for toolbox in ["robot", "drone"] {
            let file = format!("{toolbox}.so");
            fs::copy(plugins_with(toolbox).join(&file), folder.join(&file)).unwrap();
        }
        let gstreamer = crate::gstreamer::built();
        match &gstreamer {
            Some(library) => {
                fs::copy(library, folder.join("gstreamer.so")).unwrap();
            }
            None => skip::skip(
                "gstreamer",
                "libgstreamer_toolbox.so was not built (cargo build -p gstreamer-toolbox)",
            ),
        }
        Some(Self {
            folder,
            sections: json!({ "PHAL": {"ovos-phal-plugin-tools": {"drone": drone}} }),
            has_gstreamer: gstreamer.is_some(),
        })
    }
}

/// A person looks at the machines of a service, moves them, and stops them.
#[track_caller]
pub(crate) fn is_seen_and_stopped(
    scene: &Scene,
    client: &mut Client,
    service: &Process,
    has_gstreamer: bool,
) {
    let Some(browser) = browser() else { return };
    let Some(python) = console_python() else { return };
    let _console = serving(scene);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = scene.sandbox.command(python);
    command
        .arg("-u")
        .arg(root.join("tests/python/console_machines.py"))
        .arg(browser)
        .arg(address(scene, &[]))
        .arg(root.join("target/console-pictures"))
        .arg(if has_gstreamer { "yes" } else { "no" });
    let output = Process::start("browser", &scene.sandbox, command).finish();
    assert!(output.contains("done"), "{output}\n{}", service.log());
    let status = client.ask("ovos.tools.status", &json!({}));
    assert_eq!(status["calls"], json!([]));
}

#[test]
fn a_robot_a_drone_and_a_camera_are_seen_and_stopped_in_a_browser() {
    let page = format!("127.0.0.1:{}", free_port());
    let scene = Scene::new(&json!({}));
    let Some(machines) = Machines::in_folder_of(&scene) else {
        return;
    };
    scene.configure(
        &json!({ "doors": {"console": {"address": page}} }),
        &machines.sections,
    );
    let _bus = scene.bus(BusKind::Embedded);
    let mut client = Client::connect(scene.port);
    let mut service = scene.ours(
        "service",
        &["serve", "--plugins", machines.folder.to_str().unwrap()],
    );
    ready(&mut service, &mut client);
    is_seen_and_stopped(&scene, &mut client, &service, machines.has_gstreamer);
}
