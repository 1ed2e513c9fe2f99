//! Lax coercion of a call's arguments along the coercion tree.
//!
//! Two walks: `rate` rates how well a value fits a node and changes nothing; `build` makes the converted value and
//! calls `rate` at every union. The ratings of containers are cached, so each value is rated once per node even in
//! nested unions, and the work is linear in the arguments. A value that does not fit is passed on unchanged, and the
//! validator reports it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use jsonschema::paths::LocationSegment;
use serde_json::{Map, Value};

use super::node::{ArrayNode, Extra, Node, NodeId, ObjectNode, ScalarNode};
use super::problem::{MAX_PROBLEMS, Problem};
use super::scalar::{Exactness, Fitted, ScalarType, convert, is_oversized_float, same, same_key, tidy};
use super::shorten::{shorten, shorten_text};
use super::tree::Tree;
use super::validate::path_text;

/// The handling of undeclared arguments where `additionalProperties` is `false`. Elsewhere they are dropped, or kept
/// where the schema allows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// Undeclared arguments are dropped.
    Drop,
    /// Undeclared arguments are a problem.
    Refuse,
}

/// How well a value fits a node, as pydantic's smart unions compare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fit {
    exactness: Exactness,
    /// The number of properties found in objects with declared properties ("models"), over all levels.
    fields: Option<usize>,
}

impl Fit {
    const EXACT: Self = Self {
        exactness: Exactness::Exact,
        fields: None,
    };

    fn with(self, inner: Self) -> Self {
        let fields = match (self.fields, inner.fields) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
        };
        Self {
            exactness: self.exactness.min(inner.exactness),
            fields,
        }
    }

    fn beats(self, best: Self) -> bool {
        match (self.fields, best.fields) {
            (Some(new), Some(old)) if new != old => new > old,
            _ => self.exactness > best.exactness,
        }
    }
}

pub(super) struct Coercion<'t> {
    tree: &'t Tree,
    unknown: Unknown,
    /// The ratings by node and by the address of the value, which outlives the coercion.
    ratings: HashMap<(NodeId, *const Value), Option<Fit>>,
    path: Vec<LocationSegment<'t>>,
    problems: Vec<Problem>,
}

