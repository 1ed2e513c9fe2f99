//! The stand-in for the host. Read [`Harness`].

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ovos_toolbox_abi as abi;
use ovos_toolbox_abi::{Bytes, Status, status};
use ovos_toolbox_wire::{
    Action, Conclusion, Effect, Event, Failure, Manifest, Plan, Report, ToolDefinition, ToolList,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::outcome::{CloseReport, Refused};
use super::peer::{self, LogLine, Peer};
use crate::Toolbox;
use crate::boundary::{Table, empty};
use crate::bytes::{lend, take, text};

/// An open toolbox and the stand-in host it talks to. Dropping it closes the toolbox.
///
/// # Panics
/// Methods panic with an explanation when the toolbox breaks the contract of toolbox.h.
pub struct Harness {
    table: *const abi::Toolbox,
    instance: *mut c_void,
    pub(super) peer: Arc<Peer>,
    // The host's functions get a pointer to it, so its address must not change until close has returned.
    _host: Box<abi::Host>,
    _owned: Option<Box<Table>>,
    host_thread: Mutex<()>,
    effects: Mutex<HashMap<String, Effect>>,
    pub(super) runs: AtomicU64,
    pub(super) stop_epoch: AtomicU64,
    pub(super) deadline: Duration,
    pub(super) operator: bool,
    pub(super) content_dir: Option<String>,
    closed: bool,
}

// SAFETY: toolbox.h lets any thread call cancel, halt, resume and safe_stop; all other functions are called under
// `host_thread`, one at a time. Tested in tests/contract, which shares harnesses between threads.
unsafe impl Send for Harness {}
// SAFETY: as above.
unsafe impl Sync for Harness {}

impl Harness {
    /// Opens a toolbox of this crate.
    ///
    /// # Errors
    /// `open` failed.
    pub fn open<T: Toolbox>(config: Value) -> Result<Self, Refused> {
        let table = Box::new(Table::of::<T>());
        let pointer = table.as_ptr();
        // SAFETY: the table was made by this crate and lives in `_owned`.
        unsafe { Self::start_up(pointer, Some(table), config) }
    }

    /// Opens a toolbox by its entry function, for example one found by libloading or linked into the test.
    ///
    /// # Errors
    /// `open` failed.
    ///
    /// # Safety
    /// `entry` follows toolbox.h and its library is never unloaded.
    pub unsafe fn of_entry(entry: abi::Entry, config: Value) -> Result<Self, Refused> {
        // SAFETY: the caller's duty.
        unsafe { Self::start_up(entry(), None, config) }
    }

    /// Loads a built toolbox and opens it. The library stays loaded.
    ///
    /// # Errors
    /// The library cannot be loaded or has no `toolbox_entry_v1`, or `open` failed.
    #[cfg(feature = "load")]
    pub fn load(path: &std::path::Path, config: Value) -> Result<Self, Box<dyn std::error::Error>> {
        use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
        // SAFETY: a test loads what it has just built; initialisers of a toolbox do nothing before open (toolbox.h).
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }?;
        // Never unloaded, as toolbox.h says: dlclose pulls the code from under threads and thread-locals.
        let library = std::mem::ManuallyDrop::new(library);
        // SAFETY: the type of the symbol is fixed by its name.
        let entry: abi::Entry = *unsafe { library.get::<abi::Entry>(b"toolbox_entry_v1\0") }?;
        // SAFETY: the library stays loaded.
        Ok(unsafe { Self::of_entry(entry, config) }?)
    }

    /// # Safety
    /// `table` is null or follows toolbox.h, and lives as long as the harness.
    unsafe fn start_up(
        table: *const abi::Toolbox,
        owned: Option<Box<Table>>,
        config: Value,
    ) -> Result<Self, Refused> {
        assert!(!table.is_null(), "toolbox_entry_v1 returned null");
        // SAFETY: not null; the first field is the size.
        let size = unsafe { std::ptr::addr_of!((*table).size).read() };
        assert!(
            size >= abi::TOOLBOX_SIZE_V1_0,
            "the table has {size} bytes, version 1 has {}",
            abi::TOOLBOX_SIZE_V1_0
        );
        let peer = Arc::new(Peer::default());
        let host = Box::new(peer.host());
        let mut harness = Self {
            table,
            instance: std::ptr::null_mut(),
            peer,
            _host: host,
            _owned: owned,
            host_thread: Mutex::new(()),
            effects: Mutex::default(),
            runs: AtomicU64::new(1),
            stop_epoch: AtomicU64::new(0),
            operator: false,
            content_dir: None,
            deadline: Duration::from_secs(10),
            closed: true,
        };
        let config = config.to_string();
        let open = harness.function("open", |table| table.open);
        let mut instance = std::ptr::null_mut();
        let host: *const abi::Host = &raw const *harness._host;
        // SAFETY: toolbox.h; the host's table lives in the harness, which closes the instance when it is dropped.
        harness.answer(|out| unsafe { open(host, lend(&config), &raw mut instance, out) })?;
        assert!(!instance.is_null(), "open returned TB_OK and no instance");
        harness.instance = instance;
        harness.closed = false;
        Ok(harness)
    }

    /// Sets the time limit of waits; the default is 10 s.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Makes calls like a service with `operator_tools`.
    #[must_use]
    pub fn as_operator(mut self) -> Self {
        self.operator = true;
        self
    }

    /// Makes calls that ask for content, with this content folder; without it, calls ask for none.
    ///
    /// # Panics
    /// The path is not UTF-8.
    #[must_use]
    pub fn with_content_folder(mut self, folder: &std::path::Path) -> Self {
        let path = folder.to_str();
        self.content_dir = Some(
            path.unwrap_or_else(|| panic!("{folder:?} is not UTF-8"))
                .to_owned(),
        );
        self
    }

    /// The manifest.
    ///
    /// # Panics
    /// The manifest does not match `schemas/abi`.
    #[must_use]
    pub fn manifest(&self) -> Manifest {
        // SAFETY: the table follows toolbox.h: the manifest is static text.
        let text =
            unsafe { text((*self.table).manifest) }.unwrap_or_else(|error| panic!("manifest: {error}"));
        serde_json::from_str(text).unwrap_or_else(|error| panic!("manifest {text}: {error}"))
    }

    /// The tools, read again from the toolbox.
    ///
    /// # Panics
    /// The tools cannot be read, or one of them needs the `halt` that the toolbox does not have.
    #[must_use]
    pub fn tools(&self) -> Vec<ToolDefinition> {
        let tools = self.function("tools", |table| table.tools);
        let _turn = self.host_thread.lock();
        // SAFETY: toolbox.h; one call at a time under `host_thread`.
        let text = self
            .answer(|out| unsafe { tools(self.instance, out) })
            .unwrap_or_else(|error| panic!("tools: {error}"));
        let list: ToolList =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("tools {text}: {error}"));
        // SAFETY: the table follows toolbox.h.
        let halts = unsafe { (*self.table).halt }.is_some();
        for tool in &list.tools {
            assert!(
                halts || !tool.effect.needs_halt(),
                "tool {} is of effect {}, and the toolbox has no halt",
                tool.name,
                tool.effect
            );
        }
        list.tools
    }

    /// One tool.
    ///
    /// # Panics
    /// There is no tool of this name.
    #[must_use]
    pub fn tool(&self, name: &str) -> ToolDefinition {
        let tool = self.tools().into_iter().find(|tool| tool.name == name);
        tool.unwrap_or_else(|| panic!("no tool {name}"))
    }

    /// The plan of a call; `None` if the toolbox leaves it to the host.
    ///
    /// # Errors
    /// The toolbox refused the arguments.
    ///
    /// # Panics
    /// The plan does not match `schemas/abi`.
    pub fn plan(&self, tool: &str, args: Value) -> Result<Option<Vec<Action>>, Refused> {
        Ok(self.planned(tool, args)?.map(|plan| plan.actions))
    }

    /// The plan of a call with its sentences; `None` if the toolbox leaves it to the host.
    ///
    /// # Errors
    /// The toolbox refused the arguments.
    ///
    /// # Panics
    /// The plan does not match `schemas/abi`.
    pub fn planned(&self, tool: &str, args: Value) -> Result<Option<Plan>, Refused> {
        // SAFETY: the table follows toolbox.h.
        let Some(plan) = (unsafe { (*self.table).plan }) else {
            return Ok(None);
        };
        let args = args.to_string();
        let _turn = self.host_thread.lock();
        // SAFETY: toolbox.h; one call at a time under `host_thread`.
        match self.answer(|out| unsafe { plan(self.instance, lend(tool), lend(&args), out) }) {
            Ok(text) => {
                let plan: Plan =
                    serde_json::from_str(&text).unwrap_or_else(|error| panic!("plan {text}: {error}"));
                assert!(!plan.actions.is_empty(), "a plan has at least one action");
                Ok(Some(plan))
            }
            Err(refused) if refused.status == status::UNKNOWN_TOOL => Ok(None),
            Err(refused) => Err(refused),
        }
    }

    /// Starts a run with exactly this JSON, and returns its id.
    pub(super) fn begin(&self, json: &str) -> Result<u64, Refused> {
        let id = self.runs.fetch_add(1, Ordering::Relaxed);
        let start = self.function("start", |table| table.start);
        self.peer.expect(id);
        let _turn = self.host_thread.lock();
        // SAFETY: toolbox.h; one call at a time under `host_thread`.
        let started = self.answer(|out| unsafe { start(self.instance, id, lend(json), out) });
        if let Err(refused) = started {
            self.peer.refused(id);
            return Err(refused);
        }
        Ok(id)
    }

    /// Runs a tool as one action and waits for its output.
    ///
    /// # Errors
    /// The call was refused or failed.
    ///
    /// # Panics
    /// The call did not complete within the deadline.
    pub fn call(&self, tool: &str, args: Value) -> Result<Value, Failure> {
        let run = self.start(tool, args).map_err(|refused| *refused.failure)?;
        run.wait().result()
    }

    /// The toolbox's conclusion from a report; `None` if it leaves that to the host.
    ///
    /// # Errors
    /// The toolbox failed to make one.
    ///
    /// # Panics
    /// The conclusion does not match `schemas/abi`.
    pub fn conclude(&self, tool: &str, args: Value, report: &Report) -> Result<Option<Conclusion>, Failure> {
        // SAFETY: the table follows toolbox.h.
        let Some(conclude) = (unsafe { (*self.table).conclude }) else {
            return Ok(None);
        };
        let (args, report) = (args.to_string(), json!(report).to_string());
        let _turn = self.host_thread.lock();
        // SAFETY: toolbox.h; one call at a time under `host_thread`.
        let answer = self
            .answer(|out| unsafe { conclude(self.instance, lend(tool), lend(&args), lend(&report), out) });
        match answer {
            Ok(text) => Ok(Some(
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("conclude {text}: {error}")),
            )),
            Err(refused) if refused.status == status::UNKNOWN_TOOL => Ok(None),
            Err(refused) => Err(*refused.failure),
        }
    }

    /// Asks a run to end.
    pub fn cancel(&self, run: u64) {
        let cancel = self.function("cancel", |table| table.cancel);
        // SAFETY: toolbox.h: any thread, any run.
        unsafe { cancel(self.instance, run) };
    }

    /// Halts; an emergency raises the stop epoch first, as the service does.
    ///
    /// # Errors
    /// The toolbox could not send the command.
    pub fn halt(&self, subsystems: &[&str], emergency: bool) -> Result<(), Refused> {
        if emergency {
            self.stop_epoch.fetch_add(1, Ordering::SeqCst);
        }
        // SAFETY: the table follows toolbox.h.
        let Some(halt) = (unsafe { (*self.table).halt }) else {
            return Ok(());
        };
        let subsystems = json!(subsystems).to_string();
        // SAFETY: toolbox.h: any thread.
        self.answer(|out| unsafe { halt(self.instance, lend(&subsystems), u32::from(emergency), out) })
            .map(drop)
    }

    /// Asks whether the latch may be lifted.
    ///
    /// # Errors
    /// The toolbox refused.
    pub fn resume(&self) -> Result<(), Refused> {
        let resume = self.function("resume", |table| table.resume);
        // SAFETY: toolbox.h: any thread.
        self.answer(|out| unsafe { resume(self.instance, out) }).map(drop)
    }

    /// Sends a message on a topic that the toolbox subscribes to.
    pub fn message(&self, topic: &str, data: Value) {
        // SAFETY: the table follows toolbox.h.
        if let Some(message) = unsafe { (*self.table).message } {
            let data = data.to_string();
            let _turn = self.host_thread.lock();
            // SAFETY: toolbox.h; one call at a time under `host_thread`.
            unsafe { message(self.instance, lend(topic), lend(&data)) };
        }
    }

    /// Scripts the bus: the answers to requests for `topic`. A request for a topic without a script, or for one that is
    /// not in the manifest, is refused; a script that returns `None` never answers.
    ///
    /// Answers are delivered by [`Harness::deliver`] or while the harness waits.
    pub fn respond(
        &self,
        topic: &str,
        script: impl Fn(Value) -> Option<Result<Value, Failure>> + Send + Sync + 'static,
    ) {
        self.peer.script(topic, Arc::new(script));
    }

    /// Runs a tool that makes requests: like [`Harness::call`], and delivers answers while it waits.
    ///
    /// # Errors
    /// See [`Harness::call`].
    ///
    /// # Panics
    /// See [`Harness::call`].
    pub fn call_with_bus(&self, tool: &str, args: Value) -> Result<Value, Failure> {
        let run = self.start(tool, args).map_err(|refused| *refused.failure)?;
        let end = Instant::now() + self.deadline;
        loop {
            self.deliver();
            if let Some(ended) = run.wait_for(Duration::from_millis(5)) {
                return ended.result();
            }
            assert!(
                Instant::now() < end,
                "{tool} did not complete within {:?}",
                self.deadline
            );
        }
    }

    /// Delivers the answers to the requests made so far.
    pub fn deliver(&self) {
        // SAFETY: the table follows toolbox.h.
        let Some(on_response) = (unsafe { (*self.table).on_response }) else {
            return;
        };
        for (id, answer) in self.peer.take_answers() {
            let (status, text) = match answer {
                Ok(data) => (status::OK, data.to_string()),
                Err(failure) => (status::ERR, json!(failure).to_string()),
            };
            let _turn = self.host_thread.lock();
            // SAFETY: toolbox.h; one call at a time under `host_thread`.
            unsafe { on_response(self.instance, id, status, lend(&text)) };
        }
    }

    /// Asks whether a reload may close the instance.
    ///
    /// # Errors
    /// The toolbox is busy.
    pub fn may_close(&self) -> Result<(), Refused> {
        // SAFETY: the table follows toolbox.h.
        let Some(may_close) = (unsafe { (*self.table).may_close }) else {
            return Ok(());
        };
        let _turn = self.host_thread.lock();
        // SAFETY: toolbox.h; one call at a time under `host_thread`.
        self.answer(|out| unsafe { may_close(self.instance, out) })
            .map(drop)
    }

    /// Brings the hardware to rest without an instance.
    ///
    /// # Errors
    /// The toolbox could not.
    pub fn safe_stop(&self, config: Value) -> Result<(), Refused> {
        // SAFETY: the table follows toolbox.h.
        let Some(safe_stop) = (unsafe { (*self.table).safe_stop }) else {
            return Ok(());
        };
        let config = config.to_string();
        // SAFETY: toolbox.h: any thread.
        self.answer(|out| unsafe { safe_stop(lend(&config), out) })
            .map(drop)
    }

    /// The events so far.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.peer.see(|seen| seen.events.clone())
    }

    /// Waits for an event of a kind.
    ///
    /// # Panics
    /// No event of this kind came within the deadline.
    #[must_use]
    pub fn wait_event(&self, kind: &str) -> Event {
        let event = |seen: &peer::Received| seen.events.iter().find(|event| event.kind == kind).cloned();
        self.peer
            .wait(self.deadline, event)
            .unwrap_or_else(|| panic!("no event {kind}"))
    }

    /// The log lines so far.
    #[must_use]
    pub fn logs(&self) -> Vec<LogLine> {
        self.peer.see(|seen| seen.logs.clone())
    }

    /// Waits until at least `count` lines were logged.
    ///
    /// # Panics
    /// The lines were not logged within the deadline.
    pub fn wait_logs(&self, count: usize) {
        let logged = |seen: &peer::Received| (seen.logs.len() >= count).then_some(());
        self.peer
            .wait(self.deadline, logged)
            .unwrap_or_else(|| panic!("fewer than {count} lines: {:?}", self.logs()));
    }

    /// Sets the stop epoch of later starts.
    pub fn set_stop_epoch(&self, epoch: u64) {
        self.stop_epoch.store(epoch, Ordering::SeqCst);
    }

    /// Closes the toolbox and reports what it left behind.
    #[must_use]
    pub fn close(mut self) -> CloseReport {
        self.shut();
        self.peer.closed()
    }

    fn shut(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let close = self.function("close", |table| table.close);
        let _turn = self.host_thread.lock();
        // SAFETY: toolbox.h: once, after everything else; `&mut self` is the only way here.
        unsafe { close(self.instance) };
        self.peer.close();
    }

    pub(super) fn effect_of(&self, tool: &str) -> Effect {
        if let Some(effect) = self.effects.lock().get(tool) {
            return *effect;
        }
        // A list is long, and a tool keeps its effect.
        let tools = self.tools().into_iter().map(|tool| (tool.name, tool.effect));
        let mut effects = self.effects.lock();
        effects.extend(tools);
        effects.get(tool).copied().unwrap_or(Effect::Read)
    }

    fn function<F>(&self, name: &str, of: impl FnOnce(&abi::Toolbox) -> Option<F>) -> F {
        // SAFETY: start_up checked that the table has all fields of version 1.
        of(unsafe { &*self.table }).unwrap_or_else(|| panic!("the table has no {name}"))
    }

    /// Calls a function that answers through a `tb_bytes`.
    fn answer(&self, call: impl FnOnce(*mut Bytes) -> Status) -> Result<String, Refused> {
        let mut out = empty();
        let status = call(&raw mut out);
        // SAFETY: toolbox.h: `out` is untouched or holds bytes for us to release, which happens here, once.
        let text = unsafe { take(out) }
            .unwrap_or_else(|error| panic!("the toolbox returned invalid bytes: {error}"));
        if status == status::OK {
            return Ok(text);
        }
        let failure = serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!("expected an object {{kind, message}} with status {status}, got {text:?}: {error}")
        });
        Err(Refused {
            status,
            failure: Box::new(failure),
        })
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.shut();
    }
}
