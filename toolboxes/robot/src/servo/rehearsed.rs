//! A line of simulated servos in the place of a serial port.
//!
//! Owns the end of the line. What is written to it is heard by the servos of `feetech-sim`, and what they
//! answer comes when it is due on the robot's clock: the bus above cannot tell it from a cable. It costs nothing while the bus is
//! quiet. Read [`RehearsedPort`].

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use feetech_sim::{Bus, Frame};
use parking_lot::{Mutex, MutexGuard};

use super::port::Port;
use crate::clock::Clock;

/// The servos of one line, shared with what stands around the robot.
pub(crate) type Servos = Arc<Mutex<Bus>>;

/// What hears the instructions on a line.
pub(crate) type Listener = Arc<dyn Fn(&mut Bus, &Frame) + Send + Sync>;

/// Where a line of simulated servos stands.
#[derive(Clone)]
pub(crate) struct SimulatedLine {
    pub(crate) servos: Servos,
    pub(crate) clock: Clock,
    /// Hears each instruction, when the servos have heard it.
    pub(crate) heard: Listener,
}

/// The near end of a line of simulated servos.
pub(crate) struct RehearsedPort(SimulatedLine);

impl RehearsedPort {
    pub(crate) fn new(stage: SimulatedLine) -> Self {
        Self(stage)
    }
}

/// The servos of a line.
pub(crate) fn servos(line: &Servos) -> MutexGuard<'_, Bus> {
    line.lock()
}

impl Port for RehearsedPort {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let now = self.now();
        let mut bus = servos(&self.0.servos);
        bus.hear(bytes, now);
        for frame in bus.take_frames() {
            (self.0.heard)(&mut bus, &frame);
        }
        Ok(())
    }

    fn take(&mut self, until: Instant) -> io::Result<Vec<u8>> {
        loop {
            let now = self.now();
            let due = {
                let mut bus = servos(&self.0.servos);
                let bytes = bus.say(now);
                if !bytes.is_empty() || now >= until {
                    return Ok(bytes);
                }
                bus.next_due()
            };
            // The thread that owns the bus waits here, as it would for a cable.
            let wait = due.map_or(until, |due| due.min(until)).max(now + SHORTEST);
            self.0.clock.block_until(wait);
        }
    }

    fn clear(&mut self) -> io::Result<()> {
        let now = self.now();
        let _ = servos(&self.0.servos).say(now);
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        Ok(())
    }

    fn now(&self) -> Instant {
        self.0.clock.now()
    }
}

/// The shortest wait for an answer.
const SHORTEST: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::servo::{Family, Line, ServoBus, Urgency};

    /// A robot that nothing is asked of costs nothing: its bus does not look whether the servos are there.
    #[test]
    fn an_idle_line_is_silent() {
        let clock = Clock::rehearsed(100_000.0).unwrap();
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let line = SimulatedLine {
            servos: Arc::new(Mutex::new(Bus::new((1..=3).map(feetech_sim::Servo::new)))),
            clock: clock.clone(),
            heard: Arc::new(move |_, _| {
                count.fetch_add(1, Ordering::SeqCst);
            }),
        };
        let timeout = Duration::from_millis(20);
        let bus = ServoBus::start(
            "left",
            Line::Rehearsed(line),
            timeout,
            Family::default(),
            (vec![1, 2, 3], Vec::new()),
            Box::new(|_| ()),
        );
        let bus = bus.unwrap();
        let awake = clock.awake();
        let asked = bus.sender().send(Urgency::Quiet, |wire| wire.ping(2)).unwrap();
        let resting = clock.rest(None, Box::new(|| ()));
        let answered = asked.blocking_recv().unwrap();
        drop(resting);
        assert!(answered.0.unwrap(), "servo 2 answers");
        drop(answered.1);
        let before = sent.load(Ordering::SeqCst);
        assert!(before > 0);
        clock.block_until(clock.now() + Duration::from_secs(3_600));
        assert_eq!(sent.load(Ordering::SeqCst), before, "an hour without a question");
        drop(awake);
        clock.end();
    }

    /// A question that waits for its turn does not hold up the time that the one before it takes.
    #[test]
    fn a_queue_does_not_hold_up_time() {
        let clock = Clock::rehearsed(100_000.0).unwrap();
        let line = SimulatedLine {
            servos: Arc::new(Mutex::new(Bus::new([feetech_sim::Servo::new(1)]))),
            clock: clock.clone(),
            heard: Arc::new(|_, _| ()),
        };
        let timeout = Duration::from_millis(20);
        let (line, servos) = (Line::Rehearsed(line), (vec![1], Vec::new()));
        let bus =
            ServoBus::start("left", line, timeout, Family::default(), servos, Box::new(|_| ())).unwrap();
        let awake = clock.awake();
        let ask = |id: u8| {
            let asked = bus.sender().send(Urgency::Quiet, move |wire| wire.ping(id));
            asked.unwrap()
        };
        // Nothing answers under these ids, so each question takes its whole time.
        let asked: Vec<_> = (100..140).map(ask).collect();
        let begun = Instant::now();
        let resting = clock.rest(None, Box::new(|| ()));
        for asked in asked {
            let (answered, waits) = asked.blocking_recv().unwrap();
            drop(waits);
            assert!(!answered.unwrap());
        }
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "the time stood still: {:?}",
            begun.elapsed()
        );
        drop((resting, awake));
        clock.end();
    }
}
