//! A call of `run_steps`: a run of several tools of the list.

use std::collections::BTreeMap;
use std::sync::Arc;

use client::Received;
use client::payload::{CallOptions, ContentMode, RunRequest, RunResponse, RunStep};
use config::McpDoor;
use door::{Answer, ListedTool, Listing, StopTool, stop};
use ovos_toolbox_wire::{Effect, FailureKind, Object};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use crate::answer;
use crate::call::carried;
use crate::call_request::CallRequest;
use crate::content;
use crate::listing::{self, Owner};
use crate::results::{self, Forms};
use crate::run_tool::{self, NAME};
use crate::shared::Door;

/// Makes a run. The policy decides on each step as on a call of its tool. If a person has to confirm a step, the user is not asked
/// here: the result says that the tool has to be called by itself.
///
/// # Cancel safety
/// Dropping it asks the service to end the run.
pub(crate) async fn run(door: &Door, mut arguments: Object, asked: &CallRequest) -> CallToolResult {
    let tool = ListedTool {
        exported: NAME.to_owned(),
        toolbox_id: String::new(),
        name: NAME.to_owned(),
        effect: Effect::Write,
        category: None,
        description: String::new(),
        arguments: Arc::new(run_tool::arguments()),
        output: None,
        agent_end: Vec::new(),
    };
    let steps = arguments.shift_remove("steps").unwrap_or_default();
    // The current list is used, because a stop does not wait for a newer one.
    let (own, stops) = stops_among(&door.link.listing(), &door.config, &steps);
    let is_stop = own.is_some() || !stops.is_empty();
    let listing = if is_stop {
        door.link.listing()
    } else {
        door.link.refreshed().await
    };
    let (own, stops) = stops_among(&listing, &door.config, &steps);
    if let Some(tool) = own {
        return answer::result(stop(tool, &door.link).await);
    }
    let checked = serde_json::from_value::<Vec<RunStep>>(steps)
        .map_err(|error| error.to_string())
        .and_then(|steps| Ok((of_list(&listing, &steps)?, steps)));
    let ((sent, moves), steps) = match checked {
        Ok(checked) => checked,
        // If the run names stops, they are carried out, even if other steps are wrong.
        Err(_) if !stops.is_empty() => ((stops.clone(), false), stops),
        Err(why) => return invalid(&why),
    };
    let tool = ListedTool {
        effect: if moves { Effect::Motion } else { tool.effect },
        ..tool
    };
    let (context, call_id) = (&asked.context, asked.call.call_id());
    let token = context.meta.get_progress_token();
    let request = RunRequest {
        steps: sent,
        options: CallOptions {
            call_id: Some(call_id.to_owned()),
            progress: token.is_some() || tool.effect == Effect::Motion,
            detail: true,
            content: Some(ContentMode::Path),
            ..CallOptions::default()
        },
    };
    let send = |patience| asked.client.run(request, patience);
    let answer = match carried(door, &tool, call_id, send, asked).await {
        Ok(answer) => answer,
        Err(failed) => return failed,
    };
    let mut result = results::result(
        &door.results,
        door.config.result_bytes,
        &tool,
        Forms::of(context, false),
        answer_of_run(&tool, &steps, &answer),
    );
    let reports = answer.data.get("steps").and_then(Value::as_array);
    for report in reports.into_iter().flatten().filter_map(Value::as_object) {
        result
            .content
            .extend(content::blocks(&door.content, report).await);
    }
    result
}

