//! The resources that clients can read: a page for each toolbox, the status of the service, and the plan of a call.

use std::fmt::Write as _;

use client::payload::{ListRequest, PlanRequest, PlanResponse, StatusResponse, ToolEntry, ToolboxStatus};
use client::{Client, ClientError};
use ovos_toolbox_wire::{Effect, Object};
use rmcp::ErrorData;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;
use url::Url;

use crate::listing::Owner;
use crate::shared::Door;
use crate::skills;

const STATUS: &str = "ovos-tools://status";
const MARKDOWN: &str = "text/markdown";
const JSON: &str = "application/json";

/// The resource that a URI names.
#[derive(Debug, PartialEq)]
enum Name {
    Status,
    Toolbox(String),
    Plan { tool: String, args: Object },
}

/// Returns the resources that exist now.
pub(crate) async fn list(client: &Client) -> Result<Vec<Resource>, ErrorData> {
    let status = client.status().await.map_err(|error| away(&error))?;
    let mut resources = vec![
        Resource::new(STATUS, "status")
            .with_title("What the service does")
            .with_description("Toolboxes, emergency stops, calls under way and counters.")
            .with_mime_type(JSON),
    ];
    resources.extend(status.toolboxes.iter().map(|toolbox| {
        let id = &toolbox.toolbox_id;
        Resource::new(format!("ovos-tools://toolbox/{id}"), id.clone())
            .with_title(format!("The toolbox {id}"))
            .with_description("What it drives, whether that is a simulator, its limits and its tools.")
            .with_mime_type(MARKDOWN)
    }));
    Ok(resources)
}

/// Returns the resources with parameters.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("ovos-tools://plan/{tool}{?arguments}", "plan")
            .with_title("The plan of a call")
            .with_description(
                "What a call would do, wave by wave, as a table and a Mermaid flowchart; nothing moves. `arguments` is a \
                 JSON object.",
            )
            .with_mime_type(MARKDOWN),
    ]
}

/// Reads the current content of the resource that a URI names.
pub(crate) async fn read(door: &Door, uri: &str) -> Result<ResourceContents, ErrorData> {
    if let Some(result) = door.results.of(uri) {
        return Ok(ResourceContents::text(&*result, uri).with_mime_type(JSON));
    }
    if uri.starts_with("skill:") {
        let page = skills::page(&*door.link.refreshed().await, uri).ok_or_else(|| unknown(uri))?;
        return Ok(ResourceContents::text(page, uri).with_mime_type(MARKDOWN));
    }
    let client = &door.link.client;
    let Some(name) = name(uri)? else {
        return Err(unknown(uri));
    };
    let (text, kind) = match name {
        Name::Status => {
            let status = client.status().await.map_err(|error| away(&error))?;
            let text = serde_json::to_string_pretty(&status);
            (
                text.map_err(|error| ErrorData::internal_error(error.to_string(), None))?,
                JSON,
            )
        }
        Name::Toolbox(id) => {
            let request = ListRequest {
                toolbox_id: Some(id.clone()),
                detail: true,
                ..ListRequest::default()
            };
            let status = client.status().await.map_err(|error| away(&error))?;
            let Some(toolbox) = status.toolboxes.iter().find(|toolbox| toolbox.toolbox_id == id) else {
                return Err(unknown(uri));
            };
            // A toolbox that is not loaded has no tools.
            let tools = client.list(&request).await.unwrap_or_default();
            (page(toolbox, &status, &tools), MARKDOWN)
        }
        Name::Plan { tool, args } => {
            let Some(Owner::Toolbox(owner)) = door.owner(&tool).await else {
                return Err(unknown(uri));
            };
            let request = PlanRequest {
                name: owner.name.clone(),
                args,
                toolbox_id: Some(owner.toolbox_id.clone()),
            };
            let plan = client.plan(&request).await.map_err(|error| match error {
                ClientError::Refused(refusal) => ErrorData::invalid_params(refusal.text, None),
                other => away(&other),
            })?;
            (drawn(&tool, &plan), MARKDOWN)
        }
    };
    Ok(ResourceContents::text(text, uri).with_mime_type(kind))
}

pub(crate) fn unknown(uri: &str) -> ErrorData {
    let text =
        format!("Unknown resource: {uri}; resources/list and resources/templates/list name what there is");
    ErrorData::resource_not_found(text, Some(serde_json::json!({"uri": uri})))
}

