//! The links and joints of a URDF.
//!
//! Owns the few elements that kinematics needs: links, joints with their origin, axis and limits. Read [`Tree`].

use std::collections::BTreeMap;

use glam::{DAffine3, DQuat, DVec3, EulerRot};
use roxmltree::{Document, Node};

use crate::model::error::nearest;

/// The links, each after the one that it hangs on.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    links: Vec<Link>,
}

#[derive(Clone, Debug)]
struct Link {
    name: String,
    parent: Option<usize>,
    origin: DAffine3,
    /// The joint by which it hangs on its parent.
    joint: String,
    /// The axis about which it turns, and from where to where in radians.
    turn: Option<(DVec3, [f64; 2])>,
}

/// A joint before its place in the tree is known.
struct Hinge<'a> {
    parent: &'a str,
    link: Link,
}

impl Tree {
    /// Reads a URDF.
    ///
    /// # Errors
    /// It is none, or its joints do not make a tree.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let document = Document::parse(text.trim()).map_err(|error| format!("not XML: {error}"))?;
        let robot = document.root_element();
        if !robot.has_tag_name("robot") {
            return Err(format!(
                "expected <robot>, got <{}>; xacro has to be expanded first",
                robot.tag_name().name()
            ));
        }
        let of = |tag: &'static str| robot.children().filter(move |node| node.has_tag_name(tag));
        let links = of("link")
            .map(|node| named(node))
            .collect::<Result<Vec<_>, _>>()?;
        let mut waiting = BTreeMap::new();
        for node in of("joint") {
            let hinge = hinge(node)?;
            if let Some(other) = waiting.insert(hinge.link.name.clone(), hinge) {
                return Err(format!("the link {} hangs on two joints", other.link.name));
            }
        }
        let roots: Vec<&&str> = links
            .iter()
            .filter(|name| !waiting.contains_key(**name))
            .collect();
        let [root] = roots[..] else {
            return Err(format!(
                "expected one link that hangs on no joint, got {}",
                roots.len()
            ));
        };
        let mut found = vec![Link {
            name: (*root).to_owned(),
            parent: None,
            origin: DAffine3::IDENTITY,
            joint: String::new(),
            turn: None,
        }];
        let mut at = 0;
        while at < found.len() {
            let name = found[at].name.clone();
            let hang = |_: &String, hinge: &mut Hinge<'_>| hinge.parent == name;
            let here: Vec<_> = waiting.extract_if(.., hang).collect();
            found.extend(here.into_iter().map(|(_, hinge)| Link {
                parent: Some(at),
                ..hinge.link
            }));
            at += 1;
        }
        match waiting.into_values().next() {
            Some(lost) => Err(format!(
                "the joint {} hangs on {}, which hangs on nothing",
                lost.link.joint, lost.parent
            )),
            None => Ok(Self { links: found }),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    /// The link on which all others hang.
    pub(super) fn root(&self) -> usize {
        0
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &str> + Clone {
        self.links.iter().map(|link| link.name.as_str())
    }

    pub(super) fn link(&self, name: &str) -> Option<usize> {
        self.links.iter().position(|link| link.name == name)
    }

    pub(super) fn name(&self, link: usize) -> &str {
        &self.links[link].name
    }

    /// The link on which a link hangs, and where.
    pub(super) fn place(&self, link: usize) -> (Option<usize>, DAffine3) {
        (self.links[link].parent, self.links[link].origin)
    }

    /// Whether a link hangs on another, or is that one.
    pub(super) fn hangs(&self, link: usize, on: usize) -> bool {
        std::iter::successors(Some(link), |link| self.links[*link].parent).any(|link| link == on)
    }

    /// The link that a joint turns, its axis, and its limits in radians.
    ///
    /// # Errors
    /// There is no such joint, or it does not turn.
    pub(super) fn turn(&self, joint: &str) -> Result<(usize, DVec3, [f64; 2]), String> {
        let found = self.links.iter().position(|link| link.joint == joint);
        let turning = || {
            self.links
                .iter()
                .filter(|link| link.turn.is_some())
                .map(|link| link.joint.as_str())
        };
        match found.and_then(|link| Some((link, self.links[link].turn?))) {
            Some((link, (axis, limits))) => Ok((link, axis, limits)),
            None => {
                let near = nearest(joint, turning())
                    .map_or_else(String::new, |near| format!("; did you mean {near}?"));
                let known: Vec<&str> = turning().collect();
                Err(format!(
                    "the URDF has no joint {joint} that turns, known are {}{near}",
                    known.join(", ")
                ))
            }
        }
    }
}

fn named<'a>(node: Node<'a, '_>) -> Result<&'a str, String> {
    node.attribute("name")
        .ok_or_else(|| format!("a <{}> has no name", node.tag_name().name()))
}

fn hinge<'a>(node: Node<'a, '_>) -> Result<Hinge<'a>, String> {
    let name = named(node)?;
    let child = |tag: &'static str| node.children().find(move |node| node.has_tag_name(tag));
    let end = |tag: &'static str| {
        let link = child(tag).and_then(|node| node.attribute("link"));
        link.ok_or_else(|| format!("the joint {name} has no <{tag} link=...>"))
    };
    let origin = child("origin");
    let three = |node: Option<Node<'a, '_>>, key: &'static str, usual: [f64; 3]| {
        let Some(text) = node.and_then(|node| node.attribute(key)) else {
            return Ok(usual);
        };
        let numbers: Vec<f64> = text
            .split_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect();
        <[f64; 3]>::try_from(numbers)
            .ok()
            .filter(|numbers| {
                numbers
                    .iter()
                    .all(|number| number.is_finite() && number.abs() < 1e3)
            })
            .ok_or_else(|| format!("the joint {name}: {key} is {text:?}, expected three numbers"))
    };
    let [roll, pitch, yaw] = three(origin, "rpy", [0.0; 3])?;
    let origin = DAffine3::from_rotation_translation(
        DQuat::from_euler(EulerRot::ZYX, yaw, pitch, roll),
        DVec3::from_array(three(origin, "xyz", [0.0; 3])?),
    );
    let limit = |key: &str, usual: f64| {
        let given = child("limit").and_then(|node| node.attribute(key)?.trim().parse::<f64>().ok());
        given.filter(|angle| angle.is_finite()).unwrap_or(usual)
    };
    let limits = match node.attribute("type").unwrap_or_default() {
        "revolute" => Some([limit("lower", 0.0), limit("upper", 0.0)]),
        "continuous" => Some([f64::NEG_INFINITY, f64::INFINITY]),
        _ => None,
    };
    let turn = match limits {
        Some(limits) => {
            let axis = DVec3::from_array(three(child("axis"), "xyz", [1.0, 0.0, 0.0])?);
            let axis = axis
                .try_normalize()
                .ok_or_else(|| format!("the joint {name} has no axis"))?;
            Some((axis, limits))
        }
        None => None,
    };
    Ok(Hinge {
        parent: end("parent")?,
        link: Link {
            name: end("child")?.to_owned(),
            parent: None,
            origin,
            joint: name.to_owned(),
            turn,
        },
    })
}
