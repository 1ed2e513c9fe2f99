//! How a robot is reached: the domain and the addresses of this machine.

use std::net::IpAddr;
use std::time::Duration;

use ros_graph::dds::DdsConfig;
use ros_graph::shipped::Distribution;
use serde::Deserialize;

use super::error::RosError;

/// How a robot is reached over ROS 2 or DDS.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RosConfig {
    /// The DDS domain, `ROS_DOMAIN_ID` on the robot.
    pub domain: u16,
    /// The addresses of this machine on which the robot is reached, such as `["192.168.123.10"]`; all when empty.
    pub interfaces: Vec<IpAddr>,
    /// The ROS 2 distribution of the other side: Humble is what the K1 and the G1 have. They differ in how a node says its name; topics
    /// work between all of them.
    pub distro: Distribution,
    /// How long to wait for the robot when the toolbox is opened, in milliseconds.
    pub discovery_ms: u64,
}

impl Default for RosConfig {
    fn default() -> Self {
        Self {
            domain: 0,
            interfaces: Vec::new(),
            distro: Distribution::Humble,
            discovery_ms: 5000,
        }
    }
}

impl RosConfig {
    /// How the domain is joined over DDS.
    pub(crate) fn dds(&self) -> DdsConfig {
        DdsConfig {
            domain: self.domain,
            interfaces: self.interfaces.clone(),
        }
    }

    /// The error of a stop without an instance, with the address that it could not go out by.
    pub(crate) fn explain(&self, error: RosError) -> RosError {
        match self.dds().present().1 {
            Some(left_out) => RosError::LeftOut {
                error: Box::new(error),
                left_out,
            },
            None => error,
        }
    }

    /// Checks that a ROS installation takes this domain from its environment. `environment` is the value of
    /// `ROS_DOMAIN_ID`; without a value the domain is 0. A stop without an instance goes to `domain` and would miss a
    /// node in another domain.
    ///
    /// # Errors
    /// The environment names another domain, or its value is no domain.
    pub(crate) fn is_domain(&self, environment: Option<&str>) -> Result<(), RosError> {
        let value = environment.map(str::trim).filter(|value| !value.is_empty());
        match value.map_or(Ok(0), str::parse::<u16>) {
            Ok(domain) if domain == self.domain => Ok(()),
            _ => Err(RosError::Join {
                domain: self.domain,
                reason: format!(
                    "ROS_DOMAIN_ID is {}, and ros.domain must be the same, or the stop after a crash does not reach the robot",
                    value.unwrap_or("not set, which is 0")
                ),
            }),
        }
    }

    pub(crate) fn discovery(&self) -> Duration {
        Duration::from_millis(self.discovery_ms.min(8000))
    }
}

#[cfg(test)]
mod tests {
    use super::RosConfig;

    #[test]
    fn a_domain_of_the_environment_is_the_configured_one() {
        let in_domain = |domain| RosConfig {
            domain,
            ..RosConfig::default()
        };
        for (domain, environment, same) in [
            (0, None, true),
            (0, Some(""), true),
            (7, Some("7"), true),
            (7, None, false),
            (0, Some("7"), false),
            (0, Some("seven"), false),
        ] {
            let result = in_domain(domain).is_domain(environment);
            assert_eq!(result.is_ok(), same, "{domain} {environment:?}");
            if let Err(error) = result {
                let message = error.to_string();
                assert!(
                    message.contains("ROS_DOMAIN_ID") && message.contains("ros.domain"),
                    "{message}"
                );
            }
        }
    }
}
