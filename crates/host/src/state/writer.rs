//! The thread that writes the state files, so that no other thread waits for a disk.
//!
//! It is given the newest state and reports what it has written; states that were replaced meanwhile are skipped. A
//! disk that does not respond blocks only this thread. Read [`StateWriter`] and [`Work`].

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use engine::{Engine, MotionWatch, StopRecord};

/// How long an answer to a stop waits until the stop is written: as long as for the confirmations of the toolboxes.
pub const ANSWER: Duration = Duration::from_millis(200);

/// Stores the state. Every method may block for as long as a disk does.
pub trait Store: Send + 'static {
    /// Stores the latching stops by toolbox id; when it returns, they survive a power cut.
    fn latches(&mut self, latched: &BTreeMap<String, StopRecord>) -> io::Result<()>;
    /// Stores the ids of the toolboxes that move; when it returns, they survive the end of this process.
    fn moving(&mut self, moving: &[String]) -> io::Result<()>;
}

/// Hands the newest state to the thread. No method waits for a disk longer than it documents.
pub struct StateWriter {
    wanted: Arc<Mutex<NewestState>>,
    /// Capacity 1: a thread that is woken but has not read the state yet sees all later changes.
    wake: mpsc::Sender<()>,
    written: watch::Receiver<WriteOutcomes>,
}

/// The thread's side before the thread is started. Nothing is written until then.
pub struct Work {
    wanted: Arc<Mutex<NewestState>>,
    woken: mpsc::Receiver<()>,
    written: watch::Sender<WriteOutcomes>,
}

/// The newest state; the versions of each part are numbered from 1.
#[derive(Clone, Default)]
struct NewestState {
    latches_number: u64,
    latches: BTreeMap<String, StopRecord>,
    moving_number: u64,
    moving: Vec<String>,
}

#[derive(Clone, Default)]
struct WriteOutcomes {
    latches: Outcome,
    moving: Outcome,
}

/// The outcome of the last attempt to write a part.
#[derive(Clone)]
struct Outcome {
    number: u64,
    result: Result<(), String>,
}

impl Default for Outcome {
    fn default() -> Self {
        Self {
            number: 0,
            result: Ok(()),
        }
    }
}

impl Outcome {
    fn is_due(&self, newest: u64) -> bool {
        self.number != newest || self.result.is_err()
    }
}

impl StateWriter {
    /// A writer, and the side of its thread, which has to be started.
    pub fn new() -> (Arc<Self>, Work) {
        let wanted: Arc<Mutex<NewestState>> = Arc::default();
        let (wake, woken) = mpsc::channel(1);
        let (report, written) = watch::channel(WriteOutcomes::default());
        let work = Work {
            wanted: wanted.clone(),
            woken,
            written: report,
        };
        let writer = Self {
            wanted,
            wake,
            written,
        };
        (Arc::new(writer), work)
    }

    /// Hands the present latches to the thread before it returns; the future resolves when they are written, or after
    /// `limit`.
    ///
    /// # Errors
    /// The latches are not written, so a restarted service would not know them: the cause.
    pub fn keep(
        &self,
        engine: &Engine,
        limit: Duration,
    ) -> impl Future<Output = Result<(), String>> + Send + use<> {
        // The number is read before the latches: if they change in between, they are only written once more.
        let number = *engine.watch_latches().borrow() + 1;
        let latched = engine.latched();
        {
            let mut wanted = self.wanted.lock();
            if wanted.latches_number < number {
                wanted.latches_number = number;
                wanted.latches = latched;
            }
        }
        self.wake();
        let kept = self.outcome(|written| &written.latches, number);
        async move {
            timeout(limit, kept).await.unwrap_or_else(|_| {
                let limit = limit.as_millis();
                Err(format!("the state folder does not answer within {limit} ms"))
            })
        }
    }

    /// Waits up to `limit` until everything handed over is written.
    pub async fn flush(&self, limit: Duration) -> Result<(), String> {
        let (latches, moving) = {
            let wanted = self.wanted.lock();
            (wanted.latches_number, wanted.moving_number)
        };
        let all = async {
            self.outcome(|written| &written.latches, latches).await?;
            self.outcome(|written| &written.moving, moving).await
        };
        let late = |_| Err("the state folder does not answer".to_owned());
        timeout(limit, all).await.unwrap_or_else(late)
    }

    /// Waits for the attempt to write this version of a part, or a newer one.
    fn outcome(
        &self,
        part: fn(&WriteOutcomes) -> &Outcome,
        number: u64,
    ) -> impl Future<Output = Result<(), String>> + Send + use<> {
        let mut written = self.written.clone();
        async move {
            let reached = written.wait_for(|written| part(written).number >= number).await;
            reached.map_or_else(
                |_| Err("the thread that writes the state has ended".to_owned()),
                |written| part(&written).result.clone(),
            )
        }
    }

    fn wake(&self) {
        // Full: the thread is woken already. Closed: the waiting futures return an error.
        _ = self.wake.try_send(());
    }
}

impl MotionWatch for StateWriter {
    fn changed(&self, moving: &[&str]) {
        {
            let mut wanted = self.wanted.lock();
            wanted.moving_number += 1;
            wanted.moving = moving.iter().map(ToString::to_string).collect();
        }
        self.wake();
    }

    fn recorded(&self) -> BoxFuture<'static, Result<(), String>> {
        let number = self.wanted.lock().moving_number;
        self.outcome(|written| &written.moving, number).boxed()
    }
}

