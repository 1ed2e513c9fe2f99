//! An arm as a chain of links: where each is for its joint angles, and which point is the lowest.
//!
//! Read [`Geometry`].

use glam::{DAffine3, DQuat, DVec3};

use super::urdf::Tree;
use crate::capability::Joint;
use crate::model::error::nearest;
use crate::model::soundness::number;
use crate::shape::{GeometryTable, LinkPoint};

/// The shape of an arm.
#[derive(Clone, Debug)]
pub struct Geometry {
    pub(super) tree: Tree,
    pub(super) base: usize,
    pub(super) tip: (usize, DVec3),
    pub(super) grasp: (usize, DVec3),
    /// For each joint of the arm the link that it turns.
    pub(super) turns: Vec<Option<Turn>>,
    pub(super) points: Vec<(usize, DVec3)>,
    /// The lowest that a point may be.
    pub(super) least: Option<f64>,
    pub(super) tolerance: f64,
    digest: String,
}

/// How a joint of the arm turns a link of the URDF.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) link: usize,
    pub(super) axis: DVec3,
    pub(super) zero: f64,
    pub(super) sign: f64,
    /// The limits of the URDF, in the arm's degrees.
    pub(super) limits: [f64; 2],
}

/// The point of a hand that is sent somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end of the hand.
    Tip,
    /// What is between the fingers.
    Grasp,
}

/// A link and how high its lowest point is.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowest {
    /// The name of the link.
    pub link: String,
    /// Metres.
    pub height: f64,
}

impl Geometry {
    /// The shape of an arm with these joints.
    ///
    /// # Errors
    /// The URDF cannot be read, or a name is none of its own; the error begins with the key.
    pub fn new(table: &GeometryTable, joints: &[Joint]) -> Result<Self, String> {
        let tree = Tree::read(&table.urdf).map_err(|why| format!("urdf: {why}"))?;
        let link = |key: &str, name: &str| {
            tree.link(name).ok_or_else(|| {
                let near = nearest(name, tree.links())
                    .map_or_else(String::new, |near| format!("; did you mean {near}?"));
                let known: Vec<&str> = tree.links().collect();
                format!(
                    "{key}: the URDF has no link {name}, known are {}{near}",
                    known.join(", ")
                )
            })
        };
        let point = |key: &str, point: &LinkPoint| {
            number(&format!("{key}.at"), size(point.at), 0.0, 10.0, "m")?;
            Ok::<_, String>((
                link(&format!("{key}.link"), &point.link)?,
                DVec3::from_array(point.at),
            ))
        };
        let known: Vec<&str> = joints.iter().map(|joint| joint.name.as_str()).collect();
        if let Some(strange) = table.joints.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(format!(
                "joints.{strange}: no joint of the arm, which has {}",
                known.join(", ")
            ));
        }
        let turn = |joint: &Joint| {
            let Some(own) = table.joints.get(&joint.name) else {
                return Ok(None);
            };
            let key = format!("joints.{}", joint.name);
            number(&format!("{key}.zero"), own.zero, -360.0, 360.0, "degrees")?;
            let (link, axis, [low, high]) =
                tree.turn(&own.urdf).map_err(|why| format!("{key}.urdf: {why}"))?;
            let sign = if own.reversed { -1.0 } else { 1.0 };
            let ours = |angle: f64| own.zero + sign * angle.to_degrees();
            let limits = [ours(low).min(ours(high)), ours(low).max(ours(high))];
            Ok::<_, String>(Some(Turn {
                link,
                axis,
                zero: own.zero,
                sign,
                limits,
            }))
        };
        let turns = joints.iter().map(turn).collect::<Result<Vec<_>, String>>()?;
        if turns.iter().flatten().count() < 3 {
            return Err(
                "joints: expected at least three joints of the arm with their names in the URDF".to_owned(),
            );
        }
        number("clearance", table.clearance, 0.0, 0.5, "m")?;
        number("tolerance", table.tolerance, 0.0005, 0.1, "m")?;
        if let Some(table) = table.table {
            number("table", table, -5.0, 5.0, "m")?;
        }
        let tip = point("tip", &table.tip)?;
        let grasp = table
            .grasp
            .as_ref()
            .map_or(Ok(tip), |grasp| point("grasp", grasp))?;
        let mut points = vec![tip, grasp];
        for (name, own) in &table.points {
            for at in own {
                let one = LinkPoint {
                    link: name.clone(),
                    at: *at,
                };
                points.push(point(&format!("points.{name}"), &one)?);
            }
        }
        Ok(Self {
            base: table
                .base
                .as_ref()
                .map_or(Ok(tree.root()), |name| link("base", name))?,
            least: table.table.map(|height| height + table.clearance),
            tolerance: table.tolerance,
            digest: digest(table)?,
            tree,
            tip,
            grasp,
            turns,
            points,
        })
    }

    /// Where the end of the hand is.
    #[must_use]
    pub fn at(&self, end: End, angles: &[f64]) -> [f64; 3] {
        let frames = self.frames(angles);
        self.end(end, &frames).to_array()
    }

    /// What tells this shape from others: the same for the same table, whatever version wrote it down.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// How close to a point the hand has to come to be there, in metres.
    #[must_use]
    pub fn tolerance(&self) -> f64 {
        self.tolerance
    }

    /// The lowest that a point of the arm may be, in metres, where something is below the arm.
    #[must_use]
    pub fn least(&self) -> Option<f64> {
        self.least
    }

    /// The lowest point of the arm.
    #[must_use]
    pub fn lowest(&self, angles: &[f64]) -> Lowest {
        let frames = self.frames(angles);
        let heights = self
            .points
            .iter()
            .map(|(link, at)| (*link, frames[*link].transform_point3(*at).z));
        let (link, height) = heights
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap_or((self.tip.0, f64::INFINITY));
        Lowest {
            link: self.tree.name(link).to_owned(),
            height,
        }
    }

    /// Where each link is, in the frame of the base.
    pub(super) fn frames(&self, angles: &[f64]) -> Vec<DAffine3> {
        let mut turned = vec![DQuat::IDENTITY; self.tree.len()];
        for (turn, angle) in self.turns.iter().zip(angles) {
            if let Some(turn) = turn {
                turned[turn.link] =
                    DQuat::from_axis_angle(turn.axis, (turn.sign * (angle - turn.zero)).to_radians());
            }
        }
        let mut frames: Vec<DAffine3> = Vec::with_capacity(turned.len());
        for (link, turned) in turned.iter().enumerate() {
            let (parent, origin) = self.tree.place(link);
            let own = origin * DAffine3::from_quat(*turned);
            frames.push(parent.map_or(own, |parent| frames[parent] * own));
        }
        let base = frames[self.base].inverse();
        frames.into_iter().map(|frame| base * frame).collect()
    }

    pub(super) fn end(&self, end: End, frames: &[DAffine3]) -> DVec3 {
        let (link, at) = match end {
            End::Tip => self.tip,
            End::Grasp => self.grasp,
        };
        frames[link].transform_point3(at)
    }
}

/// FNV-1a of the table as JSON, which keeps the order of its keys. It tells apart what differs by mistake, not by intent.
fn digest(table: &GeometryTable) -> Result<String, String> {
    let text = serde_json::to_string(table).map_err(|error| error.to_string())?;
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Ok(format!("{hash:016x}"))
}

fn size(at: [f64; 3]) -> f64 {
    DVec3::from_array(at).length()
}
