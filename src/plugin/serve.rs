//! The child's side of `isolation: process`: one toolbox, hosted for a service at the other end of two sockets.
//!
//! Owns the process: what it keeps open, when it ends, and that nothing moves when the service is gone. The toolbox itself
//! is an [`InProcess`] like any other. Each socket has a thread that does nothing else, and the runtime on the main thread
//! never runs plugin code. Read [`child_main`] and [`Control::run`].

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{Effect, Event, Failure, Progress, Severity, Start};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use super::counts::Counts;
use super::frame::{
    Decoder, Functions, HaltOrder, Hello, MAX_CONTROL, MAX_DATA, Opening, Order, PROTOCOL, Word,
};
use super::in_process::{InProcess, Open};
use super::load::Library;
use super::outlet::{Bell, Outlet};
use super::process_log;
use super::services::{HostServices, Limits, Origin, Request};
use crate::engine::{Ended, Halt, RunId, Toolbox};

/// How often the child looks whether it still hears the service, while something moves.
const LOOK: Duration = Duration::from_millis(50);
/// How long a toolbox has to halt when the service is gone, before a fresh process brings its hardware to rest.
const LAST_HALT: Duration = Duration::from_millis(300);
/// How long it then has to close.
const LAST_CLOSE: Duration = Duration::from_secs(2);

/// Hosts the toolbox in `file` until the service says that it should close, or is gone.
#[must_use]
pub fn child_main(file: &Path) -> ExitCode {
    match serve(file) {
        Ok(never) => match never {},
        Err(error) => fail(&format!("host {}: {error}", file.display())),
    }
}

/// Brings the hardware of the toolbox in `file` to rest; its configuration comes through stdin.
#[must_use]
pub fn safe_stop_main(file: &Path) -> ExitCode {
    let mut config = String::new();
    if let Err(error) = std::io::stdin().read_to_string(&mut config) {
        return fail(&format!("read the configuration: {error}"));
    }
    match Library::load(file, file) {
        Ok(library) => match library.safe_stop(&config) {
            None | Some(Ok(())) => ExitCode::SUCCESS,
            Some(Err(failure)) => fail(&failure.to_string()),
        },
        Err(error) => fail(&error.to_string()),
    }
}

#[expect(clippy::print_stderr, reason = "the service reads it there")]
fn fail(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::FAILURE
}

fn serve(file: &Path) -> std::io::Result<Infallible> {
    let (data, control) = take_sockets()?;
    let bell = Bell::new()?;
    let host = Arc::new(Host {
        file: file.to_owned(),
        data: Outlet::new(data.try_clone()?, bell.clone()),
        control: Outlet::new(control.try_clone()?, bell.clone()),
        bell,
        began: Instant::now(),
        heard: AtomicU64::new(0),
        silence_ms: AtomicU64::new(500),
        live: Mutex::default(),
        moving: AtomicUsize::new(0),
        toolbox: OnceLock::new(),
        intake: Mutex::default(),
        counts: Mutex::default(),
        config: Mutex::default(),
        leaving: AtomicBool::new(false),
    });
    // Before anything else is said or can go wrong (see Word::Hello).
    host.data.send(&Word::Hello(hello()).frame().encode());
    process_log::install(host.clone());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let lane = Control {
        host: host.clone(),
        stream: control,
        runtime: runtime.handle().clone(),
    };
    thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || lane.run())?;
    let (reader, handle) = (host.clone(), runtime.handle().clone());
    thread::Builder::new()
        .name("data".to_owned())
        .spawn(move || reader.read_data(data, &handle))?;
    runtime.block_on(async {
        let mut asked_to_end = signal(SignalKind::terminate())?;
        asked_to_end.recv().await;
        host.leave();
        // The control thread ends the process, and needs the runtime until then.
        std::future::pending().await
    })
}

fn hello() -> Hello {
    Hello {
        abi: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        features: Vec::new(),
    }
}

/// Takes the two sockets from stdin and stdout, and lets go of everything else that was inherited.
fn take_sockets() -> std::io::Result<(UnixStream, UnixStream)> {
    // Only the second net: that the service is gone is seen on the sockets. The signal is caught below.
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    rustix::thread::set_no_new_privs(true)?;
    close_inherited()?;
    let data = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    // What the toolbox prints goes where the service keeps its last lines.
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    let (data, control) = (UnixStream::from(data), UnixStream::from(control));
    // The data socket has a thread of its own that waits in it.
    control.set_nonblocking(true)?;
    Ok((data, control))
}

