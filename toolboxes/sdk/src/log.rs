//! `tracing` events to the host's log.
//!
//! Each instance has its own subscriber, which is the default on the threads of its runtime and inside every call from
//! the host. It is never the global one: two instances of a library share the library's statics, and a global
//! subscriber would send the events of both to the first. Read [`dispatch`].

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;

use ovos_toolbox_abi::level;
use tracing::dispatcher::{DefaultGuard, Dispatch};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber, span};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::gate::Gate;

thread_local! {
    static ON_THIS_THREAD: RefCell<Option<DefaultGuard>> = const { RefCell::new(None) };
}

/// A subscriber that writes to the host's log, up to `max`.
pub(crate) fn dispatch(gate: Arc<Gate>, max: Level) -> Dispatch {
    Dispatch::new(tracing_subscriber::registry().with(HostLog { gate, max }))
}

/// Makes `dispatch` the default of the calling thread until [`leave_thread`].
pub(crate) fn enter_thread(dispatch: &Dispatch) {
    let guard = tracing::dispatcher::set_default(dispatch);
    ON_THIS_THREAD.with_borrow_mut(|slot| *slot = Some(guard));
}

/// Undoes [`enter_thread`].
pub(crate) fn leave_thread() {
    let guard = ON_THIS_THREAD.with_borrow_mut(Option::take);
    drop(guard);
}

struct HostLog {
    gate: Arc<Gate>,
    max: Level,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for HostLog {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= self.max
    }

    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let mut line = Line::default();
        attributes.record(&mut line);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(SpanFields(line.fields));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let Line { mut message, fields } = line;
        message.push_str(&fields);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(SpanFields(fields)) = span.extensions().get::<SpanFields>() {
                message.push_str(fields);
            }
        }
        let metadata = event.metadata();
        self.gate
            .log(number(*metadata.level()), metadata.target(), message.trim_start());
    }
}

struct SpanFields(String);

/// Collects the message, and ` key=value` for every other field.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message.push_str(value);
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to a String cannot fail.
        let _ = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
    }
}

fn number(of: Level) -> u32 {
    match of {
        Level::ERROR => level::ERROR,
        Level::WARN => level::WARN,
        Level::INFO => level::INFO,
        Level::DEBUG => level::DEBUG,
        Level::TRACE => level::TRACE,
    }
}
