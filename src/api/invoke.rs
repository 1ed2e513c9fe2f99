//! `ovos.tools.invoke`, `ovos.persona.tools.call` and its predecessor: runs a tool.
//!
//! The order of checks is the published one: name, tool, type of the arguments, the arguments themselves. Read
//! [`Api::make_call`], then `run_tool`.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ovos_toolbox_wire::{CallOutcome, Effect, Object};
use serde_json::Value;
use tokio::sync::watch;

use super::arguments::{RequestArguments, prepare};
use super::error::WireError;
use super::keys::call_options;
use super::permit::Denial;
use super::progress::Progress;
use super::record::RequestRecord;
use super::request::Request;
use super::resolve::{Name, RELOAD_PATIENCE, python_text, tools_of, unavailable};
use super::state::Api;
use crate::content::GatheredContent;
use crate::registry::Tool;
use client::payload::{CallOptions, CallResponse, ContentMode, InvokeResponse};
use engine::{CallEnd, CallFacts, Lease, Refusal, TableEntry};
use schema::ToolArguments;

impl Api {
    pub(super) async fn invoke(self: &Arc<Self>, request: &Request) -> InvokeResponse {
        let name = Name::of(&request.data);
        let found = self.resolve_named(&name, &request.data);
        self.make_call(request, found, "args")
            .await
            .answer(name.echo(), request)
    }

    /// `None` if the toolbox is not in this service: the contract prescribes silence then.
    pub(super) async fn call(
        self: &Arc<Self>,
        request: &Request,
        of_topic: Option<&str>,
    ) -> Option<CallResponse> {
        let toolbox_id = of_topic
            .or_else(|| request.data.get("toolbox_id")?.as_str())?
            .to_owned();
        let snapshot = self.registry.snapshot();
        let off = self.toolboxes.off();
        let off = off.iter().find(|off| off.toolbox_id == toolbox_id);
        if off.is_none() {
            snapshot.toolbox(&toolbox_id)?;
        }
        // The published contract accepts any value as a name here.
        let name = request.data.get("name").map_or_else(String::new, python_text);
        let tools = tools_of(&snapshot, &toolbox_id, &name);
        let found = if tools.is_empty() {
            let mut error = WireError::unknown_tool_of(&name, &toolbox_id);
            error.text += &off.map(|off| format!(": {}", off.reason)).unwrap_or_default();
            Err(error)
        } else {
            Ok(tools)
        };
        let InvokeResponse {
            result,
            error,
            error_detail,
            confirm,
            content,
            content_refused,
            ignored,
            ..
        } = self
            .make_call(request, found, "kwargs")
            .await
            .answer(Value::Null, request);
        Some(CallResponse {
            result,
            error,
            toolbox_id,
            call_id: None,
            error_detail,
            confirm,
            content,
            content_refused,
            ignored,
        })
    }

    /// Runs the tools that a request names, with the arguments under the key `args`: a stop and a resume at once, another tool
    /// through the engine. There are several tools only if all of them are stops.
    pub(super) async fn make_call(
        self: &Arc<Self>,
        request: &Request,
        found: Result<Vec<Arc<Tool>>, WireError>,
        args: &'static str,
    ) -> CallResult {
        let options = call_options(&request.data);
        let mode = options.as_ref().ok().and_then(|options| options.content);
        let arguments = RequestArguments::of(request, args);
        let mut record = RequestRecord::new(request, self.engine.facts(), &self.settings.hidden_arguments);
        let mut result = match found.as_deref() {
            Err(error) => CallResult::refused(error.clone()),
            Ok([]) => CallResult::refused(WireError::unknown_tool("")),
            Ok(tools @ [.., tool]) => match tool.effect() {
                Effect::Stop => CallResult::of(Ok(self.run_stop(request, tools).await)),
                Effect::Resume => CallResult::of(self.run_resume(request, tool, arguments.value()).await),
                _ => {
                    let ran = self.run_tool(request, &mut record, tool.clone(), arguments, options);
                    match ran.await {
                        Ok(ran) => self.with_content(ran, mode).await,
                        Err(error) => CallResult::refused(error),
                    }
                }
            },
        };
        result.outcome = record.outcome;
        record.answered(&result.result, found.as_deref().unwrap_or_default());
        result
    }

