//! Kills a toolbox repeatedly, as fast as the service reloads it, while something else is measured.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::peers::{Bus, Question};
use super::wire::Wire;

/// The toolbox that is killed.
const VICTIM: &str = "testbed_dup";

/// The thread that kills it while switched on.
pub(crate) struct Crashing {
    on: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    thread: thread::JoinHandle<(u64, Duration)>,
}

impl Crashing {
    pub(crate) fn start(bus: &Bus) -> Self {
        let (on, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let mut wire = bus.join();
        let senders = (on.clone(), over.clone());
        let thread = thread::spawn(move || {
            let (mut crashes, mut time) = (0, Duration::ZERO);
            while !senders.1.load(Ordering::SeqCst) {
                if !senders.0.load(Ordering::SeqCst) {
                    thread::park_timeout(Duration::from_millis(5));
                    continue;
                }
                let start = Instant::now();
                crash(&mut wire).expect("the service answers");
                crashes += 1;
                time += start.elapsed();
            }
            (crashes, time)
        });
        Self { on, over, thread }
    }

    /// Runs a measurement while the toolbox crashes.
    pub(crate) fn during(&self, measure: impl FnOnce() -> io::Result<f64>) -> io::Result<f64> {
        self.on.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
        let figure = measure();
        self.on.store(false, Ordering::SeqCst);
        figure
    }

    /// The number of crashes and their total duration.
    pub(crate) fn end(self) -> (u64, Duration) {
        self.over.store(true, Ordering::SeqCst);
        self.thread.join().unwrap_or_default()
    }
}

/// Kills it and reloads it at once, because automatic restarts are delayed more after each crash.
fn crash(wire: &mut Wire) -> io::Result<()> {
    let before = pid(wire)?;
    let process = before.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let process = process.ok_or_else(|| io::Error::other(format!("{VICTIM} has no process")))?;
    kill_process(process, Signal::KILL)?;
    let start = Instant::now();
    loop {
        answer(wire, &Question::new("ovos.tools.reload", &json!({})))?;
        let now = pid(wire)?;
        if now.is_some() && now != before {
            return Ok(());
        }
        if start.elapsed() > Duration::from_secs(30) {
            return Err(io::Error::other(format!("{VICTIM} does not come back")));
        }
    }
}

/// The process id of the toolbox, if it is running.
fn pid(wire: &mut Wire) -> io::Result<Option<i64>> {
    let status = answer(wire, &Question::new("ovos.tools.status", &json!({})))?;
    let toolboxes = status["data"]["toolboxes"].as_array();
    let victim =
        toolboxes.and_then(|toolboxes| toolboxes.iter().find(|toolbox| toolbox["toolbox_id"] == VICTIM));
    Ok(victim
        .filter(|victim| victim["state"] == "ready")
        .and_then(|victim| victim["pid"].as_i64()))
}

fn answer(wire: &mut Wire, question: &Question) -> io::Result<Value> {
    wire.send(question.request.as_bytes())?;
    Ok(wire.until(&question.answer, |text| serde_json::from_slice(text))??)
}
