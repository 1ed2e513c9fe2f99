//! `ovos.tools.plan`: the plan of a call or a run that is not run.

use std::fmt::Write as _;
use std::time::Duration;

use futures_util::future::join_all;
use ovos_toolbox_wire::Object;
use serde::Serialize;
use serde_json::Value;

use super::actions::{entries, label};
use super::arguments::{RequestArguments, prepare};
use super::error::WireError;
use super::invoke::engine_request;
use super::request::Request;
use super::resolve::Name;
use super::state::Api;
use client::payload::{CallOptions, PlanErrorResponse, PlanResponse, RunPlanResponse, RunStepPlan};
use engine::{Plan, PlannedAction};

/// How long a plan waits for a toolbox that is being replaced. Unlike a call it has no timeout of its own, and its
/// client can ask again.
const PATIENCE: Duration = Duration::from_secs(1);

/// The plan, or an error.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum PlanAnswer {
    Call(Box<PlanResponse>),
    Run(RunPlanResponse),
    Failed(PlanErrorResponse),
}

impl Api {
    pub(super) async fn plan(&self, request: &Request) -> PlanAnswer {
        let name = Name::of(&request.data).echo();
        // A request with `name` is about a call, even if it has `steps`: a call ignores unknown keys.
        let of_run = request.data.contains_key("steps") && !request.data.contains_key("name");
        let planned = if of_run {
            self.plan_run(request).await.map(PlanAnswer::Run)
        } else {
            let planned = self.plan_call(request, &request.data, name.clone()).await;
            planned.map(|plan| PlanAnswer::Call(Box::new(plan)))
        };
        match planned {
            Ok(answer) => answer,
            Err(error) => PlanAnswer::Failed(PlanErrorResponse {
                name,
                error: error.text,
            }),
        }
    }

    /// Plans the steps of a run whose arguments are known. The others wait for results, which do not exist before the run.
    async fn plan_run(&self, request: &Request) -> Result<RunPlanResponse, WireError> {
        let (mut steps, _) = self.checked_steps(&request.data)?;
        let mut plans = Vec::with_capacity(steps.all().len());
        for index in 0..steps.all().len() {
            let open = steps.open(index);
            let step = &steps.all()[index];
            let (id, name, mut data) = (step.id.clone(), step.name.clone(), step.named());
            let after = steps.waits_for(index);
            let args = if open.is_empty() {
                steps.arguments(index).ok()
            } else {
                None
            };
            plans.push(async move {
                let plan = RunStepPlan {
                    id,
                    name: name.clone(),
                    after,
                    ..RunStepPlan::default()
                };
                let Some(args) = args else {
                    let planned_later = Some(open);
                    return RunStepPlan {
                        planned_later,
                        ..plan
                    };
                };
                data.insert("args".to_owned(), args);
                match self.plan_call(request, &data, Value::from(name)).await {
                    Ok(response) => RunStepPlan {
                        plan: Some(response),
                        ..plan
                    },
                    Err(error) => RunStepPlan {
                        error: Some(error.text),
                        ..plan
                    },
                }
            });
        }
        let steps = join_all(plans).await;
        Ok(RunPlanResponse { steps })
    }

    /// Plans one call. `name` is the name as the request wrote it, for the answer.
    async fn plan_call(
        &self,
        request: &Request,
        data: &Object,
        name: Value,
    ) -> Result<PlanResponse, WireError> {
        let mut tools = self.resolve(data)?;
        let tool = tools.pop().ok_or_else(WireError::missing_name)?;
        let (tool, lease) = self.lease(tool, PATIENCE).await?;
        let prepared = prepare(&tool, RequestArguments::in_data(data, "args"))?;
        let options = CallOptions::default();
        let call = engine_request(
            request,
            &tool,
            lease.generation(),
            prepared.arguments,
            &options,
            None,
        );
        let plan = self
            .engine
            .plan(&lease, &call)
            .await
            .map_err(|refusal| WireError::refused(&refusal))?;
        Ok(PlanResponse {
            name,
            toolbox_id: tool.toolbox_id.clone(),
            effect: tool.effect(),
            bound_ms: u64::try_from(plan.bound().as_millis()).unwrap_or(u64::MAX),
            subsystems: plan.claim().to_vec(),
            waves: plan.waves.iter().map(|wave| entries(&plan, wave)).collect(),
            mermaid: mermaid(&plan),
            dot: dot(&plan),
            ignored: prepared.ignored,
        })
    }
}

/// The dependencies of a plan as pairs of indices: an action that comes first, and the one that waits for it.
fn edges(plan: &Plan) -> impl Iterator<Item = (usize, usize)> {
    let into = |(to, action): (usize, &'_ PlannedAction)| {
        action
            .dependencies
            .iter()
            .map(move |&from| (from, to))
            .collect::<Vec<_>>()
    };
    plan.actions.iter().enumerate().flat_map(into)
}

/// The plan as a Mermaid diagram. Labels stand in quotes, so only quotes have to be replaced in them.
fn mermaid(plan: &Plan) -> String {
    let mut text = String::from("flowchart TD\n");
    for (number, wave) in (1..).zip(&plan.waves) {
        _ = writeln!(text, "  subgraph wave{number} [\"Wave {number}\"]");
        for &index in wave {
            let label = label(&plan.actions[index]).replace('"', "#quot;");
            _ = writeln!(text, "    a{index}[\"{label}\"]");
        }
        text.push_str("  end\n");
    }
    for (from, to) in edges(plan) {
        _ = writeln!(text, "  a{from} --> a{to}");
    }
    text
}

/// The plan as a graph in DOT, the language of Graphviz.
fn dot(plan: &Plan) -> String {
    let mut text = String::from("digraph plan {\n  node [shape=box];\n");
    for (number, wave) in (1..).zip(&plan.waves) {
        _ = writeln!(
            text,
            "  subgraph cluster_{number} {{\n    label=\"Wave {number}\";"
        );
        for &index in wave {
            let label = label(&plan.actions[index])
                .replace('\\', "\\\\")
                .replace('"', "\\\"");
            _ = writeln!(text, "    a{index} [label=\"{label}\"];");
        }
        text.push_str("  }\n");
    }
    for (from, to) in edges(plan) {
        _ = writeln!(text, "  a{from} -> a{to};");
    }
    text.push_str("}\n");
    text
}
