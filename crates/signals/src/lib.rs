//! The signals by which a person or a session ends a program: Ctrl-C, a closed terminal, a service manager.
//!
//! Every program that keeps something moving ends in order on each of them; with the default of the system it would be gone at
//! once, like one that is killed. Read [`Ending`].
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! let mut ending = ovos_tools_signals::Ending::listen()?;
//! println!("ends on {}", ending.next().await); // "SIGTERM", for example
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for a signal that ends the program. From its creation on, none of them ends the process by itself.
#[derive(Debug)]
pub struct Ending(Vec<(&'static str, Signal)>);

impl Ending {
    /// Listens from now on. A SIGHUP that the program was started to ignore, as `nohup` does, stays ignored. (Scripts start what
    /// they leave in the background with SIGINT and SIGQUIT ignored; one that is sent to a server is meant.)
    ///
    /// # Errors
    /// The system does not allow a handler.
    pub fn listen() -> io::Result<Self> {
        let ignored = ignored();
        let mut signals = Vec::new();
        // A person sends SIGINT and SIGQUIT (Ctrl-C, Ctrl-\), a terminal that closes SIGHUP, everything else SIGTERM.
        for (name, kind) in [
            ("SIGTERM", SignalKind::terminate()),
            ("SIGINT", SignalKind::interrupt()),
            ("SIGHUP", SignalKind::hangup()),
            ("SIGQUIT", SignalKind::quit()),
        ] {
            let stays_ignored = kind == SignalKind::hangup() && holds(ignored, kind);
            if !stays_ignored {
                signals.push((name, signal(kind)?));
            }
        }
        Ok(Self(signals))
    }

    /// The name of the next signal.
    ///
    /// # Cancel safety
    /// Safe: no signal is lost.
    pub async fn next(&mut self) -> &'static str {
        poll_fn(|context| {
            for (name, signal) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    return Poll::Ready(*name);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The signals that this process ignores, as a bit for each; none where `/proc` does not say.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}

fn holds(mask: u64, kind: SignalKind) -> bool {
    let bit = u32::try_from(kind.as_raw_value() - 1).unwrap_or(u32::MAX);
    mask.checked_shr(bit).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_holds_the_signals_whose_bits_it_has() {
        // What `nohup` leaves behind, and a shell without job control.
        for (mask, hangup, quit) in [(0x0, false, false), (0x1, true, false), (0x1006, false, true)] {
            assert_eq!(holds(mask, SignalKind::hangup()), hangup, "{mask:x}");
            assert_eq!(holds(mask, SignalKind::quit()), quit, "{mask:x}");
        }
    }
}
