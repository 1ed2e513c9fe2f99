//! What the running service says of itself. It is asked first: it knows which files it has read and loaded.

use std::path::Path;

use super::finding::Finding;
use client::payload::{FactsStatus, StatusResponse, ToolboxStatus};
use schema::shorten_text;

/// A longer reason is shortened to this.
const REASON_BYTES: usize = 600;

const ASK_AGAIN: &str = "run `ovos-tools doctor` again in a moment";

/// Returns what the status of a running service says of its parts.
pub(super) fn findings(status: &StatusResponse) -> Vec<Finding> {
    let mut findings = vec![version(&status.service.version)];
    if let Some(closed) = &status.closed {
        let mend = "fix the file, then `ovos-tools reload`";
        findings.push(Finding::broken("configuration", closed, mend));
    }
    for warning in &status.warnings {
        let mend = "correct the name or the value, then `ovos-tools reload`";
        findings.push(Finding::limited("configuration", warning, mend));
    }
    if !status.pending_config.is_empty() {
        let keys = status.pending_config.join(", ");
        findings.push(Finding::limited(
            "configuration",
            format!("changed in the files but not applied yet: {keys}"),
            "run `ovos-tools reload`; keys of `service` need a restart of the service",
        ));
    }
    findings.extend(facts(&status.facts));
    findings.extend(status.doors.iter().map(|door| {
        let part = format!("door {}", door.name);
        match (door.pid, &door.reason) {
            (None, Some(reason)) => Finding::broken(
                &part,
                format!("it does not run: {reason}"),
                "see the log of the service, then restart the service",
            ),
            (Some(pid), _) => Finding::good(&part, format!("it runs as process {pid}")),
            (None, None) => Finding::limited(&part, "it is being started", ASK_AGAIN),
        }
    }));
    findings.extend(status.toolboxes.iter().flat_map(toolbox));
    findings.extend(status.failed.iter().map(|failed| {
        let part = match &failed.toolbox_id {
            Some(id) => format!("toolbox {id}"),
            None => format!("plugin {}", failed.path),
        };
        let reason = shorten_text(&failed.reason, REASON_BYTES);
        Finding::broken(
            &part,
            reason,
            super::machine::mend_of(&failed.reason, Path::new(&failed.path)),
        )
    }));
    findings.extend(status.off.iter().map(|off| {
        let part = format!("toolbox {}", off.toolbox_id);
        match off.enable {
            Some(_) => Finding::good(&part, &off.reason),
            None => Finding::broken(&part, &off.reason, "fix the file, then `ovos-tools reload`"),
        }
    }));
    for python in &status.pythons {
        let part = format!("program {}", python.program);
        let Some(path) = &python.interpreter else { continue };
        findings.push(match python.left_out.as_slice() {
            [] => Finding::good(&part, format!("{path} offers {}", python.toolboxes.join(", "))),
            left_out => Finding::limited(
                &part,
                format!("{path} leaves out {}", left_out.join("; ")),
                "install or fix those packages, then `ovos-tools reload`",
            ),
        });
    }
    findings
}

/// Compares the version of the service with that of this program: they differ after an upgrade without a restart.
fn version(running: &str) -> Finding {
    let own = env!("CARGO_PKG_VERSION");
    if running == own {
        return Finding::good("service", format!("version {running} runs"));
    }
    Finding::limited(
        "service",
        format!("version {running} runs, but this program is version {own}"),
        "restart the service: `systemctl --user restart ovos-tools`",
    )
}

/// What is wrong with the record of facts; `None` if it is complete, or if nothing is recorded.
fn facts(status: &FactsStatus) -> Option<Finding> {
    let path = status.path.as_deref()?;
    let lost = status.lost;
    match &status.trouble {
        Some(trouble) => Some(Finding::limited(
            "history",
            format!("{path} cannot be written: {trouble}; {lost} entries of the record of calls are lost"),
            "make room on the disk, or let the service's user write to the folder; the service tries again by itself",
        )),
        None if lost > 0 => Some(Finding::limited(
            "history",
            format!(
                "{path} lacks {lost} entries of the record of calls, because the disk did not write them in time"
            ),
            "check that the disk is neither failing nor overloaded",
        )),
        None => None,
    }
}

fn toolbox(status: &ToolboxStatus) -> Vec<Finding> {
    let part = format!("toolbox {}", status.toolbox_id);
    let mut findings = Vec::new();
    let reason = status.reason.as_deref().unwrap_or("no reason given");
    findings.push(match status.state.as_str() {
        "ready" if status.reason.is_some() => {
            Finding::limited(&part, reason, "docs/confinement.md says what confinement needs")
        }
        "ready" => Finding::good(&part, format!("{} tools in {}", status.tools, status.path)),
        "reloading" => Finding::limited(&part, "it is being loaded again", ASK_AGAIN),
        _ => Finding::broken(
            &part,
            shorten_text(reason, REASON_BYTES),
            "fix that, then `ovos-tools reload`",
        ),
    });
    if let Some(stop_id) = &status.stop_id {
        let id = &status.toolbox_id;
        findings.push(Finding::limited(
            &part,
            format!(
                "it is in emergency stop: {}",
                status.stop_reason.as_deref().unwrap_or_default()
            ),
            format!("when it is safe, run `ovos-tools resume {id} {stop_id}`"),
        ));
    }
    let text = |key: &str| status.backend.as_ref()?.get(key)?.as_str();
    if let (Some(state @ ("lost" | "fault")), reason) = (text("state"), text("reason")) {
        findings.push(Finding::broken(
            &part,
            format!("the machine is {state}: {}", reason.unwrap_or("no reason given")),
            "check its power and its cable; if the reason names a key or a file, correct it and run `ovos-tools reload`",
        ));
    }
    if !status.unstated_effects.is_empty() {
        findings.push(Finding::good(
            &part,
            format!(
                "the effects of {} are not declared, so they count as `write`; if one only reads, set it to \"read\" in `effects` of the \
                 toolbox's section",
                status.unstated_effects.join(", ")
            ),
        ));
    }
    if !status.dropped_tools.is_empty() {
        findings.push(Finding::limited(
            &part,
            format!("tools that cannot be used: {}", status.dropped_tools.join("; ")),
            format!("`ovos-tools check {}` shows why", status.path),
        ));
    }
    findings
}
