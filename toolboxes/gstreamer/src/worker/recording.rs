//! Recordings of a running pipeline: a branch that comes and goes while the stream goes on.
//!
//! The branch is linked to a tee behind an encoder; where there is none, one is put there while the pad is blocked, which
//! loses no buffer. The branch begins with a key frame and gets an end of stream of its own. Read [`Recording::start`].

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use gst::prelude::*;
use ovos_toolbox_sdk::prelude::ToolError;
use parking_lot::Mutex;

use super::headers::{self, Headers};
use super::tap::{Tap, container, misfit, taps};
use crate::policy::Policy;

/// A branch that writes a file.
pub(super) struct Recording {
    path: PathBuf,
    bin: gst::Bin,
    /// The tee's pad and the branch's.
    links: Vec<(gst::Pad, gst::Pad)>,
    /// Of each stream, whether its first key frame has come.
    begun: Vec<Arc<AtomicBool>>,
    failures: Failures,
}

/// The branches of a pipeline in which something went wrong, such as a full disk, by their names.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures(Arc<Mutex<HashSet<gst::glib::GString>>>);

impl Failures {
    /// Takes down an error of a part. False if the part belongs to no recording; else the error costs the stream nothing.
    pub(super) fn note(&self, part: &gst::Object) -> bool {
        let parents = std::iter::successors(Some(part.clone()), gst::Object::parent);
        let branch = parents
            .map(|object| object.name())
            .find(|name| name.starts_with(NAME));
        let Some(branch) = branch else { return false };
        self.0.lock().insert(branch);
        true
    }

    fn has(&self, branch: &gst::Bin) -> bool {
        self.0.lock().contains(&branch.name())
    }
}

/// How the names of the branches begin.
const NAME: &str = "recording-";
/// How long a pad may take until it can be relinked, which is between two buffers. The pipeline's thread waits for it.
const RELINK: Duration = Duration::from_secs(3);
/// How many bytes may wait to be written: some seconds of a good picture.
const MOST_WAITING: u32 = 32 << 20;
/// How long a recording may take to be taken out of the stream, and its file to be finished then.
const FINISH: Duration = Duration::from_secs(10);