/// Everything the service opens is closed on exec; what others left open in the service may not be.
fn close_inherited() -> std::io::Result<()> {
    let numbers = std::fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // Collected first: the folder itself is open while it is read, and gone after that.
    let numbers: Vec<i32> = numbers.filter(|number| *number > 2).collect();
    let is_open = |number: &i32| std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok();
    for number in numbers.into_iter().filter(is_open) {
        #[expect(unsafe_code, reason = "descriptors that nothing in this process knows of")]
        // SAFETY: this is the first thing the process does after its arguments were read; it has opened nothing itself
        // but the folder above, which is closed again, so nothing of ours is closed here.
        unsafe {
            rustix::io::close(number);
        }
    }
    Ok(())
}

/// What the threads of the process share.
pub(super) struct Host {
    file: PathBuf,
    data: Outlet,
    control: Outlet,
    bell: Arc<Bell>,
    began: Instant,
    /// Milliseconds since `began` at which the service was last heard.
    heard: AtomicU64,
    silence_ms: AtomicU64,
    /// Runs under way, and whether they move something.
    live: Mutex<HashMap<u64, bool>>,
    moving: AtomicUsize,
    /// Set once, when it is open.
    toolbox: OnceLock<Arc<InProcess>>,
    intake: Mutex<Intake>,
    /// As they were last told.
    counts: Mutex<Counts>,
    config: Mutex<String>,
    leaving: AtomicBool,
}

/// Puts starts, and the cancels that overtake them, in order.
#[derive(Default)]
struct Intake {
    starts: u64,
    /// Cancels that came before their start, and how many starts were sent before them.
    early: HashMap<u64, u64>,
}

impl Host {
    /// A line of the log.
    pub(super) fn log(&self, level: u16, target: String, message: String) {
        let word = Word::Log {
            level,
            target,
            message,
        };
        // What is lost here would be lost by the rate limit of the other side.
        self.data.chatter(&word.frame().encode());
    }

    fn say(&self, word: &Word) {
        self.data.send(&word.frame().encode());
    }

    fn answer(&self, id: u64, said: Result<(), Failure>) {
        self.control.send(&Word::Said { id, said }.frame().encode());
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn toolbox(&self) -> Option<Arc<InProcess>> {
        self.toolbox.get().cloned()
    }

    /// Reads the data socket until it ends.
    fn read_data(self: &Arc<Self>, stream: UnixStream, runtime: &Handle) {
        let Err(error) = self.try_read_data(stream, runtime);
        // Whatever it is (a service that dies resets the connection), what moves is brought to rest first.
        self.log(
            2,
            "toolbox_host".to_owned(),
            format!("the data connection ended: {error}"),
        );
        self.leave();
    }

    fn try_read_data(
        self: &Arc<Self>,
        mut stream: UnixStream,
        runtime: &Handle,
    ) -> std::io::Result<Infallible> {
        let mut decoder = Decoder::new(MAX_DATA);
        let mut bytes = vec![0; 64 * 1024];
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => decoder.push(&bytes[..count]),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
            while let Some(frame) = decoder.next().map_err(std::io::Error::other)? {
                let order = Order::read(frame).map_err(std::io::Error::other)?;
                self.obey(order, runtime);
            }
        }
    }

    /// Has the control thread bring everything to rest and end the process.
    fn leave(&self) {
        self.leaving.store(true, Ordering::SeqCst);
        self.bell.ring();
    }

