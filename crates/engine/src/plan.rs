//! What a call is going to do, checked and in waves, before anything runs.
//!
//! Pure: the same actions always give the same plan. Read [`Plan::new`].

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use ovos_toolbox_wire::{Action, Effect, Object};

use super::graph::ActionGraph;
use super::subsystem::{Claim, Scope, scope};

/// More actions than any machine has use for; a bound so that a broken toolbox cannot take all memory.
pub(crate) const MAX_ACTIONS: usize = 2_000_000;

/// Why a plan cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A plan has at least one action.
    #[error("the plan has no action: a toolbox returns at least one, or no plan at all")]
    Empty,
    /// An action has neither id nor name.
    #[error("action number {} has no name", index + 1)]
    Unnamed {
        /// Its place in the plan.
        index: usize,
    },
    /// Two actions have one id.
    #[error("actions number {} and {} both have the id `{id}`: ids are unique in a plan", first + 1, second + 1)]
    DuplicateId {
        /// The id.
        id: String,
        /// Place of the first one.
        first: usize,
        /// Place of the second one.
        second: usize,
    },
    /// A dependency names nothing.
    #[error(
        "action `{action}` depends on `{dependency}`, which is neither an id nor a name of this plan; it has: {}",
        known.join(", ")
    )]
    UnknownDependency {
        /// Who depends.
        action: String,
        /// On what.
        dependency: String,
        /// Ids and names of the plan, sorted, at most twenty.
        known: Vec<String>,
    },
    /// The actions wait for each other.
    #[error("the dependencies form a cycle: {}", path.join(" -> "))]
    Cycle {
        /// In the order in which they would run; the first one again at the end.
        path: Vec<String>,
    },
    /// An action does more to the world than its tool declares.
    #[error("action `{action}` has the effect `{effect}`, but its tool declares `{tool}`")]
    Effect {
        /// The action.
        action: String,
        /// Its effect.
        effect: Effect,
        /// The tool's effect.
        tool: Effect,
    },
    /// A step is a tool that the configuration forbids.
    #[error("step `{step}` of the plan is the tool `{tool}`, which the configuration forbids (`{key}`)")]
    Forbidden {
        /// The action.
        step: String,
        /// The tool that it is.
        tool: String,
        /// The key that forbids it.
        key: String,
    },
    /// A step is a tool that does more to the world than the plan says.
    #[error(
        "step `{step}` of the plan has the effect `{effect}`, but it is the tool `{tool}`, whose effect is `{of_tool}`"
    )]
    StepEffect {
        /// The action.
        step: String,
        /// Its effect in the plan.
        effect: Effect,
        /// The tool that it is.
        tool: String,
        /// That tool's effect.
        of_tool: Effect,
    },
    /// Too much to plan.
    #[error("the plan has more than {limit} {what}")]
    TooLarge {
        /// Actions or dependencies.
        what: &'static str,
        /// How many are allowed.
        limit: usize,
    },
}

/// A toolbox's tools by name, as they may be steps of its plans. An action is the tool that bears its name.
pub type StepTools = BTreeMap<String, StepTool>;

/// What holds for a tool wherever it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepTool {
    /// What it does to the world.
    pub effect: Effect,
    /// The key of the configuration that forbids it.
    pub forbidden_by: Option<String>,
}

/// What the engine assumes where an action does not say.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// The tool's effect.
    pub effect: Effect,
    /// The tool's timeout, or the configured one.
    pub timeout: Duration,
}

/// One action of a plan, with everything resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedAction {
    /// Unique in the plan.
    pub id: String,
    /// What is done.
    pub name: String,
    /// What it is done with.
    pub subsystems: Vec<String>,
    /// Handed to the toolbox unchanged.
    pub params: Object,
    /// What it does to the world.
    pub effect: Effect,
    /// How long it may take.
    pub timeout: Duration,
    /// Places of the actions whose outputs it receives.
    pub dependencies: Vec<usize>,
    /// Counted from 1.
    pub wave: usize,
    /// Places of the actions of the same wave that must end first, because they share a subsystem.
    pub after: Vec<usize>,
}

/// A checked plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In the order in which the toolbox declared them.
    pub actions: Vec<PlannedAction>,
    /// Places of the actions of each wave, in the order of declaration.
    pub waves: Vec<Vec<usize>>,
}

impl Plan {
    /// Whether any of its actions moves something.
    #[must_use]
    pub fn moves(&self) -> bool {
        let moves = |action: &PlannedAction| matches!(action.effect, Effect::Motion | Effect::Safe);
        self.actions.iter().any(moves)
    }

    /// Checks `actions` and computes their waves.
    ///
    /// # Errors
    /// Everything [`PlanError`] names; nothing has run by then.
    pub fn new(actions: Vec<Action>, defaults: Defaults) -> Result<Self, PlanError> {
        if actions.is_empty() {
            return Err(PlanError::Empty);
        }
        if actions.len() > MAX_ACTIONS {
            return Err(PlanError::TooLarge {
                what: "actions",
                limit: MAX_ACTIONS,
            });
        }
        let mut graph = ActionGraph::build(&actions)?;
        let wave_of = graph.waves()?;
        let mut planned = Vec::with_capacity(actions.len());
        for (index, action) in actions.into_iter().enumerate() {
            let effect = action.effect.unwrap_or(defaults.effect);
            let id = std::mem::take(&mut graph.ids[index]);
            if !allows(defaults.effect, effect) {
                return Err(PlanError::Effect {
                    action: id,
                    effect,
                    tool: defaults.effect,
                });
            }
            planned.push(PlannedAction {
                id,
                name: action.name,
                subsystems: action.subsystems,
                params: action.params,
                effect,
                timeout: action.timeout_ms.map_or(defaults.timeout, Duration::from_millis),
                dependencies: graph.dependencies(index),
                wave: wave_of[index],
                after: Vec::new(),
            });
        }
        let mut waves = vec![Vec::new(); wave_of.iter().copied().max().unwrap_or(0)];
        for (index, wave) in wave_of.iter().enumerate() {
            waves[wave - 1].push(index);
        }
        for wave in &waves {
            order_within(wave, &mut planned);
        }
        Ok(Self {
            actions: planned,
            waves,
        })
    }

