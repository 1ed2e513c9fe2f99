//! A network between two machines that a test can spoil. Read [`Proxy`].

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// What the network does with what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    /// It carries it.
    Sound,
    /// It carries it later, in order.
    Slow(Duration),
    /// It carries nothing, and tells nobody. What came meanwhile is carried when it is sound again.
    Dark,
    /// As `Dark`, from the host to the mount only.
    DarkBack,
    /// It loses what comes, once.
    Loses,
    /// It changes the order of what comes, once.
    Reorders,
    /// It ends every connection and takes no new one.
    Cut,
}

/// Carries connections to a port, on threads that end with them.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    sky: Arc<Sky>,
}

struct Sky {
    weather: Mutex<Weather>,
    changed: Condvar,
}

impl Sky {
    fn now(&self) -> Weather {
        *self.weather.lock().unwrap()
    }

    /// Waits while nothing is carried in this direction; returns the weather after it.
    fn carries(&self, back: bool) -> Weather {
        let is_dark =
            |weather: &mut Weather| *weather == Weather::Dark || (back && *weather == Weather::DarkBack);
        let weather = self.weather.lock().unwrap();
        *self.changed.wait_while(weather, is_dark).unwrap()
    }

    /// Takes a fault that happens once.
    fn once(&self, fault: Weather) -> bool {
        let mut weather = self.weather.lock().unwrap();
        let is_due = *weather == fault;
        if is_due {
            *weather = Weather::Sound;
        }
        is_due
    }
}

impl Proxy {
    pub(crate) fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let sky = Arc::new(Sky {
            weather: Mutex::new(Weather::Sound),
            changed: Condvar::new(),
        });
        let above = sky.clone();
        thread::spawn(move || {
            for dialled in listener.incoming().flatten() {
                if above.now() == Weather::Cut {
                    continue;
                }
                let Ok(host) = TcpStream::connect(("127.0.0.1", target)) else {
                    continue;
                };
                for (from, to, back) in [
                    (dialled.try_clone().unwrap(), host.try_clone().unwrap(), false),
                    (host, dialled, true),
                ] {
                    _ = from.set_nodelay(true);
                    _ = from.set_read_timeout(Some(Duration::from_millis(10)));
                    let above = above.clone();
                    thread::spawn(move || carry(from, to, back, &above));
                }
            }
        });
        Self { port, sky }
    }

    pub(crate) fn set(&self, weather: Weather) {
        *self.sky.weather.lock().unwrap() = weather;
        self.sky.changed.notify_all();
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, back: bool, sky: &Sky) {
    let mut bytes = [0; 16 * 1024];
    let mut held: Option<Vec<u8>> = None;
    loop {
        if sky.now() == Weather::Cut {
            break;
        }
        let count = match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) =>
            {
                continue;
            }
            Err(_) => break,
        };
        match sky.carries(back) {
            Weather::Cut => break,
            Weather::Slow(by) => thread::sleep(by),
            _ => {}
        }
        if sky.once(Weather::Loses) {
            continue;
        }
        if held.is_none() && sky.once(Weather::Reorders) {
            held = Some(bytes[..count].to_vec());
            continue;
        }
        let mut wrote = to.write_all(&bytes[..count]);
        if let Some(earlier) = held.take() {
            wrote = wrote.and_then(|()| to.write_all(&earlier));
        }
        if wrote.is_err() {
            break;
        }
    }
    for end in [from, to] {
        _ = end.shutdown(Shutdown::Both);
    }
}
