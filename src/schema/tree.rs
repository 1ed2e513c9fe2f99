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

    /// How many alternatives of one union, at worst, accept the same kind of container and lead back to the union.
    pub(super) fn recursive_fan(&self) -> usize {
        let mut worst = 0;
        for (id, node) in self.nodes.iter().enumerate() {
            let Node::Union(choices) = node else { continue };
            if self.told_apart(choices) {
                continue;
            }
            let leads_back: Vec<&Node> = choices
                .iter()
                .filter(|&&choice| self.reaches(choice, id))
                .map(|&choice| self.node(choice))
                .collect();
            let nested = leads_back
                .iter()
                .filter(|node| matches!(node, Node::Union(_)))
                .count();
            let objects = leads_back
                .iter()
                .filter(|node| matches!(node, Node::Object(_)))
                .count();
            let arrays = leads_back
                .iter()
                .filter(|node| matches!(node, Node::Array(_)))
                .count();
            worst = worst.max(nested + objects.max(arrays));
        }
        worst
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

    fn reaches(&self, from: NodeId, goal: NodeId) -> bool {
        let mut seen = vec![false; self.nodes.len()];
        let mut open = vec![from];
        while let Some(id) = open.pop() {
            if id == goal {
                return true;
            }
            if std::mem::replace(&mut seen[id], true) {
                continue;
            }
            match &self.nodes[id] {
                Node::Any | Node::Scalar(_) => {}
                Node::Alias(target) => open.push(*target),
                Node::Array(array) => open.extend(array.prefix.iter().chain(&array.items)),
                Node::Object(object) => open.extend(object.children()),
                Node::Union(choices) => open.extend(choices),
            }
        }
        false
    }
}
