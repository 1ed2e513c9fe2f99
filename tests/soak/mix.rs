//! Random disturbances of the calls: crashes, reloads, stops, cancels and another bus.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::callers::Pace;
use crate::support::client::Client;
use crate::support::figures::{Figures, Held};
use crate::support::fixture::FixtureFolder;
use crate::support::process::{DEADLINE, Process};
use crate::support::scene::{Scene, ready};
use crate::support::service::BusKind;
use crate::support::status::{pid, toolbox};
use crate::support::versions::builds;

/// Toolboxes that end when their tool is called.
const CRASHING: [&str; 4] = ["aborts", "segfaults", "exits", "closes_fds"];

/// How much more the service may use at the end than at the start. Allocators keep freed memory, more of it with more
/// threads.
const SLACK: Held = Held {
    files: 12,
    threads: 6,
    memory: 16 << 10,
};

/// The service, its bus and a client that disturbs it.
pub(crate) struct Stage {
    scene: Scene,
    bus: Process,
    service: Process,
    client: Client,
    fixtures: FixtureFolder,
    builds: Vec<Vec<u8>>,
    random: fastrand::Rng,
    steps: BTreeMap<&'static str, usize>,
    asked: usize,
}

impl Stage {
    pub(crate) fn new(seed: u64) -> Self {
        let fixtures = FixtureFolder::new();
        for fixture in CRASHING {
            let id = format!("\"{fixture}\"");
            fixtures.build_as(fixture, fixture, &[("ID", &id)]);
        }
        let builds: Vec<Vec<u8>> = builds().into_iter().map(|(_, content)| content).collect();
        let scene = Scene::new(&json!({}));
        scene.configure(
            &json!({ "max_failures": 0, "on_bus_loss_ms": 60_000, "operator_tools": true }),
            &json!({}),
        );
        let bus = scene.bus(BusKind::Embedded);
        let mut client = Client::connect(scene.port).in_session("mix");
        let mut stage = {
            put(&fixtures, "testbed", &builds[0]);
            let plugins = fixtures.path().to_str().unwrap();
            let mut service = scene.ours("service", &["serve", "--plugins", plugins]);
            ready(&mut service, &mut client);
            Self {
                scene,
                bus,
                service,
                client,
                fixtures,
                builds,
                random: fastrand::Rng::with_seed(seed),
                steps: BTreeMap::new(),
                asked: 0,
            }
        };
        stage.all_ready();
        stage
    }

    pub(crate) fn port(&self) -> u16 {
        self.scene.port
    }

