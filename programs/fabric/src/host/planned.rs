//! The steps that this host has planned: what another machine may start, because what it says of an action is not believed. Read
//! [`Planned::keep`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use engine::Plan;
use ovos_toolbox_wire::{Effect, Object};

/// How many different steps of one tool are remembered for one machine; a larger plan is remembered alone.
const STEPS: usize = 4096;

/// How many arguments of one tool are remembered for one machine for which there is no plan: as many as it may have calls at a time.
const WHOLE: usize = 1024;

/// The steps of each tool, by the machine that asked for a plan.
#[derive(Debug, Default)]
pub(super) struct Planned {
    steps: BTreeMap<Tool, BTreeSet<Step>>,
    /// The newest arguments for which the toolbox planned nothing: with them the tool itself is the only step.
    whole: BTreeMap<Tool, VecDeque<Object>>,
}

type Tool = (String, String, String);

/// What counts of an action: its handler, its effect, and what it takes for itself.
type Step = (String, Effect, Vec<String>);

impl Planned {
    /// Remembers the steps of a plan that was made for this machine, and was checked.
    pub(super) fn keep(&mut self, peer: &str, toolbox: &str, tool: &str, plan: &Plan) {
        let steps = plan
            .actions
            .iter()
            .map(|action| step(&action.name, action.effect, &action.subsystems));
        let known = self.steps.entry(key(peer, toolbox, tool)).or_default();
        if known.len() + plan.actions.len() > STEPS {
            known.clear();
        }
        known.extend(steps);
    }

    /// Whether this host planned such a step of the tool for this machine.
    pub(super) fn has(&self, of: (&str, &str, &str), name: &str, effect: Effect, takes: &[String]) -> bool {
        let known = self.steps.get(&key(of.0, of.1, of.2));
        known.is_some_and(|known| known.contains(&step(name, effect, takes)))
    }

    /// Remembers that the toolbox planned nothing for these arguments.
    pub(super) fn keep_whole(&mut self, of: (&str, &str, &str), args: Object) {
        let known = self.whole.entry(key(of.0, of.1, of.2)).or_default();
        if known.len() == WHOLE {
            known.pop_front();
        }
        known.push_back(args);
    }

    /// Takes out that the toolbox planned nothing for these arguments: each start needs a plan of its own.
    pub(super) fn take_whole(&mut self, of: (&str, &str, &str), args: &Object) -> bool {
        let Some(known) = self.whole.get_mut(&key(of.0, of.1, of.2)) else {
            return false;
        };
        let at = known.iter().position(|kept| kept == args);
        at.is_some_and(|at| known.remove(at).is_some())
    }
}

fn key(peer: &str, toolbox: &str, tool: &str) -> Tool {
    (peer.to_owned(), toolbox.to_owned(), tool.to_owned())
}

fn step(name: &str, effect: Effect, takes: &[String]) -> Step {
    (name.to_owned(), effect, takes.to_vec())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use engine::Defaults;
    use ovos_toolbox_wire::Action;

    use super::*;

    #[test]
    fn only_what_was_planned_for_this_machine_and_tool_is_known() {
        let action = Action {
            subsystems: vec!["arm".to_owned()],
            ..Action::named("reach")
        };
        let defaults = Defaults {
            effect: Effect::Motion,
            timeout: Duration::from_secs(1),
        };
        let plan = Plan::new(vec![action], defaults).unwrap();
        let mut planned = Planned::default();
        planned.keep("laptop", "robot", "wave", &plan);
        let (own, arm) = (("laptop", "robot", "wave"), ["arm".to_owned()]);
        for (what, of, name, effect, takes, expected) in [
            ("the step", own, "reach", Effect::Motion, &arm[..], true),
            ("said to read", own, "reach", Effect::Read, &arm[..], false),
            ("said to be safe", own, "reach", Effect::Safe, &arm[..], false),
            ("that takes nothing", own, "reach", Effect::Motion, &[][..], false),
            ("another step", own, "grasp", Effect::Motion, &arm[..], false),
            (
                "another tool",
                ("laptop", "robot", "look"),
                "reach",
                Effect::Motion,
                &arm[..],
                false,
            ),
            (
                "another machine",
                ("tablet", "robot", "wave"),
                "reach",
                Effect::Motion,
                &arm[..],
                false,
            ),
        ] {
            assert_eq!(planned.has(of, name, effect, takes), expected, "{what}");
        }
    }
}
