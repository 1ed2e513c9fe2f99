//! Graphs as data: waves of nodes, written in the order in which they happen.
//!
//! Owns how a tool's waves become the actions of a plan: unique ids, dependencies, subsystem names, timeouts, and the
//! parts that are left out because the robot lacks them. Read [`Graph`].

use ovos_toolbox_sdk::ToolError;
use ovos_toolbox_sdk::wire::{Action, Effect, Object};
use serde_json::json;

use crate::adapter::ActionError;
use crate::error::tool_error;
use crate::step::Step;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

/// The actions of a call. Each wave waits for all of the wave before it.
pub struct Graph<'a> {
    unit: &'a Unit,
    waves: Vec<Vec<Node>>,
    notes: Vec<String>,
    speak: Option<String>,
    refusal: Option<ToolError>,
}

/// One action of a graph.
pub struct Node {
    on: Option<Subsystem>,
    also: Vec<Subsystem>,
    seconds: f64,
    name: String,
    params: Object,
    id: Option<&'static str>,
    optional: bool,
    effect: Option<Effect>,
}

/// An action on a subsystem that may take so many seconds.
#[must_use]
pub fn on(subsystem: Subsystem, seconds: f64, step: Step) -> Node {
    Node {
        on: Some(subsystem),
        ..aside(seconds, step)
    }
}

/// An action that concerns no part of the robot.
#[must_use]
pub fn aside(seconds: f64, step: Step) -> Node {
    let (name, params) = step.into_parts();
    node(name, seconds, params)
}

/// A question to the handler that recognises people, for `recognition`.
#[must_use]
pub fn ask(tool: &'static str, seconds: f64, params: Object) -> Node {
    node(tool.to_string(), seconds, params)
}

fn node(name: String, seconds: f64, params: Object) -> Node {
    Node {
        on: None,
        also: Vec::new(),
        seconds,
        name,
        params,
        id: None,
        optional: false,
        effect: None,
    }
}

/// The timeout of an action that should take `expected` seconds: half as much again, and 3 s.
#[must_use]
pub fn allow(expected: f64) -> f64 {
    expected * 1.5 + 3.0
}

impl Node {
    /// Leaves the action out where the robot lacks the subsystem. Its failure does not end the call, and the result
    /// has a note.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Makes the timeout long enough for an action that should take so many seconds.
    #[must_use]
    pub fn lasting(mut self, expected: f64) -> Self {
        self.seconds = self.seconds.max(allow(expected));
        self
    }

    /// Sets the id, where the name repeats on one subsystem.
    #[must_use]
    pub fn called(mut self, id: &'static str) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets a name that differs from the step's.
    #[must_use]
    pub fn named(mut self, name: &'static str) -> Self {
        self.name = name.to_string();
        self
    }

    /// Sets an effect that differs from the tool's.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = Some(effect);
        self
    }

    /// Reserves these parts, too, because the action uses their bus.
    #[must_use]
    pub fn holding(mut self, also: impl IntoIterator<Item = Subsystem>) -> Self {
        self.also.extend(also);
        self
    }
}

impl<'a> Graph<'a> {
    /// A graph without actions.
    #[must_use]
    pub fn new(unit: &'a Unit) -> Self {
        Self {
            unit,
            waves: Vec::new(),
            notes: Vec::new(),
            speak: None,
            refusal: None,
        }
    }

    /// Refuses the plan if `why` is an error. A refusal that depends on time or on an earlier call is set here, not
    /// returned as an error by the tool's function: after the call that function makes the graph again, for its notes.
    #[must_use]
    pub fn refused(mut self, why: Option<ToolError>) -> Self {
        self.refusal = self.refusal.or(why);
        self
    }

    /// Adds actions that run together, after all of the wave before.
    #[must_use]
    pub fn wave(mut self, nodes: impl IntoIterator<Item = Node>) -> Self {
        let mut wave = Vec::new();
        for node in nodes {
            if let Some(lacking) = node
                .on
                .filter(|on| node.optional && !self.unit.capabilities().has(*on))
            {
                self.notes.push(format!("{} has no {lacking}", self.unit.name));
            } else {
                wave.push(node);
            }
        }
        if !wave.is_empty() {
            self.waves.push(wave);
        }
        self
    }

    /// Adds a note to the result.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Puts a sentence to speak into the result.
    #[must_use]
    pub fn speak(mut self, text: String) -> Self {
        self.speak = Some(text);
        self
    }

    /// The sentence to speak.
    #[must_use]
    pub fn spoken(&self) -> Option<&str> {
        self.speak.as_deref()
    }

    /// The notes of the result.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The actions of the plan.
    ///
    /// # Errors
    /// The plan is refused, or the robot lacks a subsystem that the call cannot do without, or all subsystems of the
    /// call.
    pub fn actions(self) -> Result<Vec<Action>, ToolError> {
        let Self {
            unit,
            waves,
            notes,
            refusal,
            ..
        } = self;
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let lacks = |what: String| {
            tool_error(ActionError::NotSupported {
                robot: unit.name.clone(),
                what,
            })
        };
        if waves.is_empty() {
            return Err(lacks(notes.join(", ")));
        }
        let names: Vec<String> = waves.iter().flatten().map(|node| node.name.clone()).collect();
        let mut actions: Vec<Action> = Vec::with_capacity(names.len());
        let mut before: Vec<String> = Vec::new();
        for wave in waves {
            let mut ids = Vec::with_capacity(wave.len());
            for node in wave {
                if let Some(lacking) = node.on.filter(|on| !unit.capabilities().has(*on)) {
                    return Err(lacks(lacking.to_string()));
                }
                let action = node.into_action(unit, &names, &before, &actions);
                ids.push(action.id.clone().unwrap_or_default());
                actions.push(action);
            }
            before = ids;
        }
        Ok(actions)
    }
}

impl Node {
    fn into_action(self, unit: &Unit, names: &[String], before: &[String], earlier: &[Action]) -> Action {
        let name = self.name;
        let subsystems: Vec<String> = self
            .on
            .into_iter()
            .chain(self.also.into_iter().filter(|also| Some(*also) != self.on))
            .map(|subsystem| unit.subsystem(subsystem))
            .collect();
        let mut id = match (self.id, subsystems.first()) {
            (Some(id), _) => id.to_string(),
            (None, Some(first)) if names.iter().filter(|other| **other == name).count() > 1 => {
                format!("{name}:{first}")
            }
            (None, _) => name.clone(),
        };
        let base = id.clone();
        let mut count = 1;
        while earlier.iter().any(|other| other.id.as_ref() == Some(&id)) {
            count += 1;
            id = format!("{base}#{count}");
        }
        let mut params = self.params;
        if self.optional {
            params.insert("optional".to_string(), json!(true));
        }
        // The subsystem names the robot; an action without a subsystem needs the robot's name.
        if self.on.is_none() && unit.one_of_several {
            params.insert("robot".to_string(), json!(unit.name));
        }
        // Seconds from checked arguments: positive and far below 2^53 ms.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bounded: see above"
        )]
        let timeout_ms = (self.seconds * 1000.0).ceil() as u64;
        Action {
            id: Some(id),
            name,
            subsystems,
            params,
            dependencies: before.to_vec(),
            timeout_ms: Some(timeout_ms),
            effect: self.effect,
        }
    }
}