    /// Runs a tool that is neither a stop nor a resume.
    ///
    /// # Errors
    /// The call does not run.
    async fn run_tool(
        self: &Arc<Self>,
        request: &Request,
        record: &mut RequestRecord<'_>,
        tool: Arc<Tool>,
        in_request: RequestArguments<'_>,
        options: Result<CallOptions, WireError>,
    ) -> Result<FinishedCall, WireError> {
        let options_read = options.as_ref().ok();
        let its_id = options_read.and_then(|options| options.call_id.clone());
        let call_id = its_id.unwrap_or_else(|| self.new_call_id());
        let (facts, origin) = (self.engine.facts(), record.origin(std::slice::from_ref(&tool)));
        let mut call = facts.received(&call_id, &tool.toolbox_id, tool.name(), tool.effect(), origin);
        let mut progress = options_read
            .is_some_and(|options| options.progress)
            .then(|| Progress::new(self.outbox.clone(), request, call.queue()));
        record.call = Some(call.clone());

        let mut changed = self.registry.watch();
        let mut leased = self.lease_tool(request, tool, &call, &options).await?;
        loop {
            let LeasedTool { tool, lease, entry } = leased;
            let ToolArguments { arguments, ignored } = prepare(&tool, in_request)?;
            let options = options.as_ref().map_err(Clone::clone)?;
            let generation = lease.generation();
            let run = engine::CallRequest {
                operator: self.settings.operator_tools,
                ..engine_request(request, &tool, generation, arguments, options, Some(&call))
            };
            // Registered before the policy decides, so that a cancel, the timeout and max_calls apply meanwhile.
            let entry = match entry {
                Some(entry) => entry,
                None => self
                    .engine
                    .enter(&run)
                    .map_err(|refusal| WireError::refused(&refusal))?,
            };
            let end = {
                let running = pin!(self.permit_and_run(request, (&tool, &lease), entry, run, options, &call));
                match &mut progress {
                    Some(progress) => progress.during(running).await?,
                    None => running.await?,
                }
            };
            match end {
                // The toolbox died before any action had started: the call waits for the next copy.
                CallEnd::Refused(Refusal::NeverBegun(_)) => {}
                CallEnd::Refused(refusal) => return Err(WireError::refused(&refusal)),
                CallEnd::Ran {
                    report,
                    verdict,
                    content,
                    ..
                } => {
                    record.outcome = Some(report.outcome);
                    let output = WireError::concluded(tool.name(), &tool.toolbox_id, &verdict, &report);
                    return Ok(FinishedCall {
                        result: output.and_then(|output| check_output(&tool, output)),
                        tool,
                        content,
                        ignored,
                    });
                }
            }
            drop(lease);
            leased = self
                .lease_successor(tool, &mut changed, request, &call, options)
                .await?;
        }
    }