fn away(error: &ClientError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// Parses a URI. `None` if it names no resource.
fn name(uri: &str) -> Result<Option<Name>, ErrorData> {
    let Ok(url) = Url::parse(uri) else { return Ok(None) };
    if url.scheme() != "ovos-tools" {
        return Ok(None);
    }
    let path = url.path().trim_start_matches('/');
    Ok(match (url.host_str(), path) {
        (Some("status"), "") => Some(Name::Status),
        (Some("toolbox"), id) if !id.is_empty() => Some(Name::Toolbox(id.to_owned())),
        (Some("plan"), tool) if !tool.is_empty() => {
            let given = url.query_pairs().find(|(key, _)| key == "arguments");
            let args = match given {
                None => Object::new(),
                Some((_, text)) => match serde_json::from_str(&text) {
                    Ok(Value::Object(args)) => args,
                    _ => {
                        let text = format!("arguments: expected a JSON object, got {text}");
                        return Err(ErrorData::invalid_params(text, None));
                    }
                },
            };
            Some(Name::Plan {
                tool: tool.to_owned(),
                args,
            })
        }
        _ => None,
    })
}

/// Returns the page of a toolbox.
fn page(toolbox: &ToolboxStatus, status: &StatusResponse, tools: &[ToolEntry]) -> String {
    let mut page = format!("# {}\n\n", toolbox.toolbox_id);
    let mut line = |what: &str, value: &str| _ = writeln!(page, "- {what}: {value}");
    line("version", &toolbox.version);
    if let Some(host) = &toolbox.host {
        line("runs on the machine", host);
    }
    line("state", &toolbox.state);
    if let Some(reason) = &toolbox.reason {
        line("because", reason);
    }
    let drives = match toolbox.simulated {
        Some(true) => "a simulator",
        Some(false) => "hardware, or not stated: treat it as hardware",
        None => "partly a simulator: treat it as hardware",
    };
    line("drives", drives);
    let stop = toolbox.stop_reason.as_deref().unwrap_or("no reason is known");
    let held = status.all_latched.as_ref().map(|all| all.stop_reason.as_str());
    match (toolbox.latched, held) {
        (true, _) => line(
            "emergency stop",
            &format!(
                "yes ({stop}); an operator lifts it with `ovos-tools resume {} {}`",
                toolbox.toolbox_id,
                toolbox.stop_id.as_deref().unwrap_or("STOP_ID")
            ),
        ),
        (false, Some(why)) => line("emergency stop", &format!("yes, everything is stopped ({why})")),
        (false, None) => line("emergency stop", "no"),
    }
    let calls = status
        .calls
        .iter()
        .filter(|call| call.toolbox_id == toolbox.toolbox_id);
    let calls: Vec<String> = calls
        .map(|call| format!("{} ({})", call.name, call.phase))
        .collect();
    let calls = calls.join(", ");
    line("calls under way", if calls.is_empty() { "none" } else { &calls });
    if let Some(backend) = &toolbox.backend {
        _ = writeln!(
            page,
            "\n## What it says about what it drives\n\n```json\n{backend:#}\n```"
        );
    }
    if !tools.is_empty() {
        _ = writeln!(
            page,
            "\n## Tools\n\n| tool | effect | at most | does |\n|---|---|---|---|"
        );
    }
    for tool in tools {
        let meta = tool.meta.as_ref();
        let effect = meta.map_or("", |meta| meta.effect.as_str());
        if meta.is_some_and(|meta| meta.effect == Effect::Resume) {
            continue;
        }
        let bound = meta.and_then(|meta| meta.timeout_ms);
        let bound = bound.map_or_else(String::new, |ms| format!("{ms} ms an action"));
        // A cell has no lines.
        let does = tool.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let does = does.replace('|', "\\|");
        _ = writeln!(page, "| {} | {effect} | {bound} | {does} |", tool.name);
    }
    limits(&mut page, tools);
    page
}

/// Writes the ranges of the arguments. The limits of a machine at a given moment may be narrower; its tools report them.
fn limits(page: &mut String, tools: &[ToolEntry]) {
    let mut head = "\n## Limits\n\n| tool | argument | takes |\n|---|---|---|\n";
    for tool in tools {
        let properties = tool.argument_schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            // The schema of an optional argument is a choice between its type and null.
            let choices = property.get("anyOf").and_then(Value::as_array);
            let mut kinds = std::iter::once(property).chain(choices.into_iter().flatten());
            let Some(range) = kinds.find_map(range) else {
                continue;
            };
            _ = writeln!(page, "{head}| {} | {name} | {range} |", tool.name);
            head = "";
        }
    }
}

