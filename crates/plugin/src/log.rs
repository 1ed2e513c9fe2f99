//! The log of the code that hosts a toolbox: every line goes to the service, which writes it. Read [`install`].

use std::fmt::Write;
use std::sync::Arc;

use program::{Notices, level};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

/// From now on, sends every log event of this process through `notices`.
pub(crate) fn install(notices: Arc<Notices>) {
    let subscriber = tracing_subscriber::registry().with(Lines(notices));
    // This is the only subscriber, because the process has just started.
    _ = tracing::subscriber::set_global_default(subscriber);
}

struct Lines(Arc<Notices>);

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let data = event.metadata();
        // The service's filter is not known here.
        if *data.level() > Level::INFO {
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
        self.0.log(level, data.target(), &(line.message + &line.rest));
    }
}

#[derive(Default)]
struct Line {
    message: String,
    /// ` key=value` for every other field.
    rest: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
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

    use program::frame::Cutter;
    use protocol::{MAX_DATA, Notice};

    use super::*;

    #[test]
    fn a_line_keeps_its_level_and_its_fields() {
        let ((data, mut data_end), (control, _theirs)) =
            (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let notices = Arc::new(Notices::new(data, control).unwrap());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(Lines(notices)), || {
            tracing::debug!(target: "another", "is left out");
            tracing::warn!(target: "another", number = 5, toolbox = "arm", "is told");
        });
        let (mut cutter, mut bytes) = (Cutter::new(MAX_DATA), [0; 4096]);
        let count = data_end.read(&mut bytes).unwrap();
        cutter.push(&bytes[..count]);
        let Some(Notice::Log {
            level,
            target,
            message,
        }) = cutter.read().unwrap()
        else {
            panic!("no line")
        };
        assert_eq!(
            (level, target.as_str(), message.as_str()),
            (level::WARN, "another", "is told number=5")
        );
        assert!(cutter.read::<Notice>().unwrap().is_none());
    }
}
