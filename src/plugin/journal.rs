//! A toolbox's own log lines, as `tracing` events.
//!
//! Owns the targets `toolbox::<id>`: `tracing` wants a static call site for each target and level, so this makes five
//! for each id, once, and keeps them. That lets a filter such as `toolbox::robot=debug` work on ids that are known only
//! at run time. Never blocks by itself: the subscriber's writer must not either. Read [`Journal`] first.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use ovos_toolbox_abi::level;
use tracing::callsite::{self, Callsite};
use tracing::field::{FieldSet, Value};
use tracing::metadata::Kind;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata};

/// A longer line says nothing more.
const MAX_LINE_BYTES: usize = 8 * 1024;

const FIELDS: &[&str] = &["message", "toolbox", "generation", "origin"];

/// Where one toolbox's lines go.
#[derive(Clone, Copy)]
pub(super) struct Journal {
    sites: &'static [&'static Site; 5],
}

impl Journal {
    /// The journal of a toolbox; the same id shares its call sites.
    pub(super) fn of(toolbox_id: &str) -> Self {
        /// Bounded by the generations a process may load.
        static KNOWN: OnceLock<Mutex<HashMap<String, Journal>>> = OnceLock::new();
        let known = KNOWN.get_or_init(Mutex::default);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(toolbox_id.to_owned()).or_insert_with(|| {
            let target: &'static str = Box::leak(format!("toolbox::{toolbox_id}").into_boxed_str());
            let levels = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE];
            Self {
                sites: Box::leak(Box::new(levels.map(|level| Site::register(target, level)))),
            }
        })
    }

    /// Writes one line. `origin` is the toolbox's own word for where it comes from.
    pub(super) fn write(self, level: u32, toolbox: &str, generation: u64, origin: &str, message: &str) {
        let site = self.sites[match level {
            level::ERROR => 0,
            level::WARN => 1,
            level::DEBUG => 3,
            level::TRACE => 4,
            // Also a level that we do not know: the line is shown rather than lost.
            _ => 2,
        }];
        let message = one_line(message);
        let origin = one_line(origin);
        site.emit(&[
            Some(&message.as_ref() as &dyn Value),
            Some(&toolbox as &dyn Value),
            Some(&generation as &dyn Value),
            (!origin.is_empty()).then_some(&origin.as_ref() as &dyn Value),
        ]);
    }
}

/// A line that cannot pretend to be two, nor drive a terminal.
fn one_line(text: &str) -> Cow<'_, str> {
    let text = text.trim_end();
    let mut end = text.len().min(MAX_LINE_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    if text.chars().any(char::is_control) {
        Cow::Owned(
            text.chars()
                .map(|c| {
                    if c.is_control() {
                        c.escape_default().to_string()
                    } else {
                        c.to_string()
                    }
                })
                .collect(),
        )
    } else {
        Cow::Borrowed(text)
    }
}

/// A call site made at run time.
#[derive(Debug)]
struct Site {
    metadata: OnceLock<Metadata<'static>>,
    target: &'static str,
    level: Level,
}

impl Site {
    fn register(target: &'static str, level: Level) -> &'static Self {
        let site: &'static Self = Box::leak(Box::new(Self {
            metadata: OnceLock::new(),
            target,
            level,
        }));
        site.get();
        callsite::register(site);
        site
    }

    fn get(&'static self) -> &'static Metadata<'static> {
        self.metadata.get_or_init(|| self.describe())
    }

    fn describe(&'static self) -> Metadata<'static> {
        let fields = FieldSet::new(FIELDS, callsite::Identifier(self));
        Metadata::new(
            "toolbox log",
            self.target,
            self.level,
            None,
            None,
            None,
            fields,
            Kind::EVENT,
        )
    }

    fn emit(&'static self, values: &[Option<&dyn Value>; 4]) {
        let metadata = self.get();
        if self.level > tracing::level_filters::LevelFilter::current() {
            return;
        }
        tracing::dispatcher::get_default(|dispatch| {
            if dispatch.enabled(metadata) {
                dispatch.event(&Event::new(metadata, &metadata.fields().value_set_all(values)));
            }
        });
    }
}

impl Callsite for Site {
    // What interests whom is asked for each line: log lines are rate limited, so caching it buys nothing.
    fn set_interest(&self, _: Interest) {}

    fn metadata(&self) -> &Metadata<'_> {
        #[expect(
            clippy::expect_used,
            reason = "`Site::register` fills it before it hands the site to anybody"
        )]
        self.metadata.get().expect("a registered site has its metadata")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_line_stays_one_line() {
        for (text, shown) in [
            ("moved to 3\n", "moved to 3"),
            ("ok\nERROR forged", "ok\\nERROR forged"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("größer", "größer"),
        ] {
            assert_eq!(one_line(text), shown);
        }
        assert_eq!(one_line(&"ä".repeat(MAX_LINE_BYTES)).len(), MAX_LINE_BYTES);
    }

    /// Keeps `LEVEL target field=value...` of every event.
    struct Keeper(Arc<Mutex<Vec<String>>>);

    struct Fields<'a>(&'a mut String);

    impl tracing::field::Visit for Fields<'_> {
        fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
            self.0.push_str(&format!(" {field}={value:?}"));
        }
    }

    impl tracing::Subscriber for Keeper {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target().starts_with("toolbox::") && *metadata.level() <= Level::DEBUG
        }

        fn event(&self, event: &Event<'_>) {
            let metadata = event.metadata();
            let mut line = format!("{} {}", metadata.level(), metadata.target());
            event.record(&mut Fields(&mut line));
            self.0.lock().unwrap().push(line);
        }

        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[test]
    fn a_line_has_the_target_of_its_toolbox_and_can_be_filtered() {
        let lines = Arc::default();
        tracing::subscriber::with_default(Keeper(Arc::clone(&lines)), || {
            let journal = Journal::of("arm");
            journal.write(level::WARN, "arm", 2, "grip", "slips");
            journal.write(77, "arm", 2, "", "odd");
            journal.write(level::TRACE, "arm", 2, "", "too much");
        });
        assert_eq!(
            *lines.lock().unwrap(),
            [
                r#"WARN toolbox::arm message="slips" toolbox="arm" generation=2 origin="grip""#,
                r#"INFO toolbox::arm message="odd" toolbox="arm" generation=2"#,
            ]
        );
    }
}
