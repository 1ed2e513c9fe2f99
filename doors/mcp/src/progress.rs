//! The progress of one call as the single number that clients receive: the waves done of all waves, or, for a run, the steps that
//! have begun.

use std::collections::VecDeque;
use std::time::Duration;

use client::payload::{ProgressKind, ProgressMessage};
use futures_util::future::BoxFuture;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio::time::{Instant, sleep_until, timeout};

/// How long the message about a wave is delayed until the names of its actions are known, which follow immediately.
const NAMES_WAIT: Duration = Duration::from_millis(20);

/// The shortest time between two updates of an action.
const EVERY: Duration = Duration::from_millis(100);

/// How many notifications may wait for a client that reads slowly.
const WAITING: usize = 16;

/// How long an answer waits until the client has read the progress before it. A client that takes longer counts as gone.
const FLUSH_WAIT: Duration = Duration::from_secs(2);

/// Sends the progress of one call.
pub(crate) struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    notes: Notes,
    sending: Option<BoxFuture<'static, ()>>,
}

impl Progress {
    pub(crate) fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        Self {
            peer,
            token,
            notes: Notes::default(),
            sending: None,
        }
    }

    /// Records a progress message of the call.
    pub(crate) fn add_step(&mut self, step: &ProgressMessage) {
        self.notes.take(step, Instant::now());
    }

    /// Sends notifications when they are due; never returns.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub(crate) async fn drive(&mut self) {
        loop {
            self.send_next().await;
            if self.sending.is_none() && self.notes.waiting.is_empty() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Sends the remaining notifications: none may follow the answer.
    pub(crate) async fn finish(mut self) {
        self.notes.hurry(Instant::now());
        let all = async {
            while self.sending.is_some() || !self.notes.waiting.is_empty() {
                self.send_next().await;
            }
        };
        _ = timeout(FLUSH_WAIT, all).await;
    }

    async fn send_next(&mut self) {
        if let Some(sending) = &mut self.sending {
            sending.await;
            self.sending = None;
        }
        let Some(due) = self.notes.waiting.front().map(|note| note.due) else {
            return;
        };
        sleep_until(due).await;
        if let Some(note) = self.notes.next() {
            let mut param =
                ProgressNotificationParam::new(self.token.clone(), note.value).with_message(note.message());
            if let Some(total) = note.total() {
                param = param.with_total(total);
            }
            let peer = self.peer.clone();
            self.sending = Some(Box::pin(async move {
                if let Err(error) = peer.notify_progress(param).await {
                    tracing::debug!(%error, "progress was not sent");
                }
            }));
        }
    }
}

/// The notifications to send, in order.
#[derive(Default)]
struct Notes {
    waiting: VecDeque<Note>,
    /// The number that was sent last.
    sent: Option<f64>,
    /// The steps of a run that have begun.
    begun: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Note {
    value: f64,
    /// 0 where their number is not known.
    waves: usize,
    wave: usize,
    actions: Vec<String>,
    said: Option<String>,
    due: Instant,
}

impl Note {
    #[allow(clippy::cast_precision_loss, reason = "a plan has few waves")]
    fn total(&self) -> Option<f64> {
        (self.waves > 0).then_some(self.waves as f64)
    }

    /// Returns the text: `wave 1 of 3: lift, turn`; in a run, without a wave, `step find`.
    fn message(&self) -> String {
        if self.wave == 0 {
            return self.said.clone().unwrap_or_default();
        }
        let what = self.said.clone().unwrap_or_else(|| self.actions.join(", "));
        door::wave_text(self.wave, self.waves, &what)
    }
}

impl Notes {
    #[allow(clippy::cast_precision_loss, reason = "a plan has few waves")]
    fn take(&mut self, step: &ProgressMessage, now: Instant) {
        if step.wave == 0 {
            // The call waits, so the number is still zero.
            return;
        }
        if let Some(id) = &step.step {
            return self.take_step(id, now);
        }
        let done = (step.wave - 1) as f64;
        let waves = step.waves;
        let note = |value, actions, said, due| Note {
            value,
            waves,
            wave: step.wave,
            actions,
            said,
            due,
        };
        match step.kind {
            ProgressKind::Wave => {
                self.hurry(now);
                self.push(note(done, Vec::new(), None, now + NAMES_WAIT));
            }
            ProgressKind::ActionStarted => {
                let of_wave = self.waiting.back_mut().filter(|note| note.wave == step.wave);
                if let (Some(note), Some(action)) = (of_wave, &step.action) {
                    note.actions.push(action.clone());
                }
            }
            ProgressKind::Update => {
                let Some(fraction) = step.fraction else { return };
                let text = step.message.clone().or_else(|| step.action.clone());
                // A wave counts as done only when it has ended, not when one of its actions reports 1.0.
                let value = done + fraction.clamp(0.0, 0.99);
                match self.waiting.back_mut().filter(|note| note.said.is_some()) {
                    Some(last) if last.wave == step.wave => {
                        (last.value, last.said) = (value.max(last.value), text)
                    }
                    _ => self.push(note(value, Vec::new(), text, now + EVERY)),
                }
            }
            _ => {}
        }
    }

