//! The judge, as the toolbox sees it: it is started when something is asked, and ends by itself.
//!
//! The toolbox itself never initialises GStreamer, whose registry takes most of the memory. Owns the judge's process and the list of the
//! devices that GStreamer's monitor knew last. Read [`Judge::ask`].

use std::borrow::Cow;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio::sync::oneshot;
use ovos_toolbox_sdk::{RoleEvent, RoleProcess};
use parking_lot::Mutex;
use schemars::{Schema, SchemaGenerator};
use serde::Serializer;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::config::Section;
use crate::holders::Holders;
use crate::question::{JudgeMessage, MonitoredDevice, NumberedQuestion, Question};
use crate::sitting::ROLE;
use crate::sound::environment;

/// An answer as the judge wrote it; it reads as a `T`.
pub(crate) struct AnswerText<T> {
    text: Box<RawValue>,
    of: PhantomData<fn() -> T>,
}

/// Asks the judge.
pub(crate) struct Judge {
    config: Section,
    /// A folder for what GStreamer keeps meanwhile.
    scratch: PathBuf,
    shared: Arc<Shared>,
}

struct Shared {
    host: Host,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    process: Option<RoleProcess>,
    /// Counts the processes, so that what is heard of an earlier one is known as that.
    session: u64,
    next: u64,
    waiting: HashMap<u64, oneshot::Sender<Result<Box<RawValue>, ToolError>>>,
    /// The devices of GStreamer's monitor, sorted; `None` before it was asked.
    devices: Option<Vec<MonitoredDevice>>,
}

impl Judge {
    pub(crate) fn new(host: Host, config: Section, scratch: PathBuf) -> Self {
        let state = Mutex::default();
        Self {
            config,
            scratch,
            shared: Arc::new(Shared { host, state }),
        }
    }

    /// Asks a question, and starts the judge if it does not sit.
    ///
    /// # Errors
    /// Those of the question; the judge cannot be started or crashed.
    ///
    /// # Cancel safety
    /// When dropped, the answer is discarded.
    pub(crate) async fn ask<T>(
        &self,
        question: Question,
        holders: Holders,
    ) -> Result<AnswerText<T>, ToolError> {
        loop {
            let (sender, receiver) = oneshot::channel();
            self.send(question.clone(), holders.clone(), sender)?;
            // Without an answer, the judge left its seat just when it was asked: the next one answers.
            if let Ok(answer) = receiver.await {
                return Ok(AnswerText {
                    text: answer?,
                    of: PhantomData,
                });
            }
        }
    }

    /// Asks which devices there are, without waiting: those that came and went since are events.
    pub(crate) fn look_for_devices(&self) {
        let (tell, _) = oneshot::channel();
        if let Err(error) = self.send(Question::Devices, Holders::default(), tell) {
            tracing::warn!(%error, "cannot look for devices");
        }
    }

    /// Ends the judge.
    pub(crate) fn close(&self) {
        drop(self.shared.state.lock().process.take());
    }

    fn send(
        &self,
        question: Question,
        holders: Holders,
        tell: oneshot::Sender<Result<Box<RawValue>, ToolError>>,
    ) -> Result<(), ToolError> {
        let mut state = self.shared.state.lock();
        if state.process.is_none() {
            state.process = Some(self.start(&mut state)?);
        }
        state.next += 1;
        let id = state.next;
        let numbered = NumberedQuestion {
            id,
            question,
            holders,
        };
        if let Some(process) = &state.process
            && process.tell(&numbered).is_ok()
        {
            state.waiting.insert(id, tell);
        } else {
            state.process = None;
        }
        Ok(())
    }

    fn start(&self, state: &mut State) -> Result<RoleProcess, ToolError> {
        state.session += 1;
        let (session, shared) = (state.session, Arc::clone(&self.shared));
        let hear = move |event| match event {
            RoleEvent::Word(saying) => shared.hear(saying),
            RoleEvent::End(how) => shared.end(session, &how),
        };
        let process =
            RoleProcess::start::<JudgeMessage>(ROLE, &environment(&self.scratch), hear).map_err(|error| {
                ToolError::busy(format!("cannot start the process that asks GStreamer: {error}"))
            })?;
        // If it has ended already, its end is heard.
        _ = process.tell(&self.config);
        Ok(process)
    }
}