/// Returns the stops among the steps: one of the door's stops, and the stops of toolboxes as steps.
fn stops_among(listing: &Listing, config: &McpDoor, steps: &Value) -> (Option<StopTool>, Vec<RunStep>) {
    let (mut own, mut stops) = (None, Vec::new());
    let names = steps.as_array().into_iter().flatten();
    for name in names.filter_map(|step| step.get("name")?.as_str()) {
        match listing::owner(listing, config, name) {
            Some(Owner::Door(StopTool::EmergencyStop)) => own = Some(StopTool::EmergencyStop),
            Some(Owner::Door(tool)) => own = own.or(Some(tool)),
            Some(Owner::Toolbox(tool)) if tool.effect == Effect::Stop => stops.push(RunStep {
                id: format!("stop-{}", stops.len() + 1),
                name: tool.name.clone(),
                toolbox_id: Some(tool.toolbox_id.clone()),
                ..RunStep::default()
            }),
            _ => {}
        }
    }
    (own, stops)
}

/// Returns the steps with the names that the service knows, and whether any of them moves something.
fn of_list(listing: &Listing, steps: &[RunStep]) -> Result<(Vec<RunStep>, bool), String> {
    let mut moves = false;
    let mut sent = Vec::with_capacity(steps.len());
    for step in steps {
        let Some(tool) = listing.tool(&step.name) else {
            return Err(format!(
                "step '{}': '{}' is not a tool of this list that can be a step",
                step.id, step.name
            ));
        };
        // A `safe` step moves something, too. The service ends a run that may move something if its door is silent.
        moves |= matches!(tool.effect, Effect::Motion | Effect::Safe);
        sent.push(RunStep {
            name: tool.name.clone(),
            toolbox_id: Some(tool.toolbox_id.clone()),
            ..step.clone()
        });
    }
    Ok((sent, moves))
}

fn invalid(why: &str) -> CallToolResult {
    let text = format!(
        "ValueError: {why}\n`{NAME}` takes {{\"steps\": [{{\"id\", \"name\", \"args\", \"after\"}}]}}; nothing was done."
    );
    answer::result(Answer::failure(
        &text,
        json!({"error": {"kind": FailureKind::ValueError, "message": why}}),
    ))
}

/// The answer to a run, with the names of this list. The tokens of steps that have to be confirmed are not shown, because a model
/// must not confirm a call.
fn answer_of_run(tool: &ListedTool, steps: &[RunStep], answer: &Received<RunResponse>) -> Answer {
    let (Ok(run), false) = (answer.read(), answer.data.get("steps").is_none()) else {
        return match answer.accepted() {
            Err(error) => Answer::refused(tool, &error),
            Ok(()) => Answer::failure("the answer of the service cannot be read", json!({"ok": false})),
        };
    };
    let names: BTreeMap<&str, &str> = steps
        .iter()
        .map(|step| (step.id.as_str(), step.name.as_str()))
        .collect();
    let mut structured = Value::Object(answer.data.clone());
    for report in structured["steps"].as_array_mut().into_iter().flatten() {
        let name = report["id"].as_str().and_then(|id| names.get(id));
        if let Some(name) = name {
            report["name"] = json!(name);
        }
        if let Some(confirm) = report.get_mut("confirm").and_then(Value::as_object_mut) {
            confirm.shift_remove("token");
        }
        if let Some(report) = report.as_object_mut() {
            // Content is returned in blocks of its own.
            report.shift_remove("content");
        }
    }
    if run.ok {
        return Answer::success(&structured.to_string(), structured);
    }
    let mut text = run.error.unwrap_or_default();
    for step in &run.steps {
        let Some(confirm) = &step.confirm else { continue };
        let name = names
            .get(step.id.as_str())
            .unwrap_or(&step.name.as_str())
            .to_string();
        let args = step.args.as_ref().map_or_else(String::new, Value::to_string);
        text.push_str(&format!(
            "\nStep '{}' did not run: it needs approval. Call `{name}` by itself, with the arguments {args}: then the user is \
             asked. If this client cannot ask, tell the user to run `ovos-tools approve {}` on the service's machine, which \
             lets that call run.",
            step.id, confirm.id
        ));
    }
    text.push('\n');
    text.push_str(&structured.to_string());
    Answer::failure(&text, structured)
}
