//! How the toolbox in memory behaves: scripts of its actions, answers and plans. Read [`Script`].

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Action, Conclusion, Failure};
use ovos_tools_engine::NoAnswer;
use serde_json::{Value, json};

/// The behaviour of an action.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// The time that the action takes; `None` if it never ends by itself.
    pub(crate) takes: Option<Duration>,
    pub(crate) then: Then,
    pub(crate) on_cancel: OnCancel,
}

#[derive(Clone, Debug)]
pub(crate) enum Then {
    Complete(Value),
    Show(Value, Vec<Value>),
    Fail,
    Crash,
    /// Ends the run as cancelled without a request to do so.
    Ends,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum OnCancel {
    /// Confirms the cancel after this time.
    Ends(Duration),
    /// Reports an error after this time.
    Fails(Duration),
    /// Reports an output after this time.
    Completes(Duration),
    /// Ignores the request.
    Ignores,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            takes: Some(Duration::from_millis(100)),
            then: Then::Complete(json!({})),
            on_cancel: OnCancel::Ends(Duration::from_millis(10)),
        }
    }
}

impl Script {
    pub(crate) fn takes(ms: u64) -> Self {
        Self {
            takes: Some(Duration::from_millis(ms)),
            ..Self::default()
        }
    }

    pub(crate) fn hangs() -> Self {
        Self {
            takes: None,
            ..Self::default()
        }
    }

    pub(crate) fn fails(ms: u64) -> Self {
        Self {
            then: Then::Fail,
            ..Self::takes(ms)
        }
    }

    pub(crate) fn on_cancel(self, on_cancel: OnCancel) -> Self {
        Self { on_cancel, ..self }
    }

    pub(crate) fn returns_if_it_completes(self, output: Value) -> Self {
        match self.then {
            Then::Complete(_) => self.returns(output),
            _ => self,
        }
    }

    pub(crate) fn returns(self, output: Value) -> Self {
        Self {
            then: Then::Complete(output),
            ..self
        }
    }
}

/// The answer to a halt or a resume.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Answer {
    #[default]
    Yes,
    No,
    Never,
    /// An error because the toolbox is closed.
    Closed,
    /// An error of a toolbox that lives, in the same words.
    SaysClosed,
}

/// The plan and the conclusion of a tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tool {
    pub(crate) plan: Option<Vec<Action>>,
    pub(crate) plan_takes: Duration,
    pub(crate) plan_fails: bool,
    pub(crate) conclusion: Option<Conclusion>,
    pub(crate) conclude_takes: Duration,
}

impl Answer {
    pub(crate) fn answer(self) -> BoxFuture<'static, Result<(), NoAnswer>> {
        let closed = || Failure::new("ToolboxClosed", "it is closed");
        let reply = match self {
            Answer::Yes => Ok(()),
            Answer::No => Err(Failure::new("BackendError", "the button is still pressed").into()),
            Answer::Never => return std::future::pending().boxed(),
            Answer::Closed => Err(NoAnswer::Closed(closed())),
            Answer::SaysClosed => Err(NoAnswer::Failed(closed())),
        };
        std::future::ready(reply).boxed()
    }
}

/// Parses `"id=name subsystem,subsystem < dependency,dependency"`; only the name is required.
pub(crate) fn action(text: &str) -> Action {
    let (head, dependencies) = text.split_once('<').unwrap_or((text, ""));
    let mut words = head.split_whitespace();
    let name = words.next().expect("a name");
    let (id, name) = name
        .split_once('=')
        .map_or((None, name), |(id, name)| (Some(id), name));
    let list = |text: &str| -> Vec<String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    };
    Action {
        id: id.map(str::to_owned),
        subsystems: list(words.next().unwrap_or_default()),
        dependencies: list(dependencies),
        ..Action::named(name)
    }
}

pub(crate) fn actions(lines: &[&str]) -> Vec<Action> {
    lines.iter().map(|line| action(line)).collect()
}