impl<'t> Coercion<'t> {
    pub(super) fn new(tree: &'t Tree, unknown: Unknown) -> Self {
        Self {
            tree,
            unknown,
            ratings: HashMap::new(),
            path: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// The coerced arguments: an object for every argument schema.
    pub(super) fn arguments(mut self, args: &'t Map<String, Value>) -> Result<Value, Vec<Problem>> {
        let coerced = match self.tree.node(self.tree.root()) {
            Node::Object(object) => Value::Object(self.build_object(object, args)),
            _ => {
                // A union at the root is rare, so the copy is acceptable.
                let whole = Value::Object(args.clone());
                let mut inner = Coercion::new(self.tree, self.unknown);
                let built = inner.build(self.tree.root(), &whole);
                let problems = std::mem::take(&mut inner.problems);
                drop(inner);
                self.problems = problems;
                built
            }
        };
        if self.problems.is_empty() {
            Ok(coerced)
        } else {
            Err(self.problems)
        }
    }

    fn build(&mut self, id: NodeId, value: &'t Value) -> Value {
        match (self.tree.node(id), value) {
            (Node::Scalar(node), _) => match fit_scalar(node, value) {
                Some((Cow::Owned(value), _)) => value,
                Some((Cow::Borrowed(_), _)) => keep(value),
                None => {
                    self.refuse_oversized(node, value);
                    keep(value)
                }
            },
            (Node::Array(node), Value::Array(items)) => Value::Array(self.build_array(node, items)),
            (Node::Object(node), Value::Object(map)) => Value::Object(self.build_object(node, map)),
            (Node::Union(choices), _) => match self.choose(choices, value) {
                Some((choice, _)) => self.build(choice, value),
                None => {
                    for &choice in choices {
                        if let Node::Scalar(node) = self.tree.node(choice) {
                            self.refuse_oversized(node, value);
                        }
                    }
                    keep(value)
                }
            },
            _ => keep(value),
        }
    }

    fn build_array(&mut self, node: &'t ArrayNode, items: &'t [Value]) -> Vec<Value> {
        let mut built = Vec::with_capacity(items.len());
        let mut seen = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            self.path.push(index.into());
            let item = match node.prefix.get(index).copied().or(node.items) {
                Some(id) => self.build(id, item),
                None => keep(item),
            };
            self.path.pop();
            if !node.unique || seen.insert(item.to_string()) {
                built.push(item);
            }
        }
        built
    }

    fn build_object(&mut self, node: &'t ObjectNode, map: &'t Map<String, Value>) -> Map<String, Value> {
        if self.unknown == Unknown::Refuse && node.is_closed() {
            self.refuse_unknown(node, map);
        }
        let mut built = Map::with_capacity(node.properties.len());
        for property in &node.properties {
            let value = match (map.get(&*property.name), &property.default) {
                (Some(value), _) => {
                    self.path.push((&*property.name).into());
                    let value = self.build(property.node, value);
                    self.path.pop();
                    value
                }
                (None, Some(default)) => default.clone(),
                (None, None) => continue,
            };
            built.insert(property.name.to_string(), value);
        }
        for name in &node.untyped {
            if let Some(value) = map.get(&**name) {
                built.insert(name.to_string(), keep(value));
            }
        }
        if !matches!(node.extra, Extra::Drop) {
            for (name, value) in map.iter().filter(|(name, _)| !node.declares(name)) {
                let value = match node.extra {
                    Extra::Each(id) => {
                        self.path.push(name.into());
                        let value = self.build(id, value);
                        self.path.pop();
                        value
                    }
                    Extra::Drop | Extra::Keep => keep(value),
                };
                built.insert(name.clone(), value);
            }
        }
        built
    }

    fn refuse_unknown(&mut self, node: &ObjectNode, map: &Map<String, Value>) {
        let unknown: Vec<&str> = map
            .keys()
            .map(String::as_str)
            .filter(|name| !node.declares(name))
            .collect();
        if unknown.is_empty() || self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let known: Vec<&str> = node.names().collect();
        let known = if known.is_empty() {
            "none".to_owned()
        } else {
            shorten_text(&known.join(", "), 300)
        };
        let arguments = if unknown.len() == 1 {
            "argument"
        } else {
            "arguments"
        };
        self.problems.push(Problem {
            path: self.place(),
            message: format!(
                "unknown {arguments} '{}'; known: {known}",
                shorten_text(&unknown.join("', '"), 100)
            ),
        });
    }

    /// The path of the current value, for an error.
    fn place(&self) -> String {
        shorten_text(&path_text(self.path.iter().cloned()), 200)
    }

    /// JSON Schema accepts `1e20` as an integer. Pydantic does not, and a toolbox could not read it as one.
    fn refuse_oversized(&mut self, node: &ScalarNode, value: &Value) {
        if node.kind == Some(ScalarType::Integer)
            && is_oversized_float(value)
            && self.problems.len() < MAX_PROBLEMS
        {
            let message = format!(
                "expected integer, got {}: at this size write all digits, without fraction or exponent",
                shorten(value)
            );
            self.problems.push(Problem {
                path: self.place(),
                message,
            });
        }
    }

    /// The alternative that fits best: the first exact one; otherwise the one with the most properties, then the one
    /// with the closest type, then the first one.
    fn choose(&mut self, choices: &'t [NodeId], value: &'t Value) -> Option<(NodeId, Fit)> {
        let mut best: Option<(NodeId, Fit)> = None;
        for &choice in choices {
            let Some(fit) = self.rate(choice, value) else {
                continue;
            };
            if fit == Fit::EXACT {
                return Some((choice, fit));
            }
            if best.is_none_or(|(_, old)| fit.beats(old)) {
                best = Some((choice, fit));
            }
        }
        best
    }

    fn rate(&mut self, id: NodeId, value: &'t Value) -> Option<Fit> {
        let node = self.tree.node(id);
        match node {
            Node::Any | Node::Alias(_) => {
                return Some(Fit {
                    exactness: Exactness::Strict,
                    fields: None,
                });
            }
            Node::Scalar(node) => {
                let (converted, exactness) = fit_scalar(node, value)?;
                let allowed = node
                    .constraints
                    .as_ref()
                    .is_none_or(|constraints| constraints.is_valid(&converted));
                return allowed.then_some(Fit {
                    exactness,
                    fields: None,
                });
            }
            Node::Array(_) | Node::Object(_) | Node::Union(_) => {}
        }
        let key = (id, std::ptr::from_ref(value));
        if let Some(&known) = self.ratings.get(&key) {
            return known;
        }
        // A union that contains itself as an alternative finds this entry and stops instead of recursing for ever.
        self.ratings.insert(key, None);
        let fit = match (node, value) {
            (Node::Union(choices), _) => self.choose(choices, value).map(|(_, fit)| fit),
            (Node::Array(node), Value::Array(items)) => self.rate_array(node, items),
            (Node::Object(node), Value::Object(map)) => self.rate_object(node, map),
            _ => None,
        };
        self.ratings.insert(key, fit);
        fit
    }

    fn rate_array(&mut self, node: &'t ArrayNode, items: &'t [Value]) -> Option<Fit> {
        if !node.unique && !(node.min..=node.max).contains(&(items.len() as u64)) {
            return None;
        }
        let mut fit = Fit::EXACT;
        for (index, item) in items.iter().enumerate() {
            if let Some(id) = node.prefix.get(index).copied().or(node.items) {
                fit = fit.with(self.rate(id, item)?);
            }
        }
        Some(fit)
    }

    fn rate_object(&mut self, node: &'t ObjectNode, map: &'t Map<String, Value>) -> Option<Fit> {
        if !(node.min..=node.max).contains(&(map.len() as u64)) {
            return None;
        }
        // For pydantic a model made from an object is not exact, and a dictionary is (observed: a dictionary of
        // anything and a model are rated equal, and the first one wins).
        let model = !node.properties.is_empty();
        let mut fit = if model {
            Fit {
                exactness: Exactness::Strict,
                fields: Some(0),
            }
        } else {
            Fit::EXACT
        };
        let mut found = 0;
        for property in &node.properties {
            match map.get(&*property.name) {
                Some(value) => {
                    found += 1;
                    fit = fit.with(self.rate(property.node, value)?);
                }
                None if property.required => return None,
                None => {}
            }
        }
        for name in &node.untyped {
            if !map.contains_key(&**name) {
                return None;
            }
            found += 1;
        }
        if node.is_closed() && found < map.len() {
            return None;
        }
        if model {
            fit = fit.with(Fit {
                exactness: Exactness::Exact,
                fields: Some(found),
            });
        }
        for (_, value) in map.iter().filter(|(name, _)| !node.declares(name)) {
            match node.extra {
                Extra::Drop => break,
                Extra::Keep => {
                    fit = fit.with(Fit {
                        exactness: Exactness::Strict,
                        fields: None,
                    })
                }
                Extra::Each(id) => fit = fit.with(self.rate(id, value)?),
            }
        }
        Some(fit)
    }
}

fn fit_scalar<'v>(node: &ScalarNode, value: &'v Value) -> Option<(Cow<'v, Value>, Exactness)> {
    let Some(kind) = node.kind else {
        // Members of several types: pydantic looks them up like Python, for which `1`, `1.0` and `true` are the same
        // key.
        let member = node
            .members
            .as_ref()?
            .iter()
            .find(|member| same_key(member, value))?;
        return Some((Cow::Owned(member.clone()), Exactness::Exact));
    };
    let (fitted, exactness) = convert(kind, value)?;
    let converted = match fitted {
        Fitted::Same => Cow::Borrowed(value),
        Fitted::New(value) => Cow::Owned(value),
    };
    is_member(node, &converted).then_some((converted, exactness))
}

fn is_member(node: &ScalarNode, value: &Value) -> bool {
    node.members
        .as_ref()
        .is_none_or(|members| members.iter().any(|member| same(member, value)))
}

/// A copy with every number in a form that is cheap for the later steps. Numbers without such a form are refused
/// before.
fn keep(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(tidy(number).flatten().unwrap_or_else(|| number.clone())),
        Value::Array(items) => Value::Array(items.iter().map(keep).collect()),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(name, value)| (name.clone(), keep(value)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}