    /// The steps so far.
    pub(crate) fn done(&self) -> Done<'_> {
        Done(&self.steps)
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures::of(self.service.pid())
    }

    /// Makes one random step.
    pub(crate) fn step(&mut self, pace: &Pace) {
        let what = match self.random.u8(..20) {
            0..=6 => self.crash(),
            7 | 8 => self.kill_testbed(),
            9 | 10 => self.replace_testbed(),
            11..=14 => self.emergency_stop(),
            15 | 16 => self.cancel(),
            17 | 18 => self.user_stop(),
            _ => self.another_bus(pace),
        };
        *self.steps.entry(what).or_default() += 1;
        let strays = self.client.strays("mix-");
        assert!(strays.is_empty(), "answered twice, or not looked at: {strays:?}");
    }

    fn call(&mut self, toolbox: &str, tool: &str, args: &Value) -> String {
        self.asked += 1;
        let call_id = format!("mix-{}", self.asked);
        self.client.send(
            "ovos.tools.invoke",
            &json!({ "name": tool, "args": args, "call_id": call_id, "toolbox_id": toolbox }),
        );
        call_id
    }

    #[track_caller]
    fn answer(&mut self, call_id: &String) -> Value {
        self.client.until_answered([call_id]);
        self.client.settled(call_id)
    }

    /// Reloads until every toolbox serves, because the delay of a restart grows with every crash.
    fn all_ready(&mut self) {
        let end = Instant::now() + DEADLINE;
        loop {
            self.client.ask("ovos.tools.reload", &json!({}));
            let status = self.client.ask("ovos.tools.status", &json!({}));
            let toolboxes = status["toolboxes"].as_array().expect("a list of toolboxes");
            if toolboxes.len() == CRASHING.len() + 1
                && toolboxes.iter().all(|toolbox| toolbox["state"] == "ready")
            {
                return;
            }
            assert!(Instant::now() < end, "not ready: {}", status["toolboxes"]);
        }
    }

    fn crash(&mut self) -> &'static str {
        let which = *self.random.choice(CRASHING.iter()).unwrap();
        let call_id = self.call(which, "work", &json!({}));
        let error = self.answer(&call_id)["error"].clone();
        assert!(
            error
                .as_str()
                .is_some_and(|error| error.starts_with("ToolboxCrashed")),
            "{which}: {error}"
        );
        self.all_ready();
        "crashes"
    }

    fn kill_testbed(&mut self) -> &'static str {
        let testbed = toolbox(&mut self.client, "testbed");
        _ = kill_process(pid(&testbed).expect("testbed has a process"), Signal::KILL);
        let end = Instant::now() + DEADLINE;
        let testbed = loop {
            self.all_ready();
            let found = toolbox(&mut self.client, "testbed");
            if found["pid"] != testbed["pid"] {
                break found;
            }
            assert!(Instant::now() < end, "its death was not noticed: {found}");
        };
        // It may have moved.
        if testbed["latched"] == true {
            self.resume(&testbed["stop_id"]);
        }
        "kills of testbed"
    }

    fn replace_testbed(&mut self) -> &'static str {
        let next = self.random.usize(..self.builds.len());
        put(&self.fixtures, "testbed", &self.builds[next]);
        self.all_ready();
        "replacements of testbed"
    }

    fn emergency_stop(&mut self) -> &'static str {
        let motion = json!({ "steps": 1000, "step_ms": 2, "subsystems": ["left_arm", "gantry"] });
        let call_id = self.call("testbed", "assemble", &motion);
        let moment = Instant::now() + Duration::from_millis(self.random.u64(..100));
        self.client.read_until(moment);
        let start = Instant::now();
        let stopped = self
            .client
            .ask("ovos.tools.stop", &json!({ "toolbox_id": "testbed" }));
        let took = start.elapsed();
        assert_eq!(stopped["toolboxes"][0]["ok"], true, "{stopped}");
        let before = self.scene.motors().len();
        let answer = self.answer(&call_id);
        assert!(
            answer["result"]["success"] != true,
            "{answer}; the stop took {took:?} and said {stopped}; the answer came {:?} after it was sent",
            start.elapsed()
        );
        let refused = self.client.invoke("assemble", &json!({}));
        assert!(
            refused["error"]
                .as_str()
                .is_some_and(|error| error.contains("emergency stop")),
            "{refused}"
        );
        let after = self.scene.motors();
        assert!(
            !after[before..]
                .iter()
                .any(|motor| matches!(motor.kind.as_str(), "start" | "step")),
            "it moves after a stop: {:?}",
            &after[before..]
        );
        self.resume(&stopped["toolboxes"][0]["stop_id"]);
        "emergency stops"
    }

    fn resume(&mut self, stop_id: &Value) {
        let lift = json!({ "toolbox_id": "testbed", "stop_id": stop_id });
        let resumed = self.client.ask("ovos.tools.resume", &lift);
        assert_eq!(resumed["toolboxes"][0]["ok"], true, "{resumed}");
    }

    fn cancel(&mut self) -> &'static str {
        let call_id = self.call("testbed", "slow", &json!({ "seconds": 60 }));
        self.client.until_call(&call_id, "running");
        let cancelled = self
            .client
            .ask("ovos.tools.cancel", &json!({ "call_id": call_id }));
        assert_eq!(cancelled["cancelled"], true, "{cancelled}");
        let answer = self.answer(&call_id);
        assert!(
            answer["error"]
                .as_str()
                .is_some_and(|error| error.starts_with("CancelledError")),
            "{answer}"
        );
        "cancels"
    }

    fn user_stop(&mut self) -> &'static str {
        let calls: Vec<String> = (0..3)
            .map(|_| self.call("testbed", "slow", &json!({ "seconds": 60 })))
            .collect();
        self.client.until_call(&calls[2], "running");
        self.client.send("ovos.stop", &json!({}));
        for call_id in &calls {
            let answer = self.answer(call_id);
            assert!(
                answer["error"]
                    .as_str()
                    .is_some_and(|error| error.starts_with("CancelledError")),
                "{answer}"
            );
        }
        "stops by the user"
    }

    /// The bus is killed and replaced while calls run that end before and after that. Nothing else is under way:
    /// messages that a bus has accepted and not passed on are lost, and no client can know that.
    fn another_bus(&mut self, pace: &Pace) -> &'static str {
        let _quiet = pace.pause();
        let calls: Vec<String> = (0..20)
            .map(|_| {
                let seconds = 0.5 + self.random.f64();
                self.call("testbed", "slow", &json!({ "seconds": seconds }))
            })
            .collect();
        self.client.until_call(&calls[19], "running");
        self.bus.kill();
        let away = Instant::now() + Duration::from_millis(self.random.u64(..300));
        while Instant::now() < away {
            std::thread::park_timeout(away.saturating_duration_since(Instant::now()));
        }
        // A bus stores nothing for a disconnected client, so the client reconnects before the service.
        self.service.signal(Signal::STOP);
        self.bus = self.scene.bus_started(BusKind::Embedded);
        self.client.reconnect();
        self.service.signal(Signal::CONT);
        pace.new_bus();
        for call_id in &calls {
            let answer = self.answer(call_id);
            assert!(
                answer["result"]["seconds"].is_f64(),
                "{answer}\n{}",
                self.service.log()
            );
        }
        "restarts of the bus"
    }

    /// The resources once nothing is under way. With `start`, waits until they are no larger than at the start, and
    /// fails otherwise.
    pub(crate) fn settle(&mut self, start: Option<&Figures>) -> Figures {
        self.all_ready();
        let end = Instant::now() + DEADLINE;
        loop {
            let status = self.client.ask("ovos.tools.status", &json!({}));
            let figures = self.figures();
            // An additional child is one that is still being closed.
            let idle = status["calls"] == json!([]) && figures.processes == CRASHING.len() + 1;
            let Some(start) = start else {
                if idle {
                    return figures;
                }
                assert!(Instant::now() < end, "not idle: {} {figures}", status["calls"]);
                continue;
            };
            let fits = figures.service.files <= start.service.files + SLACK.files
                && figures.service.threads <= start.service.threads + SLACK.threads
                && figures.service.memory <= start.service.memory + SLACK.memory
                && figures.children.files <= start.children.files + SLACK.files
                && figures.children.threads <= start.children.threads + SLACK.threads
                && figures.children.memory <= start.children.memory + SLACK.memory;
            if idle && fits {
                return figures;
            }
            assert!(
                Instant::now() < end,
                "more is held than at the start:\n{start}\n{figures}\n{}",
                self.service.log()
            );
            std::thread::park_timeout(Duration::from_millis(200));
        }
    }

    /// Checks that nothing was answered twice.
    pub(crate) fn check_books(&mut self) {
        self.client.ask("ovos.tools.status", &json!({}));
        let strays = self.client.strays("mix-");
        assert!(strays.is_empty(), "answered twice: {strays:?}");
    }

    /// Checks that the log reports no bug of the service.
    pub(crate) fn check_log(&self) {
        let log = self.service.output();
        assert!(!log.contains("panicked at src"), "{}", self.service.log());
    }
}

/// Written beside and renamed, as an installer does.
fn put(fixtures: &FixtureFolder, name: &str, content: &[u8]) {
    let fresh = fixtures.path().join(".fresh");
    fs::write(&fresh, content).unwrap();
    fs::rename(fresh, fixtures.path().join(format!("{name}.so"))).unwrap();
}

/// The number of steps of each kind.
pub(crate) struct Done<'a>(&'a BTreeMap<&'static str, usize>);

impl fmt::Display for Done<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: Vec<String> = self
            .0
            .iter()
            .map(|(what, times)| format!("{times} {what}"))
            .collect();
        f.write_str(&steps.join(", "))
    }
}

impl fmt::Debug for Done<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
