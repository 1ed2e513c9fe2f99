//! What is wrong with a plan; the texts are for the author of the toolbox.

use ovos_toolbox_wire::Effect;

/// Why a plan is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The plan has no action.
    #[error("the plan has no action: a toolbox returns at least one, or no plan at all")]
    Empty,
    /// An action has neither an id nor a name.
    #[error("action number {} has no name", index + 1)]
    Unnamed {
        /// The action's index in the plan.
        index: usize,
    },
    /// Two actions have the same id.
    #[error("actions number {} and {} both have the id `{id}`: ids are unique in a plan", first + 1, second + 1)]
    DuplicateId {
        /// The id of both.
        id: String,
        /// The index of the first action.
        first: usize,
        /// The index of the second action.
        second: usize,
    },
    /// A dependency is neither an id nor a name of the plan.
    #[error(
        "action `{action}` depends on `{dependency}`, which is neither an id nor a name of this plan; it has: {}",
        known.join(", ")
    )]
    UnknownDependency {
        /// The id of the action that has the dependency.
        action: String,
        /// The dependency.
        dependency: String,
        /// Ids and names of the plan, sorted, at most twenty.
        known: Vec<String>,
    },
    /// The dependencies form a cycle.
    #[error("the dependencies form a cycle: {}", path.join(" -> "))]
    Cycle {
        /// The ids in the order in which the actions would run, with the first one again at the end.
        path: Vec<String>,
    },
    /// An action has an effect that its tool's effect does not allow.
    #[error("action `{action}` has the effect `{effect}`, but its tool declares `{tool}`")]
    Effect {
        /// The action's id.
        action: String,
        /// The action's effect.
        effect: Effect,
        /// The tool's effect.
        tool: Effect,
    },
    /// An action is a tool that the configuration forbids.
    #[error("step `{step}` of the plan is the tool `{tool}`, which the configuration forbids (`{key}`)")]
    Forbidden {
        /// The action's id.
        step: String,
        /// The tool's name.
        tool: String,
        /// The key of the configuration that forbids the tool.
        key: String,
    },
    /// An action is a tool with an effect that the action's effect does not allow.
    #[error(
        "step `{step}` of the plan has the effect `{effect}`, but it is the tool `{tool}`, whose effect is `{of_tool}`"
    )]
    StepEffect {
        /// The action's id.
        step: String,
        /// The action's effect in the plan.
        effect: Effect,
        /// The tool's name.
        tool: String,
        /// The tool's effect.
        of_tool: Effect,
    },
    /// The plan has too many actions or dependencies.
    #[error("the plan has more than {limit} {what}")]
    TooLarge {
        /// `actions` or `dependencies`.
        what: &'static str,
        /// The number that is allowed.
        limit: usize,
    },
}
