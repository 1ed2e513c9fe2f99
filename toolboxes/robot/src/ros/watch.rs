//! The thread that ends a velocity and notices whether the robot is there.
//!
//! The toolbox repeats a walking robot's velocity. When it was not repeated for the length of a lease, this thread
//! sends zero three times, because one message can be lost. It also sends zero to a robot that appears or comes back,
//! because the last stop may have been lost with the network. Read [`Watch`].

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::Essential;
use parking_lot::{Condvar, Mutex, MutexGuard};

/// How often a stop is repeated after the first time.
const REPEATS: u32 = 2;
/// The pause between two repetitions.
const GAP: Duration = Duration::from_millis(50);
/// The pause between two looks whether the robot is there.
const LOOK: Duration = Duration::from_millis(100);

/// The robot, as the thread uses it. Every method returns soon.
pub(crate) trait Watched: Send + Sync + 'static {
    /// Sends zero velocity.
    fn stop(&self);
    /// Whether the robot is there.
    fn is_there(&self) -> bool;
    /// What a robot that is there lacks.
    fn lacks(&self) -> Option<String> {
        None
    }
    /// The robot has appeared or gone, or lacks something else than before.
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
    /// When the velocity ends unless it is repeated.
    until: Option<Instant>,
    repeats: u32,
    next_repeat: Option<Instant>,
    closing: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// A robot that comes back may still follow its last velocity, so the thread sends zero, unless a call drives it
    /// already.
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
            let (shared, name) = (Arc::clone(&shared), name.to_owned());
            move || {
                let _essential = Essential::new(format!("the watch of {name}'s velocity"));
                run(&shared, watched.as_ref());
            }
        })?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Extends the lease. Called before a velocity is sent, which holds for `lasting` unless it is repeated.
    pub(crate) fn renew(&self, lasting: Duration) {
        let mut state = self.shared.state();
        state.until = Some(Instant::now() + lasting);
        state.repeats = 0;
        drop(state);
        self.shared.woken.notify_all();
    }

    /// Ends the lease after zero was sent; the thread sends it twice more.
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
        let thread = self.thread.lock().take();
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
    let mut lacked = None;
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
            let lacks = watched.lacks().filter(|_| found);
            // A robot that was never there has not gone.
            let came_or_went = there.replace(found).unwrap_or(false) != found;
            if came_or_went && found {
                shared.has_come();
            }
            if came_or_went || lacks != lacked {
                watched.changed(found);
            }
            lacked = lacks;
            next_look = Instant::now() + LOOK;
            continue;
        }
        let wake = [Some(next_look), state.until, next_repeat]
            .into_iter()
            .flatten()
            .min();
        let wait = wake.unwrap_or(next_look).saturating_duration_since(now);
        shared.woken.wait_for(&mut state, wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A robot that comes when it is told to, and counts the stops.
    #[derive(Default)]
    struct Robot {
        there: Mutex<bool>,
        state: Mutex<(usize, Option<bool>)>,
        changed: Condvar,
    }

    impl Robot {
        /// Waits until the stops and the last word on whether it is there are these.
        fn until(&self, wanted: (usize, Option<bool>)) {
            let mut state = self.state.lock();
            self.changed
                .wait_while_for(&mut state, |state| *state != wanted, Duration::from_secs(20));
            assert_eq!(*state, wanted);
        }
    }

    impl Watched for Robot {
        fn stop(&self) {
            self.state.lock().0 += 1;
            self.changed.notify_all();
        }

        fn is_there(&self) -> bool {
            *self.there.lock()
        }

        fn changed(&self, there: bool) {
            self.state.lock().1 = Some(there);
            self.changed.notify_all();
        }
    }

    #[test]
    fn who_comes_back_is_told_to_stop() {
        let robot = Arc::new(Robot::default());
        let _watch = Watch::start("test", robot.clone()).unwrap();
        for times in 1..=2 {
            *robot.there.lock() = true;
            robot.until((3 * times, Some(true)));
            *robot.there.lock() = false;
            robot.until((3 * times, Some(false)));
        }
    }

    #[test]
    fn who_is_driven_by_then_is_not() {
        let robot = Arc::new(Robot::default());
        let watch = Watch::start("test", robot.clone()).unwrap();
        watch.renew(Duration::from_secs(60));
        *robot.there.lock() = true;
        robot.until((0, Some(true)));
        watch.close();
        robot.until((3, Some(true)));
    }
}
