//! The state of one wave while it runs: which actions can start, and which subsystems are broken.
//!
//! Pure bookkeeping, linear in the wave's actions; it starts nothing itself. Read [`WaveQueue`], then [`Broken`].

use std::collections::{HashMap, HashSet, VecDeque};

use super::plan::PlannedAction;
use super::subsystem::{Scope, scope};

/// The actions of a wave that can start, and those that wait.
pub(crate) struct WaveQueue {
    ready: VecDeque<usize>,
    /// By action: the number of actions that must end first.
    waiting: HashMap<usize, usize>,
    /// By action: the actions that wait for it.
    waiters: HashMap<usize, Vec<usize>>,
}

impl WaveQueue {
    pub(crate) fn new(wave: &[usize], actions: &[PlannedAction]) -> Self {
        let mut queue = Self {
            ready: VecDeque::with_capacity(wave.len()),
            waiting: HashMap::default(),
            waiters: HashMap::default(),
        };
        for &index in wave {
            let after = &actions[index].after;
            if after.is_empty() {
                queue.ready.push_back(index);
                continue;
            }
            queue.waiting.insert(index, after.len());
            for &before in after {
                queue.waiters.entry(before).or_default().push(index);
            }
        }
        queue
    }

    pub(crate) fn pop(&mut self) -> Option<usize> {
        self.ready.pop_front()
    }

    pub(crate) fn ended(&mut self, index: usize) {
        for waiter in self.waiters.remove(&index).unwrap_or_default() {
            if let Some(left) = self.waiting.get_mut(&waiter) {
                *left -= 1;
                if *left == 0 {
                    self.ready.push_back(waiter);
                }
            }
        }
    }
}

/// The broken subsystems: those on which an action of the wave did not complete. The rest of their actions is skipped.
#[derive(Default)]
pub(crate) struct Broken {
    /// The id of the first action that did not complete.
    pub(crate) first: Option<String>,
    /// Whether any subsystem is broken, which breaks `all`.
    any: bool,
    everything: bool,
    /// Units that are broken as a whole.
    units: HashSet<String>,
    /// Units with at least one broken subsystem.
    touched: HashSet<String>,
    names: HashSet<String>,
}

impl Broken {
    pub(crate) fn add(&mut self, id: &str, subsystems: &[String]) {
        self.first.get_or_insert_with(|| id.to_owned());
        self.any |= !subsystems.is_empty();
        for name in subsystems {
            match scope(name) {
                Scope::Everything => self.everything = true,
                Scope::Unit(unit) => {
                    self.units.insert(unit.to_owned());
                    self.touched.insert(unit.to_owned());
                }
                Scope::One(unit) => {
                    self.touched.extend(unit.map(str::to_owned));
                    self.names.insert(name.clone());
                }
            }
        }
    }

    pub(crate) fn holds(&self, subsystems: &[String]) -> bool {
        if !self.any {
            return false;
        }
        subsystems.iter().any(|name| {
            self.everything
                || match scope(name) {
                    Scope::Everything => true,
                    Scope::Unit(unit) => self.touched.contains(unit),
                    Scope::One(unit) => {
                        self.names.contains(name) || unit.is_some_and(|unit| self.units.contains(unit))
                    }
                }
        })
    }
}