impl Recording {
    /// Begins to record the encoded streams of a pipeline, at most one of video and one of sound. Blocks until they are linked.
    ///
    /// # Errors
    /// There is no encoded stream, no muxer for the file's name, or the policy forbids it.
    pub(super) fn start(
        policy: &Policy,
        pipeline: &gst::Pipeline,
        path: PathBuf,
        headers: &Headers,
        failures: Failures,
    ) -> Result<Self, ToolError> {
        let (extension, muxer) = container(&path)?;
        let taps = taps(pipeline);
        if taps.is_empty() {
            return Err(ToolError::bad_args(
                "this pipeline has no encoded video or sound to record: add an encoder, such as x264enc",
            ));
        }
        let bin = gst::Bin::with_name(&format!("{NAME}{}", uuid::Uuid::new_v4().simple()));
        let (mux, sink) = (make(muxer)?, make("filesink")?);
        if mux.has_property("offset-to-zero") {
            // The others do it by themselves.
            mux.set_property("offset-to-zero", true);
        }
        sink.set_property("location", path.to_str());
        sink.set_property("async", false);
        bin.add_many([&mux, &sink]).map_err(wrong)?;
        mux.link(&sink).map_err(wrong)?;
        let mut ends = Vec::new();
        for tap in &taps {
            let end = entry(&bin, &mux, tap).map_err(wrong)?;
            let end = end.filter(|end| end.query_caps(None).can_intersect(&tap.caps));
            ends.push(end.ok_or_else(|| misfit(extension, tap))?);
        }
        policy
            .examine(bin.upcast_ref())
            .map_err(|refusal| refusal.denial())?;
        pipeline.add(&bin).map_err(wrong)?;
        let mut recording = Self {
            path,
            bin,
            links: Vec::new(),
            begun: Vec::new(),
            failures,
        };
        if recording.bin.sync_state_with_parent().is_err() {
            recording.remove(pipeline);
            return Err(wrong(
                "the file cannot be written; the messages in `pipeline_status` say why",
            ));
        }
        for (tap, end) in taps.into_iter().zip(ends) {
            let linked = tee_behind(pipeline, &tap.pad).and_then(|tee| {
                recording.begun.push(from_key_frame(&end, headers.from(&tap.pad)));
                let branch = tee.request_pad_simple("src_%u")?;
                branch.link(&end).ok()?;
                Some(branch)
            });
            let Some(branch) = linked else {
                let path = recording.path.clone();
                // It is not finished, but removed: it was made for this recording.
                _ = recording.stop(pipeline);
                _ = std::fs::remove_file(path);
                return Err(wrong(format!(
                    "cannot branch off the stream after '{}'",
                    tap.pad.name()
                )));
            };
            recording.links.push((branch, end));
        }
        Ok(recording)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the file has everything since the first key frame of each stream. Known once the end of the stream has gone
    /// through.
    ///
    /// # Errors
    /// It has not, and why.
    pub(super) fn check(&self) -> Result<(), String> {
        if !self.begun.iter().all(|begun| begun.load(Ordering::Relaxed)) {
            return Err(
                "the recording is empty, because no key frame arrived: record for longer, or set the encoder to more key frames, such as \
                 key-int-max=50"
                    .to_owned(),
            );
        }
        if self.failures.has(&self.bin) {
            return Err(
                "an element of the recording failed: see the messages in `pipeline_status`".to_owned(),
            );
        }
        Ok(())
    }

    /// Finishes the file while the stream goes on. Blocks for some seconds at most.
    ///
    /// # Errors
    /// The file is not complete, and why.
    pub(super) fn stop(mut self, pipeline: &gst::Pipeline) -> Result<(), String> {
        if self.links.is_empty() {
            // Nothing has come in, so no end comes either.
            self.remove(pipeline);
            return Err("the recording received no stream".to_owned());
        }
        let (sender, receiver) = sync_channel(1);
        let mut sinks = self.bin.iterate_sinks();
        while let Ok(Some(sink)) = sinks.next() {
            let (Some(pad), sender) = (sink.static_pad("sink"), sender.clone()) else {
                continue;
            };
            pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, move |pad, info| {
                let is_end = info
                    .event()
                    .is_some_and(|event| event.type_() == gst::EventType::Eos);
                if is_end {
                    // The first suffices.
                    _ = sender.try_send(pad.clone());
                }
                gst::PadProbeReturn::Ok
            });
        }
        let mut is_free = true;
        for (branch, end) in self.links.drain(..) {
            let unlink = |branch: &gst::Pad| {
                if let Some(peer) = branch.peer() {
                    // It was linked; nothing else unlinks it.
                    _ = branch.unlink(&peer);
                }
            };
            let unlinked = when_idle(&branch, FINISH, unlink);
            is_free &= unlinked;
            if unlinked && let Some(tee) = branch.parent_element() {
                tee.release_request_pad(&branch);
            }
            // Not from here: the event goes to the end of a queue, which may be full.
            std::thread::spawn(move || end.send_event(gst::event::Eos::new()));
        }
        if !is_free {
            // Without it the stream would end.
            return Err(
                "the recording cannot be detached now; its file is finished when the pipeline stops"
                    .to_owned(),
            );
        }
        let end = receiver.recv_timeout(FINISH);
        if let Ok(sink) = &end {
            // The end is on its way into the sink, which writes what it has kept so far only then. The lock is had when it has.
            drop(sink.stream_lock());
        }
        self.remove(pipeline);
        end.map_err(|_| {
            format!(
                "the file was not finished within {} s; it may end early",
                FINISH.as_secs()
            )
        })?;
        self.check()
    }

    fn remove(&self, pipeline: &gst::Pipeline) {
        // Else the pipeline takes it up again with its own next change of state.
        self.bin.set_locked_state(true);
        self.bin.set_state(gst::State::Null).ok();
        _ = pipeline.remove(&self.bin);
    }
}

fn wrong(error: impl std::fmt::Display) -> ToolError {
    ToolError::new("PipelineError", format!("cannot record: {error}"))
}

fn make(factory: &str) -> Result<gst::Element, ToolError> {
    gst::ElementFactory::make(factory).build().map_err(wrong)
}

