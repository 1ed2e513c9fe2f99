//! The plan of a call: its actions, checked and sorted into waves before anything runs.
//!
//! Pure: the same actions always give the same plan. Read [`Plan::new`].

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use ovos_toolbox_wire::{Action, Effect, Object};

use super::graph::ActionGraph;
use super::plan_error::PlanError;
use super::subsystem::{Claim, Scope, scope};

/// The largest number of actions in a plan, far above any real plan; it keeps a broken toolbox from exhausting the
/// memory.
pub(crate) const MAX_ACTIONS: usize = 2_000_000;

/// The tools of a toolbox by name. An action with the name of a tool is checked as that tool.
pub type StepTools = BTreeMap<String, StepTool>;

/// The rules for a tool, whether it is called or is an action of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepTool {
    /// The tool's effect.
    pub effect: Effect,
    /// The key of the configuration that forbids the tool, if there is one.
    pub forbidden_by: Option<String>,
}

/// The values for actions that do not set them.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// The tool's effect.
    pub effect: Effect,
    /// The tool's timeout, or the configured one.
    pub timeout: Duration,
}

/// One action of a plan, with ids, dependencies, effect and timeout resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedAction {
    /// The id, unique in the plan.
    pub id: String,
    /// The name by which the toolbox knows the action.
    pub name: String,
    /// The subsystems that the action uses.
    pub subsystems: Vec<String>,
    /// The parameters, which the toolbox gets unchanged.
    pub params: Object,
    /// The action's effect.
    pub effect: Effect,
    /// The action's timeout.
    pub timeout: Duration,
    /// The indexes of the actions whose outputs this action receives.
    pub dependencies: Vec<usize>,
    /// The number of its wave, counted from 1.
    pub wave: usize,
    /// The indexes of the actions of the same wave that must end first, because they share a subsystem with it.
    pub after: Vec<usize>,
}

/// A checked plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The actions, in the order of declaration.
    pub actions: Vec<PlannedAction>,
    /// The indexes of the actions of each wave, in the order of declaration.
    pub waves: Vec<Vec<usize>>,
    /// What the toolbox says that the call would do, by language; nothing is checked.
    pub sentences: BTreeMap<String, String>,
}

impl Plan {
    /// Whether any action has the effect `motion` or `safe`.
    #[must_use]
    pub fn moves(&self) -> bool {
        let moves = |action: &PlannedAction| matches!(action.effect, Effect::Motion | Effect::Safe);
        self.actions.iter().any(moves)
    }

    /// Checks `actions` and computes their waves.
    ///
    /// # Errors
    /// [`PlanError`], except `Forbidden` and `StepEffect`, which [`Self::check_steps`] finds.
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
            sentences: BTreeMap::new(),
        })
    }

    /// Checks the actions that are tools of the toolbox: a tool that may not be called may not be an action either, and
    /// the tool's effect has to be allowed by the action's effect.
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
            // A plan that may move something may also stop it; and the plan of a stop is the stop itself.
            let stops = tool.effect == Effect::Stop && allows(action.effect, Effect::Safe);
            if !stops && !allows(action.effect, tool.effect) {
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

    /// All subsystems of the plan.
    #[must_use]
    pub fn claim(&self) -> Claim {
        let names: std::collections::HashSet<&str> = self
            .actions
            .iter()
            .flat_map(|a| a.subsystems.iter().map(String::as_str))
            .collect();
        names.into_iter().collect()
    }

    /// The ids of the actions of each wave.
    pub(crate) fn wave_ids(&self) -> Vec<Vec<String>> {
        let id = |&index: &usize| self.actions[index].id.clone();
        let ids = |wave: &Vec<usize>| wave.iter().map(id).collect();
        self.waves.iter().map(ids).collect()
    }

    /// The longest time that the plan can take: the sum over its waves of the longest chain of timeouts in each.
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

/// Whether a tool of effect `tool` may contain an action of effect `action`. A tool that declares less than its actions
/// do would bypass the latch and the reservation.
fn allows(tool: Effect, action: Effect) -> bool {
    use Effect::{Motion, Read, Resume, Safe, Stop, Write};
    match tool {
        Read => action == Read,
        Write => matches!(action, Read | Write),
        Motion | Safe => matches!(action, Read | Write | Motion | Safe),
        Stop | Resume => action == tool || action == Read,
    }
}

/// Fills `after`: in a wave, actions that share a subsystem run in the order of declaration.
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

/// The last action so far on each subsystem. An action on a whole unit, or on everything, replaces all entries that it
/// waits for. So a bounded number of actions waits for each entry, and the work stays linear.
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
