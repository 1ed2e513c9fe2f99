//! Properties of the plan of any action graph, which is generated from bytes or read as JSON. Built for tests and
//! fuzzing only.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a finding panics")]

use std::collections::BTreeSet;
use std::time::Duration;

use ovos_toolbox_wire::{Action, Effect};

use crate::{Claim, Defaults, Plan, PlanError};

/// Takes the next byte that the input is generated from; zero after the last one.
fn next(bytes: &mut &[u8]) -> u8 {
    bytes.split_off_first().copied().unwrap_or(0)
}

const NAMES: [&str; 7] = ["lift", "turn", "a", "b", "a:left", "lift:left", ""];
const SUBSYSTEMS: [&str; 9] = [
    "left", "right", "all", "k1/arm", "k1/base", "k1/all", "g1/arm", "g1/all", "all/arm",
];
const EFFECTS: [Effect; 6] = [
    Effect::Read,
    Effect::Write,
    Effect::Motion,
    Effect::Safe,
    Effect::Stop,
    Effect::Resume,
];

/// The largest plan whose actions are compared in pairs.
const MOST: usize = 48;

/// The same actions give the same plan. An action waits for its dependencies and for no other action, and the actions
/// of a wave that share a subsystem run in the order of declaration. Every refusal has a true reason.
pub fn plan(data: &[u8]) {
    let Some((&how, rest)) = data.split_first() else {
        return;
    };
    let defaults = Defaults {
        effect: EFFECTS[usize::from(how >> 1) % EFFECTS.len()],
        timeout: Duration::from_secs(10),
    };
    let actions = if how & 1 == 0 {
        drawn(&mut &*rest)
    } else {
        let Ok(plan) = serde_json::from_slice::<ovos_toolbox_wire::Plan>(rest) else {
            return;
        };
        plan.actions
    };
    let planned = Plan::new(actions.clone(), defaults);
    assert_eq!(planned, Plan::new(actions.clone(), defaults), "made twice");
    if actions.len() > MOST {
        return;
    }
    match planned {
        Ok(plan) => check(&plan, &actions),
        Err(error) => refused_rightly(&error, &actions),
    }
}

fn drawn(bytes: &mut &[u8]) -> Vec<Action> {
    let count = next(bytes) % 25;
    let some = |bytes: &mut &[u8], of: &[&str]| -> Vec<String> {
        (0..next(bytes) % 4)
            .map(|_| of[usize::from(next(bytes)) % of.len()].to_owned())
            .collect()
    };
    let action = |index: u8, bytes: &mut &[u8]| {
        let how = next(bytes);
        let near = [index.saturating_sub(how & 7), index.wrapping_add(1)].map(|n| format!("n{n}"));
        let words = [
            NAMES[0], NAMES[1], NAMES[2], NAMES[3], &near[0], &near[0], &near[1],
        ];
        let id = match how % 4 {
            0 => None,
            1 => Some(NAMES[usize::from(next(bytes)) % NAMES.len()].to_owned()),
            _ => Some(format!("n{index}")),
        };
        Action {
            id,
            subsystems: some(bytes, &SUBSYSTEMS),
            dependencies: some(bytes, &words),
            timeout_ms: match how >> 6 {
                0 => None,
                1 => Some(u64::MAX),
                _ => Some(u64::from(how)),
            },
            effect: (how & 0x20 != 0).then(|| EFFECTS[usize::from(next(bytes)) % EFFECTS.len()]),
            ..Action::named(NAMES[usize::from(next(bytes)) % NAMES.len()])
        }
    };
    (0..count).map(|index| action(index, bytes)).collect()
}

