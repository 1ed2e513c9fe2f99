//! A plugin as the toolbox of a program. Read [`OpenPlugin`].

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use ovos_toolbox_wire::{Conclusion, Failure, Manifest, Object, Plan, Report, Start, ToolList};
use parking_lot::Mutex;
use program::{Halt, Later, Link, Reply, Run, Toolbox, input};
use protocol::{Answer, Functions, Opening, Raw};
use serde_json::Value;

use crate::host_thread::HostThread;
use crate::load::Library;
use crate::plugin::Plugin;
use crate::table::Instance;
use crate::watchdog::ToolboxFunction;

/// A plugin that was loaded, and that its host thread opens and closes.
pub(crate) struct OpenPlugin {
    plugin: Arc<Plugin>,
    library: Arc<Library>,
    file: PathBuf,
    end: Arc<Mutex<End>>,
}

/// How far the end of the host thread is.
#[derive(Default)]
struct End {
    has_ended: bool,
    on_end: Option<Box<dyn FnOnce(bool) + Send>>,
}

impl OpenPlugin {
    pub(crate) fn new(
        library: Library,
        manifest: Manifest,
        file: PathBuf,
        opening: Opening,
        link: Link,
    ) -> Self {
        Self {
            plugin: Plugin::new(Arc::new(manifest), opening, link),
            library: Arc::new(library),
            file,
            end: Arc::default(),
        }
    }

    /// Asks the toolbox on its host thread.
    fn ask<T: 'static>(
        &self,
        calling: ToolboxFunction,
        question: impl FnOnce(&Instance) -> Result<T, Failure> + Send + 'static,
        reply: Reply<T>,
    ) {
        self.plugin.ask(calling, question, reply);
    }
}

impl Toolbox for OpenPlugin {
    fn begin(&self, opened: Reply<Functions>) {
        let end = self.end.clone();
        let ended = Box::new(move || {
            let on_end = {
                let mut end = end.lock();
                end.has_ended = true;
                end.on_end.take()
            };
            if let Some(on_end) = on_end {
                on_end(true);
            }
        });
        HostThread::new(self.plugin.clone(), self.library.clone(), ended).spawn(opened);
    }

    fn tools(&self, reply: Reply<Raw<ToolList>>) {
        self.ask(ToolboxFunction::Tools, Instance::tools, reply);
    }

    fn plan(&self, tool: String, args: Raw<Object>, reply: Reply<Raw<Option<Plan>>>) {
        let question = move |toolbox: &Instance| toolbox.plan(&tool, args.text());
        self.ask(ToolboxFunction::Plan, question, reply);
    }

    fn start(&self, run: Run, start: Raw<Start>) {
        self.plugin.start(run, start.into_text());
    }

    fn cancel(&self, run: u64) -> Option<Later> {
        self.plugin.cancel(run)
    }

    fn withdraw(&self, run: u64) -> Option<Later> {
        self.plugin.withdraw(run)
    }

    fn conclude(
        &self,
        tool: String,
        args: Raw<Object>,
        report: Raw<Report>,
        reply: Reply<Raw<Option<Conclusion>>>,
    ) {
        let question = move |toolbox: &Instance| toolbox.conclude(&tool, args.text(), report.text());
        self.ask(ToolboxFunction::Conclude, question, reply);
    }

    fn halt(&self, halt: Halt, reply: Reply<()>) {
        self.plugin.halt(&halt, reply);
    }

    fn resume(&self, reply: Reply<()>) {
        self.plugin.control.resume(reply);
    }

    fn stopped(&self, stop_epoch: u64) {
        self.plugin.runs.raise_stop_epoch(stop_epoch);
    }

    fn message(&self, topic: String, data: Raw<Value>) {
        let counters = self.plugin.link.counters();
        self.plugin.queue.push_message(topic, data.into_text(), counters);
    }

    fn respond(&self, request: u64, answer: Answer<Raw<Value>>) {
        self.plugin.respond(request, answer);
    }

    fn may_close(&self, reply: Reply<Raw<()>>) {
        self.ask(ToolboxFunction::MayClose, Instance::may_close, reply);
    }

    fn close(&self, closed: Box<dyn FnOnce(bool) + Send>) {
        self.plugin.begin_close();
        let mut end = self.end.lock();
        if end.has_ended {
            drop(end);
            closed(true);
        } else {
            end.on_end = Some(closed);
        }
    }

    /// A fresh process does it, because this one cannot. It goes on alone: this process ends before it.
    fn safe_stop(&self) {
        let Ok(config) = input(self.plugin.opening.config.text()) else {
            return;
        };
        _ = Command::new("/proc/self/exe")
            .args([
                "toolbox-host".as_ref(),
                "--safe-stop".as_ref(),
                self.file.as_os_str(),
            ])
            .stdin(config)
            .spawn();
    }

    fn is_inside(&self) -> bool {
        self.plugin.meter.is_inside()
    }

    fn overdue(&self) -> Option<&'static str> {
        self.plugin.overdue()
    }
}
