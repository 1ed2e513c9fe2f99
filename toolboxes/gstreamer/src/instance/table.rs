//! The table of instances.
//!
//! Owns the instances, their devices and files, and the threads; keeps the list on disk up to date. Read [`Table`].

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread::JoinHandle;

use ovos_toolbox_sdk::RoleProcess;
use ovos_toolbox_sdk::prelude::*;
use parking_lot::{Mutex, MutexGuard};

use super::entry::Instance;
use super::process::Input;
use super::record::{Declared, Store};
use super::status::Status;
use crate::config::{Config, Section};
use crate::order::Command;
use crate::report::Phase;
use crate::uses::Uses;

/// State shared by the threads of the instances.
pub(super) struct Table {
    pub(super) config: Arc<Config>,
    /// The configuration as the processes of the pipelines get it.
    pub(super) written: Section,
    pub(super) host: Host,
    pub(super) store: Store,
    /// The tracing subscriber of the runtime, for the threads.
    pub(super) log: tracing::Dispatch,
    pub(super) state: Mutex<State>,
    pub(super) closing: AtomicBool,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) next: u64,
    /// By number, which is the order of their starts.
    pub(super) live: BTreeMap<u64, Arc<Instance>>,
    /// Pipelines that are started with the toolbox but do not run: they ended by themselves, or crashed the
    /// process too often.
    pub(super) kept: Vec<Declared>,
    /// The ended instances, newest last.
    pub(super) over: VecDeque<Status>,
    /// The processes that make a pipeline for a start.
    pub(super) making: Vec<Arc<RoleProcess>>,
    /// Owner of each device and written file.
    pub(super) claims: HashMap<String, u64>,
    /// Threads that are about to end.
    pub(super) leaving: Vec<JoinHandle<()>>,
}

/// An instance without a thread, and the receiver for its thread.
pub(super) struct EnlistedInstance {
    pub(super) instance: Arc<Instance>,
    pub(super) waiting: Receiver<Input>,
}

/// Reason of an instance that was stopped by request.
pub(super) const STOPPED: &str = "stopped";
/// Greatest number of remembered ended instances.
const MOST_OVER: usize = 32;