    /// A copy of the toolbox that takes calls. While the toolbox is being replaced, the call waits, and is registered, so that a
    /// cancel or a stop ends it.
    async fn lease_tool(
        &self,
        request: &Request,
        tool: Arc<Tool>,
        call: &CallFacts,
        options: &Result<CallOptions, WireError>,
    ) -> Result<LeasedTool<'_>, WireError> {
        if let Some(lease) = self.engine.lease(&tool.toolbox_id, tool.generation) {
            let entry = None;
            return Ok(LeasedTool { tool, lease, entry });
        }
        let options = options.as_ref().map_err(Clone::clone)?;
        let entry = self.entry(request, &tool, call, options)?;
        let (tool, lease) = waited(entry.wait_for(self.lease(tool, RELOAD_PATIENCE)).await)?;
        let entry = Some(entry);
        Ok(LeasedTool { tool, lease, entry })
    }

    /// The next copy of a toolbox that died, within the call's timeout.
    async fn lease_successor(
        &self,
        tool: Arc<Tool>,
        changed: &mut watch::Receiver<u64>,
        request: &Request,
        call: &CallFacts,
        options: &CallOptions,
    ) -> Result<LeasedTool<'_>, WireError> {
        let entry = self.entry(request, &tool, call, options)?;
        let next = async {
            // The dead copy leaves the registry a moment after its death.
            let looked = changed.changed().await;
            looked.map_err(|_| unavailable(&tool.toolbox_id, "the service is shutting down"))?;
            self.lease(tool.clone(), RELOAD_PATIENCE).await
        };
        let (tool, lease) = waited(entry.wait_for(next).await)?;
        let entry = Some(entry);
        Ok(LeasedTool { tool, lease, entry })
    }

    /// Runs a call if the policy permits it.
    ///
    /// # Errors
    /// The policy denies the call, or it has to be confirmed first.
    async fn permit_and_run(
        &self,
        request: &Request,
        (tool, lease): (&Tool, &Lease),
        entry: TableEntry<'_>,
        run: engine::CallRequest,
        options: &CallOptions,
        call: &CallFacts,
    ) -> Result<CallEnd, WireError> {
        let permitted = self.permit(request, tool, lease, &run, options, call);
        match entry.wait_for(permitted).await {
            Ok(Ok(plan)) => Ok(self.engine.call_at(entry, lease, run, plan).await),
            Ok(Err(Denial::Answer(error))) => Err(error),
            Ok(Err(Denial::Engine(refusal))) | Err(refusal) => Ok(CallEnd::Refused(refusal)),
        }
    }

    /// Registers a call that has to wait for a copy of its toolbox.
    fn entry(
        &self,
        request: &Request,
        tool: &Tool,
        call: &CallFacts,
        options: &CallOptions,
    ) -> Result<TableEntry<'_>, WireError> {
        let waiting = engine_request(request, tool, 0, Object::new(), options, Some(call));
        self.engine
            .enter(&waiting)
            .map_err(|refusal| WireError::refused(&refusal))
    }

    /// The result of a call that ran, with the content that the request asks for.
    async fn with_content(&self, ran: FinishedCall, mode: Option<ContentMode>) -> CallResult {
        let FinishedCall {
            tool,
            result,
            content,
            ignored,
        } = ran;
        let gathered = match (mode, &result) {
            (Some(mode), Ok(result)) if !content.is_empty() => {
                let room = match mode {
                    ContentMode::Path => usize::MAX,
                    ContentMode::Inline => self.room_beside(result),
                };
                self.content.gather(&tool.toolbox_id, content, mode, room).await
            }
            _ => GatheredContent::default(),
        };
        CallResult {
            gathered,
            ignored,
            ..CallResult::of(result)
        }
    }

    /// How many bytes of content fit into an answer beside its result.
    fn room_beside(&self, result: &Value) -> usize {
        /// Reserved for the rest of the frame: the context, the titles and the notes about content that was left out.
        const REST: usize = 256 << 10;
        let result = result.to_string().len();
        self.settings.max_answer_bytes.saturating_sub(result + REST)
    }

    pub(super) fn new_call_id(&self) -> String {
        format!("call-{}", self.call_ids.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// The copy of a toolbox that a call runs on.
struct LeasedTool<'a> {
    /// The tool of this generation.
    tool: Arc<Tool>,
    lease: Lease,
    /// The entry of a call that had to wait for the copy.
    entry: Option<TableEntry<'a>>,
}

/// A call that ran.
struct FinishedCall {
    /// The tool of the generation that ran the call.
    tool: Arc<Tool>,
    result: Result<Value, WireError>,
    content: Vec<Value>,
    ignored: Vec<String>,
}

/// The result of a call.
pub(super) struct CallResult {
    pub(super) result: Result<Value, WireError>,
    /// How the call ended; `None` if it never ran.
    pub(super) outcome: Option<CallOutcome>,
    /// The content that the request asks for.
    pub(super) gathered: GatheredContent,
    /// The arguments that the tool did not get.
    pub(super) ignored: Vec<String>,
}

impl CallResult {
    fn of(result: Result<Value, WireError>) -> Self {
        Self {
            result,
            outcome: None,
            gathered: GatheredContent::default(),
            ignored: Vec::new(),
        }
    }

    /// The result of a call that was not made.
    pub(super) fn refused(error: WireError) -> Self {
        Self::of(Err(error))
    }

    /// The answer to the request that made the call.
    fn answer(self, name: Value, request: &Request) -> InvokeResponse {
        let with_detail = request.data.get("detail") == Some(&Value::Bool(true));
        let (result, error) = match self.result {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        let detailed = error.as_ref().filter(|_| with_detail);
        InvokeResponse {
            name,
            result,
            error_detail: detailed.map(|error| (*error.detail).clone()),
            confirm: detailed.and_then(|error| error.confirm.as_deref().cloned()),
            error: error.map(|error| error.text),
            // As in every answer, `Api::answer` adds it.
            call_id: None,
            content: self.gathered.content,
            content_refused: self.gathered.refused,
            ignored: if with_detail { self.ignored } else { Vec::new() },
        }
    }
}

/// Turns the end of a wait into a result: the awaited value, or the error of a call that ended meanwhile.
fn waited<T>(outcome: Result<Result<T, WireError>, Refusal>) -> Result<T, WireError> {
    outcome.map_err(|refusal| WireError::refused(&refusal))?
}

pub(super) fn engine_request(
    request: &Request,
    tool: &Tool,
    generation: u64,
    args: Object,
    options: &CallOptions,
    call: Option<&CallFacts>,
) -> engine::CallRequest {
    let text = |value: Option<&Value>| Some(value?.as_str()?.to_owned());
    let session = request.head.context.get("session");
    engine::CallRequest {
        call_id: call.map_or_else(String::new, |facts| facts.call().call_id.clone()),
        toolbox_id: tool.toolbox_id.clone(),
        generation,
        tool: tool.name().to_owned(),
        effect: tool.effect(),
        action_timeout: tool
            .compiled
            .definition
            .timeout_ms
            .map(std::time::Duration::from_millis),
        args,
        session_id: request.head.session_id().map(str::to_owned),
        lang: session.and_then(|session| text(session.get("lang"))),
        source: text(request.head.context.get("source")),
        operator: false,
        content: options.content.is_some(),
        received: request.received,
        timeout: options.timeout(),
        facts: call.cloned(),
    }
}

fn check_output(tool: &Tool, output: Value) -> Result<Value, WireError> {
    if !output.is_object() {
        return Err(WireError::output_of_type(tool.name(), &output));
    }
    match tool.compiled.check(&output) {
        Ok(()) => Ok(output),
        Err(problems) => Err(WireError::invalid_output(
            tool.name(),
            &tool.toolbox_id,
            &problems,
        )),
    }
}
