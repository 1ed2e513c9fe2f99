//! Joint angles that bring a hand to a point, and a way there above the table.
//!
//! Owns the search: steps of damped least squares from many beginnings, the same ones each time, so that the same question has the
//! same answer. Read [`Search`].

use glam::{DMat3, DVec3};

use super::chain::{End, Geometry, Lowest, Turn};
use crate::capability::Joint;

/// How close to the point the angles bring the hand, in metres.
const CLOSE: f64 = 0.0003;
/// How many beginnings are tried besides the present one.
const BEGINNINGS: u32 = 60;
/// How many steps are taken from each.
const STEPS: u32 = 120;
/// How far a joint goes in one step, in radians.
const STRIDE: f64 = 0.25;
/// What keeps the steps small where the arm is stretched, in metres.
const DAMPING: f64 = 0.02;
/// A joint that turns the hand about a line so close to it, in metres, does not bring it anywhere: it stays as it is.
const IDLE: f64 = 0.02;
/// How far apart the looks at the height on a way are, in degrees.
const LOOK: f64 = 2.0;
/// How much an arm that is below the table's clearance may sink again on its way up, in metres.
const SAG: f64 = 0.002;
/// How far beyond a limit an angle is that was only rounded, in degrees.
const ROUNDING: f64 = 1e-6;
/// How far below the table's clearance an arm may begin, in metres: what sags or lies on the table is so low at most.
const DEEP: f64 = 0.02;

/// How a hand comes to a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posture {
    /// With the least movement.
    Near,
    /// From above, as far as the joints allow.
    Down,
}

/// Why a hand cannot be brought to a point.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReachError {
    /// No angles within the limits bring it there.
    #[error(
        "out of reach: its joints bring it no closer than {short:.3} m, to x {:.3}, y {:.3}, z {:.3} m",
        nearest[0],
        nearest[1],
        nearest[2]
    )]
    Away {
        /// How far away it stays.
        short: f64,
        /// Where it comes closest.
        nearest: [f64; 3],
    },
    /// The point itself is too low.
    #[error("too low: z {z:.3} m is below {least:.3} m, the least above the table")]
    Low {
        /// The height of the point.
        z: f64,
        /// The least that is allowed.
        least: f64,
    },
    /// A link would be too low there.
    #[error(
        "{link} would be at a height of {height:.3} m there, below {least:.3} m, the least above the table"
    )]
    LinkLow {
        /// Which link.
        link: String,
        /// Its height.
        height: f64,
        /// The least that is allowed.
        least: f64,
    },
    /// The arm is too low already.
    #[error(
        "{link} is at a height of {height:.3} m now, more than 2 cm below {least:.3} m, the least above the table: bring the arm up \
         with joint values first, or by hand without power, and check `table` of its file"
    )]
    Start {
        /// Which link.
        link: String,
        /// Its height.
        height: f64,
        /// The least that is allowed.
        least: f64,
    },
    /// The URDF allows less than was asked for.
    #[error("joint {joint} is at {angle:.1} degrees there, and the URDF allows {min:.1} to {max:.1}")]
    Limit {
        /// The joint.
        joint: String,
        /// Its angle, in degrees.
        angle: f64,
        /// Degrees.
        min: f64,
        /// Degrees.
        max: f64,
    },
    /// A link would be too low on the way.
    #[error(
        "no way there is above the table: {link} would come to a height of {height:.3} m, below {least:.3} m"
    )]
    Way {
        /// Which link.
        link: String,
        /// Its height.
        height: f64,
        /// The least that is allowed.
        least: f64,
    },
}

/// A search for the angles and the way of an arm.
pub struct Search<'a> {
    /// Its shape.
    pub shape: &'a Geometry,
    /// Its joints, with the ranges that they have now.
    pub joints: &'a [Joint],
    /// A joint of the hand, and angles that it may have meanwhile: none of them brings it below the table.
    pub fingers: Option<(usize, Vec<f64>)>,
}

