//! Everything that can change in a simulated robot.
//!
//! Owns the state behind the simulator's one lock. Read [`World`].

use std::collections::BTreeMap;

use super::axis::{Axes, Limit, Odometry};
use super::config::{SimConfig, Thing};
use super::people::People;
use super::servos::Servos;
use crate::adapter::ActionError;
use crate::capability::{Capabilities, Gripper};
use crate::subsystem::Subsystem;

pub(super) const CHARGER: &str = "charger";
const CART: &str = "cart";

/// The state of a simulated robot and of what is around it.
#[derive(Debug)]
pub(super) struct World {
    /// Joints of arms and gantry, lift and hitch.
    pub(super) axes: BTreeMap<Subsystem, Axes>,
    /// Grippers that are no joint of their arm.
    pub(super) hands: BTreeMap<Subsystem, f64>,
    pub(super) base: Odometry,
    /// The number of halts of each part: an action that began before the latest halt is over.
    pub(super) halts: BTreeMap<Subsystem, u64>,
    pub(super) stopped: bool,
    pub(super) servos: Servos,
    pub(super) people: People,
    pub(super) homes: BTreeMap<Subsystem, Vec<f64>>,
    /// Whether actions go on without the servos that were given up.
    pub(super) go_on: bool,
    pub(super) hitched: Option<String>,
    /// The thing that each hand has reached, by the arm's name.
    pub(super) reached: BTreeMap<String, String>,
    pub(super) held: BTreeMap<Subsystem, String>,
    things: Vec<Thing>,
    cart: bool,
    charger: bool,
}

impl World {
    pub(super) fn new(
        capabilities: &Capabilities,
        config: &SimConfig,
        home: impl Fn(Subsystem) -> Option<Vec<f64>>,
    ) -> Self {
        let mut axes = BTreeMap::new();
        let mut hands = BTreeMap::new();
        for on in Subsystem::EACH {
            if let Some((joints, home)) = capabilities.joints(on).zip(home(on)) {
                let limits: Vec<Limit> = joints
                    .iter()
                    .map(|joint| Limit {
                        min: joint.min,
                        max: joint.max,
                        max_speed: joint.max_speed,
                    })
                    .collect();
                // A narrowed range may exclude home. The joint begins at its nearest end.
                let home = home
                    .iter()
                    .zip(&limits)
                    .map(|(at, limit)| at.clamp(limit.min, limit.max));
                axes.insert(on, Axes::at(home.collect(), limits.clone()));
            }
            if let Some(gripper) = capabilities.arm(on).and_then(|arm| arm.gripper.as_ref())
                && gripper.joint.is_none()
            {
                hands.insert(on, gripper.closed);
            }
        }
        if let Some(lift) = &capabilities.lift {
            let limit = Limit {
                min: lift.min,
                max: lift.max,
                max_speed: lift.max_speed,
            };
            axes.insert(Subsystem::Lift, Axes::at(vec![lift.home], vec![limit]));
        }
        if let Some(hitch) = &capabilities.hitch {
            let limit = Limit {
                min: hitch.open.min(hitch.closed),
                max: hitch.open.max(hitch.closed),
                max_speed: hitch.max_speed,
            };
            axes.insert(Subsystem::Hitch, Axes::at(vec![hitch.open], vec![limit]));
        }
        Self {
            axes,
            hands,
            base: Odometry::default(),
            halts: BTreeMap::new(),
            stopped: false,
            servos: Servos::new(capabilities, &config.faults),
            people: People::new(config.people.clone()),
            homes: BTreeMap::new(),
            go_on: true,
            hitched: None,
            reached: BTreeMap::new(),
            held: BTreeMap::new(),
            things: config.objects.clone(),
            cart: config.cart,
            charger: config.charger,
        }
    }

    /// Whether an action that began at the halt counts `begun` may still move this part.
    pub(super) fn may_move(
        &self,
        on: Subsystem,
        begun: &BTreeMap<Subsystem, u64>,
    ) -> Result<(), ActionError> {
        if self.halts.get(&on) != begun.get(&on) {
            return Err(ActionError::Cancelled);
        }
        if self.stopped {
            return Err(ActionError::Stopped);
        }
        Ok(())
    }

