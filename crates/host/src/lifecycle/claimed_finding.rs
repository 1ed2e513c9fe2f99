//! Decides what happens to a toolbox that a program offers, once its id was claimed, and carries that out.
//!
//! Read [`ClaimedFinding::of`], then [`ClaimedFinding::carry_out`].

use std::path::PathBuf;
use std::sync::Arc;

use crate::artifact::scan::FailedFile;
use crate::lifecycle::claims::Claimant;
use crate::lifecycle::examine::{Broken, Finding};
use crate::lifecycle::shared::Shared;
use crate::lifecycle::swap::{SwapOutcome, swap};
use schema::shorten_text;
use section::ProgramConfig;

/// The longest reason in bytes: a reason may contain text from a program, and `status` shows it until the next reload.
const MAX_REASON: usize = 4096;

/// The result for one toolbox of a program.
pub(crate) enum OfferOutcome {
    /// It was left alone.
    Same(String),
    /// It was opened, or failed to open.
    Swapped(String, Result<SwapOutcome, FailedFile>),
    /// It cannot be used. A working copy stays, unless another file or program has the id.
    Broken { keeps: Vec<String>, failed: FailedFile },
    /// Its section switches it off.
    Nothing,
}

/// A finding, after the id was claimed.
pub(crate) struct ClaimedFinding {
    pub(crate) finding: Result<Finding, Broken>,
    id: Option<String>,
    claimed: Result<(), String>,
}

impl ClaimedFinding {
    /// Claims the id of a finding; `live` is the toolbox to claim if the finding is a problem.
    pub(crate) async fn of(
        finding: Result<Finding, Broken>,
        live: Option<String>,
        claimant: &Claimant<'_>,
    ) -> Self {
        let id = match &finding {
            Ok(finding) => Some(finding.id().to_owned()),
            Err((wrong, _)) => live.or_else(|| wrong.clone()),
        };
        let claimed = match &id {
            Some(id) => claimant.claim(id).await,
            None => Ok(()),
        };
        Self { finding, id, claimed }
    }

    /// The id of the toolbox, if it stays live or is to be opened.
    fn keeps(&self) -> Option<String> {
        let stays =
            self.claimed.is_ok() && !matches!(self.finding, Ok(Finding::Disabled(_) | Finding::Off(_)));
        self.id.clone().filter(|_| stays)
    }

    /// Opens the toolbox if it is new or has changed. Every other case returns without a wait.
    pub(crate) async fn carry_out(self, manager: &Arc<Shared>, entry: &ProgramConfig) -> OfferOutcome {
        let keeps = self.keeps().into_iter().collect();
        let Self { finding, id, claimed } = self;
        match (finding, claimed) {
            (Err((wrong, reason)), _) => OfferOutcome::Broken {
                keeps,
                failed: failed(entry, wrong.or(id), &reason),
            },
            (Ok(_), Err(taken)) => OfferOutcome::Broken {
                keeps,
                failed: failed(entry, id, &taken),
            },
            (Ok(Finding::Disabled(_) | Finding::Off(_)), Ok(())) => OfferOutcome::Nothing,
            (Ok(Finding::Same(candidate)), Ok(())) => {
                let id = candidate.source.id().to_owned();
                candidate.stays(manager);
                OfferOutcome::Same(id)
            }
            (Ok(Finding::New(candidate)), Ok(())) => {
                let id = candidate.source.id().to_owned();
                let swapped = swap(manager, *candidate).await;
                let swapped = swapped.map_err(|wrong| failed(entry, wrong.toolbox_id, &wrong.reason));
                OfferOutcome::Swapped(id, swapped)
            }
        }
    }
}

/// The failure of a program, as `status` shows it.
pub(crate) fn failed(entry: &ProgramConfig, toolbox_id: Option<String>, reason: &str) -> FailedFile {
    // The script of an interpreter says more than the interpreter.
    let mut paths = entry.command.iter().filter(|word| word.starts_with('/'));
    let file = paths.next_back().or(entry.command.first());
    let reason = shorten_text(reason, MAX_REASON);
    FailedFile {
        path: file.map(PathBuf::from).unwrap_or_default(),
        toolbox_id: toolbox_id.or_else(|| entry.only_toolbox().map(str::to_owned)),
        reason: format!("program `{}`: {reason}", entry.name),
    }
}
