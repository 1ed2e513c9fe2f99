//! A toolbox with temporary folders, and helpers for tests.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use gstreamer_toolbox::Gstreamer;
use ovos_toolbox_sdk::testing::{self, Harness, Refused};
use ovos_toolbox_sdk::wire::{Content, ContentKind, Failure};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Time limit of every wait; only a defect reaches it.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The misbehaving elements that do not stand for one that is unknown.
const FAULTY: [&str; 8] = [
    "faultydevice",
    "faultylate",
    "faultychange",
    "faultyerror",
    "faultyhang",
    "faultycrash",
    "faultybuffer",
    "faultyslow",
];

/// A toolbox, a folder it may use (`rec`) and one it may not use (`private`).
pub struct Rig {
    pub dir: TempDir,
    toolbox: Option<Harness>,
    config: Value,
}

impl Rig {
    pub fn new() -> Self {
        Self::with(json!({}))
    }

    /// A rig with additional or changed configuration keys.
    pub fn with(keys: Value) -> Self {
        gst::init().unwrap();
        let dir = tempfile::tempdir().unwrap();
        for folder in ["rec", "private", "state", "content"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        std::fs::write(dir.path().join("private/key"), "the secret of this test").unwrap();
        let path = |name: &str| dir.path().join(name).canonicalize().unwrap();
        let mut config = json!({
            "read_roots": [path("rec")],
            "write_roots": [path("rec")],
            "state_dir": path("state"),
            "allow_elements": FAULTY,
        });
        for (key, value) in keys.as_object().unwrap() {
            config[key] = value.clone();
        }
        let toolbox = open(&config).with_content_folder(&dir.path().join("content"));
        Self {
            dir,
            toolbox: Some(toolbox),
            config,
        }
    }

    pub fn toolbox(&self) -> &Harness {
        self.toolbox.as_ref().unwrap()
    }

    pub fn rec(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("rec").join(name)
    }

    pub fn private(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("private").join(name)
    }

    pub fn call(&self, tool: &str, args: Value) -> Result<Value, Failure> {
        self.toolbox().call(tool, args)
    }

    #[track_caller]
    pub fn ok(&self, tool: &str, args: Value) -> Value {
        match self.call(tool, args.clone()) {
            Ok(output) => output,
            Err(failure) => panic!("{tool} {args}: {failure}"),
        }
    }

    /// The output, and the pictures beside it.
    #[track_caller]
    pub fn shows(&self, tool: &str, args: Value) -> (Value, Vec<Vec<u8>>) {
        let ended = self.toolbox().start(tool, args).unwrap().wait();
        let picture = |item: Content| {
            assert_eq!(item.kind, ContentKind::Image, "{item:?}");
            std::fs::read(self.dir.path().join("content").join(item.path.unwrap())).unwrap()
        };
        (
            ended.result().unwrap(),
            ended.content().into_iter().map(picture).collect(),
        )
    }

    #[track_caller]
    pub fn fails(&self, tool: &str, args: Value) -> Failure {
        match self.call(tool, args.clone()) {
            Ok(output) => panic!("{tool} {args} should fail, and gave {output}"),
            Err(failure) => failure,
        }
    }

    /// Starts a pipeline that has to play, and returns its id.
    #[track_caller]
    pub fn start(&self, pipeline: &str) -> String {
        let started = self.ok("start_pipeline", json!({"pipeline": pipeline, "wait_ms": 30_000}));
        assert_eq!(started["state"], "playing", "{pipeline}: {started}");
        started["instance_id"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub fn status(&self, id: &str) -> Value {
        self.ok("pipeline_status", json!({"instance_id": id}))
    }

    /// Polls the status until it fits.
    #[track_caller]
    pub fn status_until(&self, id: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + DEADLINE;
        loop {
            let status = self.status(id);
            if fits(&status) {
                return status;
            }
            assert!(Instant::now() < end, "{id}: no {what}: {status:#}");
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }

    /// Closes the toolbox and opens it again, as a restart of the service does.
    pub fn reopen(&mut self) {
        self.close();
        self.toolbox = Some(open(&self.config));
    }

    pub fn close(&mut self) {
        let closed = self.toolbox.take().unwrap().close();
        assert!(closed.is_clean(), "{closed:?}");
    }

    /// Opens the toolbox after `close`.
    pub fn open(&mut self) {
        self.toolbox = Some(open(&self.config));
    }
}

/// Opens a toolbox whose processes are those of `support/role.rs`.
pub fn harness(config: Value) -> Result<Harness, Refused> {
    testing::role_host(env!("CARGO_BIN_EXE_gstreamer-role"));
    let opened = Harness::open::<Gstreamer>(config);
    opened.map(|toolbox| toolbox.with_deadline(DEADLINE))
}

fn open(config: &Value) -> Harness {
    harness(config.clone()).unwrap()
}

/// Builds the misbehaving elements, and makes the toolbox's processes find them, in a registry of their own.
pub fn faulty() {
    static FOUND: OnceLock<()> = OnceLock::new();
    FOUND.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faulty");
        std::fs::create_dir_all(&folder).unwrap();
        let registry = folder.join("registry.bin");
        // Other tests may do the same: each file comes whole by its rename.
        let fresh = tempfile::tempdir_in(&folder).unwrap();
        let built = build_faulty(fresh.path());
        let plugin = folder.join("plugins/libgstfaulty.so");
        std::fs::create_dir_all(plugin.parent().unwrap()).unwrap();
        if std::fs::read(&plugin).ok() != std::fs::read(&built).ok() {
            std::fs::rename(&built, &plugin).unwrap();
        }
        let cache = std::env::var("HOME").map(|home| {
            let name = format!("registry.{}.bin", std::env::consts::ARCH);
            Path::new(&home).join(".cache/gstreamer-1.0").join(name)
        });
        // Without a known one, the registry is built anew.
        let copy = fresh.path().join("registry.bin");
        if let Ok(cache) = cache
            && !registry.exists()
            && std::fs::copy(cache, &copy).is_ok()
        {
            std::fs::rename(&copy, &registry).unwrap();
        }
        testing::role_env("GST_PLUGIN_PATH", plugin.parent().unwrap());
        testing::role_env("GST_REGISTRY", registry);
    });
}

/// Compiles `fixtures/faulty.c` into a folder.
pub fn build_faulty(folder: &Path) -> PathBuf {
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "gstreamer-1.0"])
        .output()
        .expect("pkg-config is needed");
    let flags = String::from_utf8(flags.stdout).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/faulty.c");
    let plugin = folder.join("libgstfaulty.so");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-o"])
        .arg(&plugin)
        .arg(source)
        .args(flags.split_whitespace())
        .output()
        .expect("a C compiler is needed");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    plugin
}
