//! The last commanded positions of a K1's arms and head, for a robot that does not report where they are.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::subsystem::Subsystem;

/// The last commanded positions of arms and head, in degrees.
#[derive(Default)]
pub(super) struct LastAngles(Mutex<BTreeMap<Subsystem, Vec<f64>>>);

impl LastAngles {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Subsystem, Vec<f64>>> {
        // Every change is one insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, on: Subsystem) -> Option<Vec<f64>> {
        self.lock().get(&on).cloned()
    }

    pub(super) fn set(&self, on: Subsystem, positions: Vec<f64>) {
        self.lock().insert(on, positions);
    }

    pub(super) fn forget(&self) {
        self.lock().clear();
    }
}
