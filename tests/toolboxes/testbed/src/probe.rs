//! Tools by which tests inspect the toolbox: marks, messages, requests, events, growth, versions and refusals.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::serde_json;
use ovos_toolbox_sdk::tokio;
use ovos_toolbox_sdk::wire::Outcome;

use crate::{Testbed, VERSION};

/// Sets a mark.
#[derive(Deserialize, JsonSchema)]
#[serde(default)]
#[derive(Default)]
struct SetMarkArgs {
    /// How long it takes, in milliseconds; the mark is set at the end.
    ms: u64,
}

#[derive(Serialize, JsonSchema)]
struct MarksOutput {
    marks: u64,
}

async fn set_mark(context: Context<Testbed>, args: SetMarkArgs) -> Result<MarksOutput, ToolError> {
    if args.ms > 0 {
        tokio::time::sleep(Duration::from_millis(args.ms)).await;
    }
    Ok(MarksOutput {
        marks: context.toolbox().marks.fetch_add(1, Ordering::SeqCst) + 1,
    })
}

/// Counts the marks that were set.
#[derive(Deserialize, JsonSchema)]
struct CountMarksArgs {}

async fn count_marks(context: Context<Testbed>, _: CountMarksArgs) -> Result<MarksOutput, ToolError> {
    Ok(MarksOutput {
        marks: context.toolbox().marks.load(Ordering::SeqCst),
    })
}

/// Runs another tool as the only step of its plan, in which the number of marks stands.
#[derive(Deserialize, JsonSchema)]
struct DelegateArgs {
    /// Which.
    tool: String,
}

#[derive(Serialize, JsonSchema)]
struct DelegateOutput {
    success: bool,
}

fn plan_delegate(testbed: &Testbed, args: DelegateArgs) -> Result<Vec<Action>, ToolError> {
    let mut params = Object::new();
    params.insert("marks".to_string(), json!(testbed.marks.load(Ordering::SeqCst)));
    Ok(vec![Action {
        params,
        ..Action::named(&args.tool)
    }])
}

fn conclude_delegate(_: &Testbed, _: DelegateArgs, report: Report) -> Result<DelegateOutput, ToolError> {
    let success = report
        .actions
        .iter()
        .all(|line| line.outcome == Outcome::Completed);
    Ok(DelegateOutput { success })
}

/// The tools that can be steps.
pub(crate) fn actions() -> Vec<ActionHandler<Testbed>> {
    vec![
        ActionHandler::new("set_mark", set_mark),
        ActionHandler::new("count_marks", count_marks),
    ]
}

#[derive(Clone, Default, Serialize, JsonSchema)]
pub(crate) struct LastMessage {
    /// Topic of the last message; null before the first.
    topic: Option<String>,
    /// Its data.
    data: Value,
    /// How many came.
    count: u64,
}

pub(crate) fn remember(testbed: &Testbed, topic: &str, data: Value) {
    let mut last = testbed
        .last_message
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    *last = LastMessage {
        topic: Some(topic.to_string()),
        data,
        count: last.count + 1,
    };
}

/// Returns the last message of a subscribed topic.
#[derive(Deserialize, JsonSchema)]
struct LastMessageArgs {}

async fn last_message(context: Context<Testbed>, _: LastMessageArgs) -> Result<LastMessage, ToolError> {
    Ok(context
        .toolbox()
        .last_message
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone())
}

/// Asks the bus and returns the answer's data.
#[derive(Deserialize, JsonSchema)]
#[serde(default)]
struct AskArgs {
    topic: String,
    data: Value,
    /// How long to wait, in milliseconds.
    timeout_ms: u32,
}

