//! Finding the tool that a request names.

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::{Effect, FailureKind, Object};
use serde_json::Value;
use tokio::time::timeout;

use super::error::WireError;
use super::keys::{call_options, steps_of, text};
use super::request::Request;
use super::state::Api;
use super::steps::MOST_STEPS;
use super::topic::Topic;
use crate::names::alias;
use crate::registry::{Lookup, Snapshot, StopsOfName, Tool, ToolboxState};
use engine::Lease;
use schema::{python_type_name, shorten};

/// How long a call waits for a toolbox that is being replaced; its old copy may have to drain and close first.
pub(super) const RELOAD_PATIENCE: Duration = Duration::from_secs(30);

/// The `name` of a request, as the published contract reads it.
pub(super) enum Name {
    /// The name, and the value with which an answer echoes it.
    Given { name: String, echo: Value },
    /// Absent, or false in Python.
    Missing,
}

impl Name {
    /// The name as an answer repeats it; "" where it is missing.
    pub(super) fn echo(self) -> Value {
        match self {
            Self::Given { echo, .. } => echo,
            Self::Missing => Value::from(""),
        }
    }

    /// The name as it is looked up; "" where it is missing.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Given { name, .. } => name,
            Self::Missing => "",
        }
    }

    pub(super) fn of(data: &Object) -> Self {
        match data.get("name") {
            None => Self::Missing,
            Some(value) if is_falsy(value) => Self::Missing,
            Some(value) => Self::Given {
                name: python_text(value),
                echo: value.clone(),
            },
        }
    }
}

fn is_falsy(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Formats a value as Python's `str` does. A list or an object becomes JSON, because the published service has no
/// answer for those.
pub(super) fn python_text(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => shorten(value),
        Value::Number(number) if python_type_name(value) == "int" => match number.as_str() {
            "-0" => "0".to_owned(),
            digits => digits.to_owned(),
        },
        Value::Number(number) => python_float(number.as_str().parse().unwrap_or(f64::INFINITY)),
    }
}

/// Python writes every exponent with a sign and at least two digits; otherwise both write the shortest text that
/// reads back as the number.
fn python_float(number: f64) -> String {
    let text = format!("{number:?}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return text;
    };
    let (sign, exponent) = exponent
        .strip_prefix('-')
        .map_or(('+', exponent), |rest| ('-', rest));
    format!("{digits}e{sign}{exponent:0>2}")
}