impl Search<'_> {
    /// The angles that bring an end of the hand to a point, from these angles. Joints that do not move that end, a gripper among
    /// them, stay as they are.
    ///
    /// # Errors
    /// There are none, with the reason.
    pub fn solve(
        &self,
        from: &[f64],
        (end, to): (End, [f64; 3]),
        posture: Posture,
    ) -> Result<Vec<f64>, ReachError> {
        if let Some(least) = self.shape.least.filter(|least| to[2] < *least) {
            return Err(ReachError::Low { z: to[2], least });
        }
        let to = DVec3::from_array(to);
        let moving = self.shape.moving(end, from);
        let limits = self.limits();
        // What stays as it is may be measured a hair beyond its limits, and nothing is commanded there.
        let from = &self.within(from)[..];
        let mut rng = fastrand::Rng::with_seed(101);
        let mut best: Option<(f64, Vec<f64>)> = None;
        let mut closest = (f64::INFINITY, DVec3::ZERO);
        let mut low: Option<Lowest> = None;
        for beginning in 0..=BEGINNINGS {
            let mut angles = from.to_vec();
            for joint in &moving {
                let [min, max] = limits[*joint];
                if beginning > 0 {
                    angles[*joint] = min + rng.f64() * (max - min);
                }
            }
            let (left, reached) = self.shape.descend(&mut angles, &moving, &limits, (end, to));
            if left > CLOSE {
                if left < closest.0 {
                    closest = (left, reached);
                }
                continue;
            }
            let lowest = self.lowest(&angles);
            if self.shape.least.is_some_and(|least| lowest.height < least) {
                if low.as_ref().is_none_or(|before| before.height < lowest.height) {
                    low = Some(lowest);
                }
                continue;
            }
            let travel = angles
                .iter()
                .zip(from)
                .map(|(to, from)| (to - from).abs())
                .fold(0.0, f64::max);
            let cost = match posture {
                Posture::Near => travel,
                Posture::Down => 3.0 * self.shape.off_down(end, &angles) + 0.2 * travel,
            };
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, angles));
            }
        }
        match (best, low, self.shape.least) {
            (Some((_, angles)), _, _) => Ok(angles),
            (None, Some(Lowest { link, height }), Some(least)) => {
                Err(ReachError::LinkLow { link, height, least })
            }
            _ => Err(ReachError::Away {
                short: closest.0,
                nearest: closest.1.to_array(),
            }),
        }
    }

    /// The ranges within which each joint is commanded: those that it has now, and the URDF's.
    #[must_use]
    pub fn limits(&self) -> Vec<[f64; 2]> {
        let both = |(joint, turn): (&Joint, &Option<Turn>)| {
            let [low, high] = turn.map_or([joint.min, joint.max], |turn| turn.limits);
            [joint.min.max(low), joint.max.min(high)]
        };
        self.joints.iter().zip(&self.shape.turns).map(both).collect()
    }

    /// The angles, each within the limits of its joint.
    #[must_use]
    pub fn within(&self, angles: &[f64]) -> Vec<f64> {
        let limits = self.limits();
        let each = angles.iter().zip(&limits);
        each.map(|(angle, [min, max])| angle.max(*min).min(*max))
            .collect()
    }

    /// The positions through which an arm comes from one to another with every point above the table, the last one included: the
    /// straight way, or one by `vias`. An arm that begins too low rises and does not sink again.
    ///
    /// # Errors
    /// There is none, with the link that comes too low on the straight way, or the arm begins far too low.
    pub fn way(&self, from: &[f64], to: &[f64], vias: &[Vec<f64>]) -> Result<Vec<Vec<f64>>, ReachError> {
        let Some(least) = self.shape.least else {
            return Ok(vec![to.to_vec()]);
        };
        let Lowest { link, height } = self.lowest(from);
        if height < least - DEEP {
            return Err(ReachError::Start { link, height, least });
        }
        let Lowest { link, height } = self.lowest(to);
        if height < least {
            return Err(ReachError::LinkLow { link, height, least });
        }
        let Lowest { link, height } = match self.climb(from, to, f64::NEG_INFINITY) {
            Ok(_) => return Ok(vec![to.to_vec()]),
            Err(lowest) => lowest,
        };
        let ends = |floor: f64, via: &[f64]| self.climb(via, to, floor).is_ok();
        let firsts: Vec<(&Vec<f64>, f64)> = vias
            .iter()
            .filter_map(|via| Some((via, self.climb(from, via, f64::NEG_INFINITY).ok()?)))
            .collect();
        if let Some((via, _)) = firsts.iter().find(|(via, floor)| ends(*floor, via)) {
            return Ok(vec![(*via).clone(), to.to_vec()]);
        }
        let two = firsts
            .iter()
            .flat_map(|(first, floor)| vias.iter().map(move |second| (*first, *floor, second)));
        let mut two = two.filter(|(first, floor, second)| {
            self.climb(first, second, *floor)
                .is_ok_and(|floor| ends(floor, second))
        });
        match two.next() {
            Some((first, _, second)) => Ok(vec![first.clone(), second.clone(), to.to_vec()]),
            None => Err(ReachError::Way { link, height, least }),
        }
    }

    /// Checks the straight way between two positions that somebody else has chosen: every point is above the table, and the end within the
    /// limits. An arm that begins too low, however low that is, rises and does not sink again.
    ///
    /// # Errors
    /// The joint beyond its limits, or the link that comes too low.
    pub fn check(&self, from: &[f64], to: &[f64]) -> Result<(), ReachError> {
        let each = self.joints.iter().zip(to).zip(self.limits());
        for ((joint, angle), [min, max]) in each {
            if *angle < min - ROUNDING || *angle > max + ROUNDING {
                return Err(ReachError::Limit {
                    joint: joint.name.clone(),
                    angle: *angle,
                    min,
                    max,
                });
            }
        }
        let Some(least) = self.shape.least else {
            return Ok(());
        };
        let Lowest { link, height } = self.lowest(to);
        if height < least {
            return Err(ReachError::LinkLow { link, height, least });
        }
        match self.climb(from, to, f64::NEG_INFINITY) {
            Ok(_) => Ok(()),
            Err(Lowest { link, height }) => Err(ReachError::Way { link, height, least }),
        }
    }

    /// Whether an arm may be told to go straight from where it is to a position beyond its goal: the position itself and the way there
    /// are above the table, so that it stays there when what holds it gives way.
    #[must_use]
    pub fn allows(&self, from: &[f64], to: &[f64]) -> bool {
        self.way(from, to, &[]).is_ok()
    }

    /// Goes the straight way between two positions, on which the joints arrive together, above a floor that rises with the arm up to the
    /// clearance: what was too low may rise and does not sink again. Returns the floor at its end.
    ///
    /// # Errors
    /// The point that comes below it first.
    fn climb(&self, from: &[f64], to: &[f64], floor: f64) -> Result<f64, Lowest> {
        let least = self.shape.least.unwrap_or(f64::NEG_INFINITY);
        let travel = from
            .iter()
            .zip(to)
            .map(|(from, to)| (to - from).abs())
            .fold(0.0, f64::max);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a few hundred at most"
        )]
        let looks = (travel / LOOK).ceil().clamp(1.0, 1000.0) as u32;
        (0..=looks).try_fold(floor, |floor, look| {
            let part = f64::from(look) / f64::from(looks);
            let between: Vec<f64> = from
                .iter()
                .zip(to)
                .map(|(from, to)| from + (to - from) * part)
                .collect();
            let lowest = self.lowest(&between);
            match lowest.height < floor {
                true => Err(lowest),
                false => Ok(floor.max(least.min(lowest.height - SAG))),
            }
        })
    }

    /// The lowest point of the arm, however the fingers are.
    fn lowest(&self, angles: &[f64]) -> Lowest {
        let own = self.shape.lowest(angles);
        let others = self.fingers.iter().flat_map(|(joint, positions)| {
            positions.iter().map(|position| {
                let mut angles = angles.to_vec();
                if let Some(angle) = angles.get_mut(*joint) {
                    *angle = *position;
                }
                self.shape.lowest(&angles)
            })
        });
        others.fold(own, |lowest, other| {
            if other.height < lowest.height {
                other
            } else {
                lowest
            }
        })
    }
}

