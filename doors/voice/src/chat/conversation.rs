//! A conversation, what its service is told of the tools, and the end of its calls.
//!
//! Read [`Chat`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use config::LongCalls as WhenLong;
use door::{Arrivals, Listing, LongCall, LongCalls, OwnTool as _, StopTool};
use ovos_toolbox_wire::Severity;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::claim::Claim;
use crate::dialect::Target;
use crate::floor::Floor;
use crate::ledger::{CallKey, Ledger};
use crate::line::{ChatError, Line};
use crate::list::{at_most, shown_tools, too_large};
use crate::outcome::Outcome;
use crate::socket::{Socket, dial};

/// How long the end of a conversation waits for its calls. After that the door takes over the calls that go on.
pub(super) const REST_WAIT: Duration = Duration::from_secs(3);

/// The kind of the event about a list of tools that a service refused.
const TOOLS_REFUSED: &str = "voice_tools_refused";

/// A conversation.
pub(crate) struct Chat {
    pub(super) line: Arc<Line>,
    pub(super) target: Target,
    pub(super) ledger: Ledger,
    pub(super) calls: JoinSet<Outcome>,
    /// The order of its calls, over all its sockets.
    pub(super) arrivals: Arrivals,
    /// The key of the call that each task in `calls` carries out, to end it.
    pub(super) keys: HashMap<Id, CallKey>,
    /// The calls under way, to end them.
    pub(super) under_way: HashMap<CallKey, Arc<LongCall<Outcome>>>,
    /// Those that were announced, which the voice can ask for.
    pub(super) handles: Arc<LongCalls<Outcome>>,
    pub(super) changes: watch::Receiver<Arc<Listing>>,
    /// How many tools the service is told of at most, since it refused more.
    pub(super) most_tools: Option<usize>,
    pub(super) leave: CancellationToken,
    pub(super) backoff: Backoff,
    pub(super) floor: Floor,
    pub(super) claim: Option<Claim>,
}

impl Chat {
    /// Claims a conversation and opens its first socket. The conversation ends when `leave` is cancelled.
    ///
    /// # Cancel safety
    /// Safe: a dropped attempt leaves nothing behind.
    pub(crate) async fn open(
        line: Arc<Line>,
        target: Target,
        leave: CancellationToken,
    ) -> Result<(Self, Socket), ChatError> {
        let name = match &target {
            Target::Joined(chat) => chat.clone(),
            Target::Own { .. } => String::new(),
        };
        let opening = line.opening(&target)?;
        let claim = match &target {
            Target::Joined(chat) => Some(Claim::new(&line.claims, line.dialect.name(), chat)?),
            Target::Own { .. } => None,
        };
        let socket = dial(&opening, Arc::clone(&line.trust)).await?;
        let announce_after = match line.config.long_calls {
            WhenLong::Wait => None,
            WhenLong::Announce => Some(line.config.announce_after),
        };
        let chat = Self {
            ledger: Ledger::new(&name, announce_after),
            calls: JoinSet::new(),
            arrivals: line.door.arrivals(),
            keys: HashMap::new(),
            under_way: HashMap::new(),
            handles: Arc::new(LongCalls::new(REST_WAIT)),
            changes: line.door.changes(),
            most_tools: None,
            backoff: Backoff::new(Instant::now()),
            floor: Floor::default(),
            line,
            target,
            leave,
            claim,
        };
        Ok((chat, socket))
    }

    pub(super) fn tell_tools(&mut self, socket: &Socket) -> bool {
        let listing = Arc::clone(&self.changes.borrow_and_update());
        let mut tools = shown_tools(&listing, self.announces());
        if let Some(most) = self.most_tools {
            at_most(&mut tools, most);
        }
        let frames = self.line.dialect.tools_changed(&tools);
        let size: usize = frames.iter().map(String::len).sum();
        if size > self.line.config.warn_list_bytes {
            tracing::warn!("{}", too_large(&tools, size, self.line.config.warn_list_bytes));
        }
        frames.into_iter().all(|frame| socket.send_text(frame))
    }

    /// Tells the service of half as many tools, because it refused them. When it refuses the stops, too, the user is told. Returns
    /// `false` if nothing can be sent any more.
    pub(super) fn tell_fewer_tools(&mut self, socket: &Socket, why: &str) -> bool {
        let listing = self.line.door.listing();
        let tool_count = shown_tools(&listing, self.announces()).len();
        let limit = self.most_tools.map_or(tool_count, |most| most.min(tool_count));
        let dialect = self.line.dialect.name();
        if limit > StopTool::ALL.len() {
            let most = (limit / 2).max(StopTool::ALL.len());
            tracing::warn!(
                dialect,
                why,
                "the voice service rejected a list of {limit} tools; sending {most}"
            );
            self.most_tools = Some(most);
            self.publish_refusal(Severity::Warning, limit, most, why);
            return self.tell_tools(socket);
        }
        tracing::error!(
            dialect,
            why,
            "the voice service accepts no tools: this conversation can neither call nor stop anything"
        );
        if self.most_tools == Some(0) {
            return true;
        }
        self.most_tools = Some(0);
        self.publish_refusal(Severity::Error, limit, 0, why);
        let text = "I have no tools in this conversation: I can neither move nor stop anything. Use the machine's own switch.";
        let frames = self.line.dialect.text_frames(text);
        self.floor.want();
        frames.into_iter().all(|frame| socket.send_text(frame))
    }

    /// Tells the bus, and with it who asked for the conversation, that its service refused the list of tools.
    fn publish_refusal(&self, severity: Severity, told: usize, now: usize, why: &str) {
        let data = json!({
            "dialect": self.line.dialect.name(),
            "conversation": self.ledger.chat(),
            "refused": told,
            "now": now,
            "why": why,
        });
        if let Err(error) = self.line.door.client.event(TOOLS_REFUSED, severity, data) {
            tracing::warn!(%error, "the event about the refused tools was not sent");
        }
    }

    /// Cancels the calls that move something.
    pub(super) fn halt(&mut self, reason: &'static str) {
        let keys = self.ledger.cancel_motion();
        self.end(&keys, reason);
    }

    /// Whether calls that take long are answered before their end.
    pub(super) fn announces(&self) -> bool {
        self.line.config.long_calls == WhenLong::Announce
    }

    pub(super) fn end(&self, keys: &[CallKey], reason: &'static str) {
        for key in keys {
            tracing::info!(tool_call_id = key.id, reason, "cancelling a call");
            if let Some(call) = self.under_way.get(key) {
                call.end(reason);
            }
        }
    }

    pub(super) fn end_all(&self) {
        for call in self.under_way.values() {
            call.end("the conversation is over");
        }
    }
}
