//! Random drift of the hover, the home altitude and the ground's height. Depends only on the seed and the time, not on
//! the time steps.
//!
//! Start with [`Noise`].

use std::f64::consts::TAU;

use crate::geo::Ned;

/// Disturbance of a hovering vehicle, metres per second RMS per axis. In PX4 1.17's SIH the estimate is on average 0.34
/// m (HOLD) to 0.63 m (OFFBOARD) from the setpoint, at 0.2 to 0.5 m/s.
const PUSH_RMS: [f64; 3] = [0.37, 0.37, 0.12];
/// Shortest and longest period of the drift, seconds.
const PERIODS_S: (f64, f64) = (8.0, 16.0);
/// Sine waves per axis.
const SINES: usize = 3;
/// Correction of the home altitude, RMS and greatest value in metres, and interval in seconds: observed between -1.7
/// and +1.9 around its mean, a new value every two seconds.
const HOME_RMS_M: f64 = 0.6;
const HOME_MOST_M: f64 = 1.5;
const HOME_EVERY_S: f64 = 2.0;
/// Drift of the ground's height, a sine: amplitude in metres, and period in seconds. The same spot was 2 m higher half
/// an hour later, which is half a period.
const GROUND_M: f64 = 1.0;
const GROUND_PERIOD_S: f64 = 3600.0;

#[derive(Debug, Clone, Copy)]
struct Sine {
    rate: f64,
    phase: f64,
}

/// A seeded, smooth and bounded disturbance.
#[derive(Debug, Clone)]
pub(super) struct Noise {
    seed: u64,
    push: [[Sine; SINES]; 3],
    ground: f64,
}

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut sine = || Sine {
            rate: TAU / (PERIODS_S.0 + (PERIODS_S.1 - PERIODS_S.0) * random.f64()),
            phase: TAU * random.f64(),
        };
        let push = std::array::from_fn(|_| std::array::from_fn(|_| sine()));
        Self {
            seed,
            push,
            ground: TAU * random.f64(),
        }
    }

    /// The disturbance of a hovering vehicle, metres per second.
    pub(super) fn push(&self, time: f64) -> Ned {
        std::array::from_fn(|axis| {
            let height = PUSH_RMS[axis] * (2.0 / SINES as f64).sqrt();
            let sines = self.push[axis].iter();
            height
                * sines
                    .map(|sine| (sine.rate * time + sine.phase).sin())
                    .sum::<f64>()
        })
    }

    /// Error of the home altitude, metres.
    pub(super) fn home(&self, time: f64) -> f64 {
        let step = (time / HOME_EVERY_S) as u64;
        let mut random = fastrand::Rng::with_seed(self.seed ^ step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Twelve uniform numbers make a normal one.
        let normal: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        (HOME_RMS_M * normal).clamp(-HOME_MOST_M, HOME_MOST_M)
    }

    /// Error of the estimated height since the start, metres; positive: estimated too low.
    pub(super) fn ground(&self, time: f64) -> f64 {
        let sine = |time: f64| GROUND_M * (TAU * time / GROUND_PERIOD_S + self.ground).sin();
        sine(time) - sine(0.0)
    }
}