    fn obey(self: &Arc<Self>, order: Order, runtime: &Handle) {
        match order {
            Order::Open(opening) => {
                let opened = runtime.block_on(self.open(opening));
                self.say(&Word::Opened(opened));
            }
            Order::Start { run, progress, json } => self.start(run, progress, json),
            Order::Close => runtime.block_on(self.close()),
            Order::Message { topic, json } => {
                if let Some(toolbox) = self.toolbox() {
                    toolbox.message(&topic, &json);
                }
            }
            Order::Response { request, answer } => {
                if let Some(toolbox) = self.toolbox() {
                    toolbox.respond(request, &answer);
                }
            }
            Order::Tools { ask } => {
                self.ask(runtime, ask, |toolbox| async move { toolbox.tool_list().await })
            }
            Order::MayClose { ask } => {
                self.ask(runtime, ask, |toolbox| async move { toolbox.may_close().await })
            }
            Order::Plan { ask, tool, args } => {
                self.ask(
                    runtime,
                    ask,
                    |toolbox| async move { toolbox.plan(&tool, &args).await },
                );
            }
            Order::Conclude {
                ask,
                tool,
                args,
                report,
            } => self.ask(runtime, ask, |toolbox| async move {
                toolbox.conclude(&tool, &args, &report).await
            }),
            // The rest belongs on the other socket, or to a newer service.
            _ => {}
        }
    }

    async fn open(self: &Arc<Self>, opening: Opening) -> Result<Functions, Failure> {
        let Opening {
            generation,
            config,
            stop_epoch,
            max_result_bytes,
            max_queued,
            max_messages,
            max_requests,
            open_ms,
            close_ms,
            silence_ms,
        } = opening;
        self.silence_ms.store(silence_ms, Ordering::SeqCst);
        lock(&self.config).clone_from(&config);
        let file = self.file.clone();
        let loading = tokio::task::spawn_blocking(move || Library::load(&file, &file));
        let loaded = loading
            .await
            .map_err(|e| Failure::new("InternalError", e.to_string()))?;
        let library = Arc::new(loaded.map_err(|e| Failure::new("ToolboxError", e.to_string()))?);
        let limits = Limits {
            max_result_bytes,
            max_queued,
            max_messages,
            max_requests,
            open: Duration::from_millis(open_ms),
            close: Duration::from_millis(close_ms),
            // The service waits for the word on a halt, and decides what it means when none comes.
            halt: Duration::from_secs(10),
            silence: Duration::from_millis(silence_ms),
        };
        let open = Open {
            generation,
            config,
            stop_epoch,
            limits,
        };
        let functions = library.functions();
        let toolbox = InProcess::open(library, open, Arc::new(Uplink(self.clone()))).await?;
        if self.toolbox.set(Arc::new(toolbox)).is_err() {
            return Err(Failure::new("InternalError", "it is open already"));
        }
        Ok(functions)
    }

    fn start(self: &Arc<Self>, run: u64, wants_progress: bool, json: String) {
        let (epoch, moves) = match serde_json::from_str::<Start>(&json) {
            Ok(start) => (start.call.stop_epoch, moves(start.action.effect)),
            // The toolbox will say what is wrong with it; until then it may move.
            Err(_) => (0, true),
        };
        let mut intake = lock(&self.intake);
        intake.starts += 1;
        let starts = intake.starts;
        let cancelled = intake.early.remove(&run).is_some();
        intake.early.retain(|_, sent| *sent > starts);
        let Some(toolbox) = self.toolbox().filter(|_| !cancelled) else {
            drop(intake);
            let ended = Ended::Cancelled;
            return self.say(&Word::Complete { run, ended });
        };
        lock(&self.live).insert(run, moves);
        if moves {
            // The service was heard just now.
            self.heard.store(self.now(), Ordering::SeqCst);
            if self.moving.fetch_add(1, Ordering::SeqCst) == 0 {
                self.bell.ring();
            }
        }
        let progress: Option<crate::engine::ProgressSink> = wants_progress.then(|| {
            let host = self.clone();
            Arc::new(move |progress: Progress| {
                host.data
                    .chatter(&Word::Progress { run, progress }.frame().encode());
            }) as crate::engine::ProgressSink
        });
        let host = self.clone();
        let tell = Box::new(move |ended| host.ended(run, ended));
        toolbox.start_for(RunId(run), epoch, json, progress, tell);
    }

