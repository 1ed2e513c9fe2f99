//! A toolbox in memory, scripted per action, that logs every request.
//!
//! It stands in for the plugin side of `engine::Toolbox` and keeps that side's contract: each run ends once, and no
//! action is started under an epoch older than the last emergency halt. Read [`MemoryToolbox`].

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Action, Completion, Conclusion, Failure, Object, Report, Start};
use ovos_tools_engine::{Halt, NoAnswer, ProgressSink, RunId, RunResult, Toolbox};
use serde_json::json;
use tokio::sync::watch;

use crate::script::{Answer, OnCancel, Script, Then, Tool};

/// How long a test waits for an expected event, in the runtime's (paused) time.
pub(crate) const DEADLINE: Duration = Duration::from_secs(3600);

/// A request to the toolbox, or its result; the index in the log is its time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    Planned(String),
    Started {
        call: String,
        action: String,
    },
    /// A start with an epoch older than the last emergency halt.
    Dropped {
        action: String,
    },
    Cancelled {
        action: String,
    },
    /// The toolbox reported the end of the run.
    Ended {
        action: String,
    },
    /// The engine dropped the run's future before its end.
    GivenUp {
        action: String,
    },
    Halted {
        subsystems: Vec<String>,
        emergency: bool,
    },
    Concluded(String),
    Resumed,
}

type Hook = Box<dyn FnMut(&Event) + Send>;

struct Run {
    action: String,
    cancelled: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    log: Vec<Event>,
    starts: Vec<Start>,
    runs: HashMap<RunId, Run>,
    seen: HashSet<RunId>,
    epoch: u64,
    sinks: HashMap<String, ProgressSink>,
}

#[derive(Default)]
struct Settings {
    tools: HashMap<String, Tool>,
    scripts: HashMap<String, Script>,
    halt: Answer,
    resume: Answer,
}

/// The toolbox; see the module's head.
pub(crate) struct MemoryToolbox {
    state: Mutex<State>,
    settings: Mutex<Settings>,
    hook: Mutex<Option<Hook>>,
    length: watch::Sender<usize>,
}

impl MemoryToolbox {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            settings: Mutex::default(),
            hook: Mutex::default(),
            length: watch::Sender::new(0),
        })
    }

    // --- the script

    pub(crate) fn tool(&self, name: &str, plan: Vec<Action>) {
        self.settings().tools.entry(name.to_owned()).or_default().plan = Some(plan);
    }

    pub(crate) fn tool_with(&self, name: &str, tool: Tool) {
        self.settings().tools.insert(name.to_owned(), tool);
    }

    /// Scripts every action with this id, or otherwise with this name.
    pub(crate) fn script(&self, action: &str, script: Script) {
        self.settings().scripts.insert(action.to_owned(), script);
    }

    pub(crate) fn halts(&self, answer: Answer) {
        self.settings().halt = answer;
    }

    pub(crate) fn resumes(&self, answer: Answer) {
        self.settings().resume = answer;
    }

    /// Sets a function that is called for every event, on the thread that causes it, while no lock but the hook's own
    /// is held.
    pub(crate) fn hook(&self, hook: impl FnMut(&Event) + Send + 'static) {
        *self.hook.lock().unwrap() = Some(Box::new(hook));
    }

    /// Asks every run to end, as the halt of a real toolbox does.
    pub(crate) fn end_runs(&self) {
        for run in self.state().runs.values() {
            run.cancelled.send_replace(true);
        }
    }

    // --- the log

    pub(crate) fn log(&self) -> Vec<Event> {
        self.state().log.clone()
    }

    pub(crate) fn starts(&self) -> Vec<Start> {
        self.state().starts.clone()
    }

    pub(crate) fn sink(&self, action: &str) -> ProgressSink {
        self.state().sinks[action].clone()
    }

    /// The ids of the started actions, in order.
    pub(crate) fn started(&self) -> Vec<String> {
        let started = |event| match event {
            Event::Started { action, .. } => Some(action),
            _ => None,
        };
        self.log().into_iter().filter_map(started).collect()
    }

    pub(crate) fn halted(&self) -> Vec<(Vec<String>, bool)> {
        let halted = |event| match event {
            Event::Halted {
                subsystems,
                emergency,
            } => Some((subsystems, emergency)),
            _ => None,
        };
        self.log().into_iter().filter_map(halted).collect()
    }

    pub(crate) fn cancelled(&self, action: &str) -> bool {
        self.log().contains(&Event::Cancelled {
            action: action.to_owned(),
        })
    }

    pub(crate) fn place(&self, event: &Event) -> usize {
        let log = self.log();
        log.iter()
            .position(|e| e == event)
            .unwrap_or_else(|| panic!("{event:?} is not in {log:#?}"))
    }

    /// Waits until `found` is true for the log.
    pub(crate) async fn until(&self, what: &str, mut found: impl FnMut(&[Event]) -> bool) {
        let mut length = self.length.subscribe();
        let waited = tokio::time::timeout(DEADLINE, async {
            while !found(&self.log()) {
                length.changed().await.unwrap();
            }
        });
        assert!(
            waited.await.is_ok(),
            "never saw {what}; the log: {:#?}",
            self.log()
        );
    }

    pub(crate) async fn until_started(&self, wanted: &str) {
        let started = |event: &Event| matches!(event, Event::Started { action, .. } if action == wanted);
        self.until(&format!("a start of {wanted}"), |log| log.iter().any(started))
            .await;
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn note(&self, event: Event) {
        let length = {
            let mut state = self.state();
            state.log.push(event.clone());
            state.log.len()
        };
        // A hook may cause events itself, for example by a stop; it is not called for those.
        if let Ok(mut hook) = self.hook.try_lock()
            && let Some(hook) = hook.as_mut()
        {
            hook(&event);
        }
        self.length.send_replace(length);
    }
}

