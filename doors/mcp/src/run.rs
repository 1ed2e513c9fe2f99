//! A call of `run_steps`: a run of several tools of the list.

use std::collections::BTreeMap;
use std::sync::Arc;

use client::Received;
use client::payload::{CallOptions, ContentMode, RunRequest, RunResponse, RunStep};
use config::McpDoor;
use door::{Answer, ListedTool, Listing, StopTool};
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
/// here: the result says that the tool has to be called by itself. A run that names a stop is that stop, whatever else is in it.
///
/// # Cancel safety
/// Dropping it asks the service to end the run.
pub(crate) async fn run(door: &Door, mut arguments: Object, asked: &CallRequest) -> CallToolResult {
    let steps = arguments.shift_remove("steps").unwrap_or_default();
    // A stop does not wait for a newer list.
    let mut listing = door.link.listing();
    let mut stops = stops_among(&listing, &door.config, &steps);
    if stops.is_empty() {
        listing = door.link.refreshed().await;
        stops = stops_among(&listing, &door.config, &steps);
    }
    // The emergency stop of the door includes those of the toolboxes.
    if stops.toolboxes && stops.door != Some(StopTool::EmergencyStop) {
        return stop_toolboxes(door, &listing, stops.door, &steps, asked).await;
    }
    if let Some(tool) = stops.door {
        return stop_alone(door, tool, stops.others, asked).await;
    }
    let checked = serde_json::from_value::<Vec<RunStep>>(steps)
        .map_err(|error| error.to_string())
        .and_then(|steps| Ok((of_list(&listing, &steps)?, steps)));
    match checked {
        Ok(((sent, effect), steps)) => make(door, effect, sent, &steps, asked).await,
        Err(why) => invalid(&why),
    }
}