/// The way of a stream into the muxer. `None` if the muxer does not take it.
fn entry(bin: &gst::Bin, mux: &gst::Element, tap: &Tap) -> Result<Option<gst::Pad>, gst::glib::BoolError> {
    let queue = gst::ElementFactory::make("queue").build()?;
    // A folder that is too slow costs the recording pictures, never the stream. Not measured in time, which the queue takes
    // to begin at zero: it would leave out the first picture of a recording that begins later.
    queue.set_property_from_str("leaky", "downstream");
    queue.set_property("max-size-buffers", 0_u32);
    queue.set_property("max-size-time", 0_u64);
    queue.set_property("max-size-bytes", MOST_WAITING);
    let parser = match tap.parser {
        Some(parser) => gst::ElementFactory::make(parser).build()?,
        // The muxer gives a pad of the right kind to what says what it is.
        None => gst::ElementFactory::make("capsfilter")
            .property("caps", gst::Caps::new_empty_simple(tap.name()))
            .build()?,
    };
    bin.add_many([&queue, &parser])?;
    queue.link(&parser)?;
    if parser.link(mux).is_err() {
        return Ok(None);
    }
    // What goes wrong behind it, such as a full disk, is not told to the stream.
    let first = match gst::ElementFactory::make("errorignore").build() {
        Ok(guard) => {
            bin.add(&guard)?;
            guard.link(&queue)?;
            guard
        }
        Err(_) => queue,
    };
    let Some(inner) = first.static_pad("sink") else {
        return Ok(None);
    };
    let end = gst::GhostPad::builder_with_target(&inner)?
        .name(if tap.is_sound() { "sound" } else { "picture" })
        .build();
    bin.add_pad(&end)?;
    Ok(Some(end.upcast()))
}

/// The tee behind a pad, which is put there if there is none.
fn tee_behind(pipeline: &gst::Pipeline, pad: &gst::Pad) -> Option<gst::Element> {
    let next = pad.peer()?;
    let behind = next.parent_element()?;
    if behind.factory().is_some_and(|factory| factory.name() == "tee") {
        return Some(behind);
    }
    let tee = gst::ElementFactory::make("tee")
        .property("allow-not-linked", true)
        .build()
        .ok()?;
    pipeline.add(&tee).ok()?;
    let (entry, exit) = (tee.static_pad("sink")?, tee.request_pad_simple("src_%u")?);
    tee.sync_state_with_parent().ok()?;
    let relink = move |pad: &gst::Pad| {
        // Three pads that were linked or are new; a failure would show as an error of the stream.
        _ = pad.unlink(&next);
        _ = exit.link(&next);
        _ = pad.link(&entry);
    };
    when_idle(pad, RELINK, relink).then_some(tee)
}

/// Does something while no buffer goes through a pad. False if that does not come in time: it is done later then.
fn when_idle(pad: &gst::Pad, at_most: Duration, act: impl FnOnce(&gst::Pad) + Send + 'static) -> bool {
    let (sender, receiver) = sync_channel(1);
    let act = Mutex::new(Some(act));
    pad.add_probe(gst::PadProbeType::IDLE, move |pad, _| {
        let act = act.lock().take();
        if let Some(act) = act {
            act(pad);
            // Nothing waits any more after the time limit.
            _ = sender.try_send(());
        }
        gst::PadProbeReturn::Remove
    });
    receiver.recv_timeout(at_most).is_ok()
}

/// Lets nothing through before the first key frame, and asks the encoder for one, which may have none soon. It asks again
/// after 10, 40, 130 frames and so on: an encoder takes two requests in short order for one, and x265enc makes a picture that is
/// no key frame when it is asked, and the next key frame only as many frames later as its `key-int-max`. `headers` come before
/// the first key frame. Returns what becomes true with it.
fn from_key_frame(pad: &gst::Pad, headers: Vec<u8>) -> Arc<AtomicBool> {
    const PATIENCE: u64 = 10;
    let (begun, dropped, ask_at) = (Arc::<AtomicBool>::default(), AtomicU64::new(0), AtomicU64::new(0));
    let has_begun = Arc::clone(&begun);
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let is_delta = info
            .buffer()
            .is_some_and(|buffer| buffer.flags().contains(gst::BufferFlags::DELTA_UNIT));
        if has_begun.load(Ordering::Relaxed) {
            return gst::PadProbeReturn::Ok;
        }
        if !is_delta {
            has_begun.store(true, Ordering::Relaxed);
            if let (Some(caps), Some(buffer)) = (pad.current_caps(), info.buffer_mut()) {
                headers::prepend(&headers, &caps, buffer);
            }
            return gst::PadProbeReturn::Ok;
        }
        let missed = dropped.fetch_add(1, Ordering::Relaxed);
        if missed == ask_at.load(Ordering::Relaxed) {
            ask_at.store(3 * missed + PATIENCE, Ordering::Relaxed);
            let request = gst_video::UpstreamForceKeyUnitEvent::builder().all_headers(true);
            pad.push_event(request.build());
        }
        // Not `Drop`: the bindings have freed it by then, which GStreamer before 1.24.12 does not handle.
        gst::PadProbeReturn::Handled
    });
    begun
}
