//! The action graph: which actions depend on which.
//!
//! Resolves ids and dependencies and computes the waves (longest path). Pure, and linear in the number of actions and
//! dependencies. Read [`ActionGraph::build`].

use std::collections::HashMap;

use ovos_toolbox_wire::Action;
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};

use super::plan_error::PlanError;

/// The largest number of dependencies in a plan. A name that stands for thousands of actions, in the dependencies of
/// thousands of others, would otherwise exhaust the memory.
const MAX_EDGES: usize = 8_000_000;

/// The nodes are actions, numbered as in the plan; an edge goes from each dependency to the action that depends on it.
#[derive(Debug)]
pub(crate) struct ActionGraph {
    graph: DiGraph<(), (), u32>,
    /// The ids of the actions, unique, in the plan's order.
    pub(crate) ids: Vec<String>,
}

impl ActionGraph {
    /// Builds the graph and gives an id to each action that has none.
    ///
    /// # Errors
    /// A dependency that matches nothing, a duplicate id, too many dependencies, or an action without id and name.
    pub(crate) fn build(actions: &[Action]) -> Result<Self, PlanError> {
        let ids = assign_ids(actions)?;
        let mut bearers: HashMap<&str, Bearers> = HashMap::with_capacity(actions.len());
        for (index, (action, id)) in (0u32..).zip(actions.iter().zip(&ids)) {
            if let Some(first) = bearers.entry(id).or_default().id.replace(index) {
                return Err(PlanError::DuplicateId {
                    id: id.clone(),
                    first: first as usize,
                    second: index as usize,
                });
            }
            if action.name != *id {
                bearers.entry(&action.name).or_default().names.push(index);
            }
        }
        let mut graph = DiGraph::with_capacity(actions.len(), actions.len());
        for _ in actions {
            graph.add_node(());
        }
        for (index, action) in (0u32..).zip(actions) {
            for wanted in &action.dependencies {
                let Some(named) = bearers.get(wanted.as_str()) else {
                    return Err(PlanError::UnknownDependency {
                        action: ids[index as usize].clone(),
                        dependency: wanted.clone(),
                        known: known_names(&bearers),
                    });
                };
                if graph.edge_count() + named.names.len() >= MAX_EDGES {
                    return Err(PlanError::TooLarge {
                        what: "dependencies",
                        limit: MAX_EDGES,
                    });
                }
                for &dependency in named.id.iter().chain(&named.names) {
                    graph.add_edge(
                        NodeIndex::new(dependency as usize),
                        NodeIndex::new(index as usize),
                        (),
                    );
                }
            }
        }
        Ok(Self { graph, ids })
    }

    /// The dependencies of `action`, each once, in the plan's order.
    pub(crate) fn dependencies(&self, action: usize) -> Vec<usize> {
        let mut dependencies: Vec<usize> = self
            .graph
            .neighbors_directed(NodeIndex::new(action), Direction::Incoming)
            .map(NodeIndex::index)
            .collect();
        dependencies.sort_unstable();
        dependencies.dedup();
        dependencies
    }

    /// The wave of each action, counted from 1: one more than the largest wave of its dependencies.
    ///
    /// # Errors
    /// A cycle, with its actions in order.
    pub(crate) fn waves(&self) -> Result<Vec<usize>, PlanError> {
        let count = self.graph.node_count();
        let mut waiting: Vec<usize> = (0..count)
            .map(|n| {
                self.graph
                    .edges_directed(NodeIndex::new(n), Direction::Incoming)
                    .count()
            })
            .collect();
        let mut wave = vec![1usize; count];
        let mut ready: Vec<usize> = (0..count).filter(|&n| waiting[n] == 0).collect();
        let mut done = 0;
        while let Some(node) = ready.pop() {
            done += 1;
            for next in self.graph.neighbors(NodeIndex::new(node)).map(NodeIndex::index) {
                wave[next] = wave[next].max(wave[node] + 1);
                waiting[next] -= 1;
                if waiting[next] == 0 {
                    ready.push(next);
                }
            }
        }
        if done == count {
            Ok(wave)
        } else {
            Err(PlanError::Cycle {
                path: self.cycle(&waiting),
            })
        }
    }

    /// A cycle among the nodes that still wait. Each of those has a dependency that waits, too, so a walk from
    /// dependency to dependency must come to a node a second time.
    fn cycle(&self, waiting: &[usize]) -> Vec<String> {
        let mut path: Vec<usize> = Vec::new();
        let mut position: HashMap<usize, usize> = HashMap::new();
        let mut node = waiting.iter().position(|&n| n > 0);
        while let Some(current) = node {
            if let Some(&from) = position.get(&current) {
                let mut cycle: Vec<String> = path[from..].iter().map(|&n| self.ids[n].clone()).collect();
                // The walk goes from an action to its dependency; the error lists the actions in the order in which
                // they would run.
                cycle.reverse();
                cycle.push(cycle[0].clone());
                return cycle;
            }
            position.insert(current, path.len());
            path.push(current);
            node = self.dependencies(current).into_iter().find(|&n| waiting[n] > 0);
        }
        Vec::new()
    }
}

/// The actions for which an id or a name stands: at most one that has it as its id, and any number that have it as their name.
#[derive(Default)]
struct Bearers {
    id: Option<u32>,
    names: Vec<u32>,
}

/// Returns the ids of the actions, made from name and subsystems where an action has none.
fn assign_ids(actions: &[Action]) -> Result<Vec<String>, PlanError> {
    let mut bearers: HashMap<&str, usize> = HashMap::new();
    if actions.iter().any(|action| action.id.is_none()) {
        for action in actions {
            *bearers.entry(&action.name).or_default() += 1;
        }
    }
    let mut ids = Vec::with_capacity(actions.len());
    for (index, action) in actions.iter().enumerate() {
        let id = match &action.id {
            Some(id) => id.clone(),
            None if bearers[action.name.as_str()] == 1 => action.name.clone(),
            None => match action.subsystems.as_slice() {
                [] => action.name.clone(),
                names => format!("{}:{}", action.name, names.join("+")),
            },
        };
        if id.is_empty() {
            return Err(PlanError::Unnamed { index });
        }
        ids.push(id);
    }
    Ok(ids)
}

fn known_names(bearers: &HashMap<&str, Bearers>) -> Vec<String> {
    const SHOWN: usize = 20;
    let mut names: Vec<String> = bearers.keys().map(ToString::to_string).collect();
    names.sort_unstable();
    names.truncate(SHOWN);
    names
}
