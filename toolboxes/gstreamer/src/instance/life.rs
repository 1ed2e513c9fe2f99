//! One run of a pipeline, from its start to its end.
//!
//! Handles the pipeline's messages and the commands while it runs; [`Worker`] decides whether it is started again.
//! Everything here runs on the instance's thread. Read [`Worker::live`].

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

use gst::prelude::*;
use ovos_toolbox_sdk::prelude::*;

use super::build::Built;
use super::change::set;
use super::command::{Command, Input};
use super::meters::Meters;
use super::view::Phase;
use super::worker::{End, Worker};
use crate::policy;

/// Interval of status updates.
const TICK: Duration = Duration::from_millis(500);
/// How long a sink may get no data until the pipeline counts as stalled.
const STALLED_AFTER: Duration = Duration::from_secs(5);

impl Worker {
    /// Runs a pipeline until it ends, fails or is stopped.
    pub(super) fn live(&mut self, made: Built) -> End {
        let running = Running(made.pipeline);
        let pipeline = &running.0;
        {
            let mut view = self.instance.lock();
            view.devices = made.uses.devices.iter().cloned().collect();
            view.writes = made.uses.writes.iter().cloned().collect();
        }
        // Discards the inputs left over from the previous run.
        while self.inputs.try_recv().is_ok_and(|input| match input {
            Input::Command(command) => {
                if matches!(command, Command::Stop { .. }) {
                    // Not `halt`, which would put another command into this queue, forever.
                    self.instance.mark_halted();
                } else {
                    command.refuse("it is being started");
                }
                true
            }
            Input::Message(_) | Input::Refused(_) => true,
        }) {}
        self.instance.clear_urgent();
        let meters = Meters::of(pipeline);
        self.listen(pipeline);
        self.instance.remember_pipeline(pipeline);
        self.instance.enter(Phase::Starting);
        let end = self.play(pipeline, &meters);
        if matches!(end, End::Stopped { finished: false }) {
            self.busy(|| unblock(pipeline));
        }
        self.busy(|| pipeline.set_state(gst::State::Null)).ok();
        self.note(pipeline, &meters);
        self.instance.forget_pipeline();
        end
    }

    fn listen(&self, pipeline: &gst::Pipeline) {
        let instance = Arc::clone(&self.instance);
        policy::watch(pipeline, &self.table.policy, move |refusal| {
            instance.post(Input::Refused(refusal));
        });
        let instance = Arc::clone(&self.instance);
        if let Some(bus) = pipeline.bus() {
            let own = pipeline.downgrade();
            bus.set_sync_handler(move |_, message| {
                let of_pipeline = || {
                    own.upgrade()
                        .is_some_and(|own| message.src() == Some(own.upcast_ref()))
                };
                let wanted = match message.type_() {
                    gst::MessageType::StateChanged => of_pipeline(),
                    gst::MessageType::Error
                    | gst::MessageType::Warning
                    | gst::MessageType::Info
                    | gst::MessageType::Eos
                    | gst::MessageType::Latency
                    | gst::MessageType::ClockLost
                    | gst::MessageType::Buffering
                    | gst::MessageType::RequestState
                    | gst::MessageType::Qos
                    | gst::MessageType::Element => true,
                    _ => false,
                };
                if wanted {
                    instance.post(Input::Message(message.clone()));
                }
                gst::BusSyncReply::Drop
            });
        }
    }

