//! One run of a pipeline, from its start to its end.
//!
//! Handles the pipeline's messages and the commands while it runs. Everything here runs on the thread that owns the pipeline. Read
//! [`Player::play`].

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use gst::prelude::*;
use ovos_toolbox_sdk::Mouth;
use ovos_toolbox_sdk::prelude::*;

use super::change::set;
use super::headers::Headers;
use super::inbox::{Inbox, Input};
use super::meters::Meters;
use super::recording::{Failures, Recording};
use crate::order::{Command, End, Word};
use crate::policy::{Policy, guard};
use crate::report::{Clockwork, Phase, RecordedFile};

/// Interval of status updates.
const TICK: Duration = Duration::from_millis(500);
/// How long a sink may get no data until the pipeline counts as stalled.
const STALLED_AFTER: Duration = Duration::from_secs(5);

/// What plays a pipeline.
pub(super) struct Player {
    policy: Arc<Policy>,
    pipeline: gst::Pipeline,
    mouth: Mouth,
    inbox: Arc<Inbox>,
    inputs: Receiver<Input>,
    meters: Arc<Meters>,
    phase: Phase,
    clockwork: Clockwork,
    /// Frames that each element left out because they were late.
    late: HashMap<String, u64>,
    /// Frames that live sources did not give.
    owed: u64,
    target: gst::State,
    recordings: Vec<Recording>,
    failures: Failures,
    headers: Headers,
    /// Deadline of the end of stream.
    stopping: Option<Instant>,
}

impl Player {
    pub(super) fn new(
        policy: Arc<Policy>,
        pipeline: gst::Pipeline,
        mouth: Mouth,
        inbox: Arc<Inbox>,
        inputs: Receiver<Input>,
    ) -> Self {
        Self {
            meters: Meters::of(&pipeline),
            headers: Headers::of(&pipeline),
            policy,
            pipeline,
            mouth,
            inbox,
            inputs,
            phase: Phase::Starting,
            clockwork: Clockwork::default(),
            late: HashMap::new(),
            owed: 0,
            target: gst::State::Playing,
            recordings: Vec::new(),
            failures: Failures::default(),
            stopping: None,
        }
    }

    /// Plays the pipeline until it ends, fails or is stopped, and says how that was.
    pub(super) fn play(mut self) {
        self.listen();
        let end = self.live();
        self.pipeline.set_state(gst::State::Null).ok();
        self.note();
        self.mouth.say(&Word::Over(end));
    }

    fn listen(&self) {
        let inbox = Arc::clone(&self.inbox);
        guard::watch(&self.pipeline, &self.policy, move |refusal| {
            inbox.post(Input::Refused(refusal));
        });
        let (inbox, mouth, failures) = (Arc::clone(&self.inbox), self.mouth.clone(), self.failures.clone());
        let Some(bus) = self.pipeline.bus() else { return };
        let own = self.pipeline.downgrade();
        bus.set_sync_handler(move |_, message| {
            let of_pipeline = || {
                own.upgrade()
                    .is_some_and(|own| message.src() == Some(own.upcast_ref()))
            };
            let wanted = match message.view() {
                gst::MessageView::StateChanged(change) => {
                    trace(&mouth, message, change);
                    of_pipeline()
                }
                gst::MessageView::StreamStatus(status) => {
                    if status.get().0 == gst::StreamStatusType::Enter {
                        mouth.say(&Word::Thread(status.get().1.name().to_string()));
                    }
                    false
                }
                // Looked at here, while the recording is whole.
                gst::MessageView::Error(error) if message.src().is_some_and(|part| failures.note(part)) => {
                    mouth.say(&Word::Said {
                        kind: "warning".to_owned(),
                        element: message
                            .src()
                            .map(|source| source.name().to_string())
                            .unwrap_or_default(),
                        message: error.error().to_string(),
                        debug: error.debug().map(|debug| debug.to_string()),
                    });
                    false
                }
                gst::MessageView::Error(_)
                | gst::MessageView::Warning(_)
                | gst::MessageView::Info(_)
                | gst::MessageView::Eos(_)
                | gst::MessageView::Latency(_)
                | gst::MessageView::ClockLost(_)
                | gst::MessageView::Buffering(_)
                | gst::MessageView::RequestState(_)
                | gst::MessageView::Qos(_)
                | gst::MessageView::Element(_) => true,
                _ => false,
            };
            if wanted {
                inbox.post(Input::Message(message.clone()));
            }
            gst::BusSyncReply::Drop
        });
    }

