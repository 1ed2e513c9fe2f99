//! Counters of a pipeline's data flow.
//!
//! Counts the bytes and buffers that reach each sink, and the frames that leave each video encoder and source. Pad
//! probes count in the threads of the pipeline, without locks. Read [`Meters`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gst::prelude::*;
use parking_lot::{Mutex, MutexGuard};

use crate::report::{Flow, Place};

/// The counters of one pipeline.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    all: Mutex<Vec<Arc<Meter>>>,
}

#[derive(Debug)]
struct Meter {
    element: String,
    factory: String,
    place: Place,
    /// Whether the data ends here: not the sink inside of a source, such as the one for reports to the sender.
    is_end: bool,
    buffers: AtomicU64,
    bytes: AtomicU64,
    /// Where it counts.
    pad: Mutex<Option<gst::glib::WeakRef<gst::Pad>>>,
    /// When the count last grew, and the frames that were due while the pipeline played.
    pace: Mutex<Pace>,
    /// (when, buffers, bytes), oldest first, at most [`WINDOW`] back.
    past: Mutex<VecDeque<(Instant, u64, u64)>>,
}

#[derive(Debug)]
struct Pace {
    counted: u64,
    grown: Instant,
    ticked: Instant,
    due: f64,
}

/// Period over which rates are computed.
const WINDOW: Duration = Duration::from_secs(5);
/// Greatest number of counters; a larger pipeline is counted in part.
const MOST_METERS: usize = 512;

impl Meters {
    /// Counts in the pipeline's elements, including those added later.
    pub(crate) fn of(pipeline: &gst::Pipeline) -> Arc<Self> {
        let meters = Arc::new(Self::default());
        let mut elements = pipeline.iterate_recurse();
        while let Ok(Some(element)) = elements.next() {
            meters.add(&element);
        }
        // The pipeline keeps the meters alive, not the other way around.
        let later = Arc::clone(&meters);
        pipeline.connect_deep_element_added(move |_, _, element| later.add(element));
        meters
    }

    /// Records the present counts, for the rates. `playing`: whether data is due.
    pub(crate) fn tick(&self, playing: bool) {
        let mut all = self.all.lock();
        // A recording comes and goes.
        all.retain(|meter| !meter.is_gone());
        for meter in all.iter() {
            meter.tick(playing);
        }
    }

    /// The frames that live sources owe, and a sink that got nothing for so long.
    pub(crate) fn shortfall(&self, idle: Duration) -> (u64, Option<String>) {
        let all = self.all.lock();
        let owed = all
            .iter()
            .filter(|meter| meter.place == Place::Source)
            .map(|meter| meter.owed())
            .sum();
        let waits = |meter: &&Arc<Meter>| meter.is_end && meter.pace().grown.elapsed() >= idle;
        (owed, all.iter().find(waits).map(|meter| meter.element.clone()))
    }

    /// The present counts.
    pub(crate) fn read(&self) -> Vec<Flow> {
        self.all.lock().iter().map(|meter| meter.flow()).collect()
    }

    fn add(&self, element: &gst::Element) {
        if element.is::<gst::Bin>() {
            return;
        }
        let Some(factory) = element.factory() else { return };
        let klass = factory.metadata("klass").unwrap_or_default();
        let video = klass.contains("Video");
        let place = if element.element_flags().contains(gst::ElementFlags::SINK) {
            Place::Sink
        } else if video && klass.contains("Encoder") {
            Place::Encoder
        } else if video && klass.contains("Source") {
            Place::Source
        } else {
            return;
        };
        let mut all = self.all.lock();
        if all.len() >= MOST_METERS {
            return;
        }
        let meter = Arc::new(Meter {
            element: element.name().to_string(),
            factory: factory.name().to_string(),
            place,
            is_end: place == Place::Sink && is_end(element),
            buffers: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            pad: Mutex::default(),
            pace: Mutex::new(Pace {
                counted: 0,
                grown: Instant::now(),
                ticked: Instant::now(),
                due: 0.0,
            }),
            past: Mutex::default(),
        });
        all.push(Arc::clone(&meter));
        drop(all);
        let wanted = match place {
            Place::Sink => gst::PadDirection::Sink,
            Place::Encoder | Place::Source => gst::PadDirection::Src,
        };
        for pad in element.pads() {
            meter.count(&pad, wanted);
        }
        element.connect_pad_added(move |_, pad| meter.count(pad, wanted));
    }
}

