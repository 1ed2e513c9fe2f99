//! The nodes of the coercion tree.

use std::collections::HashSet;

use jsonschema::Validator;
use serde_json::Value;

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
    /// `None`: the schema has `enum` or `const` without a type, so nothing is converted.
    pub(super) kind: Option<ScalarType>,
    /// The values of `enum`, or the single value of `const`.
    pub(super) members: Option<Vec<Value>>,
    /// Ranges, lengths and patterns, for the choice among alternatives; the whole call is validated anyway.
    pub(super) constraints: Option<Validator>,
}

#[derive(Debug)]
pub(super) struct ArrayNode {
    pub(super) prefix: Vec<NodeId>,
    pub(super) items: Option<NodeId>,
    /// Whether the array is a set: pydantic and serde both drop duplicates instead of refusing them.
    pub(super) unique: bool,
    pub(super) min: u64,
    pub(super) max: u64,
}

#[derive(Debug)]
pub(super) struct Property {
    pub(super) name: Box<str>,
    pub(super) node: NodeId,
    pub(super) required: bool,
    pub(super) default: Option<Value>,
}

/// The handling of undeclared properties.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Extra {
    #[default]
    Drop,
    Keep,
    /// Keeps each of them, converted by this node.
    Each(NodeId),
}

/// The declared properties, and the handling of all others.
#[derive(Debug)]
pub(super) struct ObjectNode {
    pub(super) properties: Vec<Property>,
    names: HashSet<Box<str>>,
    /// Properties that are only in `required`, without a schema: passed on unchanged.
    pub(super) untyped: Vec<Box<str>>,
    pub(super) extra: Extra,
    /// Whether the schema has `additionalProperties: false`.
    closed: bool,
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Default for ObjectNode {
    fn default() -> Self {
        Self::new(Vec::new(), Extra::Drop, false)
    }
}

impl ObjectNode {
    pub(super) fn new(properties: Vec<Property>, extra: Extra, closed: bool) -> Self {
        let names = properties.iter().map(|property| property.name.clone()).collect();
        Self {
            properties,
            names,
            untyped: Vec::new(),
            extra,
            closed,
            min: 0,
            max: u64::MAX,
        }
    }

    pub(super) fn declares(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The names of all declared properties.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let typed = self.properties.iter().map(|property| &*property.name);
        typed.chain(self.untyped.iter().map(|name| &**name))
    }

    /// Whether an undeclared property rules this object out as an alternative of a union.
    pub(super) fn is_closed(&self) -> bool {
        self.closed && matches!(self.extra, Extra::Drop)
    }

    pub(super) fn declare(&mut self, name: &str) {
        if self.names.insert(name.into()) {
            self.untyped.push(name.into());
        }
    }

    /// Adds the properties of a part. A part that does not always apply adds no defaults and requires nothing.
    pub(super) fn absorb(&mut self, part: &Self, held: bool) {
        for property in &part.properties {
            if self.names.insert(property.name.clone()) {
                self.properties.push(Property {
                    name: property.name.clone(),
                    node: property.node,
                    required: held && property.required,
                    default: property.default.clone().filter(|_| held),
                });
            }
        }
        for name in &part.untyped {
            self.declare(name);
        }
        if matches!(self.extra, Extra::Drop) && !part.properties.is_empty() | part.closed {
            self.extra = part.extra;
        }
        self.closed |= held && part.closed;
    }

    pub(super) fn children(&self) -> impl Iterator<Item = NodeId> + '_ {
        let each = match self.extra {
            Extra::Each(id) => Some(id),
            Extra::Drop | Extra::Keep => None,
        };
        self.properties.iter().map(|property| property.node).chain(each)
    }
}