    fn live(&mut self) -> End {
        let mut failed = self.pipeline.set_state(gst::State::Playing).is_err();
        let mut next_tick = Instant::now() + TICK;
        loop {
            let until = self.stopping.map_or(next_tick, |until| until.min(next_tick));
            let input = match self.inbox.take_urgent() {
                Some(urgent) => Ok(urgent),
                None if failed => self.inputs.try_recv().map_err(|_| RecvTimeoutError::Timeout),
                None => self
                    .inputs
                    .recv_timeout(until.saturating_duration_since(Instant::now())),
            };
            let end = match input {
                Ok(Input::Message(message)) => self.hear(&message),
                Ok(Input::Refused(refusal)) => {
                    self.say("error", &refusal.element, &refusal.to_string(), None);
                    Some(End::Failed)
                }
                Ok(Input::Command(id, command)) => self.obey(id, command),
                Err(_) if failed => {
                    self.say(
                        "error",
                        "pipeline",
                        "the pipeline could not start, and no element gave a reason",
                        None,
                    );
                    Some(End::Failed)
                }
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    failed = true;
                    None
                }
            };
            if let Some(end) = end {
                return end;
            }
            let now = Instant::now();
            if self.stopping.is_some_and(|until| now >= until) {
                return End::Stopped;
            }
            if now >= next_tick {
                next_tick = now + TICK;
                self.watch_flow();
                self.note();
            }
        }
    }

    /// Handles a message of the pipeline.
    fn hear(&mut self, message: &gst::Message) -> Option<End> {
        use gst::MessageView;
        let from = message
            .src()
            .map(|source| source.name().to_string())
            .unwrap_or_default();
        match message.view() {
            MessageView::Error(error) => {
                let text = error.error().to_string();
                if self.stopping.is_some() {
                    // Elements report errors when their peer ends first; the stop continues.
                    self.say("warning", &from, &text, error.debug().as_deref());
                    return Some(End::Stopped);
                }
                self.say("error", &from, &text, error.debug().as_deref());
                return Some(End::Failed);
            }
            MessageView::Warning(warning) => {
                self.say(
                    "warning",
                    &from,
                    &warning.error().to_string(),
                    warning.debug().as_deref(),
                );
            }
            MessageView::Info(info) => {
                self.say("info", &from, &info.error().to_string(), info.debug().as_deref());
            }
            MessageView::Eos(_) => {
                self.say("eos", &from, "end of stream", None);
                let troubles: Vec<String> = self
                    .recordings
                    .iter()
                    .filter_map(|one| one.check().err())
                    .collect();
                for trouble in &troubles {
                    self.say("warning", "record", trouble, None);
                }
                if troubles.is_empty() {
                    self.mouth.say(&Word::Finished);
                }
                return Some(if self.stopping.is_some() {
                    End::Stopped
                } else {
                    End::Eos
                });
            }
            MessageView::StateChanged(change) => self.state(change.current()),
            MessageView::Latency(_) => {
                self.pipeline.recalculate_latency().ok();
            }
            MessageView::ClockLost(_) if self.target == gst::State::Playing => {
                self.pipeline.set_state(gst::State::Paused).ok();
                self.pipeline.set_state(gst::State::Playing).ok();
            }
            // GStreamer's manual requires applications to pause while buffering; a live source is never paused.
            MessageView::Buffering(buffering)
                if self.stopping.is_none()
                    && self.target == gst::State::Playing
                    && self.clockwork.live != Some(true) =>
            {
                let wanted = if buffering.percent() < 100 {
                    gst::State::Paused
                } else {
                    gst::State::Playing
                };
                self.pipeline.set_state(wanted).ok();
            }
            // An end of stream passes only while the pipeline plays.
            MessageView::RequestState(request) if self.stopping.is_none() => {
                self.pipeline.set_state(request.requested_state()).ok();
            }
            MessageView::Qos(qos) => {
                let (_, dropped) = qos.stats();
                if let Ok(dropped) = u64::try_from(dropped.value()) {
                    let count = self.late.entry(from).or_default();
                    *count = dropped.max(*count);
                }
            }
            MessageView::Element(element) => {
                if let Some(structure) = element.structure() {
                    self.say("element", &from, &structure.to_string(), None);
                }
            }
            _ => {}
        }
        None
    }

    fn say(&self, kind: &str, element: &str, message: &str, debug: Option<&str>) {
        self.mouth.say(&Word::Said {
            kind: kind.to_owned(),
            element: element.to_owned(),
            message: message.to_owned(),
            debug: debug.map(str::to_owned),
        });
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.mouth.say(&Word::Phase(phase));
    }

    fn state(&mut self, state: gst::State) {
        if self.stopping.is_some() || state != self.target {
            return;
        }
        match state {
            gst::State::Playing => self.enter(Phase::Playing),
            gst::State::Paused => self.enter(Phase::Paused),
            _ => {}
        }
    }

    /// Tells when a sink gets no data any more, and when it does again.
    fn watch_flow(&mut self) {
        let plays = matches!(self.phase, Phase::Playing | Phase::Stalled) && self.stopping.is_none();
        self.meters.tick(plays);
        let (owed, idle) = self.meters.shortfall(STALLED_AFTER);
        if self.clockwork.live == Some(true) {
            self.owed = self.owed.max(owed);
        }
        let (phase, kind, severity) = match (self.phase, &idle) {
            (Phase::Playing, Some(_)) if plays => (Phase::Stalled, "pipeline_stalled", Severity::Warning),
            (Phase::Stalled, None) if plays => (Phase::Playing, "pipeline_flows", Severity::Info),
            _ => return,
        };
        if let Some(sink) = &idle {
            let seconds = STALLED_AFTER.as_secs();
            self.say("warning", sink, &format!("no data for {seconds} s"), None);
        }
        self.enter(phase);
        self.mouth.say(&Word::Event {
            kind: kind.to_owned(),
            severity,
            data: json!({"element": idle}),
        });
    }

    /// Carries out a command.
    fn obey(&mut self, id: u64, command: Command) -> Option<End> {
        let answer = match command {
            Command::Stop { grace } if grace.is_zero() => return Some(End::Stopped),
            Command::Stop { grace } => {
                if self.stopping.is_none() {
                    self.enter(Phase::Stopping);
                    self.stopping = Some(Instant::now() + grace);
                    // A pipeline that is paused or buffering does not pass on the end of stream.
                    self.pipeline.set_state(gst::State::Playing).ok();
                    end_of_stream(&self.pipeline);
                }
                Ok(Value::Null)
            }
            Command::Pause | Command::Resume if self.stopping.is_some() => {
                Err(ToolError::busy("the pipeline is being stopped"))
            }
            Command::Pause => self.change(gst::State::Paused),
            Command::Resume => self.change(gst::State::Playing),
            Command::Refresh => {
                self.note();
                Ok(Value::Null)
            }
            Command::Set {
                element,
                property,
                value,
            } => set(&self.policy, &self.pipeline, &element, &property, &value)
                .and_then(|changed| Ok(serde_json::to_value(changed)?)),
            Command::Record { .. } | Command::StopRecording { .. } if self.stopping.is_some() => {
                Err(ToolError::busy("the pipeline is being stopped"))
            }
            Command::Record { path } => {
                let recording = Recording::start(
                    &self.policy,
                    &self.pipeline,
                    path,
                    &self.headers,
                    self.failures.clone(),
                );
                recording.map(|recording| {
                    self.recordings.push(recording);
                    Value::Null
                })
            }
            Command::StopRecording { path } => match self.stop_recording(id, path) {
                Ok(()) => return None,
                Err(error) => Err(error),
            },
            // These are carried out aside.
            Command::Picture { .. } | Command::Draw { .. } => return None,
        };
        self.mouth.say(&Word::Answer { id, answer });
        None
    }

    fn change(&mut self, state: gst::State) -> Result<Value, ToolError> {
        self.target = state;
        let changed = self.pipeline.set_state(state);
        changed.map_err(|error| {
            ToolError::new(
                "PipelineError",
                format!("cannot change the pipeline's state: {error}"),
            )
        })?;
        Ok(Value::Null)
    }

    /// Finishes a recording aside, because the rest of the pipeline goes on. It is answered when the file is finished.
    fn stop_recording(&mut self, id: u64, path: Option<PathBuf>) -> Result<(), ToolError> {
        let is_meant = |recording: &Recording| path.as_deref().is_none_or(|path| recording.path() == path);
        let mut found = (0..self.recordings.len()).filter(|at| is_meant(&self.recordings[*at]));
        let (Some(at), None) = (found.next(), found.next()) else {
            let paths: Vec<String> = self
                .recordings
                .iter()
                .map(|one| one.path().display().to_string())
                .collect();
            return Err(ToolError::bad_args(if paths.is_empty() {
                "no recording is running".to_owned()
            } else {
                format!(
                    "`path` must be one of the running recordings: {}",
                    paths.join(", ")
                )
            }));
        };
        let recording = self.recordings.remove(at);
        let (pipeline, mouth) = (self.pipeline.clone(), self.mouth.clone());
        let finish = move || {
            let path = recording.path().to_owned();
            let trouble = recording.stop(&pipeline).err();
            let answer = serde_json::to_value(RecordedFile { path, trouble }).map_err(ToolError::from);
            mouth.say(&Word::Answer { id, answer });
        };
        let finishing = std::thread::Builder::new().spawn(finish);
        finishing.map(drop).map_err(|error| {
            ToolError::busy(format!(
                "cannot start a thread to finish the file; stop_pipeline finishes it: {error}"
            ))
        })
    }

    /// Tells the status of the elements.
    fn note(&mut self) {
        let seconds = |time: Option<gst::ClockTime>| time.map(|time| time.nseconds() as f64 / 1e9);
        let mut latency = gst::query::Latency::new();
        let latency = self.pipeline.query(&mut latency).then(|| latency.result());
        let live = has_live_source(&self.pipeline);
        let clockwork = &mut self.clockwork;
        if let Some(position) = seconds(self.pipeline.query_position()) {
            clockwork.position_s = Some(position);
        }
        clockwork.duration_s = seconds(self.pipeline.query_duration()).or(clockwork.duration_s);
        clockwork.live = live.or(clockwork.live);
        if let Some((_, least, _)) = latency.filter(|_| live == Some(true)) {
            clockwork.latency_ms = Some(least.nseconds() as f64 / 1e6);
        }
        clockwork.flows = self.meters.read();
        clockwork.dropped_frames = self.late.values().sum::<u64>().max(self.owed);
        self.mouth.say(&Word::Clock(clockwork.clone()));
    }
}

