//! The time of a robot: that of the world, or that of a rehearsal, which runs faster while all of the robot waits.
//!
//! Owns what time it is for everything that drives a simulated robot. A rehearsal at another speed than that of the world stands
//! still while a part of the driver computes, so that a busy machine delays nothing, and goes on with its next alarm
//! when all parts wait. At the speed of the world this is the clock of the machine. Read [`Clock`].

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::Notify;

/// How long the time of a rehearsal stands still for one part that computes. A busy machine may not let it run for a second or two,
/// and a base that drives must not go on meanwhile; a part that takes longer waits for something that this clock does not know.
const STANDS: Duration = Duration::from_secs(10);

/// What the wall clock of the machine says.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// What time it is. Clones are the same clock; the default is that of the machine.
#[derive(Clone, Default)]
pub(crate) struct Clock(Option<Arc<Rehearsed>>);

struct Rehearsed {
    scale: f64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The time of the rehearsal at `since`, the time of the machine.
    now: Instant,
    since: Instant,
    /// How many parts compute.
    awake: usize,
    alarms: Vec<Alarm>,
    next: u64,
    ended: bool,
}

struct Alarm {
    id: u64,
    at: Instant,
    ring: Ring,
}

/// Wakes who waits; takes no lock of the clock.
pub(crate) type Ring = Box<dyn FnOnce() + Send>;

impl State {
    fn first(&self) -> Option<Instant> {
        self.alarms.iter().map(|alarm| alarm.at).min()
    }

    fn now(&self, scale: f64) -> Instant {
        let passed = self.since.elapsed();
        let passed = match self.awake {
            0 => passed.mul_f64(scale),
            _ => passed.saturating_sub(STANDS),
        };
        let now = self.now + passed;
        // Not beyond an alarm: whoever waits for it finds its time.
        self.first().map_or(now, |first| now.min(first.max(self.now)))
    }
}

impl Rehearsed {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Changes who is awake or which alarms there are.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state();
        state.now = state.now(self.scale);
        state.since = Instant::now();
        let changed = change(&mut state);
        self.changed.notify_all();
        changed
    }

    /// Rings each alarm at its time, until the clock has ended.
    fn run(&self) {
        let mut state = self.state();
        while !state.ended {
            let now = state.now(self.scale);
            if let Some(due) = state.alarms.iter().position(|alarm| alarm.at <= now) {
                (state.now, state.since) = (now, Instant::now());
                let alarm = state.alarms.swap_remove(due);
                // It is awake from now on, and not only when its thread runs.
                state.awake += 1;
                drop(state);
                (alarm.ring)();
                state = self.state();
                continue;
            }
            let Some(first) = state.first() else {
                self.changed.wait(&mut state);
                continue;
            };
            let left = first.saturating_duration_since(now);
            let left = match state.awake {
                0 => left.div_f64(self.scale),
                _ => left + STANDS,
            };
            self.changed.wait_for(&mut state, left);
        }
    }
}

impl Clock {
    /// A clock that is so many times as fast as that of the machine.
    ///
    /// # Errors
    /// Its thread cannot be started.
    pub(crate) fn rehearsed(scale: f64) -> std::io::Result<Self> {
        if scale <= 1.0 {
            return Ok(Self::default());
        }
        let now = Instant::now();
        let rehearsed = Arc::new(Rehearsed {
            scale,
            state: Mutex::new(State {
                now,
                since: now,
                awake: 0,
                alarms: Vec::new(),
                next: 0,
                ended: false,
            }),
            changed: Condvar::new(),
        });
        let thread = Arc::clone(&rehearsed);
        std::thread::Builder::new()
            .name("rehearsal-clock".to_owned())
            .spawn(move || thread.run())?;
        Ok(Self(Some(rehearsed)))
    }

    /// Ends the thread; the time of a rehearsal stands still from now on.
    pub(crate) fn end(&self) {
        if let Some(rehearsed) = &self.0 {
            rehearsed
                .change(|state| {
                    state.ended = true;
                    std::mem::take(&mut state.alarms)
                })
                .into_iter()
                .for_each(|alarm| (alarm.ring)());
        }
    }

    /// What time it is.
    pub(crate) fn now(&self) -> Instant {
        match &self.0 {
            Some(rehearsed) => rehearsed.state().now(rehearsed.scale),
            None => Instant::now(),
        }
    }

