//! Tools and actions, with their types erased.
//!
//! Owns the path from a typed async function to JSON in and JSON out. Text is parsed directly into the argument type
//! and written directly from the result type, never through a `Value`, so that integers of any size survive. Read
//! [`Tool`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::{Action, Audience, Effect, Object, Plan, Report, ToolDefinition};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::job::Job;
use crate::schema::{argument_schema, close, output_schema};
use crate::{Context, ToolError};

type StartFn<T> = Arc<dyn Fn(Context<T>, &str) -> Result<Job, ToolError> + Send + Sync>;
type PlanFn<T> = Arc<dyn Fn(&T, &str) -> Result<Vec<Action>, ToolError> + Send + Sync>;
type ConcludeFn<T> = Arc<dyn Fn(&T, &str, Report) -> Result<String, ToolError> + Send + Sync>;

/// One constructor for each effect, so that every tool states its effect.
macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $effect:expr;)+) => {$(
        $(#[$doc])*
        ///
        /// It is one action: `handler` is an `async fn(Context<T>, Arguments) -> Result<Output, ToolError>`.
        pub fn $name<A, O, F, R>(name: &str, handler: F) -> Self
        where
            A: DeserializeOwned + JsonSchema + Send + 'static,
            O: Serialize + JsonSchema + 'static,
            F: Fn(Context<T>, A) -> R + Send + Sync + 'static,
            R: Future<Output = Result<O, ToolError>> + Send + 'static,
        {
            Self {
                start: Some(erase(handler)),
                ..Self::defined(name, $effect, argument_schema::<A>(), output_schema::<O>())
            }
        }
    )+};
}

/// A tool: its definition for callers, and its functions.
///
/// The doc comment of the argument type is the tool's description, unless [`Tool::description`] gives one.
pub struct Tool<T> {
    definition: ToolDefinition,
    subsystems: Vec<String>,
    start: Option<StartFn<T>>,
    plan: Option<PlanFn<T>>,
    conclude: Option<ConcludeFn<T>>,
}