/// Returns a range in words: `0 to 1`, `at least 0`, `more than 0`.
fn range(property: &Value) -> Option<String> {
    let bound = |key: &str, words: &str| property.get(key).map(|bound| format!("{words} {bound}"));
    let from = bound("minimum", "at least").or_else(|| bound("exclusiveMinimum", "more than"));
    let to = bound("maximum", "at most").or_else(|| bound("exclusiveMaximum", "less than"));
    match (property.get("minimum"), property.get("maximum"), from, to) {
        (Some(from), Some(to), ..) => Some(format!("{from} to {to}")),
        (.., Some(from), Some(to)) => Some(format!("{from}, {to}")),
        (.., from, to) => from.or(to),
    }
}

fn drawn(tool: &str, plan: &PlanResponse) -> String {
    let mut text = format!(
        "# {tool}\n\n- toolbox: {}\n- effect: {}\n- at most: {} ms, waiting not counted\n- holds: {}\n\n| wave | action | \
         with | at most |\n|---|---|---|---|\n",
        plan.toolbox_id,
        plan.effect.as_str(),
        plan.bound_ms,
        if plan.subsystems.is_empty() {
            "nothing".to_owned()
        } else {
            plan.subsystems.join(", ")
        },
    );
    for (wave, actions) in plan.waves.iter().enumerate() {
        for action in actions {
            let with = action.subsystems.join(", ");
            _ = writeln!(
                text,
                "| {} | {} | {with} | {} ms |",
                wave + 1,
                action.id,
                action.timeout_ms
            );
        }
    }
    _ = write!(text, "\n```mermaid\n{}\n```\n", plan.mermaid.trim_end());
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn uris_name_what_there_is() {
        let plan = |args: Value| match args {
            Value::Object(args) => Some(Name::Plan {
                tool: "wave".to_owned(),
                args,
            }),
            other => panic!("{other}"),
        };
        for (uri, expected) in [
            ("ovos-tools://status", Some(Name::Status)),
            (
                "ovos-tools://toolbox/arm-2",
                Some(Name::Toolbox("arm-2".to_owned())),
            ),
            ("ovos-tools://plan/wave", plan(json!({}))),
            (
                "ovos-tools://plan/wave?arguments=%7B%22times%22%3A%202%7D",
                plan(json!({"times": 2})),
            ),
            ("ovos-tools://toolbox/", None),
            ("ovos-tools://other", None),
            ("file:///etc/passwd", None),
            ("status", None),
        ] {
            assert_eq!(name(uri).expect("no bad arguments"), expected, "{uri}");
        }
        let error = name("ovos-tools://plan/wave?arguments=[1]").expect_err("no object");
        assert!(error.message.contains("expected a JSON object"), "{error:?}");
    }

    #[test]
    fn a_page_says_what_is_known() {
        let toolbox = ToolboxStatus {
            toolbox_id: "arm".to_owned(),
            host: Some("robot1".to_owned()),
            state: "ready".to_owned(),
            latched: true,
            stop_reason: Some("a hand in the way".to_owned()),
            simulated: Some(true),
            ..ToolboxStatus::default()
        };
        let reach = ToolEntry {
            name: "reach".to_owned(),
            description: "Reaches.".to_owned(),
            argument_schema: json!({"properties": {
                "speed": {"type": "number", "minimum": 0.1, "maximum": 1},
                "force": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}]},
                "note": {"type": "string"},
            }}),
            output_schema: json!({}),
            toolbox_id: "arm".to_owned(),
            meta: None,
        };
        let page = page(&toolbox, &StatusResponse::default(), &[reach]);
        assert!(!page.contains("| note |"), "{page}");
        for part in [
            "## Limits\n\n| tool | argument | takes |",
            "| reach | speed | 0.1 to 1 |",
            "| reach | force | more than 0 |",
            "# arm",
            "- runs on the machine: robot1",
            "- drives: a simulator",
            "yes (a hand in the way)",
            "- calls under way: none",
        ] {
            assert!(page.contains(part), "no {part:?} in {page}");
        }
    }
}