    pub(super) fn halt(&mut self, on: Subsystem, now: f64) {
        *self.halts.entry(on).or_default() += 1;
        if on == Subsystem::Base {
            self.base.stop(now);
        } else if let Some(axes) = self.axes.get_mut(&on) {
            axes.stop(now);
        }
    }

    pub(super) fn is_moving(&self, on: Subsystem, now: f64) -> bool {
        self.rests_in(on, now) > 0.0
    }

    /// Seconds until a part comes to rest.
    pub(super) fn rests_in(&self, on: Subsystem, now: f64) -> f64 {
        match on {
            Subsystem::Base => self.base.rests_in(now),
            on => self.axes.get(&on).map_or(0.0, |axes| axes.rests_in(now)),
        }
    }

    /// Removes the goals of servos that were given up.
    pub(super) fn heed_servos(&self, on: Subsystem, to: &[Option<f64>]) -> Vec<Option<f64>> {
        let mut to = to.to_vec();
        for (index, (_, servo)) in self.servos.of(on).enumerate() {
            if servo.ignored
                && let Some(joint) = to.get_mut(index)
            {
                *joint = None;
            }
        }
        to
    }

    /// A hand that holds something does not close further; one that opens lets go.
    pub(super) fn tighten(
        &mut self,
        capabilities: &Capabilities,
        on: Subsystem,
        to: &[f64],
        now: f64,
    ) -> Vec<Option<f64>> {
        let mut wanted: Vec<Option<f64>> = to.iter().copied().map(Some).collect();
        let gripper = capabilities.arm(on).and_then(|arm| arm.gripper.as_ref());
        let Some((gripper, joint)) = gripper.and_then(|gripper| Some((gripper, gripper.joint?))) else {
            return wanted;
        };
        let at = self
            .axes
            .get(&on)
            .and_then(|axes| axes.positions(now).get(joint).copied());
        if self.held.contains_key(&on)
            && let Some((at, to)) = at.zip(to.get(joint))
        {
            if (to - gripper.closed).abs() <= (at - gripper.closed).abs() {
                wanted[joint] = None;
            } else {
                self.let_go(on);
            }
        }
        wanted
    }

    pub(super) fn hand_is_open(&self, on: Subsystem, gripper: &Gripper, now: f64) -> bool {
        let at = match gripper.joint {
            Some(joint) => self
                .axes
                .get(&on)
                .and_then(|axes| axes.positions(now).get(joint).copied()),
            None => self.hands.get(&on).copied(),
        };
        let at = at.unwrap_or(gripper.closed);
        !self.held.contains_key(&on) && (at - gripper.open).abs() < (at - gripper.closed).abs()
    }

    pub(super) fn reach(&mut self, on: Subsystem, target: &str, arrived: bool) {
        if arrived {
            self.reached.insert(on.to_string(), target.to_lowercase());
        }
    }

    /// The thing that the hand can close around.
    pub(super) fn in_reach(&self, on: Subsystem) -> Option<String> {
        if let Some(held) = self.held.get(&on) {
            return Some(held.clone());
        }
        let at = self.reached.get(on.as_str())?;
        let free = !self.held.values().any(|held| held == at);
        self.thing(at).filter(|_| free).map(|thing| thing.name.clone())
    }

    pub(super) fn grasp(&mut self, on: Subsystem, holds: Option<String>) -> Option<String> {
        if let Some(thing) = &holds {
            self.held.insert(on, thing.clone());
        }
        holds
    }

    pub(super) fn let_go(&mut self, on: Subsystem) -> Option<String> {
        self.held.remove(&on)
    }

    pub(super) fn thing(&self, name: &str) -> Option<&Thing> {
        let name = name.trim();
        self.things
            .iter()
            .find(|thing| thing.name.eq_ignore_ascii_case(name))
    }

    /// Closes around the cart or charger behind the robot, or lets go.
    pub(super) fn hitch(&mut self, close: bool, dock: bool) -> Option<String> {
        self.hitched = match (close, dock) {
            (true, true) => self.charger.then(|| CHARGER.to_string()),
            (true, false) => self.cart.then(|| CART.to_string()),
            (false, _) => None,
        };
        self.hitched.clone()
    }
}
