//! A toolbox's own log lines, as `tracing` events of the target `toolbox`. Their field `toolbox` names the toolbox.

use program::level;
use program::message_limits::Write;

use crate::contract::services::Origin;

/// The target of a toolbox's own lines.
const TARGET: &str = "toolbox";

/// The longest line; the rest of a longer one is left out.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// Writes the lines of one copy of a toolbox.
pub(crate) fn of(origin: Origin) -> Write {
    Box::new(move |line| {
        write(
            line.level,
            &origin.toolbox_id,
            origin.generation,
            line.target,
            &line.message,
        )
    })
}

/// Writes one line. `origin` is the source of the line as the toolbox names it; an empty one is left out. The log's
/// format escapes control characters.
fn write(level: u32, toolbox: &str, generation: u64, origin: &str, message: &str) {
    let message = shortened(message);
    let origin = (!origin.is_empty()).then(|| shortened(origin));
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(target: TARGET, toolbox, generation, origin, "{message}")
        };
    }
    match level {
        level::ERROR => line!(error),
        level::WARN => line!(warn),
        level::DEBUG => line!(debug),
        level::TRACE => line!(trace),
        // A line of a level that this version does not know is shown.
        _ => line!(info),
    }
}

fn shortened(text: &str) -> &str {
    let text = text.trim_end();
    &text[..text.floor_char_boundary(MAX_LINE_BYTES)]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tracing::field::{Field, Visit};
    use tracing::{Event, Level, Metadata};

    use super::*;

    /// Keeps `LEVEL target field=value...` of every event down to `DEBUG`.
    struct Keeper(Arc<Mutex<Vec<String>>>);

    struct Fields<'a>(&'a mut String);

    impl Visit for Fields<'_> {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            self.0.push_str(&format!(" {field}={value:?}"));
        }
    }

    impl tracing::Subscriber for Keeper {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == "toolbox" && *metadata.level() <= Level::DEBUG
        }

        fn event(&self, event: &Event<'_>) {
            let metadata = event.metadata();
            let mut line = format!("{} {}", metadata.level(), metadata.target());
            event.record(&mut Fields(&mut line));
            self.0.lock().push(line);
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
    fn a_line_names_its_toolbox_and_has_its_level() {
        let lines = Arc::default();
        tracing::subscriber::with_default(Keeper(Arc::clone(&lines)), || {
            write(level::WARN, "arm", 2, "grip", "slips\n");
            write(77, "arm", 2, "", "odd");
            write(level::TRACE, "arm", 2, "", "too much");
        });
        assert_eq!(
            *lines.lock(),
            [
                r#"WARN toolbox message=slips toolbox="arm" generation=2 origin="grip""#,
                r#"INFO toolbox message=odd toolbox="arm" generation=2"#,
            ]
        );
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        assert_eq!(shortened(&"€".repeat(MAX_LINE_BYTES)).len(), MAX_LINE_BYTES - 2);
    }
}
