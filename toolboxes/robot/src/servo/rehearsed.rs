//! A line of simulated servos in the place of a serial port.
//!
//! Owns the line's clock, which is the real one. What is written to it is heard by the servos of `feetech-sim`, and what they
//! answer comes when it is due: the bus above cannot tell it from a cable. It costs nothing while the bus is quiet. Read
//! [`RehearsedPort`].

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use feetech_sim::Bus;

use super::port::Port;

/// The servos of one line, shared with what stands around the robot.
pub(crate) type Servos = Arc<Mutex<Bus>>;

/// The near end of a line of simulated servos.
pub(crate) struct RehearsedPort(Servos);

impl RehearsedPort {
    pub(crate) fn new(servos: Servos) -> Self {
        Self(servos)
    }
}

/// The servos of a line.
pub(crate) fn servos(line: &Servos) -> MutexGuard<'_, Bus> {
    // The simulator leaves valid state behind every call.
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Port for RehearsedPort {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut bus = servos(&self.0);
        bus.hear(bytes, Instant::now());
        bus.forget_frames();
        Ok(())
    }

    fn take(&mut self, until: Instant) -> io::Result<Vec<u8>> {
        loop {
            let now = Instant::now();
            let due = {
                let mut bus = servos(&self.0);
                let said = bus.say(now);
                if !said.is_empty() || now >= until {
                    return Ok(said);
                }
                bus.next_due()
            };
            let wait = due.map_or(until, |due| due.min(until));
            // The thread that owns the bus waits here, as it would for a cable.
            std::thread::sleep(wait.saturating_duration_since(now).max(SHORTEST));
        }
    }

    fn clear(&mut self) -> io::Result<()> {
        let _ = servos(&self.0).say(Instant::now());
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        Ok(())
    }

    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// The shortest wait for an answer.
const SHORTEST: Duration = Duration::from_micros(50);
