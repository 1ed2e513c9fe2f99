//! `ovos-tools status`: the service, its toolboxes, the calls in flight.

use clap::Args;
use serde_json::Value;

use super::context::Context;
use super::error::CliError;
use super::paint::{Cell, Paint, Tone, count, joined, milliseconds, plain, value};
use super::reload::{configuration, failures};
use client::payload::{PythonStatus, ServiceStatus, StatusRequest, StatusResponse, ToolboxStatus};
use client::topic;

/// Arguments of `status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools status
  ovos-tools status --json | jq '.toolboxes[] | select(.latched)'
  watch ovos-tools status")]
pub struct Arguments {}

/// Runs `status`.
///
/// # Errors
/// No bus, no answer, or the output cannot be written.
pub async fn run(_: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let wait = context.wait();
    let client = context.client().await?;
    let answer = client.ask(topic::STATUS, &StatusRequest::default(), wait).await?;
    context.refuse_error(&answer)?;
    let status = answer.read()?;
    context
        .output
        .result(&answer.data, |paint| render(&status, paint))?;
    if let Some(advice) = restart_advice(&status.service) {
        context.output.remark(&advice);
    }
    Ok(())
}

/// Advises to restart a service that is of another version than this program, or runs a file that was replaced.
fn restart_advice(service: &ServiceStatus) -> Option<String> {
    let ours = env!("CARGO_PKG_VERSION");
    // On this machine the kernel says that the file of a running program was replaced. The id of a process of another machine may
    // be that of any program here.
    let file = std::fs::read_link(format!("/proc/{}/exe", service.pid)).unwrap_or_default();
    let file = file.to_string_lossy();
    let replaced = file.ends_with("/ovos-tools (deleted)");
    let what = if service.version != ours {
        format!(
            "the service is version {}, and this program is {ours}: install one version for both, and restart the service",
            plain(&service.version)
        )
    } else if replaced {
        "the service still runs the old version, whose file was replaced since it started: restart it"
            .to_owned()
    } else {
        return None;
    };
    Some(format!(
        "{what} (`systemctl --user restart ovos-tools`, or stop it and start it as before)"
    ))
}

fn render(status: &StatusResponse, paint: Paint) -> String {
    let service = &status.service;
    let mut text = format!(
        "ovos-tools {} · process {} · up {} · {}\nbus {} · {}\n",
        plain(&service.version),
        service.pid,
        milliseconds(service.uptime_ms),
        if service.ready {
            paint.tone(Tone::Good, "ready")
        } else {
            paint.tone(Tone::Warning, "not ready")
        },
        plain(&status.bus.url),
        if status.bus.connected {
            "connected"
        } else {
            "not connected"
        },
    );
    if let Some(all) = &status.all_latched {
        let line = format!("everything is in emergency stop: {}", all.stop_reason);
        text += &format!(
            "{}\novos-tools resume all {}\n",
            paint.tone(Tone::Bad, &line),
            plain(&all.stop_id)
        );
    }
    text += &toolboxes(&status.toolboxes, paint);
    text += &configuration(&status.off, status.closed.as_deref(), &status.warnings, paint);
    text += &pythons(&status.pythons, paint);
    if !status.failed.is_empty() {
        text.push('\n');
        text += &failures(&status.failed, paint);
    }
    if !status.doors.is_empty() {
        let rows = status.doors.iter().map(|door| {
            let state = match (door.pid, &door.reason) {
                (Some(pid), _) => format!("process {pid}"),
                (None, Some(reason)) => format!("ended: {reason}"),
                (None, None) => "starts".to_owned(),
            };
            vec![
                door.name.as_str().into(),
                state.into(),
                door.restarts.to_string().into(),
            ]
        });
        text.push('\n');
        text += &paint.table(&["DOOR", "STATE", "RESTARTS"], rows);
    }
    if !status.calls.is_empty() {
        let rows = status.calls.iter().map(|call| {
            vec![
                call.call_id.as_str().into(),
                format!("{} ({})", call.name, call.toolbox_id).into(),
                call.phase.as_str().into(),
                joined(&call.subsystems).into(),
                milliseconds(call.elapsed_ms).into(),
            ]
        });
        text.push('\n');
        text += &paint.table(&["CALL", "TOOL", "PHASE", "SUBSYSTEMS", "RUNS FOR"], rows);
    }
    if !status.counters.is_empty() {
        let counters = status
            .counters
            .iter()
            .map(|(name, number)| format!("{name} {number}"));
        text += &format!(
            "\ncounters: {}\n",
            plain(&counters.collect::<Vec<_>>().join(" · "))
        );
    }
    if let Some(trouble) = &status.facts.trouble {
        let lost = status.facts.lost;
        let line = format!("the record of calls is not written: {trouble} ({lost} entries lost)");
        text += &format!("\n{}\n", paint.tone(Tone::Warning, &plain(&line)));
    }
    if !status.pending_config.is_empty() {
        text += &format!(
            "\n{} {}\n",
            paint.tone(
                Tone::Warning,
                "changed in the files but not applied yet (reload or restart):"
            ),
            plain(&status.pending_config.join(", "))
        );
    }
    text
}