    fn play(&mut self, pipeline: &gst::Pipeline, meters: &Meters) -> End {
        let mut run = Run {
            target: gst::State::Playing,
            stopping: None,
            finished: false,
        };
        let mut failed = self.busy(|| pipeline.set_state(gst::State::Playing)).is_err();
        let mut next_tick = Instant::now() + TICK;
        loop {
            if self.instance.is_halted() {
                return End::Stopped { finished: false };
            }
            let until = run
                .stopping
                .map_or(next_tick, |until: Instant| until.min(next_tick));
            let input = match self.instance.take_urgent() {
                Some(urgent) => Ok(urgent),
                None if failed => self.inputs.try_recv().map_err(|_| RecvTimeoutError::Timeout),
                None => self
                    .inputs
                    .recv_timeout(until.saturating_duration_since(Instant::now())),
            };
            match input {
                Ok(Input::Message(message)) => {
                    if let Some(end) = self.hear(pipeline, &message, &mut run) {
                        return end;
                    }
                }
                Ok(Input::Refused(refusal)) => {
                    self.fail(&refusal.element, &refusal.to_string(), None);
                    return End::Failed;
                }
                Ok(Input::Command(command)) => {
                    if let Some(end) = self.obey(pipeline, meters, command, &mut run) {
                        return end;
                    }
                }
                Err(RecvTimeoutError::Timeout) if failed => {
                    self.fail("pipeline", "it cannot be started, and no element says why", None);
                    return End::Failed;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => failed = true,
            }
            let now = Instant::now();
            if run.stopping.is_some_and(|until| now >= until) {
                return End::Stopped {
                    finished: run.finished,
                };
            }
            if now >= next_tick {
                next_tick = now + TICK;
                self.watch_flow(meters, &run);
                self.note(pipeline, meters);
                self.pass();
            }
        }
    }

    /// Handles a message of the pipeline.
    fn hear(&mut self, pipeline: &gst::Pipeline, message: &gst::Message, run: &mut Run) -> Option<End> {
        use gst::MessageView;
        let from = message
            .src()
            .map(|source| source.name().to_string())
            .unwrap_or_default();
        match message.view() {
            MessageView::Error(error) => {
                let text = error.error().to_string();
                if run.stopping.is_some() {
                    // Elements report errors when their peer ends first; the stop continues.
                    self.instance
                        .lock()
                        .say("warning", &from, &text, error.debug().as_deref());
                    return Some(End::Stopped { finished: false });
                }
                self.fail(&from, &text, error.debug().as_deref());
                return Some(End::Failed);
            }
            MessageView::Warning(warning) => {
                let text = warning.error().to_string();
                self.instance
                    .lock()
                    .say("warning", &from, &text, warning.debug().as_deref());
            }
            MessageView::Info(info) => {
                let text = info.error().to_string();
                self.instance
                    .lock()
                    .say("info", &from, &text, info.debug().as_deref());
            }
            MessageView::Eos(_) => {
                self.instance.lock().say("eos", &from, "end of stream", None);
                return Some(if run.stopping.is_some() {
                    End::Stopped { finished: true }
                } else {
                    End::Eos
                });
            }
            MessageView::StateChanged(change) => self.state(change.current(), run),
            MessageView::Latency(_) => {
                self.busy(|| pipeline.recalculate_latency()).ok();
            }
            MessageView::ClockLost(_) if run.target == gst::State::Playing => {
                self.busy(|| pipeline.set_state(gst::State::Paused)).ok();
                self.busy(|| pipeline.set_state(gst::State::Playing)).ok();
            }
            MessageView::Buffering(buffering)
                if run.stopping.is_none() && run.target == gst::State::Playing =>
            {
                // GStreamer's manual requires applications to pause while buffering; a live source is never paused.
                let live = self.instance.lock().clockwork.live == Some(true);
                if !live {
                    let wanted = if buffering.percent() < 100 {
                        gst::State::Paused
                    } else {
                        gst::State::Playing
                    };
                    self.busy(|| pipeline.set_state(wanted)).ok();
                }
            }
            // An end of stream passes only while the pipeline plays.
            MessageView::RequestState(request) if run.stopping.is_none() => {
                let state = request.requested_state();
                self.busy(|| pipeline.set_state(state)).ok();
            }
            MessageView::Qos(qos) => {
                let (_, dropped) = qos.stats();
                if let Ok(dropped) = u64::try_from(dropped.value()) {
                    let mut view = self.instance.lock();
                    let known = view.clockwork.late.entry(from).or_default();
                    *known = dropped.max(*known);
                }
            }
            MessageView::Element(element) => {
                if let Some(structure) = element.structure() {
                    self.instance
                        .lock()
                        .say("element", &from, &structure.to_string(), None);
                }
            }
            _ => {}
        }
        None
    }

    fn state(&self, state: gst::State, run: &Run) {
        if run.stopping.is_some() || state != run.target {
            return;
        }
        match state {
            gst::State::Playing => {
                let first = {
                    let mut view = self.instance.lock();
                    view.playing_since.replace(Instant::now()).is_none()
                };
                self.instance.enter(Phase::Playing);
                if first {
                    let restarts = self.instance.lock().restarts;
                    self.table.tell(
                        "pipeline_started",
                        Severity::Info,
                        &self.instance,
                        json!({"restarts": restarts}),
                    );
                }
            }
            gst::State::Paused => self.instance.enter(Phase::Paused),
            _ => {}
        }
    }

    /// Tells when a sink gets no data any more, and when it does again.
    fn watch_flow(&self, meters: &Meters, run: &Run) {
        let phase = self.instance.lock().phase;
        let plays = matches!(phase, Phase::Playing | Phase::Stalled) && run.stopping.is_none();
        meters.tick(plays);
        let (owed, idle) = meters.shortfall(STALLED_AFTER);
        let mut view = self.instance.lock();
        if view.clockwork.live == Some(true) {
            view.clockwork.owed = view.clockwork.owed.max(owed);
        }
        drop(view);
        let (phase, kind, severity) = match (phase, &idle) {
            (Phase::Playing, Some(_)) if plays => (Phase::Stalled, "pipeline_stalled", Severity::Warning),
            (Phase::Stalled, None) if plays => (Phase::Playing, "pipeline_flows", Severity::Info),
            _ => return,
        };
        if let Some(sink) = &idle {
            let seconds = STALLED_AFTER.as_secs();
            let why = format!("no data has come to it for {seconds} s");
            self.instance.lock().say("warning", sink, &why, None);
        }
        self.instance.enter(phase);
        self.table
            .tell(kind, severity, &self.instance, json!({"element": idle}));
    }

    /// Executes a command.
    fn obey(
        &mut self,
        pipeline: &gst::Pipeline,
        meters: &Meters,
        command: Command,
        run: &mut Run,
    ) -> Option<End> {
        match command {
            Command::Stop { grace } => {
                if grace.is_zero() {
                    return Some(End::Stopped { finished: false });
                }
                if run.stopping.is_some() {
                    return None;
                }
                self.instance.enter(Phase::Stopping);
                run.stopping = Some(Instant::now() + grace);
                // A pipeline that is paused or buffering does not pass on the end of stream.
                self.busy(|| pipeline.set_state(gst::State::Playing)).ok();
                end_of_stream(pipeline);
            }
            Command::Pause(_) | Command::Resume(_) if run.stopping.is_some() => {
                command.refuse("it is being stopped");
            }
            Command::Pause(reply) => {
                run.target = gst::State::Paused;
                _ = reply.send(self.change(pipeline, gst::State::Paused));
            }
            Command::Resume(reply) => {
                run.target = gst::State::Playing;
                _ = reply.send(self.change(pipeline, gst::State::Playing));
            }
            Command::Refresh(reply) => {
                self.note(pipeline, meters);
                _ = reply.send(());
            }
            Command::Set {
                element,
                property,
                value,
                reply,
            } => {
                let changed = self.busy(|| set(&self.table.policy, pipeline, &element, &property, &value));
                _ = reply.send(changed);
            }
        }
        None
    }

    fn change(&self, pipeline: &gst::Pipeline, state: gst::State) -> Result<(), ToolError> {
        match self.busy(|| pipeline.set_state(state)) {
            Ok(_) => Ok(()),
            Err(error) => Err(ToolError::new(
                "PipelineError",
                format!("change the state: {error}"),
            )),
        }
    }

    /// Updates the status from the elements.
    fn note(&self, pipeline: &gst::Pipeline, meters: &Meters) {
        let seconds = |time: Option<gst::ClockTime>| time.map(|time| time.nseconds() as f64 / 1e9);
        let (position, duration, latency) = self.busy(|| {
            let mut latency = gst::query::Latency::new();
            let asked = pipeline.query(&mut latency);
            (
                seconds(pipeline.query_position()),
                seconds(pipeline.query_duration()),
                asked.then(|| latency.result()),
            )
        });
        let live = self.busy(|| has_live_source(pipeline));
        let flows = meters.read();
        let mut view = self.instance.lock();
        let clockwork = &mut view.clockwork;
        if let Some(position) = position {
            clockwork.position_s = Some(position);
        }
        clockwork.duration_s = duration.or(clockwork.duration_s);
        clockwork.live = live.or(clockwork.live);
        if let Some((_, least, _)) = latency.filter(|_| live == Some(true)) {
            clockwork.latency_ms = Some(least.nseconds() as f64 / 1e6);
        }
        clockwork.flows = flows;
        clockwork.dropped_frames = clockwork.late.values().sum::<u64>().max(clockwork.owed);
    }

    /// Records that this thread is inside an element.
    fn busy<R>(&self, work: impl FnOnce() -> R) -> R {
        self.instance.lock().busy_since = Some(Instant::now());
        let result = work();
        self.instance.lock().busy_since = None;
        result
    }
}

/// Sets a pipeline to NULL when dropped, even after a panic: a pipeline freed in PLAYING would crash its own threads.
struct Running(gst::Pipeline);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.set_state(gst::State::Null).ok();
        if let Some(bus) = self.0.bus() {
            bus.set_flushing(true);
            bus.unset_sync_handler();
        }
    }
}

