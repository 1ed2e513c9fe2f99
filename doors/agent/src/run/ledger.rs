//! What a run knows: its conversation, what it has used and moved, and the state of the machine.
//!
//! Read [`Run`].

use ovos_toolbox_wire::Object;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::answer::Ids;
use crate::batch::Claim;
use crate::budget::Usage;
use crate::end::End;
use crate::hands::Hands;
use crate::prompt;
use crate::record::Step;
use crate::settings::Settings;
use crate::state::State;
use crate::toolbelt::Toolbelt;

/// A run under way.
pub(crate) struct Run<'a> {
    pub(super) hands: Hands<'a>,
    pub(super) settings: &'a Settings,
    pub(super) belt: &'a Toolbelt,
    pub(super) state: State,
    pub(super) used: Usage,
    pub(super) ids: Ids,
    pub(super) began: Instant,
    /// The conversation.
    pub(super) messages: Vec<Value>,
    /// The number of messages that the record already has.
    pub(super) recorded: usize,
    /// The pictures of results, for the conversation.
    pub(super) pictures: Vec<Value>,
    /// The claims of the calls that moved something, each once.
    pub(super) moved: Vec<Claim>,
    pub(crate) steps: Vec<Step>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(hands: Hands<'a>, belt: &'a Toolbelt) -> Self {
        let settings = hands.settings;
        let text_tools = settings.as_text().then(|| belt.definitions());
        let messages = vec![
            prompt::system(&settings.door.instructions, text_tools),
            prompt::goal(&settings.goal),
        ];
        Self {
            hands,
            settings,
            belt,
            state: State::new(&settings.goal),
            used: Usage::default(),
            ids: Ids::default(),
            began: Instant::now(),
            messages,
            recorded: 0,
            pictures: Vec::new(),
            moved: Vec::new(),
            steps: Vec::new(),
        }
    }

    pub(super) fn remaining(&self) -> Value {
        self.used.remaining(self.settings.budgets(), self.began.elapsed())
    }

    pub(super) fn used_object(&self) -> Value {
        json!({
            "steps": self.used.steps,
            "calls": self.used.calls,
            "tokens": self.used.tokens,
            "rotation_deg": self.used.rotation_deg,
            "forward_m": self.used.forward_m,
        })
    }

    /// Updates the state, if there are tools for it.
    pub(super) async fn observe(&mut self) {
        for name in &self.settings.door.state_tools {
            let Some(tool) = self.belt.reader(name) else {
                continue;
            };
            let call_result = self.hands.make(tool, &Object::new()).await;
            let result = call_result.result.as_ref();
            self.used += self.state.observe(&tool.toolbox_id, &tool.name, result);
        }
    }

    /// Returns the end of the run that the state of the machine requires, if any.
    pub(super) fn physical(&self) -> Option<End> {
        for toolbox_id in self.state.taken_over() {
            self.hands
                .interrupt
                .take_over(toolbox_id, "the vehicle reports it");
        }
        if let Some(end) = self.hands.interrupt.raised() {
            return Some(end);
        }
        self.used.overdrawn(self.settings.budgets())
    }
}
