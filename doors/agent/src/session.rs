//! Makes a run, from its tools to its record, for the command line and for bus clients.

use std::sync::atomic::AtomicBool;

use client::Client;
use door::Door;
use tokio::time::Instant;

use crate::end::End;
use crate::hands::Hands;
use crate::interrupt::Interrupt;
use crate::news::{Audience, News};
use crate::person::Person;
use crate::record::{Line, RecordError, Recorder, RunEnd, Start, Step};
use crate::run::Run;
use crate::settings::Settings;
use crate::source::Source;
use crate::toolbelt::{Choice, Toolbelt};
use crate::watch::Watch;

/// The parts with which a run is made.
pub(crate) struct Session<'a> {
    pub(crate) door: &'a Door,
    /// The client that makes the calls: it says for whom they are.
    pub(crate) client: Client,
    pub(crate) settings: &'a Settings,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) audience: &'a Audience,
    /// The person who is asked if a call has to be confirmed.
    pub(crate) person: Option<&'a Person>,
    /// The session of the client that asked for the run; its stops end the run.
    pub(crate) session_id: Option<String>,
}

/// A run that has ended.
pub(crate) struct SessionRun {
    pub(crate) ended: RunEnd,
    pub(crate) steps: Vec<Step>,
    pub(crate) start: Start,
}

impl Session<'_> {
    /// Makes the run.
    ///
    /// # Errors
    /// The record cannot be written; nothing has been run.
    ///
    /// # Cancel safety
    /// Dropping it asks the service to end the calls of the run.
    pub(crate) async fn run(&self, source: &mut Source) -> Result<SessionRun, RecordError> {
        let settings = self.settings;
        let mut recorder = Recorder::new(settings.record.as_deref())?;
        let listing = self.door.refreshed().await;
        let belt = Toolbelt::new(
            &listing,
            &Choice {
                filters: &settings.filters,
                budget_bytes: settings.door.tools_budget_bytes,
                plan_preview: settings.door.plan_preview,
            },
        );
        if belt.is_searched() {
            tracing::info!(
                tools = belt.names().len(),
                "the model searches the tools: their list is larger than tools_budget_bytes"
            );
        }
        let watch = Watch::new(&self.door.client, self.interrupt, self.session_id.clone()).await;
        let watch = match watch {
            Ok(watch) => watch,
            Err(end) => {
                let failed = self.failed(end);
                recorder.write(&Line::Start(Box::new(failed.start.clone())));
                recorder.write(&Line::End(Box::new(failed.ended.clone())));
                return Ok(failed);
            }
        };
        let hands = Hands {
            door: self.door,
            client: &self.client,
            arrivals: self.door.arrivals(),
            settings,
            interrupt: self.interrupt,
            watch: &watch,
            audience: self.audience,
            person: self.person,
            lost: AtomicBool::new(false),
            ending: false,
        };
        let mut run = Run::new(hands, &belt);
        let start = run.start();
        recorder.write(&Line::Start(Box::new(start.clone())));
        let deadline = Instant::now() + settings.budgets().time;
        let ended = tokio::select! {
            ended = run.drive(source, &mut recorder) => ended,
            // The watch never returns; it ends when it is dropped.
            never = watch.follow(deadline) => match never {},
        };
        let steps = std::mem::take(&mut run.steps);
        Ok(SessionRun { ended, steps, start })
    }

    /// Returns the result of a run that did not begin.
    fn failed(&self, end: End) -> SessionRun {
        let left = serde_json::Value::Null;
        (self.audience)(&News::Ended {
            end: &end,
            left: &left,
        });
        let settings = self.settings;
        SessionRun {
            ended: RunEnd {
                text: end.text(),
                exit_code: end.exit_code(),
                end,
                used: serde_json::Value::Null,
                elapsed_ms: 0,
                halted: None,
                agent_end: Vec::new(),
            },
            steps: Vec::new(),
            start: Start {
                version: crate::record::VERSION,
                run_id: settings.run_id.clone(),
                began: 0.0,
                goal: settings.goal.clone(),
                model: settings.door.model.clone(),
                dry_run: settings.dry_run,
                ablations: settings.ablations(),
                budgets: settings.budgets().clone(),
                prompt_sha256: String::new(),
                tools_sha256: String::new(),
                tools: Vec::new(),
            },
        }
    }
}