impl Work {
    /// Starts the thread. It ends with the last [`StateWriter`]; while it waits for its disk it delays nothing else
    /// from ending.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(self, store: impl Store) -> io::Result<()> {
        let thread = thread::Builder::new().name("state".to_owned());
        thread.spawn(move || self.run(store)).map(drop)
    }

    fn run(mut self, mut store: impl Store) {
        let mut written = WriteOutcomes::default();
        while self.woken.blocking_recv().is_some() {
            let now = self.wanted.lock().clone();
            if written.latches.is_due(now.latches_number) {
                let wrote = store.latches(&now.latches);
                written.latches = outcome(now.latches_number, wrote, "which toolboxes are in emergency stop");
                self.written.send_replace(written.clone());
            }
            if written.moving.is_due(now.moving_number) {
                // The toolboxes that moved when the last service ended are latched by now. The record of what moves
                // is overwritten only after the latches are written, so at any time one of the two files names those
                // toolboxes.
                let wrote = written.latches.result.clone().map_err(io::Error::other);
                let wrote = wrote.and_then(|()| store.moving(&now.moving));
                written.moving = outcome(now.moving_number, wrote, "which toolboxes move");
                self.written.send_replace(written.clone());
            }
        }
    }
}

fn outcome(number: u64, wrote: io::Result<()>, what: &str) -> Outcome {
    if let Err(error) = &wrote {
        tracing::error!(%error, "cannot save {what} to the state folder (service.state_dir)");
    }
    Outcome {
        number,
        result: wrote.map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::mpsc as std_mpsc;

    use super::*;
    use engine::StopTarget;

    /// Records the states that it gets, each one only after the test allows it.
    struct Gate {
        may: std_mpsc::Receiver<io::Result<()>>,
        kept: Arc<Mutex<Vec<String>>>,
    }

    impl Gate {
        fn pass(&self, what: String) -> io::Result<()> {
            let result = self.may.recv().unwrap_or(Ok(()));
            if result.is_ok() {
                self.kept.lock().push(what);
            }
            result
        }
    }

    impl Store for Gate {
        fn latches(&mut self, latched: &BTreeMap<String, StopRecord>) -> io::Result<()> {
            let ids: Vec<_> = latched.keys().cloned().collect();
            self.pass(format!("latched {}", ids.join(" ")))
        }
        fn moving(&mut self, moving: &[String]) -> io::Result<()> {
            self.pass(format!("moving {}", moving.join(" ")))
        }
    }

    type Kept = Arc<Mutex<Vec<String>>>;

    fn gated() -> (Arc<StateWriter>, std_mpsc::Sender<io::Result<()>>, Kept) {
        let (writer, work) = StateWriter::new();
        let (let_it, may) = std_mpsc::channel();
        let kept = Kept::default();
        let gate = Gate {
            may,
            kept: kept.clone(),
        };
        work.start(gate).unwrap();
        (writer, let_it, kept)
    }

    fn engine() -> Engine {
        let record = |id: &str| (id.to_owned(), StopRecord::new("a test"));
        Engine::new(1, HashMap::from([record("arm"), record("leg")]))
    }

    #[tokio::test]
    async fn a_disk_that_does_not_respond_delays_a_wait_only_up_to_its_limit() {
        let (writer, let_it, kept) = gated();
        let engine = engine();
        let late = writer.keep(&engine, Duration::from_millis(20)).await;
        assert_eq!(
            late,
            Err("the state folder does not answer within 20 ms".to_owned())
        );
        for moving in [&["arm"][..], &["arm", "leg"], &["leg"]] {
            writer.changed(moving);
        }
        let recorded = writer.recorded();
        assert!(writer.flush(Duration::from_millis(20)).await.is_err());
        drop(let_it);
        assert_eq!(recorded.await, Ok(()));
        assert_eq!(writer.flush(Duration::from_secs(10)).await, Ok(()));
        assert_eq!(
            *kept.lock(),
            ["latched arm leg", "moving leg"],
            "what was overtaken is left out"
        );
    }

    #[tokio::test]
    async fn the_record_of_motion_is_not_overwritten_before_its_latches_are_written() {
        let (writer, let_it, kept) = gated();
        let full = || Err(io::Error::other("the disk is full"));
        let_it.send(full()).unwrap();
        let result = writer.keep(&engine(), Duration::from_secs(10)).await;
        assert_eq!(result, Err("the disk is full".to_owned()));
        // The second attempt fails too.
        let_it.send(full()).unwrap();
        writer.changed(&["arm"]);
        assert_eq!(writer.recorded().await, Err("the disk is full".to_owned()));
        drop(let_it);
        writer.changed(&["leg"]);
        assert_eq!(writer.recorded().await, Ok(()));
        assert_eq!(*kept.lock(), ["latched arm leg", "moving leg"]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn the_newest_latches_are_the_last_to_be_written() {
        let (writer, let_it, kept) = gated();
        drop(let_it);
        let names: Vec<_> = (0..8).map(|id| format!("arm{id}")).collect();
        let engine = Arc::new(Engine::new(1, HashMap::new()));
        let stops = names.iter().map(|name| {
            let (engine, writer, name) = (engine.clone(), writer.clone(), name.clone());
            tokio::spawn(async move {
                drop(engine.stop_itself(&name, "a test"));
                writer.keep(&engine, Duration::from_secs(10)).await.unwrap();
            })
        });
        for stop in stops.collect::<Vec<_>>() {
            stop.await.unwrap();
        }
        assert_eq!(
            kept.lock().last().unwrap(),
            &format!("latched {}", names.join(" "))
        );
        drop(engine.stop(&StopTarget::All, "nothing is installed"));
    }
}