impl Table {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// An ended instance, unless a running one has the same name.
    pub(super) fn over(&self, id: &str) -> Option<Status> {
        let state = self.lock();
        if state
            .live
            .values()
            .any(|live| live.id() == id || live.name() == id)
        {
            return None;
        }
        state.over.iter().rfind(|over| over.summary.is(id)).cloned()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    pub(super) fn check_room(&self, name: Option<&str>) -> Result<(), ToolError> {
        self.check_open()?;
        Self::room(&self.lock(), &self.config, name)
    }

    pub(super) fn check_open(&self) -> Result<(), ToolError> {
        if self.is_closing() {
            return Err(ToolError::busy("the toolbox is closing"));
        }
        Ok(())
    }

    pub(super) fn room(state: &State, config: &Config, name: Option<&str>) -> Result<(), ToolError> {
        if state.live.len() >= config.max_instances {
            return Err(ToolError::busy(format!(
                "`max_instances` is reached: {} pipelines are running; stop one of them",
                state.live.len()
            )));
        }
        // A name that is another one's id would mean both.
        let has = |instance: &&Arc<Instance>, name: &str| instance.name() == name || instance.id() == name;
        let taken = name.and_then(|name| state.live.values().find(|instance| has(instance, name)));
        match taken {
            Some(owner) => Err(in_use(&format!("the name {}", owner.name()), owner)),
            None => Ok(()),
        }
    }

    /// Claims devices and files for an instance, all or none.
    pub(super) fn claim(&self, instance: &Instance, uses: &Uses) -> Result<(), ToolError> {
        let mut state = self.lock();
        state.claims.retain(|_, owner| *owner != instance.number);
        Self::claim_in(&mut state, instance.number, uses)
    }

    pub(super) fn claim_in(state: &mut State, number: u64, uses: &Uses) -> Result<(), ToolError> {
        let wanted: Vec<(String, String)> = uses
            .devices
            .iter()
            .map(|device| (device.clone(), format!("the device {device}")))
            .chain(uses.writes.iter().map(|path| {
                let path = path.display().to_string();
                (path.clone(), format!("the file {path}"))
            }))
            .collect();
        for (claim, what) in &wanted {
            let owner = state.claims.get(claim).filter(|owner| **owner != number);
            if let Some(owner) = owner.and_then(|owner| state.live.get(owner)) {
                return Err(in_use(what, owner));
            }
        }
        state
            .claims
            .extend(wanted.into_iter().map(|(claim, _)| (claim, number)));
        Ok(())
    }

    /// Claims a file that an instance begins to write.
    pub(super) fn claim_file(&self, instance: &Instance, path: &Path) -> Result<(), ToolError> {
        let uses = Uses {
            writes: [path.to_owned()].into(),
            ..Uses::default()
        };
        let mut state = self.lock();
        if state.claims.contains_key(&path.display().to_string()) {
            return Err(ToolError::busy(format!(
                "{} is being written: give another path",
                path.display()
            )));
        }
        Self::claim_in(&mut state, instance.number, &uses)?;
        instance.lock().writes.push(path.to_owned());
        Ok(())
    }

    /// Gives up a file that was claimed.
    pub(super) fn release_file(&self, instance: &Instance, path: &Path) {
        self.lock().claims.remove(&path.display().to_string());
        instance.lock().writes.retain(|other| other != path);
    }

    /// Adds an instance to the table; `launch` starts its thread.
    pub(super) fn enlist(
        state: &mut State,
        number: u64,
        declared: Declared,
        (inputs, waiting): (SyncSender<Input>, Receiver<Input>),
    ) -> EnlistedInstance {
        state.kept.retain(|kept| kept.name != declared.name);
        let instance = Instance::new(number, declared, inputs);
        state.live.insert(number, Arc::clone(&instance));
        EnlistedInstance { instance, waiting }
    }

    /// Asks an instance to end; at once if the queue is full or `grace` is zero.
    pub(super) fn end(&self, instance: &Instance, grace: Duration) {
        if grace.is_zero() || instance.ask(Command::Stop { grace }, None).is_err() {
            instance.halt();
        }
    }

    /// Removes an ended pipeline from those started with the toolbox. Returns false if there was none. Blocks.
    pub(super) fn strike_off(&self, id: &str) -> bool {
        let struck = {
            let mut state = self.lock();
            let before = state.kept.len();
            state
                .kept
                .retain(|kept| kept.instance_id != id && kept.name != id);
            state.kept.len() < before
        };
        if struck {
            self.save();
        }
        struck
    }

    /// Marks an instance as ended; its thread calls this last. Unless it was stopped, it is started again with the
    /// toolbox if its caller asked for that.
    pub(super) fn retire(&self, instance: &Arc<Instance>, phase: Phase, reason: &str) {
        {
            let mut view = instance.lock();
            view.phase = phase;
            view.reason = Some(reason.to_owned());
        }
        let status = instance.status();
        let error = status.summary.error.clone();
        {
            let mut state = self.lock();
            state.live.remove(&instance.number);
            state.claims.retain(|_, owner| *owner != instance.number);
            let declared = instance.declared();
            if declared.autostart && reason != STOPPED {
                state.kept.push(declared);
            }
            let thread = instance.thread.lock().take();
            state.leaving.extend(thread);
            remember(&mut state, status);
        }
        self.save();
        let severity = if phase == Phase::Failed {
            Severity::Error
        } else {
            Severity::Info
        };
        let finished = instance.lock().finished;
        self.tell(
            "pipeline_ended",
            severity,
            instance,
            json!({"reason": reason, "error": error, "files_finished": finished}),
        );
        instance.phase.send_replace(phase);
    }

    /// Joins the threads that have ended. Blocks only briefly.
    pub(super) fn sweep(&self) {
        let leaving: Vec<JoinHandle<()>> = {
            let mut state = self.lock();
            let (done, still): (Vec<_>, Vec<_>) = std::mem::take(&mut state.leaving)
                .into_iter()
                .partition(JoinHandle::is_finished);
            state.leaving = still;
            done
        };
        for thread in leaving {
            // Panics were caught inside the thread.
            _ = thread.join();
        }
    }

    /// Sends an event about an instance.
    pub(super) fn tell(&self, kind: &str, severity: Severity, instance: &Instance, more: Value) {
        self.send(kind, severity, &instance.id(), &instance.name(), more);
    }

    pub(super) fn send(&self, kind: &str, severity: Severity, id: &str, name: &str, more: Value) {
        let mut data = json!({"instance_id": id, "name": name});
        if let (Some(data), Value::Object(more)) = (data.as_object_mut(), more) {
            data.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
        }
        tracing::info!(instance = id, kind, "pipeline");
        self.host.send(&Event {
            kind: kind.to_owned(),
            severity,
            data: Some(data),
        });
    }

    /// Writes the list on disk. Blocks. A failure is only logged, and the pipelines continue.
    pub(super) fn save(&self) {
        self.write(false);
    }

    pub(super) fn save_closed(&self) {
        self.write(true);
    }

    fn write(&self, closed: bool) {
        let current = || {
            // After a close only the close's own list counts: it includes the instances that are ending now.
            if self.is_closing() && !closed {
                return None;
            }
            let state = self.lock();
            let list: Vec<Declared> = state
                .live
                .values()
                .map(|instance| instance.declared())
                .chain(state.kept.iter().cloned())
                .filter(|declared| !closed || declared.autostart)
                .collect();
            Some((state.next, list))
        };
        if let Err(error) = self.store.write(closed, current) {
            tracing::warn!(%error, "the list of pipelines cannot be written: they will not come back");
        }
    }
}

impl State {
    /// Returns the next number and the id that it makes of a name. No number comes twice, not even after a restart, and no id is the
    /// name or the id of another instance.
    pub(super) fn new_id(&mut self, name: &str) -> (u64, String) {
        loop {
            let number = self.next.max(1);
            self.next = number + 1;
            let id = format!("{}-{number}", slug(name));
            let live = self.live.values().map(|instance| instance.declared());
            let mut instances = live.chain(self.kept.iter().cloned());
            let is_taken = instances.any(|instance| instance.name == id || instance.instance_id == id)
                || self.over.iter().any(|over| over.summary.is(&id));
            if !is_taken {
                return (number, id);
            }
        }
    }
}

fn in_use(what: &str, owner: &Instance) -> ToolError {
    ToolError::busy(format!(
        "the pipeline {} uses {what}: stop that pipeline first",
        owner.id()
    ))
}

pub(super) fn remember(state: &mut State, status: Status) {
    if state.over.len() == MOST_OVER {
        state.over.pop_front();
    }
    state.over.push_back(status);
}

/// Converts a name to a part of an id: letters, digits and dashes.
fn slug(name: &str) -> String {
    let slug: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .take(32)
        .collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() {
        "pipeline".to_owned()
    } else {
        slug.to_owned()
    }
}
