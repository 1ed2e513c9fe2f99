//! The toolboxes of Python interpreters, in a reload: finds the interpreter of each entry, and makes the programs that
//! host its toolboxes.
//!
//! Interpreters are asked while everything else is loaded, because their answers take longer than most toolboxes. Read
//! [`offer_all`].

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;

use crate::artifact::python::{InterpreterSearch, LookedAt, look_in, script};
use crate::artifact::scan::FailedFile;
use crate::lifecycle::claimed_finding::OfferOutcome;
use crate::lifecycle::claims::Claims;
use crate::lifecycle::program::offer;
use crate::lifecycle::shared::Shared;
use section::{ProgramConfig, PythonConfig, Switch};

/// Separates the name of the entry from the id of the toolbox in the name of a program.
const SEPARATOR: char = ':';

/// The result of a reload for all interpreters.
#[derive(Default)]
pub(crate) struct Pythons {
    /// What became of each toolbox of an interpreter.
    pub(crate) outcomes: Vec<OfferOutcome>,
    /// The names of their programs, including the programs whose interpreter could not be asked this time.
    pub(crate) names: Vec<String>,
    /// The live toolboxes of interpreters that could not be asked this time.
    pub(crate) keeps: Vec<String>,
    /// The entries that have to have an interpreter, and have none that can be used.
    pub(crate) failed: Vec<FailedFile>,
    /// What was found for each entry.
    pub(crate) looked_at: Vec<LookedAt>,
}

/// Finds the interpreters of these entries, and offers their toolboxes.
pub(crate) async fn offer_all(
    manager: &Arc<Shared>,
    entries: Vec<Arc<PythonConfig>>,
    before: &Arc<Claims>,
) -> Pythons {
    let mut pythons = Pythons::default();
    let host = match script() {
        Ok(host) => host,
        Err(reason) => {
            for entry in entries {
                let found = InterpreterSearch {
                    interpreter: None,
                    passed_over: vec![reason.clone()],
                    unanswered: true,
                };
                pythons.note_unusable(manager, &entry, &found);
                pythons.looked_at.push(LookedAt { entry, found });
            }
            return pythons;
        }
    };
    let (greeter, folder) = (&manager.settings.greeter, manager.stage.folder());
    let searches = join_all(entries.iter().map(|entry| look_in(entry, &host, greeter, folder)));
    let Some(searches) = manager.stop.run_until_cancelled(searches).await else {
        return pythons;
    };
    let mut programs: Vec<Arc<ProgramConfig>> = Vec::new();
    for (entry, found) in entries.into_iter().zip(searches) {
        match &found.interpreter {
            Some(interpreter) => programs.extend(interpreter.programs(&entry, &host)),
            None => pythons.note_unusable(manager, &entry, &found),
        }
        pythons.looked_at.push(LookedAt { entry, found });
    }
    pythons
        .names
        .extend(programs.iter().map(|program| program.name.clone()));
    let claims = Claims::after(before, programs);
    let offers = claims
        .claimants()
        .map(|(claimant, program)| offer(manager, claimant, program));
    pythons.outcomes = join_all(offers).await.into_iter().flatten().collect();
    pythons
}

/// The ids of the toolboxes that these entries may offer and host now, or that their interpreters listed last.
pub(crate) fn known_toolboxes(manager: &Shared, entries: &[Arc<PythonConfig>]) -> HashSet<String> {
    let copies = manager.copies();
    let hosted = copies.slots.iter().filter_map(|(id, slot)| {
        let program = slot.source.program()?;
        Some((program.split(SEPARATOR).next()?, id))
    });
    let toolboxes = copies.pythons.iter().flat_map(|LookedAt { entry, found }| {
        let toolboxes = found
            .interpreter
            .iter()
            .flat_map(|interpreter| &interpreter.toolboxes);
        toolboxes.map(|one| (entry.name.as_str(), &one.entry_point))
    });
    let all = hosted.chain(toolboxes).filter(|(name, id)| {
        let mut entries = entries.iter();
        entries.any(|entry| entry.name == *name && entry.may_offer(id))
    });
    all.map(|(_, id)| id.clone()).collect()
}

impl Pythons {
    /// Notes that an entry has no interpreter to offer toolboxes from.
    fn note_unusable(&mut self, manager: &Shared, entry: &PythonConfig, found: &InterpreterSearch) {
        if found.unanswered {
            let copies = manager.copies();
            for (id, slot) in &copies.slots {
                let program = slot.source.program().unwrap_or_default();
                if program.split(SEPARATOR).next() == Some(&entry.name) {
                    self.keeps.push(id.clone());
                    self.names.push(program.to_owned());
                }
            }
        }
        if entry.enabled == Switch::On {
            let why = match found.passed_over.as_slice() {
                [] => {
                    "there is no python3 in $VIRTUAL_ENV/bin or PATH: name one with `interpreter`".to_owned()
                }
                reasons => reasons.join("; "),
            };
            self.failed.push(FailedFile {
                path: entry
                    .interpreter
                    .as_deref()
                    .map(PathBuf::from)
                    .unwrap_or_default(),
                toolbox_id: None,
                reason: format!("program `{}`: {why}", entry.name),
            });
        }
    }
}
