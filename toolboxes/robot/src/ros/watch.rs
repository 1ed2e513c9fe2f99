//! The thread that ends a velocity by itself and notices who is there.
//!
//! A walking robot is told its velocity again and again; when it was not said for the length of a lease, this thread
//! says zero, three times, because one can be lost. It says so, too, to a robot that comes or comes back: a network that
//! was away took the last stop with it. Read [`Watch`].

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a stop is said after the first time.
const REPEATS: u32 = 2;
/// Between two of them.
const GAP: Duration = Duration::from_millis(50);
/// How often it looks who is there.
const LOOK: Duration = Duration::from_millis(100);

/// What the thread says and asks. Everything returns soon.
pub(crate) trait Watched: Send + Sync + 'static {
    /// Says zero velocity.
    fn stop(&self);
    /// Whether the robot is there.
    fn is_there(&self) -> bool;
    /// It came or went.
    fn changed(&self, there: bool);
}

/// A running thread. Dropping it ends the thread; a velocity that is still on is ended first.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Default)]
struct State {
    /// When the velocity ends unless it is said again.
    until: Option<Instant>,
    repeats: u32,
    next_repeat: Option<Instant>,
    closing: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What comes back may still do what it was told last, so zero is said, unless a call drives it already.
    fn has_come(&self) {
        let mut state = self.state();
        if state.until.is_none() {
            state.repeats = 1 + REPEATS;
            state.next_repeat = Some(Instant::now());
        }
    }
}

impl Watch {
    pub(crate) fn start(name: &str, watched: Arc<dyn Watched>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            woken: Condvar::new(),
        });
        let thread = std::thread::Builder::new().name(format!("watch-{name}")).spawn({
            let shared = Arc::clone(&shared);
            move || run(&shared, watched.as_ref())
        })?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// A velocity is about to be said; it holds for `lasting` unless it is said again.
    pub(crate) fn renew(&self, lasting: Duration) {
        let mut state = self.shared.state();
        state.until = Some(Instant::now() + lasting);
        state.repeats = 0;
        drop(state);
        self.shared.woken.notify_all();
    }

    /// Zero was said: it is said twice more.
    pub(crate) fn stopped(&self) {
        let mut state = self.shared.state();
        state.until = None;
        state.repeats = REPEATS;
        state.next_repeat = Some(Instant::now() + GAP);
        drop(state);
        self.shared.woken.notify_all();
    }

    pub(crate) fn close(&self) {
        self.shared.state().closing = true;
        self.shared.woken.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.close();
    }
}

fn run(shared: &Shared, watched: &dyn Watched) {
    let mut there = None;
    let mut next_look = Instant::now();
    loop {
        let now = Instant::now();
        let mut state = shared.state();
        let over = state.until.is_some_and(|until| until <= now);
        if over || (state.closing && state.until.is_some()) {
            state.until = None;
            state.repeats = REPEATS;
            state.next_repeat = Some(now + GAP);
            drop(state);
            tracing::warn!("the velocity was not renewed: it ends");
            watched.stop();
            continue;
        }
        let next_repeat = state.next_repeat.filter(|_| state.repeats > 0);
        if next_repeat.is_some_and(|next| next <= now) {
            state.repeats -= 1;
            state.next_repeat = Some(now + GAP);
            drop(state);
            watched.stop();
            continue;
        }
        if state.closing && state.repeats == 0 {
            return;
        }
        if next_look <= now {
            drop(state);
            let found = watched.is_there();
            // That it is not there yet is no news.
            if there.replace(found).unwrap_or(false) != found {
                if found {
                    shared.has_come();
                }
                watched.changed(found);
            }
            next_look = Instant::now() + LOOK;
            continue;
        }
        let wake = [Some(next_look), state.until, next_repeat]
            .into_iter()
            .flatten()
            .min();
        let wait = wake.unwrap_or(next_look).saturating_duration_since(now);
        drop(
            shared
                .woken
                .wait_timeout(state, wait)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A robot that comes when it is told to, and counts the stops.
    #[derive(Default)]
    struct Robot {
        there: Mutex<bool>,
        told: Mutex<(usize, Option<bool>)>,
        changed: Condvar,
    }

    impl Robot {
        /// Waits until the stops and the last word on whether it is there are these.
        fn until(&self, wanted: (usize, Option<bool>)) {
            let told = self.told.lock().unwrap();
            let waiting = self
                .changed
                .wait_timeout_while(told, Duration::from_secs(20), |told| *told != wanted);
            assert_eq!(*waiting.unwrap().0, wanted);
        }
    }

    impl Watched for Robot {
        fn stop(&self) {
            self.told.lock().unwrap().0 += 1;
            self.changed.notify_all();
        }

        fn is_there(&self) -> bool {
            *self.there.lock().unwrap()
        }

        fn changed(&self, there: bool) {
            self.told.lock().unwrap().1 = Some(there);
            self.changed.notify_all();
        }
    }

    #[test]
    fn who_comes_back_is_told_to_stop() {
        let robot = Arc::new(Robot::default());
        let _watch = Watch::start("test", robot.clone()).unwrap();
        for times in 1..=2 {
            *robot.there.lock().unwrap() = true;
            robot.until((3 * times, Some(true)));
            *robot.there.lock().unwrap() = false;
            robot.until((3 * times, Some(false)));
        }
    }

    #[test]
    fn who_is_driven_by_then_is_not() {
        let robot = Arc::new(Robot::default());
        let watch = Watch::start("test", robot.clone()).unwrap();
        watch.renew(Duration::from_secs(60));
        *robot.there.lock().unwrap() = true;
        robot.until((0, Some(true)));
        watch.close();
        robot.until((3, Some(true)));
    }
}