/// Tells which states the elements have reached: what a crash is attributed to.
fn trace(mouth: &Mouth, message: &gst::Message, change: &gst::message::StateChanged) {
    let state = match change.current() {
        gst::State::Ready => 2,
        gst::State::Paused => 3,
        gst::State::Playing => 4,
        _ => return,
    };
    if let Some(source) = message.src().filter(|_| change.current() > change.old()) {
        mouth.say(&Word::Reached {
            element: source.name().to_string(),
            state,
        });
    }
}

/// Sends an end of stream to every source, each from a thread of its own. Where no data flows, the event waits for it and
/// holds the state of its element; sent to the pipeline, it would hold the pipeline's, and nothing could set that to NULL.
fn end_of_stream(pipeline: &gst::Pipeline) {
    let mut sources = pipeline.iterate_sources();
    while let Ok(Some(source)) = sources.next() {
        // What sends and receives, such as webrtcbin, counts as a source, too.
        if source.sink_pads().is_empty() {
            source.call_async(|source| {
                source.send_event(gst::event::Eos::new());
            });
        }
    }
}

/// Whether a source is live. Asks the sources, because sinks without clock synchronisation do not report it. `None` if
/// no source answers.
fn has_live_source(pipeline: &gst::Pipeline) -> Option<bool> {
    let mut live = None;
    let mut sources = pipeline.iterate_sources();
    while let Ok(Some(source)) = sources.next() {
        let mut latency = gst::query::Latency::new();
        if source.query(&mut latency) {
            live = Some(live == Some(true) || latency.result().0);
        }
    }
    live
}
