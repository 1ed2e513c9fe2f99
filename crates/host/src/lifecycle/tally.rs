//! Collects the results of the parts of a reload. Pure. Read [`Tally`].

use std::collections::HashSet;

use crate::artifact::scan::FailedFile;
use crate::lifecycle::claimed_finding::OfferOutcome;
use crate::lifecycle::status::{Off, ReloadReport};
use crate::lifecycle::swap::SwapOutcome;

/// The results of a reload so far.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) report: ReloadReport,
    /// The toolboxes that are not to be removed.
    pub(crate) keep: HashSet<String>,
    /// The toolboxes that were not admitted.
    pub(crate) off: Vec<Off>,
}

impl Tally {
    /// Notes that a toolbox was left alone.
    pub(crate) fn unchanged(&mut self, id: String) {
        self.keep.insert(id.clone());
        self.report.unchanged.push(id);
    }

    /// Notes the result for a toolbox that was to be opened.
    pub(crate) fn swapped(&mut self, result: Result<SwapOutcome, FailedFile>) {
        match result {
            Ok(SwapOutcome::Added(id)) => self.report.added.push(id),
            Ok(SwapOutcome::Replaced(id)) => self.report.replaced.push(id),
            Err(failed) => self.report.broken.push(failed),
        }
    }

    /// Notes the result for a toolbox that was to be removed.
    pub(crate) fn removed(&mut self, result: Result<String, FailedFile>) {
        match result {
            Ok(id) => self.report.removed.push(id),
            Err(failed) => self.report.broken.push(failed),
        }
    }

    /// Notes the result for a toolbox of a program.
    pub(crate) fn outcome(&mut self, outcome: OfferOutcome) {
        match outcome {
            OfferOutcome::Same(id) => self.unchanged(id),
            OfferOutcome::Swapped(id, result) => {
                self.keep.insert(id);
                self.swapped(result);
            }
            OfferOutcome::Broken { keeps, failed } => {
                self.keep.extend(keeps);
                self.report.broken.push(failed);
            }
            OfferOutcome::Nothing => {}
        }
    }

    /// The results with sorted lists.
    pub(crate) fn sorted(mut self) -> Self {
        let report = &mut self.report;
        for list in [
            &mut report.added,
            &mut report.removed,
            &mut report.replaced,
            &mut report.unchanged,
        ] {
            list.sort();
        }
        self.off.sort_by(|a, b| a.toolbox_id.cmp(&b.toolbox_id));
        self
    }
}
