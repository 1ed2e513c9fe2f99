//! The status as Prometheus reads it.

use std::fmt::Write as _;

use client::payload::StatusResponse;

/// Writes a status in Prometheus' text format; `None` where the service does not answer.
pub(crate) fn text(status: Option<&StatusResponse>) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, rows: &[(String, u64)]| {
        _ = writeln!(text, "# HELP ovos_tools_{name} {help}");
        _ = writeln!(text, "# TYPE ovos_tools_{name} {kind}");
        for (labels, value) in rows {
            _ = writeln!(text, "ovos_tools_{name}{labels} {value}");
        }
    };
    let plain = |value: u64| vec![(String::new(), value)];
    metric(
        "up",
        "gauge",
        "Whether the service answers.",
        &plain(u64::from(status.is_some())),
    );
    let Some(status) = status else { return text };
    let of = |toolbox: &str| format!("{{toolbox=\"{}\"}}", escaped(toolbox));
    let toolboxes = |value: &dyn Fn(&client::payload::ToolboxStatus) -> u64| -> Vec<(String, u64)> {
        let all = status.toolboxes.iter();
        all.map(|toolbox| (of(&toolbox.toolbox_id), value(toolbox)))
            .collect()
    };
    metric(
        "uptime_seconds",
        "gauge",
        "How long the service has run.",
        &plain(status.service.uptime_ms / 1000),
    );
    metric(
        "calls_running",
        "gauge",
        "Calls under way.",
        &plain(u64::try_from(status.calls.len()).unwrap_or(u64::MAX)),
    );
    metric(
        "facts_lost",
        "counter",
        "Entries of the record of calls that could not be written.",
        &plain(status.facts.lost),
    );
    metric(
        "toolbox_latched",
        "gauge",
        "Whether an emergency stop holds the toolbox.",
        &toolboxes(&|toolbox| u64::from(toolbox.latched)),
    );
    metric(
        "toolbox_restarts",
        "counter",
        "How often the toolbox was started again.",
        &toolboxes(&|toolbox| toolbox.restarts),
    );
    let counters: Vec<(String, u64)> = status
        .counters
        .iter()
        .map(|(name, value)| (format!("{{counter=\"{}\"}}", escaped(name)), *value))
        .collect();
    metric(
        "events",
        "counter",
        "What the service counts, as in its status.",
        &counters,
    );
    text
}

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_its_type_and_a_name_cannot_break_a_line() {
        assert_eq!(
            text(None),
            "# HELP ovos_tools_up Whether the service answers.\n# TYPE ovos_tools_up gauge\novos_tools_up 0\n"
        );
        let mut status = StatusResponse::default();
        status.counters.insert("a\"b\nc".to_owned(), 3);
        status.toolboxes.push(client::payload::ToolboxStatus {
            toolbox_id: "robot".to_owned(),
            latched: true,
            ..client::payload::ToolboxStatus::default()
        });
        let text = text(Some(&status));
        for line in [
            "ovos_tools_up 1",
            "ovos_tools_toolbox_latched{toolbox=\"robot\"} 1",
            "ovos_tools_events{counter=\"a\\\"b\\nc\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
