//! The coercion tree: the part of a schema that decides how a value is converted, compiled once.
//!
//! The nodes are in one vector and refer to each other by index, so a recursive `$ref` is a loop of indexes and needs
//! no shared pointers. The tree has only types, members, properties, items and alternatives; the validator checks the
//! rest. A schema that the tree cannot represent becomes [`Node::Any`]: its values are passed on unchanged and still
//! validated.

use std::collections::HashSet;

use serde_json::Value;

use super::compile;
use super::node::{Node, NodeId, ObjectNode, ScalarNode};

#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    root: NodeId,
}

impl Tree {
    /// Builds the tree. This cannot fail, because the schema has been checked against its meta-schema before.
    pub(super) fn compile(schema: &Value) -> Self {
        let (nodes, root) = compile::nodes(schema);
        let mut tree = Self { nodes, root };
        tree.cut_alias_loops();
        tree
    }

    pub(super) fn root(&self) -> NodeId {
        self.root
    }

    /// The node of an id, behind its aliases.
    pub(super) fn node(&self, mut id: NodeId) -> &Node {
        while let Node::Alias(target) = self.nodes[id] {
            id = target;
        }
        &self.nodes[id]
    }

    /// An alias that leads only to aliases has no type, so it accepts any value.
    fn cut_alias_loops(&mut self) {
        for start in 0..self.nodes.len() {
            let mut id = start;
            let mut steps = 0;
            while let Node::Alias(target) = self.nodes[id] {
                id = target;
                steps += 1;
                if steps > self.nodes.len() {
                    self.nodes[start] = Node::Any;
                    break;
                }
            }
        }
    }

    /// For every depth of a value, the largest number of ways in which one part of it is examined, because unions offer
    /// several alternatives for it. With `tags`, alternatives that a tag distinguishes count as one, and the value
    /// belongs to the root; without, it may belong to any part of the schema.
    pub(super) fn ways_by_depth(&self, max_depth: usize, tags: bool) -> Vec<f64> {
        let tagged: Vec<bool> = self
            .nodes
            .iter()
            .map(|node| matches!(node, Node::Union(choices) if tags && self.is_tagged(choices)))
            .collect();
        let mut inner = vec![1.0; self.nodes.len()];
        let mut by_depth = vec![1.0];
        while by_depth.len() <= max_depth {
            let mut ways = vec![None; self.nodes.len()];
            for id in 0..self.nodes.len() {
                self.ways(id, &inner, &tagged, &mut ways);
            }
            let ways: Vec<f64> = ways.into_iter().map(|ways| ways.unwrap_or(1.0)).collect();
            let worst = ways.iter().copied().fold(1.0, f64::max);
            by_depth.push(if tags { ways[self.root] } else { worst });
            inner = ways;
        }
        by_depth
    }

    /// The number of ways of one node. The recursion is in place, so its depth is bounded by `shape`.
    fn ways(&self, id: NodeId, inner: &[f64], tagged: &[bool], known: &mut [Option<f64>]) -> f64 {
        if let Some(ways) = known[id] {
            return ways;
        }
        let most = |children: &mut dyn Iterator<Item = NodeId>| {
            children.map(|child| inner[child]).fold(1.0, f64::max)
        };
        let ways = match &self.nodes[id] {
            Node::Any | Node::Scalar(_) => 1.0,
            Node::Alias(target) => self.ways(*target, inner, tagged, known),
            Node::Array(array) => most(&mut array.prefix.iter().chain(&array.items).copied()),
            Node::Object(object) => most(&mut object.children()),
            Node::Union(choices) => {
                let (mut arrays, mut objects, mut most) = (0.0, 0.0, 1.0_f64);
                for &choice in choices {
                    let ways = self.ways(choice, inner, tagged, known);
                    most = most.max(ways);
                    match self.node(choice) {
                        Node::Scalar(_) => {}
                        Node::Array(_) => arrays += ways,
                        Node::Object(_) => objects += ways,
                        Node::Any | Node::Alias(_) | Node::Union(_) => {
                            arrays += ways;
                            objects += ways;
                        }
                    }
                }
                if tagged[id] {
                    most
                } else {
                    most.max(arrays).max(objects)
                }
            }
        };
        known[id] = Some(ways);
        ways
    }

    /// Whether a tag, a string `const` in a required property, selects the alternative. The validator looks a tag up only if
    /// there are at least three alternatives.
    fn is_tagged(&self, choices: &[NodeId]) -> bool {
        let objects: Option<Vec<&ObjectNode>> = choices
            .iter()
            .map(|&choice| match self.node(choice) {
                Node::Object(object) => Some(object),
                _ => None,
            })
            .collect();
        let Some(objects) = objects.filter(|objects| objects.len() >= 3) else {
            return false;
        };
        objects[0].properties.iter().any(|property| {
            let mut tags = HashSet::new();
            objects.iter().all(|object| {
                object
                    .properties
                    .iter()
                    .find(|other| other.required && other.name == property.name)
                    .is_some_and(|other| match self.node(other.node) {
                        Node::Scalar(ScalarNode {
                            members: Some(members),
                            ..
                        }) => {
                            matches!(members.as_slice(), [Value::String(tag)] if tags.insert(tag.as_str()))
                        }
                        _ => false,
                    })
            })
        })
    }
}