fn toolboxes(toolboxes: &[ToolboxStatus], paint: Paint) -> String {
    if toolboxes.is_empty() {
        return "\nno toolboxes\n".to_owned();
    }
    let has_hosts = toolboxes.iter().any(|it| it.host.is_some());
    let rows = toolboxes.iter().map(|it| {
        let host = has_hosts.then(|| it.host.as_deref().unwrap_or("-").into());
        let mut row = vec![
            Cell::toned(Tone::Strong, it.toolbox_id.as_str()),
            state(it),
            it.tools.to_string().into(),
            it.version.as_str().into(),
            it.generation.to_string().into(),
            it.isolation.as_str().into(),
            it.restarts.to_string().into(),
            backend(&it.toolbox_id, it.backend.as_ref()).into(),
        ];
        row.splice(1..1, host);
        row
    });
    let mut header = vec![
        "TOOLBOX",
        "STATE",
        "TOOLS",
        "VERSION",
        "GENERATION",
        "ISOLATION",
        "RESTARTS",
        "BACKEND",
    ];
    header.splice(1..1, has_hosts.then_some("HOST"));
    let mut text = format!("\n{}", paint.table(&header, rows));
    for it in toolboxes {
        if it.latched {
            let reason = it.stop_reason.as_deref().unwrap_or("no reason given");
            let stop_id = it.stop_id.as_deref().unwrap_or("STOP_ID");
            text += &format!(
                "{}\n",
                paint.tone(
                    Tone::Bad,
                    &format!(
                        "{id} is in emergency stop: {reason}; when it is safe, run: ovos-tools resume {id} {stop_id}",
                        id = it.toolbox_id
                    )
                )
            );
        }
        for tool in it.yielded_tools.iter().chain(&it.renamed_tools) {
            text += &format!("{}: {}\n", plain(&it.toolbox_id), plain(tool));
        }
        if !it.unstated_effects.is_empty() {
            let tools: Vec<_> = it.unstated_effects.iter().map(|tool| plain(tool)).collect();
            text += &format!(
                "{}: it is not stated what {} do, so they count as `write`; state it in the section's `effects`\n",
                plain(&it.toolbox_id),
                tools.join(", ")
            );
        }
        if let Some(reason) = &it.reason {
            text += &format!(
                "{}: {} ({})\n",
                plain(&it.toolbox_id),
                plain(reason),
                plain(&it.path)
            );
        }
    }
    text
}

fn pythons(pythons: &[PythonStatus], paint: Paint) -> String {
    let mut text = String::new();
    for python in pythons {
        let name = paint.tone(Tone::Strong, &plain(&python.program));
        let path = python.interpreter.as_deref();
        text += &match (path, &python.version) {
            (Some(path), version) => format!(
                "\n{name}: {} ({}) with {}\n",
                plain(path),
                plain(version.as_deref().unwrap_or("unknown version")),
                count(python.toolboxes.len(), "toolbox", "toolboxes")
            ),
            (None, _) => {
                format!("\n{name}: no Python with OVOS toolboxes was found (service.programs can name one)\n")
            }
        };
        for left_out in &python.left_out {
            text += &format!("  not used: {}\n", plain(left_out));
        }
    }
    text
}

fn state(toolbox: &ToolboxStatus) -> Cell {
    if toolbox.latched {
        return Cell::toned(Tone::Bad, format!("{}, stopped", toolbox.state));
    }
    let tone = match toolbox.state.as_str() {
        "ready" => Tone::Good,
        "failed" => Tone::Bad,
        _ => Tone::Warning,
    };
    Cell::toned(tone, toolbox.state.as_str())
}

/// Describes the backend of a toolbox and its state: `simulator: connected`, `hardware: connected`, `lost: no heartbeat`. A unit
/// is named only if its name differs from that of the toolbox.
fn backend(toolbox_id: &str, backend: Option<&Value>) -> String {
    let Some(Value::Object(map)) = backend else {
        return backend.map_or_else(|| "-".to_owned(), value);
    };
    let text = |key: &str| {
        map.get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let state = text("state");
    // A backend that was not found yet is of an unknown kind.
    let drives = match map.get("simulated").and_then(Value::as_bool) {
        Some(true) => Some("simulator"),
        Some(false) if state == Some("connected") => Some("hardware"),
        _ => None,
    };
    let unit = text("unit").filter(|unit| *unit != toolbox_id);
    let words: Vec<&str> = [unit, drives, state, text("reason")]
        .into_iter()
        .flatten()
        .collect();
    if words.is_empty() {
        let all = map.values().filter(|it| !it.is_null()).map(value);
        return all.collect::<Vec<_>>().join(": ");
    }
    words.join(": ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_service_that_runs_the_program_from_before_an_upgrade_is_told_to_be_restarted() {
        let service = |version: &str, pid| ServiceStatus {
            version: version.to_owned(),
            pid,
            ..ServiceStatus::default()
        };
        let ours = env!("CARGO_PKG_VERSION");
        assert_eq!(restart_advice(&service(ours, std::process::id())), None);
        let old = restart_advice(&service("0.0.1", std::process::id())).unwrap();
        assert!(
            old.contains("0.0.1") && old.contains("systemctl --user restart"),
            "{old}"
        );
        // A program whose file was replaced while it runs, as a package manager does it.
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("ovos-tools");
        std::fs::copy("/bin/sleep", &program).unwrap();
        let mut running = std::process::Command::new(&program).arg("60").spawn().unwrap();
        std::fs::remove_file(&program).unwrap();
        let replaced = restart_advice(&service(ours, running.id()));
        running.kill().unwrap();
        running.wait().unwrap();
        assert!(replaced.unwrap().contains("was replaced"));
    }
}
