//! The coercion tree: what of a schema decides how a value is converted, compiled once.
//!
//! Nodes live in one vector and name each other by index, so recursive `$ref`s are loops in it, not in memory.
//! Only types, members, properties, items and alternatives are kept; all else is the validator's. What the tree
//! does not understand becomes [`Node::Any`]: passed on as it is, still validated.

use std::collections::HashSet;

use jsonschema::Validator;
use serde_json::Value;

use super::compile;
use super::object::ObjectNode;
use super::scalar::ScalarType;

pub(super) type NodeId = usize;

#[derive(Debug)]
pub(super) enum Node {
    Any,
    Alias(NodeId),
    Scalar(ScalarNode),
    Array(ArrayNode),
    Object(ObjectNode),
    Union(Vec<NodeId>),
}

#[derive(Debug)]
pub(super) struct ScalarNode {
    /// `None`: only `enum` or `const` without a type, nothing is converted.
    pub(super) kind: Option<ScalarType>,
    /// `enum`, or `const` as its single member.
    pub(super) members: Option<Vec<Value>>,
    /// Ranges, lengths and patterns, for choosing among alternatives; the whole call is validated anyway.
    pub(super) constraints: Option<Validator>,
}

#[derive(Debug)]
pub(super) struct ArrayNode {
    pub(super) prefix: Vec<NodeId>,
    pub(super) items: Option<NodeId>,
    /// A set: pydantic and serde both drop duplicates instead of refusing them.
    pub(super) unique: bool,
    pub(super) min: u64,
    pub(super) max: u64,
}

#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    root: NodeId,
}

impl Tree {
    /// Never fails: the schema has been checked against its meta-schema before.
    pub(super) fn compile(schema: &Value) -> Self {
        let (nodes, root) = compile::nodes(schema);
        let mut tree = Self { nodes, root };
        tree.cut_alias_loops();
        tree
    }

    pub(super) fn root(&self) -> NodeId {
        self.root
    }

    /// The node behind an id; never an alias.
    pub(super) fn node(&self, mut id: NodeId) -> &Node {
        while let Node::Alias(target) = self.nodes[id] {
            id = target;
        }
        &self.nodes[id]
    }

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

    /// For every depth of a value, in how many ways at worst one part of it is looked at, because unions offer
    /// several alternatives for it. `tags`: alternatives that a tag tells apart count as one,
    /// and the value is one of the root; otherwise it may be one of any part of the schema.
    pub(super) fn ways_by_depth(&self, max_depth: usize, tags: bool) -> Vec<f64> {
        let told_apart: Vec<bool> = self
            .nodes
            .iter()
            .map(|node| matches!(node, Node::Union(choices) if tags && self.told_apart(choices)))
            .collect();
        let mut inner = vec![1.0; self.nodes.len()];
        let mut by_depth = vec![1.0];
        while by_depth.len() <= max_depth {
            let mut ways = vec![None; self.nodes.len()];
            for id in 0..self.nodes.len() {
                self.ways(id, &inner, &told_apart, &mut ways);
            }
            let ways: Vec<f64> = ways.into_iter().map(|ways| ways.unwrap_or(1.0)).collect();
            let worst = ways.iter().copied().fold(1.0, f64::max);
            by_depth.push(if tags { ways[self.root] } else { worst });
            inner = ways;
        }
        by_depth
    }

    /// Recursion is in place, which `shape` has bounded.
    fn ways(&self, id: NodeId, inner: &[f64], told_apart: &[bool], known: &mut [Option<f64>]) -> f64 {
        if let Some(ways) = known[id] {
            return ways;
        }
        let most = |children: &mut dyn Iterator<Item = NodeId>| {
            children.map(|child| inner[child]).fold(1.0, f64::max)
        };
        let ways = match &self.nodes[id] {
            Node::Any | Node::Scalar(_) => 1.0,
            Node::Alias(target) => self.ways(*target, inner, told_apart, known),
            Node::Array(array) => most(&mut array.prefix.iter().chain(&array.items).copied()),
            Node::Object(object) => most(&mut object.children()),
            Node::Union(choices) => {
                let (mut arrays, mut objects, mut most) = (0.0, 0.0, 1.0_f64);
                for &choice in choices {
                    let ways = self.ways(choice, inner, told_apart, known);
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
                if told_apart[id] {
                    most
                } else {
                    most.max(arrays).max(objects)
                }
            }
        };
        known[id] = Some(ways);
        ways
    }

    /// Whether a string `const` in a required property selects the alternative; the validator looks it up then,
    /// from three alternatives on.
    fn told_apart(&self, choices: &[NodeId]) -> bool {
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
