//! What may be moved: names that an owner lists, and numbers within the limits.

use std::time::{SystemTime, UNIX_EPOCH};

use ovos_toolbox_sdk::prelude::*;
use ros_graph::definition::{Kind, TypeName};
use ros_graph::shape::{Element, Shape};

use crate::config::{Allow, GoalRule, PublishRule};
use crate::name::full;

/// Where the keys stand.
const SECTION: &str = "PHAL.ovos-phal-plugin-tools.ros.allow";

/// What `end` says where nothing is to be said at the end.
const NOTHING: &str = "nothing";

impl Allow {
    /// The name of a topic with its rule.
    ///
    /// # Errors
    /// It is not listed; the error says what to list.
    pub(crate) fn publish(&self, topic: &str) -> Result<(String, &PublishRule), ToolError> {
        let topic = full(topic)?;
        let rule = self.publish.get(&topic).ok_or_else(|| {
            let known = self.publish.keys().map(String::as_str);
            refused(
                "publish on",
                &topic,
                known,
                &format!("publish: {{\"{topic}\": {{}}}}"),
            )
        })?;
        Ok((topic, rule))
    }

    /// The name of a service.
    ///
    /// # Errors
    /// It is not listed.
    pub(crate) fn call(&self, service: &str) -> Result<String, ToolError> {
        let service = full(service)?;
        match self.call.contains(&service) {
            true => Ok(service),
            false => {
                let known = self.call.iter().map(String::as_str);
                Err(refused(
                    "call",
                    &service,
                    known,
                    &format!("call: [\"{service}\"]"),
                ))
            }
        }
    }

    /// The name of an action with its rule.
    ///
    /// # Errors
    /// It is not listed.
    pub(crate) fn goal(&self, action: &str) -> Result<(String, &GoalRule), ToolError> {
        let action = full(action)?;
        let rule = self.goal.get(&action).ok_or_else(|| {
            let known = self.goal.keys().map(String::as_str);
            refused(
                "send goals to",
                &action,
                known,
                &format!("goal: {{\"{action}\": {{}}}}"),
            )
        })?;
        Ok((action, rule))
    }
}

fn refused<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>, key: &str) -> ToolError {
    let known: Vec<&str> = known.take(20).collect();
    let known = if known.is_empty() {
        "nothing".to_owned()
    } else {
        known.join(", ")
    };
    let text = format!(
        "you may not {what} {name}; allowed: {known}. The owner can allow it in mycroft.conf: {SECTION}.{key}"
    );
    ToolError::new("PermissionError", text)
}

/// A message that may be said, and what ends it.
#[derive(Debug, PartialEq)]
pub(crate) struct CheckedMessage {
    /// The message.
    pub(crate) message: Value,
    /// What is said last.
    pub(crate) end: Option<Value>,
}

impl PublishRule {
    /// The message where it is within the limits, with what ends it.
    ///
    /// # Errors
    /// A number is past its limit or is none, or the rule does not say what ends a message of this type.
    pub(crate) fn check(
        &self,
        topic: &str,
        shape: &Shape,
        message: &Value,
    ) -> Result<CheckedMessage, ToolError> {
        let end = self.end(topic, shape)?;
        let mut found = Vec::new();
        twists(shape, message, String::new(), &mut found);
        for (path, twist) in found {
            for (part, most, unit) in [("linear", self.linear, "m/s"), ("angular", self.angular, "rad/s")] {
                for axis in ["x", "y", "z"] {
                    let key = format!("allow.publish.{topic}.{part}");
                    amount(
                        &format!("{path}{part}.{axis}"),
                        &twist[part][axis],
                        most,
                        unit,
                        &key,
                    )?;
                }
            }
        }
        for (field, most) in &self.limits {
            let words: Vec<&str> = field.split('.').collect();
            if !is_field(shape, &words) {
                return Err(ToolError::msg(format!(
                    "{SECTION}.publish.{topic}.limits.{field}: {} has no such field",
                    shape.name
                )));
            }
            let mut found = Vec::new();
            at(message, &words, &mut found);
            for value in found {
                amount(
                    field,
                    value,
                    *most,
                    "",
                    &format!("allow.publish.{topic}.limits.{field}"),
                )?;
            }
        }
        Ok(CheckedMessage {
            message: message.clone(),
            end,
        })
    }

