//! The thread that looks for a robot until it has found it.
//!
//! A DDS participant takes the machine's addresses when it is opened and hears nothing on a later one: a cable that
//! is plugged in after the start, a network that comes up later. So a connection that does not open is tried again,
//! and one that has not found its robot is opened again when the addresses change. Read [`Seek`].

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::Essential;
use parking_lot::{Condvar, Mutex};

use crate::ros::RosError;

/// How often the thread looks whether the robot is there.
const LOOK: Duration = Duration::from_millis(20);

/// The search, as the thread uses it. Opening may take a moment; every other method returns soon.
pub(super) trait Sought: Send + 'static {
    /// The connection.
    type Link;
    /// Opens a connection.
    fn open(&self) -> Result<Self::Link, RosError>;
    /// Whether the connection has found the robot.
    fn is_there(&self, link: &Self::Link) -> bool;
    /// The machine's addresses for the connection.
    fn addresses(&self) -> BTreeSet<IpAddr>;
    /// The result of opening a connection.
    fn tried(&self, result: Result<(), RosError>);
    /// Takes the connection that has found the robot. The search is over.
    fn found(&self, link: Self::Link);
}

/// A search. Dropping it ends the search.
pub(super) struct Seek {
    closing: Arc<(Mutex<bool>, Condvar)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Seek {
    /// Begins a search that checks every `again` whether it has to open a new connection.
    pub(super) fn start(name: &str, again: Duration, sought: impl Sought) -> std::io::Result<Self> {
        let closing: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let thread = std::thread::Builder::new().name(format!("seek-{name}")).spawn({
            let (closing, name) = (Arc::clone(&closing), name.to_owned());
            move || {
                let _essential = Essential::new(format!("the search for {name}"));
                run(&closing, again, &sought);
            }
        })?;
        Ok(Self {
            closing,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Ends the search, and closes the connection that it has opened.
    pub(super) fn close(&self) {
        *self.closing.0.lock() = true;
        self.closing.1.notify_all();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Seek {
    fn drop(&mut self) {
        self.close();
    }
}

fn run<S: Sought>((closing, woken): &(Mutex<bool>, Condvar), again: Duration, sought: &S) {
    let mut opened: Option<(S::Link, BTreeSet<IpAddr>)> = None;
    let mut next = Instant::now();
    loop {
        match opened.take() {
            Some((link, _)) if sought.is_there(&link) => return sought.found(link),
            other => opened = other,
        }
        if next <= Instant::now() {
            // Read before the opening, so that an address that appears meanwhile counts as new.
            let addresses = sought.addresses();
            if opened.as_ref().is_none_or(|(_, then)| *then != addresses) {
                // The old connection is closed first, because the new one may need its ports and names.
                drop(opened.take());
                let result = sought.open();
                sought.tried(result.as_ref().map(drop).map_err(Clone::clone));
                opened = result.ok().map(|link| (link, addresses));
            }
            next = Instant::now() + again;
        }
        let mut closing = closing.lock();
        woken.wait_while_for(&mut closing, |closing| !*closing, LOOK.min(again));
        if *closing {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    #[derive(Debug, PartialEq)]
    enum Said {
        Asked,
        Tried(bool),
        Found(u32),
        Closed(u32),
    }

    /// A connection with the number of its opening; reports when it is dropped.
    struct Numbered(u32, Sender<Said>);

    impl Drop for Numbered {
        fn drop(&mut self) {
            let _ = self.1.send(Said::Closed(self.0));
        }
    }

    #[derive(Default)]
    struct World {
        opened: u32,
        /// Openings up to this one fail.
        fails: u32,
        /// The opening that finds the robot.
        finds: u32,
        addresses: BTreeSet<IpAddr>,
    }

    struct Robot(Arc<Mutex<World>>, Sender<Said>);

    impl Sought for Robot {
        type Link = Numbered;

        fn open(&self) -> Result<Numbered, RosError> {
            let mut world = self.0.lock();
            world.opened += 1;
            match world.opened > world.fails {
                true => Ok(Numbered(world.opened, self.1.clone())),
                false => Err(RosError::Closed),
            }
        }

        fn is_there(&self, link: &Numbered) -> bool {
            self.0.lock().finds == link.0
        }

        fn addresses(&self) -> BTreeSet<IpAddr> {
            let _ = self.1.send(Said::Asked);
            self.0.lock().addresses.clone()
        }

        fn tried(&self, result: Result<(), RosError>) {
            let _ = self.1.send(Said::Tried(result.is_ok()));
        }

        fn found(&self, link: Numbered) {
            let _ = self.1.send(Said::Found(link.0));
        }
    }

    fn search(world: World) -> (Seek, Arc<Mutex<World>>, Receiver<Said>) {
        let world = Arc::new(Mutex::new(world));
        let (sender, said) = channel();
        let robot = Robot(Arc::clone(&world), sender);
        let seek = Seek::start("test", Duration::from_millis(1), robot).unwrap();
        (seek, world, said)
    }

    fn next(said: &Receiver<Said>) -> Said {
        said.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    fn next_but_asked(said: &Receiver<Said>) -> Said {
        std::iter::repeat_with(|| next(said))
            .find(|said| *said != Said::Asked)
            .unwrap()
    }

    #[test]
    fn what_does_not_open_is_tried_again() {
        let (_seek, _, said) = search(World {
            fails: 2,
            finds: 3,
            ..World::default()
        });
        for expected in [
            Said::Tried(false),
            Said::Tried(false),
            Said::Tried(true),
            Said::Found(3),
        ] {
            assert_eq!(next_but_asked(&said), expected);
        }
    }

    #[test]
    fn a_connection_without_a_robot_is_opened_anew_for_new_addresses_only() {
        let (seek, world, said) = search(World {
            finds: 2,
            ..World::default()
        });
        assert_eq!(next_but_asked(&said), Said::Tried(true));
        for _ in 0..5 {
            assert_eq!(next(&said), Said::Asked, "the addresses are the same");
        }
        world.lock().addresses.insert(Ipv4Addr::LOCALHOST.into());
        for expected in [Said::Closed(1), Said::Tried(true), Said::Found(2)] {
            assert_eq!(next_but_asked(&said), expected);
        }
        seek.close();
    }

    #[test]
    fn a_search_ends_with_what_it_opened() {
        let (seek, _, said) = search(World::default());
        assert_eq!(next_but_asked(&said), Said::Tried(true));
        seek.close();
        assert_eq!(next_but_asked(&said), Said::Closed(1));
        assert!(said.recv().is_err(), "the thread is gone");
    }
}