impl<T: Send + Sync + 'static> Tool<T> {
    constructors! {
        /// A tool that changes nothing.
        read => Effect::Read;
        /// A tool that changes something without motion.
        write => Effect::Write;
        /// A tool that moves a machine; its toolbox has to implement [`halt`](crate::Toolbox::halt).
        motion => Effect::Motion;
        /// A tool that brings a machine to safety: lands, holds, brakes. It has priority and is never cancelled.
        safe => Effect::Safe;
        /// An emergency stop: the service halts the whole toolbox, whatever the tool itself does.
        stop => Effect::Stop;
        /// A tool that lifts the emergency stop. For operators, not offered to models.
        resume => Effect::Resume;
    }

    /// A tool of several actions. `plan` is pure, does no IO and has 1 s; the [`ActionHandler`] with the name of an
    /// action runs that action; `conclude` makes the tool's result from the report, even of a failed call.
    pub fn planned<A, O, P, C>(name: &str, effect: Effect, plan: P, conclude: C) -> Self
    where
        A: DeserializeOwned + JsonSchema + 'static,
        O: Serialize + JsonSchema + 'static,
        P: Fn(&T, A) -> Result<Vec<Action>, ToolError> + Send + Sync + 'static,
        C: Fn(&T, A, Report) -> Result<O, ToolError> + Send + Sync + 'static,
    {
        Self {
            plan: Some(Arc::new(move |toolbox, args| plan(toolbox, parse(args)?))),
            conclude: Some(Arc::new(move |toolbox, args, report| {
                Ok(serde_json::to_string(&conclude(toolbox, parse(args)?, report)?)?)
            })),
            ..Self::defined(name, effect, argument_schema::<A>(), output_schema::<O>())
        }
    }

    /// A tool whose schemas are known only at run time. Both have an object at the root.
    pub fn dynamic<F, R>(
        name: &str,
        effect: Effect,
        argument_schema: Value,
        output_schema: Value,
        handler: F,
    ) -> Self
    where
        F: Fn(Context<T>, Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        Self {
            start: Some(erase(handler)),
            ..Self::defined(name, effect, argument_schema, output_schema)
        }
    }

    fn defined(name: &str, effect: Effect, mut argument_schema: Value, output_schema: Value) -> Self {
        if matches!(effect, Effect::Motion | Effect::Write) {
            close(&mut argument_schema);
        }
        // Moved rather than copied, so that a model does not read it twice.
        let description = argument_schema
            .as_object_mut()
            .and_then(|schema| schema.shift_remove("description"));
        let description = match description {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        Self {
            definition: ToolDefinition {
                name: name.to_string(),
                description,
                category: None,
                effect,
                audience: Audience::Model,
                for_models: Object::new(),
                timeout_ms: None,
                agent_end: Vec::new(),
                validates: false,
                foreign: false,
                argument_schema,
                output_schema,
            },
            subsystems: Vec::new(),
            start: None,
            plan: None,
            conclude: None,
        }
    }

    /// What the tool is for; models choose tools by it.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.definition.description = text.into();
        self
    }

    /// A heading to group tools under.
    #[must_use]
    pub fn category(mut self, category: impl Into<String>) -> Self {
        self.definition.category = Some(category.into());
        self
    }

    /// For whom the tool is; [`Audience::Model`] if this is not called. Doors show models no tool for [`Audience::Person`].
    #[must_use]
    pub fn audience(mut self, audience: Audience) -> Self {
        self.definition.audience = audience;
        self
    }

    /// What exports and doors say otherwise of the arguments: a merge patch (RFC 7396) of the `properties` of the argument
    /// schema. `null` leaves an argument out, which is accepted all the same; `{"minimum": 1}` states a bound that the tool
    /// itself looks after, such as one that it clamps to.
    #[must_use]
    pub fn for_models(mut self, properties: Object) -> Self {
        self.definition.for_models = properties;
        self
    }

    /// The default duration limit of its actions; 10 s if this is not called.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.definition.timeout_ms = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// The arguments of each call that an agent makes of this `safe` tool when a run that moved what the call holds has
    /// ended.
    #[must_use]
    pub fn agent_end(mut self, calls: Vec<Object>) -> Self {
        self.definition.agent_end = calls;
        self
    }

    /// The subsystems of a single-action tool.
    #[must_use]
    pub fn subsystems<S: Into<String>>(mut self, subsystems: impl IntoIterator<Item = S>) -> Self {
        self.subsystems = subsystems.into_iter().map(Into::into).collect();
        self
    }

    /// Plans a single-action tool whose subsystems depend on the arguments. The tool's handler runs an action of the
    /// tool's own name, with the action's params as arguments.
    #[must_use]
    pub fn plan<A, P>(mut self, plan: P) -> Self
    where
        A: DeserializeOwned + 'static,
        P: Fn(&T, A) -> Result<Vec<Action>, ToolError> + Send + Sync + 'static,
    {
        self.plan = Some(Arc::new(move |toolbox, args| plan(toolbox, parse(args)?)));
        self
    }

    /// Makes the result from the report, even of a failed call; by default the result is the single action's.
    #[must_use]
    pub fn conclude<A, O, C>(mut self, conclude: C) -> Self
    where
        A: DeserializeOwned + 'static,
        O: Serialize + 'static,
        C: Fn(&T, A, Report) -> Result<O, ToolError> + Send + Sync + 'static,
    {
        self.conclude = Some(Arc::new(move |toolbox, args, report| {
            Ok(serde_json::to_string(&conclude(toolbox, parse(args)?, report)?)?)
        }));
        self
    }

    pub(crate) fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    pub(crate) fn start_fn(&self) -> Option<&StartFn<T>> {
        self.start.as_ref()
    }

    /// `{"actions": [...], "sentences": {...}}`, or `None` for the host's one-action plan without a sentence.
    pub(crate) fn make_plan(
        &self,
        toolbox: &T,
        args: &str,
        sentences: &BTreeMap<String, String>,
    ) -> Result<Option<String>, ToolError> {
        if let Some(plan) = &self.plan {
            let plan = Plan {
                actions: plan(toolbox, args)?,
                sentences: sentences.clone(),
            };
            return Ok(Some(serde_json::to_string(&plan)?));
        }
        if self.subsystems.is_empty() && sentences.is_empty() {
            return Ok(None);
        }
        // The arguments are passed on as their original text.
        let params: &RawValue = serde_json::from_str(if args.is_empty() { "{}" } else { args })?;
        let action = Whole {
            name: &self.definition.name,
            subsystems: &self.subsystems,
            params,
        };
        Ok(Some(serde_json::to_string(&WholePlan {
            actions: [action],
            sentences,
        })?))
    }

    /// The result as JSON text, or `None` if the host makes it from the report.
    pub(crate) fn make_conclusion(
        &self,
        toolbox: &T,
        args: &str,
        report: &str,
    ) -> Result<Option<String>, ToolError> {
        let Some(conclude) = &self.conclude else {
            return Ok(None);
        };
        conclude(toolbox, args, parse(report)?).map(Some)
    }
}

#[derive(Serialize)]
struct WholePlan<'a> {
    actions: [Whole<'a>; 1],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    sentences: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Whole<'a> {
    name: &'a str,
    subsystems: &'a [String],
    params: &'a RawValue,
}

/// The handler of an action of a planned tool.
pub struct ActionHandler<T> {
    name: String,
    start: StartFn<T>,
}

impl<T: Send + Sync + 'static> ActionHandler<T> {
    /// Runs the actions named `name`: `handler` is an `async fn(Context<T>, Params) -> Result<Output, ToolError>`.
    pub fn new<A, O, F, R>(name: &str, handler: F) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        O: Serialize + 'static,
        F: Fn(Context<T>, A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        Self {
            name: name.to_string(),
            start: erase(handler),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn start_fn(&self) -> &StartFn<T> {
        &self.start
    }
}

fn erase<T, A, O, F, R>(handler: F) -> StartFn<T>
where
    T: Send + Sync + 'static,
    A: DeserializeOwned + Send + 'static,
    O: Serialize + 'static,
    F: Fn(Context<T>, A) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
{
    Arc::new(move |context, params| {
        let args: A = parse(params)?;
        let work = handler(context, args);
        Ok(Box::pin(async move {
            let output = work.await?;
            serde_json::to_string(&output)
                .map_err(|error| ToolError::msg(format!("cannot serialize the result: {error}")))
        }))
    })
}

pub(crate) fn parse<A: DeserializeOwned>(text: &str) -> Result<A, ToolError> {
    serde_json::from_str(if text.is_empty() { "{}" } else { text }).map_err(ToolError::bad_args)
}