impl Api {
    /// Waits for the tools of a call, a run or a plan whose toolboxes still start: until the tools are present, every toolbox
    /// is loaded or has failed, or the time of the request is up. Other requests do not wait.
    pub(super) async fn wait_for_start(&self, topic: &Topic, request: &Request) {
        if *self.all_loaded.borrow() {
            return;
        }
        // A run with a stop among its steps waits for no tool.
        if matches!(topic, Topic::Run) && !self.stops_among(&request.data).is_empty() {
            return;
        }
        let wanted = awaited_tools(topic, &request.data);
        if wanted.is_empty() {
            return;
        }
        let mut changed = self.registry.watch();
        // A call that stops does not wait for its toolbox if another toolbox has a stop of this name.
        let is_there = |snapshot: &Snapshot| {
            let mut names = wanted.iter().map(|(name, _)| name);
            let found = |(name, toolbox_id): &(String, Option<String>)| {
                !matches!(snapshot.find(name, toolbox_id.as_deref()), Lookup::None)
            };
            names.any(|name| !stops(snapshot, name).is_empty()) || wanted.iter().all(found)
        };
        let found = async {
            while !is_there(&self.registry.snapshot()) {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        let options = call_options(&request.data).ok();
        let limit = options
            .and_then(|options| options.timeout())
            .unwrap_or(RELOAD_PATIENCE);
        tokio::select! {
            () = found => {}
            () = self.all_loaded() => {}
            () = tokio::time::sleep(limit.saturating_sub(request.received.elapsed())) => {}
        }
    }

    /// Returns the tools that the data of a request names. There is more than one only if all of them are stops, because a
    /// stop is never refused.
    pub(super) fn resolve(&self, data: &Object) -> Result<Vec<Arc<Tool>>, WireError> {
        self.resolve_named(&Name::of(data), data)
    }

    /// As [`Self::resolve`], for a request whose name is read already.
    pub(super) fn resolve_named(&self, name: &Name, data: &Object) -> Result<Vec<Arc<Tool>>, WireError> {
        let Name::Given { name, .. } = name else {
            return Err(WireError::missing_name());
        };
        let snapshot = self.registry.snapshot();
        let (asked, error) = match text(data, "toolbox_id") {
            Ok(asked) => (asked, None),
            Err(error) => (None, Some(error)),
        };
        let found = match (&error, snapshot.find(name, asked.as_deref())) {
            (None, Lookup::One(tool)) => return Ok(vec![tool]),
            (_, found) => found,
        };
        // A stop counts even if something else is wrong with the request, such as its toolbox; the stop of that one counts, too.
        let mut stops = stops(&snapshot, name);
        if let Some(id) = asked
            .as_deref()
            .filter(|id| stops.iter().all(|stop| stop.toolbox_id != *id))
        {
            stops.extend(stops_of(&snapshot, id, name));
        }
        if !stops.is_empty() {
            return Ok(stops);
        }
        Err(match (error, found) {
            (Some(error), _) => error,
            (None, Lookup::Several(tools)) => ambiguous(&snapshot, name, &tools),
            (None, _) => {
                let mut error = WireError::unknown_tool(name);
                error.text += &self.why_missing(&snapshot, name, asked.as_deref());
                error
            }
        })
    }

    /// Holds the toolbox of a tool for a call. While the toolbox is being replaced, waits for at most `patience`, and
    /// returns the tool of the new generation.
    pub(super) async fn lease(
        &self,
        tool: Arc<Tool>,
        patience: Duration,
    ) -> Result<(Arc<Tool>, Lease), WireError> {
        let mut changed = self.registry.watch();
        let mut tool = tool;
        let found = timeout(patience, async {
            loop {
                changed.mark_unchanged();
                if let Some(lease) = self.engine.lease(&tool.toolbox_id, tool.generation) {
                    return Ok((tool, lease));
                }
                let snapshot = self.registry.snapshot();
                let Some(entry) = snapshot.toolbox(&tool.toolbox_id) else {
                    return Err(WireError::unknown_tool(tool.name()));
                };
                if let ToolboxState::Failed(reason) = &entry.state {
                    return Err(unavailable(&tool.toolbox_id, reason));
                }
                if entry.generation != tool.generation {
                    match entry.tools.iter().find(|newer| newer.name() == tool.name()) {
                        Some(newer) => tool = newer.clone(),
                        None => return Err(WireError::unknown_tool(tool.name())),
                    }
                    continue;
                }
                if changed.changed().await.is_err() {
                    return Err(unavailable(&tool.toolbox_id, "the service is shutting down"));
                }
            }
        });
        match found.await {
            Ok(found) => found,
            Err(_) => Err(WireError::new(
                FailureKind::ToolboxUnavailable,
                format!(
                    "it is still reloading after {} s; try again later (`ovos-tools status` shows its state)",
                    patience.as_secs()
                ),
            )),
        }
    }
}

/// The tools for which a request waits while toolboxes start: their names, and their toolboxes if the request names
/// them.
fn awaited_tools(topic: &Topic, data: &Object) -> Vec<(String, Option<String>)> {
    let of = |data: &Object| match Name::of(data) {
        Name::Given { name, .. } => Some((name, text(data, "toolbox_id").unwrap_or_default())),
        Name::Missing => None,
    };
    let of_steps = || steps_of(data).filter_map(of).take(MOST_STEPS).collect();
    match topic {
        Topic::Run => of_steps(),
        Topic::Plan if data.contains_key("steps") && !data.contains_key("name") => of_steps(),
        Topic::Invoke | Topic::Plan => of(data).into_iter().collect(),
        Topic::Call { toolbox_id } => {
            let of_topic = |(name, in_data)| (name, toolbox_id.clone().or(in_data));
            of(data).map(of_topic).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The emergency stops that a name means.
pub(super) fn stops(snapshot: &Snapshot, name: &str) -> Vec<Arc<Tool>> {
    match snapshot.find(name, None) {
        Lookup::One(tool) => Some(tool)
            .filter(|tool| tool.effect() == Effect::Stop)
            .into_iter()
            .collect(),
        Lookup::Several(_) | Lookup::None => nearly_stops(snapshot, name),
    }
}

/// The tools that a name means in one toolbox. There is more than one only if all of them are stops.
pub(super) fn tools_of(snapshot: &Snapshot, toolbox_id: &str, name: &str) -> Vec<Arc<Tool>> {
    match snapshot.find(name, Some(toolbox_id)) {
        Lookup::One(tool) => vec![tool],
        Lookup::Several(_) | Lookup::None => stops_of(snapshot, toolbox_id, name),
    }
}

/// The emergency stops that a name means in one toolbox, which may be written in another case or whose tools may be unknown.
fn stops_of(snapshot: &Snapshot, toolbox_id: &str, name: &str) -> Vec<Arc<Tool>> {
    let mut stops = nearly_stops(snapshot, &alias(toolbox_id, name));
    stops.retain(|tool| tool.toolbox_id == toolbox_id);
    stops
}

fn nearly_stops(snapshot: &Snapshot, name: &str) -> Vec<Arc<Tool>> {
    let StopsOfName { tools, toolboxes } = snapshot.stops(name);
    let unknown = toolboxes.iter().filter_map(|id| Tool::stop_of_unknown(id, name));
    tools.into_iter().chain(unknown.map(Arc::new)).collect()
}

pub(super) fn unavailable(toolbox_id: &str, reason: &str) -> WireError {
    WireError::new(
        FailureKind::ToolboxUnavailable,
        format!("toolbox '{toolbox_id}' cannot be called: {reason}"),
    )
}

fn ambiguous(snapshot: &Snapshot, name: &str, tools: &[Arc<Tool>]) -> WireError {
    let owners = tools.iter().map(|tool| format!("'{}'", tool.toolbox_id));
    let owners: Vec<String> = owners.collect();
    let is_one = |(tool, _): &(&Arc<Tool>, &str)| tools.iter().any(|one| Arc::ptr_eq(one, tool));
    let called = snapshot.called().filter(is_one);
    let called: Vec<String> = called.map(|(_, name)| format!("'{name}'")).collect();
    WireError::new(
        FailureKind::AmbiguousToolError,
        format!(
            "'{name}' is owned by the toolboxes {}; give toolbox_id, or call {}",
            owners.join(" and "),
            called.join(" or ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_read_as_python_writes_them() {
        for (json, text) in [
            ("null", "None"),
            ("true", "True"),
            ("false", "False"),
            ("0", "0"),
            ("-0", "0"),
            ("5", "5"),
            (
                "1000000000000000000000000000000",
                "1000000000000000000000000000000",
            ),
            ("0.0", "0.0"),
            ("-0.0", "-0.0"),
            ("1.5", "1.5"),
            ("1e3", "1000.0"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("1.5e300", "1.5e+300"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1e400", "inf"),
            ("\"add\"", "add"),
            ("[1]", "[1]"),
        ] {
            let value: Value = serde_json::from_str(json).expect("a row of the table is JSON");
            assert_eq!(python_text(&value), text, "{json}");
        }
    }
}