    /// What is said last on a topic of this type.
    ///
    /// # Errors
    /// It has no Twist, whose end would be zero, and the rule says none.
    pub(crate) fn end(&self, topic: &str, shape: &Shape) -> Result<Option<Value>, ToolError> {
        let zero = shape.zero();
        let mut found = Vec::new();
        twists(shape, &zero, String::new(), &mut found);
        match &self.end {
            Some(end) if *end == NOTHING && found.is_empty() => Ok(None),
            // A velocity never goes without its zero.
            Some(end) if *end != NOTHING && found.is_empty() => Ok(Some(end.clone())),
            _ if !found.is_empty() || moves_nothing(shape) => Ok((!found.is_empty()).then(|| json!({}))),
            _ => Err(ToolError::new(
                "PermissionError",
                format!(
                    "the message that ends a {} on {topic} is not known: the owner gives it, or \"{NOTHING}\", in \
                     {SECTION}.publish.{topic}.end",
                    shape.name
                ),
            )),
        }
    }
}

/// An empty message says nothing that could go on.
fn moves_nothing(shape: &Shape) -> bool {
    shape.fields.is_empty()
}

fn is_twist(name: &TypeName) -> bool {
    *name == TypeName::new("geometry_msgs", Kind::Message, "Twist")
}

/// Each Twist in a message, with the path before its fields.
fn twists<'a>(shape: &Shape, value: &'a Value, path: String, found: &mut Vec<(String, &'a Value)>) {
    if is_twist(&shape.name) {
        found.push((path, value));
        return;
    }
    for field in &shape.fields {
        let Element::Message(inner) = &field.of else {
            continue;
        };
        let path = format!("{path}{}.", field.name);
        match &value[&field.name] {
            Value::Array(items) if items.is_empty() => twists(inner, &Value::Null, path, found),
            Value::Array(items) => items
                .iter()
                .for_each(|item| twists(inner, item, path.clone(), found)),
            value => twists(inner, value, path, found),
        }
    }
}

fn is_field(shape: &Shape, words: &[&str]) -> bool {
    let Some((first, rest)) = words.split_first() else {
        return true;
    };
    match shape.field(first).map(|field| &field.of) {
        Some(Element::Message(inner)) => !rest.is_empty() && is_field(inner, rest),
        Some(_) => rest.is_empty(),
        None => false,
    }
}

/// The values of a field, in each element where it lies in arrays.
fn at<'a>(value: &'a Value, words: &[&str], found: &mut Vec<&'a Value>) {
    match (value, words.split_first()) {
        (Value::Array(items), _) => items.iter().for_each(|item| at(item, words, found)),
        (value, None) => found.push(value),
        (value, Some((first, rest))) => at(&value[*first], rest, found),
    }
}

/// Whether a number is at most so large; what is not given is zero.
fn amount(path: &str, value: &Value, most: f64, unit: &str, key: &str) -> Result<(), ToolError> {
    let number = match value {
        Value::Null => Some(0.0),
        value => value.as_f64(),
    };
    match number {
        Some(number) if number.abs() <= most => Ok(()),
        _ => Err(ToolError::bad_args(
            format!("{path} is {value}, expected -{most} to {most} {unit}")
                .trim_end()
                .to_owned()
                + &format!(" (ros.{key})"),
        )),
    }
}

/// Gives a message the time of now where its header has none: controllers drop what is old.
pub(crate) fn stamp(shape: &Shape, message: &Value) -> Value {
    let mut message = message.clone();
    let header = shape.field("header").and_then(|field| match &field.of {
        Element::Message(inner) if inner.name == TypeName::new("std_msgs", Kind::Message, "Header") => {
            Some(inner)
        }
        _ => None,
    });
    let Some(Element::Message(time)) = header.and_then(|header| Some(&header.field("stamp")?.of)) else {
        return message;
    };
    if !message["header"]["stamp"].is_null() || !message.is_object() {
        return message;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let names = match time.field("sec") {
        Some(_) => ["sec", "nanosec"],
        None => ["secs", "nsecs"],
    };
    if message["header"].is_null() {
        message["header"] = json!({});
    }
    if message["header"].is_object() {
        message["header"]["stamp"] = json!({names[0]: now.as_secs(), names[1]: now.subsec_nanos()});
    }
    message
}

#[cfg(test)]
#[path = "allow_tests.rs"]
mod tests;