fn check(plan: &Plan, actions: &[Action]) {
    assert_eq!(plan.actions.len(), actions.len());
    let ids: BTreeSet<&str> = plan.actions.iter().map(|action| action.id.as_str()).collect();
    assert_eq!(ids.len(), actions.len(), "ids are unique");
    let mut places: Vec<usize> = plan.waves.concat();
    assert!(plan.waves.iter().all(|wave| !wave.is_empty() && wave.is_sorted()));
    places.sort_unstable();
    assert!(
        places.into_iter().eq(0..actions.len()),
        "each action is in one wave"
    );

    for (index, action) in plan.actions.iter().enumerate() {
        let declared = &actions[index].dependencies;
        let bears = |word: &String, n: usize| *word == plan.actions[n].id || *word == plan.actions[n].name;
        let expected: Vec<usize> = (0..actions.len())
            .filter(|&n| declared.iter().any(|word| bears(word, n)))
            .collect();
        assert_eq!(action.dependencies, expected, "dependencies of {}", action.id);
        let last = expected.iter().map(|&n| plan.actions[n].wave).max().unwrap_or(0);
        assert_eq!(action.wave, last + 1, "wave of {}", action.id);
        assert!(plan.waves[last].contains(&index));
        assert!(
            action
                .after
                .iter()
                .all(|&n| n < index && plan.actions[n].wave == action.wave)
        );
    }
    for wave in &plan.waves {
        check_order(plan, wave);
    }
    let bound = plan.bound();
    assert!(plan.actions.iter().all(|action| action.timeout <= bound));
    assert_eq!(
        plan.claim().is_empty(),
        actions.iter().all(|action| action.subsystems.is_empty())
    );
}

/// An action waits, directly or through others, for every earlier action that shares a subsystem with it; it waits
/// directly only for such actions.
fn check_order(plan: &Plan, wave: &[usize]) {
    let claims: Vec<Claim> = plan
        .actions
        .iter()
        .map(|action| action.subsystems.iter().cloned().collect())
        .collect();
    // An empty unit name (`/arm`) counts as the unit of the names without a unit, which only makes actions wait longer.
    let named = |n: usize| {
        plan.actions[n]
            .subsystems
            .iter()
            .all(|name| !name.starts_with('/'))
    };
    let mut reached: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); plan.actions.len()];
    for &index in wave {
        for &before in &plan.actions[index].after {
            assert!(
                claims[index].conflicts(&claims[before]) || !named(index) || !named(before),
                "{index} waits for {before} without need"
            );
            let through = reached[before].clone();
            reached[index].extend(through);
            reached[index].insert(before);
        }
        for &earlier in wave.iter().take_while(|&&earlier| earlier < index) {
            assert!(
                !claims[index].conflicts(&claims[earlier]) || reached[index].contains(&earlier),
                "{index} does not wait for {earlier}, with which it shares something"
            );
        }
    }
}

fn refused_rightly(error: &PlanError, actions: &[Action]) {
    let text = error.to_string();
    assert!(!text.is_empty());
    match error {
        PlanError::Empty => assert!(actions.is_empty()),
        PlanError::Unnamed { index } => {
            let action = &actions[*index];
            assert!(action.id.as_ref().unwrap_or(&action.name).is_empty());
        }
        PlanError::DuplicateId { first, second, .. } => assert!(first < second && *second < actions.len()),
        PlanError::UnknownDependency { dependency, .. } => {
            let bears =
                |action: &Action| action.name == *dependency || action.id.as_ref() == Some(dependency);
            assert!(!actions.iter().any(bears), "{dependency} is there");
        }
        PlanError::Cycle { path } => {
            assert!(path.len() >= 2 && path.first() == path.last(), "{path:?}");
            let inner: BTreeSet<&String> = path.iter().collect();
            assert_eq!(inner.len() + 1, path.len(), "no action twice: {path:?}");
        }
        PlanError::Effect { effect, tool, .. } => assert_ne!(effect, tool),
        PlanError::TooLarge { .. } => panic!("{} actions are not too many", actions.len()),
        #[allow(unreachable_patterns, reason = "a new cause is checked nowhere yet")]
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn graph() {
        replay::check("graph", super::plan);
    }
}
