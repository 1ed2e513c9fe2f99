//! A bus, a service with testbed and a client: the start of most tests of the service.
//!
//! Read [`Stage`].

use std::fs;

use serde_json::{Value, json};

use super::client::Client;
use super::process::Process;
use super::scene::{Scene, ready};
use super::service::{BusKind, testbed_plugins};

/// Everything runs and is ready. The processes end before the scene is dropped.
pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) service: Process,
    pub(crate) bus: Process,
    pub(crate) scene: Scene,
}

impl Stage {
    /// With these keys of the service, on a bus of ours.
    pub(crate) fn new(service: &Value) -> Self {
        Self::on(BusKind::Embedded, service)
    }

    pub(crate) fn on(kind: BusKind, service: &Value) -> Self {
        let scene = Scene::new(service);
        let bus = scene.bus(kind);
        let mut client = Client::connect(scene.port);
        let service = scene.service(&mut client);
        Self {
            client,
            service,
            bus,
            scene,
        }
    }

    /// With a plugin folder of its own that has these plugins, and with environment variables.
    pub(crate) fn with_plugins(plugins: &[&str], variables: &[(&str, &str)], scene: Scene) -> Self {
        let bus = scene.bus(BusKind::Embedded);
        let mut client = Client::connect(scene.port);
        fs::create_dir(scene.sandbox.path("plugins")).unwrap();
        for plugin in plugins {
            put(&scene, plugin);
        }
        let service = serve(&scene, &mut client, variables);
        Self {
            client,
            service,
            bus,
            scene,
        }
    }

    pub(crate) fn reload(&mut self) {
        self.client.ask("ovos.tools.reload", &json!({}));
    }

    pub(crate) fn status(&mut self) -> Value {
        self.client.ask("ovos.tools.status", &json!({}))
    }

    pub(crate) fn stop(&mut self, data: &Value) -> Value {
        self.client.ask("ovos.tools.stop", data)["toolboxes"].take()
    }

    pub(crate) fn resume(&mut self, toolbox_id: &str, stop_id: &str) -> Value {
        let resume = json!({ "toolbox_id": toolbox_id, "stop_id": stop_id });
        self.client.ask("ovos.tools.resume", &resume)["toolboxes"].take()
    }
}

/// Puts a toolbox into the scene's plugin folder: written beside and renamed, as an installer does.
pub(crate) fn put(scene: &Scene, plugin: &str) {
    let plugins = scene.sandbox.path("plugins");
    let file = format!("{plugin}.so");
    fs::copy(testbed_plugins().join(&file), plugins.join(".fresh")).unwrap();
    fs::rename(plugins.join(".fresh"), plugins.join(file)).unwrap();
}

/// Starts a service with the scene's plugin folder and waits until it is ready.
pub(crate) fn serve(scene: &Scene, client: &mut Client, variables: &[(&str, &str)]) -> Process {
    let plugins = scene.sandbox.path("plugins");
    let args = ["serve", "--plugins", plugins.to_str().unwrap()];
    let mut service = scene.ours_with("service", &args, variables);
    ready(&mut service, client);
    service
}

/// The toolboxes of an answer to `stop` or `resume`, and whether each is `ok`.
pub(crate) fn ids(toolboxes: &Value) -> Vec<(&str, bool)> {
    let line = |it| -> Option<_> { Some((Value::get(it, "toolbox_id")?.as_str()?, it["ok"] == true)) };
    toolboxes.as_array().unwrap().iter().filter_map(line).collect()
}
