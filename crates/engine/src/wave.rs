//! The state of one wave while it runs: which actions can start.
//!
//! Pure bookkeeping, linear in the wave's actions; it starts nothing itself. Read [`WaveQueue`].

use std::collections::{HashMap, VecDeque};

use super::plan::PlannedAction;

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
