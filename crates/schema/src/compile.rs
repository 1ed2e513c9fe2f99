//! Builds the nodes of a coercion tree from a schema.
//!
//! The parts of a schema that describe one value (`$ref`, `allOf`, its own keywords) become one node. An object node
//! has one list of declared properties, so that no property in any part of the schema is dropped.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::node::{ArrayNode, Extra, Node, NodeId, ObjectNode, Property, ScalarNode};
use super::scalar::ScalarType;
use super::validate;

/// The nodes of a schema, and the id of the root.
pub(super) fn nodes(schema: &Value) -> (Vec<Node>, NodeId) {
    let mut builder = Builder {
        root: schema,
        nodes: Vec::new(),
        seen: HashMap::new(),
    };
    let root = builder.node(schema);
    (builder.nodes, root)
}

struct Builder<'s> {
    root: &'s Value,
    nodes: Vec<Node>,
    /// The node of each schema, by address: a schema with several references to it, or with a reference to itself, is
    /// one node.
    seen: HashMap<*const Value, NodeId>,
}

impl<'s> Builder<'s> {
    fn node(&mut self, schema: &'s Value) -> NodeId {
        if let Some(&id) = self.seen.get(&std::ptr::from_ref(schema)) {
            return id;
        }
        let id = self.push(Node::Any);
        self.seen.insert(std::ptr::from_ref(schema), id);
        let node = schema
            .as_object()
            .map_or(Node::Any, |map| self.build(map, id == 0));
        self.nodes[id] = node;
        id
    }

    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The node for one value: the schema's own keywords and the schemas it refers to, which all apply.
    fn build(&mut self, schema: &'s Map<String, Value>, is_root: bool) -> Node {
        let mut parts = Vec::new();
        if let Some(target) = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|text| resolve(self.root, text))
        {
            parts.push(self.node(target));
        }
        for part in list(schema.get("allOf")) {
            parts.push(self.node(part));
        }
        for keyword in ["anyOf", "oneOf"] {
            let choices: Vec<NodeId> = list(schema.get(keyword))
                .iter()
                .map(|choice| self.node(choice))
                .collect();
            match choices.as_slice() {
                [] => {}
                [only] => parts.push(*only),
                _ => parts.push(self.push(Node::Union(choices))),
            }
        }
        // Beside `oneOf`, `type: object` adds nothing to the alternatives.
        let bare = !parts.is_empty() && !schema.contains_key("properties") && !declares_extra(schema);
        let own = self
            .own(schema, is_root)
            .filter(|node| !(bare && matches!(node, Node::Object(_))));
        let own = match own {
            Some(Node::Object(mut object)) => {
                for keyword in ["if", "then", "else"] {
                    if let Some(part) = schema.get(keyword) {
                        let part = self.node(part);
                        self.absorb(&mut object, part, false, 0);
                    }
                }
                for part in schema
                    .get("dependentSchemas")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flat_map(Map::values)
                {
                    let part = self.node(part);
                    self.absorb(&mut object, part, false, 0);
                }
                Some(Node::Object(object))
            }
            own => own,
        };
        match (own, parts.as_slice()) {
            (None, []) => Node::Any,
            (Some(own), []) => own,
            (None, [only]) => Node::Alias(*only),
            (Some(Node::Object(mut object)), _) => {
                for &part in &parts {
                    self.absorb(&mut object, part, true, 0);
                }
                Node::Object(object)
            }
            (Some(own), _) => own,
            (None, _) => self.intersect(&parts),
        }
    }

    /// The node for several parts that all apply, where the schema itself has no own node: objects are merged;
    /// otherwise the first part with a known type is used.
    fn intersect(&mut self, parts: &[NodeId]) -> Node {
        let telling =
            |builder: &Self, &part: &NodeId| !matches!(builder.target(part), Some(Node::Any) | None);
        let mut typed: Vec<NodeId> = parts.iter().copied().filter(|part| telling(self, part)).collect();
        typed.sort_by_key(|&part| !matches!(self.target(part), Some(Node::Object(_))));
        match typed.as_slice() {
            [] => Node::Any,
            [first, rest @ ..]
                if !rest.is_empty() && matches!(self.target(*first), Some(Node::Object(_))) =>
            {
                let mut object = ObjectNode::default();
                for &part in parts {
                    self.absorb(&mut object, part, true, 0);
                }
                Node::Object(object)
            }
            [first, ..] => Node::Alias(*first),
        }
    }

    /// Declares the properties of a part in `object`; `held` means that the part always applies.
    fn absorb(&self, object: &mut ObjectNode, part: NodeId, held: bool, depth: usize) {
        // A schema written by hand does not nest parts this deep, so this may be a loop.
        if depth > 16 {
            return;
        }
        match self.target(part) {
            Some(Node::Object(other)) => object.absorb(other, held),
            Some(Node::Union(choices)) => {
                for &choice in choices {
                    self.absorb(object, choice, false, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn target(&self, mut id: NodeId) -> Option<&Node> {
        for _ in 0..=self.nodes.len() {
            match &self.nodes[id] {
                Node::Alias(target) => id = *target,
                node => return Some(node),
            }
        }
        None
    }

    /// The node of the schema's own keywords.
    fn own(&mut self, schema: &'s Map<String, Value>, is_root: bool) -> Option<Node> {
        match schema.get("type") {
            Some(Value::String(kind)) => Some(self.typed(schema, kind, is_root)),
            Some(Value::Array(kinds)) => {
                let choices: Vec<NodeId> = kinds
                    .iter()
                    .filter_map(Value::as_str)
                    .map(|kind| {
                        let node = self.typed(schema, kind, is_root);
                        self.push(node)
                    })
                    .collect();
                Some(match choices.as_slice() {
                    [only] => Node::Alias(*only),
                    _ => Node::Union(choices),
                })
            }
            _ if schema.contains_key("properties")
                || declares_extra(schema)
                || (is_root && !composed(schema)) =>
            {
                Some(self.typed(schema, "object", is_root))
            }
            _ if schema.contains_key("items") || schema.contains_key("prefixItems") => {
                Some(self.typed(schema, "array", is_root))
            }
            _ => members(schema).map(|members| {
                Node::Scalar(ScalarNode {
                    kind: None,
                    members: Some(members),
                    constraints: None,
                })
            }),
        }
    }

    fn typed(&mut self, schema: &'s Map<String, Value>, kind: &str, is_root: bool) -> Node {
        let kind = match kind {
            "null" => ScalarType::Null,
            "boolean" => ScalarType::Boolean,
            "integer" => ScalarType::Integer,
            "number" => ScalarType::Number,
            "string" => ScalarType::String,
            "array" => return Node::Array(self.array(schema)),
            "object" => return Node::Object(self.object(schema, is_root)),
            _ => return Node::Any,
        };
        let constraints = if kind == ScalarType::Null {
            None
        } else {
            validate::constraints(schema)
        };
        Node::Scalar(ScalarNode {
            kind: Some(kind),
            members: members(schema),
            constraints,
        })
    }

    fn array(&mut self, schema: &'s Map<String, Value>) -> ArrayNode {
        // Before draft 2020-12, a tuple was `items: [..]`, and `additionalItems` described the rest.
        let (prefix, items) = match schema.get("items") {
            Some(Value::Array(prefix)) => (prefix.as_slice(), schema.get("additionalItems")),
            items => (list(schema.get("prefixItems")), items),
        };
        ArrayNode {
            prefix: prefix.iter().map(|item| self.node(item)).collect(),
            items: items
                .filter(|items| items.is_object())
                .map(|items| self.node(items)),
            unique: schema.get("uniqueItems") == Some(&Value::Bool(true)),
            min: schema.get("minItems").and_then(Value::as_u64).unwrap_or(0),
            max: schema.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX),
        }
    }

    fn object(&mut self, schema: &'s Map<String, Value>, is_root: bool) -> ObjectNode {
        let required: HashSet<&str> = list(schema.get("required"))
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let declared = schema.get("properties").and_then(Value::as_object);
        let properties: Vec<Property> = declared
            .into_iter()
            .flatten()
            .map(|(name, property)| Property {
                name: name.as_str().into(),
                node: self.node(property),
                required: required.contains(name.as_str()),
                default: property.get("default").cloned(),
            })
            .collect();
        let patterns: Vec<&'s Value> = schema
            .get("patternProperties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::values)
            .collect();
        let extra = match (
            schema
                .get("additionalProperties")
                .or(schema.get("unevaluatedProperties")),
            patterns.as_slice(),
        ) {
            (Some(each @ Value::Object(_)), []) => Extra::Each(self.node(each)),
            (None | Some(Value::Bool(false)), [each]) => Extra::Each(self.node(each)),
            (Some(Value::Object(_) | Value::Bool(true)), _) | (_, [_, ..]) => Extra::Keep,
            // An inner object without any declaration is free-form; an argument schema without any declaration has no
            // arguments.
            (None, []) if declared.is_none() && !is_root => Extra::Keep,
            _ => Extra::Drop,
        };
        // A name that is only in `required` is declared, too.
        let mut object = ObjectNode::new(
            properties,
            extra,
            schema.get("additionalProperties") == Some(&Value::Bool(false)),
        );
        for name in required {
            object.declare(name);
        }
        object.min = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
        object.max = schema
            .get("maxProperties")
            .and_then(Value::as_u64)
            .unwrap_or(u64::MAX);
        object
    }
}

/// The schema that a reference (`$ref`) inside the document points to, if there is one.
#[must_use]
pub fn resolve<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let pointer = reference.strip_prefix('#')?;
    root.pointer(pointer)
        .or_else(|| root.pointer(&percent_decoded(pointer)?))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let decoded = if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
        } else {
            byte
        };
        bytes.push(decoded);
    }
    String::from_utf8(bytes).ok()
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn members(schema: &Map<String, Value>) -> Option<Vec<Value>> {
    schema
        .get("const")
        .map(|only| vec![only.clone()])
        .or_else(|| schema.get("enum").and_then(Value::as_array).cloned())
}

fn declares_extra(schema: &Map<String, Value>) -> bool {
    [
        "additionalProperties",
        "unevaluatedProperties",
        "patternProperties",
    ]
    .iter()
    .any(|key| schema.contains_key(*key))
}

fn composed(schema: &Map<String, Value>) -> bool {
    ["$ref", "allOf", "anyOf", "oneOf"]
        .iter()
        .any(|key| schema.contains_key(*key))
}
