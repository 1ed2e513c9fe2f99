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

use super::meant::meant;
use super::node::{ArrayNode, Extra, Node, NodeId, ObjectNode, ScalarNode};
use super::problem::{MAX_PROBLEMS, Problem};
use super::reading::{Reading, Unknown};
use super::scalar::{Exactness, FittedValue, ScalarType, convert, is_oversized_float, same, same_key, tidy};
use super::shorten::{shorten, shorten_text};
use super::tree::Tree;
use super::validate::path_text;

/// The largest number of ignored arguments that are named.
const MAX_IGNORED: usize = 64;

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
    reading: Reading,
    /// Whether the value was itself read from a text; a text in it stays a text, which bounds the recursion.
    in_text: bool,
    /// The ratings by node and by the address of the value, which outlives the coercion.
    ratings: HashMap<(NodeId, *const Value), Option<Fit>>,
    path: Vec<LocationSegment<'t>>,
    problems: Vec<Problem>,
    /// The arguments that were left out.
    ignored: Vec<String>,
    /// Whether a list or an object was read from a text.
    read_text: bool,
}

/// The outcome of a coercion.
pub(super) struct CoercedArguments {
    pub(super) value: Value,
    /// The arguments that were left out, as paths.
    pub(super) ignored: Vec<String>,
    /// Whether a list or an object was read from a text, so that the value may be deeper than the given one.
    pub(super) read_text: bool,
}

impl<'t> Coercion<'t> {
    pub(super) fn new(tree: &'t Tree, reading: Reading) -> Self {
        Self {
            tree,
            reading,
            in_text: false,
            ratings: HashMap::new(),
            path: Vec::new(),
            problems: Vec::new(),
            ignored: Vec::new(),
            read_text: false,
        }
    }

    /// The coerced arguments: an object for every argument schema.
    pub(super) fn arguments(
        mut self,
        args: &'t Map<String, Value>,
    ) -> Result<CoercedArguments, Vec<Problem>> {
        let value = match self.tree.node(self.tree.root()) {
            Node::Object(object) => Value::Object(self.build_object(object, args)),
            _ => {
                // A union at the root is rare, so the copy is acceptable.
                let whole = Value::Object(args.clone());
                self.within(&whole, false, |inner, whole| {
                    inner.build(inner.tree.root(), whole)
                })
            }
        };
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        Ok(CoercedArguments {
            value,
            ignored: self.ignored,
            read_text: self.read_text,
        })
    }

    /// Works on a value that does not live as long as the arguments; what is found there counts for the whole.
    fn within<T>(
        &mut self,
        value: &Value,
        in_text: bool,
        work: impl for<'v> FnOnce(&mut Coercion<'v>, &'v Value) -> T,
    ) -> T {
        let mut inner = Coercion::new(self.tree, self.reading);
        inner.in_text = in_text;
        inner.path = self.path.clone();
        let done = work(&mut inner, value);
        let (problems, ignored) = (
            std::mem::take(&mut inner.problems),
            std::mem::take(&mut inner.ignored),
        );
        self.read_text |= in_text || inner.read_text;
        drop(inner);
        self.problems.extend(problems);
        self.ignored.extend(ignored);
        done
    }

    /// The list or the object that a text is, where one is wanted.
    fn read(&self, node: &Node, text: &str) -> Option<Value> {
        let starts = match node {
            Node::Array(_) => '[',
            Node::Object(_) => '{',
            Node::Any | Node::Alias(_) | Node::Scalar(_) | Node::Union(_) => return None,
        };
        if self.in_text || !self.reading.is_native() || !text.trim_start().starts_with(starts) {
            return None;
        }
        // `serde_json` refuses more than 128 levels.
        serde_json::from_str(text).ok()
    }