impl Shared {
    fn hear(&self, saying: JudgeMessage) {
        match saying {
            JudgeMessage::Answer { id, answer } => {
                let tell = self.state.lock().waiting.remove(&id);
                // The caller may be gone.
                _ = tell.map(|tell| tell.send(answer));
            }
            JudgeMessage::Present(mut now) => {
                now.sort();
                let before = self.state.lock().devices.replace(now.clone());
                if let Some(before) = before {
                    for (kind, device) in differences(&before, &now) {
                        self.report(kind, &device);
                    }
                }
            }
            JudgeMessage::Came(device) => {
                let mut state = self.state.lock();
                let devices = state.devices.get_or_insert_default();
                let at = devices.partition_point(|other| *other <= device);
                devices.insert(at, device.clone());
                drop(state);
                self.report("device_added", &device);
            }
            JudgeMessage::Went(device) => {
                let mut state = self.state.lock();
                let devices = state.devices.get_or_insert_default();
                if let Ok(at) = devices.binary_search(&device) {
                    devices.remove(at);
                }
                drop(state);
                self.report("device_removed", &device);
            }
        }
    }

    fn end(&self, session: u64, how: &str) {
        let mut state = self.state.lock();
        if state.session != session {
            return;
        }
        let left = (state.process.take(), std::mem::take(&mut state.waiting));
        drop(state);
        if how.is_empty() {
            // It was idle, and who has just asked asks again.
            return;
        }
        for (_, tell) in left.1 {
            let text = format!(
                "the process that asks GStreamer ended: {how}. A plugin on this machine may be broken"
            );
            // The caller may be gone.
            _ = tell.send(Err(ToolError::new("ToolError", text)));
        }
    }

    fn report(&self, kind: &str, device: &MonitoredDevice) {
        let MonitoredDevice { name, class } = device;
        tracing::info!(kind, device = name, class, "devices");
        self.host.event(kind, json!({"name": name, "class": class}));
    }
}

/// What came and went between two sorted lists.
fn differences(before: &[MonitoredDevice], now: &[MonitoredDevice]) -> Vec<(&'static str, MonitoredDevice)> {
    let missing_in = |list: &[MonitoredDevice], other: &[MonitoredDevice], kind| {
        let mut other = other.to_vec();
        let mut found = Vec::new();
        for device in list {
            match other.binary_search(device) {
                Ok(at) => drop(other.remove(at)),
                Err(_) => found.push((kind, device.clone())),
            }
        }
        found
    };
    let mut all = missing_in(before, now, "device_removed");
    all.extend(missing_in(now, before, "device_added"));
    all
}

impl<T> AnswerText<T> {
    /// Reads a part of it.
    ///
    /// # Errors
    /// It has no such part.
    pub(crate) fn read<P: DeserializeOwned>(&self) -> Result<P, ToolError> {
        Ok(serde_json::from_str(self.text.get())?)
    }
}

impl<T> Serialize for AnswerText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for AnswerText<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_went_while_nothing_looked_is_found() {
        let list = |names: &[&str]| -> Vec<MonitoredDevice> {
            let device = |name: &&str| MonitoredDevice {
                name: (*name).to_owned(),
                class: "Video/Source".to_owned(),
            };
            names.iter().map(device).collect()
        };
        for (before, now, expected) in [
            (&["a", "b"][..], &["a", "b"][..], ""),
            (&["a"], &["a", "a"], "device_added a"),
            (
                &["a", "b", "b"],
                &["b", "c"],
                "device_removed a, device_removed b, device_added c",
            ),
        ] {
            let found: Vec<String> = differences(&list(before), &list(now))
                .iter()
                .map(|(kind, device)| format!("{kind} {}", device.name))
                .collect();
            assert_eq!(found.join(", "), expected, "{before:?} -> {now:?}");
        }
    }
}