/// The state of one run.
struct Run {
    target: gst::State,
    /// Deadline of the end of stream.
    stopping: Option<Instant>,
    finished: bool,
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

/// Sets everything behind the sources to NULL, the sinks first. Then no thread of the pipeline waits in a sink any more, an end
/// of stream that waits for it goes on, and the pipeline can be set to NULL.
fn unblock(pipeline: &gst::Pipeline) {
    let mut elements = pipeline.iterate_sorted();
    while let Ok(Some(element)) = elements.next() {
        if !element.sink_pads().is_empty() {
            element.set_state(gst::State::Null).ok();
        }
    }
}

/// Whether a source is live. Asks the sources, because sinks without clock synchronisation do not report it. `None` if
/// no source answers.
fn has_live_source(pipeline: &gst::Pipeline) -> Option<bool> {
    let mut known = None;
    let mut sources = pipeline.iterate_sources();
    while let Ok(Some(source)) = sources.next() {
        let mut latency = gst::query::Latency::new();
        if source.query(&mut latency) {
            known = Some(known == Some(true) || latency.result().0);
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_panic_leaves_no_pipeline_playing() {
        gst::init().unwrap();
        let pipeline = gst::parse::launch("fakesrc is-live=true ! fakesink").unwrap();
        let pipeline = pipeline.downcast::<gst::Pipeline>().unwrap();
        let own = pipeline.clone();
        catch_unwind(AssertUnwindSafe(move || {
            let running = Running(own);
            running.0.set_state(gst::State::Playing).unwrap();
            panic!("as an element's property may");
        }))
        .unwrap_err();
        assert_eq!(pipeline.current_state(), gst::State::Null);
    }
}