    fn build(&mut self, id: NodeId, value: &'t Value) -> Value {
        match (self.tree.node(id), value) {
            (Node::Scalar(node), _) => match fit_scalar(node, value, self.reading) {
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
            (node, Value::String(text)) => match self.read(node, text) {
                Some(read) => self.within(&read, true, |inner, read| inner.build(id, read)),
                None => keep(value),
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
        self.judge_unknown(node, map);
        let is_root = self.path.is_empty() && !self.in_text;
        let mut built = Map::with_capacity(node.properties.len());
        for property in &node.properties {
            let mut present = self.present_value(property.node, map.get(&*property.name));
            // An ill-formed detail is no reason to refuse what brings a machine to safety.
            if let Some(value) = present
                && is_root
                && self.reading.forgives()
                && !property.required
                && self.rate(property.node, value).is_none()
            {
                self.ignore(&property.name);
                present = None;
            }
            let value = match (present, &property.default) {
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

    /// The value of a property, if one is given: hosts write `null` for what is not given.
    fn present_value(&mut self, node: NodeId, value: Option<&'t Value>) -> Option<&'t Value> {
        let value = value?;
        let absent = value.is_null() && self.reading.skips_null() && self.rate(node, value).is_none();
        (!absent).then_some(value)
    }

    /// Refuses the undeclared properties of an object, or notes that they are ignored.
    fn judge_unknown(&mut self, node: &'t ObjectNode, map: &'t Map<String, Value>) {
        if !matches!(node.extra, Extra::Drop) || map.keys().all(|name| node.declares(name)) {
            return;
        }
        let refuses = match self.reading.unknown() {
            Unknown::Refuse => self.reading.is_native() || node.is_closed(),
            Unknown::Drop => false,
        };
        if refuses {
            self.refuse_unknown(node, map);
        } else {
            for name in map.keys().filter(|name| !node.declares(name)) {
                self.ignore(name);
            }
        }
    }

    fn ignore(&mut self, name: &str) {
        if self.ignored.len() < MAX_IGNORED {
            self.path.push(LocationSegment::Property(name.to_owned().into()));
            let place = self.place();
            self.path.pop();
            self.ignored.push(place);
        }
    }

    fn refuse_unknown(&mut self, node: &'t ObjectNode, map: &'t Map<String, Value>) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let unknown: Vec<(&String, &Value)> = map.iter().filter(|(name, _)| !node.declares(name)).collect();
        let shortened: Vec<String> = unknown
            .iter()
            .take(MAX_PROBLEMS)
            .map(|(name, value)| {
                // A word that only one argument knows says more than the spelling of a name.
                let takes = |property: &&super::node::Property| {
                    !map.contains_key(&*property.name)
                        && matches!(
                            self.tree.node(property.node),
                            Node::Scalar(ScalarNode { members: Some(_), .. })
                        )
                        && self.rate(property.node, value).is_some()
                };
                let fits: Vec<&str> = node
                    .properties
                    .iter()
                    .filter(takes)
                    .map(|property| &*property.name)
                    .collect();
                let name = shorten_text(name, 60);
                match meant(&name, node.names(), &fits) {
                    Some(near) => format!("'{name}' (did you mean '{near}'?)"),
                    None => format!("'{name}'"),
                }
            })
            .collect();
        let names: Vec<&str> = node.names().collect();
        let names = if names.is_empty() {
            "none".to_owned()
        } else {
            shorten_text(&names.join(", "), 300)
        };
        let arguments = if unknown.len() == 1 {
            "argument"
        } else {
            "arguments"
        };
        self.problems.push(Problem {
            path: self.place(),
            message: format!(
                "unknown {arguments} {}; known: {names}",
                shorten_text(&shortened.join(", "), 200)
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
                "expected integer, got {}: write an integer of this size with all digits, without fraction or exponent",
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
        if let Value::String(text) = value
            && let Some(read) = self.choose_read(choices, text)
        {
            return Some(read);
        }
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

    /// The list or object alternative that a text is meant for although a text is an alternative, too: the JSON in it
    /// fits, and the schema says what is in it.
    fn choose_read(&mut self, choices: &'t [NodeId], text: &str) -> Option<(NodeId, Fit)> {
        choices.iter().find_map(|&choice| {
            let node = self.tree.node(choice);
            let says_what = match node {
                Node::Array(array) => array
                    .items
                    .is_some_and(|items| !matches!(self.tree.node(items), Node::Any)),
                Node::Object(object) => !object.properties.is_empty(),
                Node::Any | Node::Alias(_) | Node::Scalar(_) | Node::Union(_) => false,
            };
            let fit = if says_what {
                self.rate_text(choice, text)
            } else {
                None
            };
            fit.map(|fit| (choice, fit))
        })
    }

    fn rate_text(&mut self, id: NodeId, text: &str) -> Option<Fit> {
        let read = self.read(self.tree.node(id), text)?;
        let fit = self.within(&read, true, |inner, read| inner.rate(id, read))?;
        Some(Fit {
            exactness: Exactness::Lax,
            ..fit
        })
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
                let (converted, exactness) = fit_scalar(node, value, self.reading)?;
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
            (_, Value::String(text)) => self.rate_text(id, text),
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
            match self.present_value(property.node, map.get(&*property.name)) {
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

fn fit_scalar<'v>(
    node: &ScalarNode,
    value: &'v Value,
    reading: Reading,
) -> Option<(Cow<'v, Value>, Exactness)> {
    let native = reading.is_native();
    let Some(kind) = node.kind else {
        // Members of several types: pydantic looks them up like Python, for which `1`, `1.0` and `true` are the same
        // key.
        let equal = if native { same } else { same_key };
        let members = node.members.as_deref()?;
        if let Some(member) = members.iter().find(|member| equal(member, value)) {
            return Some((Cow::Owned(member.clone()), Exactness::Exact));
        }
        let member = folded(members, value).filter(|_| native)?;
        return Some((Cow::Owned(member.clone()), Exactness::Lax));
    };
    let (fitted, exactness) = convert(kind, value, !native)?;
    let converted = match fitted {
        FittedValue::Same => Cow::Borrowed(value),
        FittedValue::New(value) => Cow::Owned(value),
    };
    let Some(members) = &node.members else {
        return Some((converted, exactness));
    };
    if members.iter().any(|member| same(member, &converted)) {
        return Some((converted, exactness));
    }
    let member = folded(members, value).filter(|_| native)?;
    Some((Cow::Owned(member.clone()), Exactness::Lax))
}

/// The only member that is the same word in another case.
fn folded<'m>(members: &'m [Value], value: &Value) -> Option<&'m Value> {
    let word = value.as_str()?.to_lowercase();
    let is_same = |member: &&Value| {
        member
            .as_str()
            .is_some_and(|member| member.to_lowercase() == word)
    };
    let mut found = members.iter().filter(is_same);
    found.next().filter(|_| found.next().is_none())
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
