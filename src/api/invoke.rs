//! `ovos.tools.invoke`, `ovos.persona.tools.call` and its predecessor: runs a tool.
//!
//! The order of checks is the published one: name, tool, type of the arguments, the arguments themselves.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ovos_toolbox_wire::{CallOutcome, Effect, Object, Report};
use serde_json::Value;
use tokio::sync::watch;

use super::arguments::{RequestArguments, prepare};
use super::asking::Asking;
use super::error::WireError;
use super::keys::call_options;
use super::permit::Denied;
use super::progress::Progress;
use super::request::Request;
use super::resolve::{Name, RELOAD_PATIENCE, python_text, tools_of, unavailable};
use super::state::Api;
use crate::content::Gathered;
use crate::registry::Tool;
use client::payload::{CallOptions, CallResponse, ContentMode, InvokeResponse};
use engine::{CallEnd, CallFacts, Lease, Place, Refusal, Verdict};
use schema::ToolArguments;

impl Api {
    pub(super) async fn invoke(self: &Arc<Self>, request: &Request) -> InvokeResponse {
        let name = Name::echoed(&request.data);
        let found = self.resolve(&request.data).map(|(_, tools)| tools);
        self.answered(request, name, found, "args").await
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
        } = self.answered(request, Value::from(name), found, "kwargs").await;
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

    /// Runs the tools that a request names, with the arguments under the key `args`, and answers it.
    async fn answered(
        self: &Arc<Self>,
        request: &Request,
        name: Value,
        found: Result<Vec<Arc<Tool>>, WireError>,
        args: &'static str,
    ) -> InvokeResponse {
        let Came {
            result: outcome,
            gathered,
            ignored,
            ..
        } = self.came(request, found, args).await;
        let with_detail = request.data.get("detail") == Some(&Value::Bool(true));
        let (result, error) = match outcome {
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
            content: gathered.content,
            content_refused: gathered.refused,
            ignored: if with_detail { ignored } else { Vec::new() },
        }
    }

    /// Makes the call of a request, with the arguments under the key `args`, and returns its result.
    pub(super) async fn came(
        self: &Arc<Self>,
        request: &Request,
        found: Result<Vec<Arc<Tool>>, WireError>,
        args: &'static str,
    ) -> Came {
        let options = call_options(&request.data);
        let mode = options.as_ref().ok().and_then(|options| options.content);
        let mut asking = Asking::new(request);
        let result = match found {
            Ok(tools) => {
                let given = RequestArguments::of(request, args);
                self.run(request, &mut asking, tools, given, options).await
            }
            Err(error) => Err(error),
        };
        let outcome = asking.outcome;
        let ignored = std::mem::take(&mut asking.ignored);
        let gathered = match (mode, asking.content.take(), &result) {
            (Some(mode), Some((toolbox_id, content)), Ok(result)) => {
                let room = match mode {
                    ContentMode::Path => usize::MAX,
                    ContentMode::Inline => self.room_beside(result),
                };
                self.content.gather(&toolbox_id, content, mode, room).await
            }
            _ => Gathered::default(),
        };
        asking.answered(self.engine.facts(), &result);
        Came {
            result,
            outcome,
            gathered,
            ignored,
        }
    }

    /// How many bytes of content fit into an answer beside its result.
    fn room_beside(&self, result: &Value) -> usize {
        /// Reserved for the rest of the frame: the context, the titles and the notes about content that was left out.
        const REST: usize = 256 << 10;
        let result = result.to_string().len();
        self.settings.max_answer_bytes.saturating_sub(result + REST)
    }

    async fn run(
        self: &Arc<Self>,
        request: &Request,
        asking: &mut Asking,
        mut tools: Vec<Arc<Tool>>,
        given: RequestArguments<'_>,
        options: Result<CallOptions, WireError>,
    ) -> Result<Value, WireError> {
        let Some(tool) = tools.pop() else {
            return Err(WireError::unknown_tool(""));
        };
        match tool.effect() {
            Effect::Stop => {
                tools.push(tool);
                Ok(self.run_stop(request, &tools).await)
            }
            Effect::Resume => self.run_resume(request, &tool, given.value()).await,
            _ => self.run_actions(request, asking, tool, given, options).await,
        }
    }

    async fn run_actions(
        self: &Arc<Self>,
        request: &Request,
        asking: &mut Asking,
        tool: Arc<Tool>,
        given: RequestArguments<'_>,
        options: Result<CallOptions, WireError>,
    ) -> Result<Value, WireError> {
        let options_read = options.as_ref().ok();
        let its_id = options_read.and_then(|options| options.call_id.clone());
        let call_id = its_id.unwrap_or_else(|| self.new_call_id());
        let (facts, asked) = (self.engine.facts(), asking.asked.clone());
        let mut call = facts.received(&call_id, &tool.toolbox_id, tool.name(), tool.effect(), asked);
        let mut progress = options_read
            .is_some_and(|options| options.progress)
            .then(|| Progress::new(self.outbox.clone(), request, call.queue()));
        asking.call = Some(call.clone());
        let ran = self.run_leased(request, &call, progress.as_mut(), tool, given, options);
        let Ran {
            tool,
            report,
            verdict,
            content,
            ignored,
        } = ran.await.inspect_err(|error| call.refused(&error.text))?;
        asking.outcome = Some(report.outcome);
        asking.ignored = ignored;
        if !content.is_empty() {
            asking.content = Some((tool.toolbox_id.clone(), content));
        }
        let output = WireError::concluded(tool.name(), &tool.toolbox_id, &verdict, &report)?;
        check_output(&tool, output)
    }

