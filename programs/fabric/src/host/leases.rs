//! Who commands each toolbox, and until when. Pure: the time is handed in. Read [`Leases::renew`].

use std::collections::BTreeMap;

use crate::messages::LEASE_MS;

/// What happens to motion whose commander is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnLeaseLoss {
    /// Emergency stop: the toolbox stays latched until an operator resumes it
    Stop,
    /// Its calls are cancelled and the machine holds its position
    Halt,
}

/// The leases of all toolboxes.
#[derive(Debug, Default)]
pub(super) struct Leases(BTreeMap<String, Lease>);

/// One commander's hold on a toolbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    /// The mount that holds it.
    pub(super) mount: String,
    /// Its machine.
    pub(super) peer: String,
    /// The host's clock at which it ends, unless it is renewed.
    pub(super) until: u64,
}

impl Leases {
    /// Gives a mount the lease of a toolbox, or renews it, until `until` and no longer than [`LEASE_MS`] from now; true if the
    /// mount holds it. A renewal never shortens a lease, and one that comes too late is none.
    pub(super) fn renew(&mut self, toolbox: &str, mount: &str, peer: &str, until: u64, now: u64) -> bool {
        let until = until.min(now + LEASE_MS);
        if until <= now {
            return self.holds(toolbox, mount, peer, now);
        }
        match self.0.get_mut(toolbox) {
            // Also one that has just run out: what it moved has to be ended first.
            Some(lease) if lease.mount != mount || lease.peer != peer => false,
            Some(lease) if lease.until <= now => false,
            Some(lease) => {
                lease.until = lease.until.max(until);
                true
            }
            None => {
                let (mount, peer) = (mount.to_owned(), peer.to_owned());
                self.0.insert(toolbox.to_owned(), Lease { mount, peer, until });
                true
            }
        }
    }

    /// Whether a mount holds the lease of a toolbox.
    pub(super) fn holds(&self, toolbox: &str, mount: &str, peer: &str, now: u64) -> bool {
        let lease = self.0.get(toolbox);
        lease.is_some_and(|lease| lease.mount == mount && lease.peer == peer && lease.until > now)
    }

    /// The machine that commands a toolbox.
    pub(super) fn commander(&self, toolbox: &str) -> Option<&str> {
        self.0.get(toolbox).map(|lease| lease.peer.as_str())
    }

    /// Takes out the leases that have run out.
    pub(super) fn take_expired(&mut self, now: u64) -> Vec<(String, Lease)> {
        let mut expired = Vec::new();
        self.0.retain(|toolbox, lease| {
            let lives = lease.until > now;
            if !lives {
                expired.push((toolbox.clone(), lease.clone()));
            }
            lives
        });
        expired
    }

    /// Takes out all leases: this host did not run for a while.
    pub(super) fn take_all(&mut self) -> Vec<(String, Lease)> {
        std::mem::take(&mut self.0).into_iter().collect()
    }

    /// Ends the lease of a mount that ends, as if it had run out: what it still moves has to be ended before another one commands.
    pub(super) fn leave(&mut self, toolbox: &str, mount: &str, peer: &str) {
        let lease = self.0.get_mut(toolbox);
        if let Some(lease) = lease.filter(|lease| lease.mount == mount && lease.peer == peer) {
            lease.until = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_commands_at_a_time_until_its_lease_has_run_out_and_was_ended() {
        let mut leases = Leases::default();
        assert!(leases.renew("arm", "a", "laptop", 1400, 1000));
        assert!(
            !leases.renew("arm", "b", "tablet", 1500, 1100),
            "another commands"
        );
        assert!(leases.renew("base", "b", "tablet", 1500, 1100), "another toolbox");
        assert_eq!(leases.commander("arm"), Some("laptop"));
        assert!(leases.holds("arm", "a", "laptop", 1399) && !leases.holds("arm", "a", "laptop", 1400));
        // Until what it moved was ended, nobody gets it, its holder neither.
        assert!(!leases.renew("arm", "a", "laptop", 1900, 1400));
        assert!(!leases.renew("arm", "b", "tablet", 1900, 1400));
        let expired = leases.take_expired(1400);
        assert_eq!(expired.len(), 1);
        assert_eq!(
            (expired[0].0.as_str(), expired[0].1.peer.as_str()),
            ("arm", "laptop")
        );
        assert!(leases.renew("arm", "b", "tablet", 1900, 1401));
        for (mount, peer) in [("a", "laptop"), ("b", "laptop")] {
            leases.leave("arm", mount, peer);
            assert!(
                !leases.renew("arm", mount, peer, 1900, 1402),
                "{mount} of {peer} is another"
            );
            assert!(
                leases.holds("arm", "b", "tablet", 1402),
                "only its holder gives it back"
            );
        }
        // Who leaves has its motion ended before another one commands.
        leases.leave("arm", "b", "tablet");
        assert!(!leases.holds("arm", "b", "tablet", 1402));
        assert!(!leases.renew("arm", "a", "laptop", 1900, 1402));
        assert_eq!(leases.take_expired(1402).len(), 1);
        assert_eq!(leases.commander("arm"), None);
    }

    #[test]
    fn a_renewal_that_was_held_up_extends_nothing() {
        let mut leases = Leases::default();
        assert!(
            !leases.renew("arm", "a", "laptop", 900, 1000),
            "it is over already"
        );
        assert!(leases.renew("arm", "a", "laptop", 1300, 1000));
        assert!(
            leases.renew("arm", "a", "laptop", 1200, 1100),
            "an older one, out of order"
        );
        assert!(leases.holds("arm", "a", "laptop", 1299));
        assert!(
            leases.renew("arm", "a", "laptop", 99_999, 1200),
            "whatever it asks for"
        );
        assert!(leases.holds("arm", "a", "laptop", 1699) && !leases.holds("arm", "a", "laptop", 1700));
    }
}