    /// Records progress of a step. Its beginning is reported once.
    #[allow(clippy::cast_precision_loss, reason = "a run has few steps")]
    fn take_step(&mut self, id: &str, now: Instant) {
        if self.begun.iter().any(|begun| begun == id) {
            return;
        }
        let value = self.begun.len() as f64;
        self.begun.push(id.to_owned());
        self.push(Note {
            value,
            waves: 0,
            wave: 0,
            actions: Vec::new(),
            said: Some(format!("step {id}")),
            due: now,
        });
    }

    fn push(&mut self, note: Note) {
        if self.waiting.len() >= WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(note);
    }

    /// Makes waiting notifications due now.
    fn hurry(&mut self, now: Instant) {
        for note in &mut self.waiting {
            note.due = note.due.min(now);
        }
    }

    /// Returns the next notification, if its number is larger than the last one that was sent.
    fn next(&mut self) -> Option<Note> {
        let note = self.waiting.pop_front()?;
        if self.sent.is_some_and(|sent| note.value <= sent) {
            return None;
        }
        self.sent = Some(note.value);
        Some(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: ProgressKind, wave: usize, action: Option<&str>, fraction: Option<f64>) -> ProgressMessage {
        ProgressMessage {
            kind,
            wave,
            waves: if wave == 0 { 0 } else { 3 },
            action: action.map(str::to_owned),
            fraction,
            ..ProgressMessage::default()
        }
    }

    fn values_and_texts(steps: &[ProgressMessage]) -> Vec<(f64, String)> {
        let mut notes = Notes::default();
        let now = Instant::now();
        for step in steps {
            notes.take(step, now);
        }
        let mut reports = Vec::new();
        while !notes.waiting.is_empty() {
            if let Some(note) = notes.next() {
                reports.push((note.value, note.message()));
            }
        }
        reports
    }

    #[test]
    fn waves_are_named_by_their_actions_and_the_number_rises() {
        let steps = [
            step(ProgressKind::Queued, 0, None, None),
            step(ProgressKind::Wave, 1, None, None),
            step(ProgressKind::ActionStarted, 1, Some("lift"), None),
            step(ProgressKind::ActionStarted, 1, Some("turn"), None),
            step(ProgressKind::Update, 1, Some("lift"), Some(0.5)),
            step(ProgressKind::Update, 1, Some("turn"), Some(0.2)),
            step(ProgressKind::Wave, 2, None, None),
            step(ProgressKind::Update, 2, Some("grip"), Some(7.0)),
            step(ProgressKind::ActionEnded, 2, Some("grip"), None),
            step(ProgressKind::Wave, 3, None, None),
        ];
        let reports = values_and_texts(&steps);
        let texts: Vec<&str> = reports.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "wave 1 of 3: lift, turn",
                "wave 1 of 3: turn",
                "wave 2 of 3",
                "wave 2 of 3: grip",
                "wave 3 of 3"
            ]
        );
        let numbers: Vec<f64> = reports.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [0.0, 0.5, 1.0, 1.99, 2.0]);
    }

    #[test]
    fn of_a_run_each_step_is_told_once() {
        let of = |id: &str, wave: usize| ProgressMessage {
            step: Some(id.to_owned()),
            ..step(ProgressKind::Wave, wave, None, None)
        };
        let reports = values_and_texts(&[of("find", 1), of("look", 1), of("find", 2), of("grab", 1)]);
        let expected = [(0.0, "step find"), (1.0, "step look"), (2.0, "step grab")];
        let expected = expected.map(|(number, text)| (number, text.to_owned()));
        assert_eq!(reports, expected);
    }

    #[test]
    fn a_number_that_does_not_rise_is_not_sent() {
        let steps = [
            step(ProgressKind::Wave, 2, None, None),
            step(ProgressKind::Wave, 1, None, None),
            step(ProgressKind::Wave, 2, None, None),
        ];
        assert_eq!(values_and_texts(&steps).len(), 1);
    }

    #[test]
    fn a_client_that_does_not_read_keeps_the_last_ones() {
        let steps: Vec<_> = (1..=100)
            .map(|wave| step(ProgressKind::Wave, wave, None, None))
            .collect();
        let reports = values_and_texts(&steps);
        assert_eq!(reports.len(), WAITING);
        assert!((reports[WAITING - 1].0 - 99.0).abs() < f64::EPSILON);
    }
}