    fn ended(&self, run: u64, ended: Ended) {
        self.tell_counts();
        self.say(&Word::Complete { run, ended });
        if lock(&self.live).remove(&run) == Some(true) {
            self.moving.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Tells what was dropped, when that changed.
    fn tell_counts(&self) {
        let Some(toolbox) = self.toolbox() else { return };
        let now = toolbox.counts();
        let mut told = lock(&self.counts);
        if *told != now {
            *told = now;
            self.say(&Word::Counts(now));
        }
    }

    /// Puts a question to the toolbox, beside what else is asked.
    fn ask<T: serde::Serialize, F: Future<Output = Result<T, Failure>> + Send + 'static>(
        self: &Arc<Self>,
        runtime: &Handle,
        ask: u64,
        question: impl FnOnce(Arc<InProcess>) -> F,
    ) {
        let Some(toolbox) = self.toolbox() else {
            return self.answer_to(ask, Err::<T, _>(not_open()));
        };
        let (host, question) = (self.clone(), question(toolbox));
        // Owned by the runtime of this process, which ends with it.
        runtime.spawn(async move { host.answer_to(ask, question.await) });
    }

    fn answer_to<T: serde::Serialize>(&self, ask: u64, said: Result<T, Failure>) {
        let (ok, json) = match said {
            Ok(value) => (true, serde_json::to_string(&value)),
            Err(failure) => (false, serde_json::to_string(&failure)),
        };
        self.tell_counts();
        let json = json.unwrap_or_default();
        self.say(&Word::Answer { ask, ok, json });
    }

    async fn close(self: &Arc<Self>) {
        let in_time = match self.toolbox() {
            Some(toolbox) => toolbox.close().await,
            None => true,
        };
        self.tell_counts();
        self.say(&Word::Closed { in_time });
        let until = Instant::now() + Duration::from_secs(1);
        while self.data.is_behind() && Instant::now() < until {
            let outlet = self.data.as_fd();
            let mut fds = [PollFd::new(&outlet, PollFlags::OUT)];
            _ = poll(&mut fds, Some(&timespec(LOOK)));
            self.data.flush();
        }
        std::process::exit(0);
    }

    fn cancel(&self, run: u64, sent: u64) {
        let Some(toolbox) = self.toolbox() else { return };
        let mut intake = lock(&self.intake);
        if intake.starts < sent && !lock(&self.live).contains_key(&run) {
            intake.early.insert(run, sent);
        } else {
            toolbox.cancel(RunId(run));
        }
    }
}

/// What the toolbox says by itself.
struct Uplink(Arc<Host>);

impl HostServices for Uplink {
    fn event(&self, _: &Origin, event: Event) {
        self.0.tell_counts();
        self.0.say(&Word::Event(event));
    }

    fn request(&self, _: &Origin, request: Request) {
        let Request {
            id,
            topic,
            data,
            timeout,
        } = request;
        self.0.say(&Word::Request {
            request: id,
            topic,
            data,
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        });
    }
}

/// The thread of the control socket.
struct Control {
    host: Arc<Host>,
    stream: UnixStream,
    runtime: Handle,
}

impl Control {
    fn run(self) {
        let mut decoder = Decoder::new(MAX_CONTROL);
        let reason = loop {
            self.wait();
            self.host.bell.hush();
            self.host.control.flush();
            self.host.data.flush();
            if let Err(reason) = self.read(&mut decoder) {
                break reason;
            }
            if self.host.leaving.load(Ordering::SeqCst) {
                break "the service is gone, or asked the process to end".to_owned();
            }
            let silence = self.host.silence_ms.load(Ordering::SeqCst);
            let heard = self.host.heard.load(Ordering::SeqCst);
            if self.host.moving.load(Ordering::SeqCst) > 0 && self.host.now().saturating_sub(heard) > silence
            {
                break format!("no word of the service for {silence} ms while something moved");
            }
        };
        self.end(&reason);
    }

    /// Waits for something to do.
    fn wait(&self) {
        let behind = |outlet: &Outlet| {
            if outlet.is_behind() {
                PollFlags::OUT
            } else {
                PollFlags::empty()
            }
        };
        let (control, data) = (behind(&self.host.control), behind(&self.host.data));
        let timeout = (self.host.moving.load(Ordering::SeqCst) > 0).then(|| timespec(LOOK));
        let (stream, outlet, bell) = (
            self.stream.as_fd(),
            self.host.data.as_fd(),
            self.host.bell.as_fd(),
        );
        let mut fds = vec![
            PollFd::new(&stream, PollFlags::IN | control),
            PollFd::new(&bell, PollFlags::IN),
        ];
        if !data.is_empty() {
            fds.push(PollFd::new(&outlet, data));
        }
        _ = poll(&mut fds, timeout.as_ref());
    }