/// Whether everything around a sink is a sink, too.
fn is_end(sink: &gst::Element) -> bool {
    let mut around = std::iter::successors(sink.parent(), gst::Object::parent)
        .filter_map(|object| object.downcast::<gst::Element>().ok());
    around.all(|bin| bin.is::<gst::Pipeline>() || bin.element_flags().contains(gst::ElementFlags::SINK))
}

impl Meter {
    fn count(self: &Arc<Self>, pad: &gst::Pad, wanted: gst::PadDirection) {
        if pad.direction() != wanted {
            return;
        }
        *self.pad.lock() = Some(pad.downgrade());
        let meter = Arc::clone(self);
        pad.add_probe(
            gst::PadProbeType::BUFFER | gst::PadProbeType::BUFFER_LIST,
            move |_, info| {
                match &info.data {
                    Some(gst::PadProbeData::Buffer(buffer)) => meter.note(1, buffer.size()),
                    Some(gst::PadProbeData::BufferList(list)) => {
                        let bytes = list.iter().map(|buffer| buffer.size()).sum();
                        meter.note(list.len(), bytes);
                    }
                    _ => {}
                }
                gst::PadProbeReturn::Ok
            },
        );
    }

    fn note(&self, buffers: usize, bytes: usize) {
        let first = self.buffers.fetch_add(buffers as u64, Ordering::Relaxed) == 0;
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if first {
            self.remember(Instant::now(), 0, 0);
        }
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock()
    }

    /// Whether its element was taken out of the pipeline.
    fn is_gone(&self) -> bool {
        let pad = self.pad.lock();
        pad.as_ref().is_some_and(|pad| pad.upgrade().is_none())
    }

    /// Frames per second according to the caps.
    fn nominal(&self) -> Option<f64> {
        let pad = self.pad.lock();
        let caps = pad.as_ref()?.upgrade()?.current_caps()?;
        let rate = caps.structure(0)?.get::<gst::Fraction>("framerate").ok()?;
        (rate.numer() > 0).then(|| f64::from(rate.numer()) / f64::from(rate.denom()))
    }

    /// The frames that were due and did not come, beyond those of the last second.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of seconds, far below 2^52, and not below zero"
    )]
    fn owed(&self) -> u64 {
        let passed = self.buffers.load(Ordering::Relaxed) as f64;
        (self.pace().due - passed - self.nominal().unwrap_or(0.0)).max(0.0) as u64
    }

    fn tick(&self, playing: bool) {
        let buffers = self.buffers.load(Ordering::Relaxed);
        let (nominal, now) = (self.nominal().unwrap_or(0.0), Instant::now());
        let mut pace = self.pace();
        if buffers > pace.counted || !playing {
            (pace.counted, pace.grown) = (buffers, now);
        }
        if playing && buffers > 0 {
            pace.due += nominal * now.duration_since(pace.ticked).as_secs_f64();
        }
        pace.ticked = now;
        drop(pace);
        if buffers > 0 {
            self.remember(Instant::now(), buffers, self.bytes.load(Ordering::Relaxed));
        }
    }

    fn remember(&self, now: Instant, buffers: u64, bytes: u64) {
        let mut past = self.past.lock();
        past.push_back((now, buffers, bytes));
        // One record from before the window stays, so that the window is complete.
        while past
            .get(1)
            .is_some_and(|(at, _, _)| now.duration_since(*at) >= WINDOW)
        {
            past.pop_front();
        }
    }

    fn flow(&self) -> Flow {
        let (buffers, bytes) = (
            self.buffers.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        );
        let past = self.past.lock();
        let (seconds, more_buffers, more_bytes) = match past.front() {
            Some((at, b, y)) => (at.elapsed().as_secs_f64(), buffers - b, bytes - y),
            None => (0.0, 0, 0),
        };
        let per_second = |count: f64| if seconds > 0.05 { count / seconds } else { 0.0 };
        #[expect(clippy::cast_precision_loss, reason = "counts of seconds, far below 2^52")]
        let (bitrate, rate) = (
            per_second(more_bytes as f64 * 8.0),
            per_second(more_buffers as f64),
        );
        Flow {
            element: self.element.clone(),
            factory: self.factory.clone(),
            place: self.place,
            buffers,
            bytes,
            bitrate: bitrate.round(),
            rate: (rate * 100.0).round() / 100.0,
            nominal_rate: self.nominal().filter(|_| self.place != Place::Sink),
            idle_s: (self.pace().grown.elapsed().as_secs_f64() * 10.0).round() / 10.0,
        }
    }
}
