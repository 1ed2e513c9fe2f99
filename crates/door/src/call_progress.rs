//! How far a call is, in words. Pure.

use std::fmt::{Display, Formatter, Result};

use client::payload::{ProgressKind, ProgressMessage};

/// How far a call is, as far as its progress said.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallProgress {
    step: Option<String>,
    wave: usize,
    waves: usize,
    actions: Vec<String>,
    said: Option<String>,
    waits: bool,
}

impl CallProgress {
    /// Takes in a message.
    pub(crate) fn note(&mut self, progress: &ProgressMessage) {
        self.waits = progress.wave == 0;
        if self.step != progress.step || self.wave != progress.wave {
            self.step.clone_from(&progress.step);
            self.actions.clear();
            self.said = None;
        }
        (self.wave, self.waves) = (progress.wave, progress.waves);
        match progress.kind {
            ProgressKind::ActionStarted => self.actions.extend(progress.action.clone()),
            ProgressKind::ActionEnded => self
                .actions
                .retain(|action| Some(action) != progress.action.as_ref()),
            ProgressKind::Update => {
                let what = progress.message.clone().or_else(|| progress.action.clone());
                let percent = progress.fraction.map(|part| format!("{:.0} %", 100.0 * part));
                let parts: Vec<String> = [what, percent].into_iter().flatten().collect();
                self.said = Some(parts.join(", ")).filter(|parts| !parts.is_empty());
            }
            _ => {}
        }
    }
}

impl Display for CallProgress {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.waits {
            return f.write_str("it waits until the parts that it uses are free");
        }
        if let Some(step) = &self.step {
            write!(f, "step {step}, ")?;
        }
        if self.wave == 0 {
            return Ok(());
        }
        let what = self.said.clone().unwrap_or_else(|| self.actions.join(", "));
        f.write_str(&wave_text(self.wave, self.waves, &what))
    }
}

/// The text about a wave, such as `wave 1 of 3: lift, turn`. `waves` is 0 where their number is not known.
#[must_use]
pub fn wave_text(wave: usize, waves: usize, what: &str) -> String {
    let of = if waves == 0 {
        String::new()
    } else {
        format!(" of {waves}")
    };
    let what = if what.is_empty() {
        String::new()
    } else {
        format!(": {what}")
    };
    format!("wave {wave}{of}{what}")
}