impl Default for AskArgs {
    fn default() -> Self {
        Self {
            topic: "testbed.question".to_string(),
            data: json!({}),
            timeout_ms: 2000,
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct AskOutput {
    answer: Value,
}

async fn ask(context: Context<Testbed>, args: AskArgs) -> Result<AskOutput, ToolError> {
    let timeout = Duration::from_millis(u64::from(args.timeout_ms));
    Ok(AskOutput {
        answer: context.request(&args.topic, args.data, timeout).await?,
    })
}

/// Reports an event.
#[derive(Deserialize, JsonSchema)]
struct EmitEventArgs {
    kind: String,
    #[serde(default)]
    data: Value,
    #[serde(default)]
    severity: Severity,
}

#[derive(Serialize, JsonSchema)]
struct EmitEventOutput {
    emitted: bool,
}

async fn emit_event(context: Context<Testbed>, args: EmitEventArgs) -> Result<EmitEventOutput, ToolError> {
    context.host().send(&Event {
        kind: args.kind,
        severity: args.severity,
        data: Some(args.data),
    });
    Ok(EmitEventOutput { emitted: true })
}

/// Returns content beside its output.
#[derive(Deserialize, JsonSchema)]
#[serde(default)]
#[derive(Default)]
struct ShowArgs {
    /// Becomes a file in the content folder, returned as text before the items.
    text: Option<String>,
    /// Returned as they stand: items of content, with paths below the content folder.
    items: Vec<Value>,
}

#[derive(Serialize, JsonSchema)]
struct ShowOutput {
    /// The content folder.
    folder: Option<String>,
}

async fn show(context: Context<Testbed>, args: ShowArgs) -> Result<ShowOutput, ToolError> {
    if let Some(text) = args.text {
        context
            .show(ContentKind::Text, "text/plain", text.into_bytes())
            .await?;
    }
    for item in args.items {
        let item: Content = serde_json::from_value(item).map_err(ToolError::bad_args)?;
        context.show_item(item);
    }
    let folder = context.content_folder();
    Ok(ShowOutput {
        folder: folder.map(|folder| folder.display().to_string()),
    })
}

/// Makes tools appear: `grown_1` and so on.
#[derive(Deserialize, JsonSchema)]
struct GrowArgs {
    /// How many there are from now on; at most 1000.
    tools: u32,
}

#[derive(Serialize, JsonSchema)]
struct GrowOutput {
    tools: u32,
}

async fn grow(context: Context<Testbed>, args: GrowArgs) -> Result<GrowOutput, ToolError> {
    let tools = args.tools.min(1000);
    *context
        .toolbox()
        .grown
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = tools;
    context.host().tools_changed();
    Ok(GrowOutput { tools })
}

fn grown(number: u32, bytes: usize) -> Tool<Testbed> {
    let arguments = json!({"type": "object", "title": "GrownArgs", "properties": {}});
    let output = json!({
        "type": "object",
        "title": "GrownOutput",
        "properties": {"number": {"type": "integer", "title": "Number"}},
        "required": ["number"],
    });
    let run = move |_: Context<Testbed>, _: Value| async move { Ok(json!({ "number": number })) };
    Tool::dynamic(&format!("grown_{number}"), Effect::Read, arguments, output, run)
        .description(format!("{:.<bytes$}", "Grew on request."))
}

/// Says which build this is.
#[derive(Deserialize, JsonSchema)]
struct VersionArgs {}

#[derive(Serialize, JsonSchema)]
struct VersionOutput {
    /// TESTBED_VERSION when it was compiled.
    version: String,
    /// From the configuration.
    greeting: String,
}

async fn version(context: Context<Testbed>, _: VersionArgs) -> Result<VersionOutput, ToolError> {
    Ok(VersionOutput {
        version: VERSION.to_string(),
        greeting: context.toolbox().greeting.clone(),
    })
}

/// Changes what is refused; what is not given stays.
#[derive(Deserialize, JsonSchema)]
struct ConfigureArgs {
    refuse_resume: Option<bool>,
    refuse_close: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct ConfigureOutput {
    refuse_resume: bool,
    refuse_close: bool,
}

async fn configure(context: Context<Testbed>, args: ConfigureArgs) -> Result<ConfigureOutput, ToolError> {
    let set = |flag: &AtomicBool, value: Option<bool>| match value {
        Some(value) => {
            flag.store(value, Ordering::SeqCst);
            value
        }
        None => flag.load(Ordering::SeqCst),
    };
    let testbed = context.toolbox();
    Ok(ConfigureOutput {
        refuse_resume: set(&testbed.refuse_resume, args.refuse_resume),
        refuse_close: set(&testbed.refuse_close, args.refuse_close),
    })
}

pub(crate) fn allowed(refused: &AtomicBool, reason: &str) -> Result<(), ToolError> {
    if refused.load(Ordering::SeqCst) {
        return Err(ToolError::busy(reason));
    }
    Ok(())
}

pub(crate) fn tools(testbed: &Testbed) -> Vec<Tool<Testbed>> {
    let mut tools = vec![
        Tool::write("set_mark", set_mark).subsystems(["memory"]),
        Tool::read("count_marks", count_marks),
        Tool::planned("delegate", Effect::Read, plan_delegate, conclude_delegate),
        Tool::read("last_message", last_message),
        Tool::read("ask", ask).timeout(Duration::from_secs(60)),
        Tool::read("emit_event", emit_event),
        Tool::read("show", show),
        Tool::read("grow", grow),
        Tool::read("version", version),
        // Its effect is `read`, so that it works while the toolbox is latched.
        Tool::read("configure", configure),
    ];
    let number = *testbed.grown.lock().unwrap_or_else(PoisonError::into_inner);
    tools.extend((1..=number).map(|number| grown(number, testbed.grown_bytes)));
    tools
}
