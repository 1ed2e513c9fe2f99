//! What the threads of a toolbox's process share, and what the data socket asks for.
//!
//! Puts starts and the cancels that overtake them in order, and says everything that the toolbox says. Read [`Host`].

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ovos_toolbox_abi::level;
use ovos_toolbox_wire::{Effect, Event, Failure, Plan, Progress, Start};
use parking_lot::Mutex;
use protocol::{Answer, Counts, Functions, MAX_DATA, Notice, Opening, Order, Raw, RunEnd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;
use tokio::runtime::Handle;

use super::{LOOK, kill_self};
use crate::contract::services::{HostServices, Limits, Origin, Request};
use crate::contract::tools;
use crate::ffi::in_process::{InProcess, Open};
use crate::ffi::load::Library;
use crate::transport::frame::{Cutter, Frame};
use crate::transport::outlet::{Bell, Outlet};
use engine::RunId;

/// What the threads of the process share.
pub(crate) struct Host {
    pub(super) file: PathBuf,
    pub(super) data: Outlet,
    pub(super) control: Outlet,
    pub(super) bell: Arc<Bell>,
    began: Instant,
    /// Milliseconds since `began` at which the service was last heard.
    pub(super) heard: AtomicU64,
    pub(super) silence_ms: AtomicU64,
    /// Runs under way, and whether they move something.
    live: Mutex<HashMap<u64, bool>>,
    pub(super) moving: AtomicUsize,
    /// Set once, when it is open.
    toolbox: OnceLock<Arc<InProcess>>,
    intake: Mutex<Intake>,
    /// As they were last told.
    counts: Mutex<Counts>,
    pub(super) config: Mutex<String>,
    pub(super) leaving: AtomicBool,
    /// Why the process could not be confined as it should be. Nothing is loaded then.
    unconfined: Option<String>,
}

/// Puts starts, and the cancels that overtake them, in order.
#[derive(Default)]
struct Intake {
    starts: u64,
    /// Cancels that came before their start, and how many starts were sent before them.
    early: HashMap<u64, u64>,
}

impl Host {
    /// `unconfined`: why the process could not be confined as it should be.
    pub(super) fn new(
        file: &Path,
        data: &UnixStream,
        control: &UnixStream,
        unconfined: Option<String>,
    ) -> std::io::Result<Self> {
        let bell = Bell::new()?;
        Ok(Self {
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
            unconfined,
        })
    }

    /// A line of the log.
    pub(crate) fn log(&self, level: u32, target: String, message: String) {
        let notice = Notice::Log {
            level,
            target,
            message,
        };
        // What is lost here would be lost by the rate limit of the other side.
        self.data.chatter(&Frame::of(&notice));
    }

    /// Says something on the data socket.
    pub(super) fn say(&self, notice: &Notice) {
        self.data.send(&Frame::of(notice));
    }

    /// Says something on the control socket.
    pub(super) fn say_at_once(&self, notice: &Notice) {
        self.control.send(&Frame::of(notice));
    }

    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) fn toolbox(&self) -> Option<Arc<InProcess>> {
        self.toolbox.get().cloned()
    }

    /// Reads the data socket until it ends.
    pub(super) fn read_data(self: &Arc<Self>, stream: UnixStream, runtime: &Handle) {
        let Err(error) = self.try_read_data(stream, runtime);
        // Whatever it is (a service that dies resets the connection), what moves is brought to rest first.
        self.log(
            level::WARN,
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
        let mut cutter = Cutter::new(MAX_DATA);
        let mut bytes = vec![0; 64 * 1024];
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => cutter.push(&bytes[..count]),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
            while let Some(order) = cutter.read().map_err(std::io::Error::other)? {
                self.obey(order, runtime);
            }
        }
    }

    /// Has the control thread bring everything to rest and end the process.
    pub(super) fn leave(&self) {
        self.leaving.store(true, Ordering::SeqCst);
        self.bell.ring();
    }

    fn obey(self: &Arc<Self>, order: Order, runtime: &Handle) {
        match order {
            Order::Open(opening) => {
                let seq = opening.seq;
                let answer = runtime.block_on(self.open(opening)).into();
                self.say(&Notice::Opened { seq, answer });
            }
            Order::Start { run, progress, start } => self.start(run, progress, start),
            Order::Close { seq } => runtime.block_on(self.close(seq)),
            Order::Message { topic, data } => {
                if let Some(toolbox) = self.toolbox() {
                    toolbox.message(&topic, data.text());
                }
            }
            Order::Response { request, answer } => {
                if let Some(toolbox) = self.toolbox() {
                    let answer = match answer {
                        Answer::Ok(data) => Ok(data.into_text()),
                        Answer::Error(failure) => Err(failure.into_text()),
                    };
                    toolbox.respond_text(request, answer);
                }
            }
            Order::Tools { seq } => self.ask(
                runtime,
                |toolbox| async move {
                    let list = toolbox.tool_list().await?;
                    Raw::from_text(list).map_err(|error| tools::no_list(&error))
                },
                move |answer| Notice::Tools { seq, answer },
            ),
            Order::MayClose { seq } => self.ask(
                runtime,
                |toolbox| async move { toolbox.may_close().await.map(|()| Raw::of(&())) },
                move |answer| Notice::Closable { seq, answer },
            ),
            Order::Plan { seq, tool, args } => self.ask(
                runtime,
                |toolbox| {
                    let plan = toolbox.plan_text(tool, args.into_text());
                    async move { Ok(Raw::of(&plan.await?.map(|actions| Plan { actions }))) }
                },
                move |answer| Notice::Planned { seq, answer },
            ),
            Order::Conclude {
                seq,
                tool,
                args,
                report,
            } => self.ask(
                runtime,
                |toolbox| {
                    let conclusion = toolbox.conclude_text(tool, args.into_text(), report.into_text());
                    async move { Ok(Raw::of(&conclusion.await?)) }
                },
                move |answer| Notice::Concluded { seq, answer },
            ),
            // The rest belongs on the other socket, or to a newer service.
            _ => {}
        }
    }

    async fn open(self: &Arc<Self>, opening: Opening) -> Result<Functions, Failure> {
        let Opening {
            seq: _,
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
        if let Some(reason) = &self.unconfined {
            return Err(Failure::new("PermissionError", reason));
        }
        self.silence_ms.store(silence_ms, Ordering::SeqCst);
        let config = config.into_text();
        self.config.lock().clone_from(&config);
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
            // The service waits for the answer to a halt, and decides what it means when none comes.
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

    fn start(self: &Arc<Self>, run: u64, wants_progress: bool, start: Raw<Start>) {
        let (epoch, moves) = match serde_json::from_str::<Glance>(start.text()) {
            Ok(glance) => (glance.call.stop_epoch, moves(glance.action.effect)),
            // The toolbox will say what is wrong with it; until then it may move.
            Err(_) => (0, true),
        };
        let mut intake = self.intake.lock();
        intake.starts += 1;
        let starts = intake.starts;
        let cancelled = intake.early.remove(&run).is_some();
        intake.early.retain(|_, sent| *sent > starts);
        let Some(toolbox) = self.toolbox().filter(|_| !cancelled) else {
            drop(intake);
            let end = RunEnd::Cancelled;
            return self.say(&Notice::Ended { run, end });
        };
        self.live.lock().insert(run, moves);
        if moves {
            // The service was heard just now.
            self.heard.store(self.now(), Ordering::SeqCst);
            if self.moving.fetch_add(1, Ordering::SeqCst) == 0 {
                self.bell.ring();
            }
        }
        let progress: Option<engine::ProgressSink> = wants_progress.then(|| {
            let host = self.clone();
            Arc::new(move |progress: Progress| {
                let progress = Raw::of(&progress);
                host.data.chatter(&Frame::of(&Notice::Progress { run, progress }));
            }) as engine::ProgressSink
        });
        let host = self.clone();
        let tell = Box::new(move |end| host.ended(run, end));
        toolbox.start_for(RunId(run), epoch, start.into_text(), progress, tell);
    }

    fn ended(&self, run: u64, end: RunEnd) {
        self.tell_counts();
        self.say(&Notice::Ended { run, end });
        if self.live.lock().remove(&run) == Some(true) {
            self.moving.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Tells what was dropped, when that changed.
    fn tell_counts(&self) {
        let Some(toolbox) = self.toolbox() else { return };
        let now = toolbox.counts();
        let mut told = self.counts.lock();
        if *told != now {
            *told = now;
            self.say(&Notice::Counts(now));
        }
    }

    /// Puts a question to the toolbox, beside what else is asked.
    fn ask<T, F>(
        self: &Arc<Self>,
        runtime: &Handle,
        question: impl FnOnce(Arc<InProcess>) -> F,
        notice: impl FnOnce(Answer<Raw<T>>) -> Notice + Send + 'static,
    ) where
        F: Future<Output = Result<Raw<T>, Failure>> + Send + 'static,
    {
        let Some(toolbox) = self.toolbox() else {
            return self.say(&notice(Err(not_open()).into()));
        };
        let (host, question) = (self.clone(), question(toolbox));
        // Owned by the runtime of this process, which ends with it.
        runtime.spawn(async move {
            let answer = question.await.into();
            host.tell_counts();
            host.say(&notice(answer));
        });
    }

    async fn close(self: &Arc<Self>, seq: u64) {
        let in_time = match self.toolbox() {
            Some(toolbox) => toolbox.close().await,
            None => true,
        };
        self.tell_counts();
        self.say(&Notice::Closed { seq, in_time });
        let until = Instant::now() + Duration::from_secs(1);
        while self.data.is_behind() && Instant::now() < until {
            let outlet = self.data.as_fd();
            let mut fds = [PollFd::new(&outlet, PollFlags::OUT)];
            _ = poll(&mut fds, Some(&timespec(LOOK)));
            self.data.flush();
        }
        if in_time {
            std::process::exit(0);
        }
        // A function of the toolbox is still running, and destructors would run beside it.
        kill_self()
    }

    /// Does something about a run, when its start has come; it never begins when it comes later.
    pub(super) fn about(&self, run: u64, sent: u64, act: impl FnOnce(&InProcess, RunId)) {
        let Some(toolbox) = self.toolbox() else { return };
        let mut intake = self.intake.lock();
        if intake.starts < sent && !self.live.lock().contains_key(&run) {
            intake.early.insert(run, sent);
        } else {
            act(&toolbox, RunId(run));
        }
    }
}

/// What the toolbox says by itself.
struct Uplink(Arc<Host>);

impl HostServices for Uplink {
    fn event(&self, _: &Origin, event: Event) {
        self.0.tell_counts();
        self.0.say(&Notice::Event(Raw::of(&event)));
    }

    fn request(&self, _: &Origin, request: Request) {
        let Request {
            id,
            topic,
            data,
            timeout,
        } = request;
        self.0.say(&Notice::Request {
            request: id,
            topic,
            data: Raw::of(&data),
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        });
    }
}

/// What the process itself needs to know of a `Start`.
#[derive(Deserialize)]
struct Glance {
    call: CallGlance,
    action: ActionGlance,
}

#[derive(Deserialize)]
struct CallGlance {
    #[serde(default)]
    stop_epoch: u64,
}

#[derive(Deserialize)]
struct ActionGlance {
    effect: Effect,
}

fn moves(effect: Effect) -> bool {
    matches!(effect, Effect::Motion | Effect::Safe)
}

pub(super) fn not_open() -> Failure {
    Failure::new("ToolboxClosed", "the toolbox is not open")
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