/// Logs when the engine drops a run that has not ended.
struct Watch {
    toolbox: Arc<MemoryToolbox>,
    action: String,
    ended: bool,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.ended {
            let action = std::mem::take(&mut self.action);
            self.toolbox.note(Event::GivenUp { action });
        }
    }
}

/// The engine owns a pointer to the toolbox, and a run outlives the call of `start`, so both share the toolbox.
pub(crate) struct Shared(pub(crate) Arc<MemoryToolbox>);

impl Toolbox for Shared {
    fn plan<'a>(
        &'a self,
        tool: &'a str,
        _args: &'a Object,
    ) -> BoxFuture<'a, Result<Option<ovos_toolbox_wire::Plan>, NoAnswer>> {
        let tool_script = self.0.settings().tools.get(tool).cloned().unwrap_or_default();
        self.0.note(Event::Planned(tool.to_owned()));
        async move {
            if !tool_script.plan_takes.is_zero() {
                tokio::time::sleep(tool_script.plan_takes).await;
            }
            if tool_script.plan_fails {
                return Err(Failure::new("ValueError", "cannot plan this").into());
            }
            Ok(tool_script.plan.map(Into::into))
        }
        .boxed()
    }

    fn start(
        &self,
        run: RunId,
        start: Start,
        progress: Option<ProgressSink>,
    ) -> BoxFuture<'static, RunResult> {
        let (id, name) = (start.action.id.clone(), start.action.name.clone());
        let script = {
            let settings = self.0.settings();
            let script = settings.scripts.get(&id).or_else(|| settings.scripts.get(&name));
            script.cloned().unwrap_or_default()
        };
        let (cancel, mut cancelled) = watch::channel(false);
        let stale = {
            let mut state = self.0.state();
            assert!(state.seen.insert(run), "{run:?} was used twice");
            let stale = start.call.stop_epoch < state.epoch;
            if !stale {
                let action = id.clone();
                state.runs.insert(
                    run,
                    Run {
                        action,
                        cancelled: cancel,
                    },
                );
                state.starts.push(start.clone());
                if let Some(progress) = progress {
                    state.sinks.insert(id.clone(), progress);
                }
            }
            stale
        };
        if stale {
            self.0.note(Event::Dropped { action: id });
            return std::future::ready(RunResult::Cancelled).boxed();
        }
        self.0.note(Event::Started {
            call: start.call.call_id,
            action: id.clone(),
        });
        let mut watched = Watch {
            toolbox: self.0.clone(),
            action: id.clone(),
            ended: false,
        };
        async move {
            let own = async {
                match script.takes {
                    Some(takes) if takes.is_zero() => {}
                    Some(takes) => tokio::time::sleep(takes).await,
                    None => std::future::pending().await,
                }
                match script.then {
                    Then::Complete(output) => RunResult::Reported(Completion::Output(output)),
                    Then::Show(output, content) => RunResult::Shown { output, content },
                    Then::Fail => {
                        RunResult::Reported(Completion::Error(Failure::new("MotorError", "it is stuck")))
                    }
                    Then::Ends => RunResult::Cancelled,
                    Then::Crash => RunResult::Lost(Failure::new("ToolboxCrashed", "signal 11")),
                }
            };
            let cancel = async {
                // The sender is in the table of runs. If it is gone, the run cannot be cancelled.
                if cancelled.wait_for(|asked| *asked).await.is_err() {
                    std::future::pending::<()>().await;
                }
                match script.on_cancel {
                    OnCancel::Ends(after) => {
                        tokio::time::sleep(after).await;
                        RunResult::Cancelled
                    }
                    OnCancel::Fails(after) => {
                        tokio::time::sleep(after).await;
                        RunResult::Reported(Completion::Error(Failure::new("Interrupted", "asked to end")))
                    }
                    OnCancel::Completes(after) => {
                        tokio::time::sleep(after).await;
                        RunResult::Reported(Completion::Output(json!({"late": true})))
                    }
                    OnCancel::Ignores => std::future::pending().await,
                }
            };
            let ended = tokio::select! {
                biased;
                ended = own => ended,
                ended = cancel => ended,
            };
            watched.ended = true;
            watched.toolbox.note(Event::Ended { action: id });
            ended
        }
        .boxed()
    }

    fn cancel(&self, run: RunId) {
        let action = {
            let state = self.0.state();
            let Some(run) = state.runs.get(&run) else { return };
            run.cancelled.send_replace(true);
            run.action.clone()
        };
        self.0.note(Event::Cancelled { action });
    }

    fn conclude<'a>(
        &'a self,
        tool: &'a str,
        _args: &'a Object,
        _report: &'a Report,
    ) -> BoxFuture<'a, Result<Option<Conclusion>, Failure>> {
        let script = self.0.settings().tools.get(tool).cloned().unwrap_or_default();
        self.0.note(Event::Concluded(tool.to_owned()));
        async move {
            if !script.conclude_takes.is_zero() {
                tokio::time::sleep(script.conclude_takes).await;
            }
            Ok(script.conclusion)
        }
        .boxed()
    }

    fn halt(&self, halt: Halt) -> BoxFuture<'static, Result<(), NoAnswer>> {
        if halt.emergency {
            let mut state = self.0.state();
            state.epoch = state.epoch.max(halt.stop_epoch);
        }
        let answer = self.0.settings().halt;
        self.0.note(Event::Halted {
            subsystems: halt.subsystems,
            emergency: halt.emergency,
        });
        answer.answer()
    }

    fn resume(&self) -> BoxFuture<'static, Result<(), NoAnswer>> {
        let answer = self.0.settings().resume;
        self.0.note(Event::Resumed);
        answer.answer()
    }
}
