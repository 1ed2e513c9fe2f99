//! From joint angles to joint angles, in small steps.
//!
//! Owns the arithmetic. A robot that takes only positions is led along a straight line in joint space. All joints
//! arrive together, and none exceeds its largest speed. Pure. Read [`Path`].

use std::time::Duration;

use crate::capability::Joint;

/// A straight line in joint space.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    from: Vec<f64>,
    to: Vec<f64>,
    time: Duration,
}

impl Path {
    /// From `from` to `to`, in degrees, at a fraction of the joints' largest speeds.
    pub(crate) fn new(from: &[f64], to: &[f64], joints: &[Joint], speed: f64) -> Self {
        let time = from
            .iter()
            .zip(to)
            .zip(joints)
            .map(|((from, to), joint)| (to - from).abs() / (joint.max_speed * speed.clamp(0.05, 1.0)))
            .fold(0.0, f64::max);
        Self {
            from: from.to_vec(),
            to: to.to_vec(),
            time: Duration::try_from_secs_f64(time).unwrap_or_default(),
        }
    }

    /// How long it takes.
    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    /// Where the joints are after `passed`.
    pub(crate) fn at(&self, passed: Duration) -> Vec<f64> {
        if passed >= self.time {
            return self.to.clone();
        }
        let part = passed.as_secs_f64() / self.time.as_secs_f64();
        self.from
            .iter()
            .zip(&self.to)
            .map(|(from, to)| from + (to - from) * part)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joints_arrive_together_and_none_is_too_fast() {
        let joint = |max_speed| Joint {
            name: String::new(),
            min: -180.0,
            max: 180.0,
            max_speed,
        };
        let path = Path::new(&[0.0, 0.0], &[90.0, -10.0], &[joint(90.0), joint(10.0)], 0.5);
        assert_eq!(path.time(), Duration::from_secs(2));
        assert_eq!(path.at(Duration::from_secs(1)), [45.0, -5.0]);
        assert_eq!(path.at(Duration::from_secs(9)), [90.0, -10.0]);
        let nowhere = Path::new(&[5.0], &[5.0], &[joint(90.0)], 1.0);
        assert_eq!(nowhere.at(Duration::ZERO), [5.0]);
    }
}