    /// Reads what is there and does it.
    fn read(&self, decoder: &mut Decoder) -> Result<(), String> {
        let mut bytes = [0; 16 * 1024];
        loop {
            match (&self.stream).read(&mut bytes) {
                Ok(0) => return Err("the service is gone".to_owned()),
                Ok(count) => decoder.push(&bytes[..count]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(format!("the control connection broke: {e}")),
            }
            self.host.heard.store(self.host.now(), Ordering::SeqCst);
            while let Some(frame) = decoder.next().map_err(|e| e.to_string())? {
                self.obey(Order::read(frame).map_err(|e| e.to_string())?);
            }
        }
    }

    fn obey(&self, order: Order) {
        match order {
            Order::Heartbeat(number) => self.host.control.send(&Word::Alive(number).frame().encode()),
            Order::Cancel { run, starts } => self.host.cancel(run, starts),
            Order::Halt { id, halt } => self.halt(id, halt),
            Order::Resume { id } => self.resume(id),
            Order::Epoch(epoch) => {
                if let Some(toolbox) = self.host.toolbox() {
                    toolbox.raise_stop_epoch(epoch);
                }
            }
            _ => {}
        }
    }

    fn halt(&self, id: u64, order: HaltOrder) {
        let Some(toolbox) = self.host.toolbox() else {
            return self.host.answer(id, Err(not_open()));
        };
        let HaltOrder {
            subsystems,
            emergency,
            stop_epoch,
        } = order;
        // On its way when this returns; the word is waited for elsewhere.
        let halted = toolbox.halt(Halt {
            subsystems,
            emergency,
            stop_epoch,
        });
        let host = self.host.clone();
        self.runtime.spawn(async move { host.answer(id, halted.await) });
    }

    fn resume(&self, id: u64) {
        let Some(toolbox) = self.host.toolbox() else {
            return self.host.answer(id, Err(not_open()));
        };
        let resumed = toolbox.resume();
        let host = self.host.clone();
        self.runtime.spawn(async move { host.answer(id, resumed.await) });
    }

    /// Brings everything to rest and ends the process.
    fn end(&self, reason: &str) -> ! {
        self.host.log(2, "toolbox_host".to_owned(), reason.to_owned());
        if self.host.moving.load(Ordering::SeqCst) > 0 {
            // Should the service be there after all: this is an emergency stop, and nothing moves after it until a resume.
            self.host.say(&Word::Event(Event {
                kind: "latched".to_owned(),
                severity: Severity::Error,
                data: Some(serde_json::json!({ "reason": reason })),
            }));
        }
        if let Some(toolbox) = self.host.toolbox() {
            let epoch = toolbox.stop_epoch();
            let halted = toolbox.halt(Halt {
                subsystems: vec!["all".to_owned()],
                emergency: true,
                stop_epoch: epoch.saturating_add(1),
            });
            if !self.within(LAST_HALT, async move { halted.await.is_ok() }) {
                self.safe_stop();
            }
            self.within(LAST_CLOSE, async move { toolbox.close().await });
        }
        // Not `exit`: the toolbox's threads may still run, and would race with its destructors.
        _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
        std::process::abort()
    }

    fn within(&self, limit: Duration, done: impl Future<Output = bool> + Send + 'static) -> bool {
        let (tell, told) = channel();
        self.runtime.spawn(async move { _ = tell.send(done.await) });
        told.recv_timeout(limit).unwrap_or(false)
    }

    /// A fresh process brings the hardware to rest when this one cannot.
    fn safe_stop(&self) {
        let spawned = Command::new("/proc/self/exe")
            .args([
                "toolbox-host".as_ref(),
                "--safe-stop".as_ref(),
                self.host.file.as_os_str(),
            ])
            .stdin(Stdio::piped())
            .spawn();
        // It goes on by itself; nobody is left to hear what became of it.
        if let Some(mut stdin) = spawned.ok().and_then(|mut child| child.stdin.take()) {
            let config = lock(&self.host.config).clone();
            _ = std::io::Write::write_all(&mut stdin, config.as_bytes());
        }
    }
}

fn moves(effect: Effect) -> bool {
    matches!(effect, Effect::Motion | Effect::Safe)
}

fn not_open() -> Failure {
    Failure::new("ToolboxClosed", "the toolbox is not open")
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