/// Sends a run to the service and returns what became of it. `shown` are its steps as the client named them.
async fn make(
    door: &Door,
    effect: Effect,
    sent: Vec<RunStep>,
    shown: &[RunStep],
    asked: &CallRequest,
) -> CallToolResult {
    let tool = ListedTool {
        exported: NAME.to_owned(),
        toolbox_id: String::new(),
        name: NAME.to_owned(),
        effect,
        category: None,
        description: String::new(),
        arguments: Arc::new(run_tool::arguments()),
        output: None,
        agent_end: Vec::new(),
    };
    let (context, call_id) = (&asked.context, asked.call.call_id());
    let token = context.meta.get_progress_token();
    let request = RunRequest {
        steps: sent,
        options: CallOptions {
            call_id: Some(call_id.to_owned()),
            progress: token.is_some() || effect == Effect::Motion,
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
        answer_of_run(&tool, shown, &answer),
    );
    let reports = answer.data.get("steps").and_then(Value::as_array);
    for report in reports.into_iter().flatten().filter_map(Value::as_object) {
        result
            .content
            .extend(content::blocks(&door.content, report).await);
    }
    result
}

/// The stops among the steps of a run.
struct Stops {
    /// One of the door's own; the wider one if both are there.
    door: Option<StopTool>,
    /// Whether there are stops of toolboxes.
    toolboxes: bool,
    /// Whether there are other steps.
    others: bool,
}

impl Stops {
    fn is_empty(&self) -> bool {
        self.door.is_none() && !self.toolboxes
    }
}

fn stops_among(listing: &Listing, config: &McpDoor, steps: &Value) -> Stops {
    let mut stops = Stops {
        door: None,
        toolboxes: false,
        others: false,
    };
    for step in steps.as_array().into_iter().flatten() {
        let name = step.get("name").and_then(Value::as_str);
        match name.and_then(|name| listing::owner(listing, config, name)) {
            Some(Owner::Door(StopTool::EmergencyStop)) => stops.door = Some(StopTool::EmergencyStop),
            Some(Owner::Door(tool)) => stops.door = stops.door.or(Some(tool)),
            Some(Owner::Toolbox(tool)) if tool.effect == Effect::Stop => stops.toolboxes = true,
            _ => stops.others = true,
        }
    }
    stops
}

/// Carries out the stops of toolboxes in a run, and one of the door's own beside them. Nothing else of the run is done.
async fn stop_toolboxes(
    door: &Door,
    listing: &Listing,
    own: Option<StopTool>,
    steps: &Value,
    asked: &CallRequest,
) -> CallToolResult {
    // It does not wait, so that the stop does not count it among what waited.
    asked.turn.passes();
    // Each is sent before the first await.
    let own = own.map(|tool| door.link.begin_stop(tool));
    let mut shown = named_steps(steps);
    shown.retain(|step| {
        !matches!(
            listing::owner(listing, &door.config, &step.name),
            Some(Owner::Door(_))
        )
    });
    // The service, too, carries out nothing but the stops of such a run. It is not given the names that this client cannot call.
    let sent = shown.iter().map(|step| match listing.tool(&step.name) {
        Some(tool) => of_service(step, tool),
        None => RunStep {
            id: step.id.clone(),
            ..RunStep::default()
        },
    });
    let made = make(door, Effect::Stop, sent.collect(), &shown, asked).await;
    match own {
        Some(own) => joined(answer::result(own.await), made),
        None => made,
    }
}

/// Carries out a stop of the door's own, and says so of the other steps of its run, if there are any.
async fn stop_alone(door: &Door, tool: StopTool, has_others: bool, asked: &CallRequest) -> CallToolResult {
    // As in `stop_toolboxes`.
    asked.turn.passes();
    let mut result = answer::result(door.link.begin_stop(tool).await);
    if has_others {
        result.is_error = Some(true);
        let why = "Only the stop was carried out, and no other step of the run: call those that are still wanted by themselves.";
        answer::remark(&mut result, why.to_owned());
    }
    result
}

/// The ids and names of steps, as far as they have any.
fn named_steps(steps: &Value) -> Vec<RunStep> {
    let text = |step: &Value, key: &str| {
        step.get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let steps = steps.as_array().into_iter().flatten();
    steps
        .map(|step| RunStep {
            id: text(step, "id"),
            name: text(step, "name"),
            ..RunStep::default()
        })
        .collect()
}

/// The result of the door's own stop, and that of the stops of toolboxes.
fn joined(own: CallToolResult, of_toolboxes: CallToolResult) -> CallToolResult {
    let failed = [&own, &of_toolboxes]
        .iter()
        .any(|result| result.is_error == Some(true));
    let mut joined = of_toolboxes;
    joined.content.splice(0..0, own.content);
    let data = joined.structured_content.as_mut().and_then(Value::as_object_mut);
    if let Some((data, own)) = data.zip(own.structured_content) {
        data.insert("stop_moving".to_owned(), own);
    }
    joined.is_error = Some(failed);
    joined
}

/// Returns the steps with the names that the service knows, and what they are together: motion if one moves something.
fn of_list(listing: &Listing, steps: &[RunStep]) -> Result<(Vec<RunStep>, Effect), String> {
    let mut effect = Effect::Write;
    let mut sent = Vec::with_capacity(steps.len());
    for step in steps {
        let Some(tool) = listing.tool(&step.name) else {
            return Err(format!(
                "step '{}': '{}' is not a tool of this list that can be a step",
                step.id, step.name
            ));
        };
        // A `safe` step moves something, too. The service ends a run that may move something if its door is silent.
        if matches!(tool.effect, Effect::Motion | Effect::Safe) {
            effect = Effect::Motion;
        }
        sent.push(of_service(step, tool));
    }
    Ok((sent, effect))
}

/// A step as the service knows it.
fn of_service(step: &RunStep, tool: &ListedTool) -> RunStep {
    RunStep {
        name: tool.name.clone(),
        toolbox_id: Some(tool.toolbox_id.clone()),
        ..step.clone()
    }
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
            Ok(()) => Answer::failure(
                "the service's answer cannot be read: check what was carried out before you call it again",
                json!({"ok": false}),
            ),
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
