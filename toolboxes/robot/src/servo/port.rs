//! What a bus needs of a serial port, so that tests run a bus in time of their own.

use std::io::{self, Read as _, Write as _};
use std::time::{Duration, Instant};

use serialport::{ClearBuffer, SerialPort as _, TTYPort};

/// A line with servos on it, and its clock.
pub(crate) trait Port: Send {
    /// Sends bytes.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Waits until there are bytes, at most until `until`, and takes them; none came where it returns none.
    fn take(&mut self, until: Instant) -> io::Result<Vec<u8>>;

    /// Drops what has come.
    fn clear(&mut self) -> io::Result<()>;

    /// # Errors
    /// The device is gone.
    fn check(&self) -> io::Result<()>;

    fn now(&self) -> Instant;
}

/// A serial port of this machine.
pub(super) struct Serial(pub(super) TTYPort);

impl Drop for Serial {
    fn drop(&mut self) {
        // While anything else has the port open, the kernel would go on refusing it to the next program.
        let _ = self.0.set_exclusive(false);
    }
}

/// The longest that a write may take: some hundred bytes at the slowest usual rate.
const SENT: Duration = Duration::from_millis(50);

impl Port for Serial {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.set_timeout(SENT)?;
        self.0.write_all(bytes)
    }

    fn take(&mut self, until: Instant) -> io::Result<Vec<u8>> {
        let left = until.saturating_duration_since(Instant::now());
        self.0.set_timeout(left)?;
        let mut bytes = [0; 512];
        match self.0.read(&mut bytes) {
            Ok(0) => Err(io::ErrorKind::BrokenPipe.into()),
            Ok(length) => Ok(bytes.get(..length).unwrap_or_default().to_vec()),
            Err(error) if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::Interrupted) => {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    fn clear(&mut self) -> io::Result<()> {
        self.0.clear(ClearBuffer::Input)?;
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        self.0.bytes_to_read()?;
        Ok(())
    }

    fn now(&self) -> Instant {
        Instant::now()
    }
}
