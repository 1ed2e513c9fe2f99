//! Recordings of a running pipeline: a branch that comes and goes while the stream goes on.
//!
//! The branch is linked to a tee behind an encoder; where there is none, one is put there while the pad is blocked, which
//! loses no buffer. The branch begins with a key frame and gets an end of stream of its own. Read [`Recording::start`].

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gst::prelude::*;
use ovos_toolbox_sdk::prelude::ToolError;

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
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(branch);
        true
    }

    fn has(&self, branch: &gst::Bin) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&branch.name())
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

/// What may be recorded as it is: the caps, and what has to parse it before a muxer.
const ENCODED: [(&str, &str); 10] = [
    ("video/x-h264", "h264parse"),
    ("video/x-h265", "h265parse"),
    ("video/x-vp8", "identity"),
    ("video/x-vp9", "identity"),
    ("video/x-av1", "identity"),
    ("image/jpeg", "identity"),
    ("audio/mpeg", "aacparse"),
    ("audio/x-opus", "identity"),
    ("audio/x-vorbis", "identity"),
    ("audio/x-flac", "flacparse"),
];

impl Recording {
    /// Begins to record the encoded streams of a pipeline, at most one of video and one of sound. Blocks until they are linked.
    ///
    /// # Errors
    /// There is no encoded stream, no muxer for the file's name, or the policy forbids it.
    pub(super) fn start(
        policy: &Policy,
        pipeline: &gst::Pipeline,
        path: PathBuf,
        failures: Failures,
    ) -> Result<Self, ToolError> {
        let muxer = muxer(&path)?;
        let taps = taps(pipeline);
        if taps.is_empty() {
            return Err(ToolError::bad_args(
                "this pipeline has no encoded video or sound to record: add an encoder, such as x264enc",
            ));
        }
        let wrong = |error: &dyn std::fmt::Display| {
            ToolError::new("PipelineError", format!("cannot record: {error}"))
        };
        let bin = gst::Bin::with_name(&format!("{NAME}{}", uuid::Uuid::new_v4().simple()));
        let make = |factory: &str| {
            gst::ElementFactory::make(factory)
                .build()
                .map_err(|error| wrong(&error))
        };
        let (mux, sink) = (make(muxer)?, make("filesink")?);
        if mux.has_property("offset-to-zero") {
            // The others do it by themselves.
            mux.set_property("offset-to-zero", true);
        }
        sink.set_property("location", path.to_str());
        sink.set_property("async", false);
        bin.add_many([&mux, &sink]).map_err(|error| wrong(&error))?;
        mux.link(&sink).map_err(|error| wrong(&error))?;
        let mut ends = Vec::new();
        for (_, parser) in &taps {
            let (queue, parser) = (make("queue")?, make(parser)?);
            // A folder that is too slow costs the recording pictures, never the stream. Not measured in time, which the queue takes
            // to begin at zero: it would leave out the first picture of a recording that begins later.
            queue.set_property_from_str("leaky", "downstream");
            queue.set_property("max-size-buffers", 0_u32);
            queue.set_property("max-size-time", 0_u64);
            queue.set_property("max-size-bytes", MOST_WAITING);
            bin.add_many([&queue, &parser]).map_err(|error| wrong(&error))?;
            gst::Element::link_many([&queue, &parser, &mux]).map_err(|error| wrong(&error))?;
            // What goes wrong behind it, such as a full disk, is not told to the stream.
            let entry = match gst::ElementFactory::make("errorignore").build() {
                Ok(guard) => {
                    bin.add(&guard).map_err(|error| wrong(&error))?;
                    guard.link(&queue).map_err(|error| wrong(&error))?;
                    guard
                }
                Err(_) => queue,
            };
            let inner = entry
                .static_pad("sink")
                .ok_or_else(|| wrong(&"a queue has no pad"))?;
            let end = gst::GhostPad::with_target(&inner).map_err(|error| wrong(&error))?;
            bin.add_pad(&end).map_err(|error| wrong(&error))?;
            ends.push(end.upcast::<gst::Pad>());
        }
        policy
            .examine(bin.upcast_ref())
            .map_err(|refusal| refusal.denial())?;
        pipeline.add(&bin).map_err(|error| wrong(&error))?;
        let mut recording = Self {
            path,
            bin,
            links: Vec::new(),
            begun: Vec::new(),
            failures,
        };
        if recording.bin.sync_state_with_parent().is_err() {
            recording.stop(pipeline);
            return Err(wrong(
                &"the file cannot be written; the messages in `pipeline_status` say why",
            ));
        }
        for ((pad, _), end) in taps.into_iter().zip(ends) {
            let linked = tee_behind(pipeline, &pad).and_then(|tee| {
                recording.begun.push(from_key_frame(&end));
                let branch = tee.request_pad_simple("src_%u")?;
                branch.link(&end).ok()?;
                Some(branch)
            });
            let Some(branch) = linked else {
                recording.stop(pipeline);
                return Err(wrong(&format!("no branch can be put behind '{}'", pad.name())));
            };
            recording.links.push((branch, end));
        }
        Ok(recording)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file has everything since the first key frame of each stream. Known once the end of the stream has gone through.
    pub(super) fn is_whole(&self) -> bool {
        !self.begun.is_empty()
            && self.begun.iter().all(|begun| begun.load(Ordering::Relaxed))
            && !self.failures.has(&self.bin)
    }

    /// Finishes the file while the stream goes on. Returns whether the end of the stream has gone through it in time and the file is
    /// whole. Blocks for some seconds at most.
    pub(super) fn stop(mut self, pipeline: &gst::Pipeline) -> bool {
        if self.links.is_empty() {
            // Nothing has come in, so no end comes either.
            self.remove(pipeline);
            return false;
        }
        let (tell, told) = sync_channel(1);
        let mut sinks = self.bin.iterate_sinks();
        while let Ok(Some(sink)) = sinks.next() {
            let (Some(pad), tell) = (sink.static_pad("sink"), tell.clone()) else {
                continue;
            };
            pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, move |pad, info| {
                let is_end = info
                    .event()
                    .is_some_and(|event| event.type_() == gst::EventType::Eos);
                if is_end {
                    // The first suffices.
                    _ = tell.try_send(pad.clone());
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
            // The stream still goes through it: without it the stream would end. The file is finished with the pipeline.
            return false;
        }
        let end = told.recv_timeout(FINISH);
        if let Ok(sink) = &end {
            // The end is on its way into the sink, which writes what it has kept so far only then. The lock is had when it has.
            drop(sink.stream_lock());
        }
        self.remove(pipeline);
        end.is_ok() && self.is_whole()
    }

    fn remove(&self, pipeline: &gst::Pipeline) {
        // Else the pipeline takes it up again with its own next change of state.
        self.bin.set_locked_state(true);
        self.bin.set_state(gst::State::Null).ok();
        _ = pipeline.remove(&self.bin);
    }
}

/// The muxer for a file's name.
fn muxer(path: &Path) -> Result<&'static str, ToolError> {
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    Ok(match extension {
        "mkv" => "matroskamux",
        "webm" => "webmmux",
        "mp4" => "mp4mux",
        "mov" => "qtmux",
        "ts" => "mpegtsmux",
        _ => {
            let name = path.display();
            return Err(ToolError::bad_args(format!(
                "{name} does not name a container: expected a file name that ends in .mkv, .mp4, .mov, .ts or .webm"
            )));
        }
    })
}

/// The pads behind which the encoded streams are, one of video and one of sound, and the parser of each.
fn taps(pipeline: &gst::Pipeline) -> Vec<(gst::Pad, &'static str)> {
    let mut found: Vec<(gst::Pad, &'static str, bool)> = Vec::new();
    let mut elements = pipeline.iterate_recurse();
    while let Ok(Some(element)) = elements.next() {
        let klass = element
            .factory()
            .and_then(|factory| factory.metadata("klass").map(str::to_owned));
        if element.parent().as_ref() != Some(pipeline.upcast_ref())
            || klass.is_none_or(|klass| !klass.contains("Encoder"))
        {
            continue;
        }
        for pad in element.src_pads() {
            let caps = pad.current_caps();
            let name = caps
                .as_ref()
                .and_then(|caps| caps.structure(0))
                .map(|structure| structure.name().as_str());
            let known = ENCODED.iter().find(|(caps, _)| Some(*caps) == name);
            let Some((caps, parser)) = known.filter(|_| pad.is_linked()) else {
                continue;
            };
            let is_sound = caps.starts_with("audio");
            if found.iter().all(|(_, _, other)| *other != is_sound) {
                found.push((pad, *parser, is_sound));
            }
        }
    }
    found.into_iter().map(|(pad, parser, _)| (pad, parser)).collect()
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
    let (tell, told) = sync_channel(1);
    let act = std::sync::Mutex::new(Some(act));
    pad.add_probe(gst::PadProbeType::IDLE, move |pad, _| {
        let act = act
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        if let Some(act) = act {
            act(pad);
            // Nothing waits any more after the time limit.
            _ = tell.try_send(());
        }
        gst::PadProbeReturn::Remove
    });
    told.recv_timeout(at_most).is_ok()
}

/// Lets nothing through before the first key frame, and asks the encoder for one, which may have none soon. It asks again
/// after some frames: an encoder takes two requests in short order for one. Returns what becomes true with that frame.
fn from_key_frame(pad: &gst::Pad) -> Arc<AtomicBool> {
    /// After how many frames it asks again.
    const PATIENCE: u64 = 10;
    let (begun, dropped) = (Arc::<AtomicBool>::default(), AtomicU64::new(0));
    let has_begun = Arc::clone(&begun);
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let is_delta = info
            .buffer()
            .is_some_and(|buffer| buffer.flags().contains(gst::BufferFlags::DELTA_UNIT));
        if !is_delta || has_begun.load(Ordering::Relaxed) {
            has_begun.store(true, Ordering::Relaxed);
            return gst::PadProbeReturn::Ok;
        }
        if dropped.fetch_add(1, Ordering::Relaxed).is_multiple_of(PATIENCE) {
            let request = gst_video::UpstreamForceKeyUnitEvent::builder().all_headers(true);
            pad.push_event(request.build());
        }
        // Not `Drop`: the bindings have freed it by then, which GStreamer before 1.24.12 does not handle.
        gst::PadProbeReturn::Handled
    });
    begun
}
