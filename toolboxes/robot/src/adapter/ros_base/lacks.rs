//! What a robot lacks of what its file says: topics that nothing publishes, actions and services that nothing serves, actions of another type.
//!
//! Owns the comparison of the file with the graph. A robot that lacks something does the rest all the same. Read [`Lacks`].

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use ros_graph::graph::Graph;

use super::channels::{GRIPPERS, RosBaseConfig, unforced};
use super::goals::other_type;

/// The pause between two comparisons.
const AGAIN: Duration = Duration::from_secs(1);

/// What is wrong, by the name in the graph.
#[derive(Default)]
pub(super) struct Lacks(Mutex<BTreeMap<String, String>>);

impl Lacks {
    /// Notes what is wrong with a name, or that nothing is.
    pub(super) fn note(&self, name: &str, wrong: Option<String>) {
        match wrong {
            Some(wrong) => drop(self.0.lock().insert(name.to_owned(), wrong)),
            None => drop(self.0.lock().remove(name)),
        }
    }

    /// What is wrong, in order of the names.
    pub(super) fn summary(&self) -> Option<String> {
        let all: Vec<String> = self.0.lock().values().cloned().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Compares the actions and the services of a file with the graph, for as long as it is polled.
pub(super) async fn compare(graph: &dyn Graph, config: &RosBaseConfig, lacks: &Lacks) {
    let mut missed: Vec<String> = Vec::new();
    loop {
        // Some transports cannot list them; then nothing is compared.
        if let Ok(mut found) = graph.entities().await {
            for action in &mut found.actions {
                // Some carriers list names alone.
                let is_ours = || config.actions().iter().any(|ours| ours.name == action.name);
                if action.types.is_empty()
                    && is_ours()
                    && let Ok(Some(types)) = graph.action_types(&action.name).await
                {
                    action.types = types;
                }
            }
            let actions = config.actions().into_iter();
            let actions = actions.map(|action| (action.name, action.types)).collect();
            let services = config.services().into_iter();
            let services: Vec<(String, Vec<&str>)> = services.map(|name| (name, Vec::new())).collect();
            let mut missing = Vec::new();
            for (what, wanted, found) in [
                ("action", actions, found.actions),
                ("service", services, found.services),
            ] {
                for (name, types) in wanted {
                    let served = found.iter().find(|one| one.name == name);
                    // Discovery takes a moment, so only what is missing in two rounds in a row counts.
                    let absent = served.is_none() && missed.contains(&name);
                    let other = served.filter(|served| {
                        let is_meant = |of: &String| types.contains(&of.as_str());
                        !(types.is_empty() || served.types.is_empty() || served.types.iter().all(is_meant))
                    });
                    let unforced = config.arms.iter().find_map(|(on, arm)| {
                        let hand = arm.gripper.as_ref().filter(|hand| hand.action == name)?;
                        let forced = hand.force.is_some() || !served?.types.contains(GRIPPERS[0]);
                        (!forced).then(|| unforced(*on, &name))
                    });
                    let wrong = match other {
                        None if unforced.is_some() => unforced,
                        Some(served) => Some(other_type(&name, &types, served.types.clone()).to_string()),
                        None => absent.then(|| {
                            format!(
                                "nothing serves the {what} {name}: start it on the robot, or check its name"
                            )
                        }),
                    };
                    lacks.note(&name, wrong);
                    missing.extend(served.is_none().then_some(name));
                }
            }
            missed = missing;
        }
        tokio::time::sleep(AGAIN).await;
    }
}
