//! A door in a scene, and Python clients of it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::mcp::StdioClient;
use crate::support::process::Process;
use crate::support::python::mcp_python;
use crate::support::scene::{Scene, ready};
use crate::support::service::BusKind;

/// A bus, a service with testbed, and what a door over HTTP said.
pub(crate) struct Stage {
    pub(crate) scene: Scene,
    pub(crate) client: Client,
    pub(crate) service: Process,
    _bus: Process,
}

impl Stage {
    /// With these keys of the door.
    pub(crate) fn new(keys: &Value) -> Self {
        Self::of(Scene::new(&json!({ "doors": { "mcp": keys } })), &[])
    }

    /// The same, with the toolboxes of these folders, too.
    pub(crate) fn with(keys: &Value, folders: &[PathBuf]) -> Self {
        Self::of(Scene::new(&json!({ "doors": { "mcp": keys } })), folders)
    }

    /// With these keys of the door, and these rules.
    pub(crate) fn with_policy(keys: &Value, policy: &Value) -> Self {
        Self::of(
            Scene::new(&json!({ "doors": { "mcp": keys }, "policy": policy })),
            &[],
        )
    }

    /// With a testbed that does not say that it is simulated.
    pub(crate) fn on_hardware() -> Self {
        Self::on_hardware_with(&json!({}))
    }

    /// The same, with these keys of the door.
    pub(crate) fn on_hardware_with(keys: &Value) -> Self {
        let scene = Scene::new(&json!({}));
        let testbed = json!({ "testbed": { "simulated": false } });
        scene.configure(
            &json!({ "doors": { "mcp": keys } }),
            &json!({ "PHAL": { "ovos-phal-plugin-tools": testbed } }),
        );
        Self::of(scene, &[])
    }

    fn of(scene: Scene, folders: &[PathBuf]) -> Self {
        let bus = scene.bus(BusKind::Embedded);
        let mut client = Client::connect(scene.port);
        let plugins = folders.iter().map(|folder| folder.to_str().unwrap());
        let arguments: Vec<&str> = plugins.flat_map(|folder| ["--plugins", folder]).collect();
        let mut service = scene.service_started(&arguments);
        ready(&mut service, &mut client);
        Self {
            scene,
            client,
            service,
            _bus: bus,
        }
    }

    /// Starts a door; the arguments come after `--bus URL`.
    pub(crate) fn door(&self, name: &str, arguments: &[&str]) -> Process {
        Process::start(name, &self.scene.sandbox, self.command(arguments))
    }

    /// Starts a door whose client is the test itself, at its stdin and stdout.
    pub(crate) fn at_stdio(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// A client at stdin and stdout.
    pub(crate) fn stdio_client(&self) -> StdioClient {
        StdioClient::of(self.at_stdio(&[]))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.scene.sandbox.command(binary());
        command.args(["--bus", &self.scene.url()]).args(arguments);
        command
    }

    /// A script of tests/python that drives the door; gets the paths that all of them need, then `arguments`.
    pub(crate) fn script(&self, name: &str, arguments: &[&str]) -> Process {
        self.script_of(mcp_python().expect("it was asked for before"), name, arguments)
    }

    /// The same for another interpreter.
    pub(crate) fn script_of(&self, python: &Path, name: &str, arguments: &[&str]) -> Process {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/python")
            .join(name);
        let mut command = self.scene.sandbox.command(python);
        command.arg("-u").arg(script).args(arguments);
        Process::start(name, &self.scene.sandbox, command)
    }

    pub(crate) fn motor_log(&self) -> String {
        self.scene.sandbox.path("motor.log").to_str().unwrap().to_owned()
    }
}

/// What the service did stands beside why a test failed.
impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.service.log());
        }
    }
}

/// A door that listens.
pub(crate) struct Listening {
    pub(crate) url: String,
    pub(crate) token: String,
    pub(crate) process: Process,
}

impl Listening {
    pub(crate) fn start(stage: &Stage) -> Self {
        let mut process = stage.door("door", &["--http", "127.0.0.1:0"]);
        let url = process.until("its address", |door| {
            let output = door.output();
            let (_, rest) = output.split_once("MCP server listening at ")?;
            rest.contains('\n').then_some(())?;
            Some(rest.split([';', ',']).next()?.to_owned())
        });
        let token = std::fs::read_to_string(stage.scene.sandbox.path("state/ovos-tools/mcp-token"));
        let token = token.unwrap_or_default().trim().to_owned();
        Self { url, token, process }
    }
}

/// The door's program, beside the service's.
pub(crate) fn binary() -> PathBuf {
    let service = Path::new(env!("CARGO_BIN_EXE_ovos-tools"));
    let door = service.with_file_name("ovos-tools-mcp");
    assert!(
        door.exists(),
        "no {}: cargo build --package ovos-tools-mcp",
        door.display()
    );
    door
}

pub(crate) fn service_binary() -> &'static str {
    env!("CARGO_BIN_EXE_ovos-tools")
}
