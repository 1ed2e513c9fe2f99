//! The beginning of a toolbox's process: its first notice, and the threads of its lanes. Read [`GreetedProcess`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use ovos_toolbox_wire::{Failure, Manifest};
use protocol::{Hello, Notice, Opening, PROTOCOL, Raw};

use crate::control::serve_control;
use crate::link::Link;
use crate::notices::Notices;
use crate::process::Process;
use crate::sockets::{Sockets, kill_self};
use crate::toolbox::Toolbox;

/// The hello of a program of this version of the protocol.
#[must_use]
pub fn hello(version: &str, manifest: &Manifest) -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: version.to_owned(),
        features: Vec::new(),
        toolboxes: vec![Raw::of(manifest)],
        refusal: None,
    }
}

/// A process that has said hello.
#[derive(Debug)]
pub struct GreetedProcess {
    notices: Arc<Notices>,
}

impl GreetedProcess {
    /// Says hello, before anything else.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn new(sockets: Sockets, hello: Hello) -> std::io::Result<Self> {
        let notices = Arc::new(Notices::new(sockets.data, sockets.control)?);
        notices.data(&Notice::Hello(hello));
        Ok(Self { notices })
    }

    /// What sends its notices.
    #[must_use]
    pub fn notices(&self) -> &Arc<Notices> {
        &self.notices
    }

    /// Serves both lanes, each on a thread that does nothing else. `open` opens the toolbox; it is called once, on the thread
    /// of the data lane.
    ///
    /// The threads end the process: when the service closes the toolbox; when the service is gone, or silent for longer than
    /// it said while something moves, after everything was brought to rest.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn serve(
        self,
        open: impl FnOnce(Opening, Link) -> Result<Arc<dyn Toolbox>, Failure> + Send + 'static,
    ) -> std::io::Result<ProcessHandle> {
        let process = Arc::new(Process::new(self.notices, Box::new(open)));
        for (name, serve) in [
            ("control", serve_control as fn(&Process)),
            ("data", Process::serve_data),
        ] {
            let process = process.clone();
            thread::Builder::new().name(name.to_owned()).spawn(move || {
                if catch_unwind(AssertUnwindSafe(|| serve(&process))).is_err() {
                    // The panic's text is on stderr, and the service brings the hardware to rest.
                    kill_self();
                }
            })?;
        }
        Ok(ProcessHandle(process))
    }
}

/// A process whose lanes are served.
#[derive(Clone, Debug)]
pub struct ProcessHandle(Arc<Process>);

impl ProcessHandle {
    /// Brings everything to rest and ends the process, as when the service is gone. Returns at once.
    pub fn leave(&self) {
        self.0.leave();
    }
}
