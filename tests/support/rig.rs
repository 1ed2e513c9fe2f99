//! A manager over a private folder of fixtures.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::{self, Engine};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use host::{
    Drain, Greeter, Limits, Live, LiveToolbox, Manager, ReloadReport, Settings, State, ToolboxConfig,
    ToolboxSettings,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::fixture::{self, FixtureFolder, Recorder, within};

pub struct Rig {
    pub fixtures: FixtureFolder,
    pub manager: Manager,
    pub seen: Arc<Recorder>,
    pub drains: Arc<Drains>,
    pub published: Arc<Mutex<Vec<Arc<Live>>>>,
    pub configs: Arc<Mutex<HashMap<String, ToolboxSettings>>>,
    changed: Arc<Notify>,
    runs: std::sync::atomic::AtomicU64,
}

/// An engine that leases the copies as in the service, and the manager's requests to it.
pub struct Drains {
    pub engine: Arc<Engine>,
    pub asked: Mutex<Vec<(String, u64)>>,
    pub closed: Mutex<Vec<(String, u64)>>,
    changed: Notify,
}

impl Default for Drains {
    fn default() -> Self {
        Self {
            engine: Arc::new(Engine::new(1, HashMap::new())),
            asked: Mutex::default(),
            closed: Mutex::default(),
            changed: Notify::new(),
        }
    }
}

impl Drains {
    fn attach(&self, live: &Live) {
        for toolbox in live
            .toolboxes
            .iter()
            .filter(|toolbox| toolbox.state == State::Ready)
        {
            let limits = engine::Limits::default();
            self.engine
                .attach(&toolbox.id, toolbox.generation, toolbox.toolbox.clone(), limits);
        }
    }

    /// Waits until this many copies are closed.
    pub async fn until_closed(&self, copies: usize) {
        within(async {
            loop {
                let changed = self.changed.notified();
                if self.closed.lock().unwrap().len() >= copies {
                    return;
                }
                changed.await;
            }
        })
        .await;
    }
}

impl Drain for Drains {
    fn drain(&self, toolbox_id: &str, generation: u64, limit: Duration) -> BoxFuture<'static, ()> {
        let (engine, toolbox_id) = (Arc::clone(&self.engine), toolbox_id.to_owned());
        self.asked.lock().unwrap().push((toolbox_id.clone(), generation));
        async move { engine.drain(&toolbox_id, generation, limit).await }.boxed()
    }

    fn closed(&self, toolbox_id: &str, generation: u64) {
        self.engine.detach(toolbox_id, generation);
        self.closed
            .lock()
            .unwrap()
            .push((toolbox_id.to_owned(), generation));
        self.changed.notify_waiters();
    }
}

impl Rig {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let fixtures = FixtureFolder::new();
        let configs: Arc<Mutex<HashMap<String, ToolboxSettings>>> = Arc::default();
        let mut settings = Settings::new(
            vec![fixtures.path().to_owned()],
            Greeter::with_program(env!("CARGO_BIN_EXE_ovos-tools")),
        );
        let stage = fixtures.path().join(".stage");
        std::fs::create_dir(&stage).unwrap();
        settings.stage_dirs = vec![stage];
        let configs_of = Arc::clone(&configs);
        settings.config = Arc::new(move |id| {
            let config = configs_of.lock().unwrap().get(id).cloned().unwrap_or_default();
            let limits = fixture::opening("{}").limits;
            // Limits that a test does not set are generous.
            let limits = if config.limits == Limits::default() {
                limits
            } else {
                config.limits
            };
            Ok(ToolboxSettings { limits, ..config })
        });
        change(&mut settings);
        let seen = Recorder::new();
        let drains = Arc::new(Drains::default());
        let published: Arc<Mutex<Vec<Arc<Live>>>> = Arc::default();
        let sink = Arc::clone(&published);
        let changed = Arc::new(Notify::new());
        let wake = Arc::clone(&changed);
        let shared_drains = Arc::clone(&drains);
        let publish = Arc::new(move |live: Arc<Live>| {
            shared_drains.attach(&live);
            sink.lock().unwrap().push(live);
            wake.notify_waiters();
        });
        let manager = Manager::new(settings, seen.clone(), drains.clone(), publish).unwrap();
        Self {
            fixtures,
            manager,
            seen,
            drains,
            published,
            configs,
            changed,
            runs: 1.into(),
        }
    }

    /// A well-behaved toolbox of this id and version.
    pub fn add(&self, id: &str, version: &str, more: &[(&str, &str)]) -> PathBuf {
        let (id_text, version_text) = (format!("\"{id}\""), format!("\"{version}\""));
        let defines = [
            &[("ID", id_text.as_str()), ("VERSION", version_text.as_str())],
            more,
        ]
        .concat();
        self.fixtures.build_as(id, "well_behaved", &defines)
    }

    pub fn configure(&self, id: &str, section: &Value) {
        self.obey(
            id,
            ToolboxConfig {
                own: section.as_object().unwrap().clone(),
                ..ToolboxConfig::default()
            },
        );
    }

    pub fn obey(&self, id: &str, toolbox: ToolboxConfig) {
        let config = ToolboxSettings {
            toolbox,
            ..ToolboxSettings::default()
        };
        self.configs.lock().unwrap().insert(id.to_owned(), config);
    }

    pub async fn reload(&self) -> ReloadReport {
        within(self.manager.reload()).await
    }

    pub fn live(&self) -> Arc<Live> {
        self.published.lock().unwrap().last().cloned().unwrap_or_default()
    }

    /// Waits for a snapshot.
    pub async fn published_until(&self, fits: impl Fn(&Live) -> bool) {
        within(async {
            loop {
                let changed = self.changed.notified();
                if fits(&self.live()) {
                    return;
                }
                changed.await;
            }
        })
        .await;
    }

    #[track_caller]
    pub fn get(&self, id: &str) -> Arc<LiveToolbox> {
        Arc::clone(
            self.live()
                .get(id)
                .unwrap_or_else(|| panic!("toolbox {id} is not live: {:?}", self.live())),
        )
    }

    /// The version that answers.
    pub async fn version(&self, id: &str) -> String {
        self.version_of(&self.get(id)).await
    }

    pub async fn version_of(&self, live: &LiveToolbox) -> String {
        let run = self.runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        fixture::output(&*live.toolbox, run).await["version"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub async fn output(&self, id: &str) -> Value {
        let run = self.runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let toolbox = Arc::clone(&self.get(id).toolbox);
        fixture::output(&*toolbox, run).await
    }
}

/// A report as one line, for comparison.
pub fn changes(report: &ReloadReport) -> Value {
    json!({
        "added": report.added,
        "removed": report.removed,
        "replaced": report.replaced,
        "unchanged": report.unchanged,
        "broken": report.broken.len(),
    })
}
