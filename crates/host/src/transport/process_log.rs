//! The log of a toolbox's process: every line goes to the service, which writes it.
//!
//! Both the toolbox's own lines (see `journal`) and those of the code that hosts it. Read [`install`].

use std::fmt::Write;
use std::sync::Arc;

use ovos_toolbox_abi::level;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

use crate::ffi::journal;
use crate::transport::serve::notifier::Notifier;

/// From now on, sends every log event of this process through `notifier`.
pub(crate) fn install(notifier: Arc<Notifier>) {
    let subscriber = tracing_subscriber::registry().with(Lines(notifier));
    // This is the only subscriber, because the process has just started.
    _ = tracing::subscriber::set_global_default(subscriber);
}

struct Lines(Arc<Notifier>);

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let data = event.metadata();
        let ours = data.target() == journal::TARGET;
        // Of other crates, only `info` and above are sent, because the service's filter is not known here.
        if !ours && *data.level() > Level::INFO {
            return;
        }
        let mut line = Line::default();
        event.record(&mut line);
        let level = match *data.level() {
            Level::ERROR => level::ERROR,
            Level::WARN => level::WARN,
            Level::INFO => level::INFO,
            Level::DEBUG => level::DEBUG,
            Level::TRACE => level::TRACE,
        };
        let target = if ours {
            line.origin
        } else {
            data.target().to_owned()
        };
        let message = if ours {
            line.message
        } else {
            line.message + &line.rest
        };
        self.0.log(level, &target, message);
    }
}

#[derive(Default)]
struct Line {
    message: String,
    origin: String,
    /// ` key=value` for every other field.
    rest: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            "origin" => value.clone_into(&mut self.origin),
            // The service adds both fields itself.
            "toolbox" | "generation" => {}
            name => drop(write!(self.rest, " {name}={value}")),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use protocol::{MAX_DATA, Notice};

    use super::*;
    use crate::transport::frame::Cutter;

    #[test]
    fn a_toolboxs_own_lines_keep_their_level_and_their_origin() {
        let ((data, mut heard), (control, _theirs)) =
            (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let notifier = Arc::new(Notifier::new(data, control).unwrap());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(Lines(notifier)), || {
            journal::write(level::DEBUG, "arm", 1, "grip", "slips");
            tracing::debug!(target: "another", "is left out");
            tracing::warn!(target: "another", number = 5, "is told");
        });
        let (mut cutter, mut bytes, mut lines) = (Cutter::new(MAX_DATA), [0; 4096], Vec::new());
        while lines.len() < 2 {
            let count = heard.read(&mut bytes).unwrap();
            cutter.push(&bytes[..count]);
            while let Some(notice) = cutter.read().unwrap() {
                let Notice::Log {
                    level,
                    target,
                    message,
                } = notice
                else {
                    panic!("{notice:?}")
                };
                lines.push((level, target, message));
            }
        }
        let expected = [
            (level::DEBUG, "grip", "slips"),
            (level::WARN, "another", "is told number=5"),
        ];
        let expected = expected.map(|(level, target, line)| (level, target.to_owned(), line.to_owned()));
        assert_eq!(lines, expected);
    }
}