    /// # Errors
    /// The call does not run.
    async fn run_leased(
        self: &Arc<Self>,
        request: &Request,
        call: &CallFacts,
        mut progress: Option<&mut Progress>,
        tool: Arc<Tool>,
        given: RequestArguments<'_>,
        options: Result<CallOptions, WireError>,
    ) -> Result<Ran, WireError> {
        let mut changed = self.registry.watch();
        let (mut tool, mut lease, mut place) = match self.engine.lease(&tool.toolbox_id, tool.generation) {
            Some(lease) => (tool, lease, None),
            None => {
                // The toolbox is being replaced. The call is registered while it waits, so that a cancel or a stop
                // ends it.
                let place = self.place(request, &tool, call, &options.clone()?)?;
                let (tool, lease) = waited(place.wait_for(self.lease(tool, RELOAD_PATIENCE)).await)?;
                (tool, lease, Some(place))
            }
        };
        let ToolArguments {
            arguments: args,
            ignored,
        } = prepare(&tool, given)?;
        let options = options?;
        loop {
            let run = engine::CallRequest {
                operator: self.settings.operator_tools,
                ..engine_request(
                    request,
                    &tool,
                    lease.generation(),
                    args.clone(),
                    &options,
                    Some(call),
                )
            };
            // Registered before the policy decides, so that a cancel, the timeout and max_calls apply meanwhile.
            let entered = match place.take() {
                Some(place) => Ok(place),
                None => self.engine.enter(&run),
            };
            let entered = entered.map_err(|refusal| WireError::refused(&refusal))?;
            let end = {
                let running = pin!(async {
                    let permitted = self.permit(request, &tool, &lease, &run, &options, call);
                    let judged = match entered.wait_for(permitted).await {
                        Ok(Ok(judged)) => judged,
                        Ok(Err(Denied::Answer(error))) => return Err(error),
                        Ok(Err(Denied::Engine(refusal))) | Err(refusal) => {
                            return Ok(CallEnd::Refused(refusal));
                        }
                    };
                    Ok(self.engine.call_at(entered, &lease, run, judged).await)
                });
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
                    return Ok(Ran {
                        tool,
                        report,
                        verdict,
                        content,
                        ignored,
                    });
                }
            }
            drop(lease);
            let next = self.next_copy(tool.clone(), &mut changed, request, call, &options);
            let (newer, its_lease, its_place) = next.await?;
            (tool, lease, place) = (newer, its_lease, Some(its_place));
        }
    }

    /// Registers a call that has to wait for a copy of its toolbox.
    fn place(
        &self,
        request: &Request,
        tool: &Tool,
        call: &CallFacts,
        options: &CallOptions,
    ) -> Result<Place<'_>, WireError> {
        let waiting = engine_request(request, tool, 0, Object::new(), options, Some(call));
        self.engine
            .enter(&waiting)
            .map_err(|refusal| WireError::refused(&refusal))
    }

    /// Waits for the next copy of a toolbox that died, within the call's timeout.
    async fn next_copy(
        &self,
        tool: Arc<Tool>,
        changed: &mut watch::Receiver<u64>,
        request: &Request,
        call: &CallFacts,
        options: &CallOptions,
    ) -> Result<(Arc<Tool>, Lease, Place<'_>), WireError> {
        let place = self.place(request, &tool, call, options)?;
        let next = async {
            // The dead copy leaves the registry a moment after its death.
            let looked = changed.changed().await;
            looked.map_err(|_| unavailable(&tool.toolbox_id, "the service is shutting down"))?;
            self.lease(tool.clone(), RELOAD_PATIENCE).await
        };
        let (tool, lease) = waited(place.wait_for(next).await)?;
        Ok((tool, lease, place))
    }

    pub(super) fn new_call_id(&self) -> String {
        format!("call-{}", self.call_ids.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// The result of a call.
pub(super) struct Came {
    pub(super) result: Result<Value, WireError>,
    /// How the call ended; `None` if it never ran.
    pub(super) outcome: Option<CallOutcome>,
    /// The content that the request asks for.
    pub(super) gathered: Gathered,
    /// The arguments that the tool did not get.
    pub(super) ignored: Vec<String>,
}

impl Came {
    /// The result of a call that was not made.
    pub(super) fn refused(error: WireError) -> Self {
        Self {
            result: Err(error),
            outcome: None,
            gathered: Gathered::default(),
            ignored: Vec::new(),
        }
    }
}

/// A call that ran.
struct Ran {
    /// The tool of the generation that ran the call.
    tool: Arc<Tool>,
    report: Report,
    verdict: Verdict,
    content: Vec<Value>,
    ignored: Vec<String>,
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