    /// Checks the steps that are tools themselves: what may not be called may not be a step either, and a step does no
    /// more than the plan says.
    ///
    /// # Errors
    /// [`PlanError::Forbidden`], [`PlanError::StepEffect`].
    pub fn check_steps(&self, tools: &StepTools) -> Result<(), PlanError> {
        for action in &self.actions {
            let Some(tool) = tools.get(&action.name) else {
                continue;
            };
            if let Some(key) = &tool.forbidden_by {
                return Err(PlanError::Forbidden {
                    step: action.id.clone(),
                    tool: action.name.clone(),
                    key: key.clone(),
                });
            }
            // A plan that may move something may stop it, too.
            let does = match tool.effect {
                Effect::Stop => Effect::Safe,
                effect => effect,
            };
            if !allows(action.effect, does) {
                return Err(PlanError::StepEffect {
                    step: action.id.clone(),
                    effect: action.effect,
                    tool: action.name.clone(),
                    of_tool: tool.effect,
                });
            }
        }
        Ok(())
    }

    /// Every subsystem the plan touches.
    #[must_use]
    pub fn claim(&self) -> Claim {
        let names: std::collections::HashSet<&str> = self
            .actions
            .iter()
            .flat_map(|a| a.subsystems.iter().map(String::as_str))
            .collect();
        names.into_iter().collect()
    }

    /// The longest the plan can take: the sum over its waves of the longest chain of timeouts inside each.
    #[must_use]
    pub fn bound(&self) -> Duration {
        let mut end = vec![Duration::ZERO; self.actions.len()];
        let mut total = Duration::ZERO;
        for wave in &self.waves {
            let mut longest = Duration::ZERO;
            for &index in wave {
                let action = &self.actions[index];
                let start = action
                    .after
                    .iter()
                    .map(|&before| end[before])
                    .max()
                    .unwrap_or_default();
                end[index] = start.saturating_add(action.timeout);
                longest = longest.max(end[index]);
            }
            total = total.saturating_add(longest);
        }
        total
    }
}

/// Whether a tool of effect `tool` may contain an action of effect `action`: a tool that declares less than it does
/// would slip past the latch and the reservation.
fn allows(tool: Effect, action: Effect) -> bool {
    use Effect::{Motion, Read, Resume, Safe, Stop, Write};
    match tool {
        Read => action == Read,
        Write => matches!(action, Read | Write),
        Motion | Safe => matches!(action, Read | Write | Motion | Safe),
        Stop | Resume => action == tool || action == Read,
    }
}

/// Fills `after`: inside a wave, actions that share a subsystem run in the order of declaration.
fn order_within(wave: &[usize], actions: &mut [PlannedAction]) {
    let mut order = Order::default();
    for &index in wave {
        let mut after = Vec::new();
        for subsystem in &actions[index].subsystems {
            order.collect(subsystem, &mut after);
        }
        for subsystem in &actions[index].subsystems {
            order.record(subsystem, index);
        }
        after.sort_unstable();
        after.dedup();
        after.retain(|&before| before != index);
        actions[index].after = after;
    }
}

/// The last action of each subsystem so far. An action that holds a whole unit, or everything, takes the place of all
/// that it waits for, so that every entry is waited for by a bounded number of actions and the work stays linear.
#[derive(Default)]
struct Order {
    everything: Option<usize>,
    units: HashMap<String, UnitOrder>,
}

#[derive(Default)]
struct UnitOrder {
    whole: Option<usize>,
    last: HashMap<String, usize>,
}

impl Order {
    fn collect(&self, subsystem: &str, after: &mut Vec<usize>) {
        after.extend(self.everything);
        match scope(subsystem) {
            Scope::Everything => self.units.values().for_each(|unit| unit.collect_all(after)),
            Scope::Unit(unit) => {
                if let Some(unit) = self.units.get(unit) {
                    unit.collect_all(after);
                }
            }
            Scope::One(unit) => {
                if let Some(unit) = self.units.get(unit.unwrap_or_default()) {
                    after.extend(unit.last.get(subsystem).copied().or(unit.whole));
                }
            }
        }
    }

    fn record(&mut self, subsystem: &str, index: usize) {
        match scope(subsystem) {
            Scope::Everything => {
                *self = Self {
                    everything: Some(index),
                    units: HashMap::new(),
                }
            }
            Scope::Unit(unit) => {
                self.units.insert(
                    unit.to_owned(),
                    UnitOrder {
                        whole: Some(index),
                        last: HashMap::new(),
                    },
                );
            }
            Scope::One(unit) => {
                let unit = self.units.entry(unit.unwrap_or_default().to_owned()).or_default();
                unit.last.insert(subsystem.to_owned(), index);
            }
        }
    }
}

impl UnitOrder {
    fn collect_all(&self, after: &mut Vec<usize>) {
        after.extend(self.whole);
        after.extend(self.last.values());
    }
}