impl Geometry {
    /// The joints that bring an end of the hand somewhere.
    fn moving(&self, end: End, angles: &[f64]) -> Vec<usize> {
        let frames = self.frames(angles);
        let (link, _) = match end {
            End::Tip => self.tip,
            End::Grasp => self.grasp,
        };
        let at = self.end(end, &frames);
        let moves = |(joint, turn): (usize, &Option<Turn>)| {
            let turn = (*turn)?;
            let frame = frames[turn.link];
            // What is after it may bend the hand away from its axis, but not for the last joint.
            let last = !self.turns.iter().flatten().any(|other| {
                other.link != turn.link
                    && self.tree.hangs(other.link, turn.link)
                    && self.tree.hangs(link, other.link)
            });
            let arm = frame
                .transform_vector3(turn.axis)
                .cross(at - frame.translation)
                .length();
            (self.tree.hangs(link, turn.link) && (!last || arm > IDLE)).then_some(joint)
        };
        self.turns.iter().enumerate().filter_map(moves).collect()
    }

    /// Goes down to the point as far as it gets, and returns how far away it stays, and where.
    fn descend(
        &self,
        angles: &mut [f64],
        moving: &[usize],
        limits: &[[f64; 2]],
        (end, to): (End, DVec3),
    ) -> (f64, DVec3) {
        for _ in 0..STEPS {
            let frames = self.frames(angles);
            let at = self.end(end, &frames);
            let off = to - at;
            if off.length() <= CLOSE {
                return (off.length(), at);
            }
            let column = |joint: &usize| match self.turns[*joint] {
                Some(turn) => {
                    let frame = frames[turn.link];
                    frame.transform_vector3(turn.axis).cross(at - frame.translation) * turn.sign
                }
                None => DVec3::ZERO,
            };
            // A joint at its limit that would go beyond it does not take part.
            let mut columns: Vec<DVec3> = moving.iter().map(column).collect();
            let outer = |columns: &[DVec3]| {
                let square = columns.iter().fold(DMat3::ZERO, |sum, one| {
                    sum + DMat3::from_cols(*one * one.x, *one * one.y, *one * one.z)
                });
                (square + DMat3::IDENTITY * (DAMPING * DAMPING)).inverse() * off
            };
            let towards = outer(&columns);
            for (column, joint) in columns.iter_mut().zip(moving) {
                let ([min, max], angle, turn) = (limits[*joint], angles[*joint], column.dot(towards));
                if angle <= min && turn < 0.0 || angle >= max && turn > 0.0 {
                    *column = DVec3::ZERO;
                }
            }
            let towards = outer(&columns);
            for (column, joint) in columns.iter().zip(moving) {
                let [min, max] = limits[*joint];
                let turn = column.dot(towards).clamp(-STRIDE, STRIDE).to_degrees();
                angles[*joint] = (angles[*joint] + turn).max(min).min(max);
            }
        }
        let at = self.end(end, &self.frames(angles));
        ((to - at).length(), at)
    }

    /// How far from straight down the hand points, in degrees.
    fn off_down(&self, end: End, angles: &[f64]) -> f64 {
        let frames = self.frames(angles);
        let (link, _) = match end {
            End::Tip => self.tip,
            End::Grasp => self.grasp,
        };
        // The hand hangs on the last joint before it.
        let hand = self
            .turns
            .iter()
            .flatten()
            .filter(|turn| self.tree.hangs(link, turn.link))
            .map(|turn| turn.link)
            .max();
        let along = self.end(end, &frames) - hand.map_or(DVec3::ZERO, |link| frames[link].translation);
        along.angle_between(DVec3::NEG_Z).to_degrees()
    }
}
