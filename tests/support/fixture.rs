//! Builds the C fixtures of `tests/hostile` and drives them without a service.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::{Halt, RunId, RunResult, Toolbox};
use futures_util::future::BoxFuture;
use host::{Greeter, HostServices, Hosted, Limits, Open, Origin, PluginFile, ProcessSettings, Request};
use ovos_toolbox_wire::{
    ActionIdentity, CallIdentity, CallOutcome, Completion, Effect, Event, Manifest, Object, Report, Start,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The longest wait of a test, which fails then.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// A private directory in which fixtures are built.
pub struct FixtureFolder {
    pub dir: TempDir,
}

impl FixtureFolder {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Compiles `tests/hostile/<fixture>.c` into `<name>.so` of this directory, by write and rename.
    pub fn build_as(&self, name: &str, fixture: &str, defines: &[(&str, &str)]) -> PathBuf {
        let made = self.path().join(format!(".{name}.new"));
        self.compile(
            &made,
            fixture,
            defines,
            &["-shared", "-fPIC", "-fvisibility=hidden"],
        );
        let path = self.path().join(format!("{name}.so"));
        std::fs::rename(&made, &path).unwrap();
        path
    }

    /// Compiles `tests/hostile/<fixture>.c` into a program.
    pub fn program(&self, fixture: &str, defines: &[(&str, &str)]) -> PathBuf {
        let path = self.path().join(fixture);
        self.compile(&path, fixture, defines, &[]);
        path
    }

    fn compile(&self, made: &Path, fixture: &str, defines: &[(&str, &str)], more: &[&str]) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = root.join(format!("tests/hostile/{fixture}.c"));
        // The C++ part of a fixture is in a file of the same name.
        let cpp = Some(source.with_extension("cpp")).filter(|cpp| cpp.exists());
        let libraries = cpp.is_some().then_some("-lstdc++");
        let out = Command::new("cc")
            .args(["-pthread", "-O1", "-g0", "-Wall", "-Wno-unused-function"])
            .args(more)
            .args(defines.iter().map(|(key, value)| format!("-D{key}={value}")))
            .arg("-I")
            .arg(root.join("toolboxes/abi"))
            .arg("-I")
            .arg(root.join("tests/hostile"))
            .arg("-o")
            .arg(made)
            .arg(source)
            .args(cpp)
            .args(libraries)
            .output()
            .expect("a C compiler (cc) is needed for the fixtures: apt install gcc");
        assert!(
            out.status.success(),
            "cc {fixture}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
    }

    pub fn build(&self, fixture: &str, defines: &[(&str, &str)]) -> PathBuf {
        self.build_as(fixture, fixture, defines)
    }

    /// Builds, loads and opens a fixture.
    pub async fn open(&self, fixture: &str) -> (Hosted, Arc<Recorder>) {
        self.open_with(fixture, &[], "{}").await
    }

    pub async fn open_with(
        &self,
        fixture: &str,
        defines: &[(&str, &str)],
        config: &str,
    ) -> (Hosted, Arc<Recorder>) {
        let path = self.build(fixture, defines);
        Self::open_file(&path, opening(config)).await
    }

    /// As [`FixtureFolder::open`], with other limits.
    pub async fn open_within(
        &self,
        fixture: &str,
        change: impl FnOnce(&mut Limits),
    ) -> (Hosted, Arc<Recorder>) {
        let mut open = opening("{}");
        change(&mut open.limits);
        Self::open_file(&self.build(fixture, &[]), open).await
    }

    async fn open_file(path: &Path, open: Open) -> (Hosted, Arc<Recorder>) {
        let recorder = Recorder::new();
        let (process, manifest) = process_of(path).await;
        let toolbox = Hosted::in_child(process, manifest, open, recorder.clone()).await;
        (toolbox.unwrap(), recorder)
    }
}

/// The settings of a process that hosts a file, and the file's manifest.
pub async fn process_of(path: &Path) -> (ProcessSettings, Arc<Manifest>) {
    let program = env!("CARGO_BIN_EXE_ovos-tools");
    let mut greeter = Greeter::with_program(program);
    greeter.limit = DEADLINE;
    let manifest = host::greet(path, path, &greeter).await.unwrap();
    let process = ProcessSettings {
        program: program.into(),
        file: PluginFile::lent(path.to_owned()).into(),
        env: BTreeMap::new(),
        memory_mb: None,
        confine: None,
        hello: DEADLINE,
        allow_sha256: Vec::new(),
        stop: CancellationToken::new(),
    };
    (process, Arc::new(manifest))
}

pub fn opening(config: &str) -> Open {
    Open {
        generation: 1,
        config: config.to_owned(),
        stop_epoch: 0,
        // A loaded machine may take longer than the default of 200 ms to wake a thread.
        limits: Limits {
            halt: DEADLINE,
            silence: DEADLINE,
            ..Limits::default()
        },
    }
}

/// Keeps the events and requests of toolboxes.
#[derive(Default)]
pub struct Recorder {
    events: Mutex<Vec<(Origin, Event)>>,
    requests: Mutex<Vec<Request>>,
    changed: Notify,
}

impl Recorder {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn count(&self, kind: &str) -> usize {
        self.events
            .lock()
            .unwrap()
            .iter()
            .filter(|(_, e)| e.kind == kind)
            .count()
    }

    pub fn events(&self) -> Vec<(Origin, Event)> {
        self.events.lock().unwrap().clone()
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until an event of this kind came `times` times.
    pub async fn wait_for(&self, kind: &str, times: usize) {
        let seen = async {
            loop {
                let changed = self.changed.notified();
                if self.count(kind) >= times {
                    return;
                }
                changed.await;
            }
        };
        if tokio::time::timeout(DEADLINE, seen).await.is_err() {
            let mut kinds: Vec<String> = self.events().into_iter().map(|(_, event)| event.kind).collect();
            kinds.sort();
            kinds.dedup();
            panic!(
                "event {kind:?} came {} times, not {times}; kinds seen: {kinds:?}",
                self.count(kind)
            );
        }
    }
}

impl HostServices for Recorder {
    fn event(&self, origin: &Origin, event: Event) {
        self.events.lock().unwrap().push((origin.clone(), event));
        self.changed.notify_waiters();
    }

    fn request(&self, _: &Origin, request: Request) {
        self.requests.lock().unwrap().push(request);
        self.changed.notify_waiters();
    }
}

/// An action with one parameter, which tells a fixture what to do.
pub fn action(word: &str, stop_epoch: u64) -> Start {
    Start {
        call: CallIdentity {
            call_id: "c".into(),
            stop_epoch,
            content_dir: Some(String::new()),
            ..CallIdentity::default()
        },
        action: ActionIdentity {
            id: "work".into(),
            name: "work".into(),
            subsystems: Vec::new(),
            params: json!({word: true}).as_object().unwrap().clone(),
            effect: Effect::Read,
        },
        inputs: Object::new(),
    }
}

pub fn start(toolbox: &dyn Toolbox, run: u64, word: &str) -> BoxFuture<'static, RunResult> {
    toolbox.start(RunId(run), action(word, 0), None)
}

/// Runs one action to its end.
pub async fn run(toolbox: &dyn Toolbox, run: u64, word: &str) -> RunResult {
    within(start(toolbox, run, word)).await
}

/// The output of one action.
pub async fn output(toolbox: &dyn Toolbox, id: u64) -> Value {
    match run(toolbox, id, "go").await {
        RunResult::Reported(Completion::Output(output)) => output,
        other => panic!("expected an output, got {other:?}"),
    }
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("the end within the deadline")
}

pub fn all(emergency: bool, stop_epoch: u64) -> Halt {
    Halt {
        subsystems: vec!["all".to_owned()],
        emergency,
        stop_epoch,
    }
}

/// The failure of a run, as `Kind: message`.
#[track_caller]
pub fn error(ended: RunResult) -> String {
    match ended {
        RunResult::Reported(Completion::Error(failure)) => failure.to_string(),
        other => panic!("expected an error, got {other:?}"),
    }
}

/// The report of a call without actions that completed.
pub fn completed() -> Report {
    Report {
        outcome: CallOutcome::Completed,
        duration_ms: 1,
        actions: Vec::new(),
    }
}
