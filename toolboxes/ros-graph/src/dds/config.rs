//! How a domain is joined, and what this machine must have for it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::error::GraphError;

/// How a domain is joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DdsConfig {
    /// The domain, `ROS_DOMAIN_ID` on the robot: 0 to 232.
    pub domain: u16,
    /// The addresses of this machine on which the robot is reached; all when empty.
    pub interfaces: Vec<IpAddr>,
}

impl DdsConfig {
    /// The addresses of this machine on which the robot may be reached now, as the library lists them when it joins.
    #[must_use]
    pub fn addresses(&self) -> BTreeSet<IpAddr> {
        let interfaces = netdev::get_interfaces().into_iter();
        interfaces
            .flat_map(|interface| interface.ip_addrs())
            .filter(|address| self.interfaces.is_empty() || self.interfaces.contains(address))
            .collect()
    }

    /// The same with those of its addresses that this machine has now, if it has any, and the error of one that it lacks then: for a
    /// stop, which an address that is missing must not keep from a robot that is reached by another.
    #[must_use]
    pub fn present(&self) -> (Self, Option<GraphError>) {
        if self.interfaces.is_empty() {
            return (self.clone(), None);
        }
        let addresses = self.addresses();
        let lacks = |named: &&IpAddr| !addresses.contains(named);
        match self.interfaces.iter().find(lacks) {
            Some(missing) if !addresses.is_empty() => {
                let mut present = self.clone();
                present.interfaces.retain(|named| addresses.contains(named));
                (present, Some(self.missing(missing)))
            }
            _ => (self.clone(), None),
        }
    }

    /// # Errors
    /// The domain is none, or this machine lacks an address.
    pub(super) fn check(&self) -> Result<(), GraphError> {
        if self.domain > 232 {
            return Err(self.failed("a domain is 0 to 232"));
        }
        // To list them takes some milliseconds, which the stop after a crash has not to spare.
        let addresses = match self.interfaces.is_empty() {
            true => BTreeSet::new(),
            false => self.addresses(),
        };
        match self.interfaces.iter().find(|named| !addresses.contains(named)) {
            // Without the address the library would join all the same, and would neither hear nor be heard.
            Some(missing) => Err(self.missing(missing)),
            None => Ok(()),
        }
    }

    fn missing(&self, address: &IpAddr) -> GraphError {
        self.failed(format!(
            "this machine has no address {address}, which ros.interfaces names; plug in the robot's network, \
             give this machine that address, or change ros.interfaces"
        ))
    }

    pub(super) fn failed(&self, reason: impl ToString) -> GraphError {
        GraphError::Join {
            carrier: format!("DDS domain {}", self.domain),
            reason: reason.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_goes_out_by_the_addresses_that_are_there() {
        let (here, missing) = ("127.0.0.1", "192.0.2.77");
        for (named, expected) in [
            (&[][..], &[][..]),
            (&[here], &[here]),
            (&[here, missing], &[here]),
            // The join says what is missing.
            (&[missing], &[missing]),
        ] {
            let of = |addresses: &[&str]| DdsConfig {
                domain: 0,
                interfaces: addresses.iter().map(|address| address.parse().unwrap()).collect(),
            };
            let (present, left_out) = of(named).present();
            assert_eq!(present, of(expected), "{named:?}");
            assert_eq!(left_out.is_some(), named.len() > 1, "{named:?}");
        }
    }
}