    /// How long ago a moment was.
    pub(crate) fn since(&self, moment: Instant) -> Duration {
        self.now().saturating_duration_since(moment)
    }

    /// The right to be waited for, for a part that computes.
    pub(crate) fn awake(&self) -> Awake {
        if let Some(rehearsed) = &self.0 {
            rehearsed.change(|state| state.awake += 1);
        }
        Awake(self.clone())
    }

    /// Gives the right to be waited for away while something else is waited for, with the time at which that ends by itself.
    pub(crate) fn rest(&self, until: Option<Instant>, ring: Ring) -> Resting {
        let id = self.0.as_ref().map(|rehearsed| {
            rehearsed.change(|state| {
                state.awake = state.awake.saturating_sub(1);
                state.next += 1;
                let id = state.next;
                state.alarms.extend(until.map(|at| Alarm { id, at, ring }));
                id
            })
        });
        Resting {
            clock: self.clone(),
            id: id.unwrap_or_default(),
            alarmed: until.is_some(),
        }
    }

    /// Waits.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn sleep(&self, time: Duration) {
        if self.0.is_none() {
            return tokio::time::sleep(time).await;
        }
        let until = self.now() + time;
        let woken = Arc::new(Notify::new());
        let ring = Arc::clone(&woken);
        let _resting = self.rest(Some(until), Box::new(move || ring.notify_one()));
        woken.notified().await;
    }

    /// Blocks until a moment.
    pub(crate) fn block_until(&self, moment: Instant) {
        if self.0.is_none() {
            return std::thread::sleep(moment.saturating_duration_since(Instant::now()));
        }
        let thread = std::thread::current();
        let _resting = self.rest(Some(moment), Box::new(move || thread.unpark()));
        while self.now() < moment && !self.has_ended() {
            std::thread::park();
        }
    }

    /// Waits on a condition variable, at most until a moment. `ring` wakes it.
    pub(crate) fn wait<T>(
        &self,
        condition: &Condvar,
        guard: &mut MutexGuard<'_, T>,
        until: Option<Instant>,
        ring: impl FnOnce() + Send + 'static,
    ) {
        if let (None, Some(until)) = (&self.0, until) {
            let left = until.saturating_duration_since(Instant::now());
            condition.wait_for(guard, left);
            return;
        }
        let _resting = self.rest(until, Box::new(ring));
        condition.wait(guard);
    }

    fn has_ended(&self) -> bool {
        self.0.as_ref().is_some_and(|rehearsed| rehearsed.state().ended)
    }
}

/// A part that computes: the time of a rehearsal stands still for it.
pub(crate) struct Awake(Clock);

impl Drop for Awake {
    fn drop(&mut self) {
        if let Some(rehearsed) = &self.0.0 {
            rehearsed.change(|state| state.awake = state.awake.saturating_sub(1));
        }
    }
}

/// A part that waits. It is awake again when this is dropped.
pub(crate) struct Resting {
    clock: Clock,
    id: u64,
    alarmed: bool,
}

impl Drop for Resting {
    fn drop(&mut self) {
        let Some(rehearsed) = &self.clock.0 else { return };
        rehearsed.change(|state| {
            let before = state.alarms.len();
            state.alarms.retain(|alarm| alarm.id != self.id);
            // An alarm that has rung has woken it already.
            if !self.alarmed || state.alarms.len() < before {
                state.awake += 1;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rehearsal_skips_what_all_wait_for_and_stands_for_one_that_computes() {
        let clock = Clock::rehearsed(100_000.0).unwrap();
        let (begun, real) = (clock.now(), Instant::now());
        let awake = clock.awake();
        clock.block_until(begun + Duration::from_secs(3600));
        assert_eq!(clock.since(begun), Duration::from_secs(3600));
        assert!(real.elapsed() < Duration::from_secs(60));
        // Two that wait: the later one is not late, and while one computes the other sleeps.
        let (first, second) = (clock.clone(), clock.clone());
        let begun = clock.now();
        let other = clock.awake();
        let waiting = std::thread::spawn(move || {
            second.block_until(begun + Duration::from_secs(20));
            let at = second.since(begun);
            drop(other);
            at
        });
        first.block_until(begun + Duration::from_secs(10));
        assert_eq!(first.since(begun), Duration::from_secs(10));
        drop(awake);
        assert_eq!(waiting.join().unwrap(), Duration::from_secs(20));
        clock.end();
    }
}
