//! The calls that wait to be confirmed.
//!
//! A call under *confirm* is made twice. The first time, the answer says what the call would do, and the call waits here. The
//! second time, the same call runs if it shows the token of that answer, or if an operator has approved it meanwhile. Each
//! confirmation is for one run of one call. The current time is an argument and never read from a clock. Read
//! [`Confirmations::ask`].

use std::time::{Duration, Instant};

use ovos_toolbox_wire::Object;
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use config::{Asker, Principal};

/// How long a call may take to come again after an operator's approval.
const APPROVED: Duration = Duration::from_secs(60);

/// How long a refusal holds.
const REFUSED: Duration = Duration::from_secs(600);

/// The number of refusals in a row after which every call of the tool is refused.
const IN_A_ROW: u32 = 3;

/// How many refusals are kept, and how many counts of refusals in a row. The oldest are dropped.
const KEPT: usize = 256;

/// How many calls of one principal may wait.
const OF_ONE: usize = 4;

/// How many calls of all principals of a kind may wait. Principals are only claimed, so their number has no limit; but made-up
/// names of one kind leave no calls of another kind without a place.
const OF_KIND: usize = 64;

/// A call, as a confirmation is bound to it: any difference makes it a different call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    asker: Asker,
    session: Option<String>,
    toolbox_id: String,
    tool: String,
    arguments: [u8; 32],
    generation: u64,
    stop_epoch: u64,
}

impl Subject {
    /// Creates the subject for a call of this tool by this asker. `args` are the checked arguments; the order of their keys
    /// does not matter.
    #[must_use]
    pub fn new(
        asker: impl Into<Asker>,
        session: Option<&str>,
        (toolbox_id, tool): (&str, &str),
        args: &Object,
        (generation, stop_epoch): (u64, u64),
    ) -> Self {
        Self {
            asker: asker.into(),
            session: session.map(str::to_owned),
            toolbox_id: toolbox_id.to_owned(),
            tool: tool.to_owned(),
            arguments: hash(&Value::Object(args.clone())),
            generation,
            stop_epoch,
        }
    }

    /// Those who want the call.
    #[must_use]
    pub fn asker(&self) -> &Asker {
        &self.asker
    }

    /// The toolbox that owns the tool.
    #[must_use]
    pub fn toolbox_id(&self) -> &str {
        &self.toolbox_id
    }

    /// The tool's name.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }
}

/// What a call would do.
#[derive(Debug, Clone)]
pub struct CallDescription {
    /// The description of the call for people.
    pub text: String,
    /// The language of that.
    pub lang: String,
    /// The plan of the call, as far as people see it.
    pub plan: Value,
    everything: [u8; 32],
}

impl CallDescription {
    /// Creates the description. `everything` is all that the plan consists of: if it changes, the call has to be confirmed again.
    #[must_use]
    pub fn new(text: String, lang: String, plan: Value, everything: &Value) -> Self {
        Self {
            text,
            lang,
            plan,
            everything: hash(everything),
        }
    }
}

fn hash(value: &Value) -> [u8; 32] {
    let mut hash = Sha256::new();
    canonical(value, &mut hash);
    hash.finalize().into()
}

/// Adds a value to the hash, with the keys of its objects in order. Lengths separate neighbouring values.
fn canonical(value: &Value, hash: &mut Sha256) {
    let mut count = |mark: u8, count: usize| {
        hash.update([mark]);
        hash.update(u64::try_from(count).unwrap_or(u64::MAX).to_le_bytes());
    };
    match value {
        Value::Array(items) => {
            count(b'[', items.len());
            items.iter().for_each(|item| canonical(item, hash));
        }
        Value::Object(entries) => {
            count(b'{', entries.len());
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in entries {
                canonical(&Value::from(key.as_str()), hash);
                canonical(value, hash);
            }
        }
        plain => {
            let text = plain.to_string();
            count(b'.', text.len());
            hash.update(text);
        }
    }
}

/// A call that waits.
#[derive(Debug, Clone)]
pub struct PendingCall {
    /// The id by which an operator names the call.
    pub id: String,
    /// The token with which the same call runs.
    pub token: String,
    /// The call.
    pub subject: Subject,
    /// What the call would do.
    pub description: CallDescription,
    /// The time until which the call waits.
    pub until: Instant,
    /// Whether an operator has approved it.
    pub approved: bool,
}

/// The side that confirmed a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The caller, with the token.
    Caller,
    /// An operator.
    Operator,
}

/// The result for a call under *confirm*.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The call runs, once.
    Confirmed(By),
    /// The call waits.
    Waits(Box<PendingCall>),
    /// A person has refused it.
    Refused(Hold),
    /// The call does not wait, because this many calls of one of its principals wait already.
    Full(usize),
}

/// A refusal in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// How long the refusal stays in force.
    pub left: Duration,
    /// Whether every call of the tool is refused, because three calls were refused in a row.
    pub whole_tool: bool,
}

/// The error that no call with this id waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no call with this id is waiting for approval; it may have run, expired, or been denied")]
pub struct Unknown;

#[derive(Debug)]
struct Refused {
    /// The call that was refused, without its plan.
    call: PendingCall,
    /// Whether every call of the tool is refused.
    whole_tool: bool,
    /// The side that refused it. A caller refuses for itself, an operator for all callers.
    by: By,
}

/// The calls of which refusals in a row are counted: those of a tool that one caller refuses, or an operator, who is no caller.
type Row = (Option<Principal>, String, String);

/// The calls that wait, and the refusals in force.
#[derive(Debug)]
pub struct Confirmations {
    lifetime: Duration,
    waiting: Vec<PendingCall>,
    refused: Vec<Refused>,
    /// The number of refusals in each row since a call of its tool was last confirmed. The row that was refused last is at the end.
    in_a_row: Vec<(Row, u32)>,
}

impl Confirmations {
    /// Creates an empty store. A call waits for `lifetime`.
    #[must_use]
    pub fn new(lifetime: Duration) -> Self {
        Self {
            lifetime,
            waiting: Vec::new(),
            refused: Vec::new(),
            in_a_row: Vec::new(),
        }
    }

    /// Handles a call under *confirm*, with or without a token. If the call would now do something else than its confirmation
    /// said, it has to be confirmed again.
    pub fn ask(
        &mut self,
        subject: &Subject,
        token: Option<&str>,
        description: CallDescription,
        now: Instant,
    ) -> Answer {
        self.forget(now);
        // A call from before a stop or a reload can never run any more.
        self.waiting.retain(|waiting| {
            let old = &waiting.subject;
            let copy = (subject.generation, subject.stop_epoch);
            old.toolbox_id != subject.toolbox_id || (old.generation, old.stop_epoch) == copy
        });
        self.waiting.retain(|waiting| {
            waiting.subject != *subject || waiting.description.everything == description.everything
        });
        if let Some(refused) = self.refused.iter().find(|refused| refused.holds(subject)) {
            return Answer::Refused(refused.at(now));
        }
        if let Some(at) = self
            .waiting
            .iter()
            .position(|waiting| waiting.subject == *subject)
        {
            let waiting = &self.waiting[at];
            let by = if waiting.approved {
                By::Operator
            } else if token == Some(waiting.token.as_str()) {
                By::Caller
            } else {
                return Answer::Waits(Box::new(waiting.clone()));
            };
            let confirmed = self.waiting.remove(at);
            self.end_rows(&confirmed.subject, by);
            return Answer::Confirmed(by);
        }
        if let Some(of_one) = self.is_full(subject) {
            return Answer::Full(of_one);
        }
        let waiting = PendingCall {
            id: self.new_id(),
            token: Uuid::new_v4().simple().to_string(),
            subject: subject.clone(),
            description,
            until: now + self.lifetime,
            approved: false,
        };
        self.waiting.push(waiting.clone());
        Answer::Waits(Box::new(waiting))
    }

    /// The calls that wait, oldest first.
    pub fn waiting(&mut self, now: Instant) -> &[PendingCall] {
        self.forget(now);
        &self.waiting
    }

    /// The refused calls, oldest first. Their `until` is the end of the refusal.
    pub fn refused(&mut self, now: Instant) -> impl Iterator<Item = &PendingCall> {
        self.forget(now);
        self.refused.iter().map(|refused| &refused.call)
    }

    /// Records an operator's approval: the call runs if it is made again within a minute. An approval ends a refusal of the call.
    ///
    /// # Errors
    /// No such call waits or was refused.
    pub fn approve(&mut self, id: &str, now: Instant) -> Result<PendingCall, Unknown> {
        self.forget(now);
        if let Some(refused) = self.refused.iter().find(|refused| refused.call.id == id) {
            let call = refused.call.clone();
            self.refused.retain(|refused| !refused.holds(&call.subject));
            self.end_rows(&call.subject, By::Operator);
            self.waiting.push(call);
        }
        let waiting = self.waiting.iter_mut().find(|waiting| waiting.id == id);
        let waiting = waiting.ok_or(Unknown)?;
        // A second approval does not prolong the first.
        if !waiting.approved {
            waiting.approved = true;
            waiting.until = now + APPROVED;
        }
        Ok(waiting.clone())
    }

    /// Records an operator's refusal, also of a call that was approved and has not run yet.
    ///
    /// # Errors
    /// No such call waits.
    pub fn deny(&mut self, id: &str, now: Instant) -> Result<PendingCall, Unknown> {
        self.refuse(|waiting| waiting.id == id, By::Operator, now)
            .map(|(waiting, _)| waiting)
    }

    /// Records a caller's refusal, with the token of this call.
    ///
    /// # Errors
    /// No such call waits.
    pub fn decline(&mut self, subject: &Subject, token: &str, now: Instant) -> Result<Hold, Unknown> {
        self.refuse(
            |waiting| waiting.token == token && waiting.subject == *subject,
            By::Caller,
            now,
        )
        .map(|(_, refusal)| refusal)
    }

    fn refuse(
        &mut self,
        meant: impl Fn(&PendingCall) -> bool,
        by: By,
        now: Instant,
    ) -> Result<(PendingCall, Hold), Unknown> {
        self.forget(now);
        let at = self.waiting.iter().position(meant);
        let waiting = self.waiting.remove(at.ok_or(Unknown)?);
        let row = waiting.subject.row(by);
        let before = self.in_a_row.iter().position(|(refused, _)| *refused == row);
        let before = before.map_or(0, |at| self.in_a_row.remove(at).1);
        let whole_tool = before + 1 >= IN_A_ROW;
        if !whole_tool {
            let is_of_caller = |((caller, ..), _): &(Row, u32)| caller.is_some();
            keep(&mut self.in_a_row, (row, before + 1), is_of_caller);
        }
        let mut call = waiting.clone();
        (call.approved, call.until, call.description.plan) = (false, now + REFUSED, Value::Null);
        let refused = Refused { call, whole_tool, by };
        // The other waiting calls to which the refusal applies are dropped, too: they would be refused anyway.
        self.waiting.retain(|other| !refused.holds(&other.subject));
        let refusal = refused.at(now);
        keep(&mut self.refused, refused, |refused| refused.by == By::Caller);
        Ok((waiting, refusal))
    }

    /// Begins the rows of refusals anew that a confirmed call ends: those of its caller, and if an operator has confirmed it, all
    /// rows of the tool.
    fn end_rows(&mut self, subject: &Subject, by: By) {
        let (own, operators) = (subject.row(By::Caller), subject.row(By::Operator));
        let same_tool = |row: &Row| (&row.1, &row.2) == (&own.1, &own.2);
        self.in_a_row.retain(|(row, _)| match by {
            By::Operator => !same_tool(row),
            By::Caller => *row != own && *row != operators,
        });
    }

    /// Returns how many calls wait of the principal, or of the kind of principals, for which no further call may wait.
    fn is_full(&self, subject: &Subject) -> Option<usize> {
        subject.asker.all().find_map(|principal| {
            let askers = || self.waiting.iter().map(|waiting| &waiting.subject.asker);
            let of_one = askers()
                .filter(|asker| asker.all().any(|one| one == principal))
                .count();
            let is_of_kind = |asker: &&Asker| asker.all().any(|one| one.kind == principal.kind);
            let of_kind = askers().filter(is_of_kind).count();
            (of_one >= OF_ONE || of_kind >= OF_KIND).then_some(of_one)
        })
    }

    /// Drops calls and refusals whose time is over.
    fn forget(&mut self, now: Instant) {
        self.waiting.retain(|waiting| waiting.until > now);
        self.refused.retain(|refused| refused.call.until > now);
    }

    /// Creates an id that is short enough to type.
    fn new_id(&self) -> String {
        loop {
            let mut id = Uuid::new_v4().simple().to_string();
            id.truncate(6);
            let mut refused = self.refused.iter().map(|refused| &refused.call);
            if self.waiting.iter().all(|waiting| waiting.id != id) && refused.all(|call| call.id != id) {
                return id;
            }
        }
    }
}

/// Adds to the end of a list. If the list is full, the oldest entry of a caller is dropped, or else the oldest.
fn keep<T>(list: &mut Vec<T>, newest: T, is_of_caller: impl Fn(&T) -> bool) {
    if list.len() >= KEPT {
        let oldest = list.iter().position(is_of_caller).unwrap_or(0);
        list.remove(oldest);
    }
    list.push(newest);
}

impl Subject {
    /// The row in which a refusal of the call counts.
    fn row(&self, by: By) -> Row {
        let caller = match by {
            By::Caller => Some(self.asker.principal().clone()),
            By::Operator => None,
        };
        (caller, self.toolbox_id.clone(), self.tool.clone())
    }
}

impl Refused {
    fn at(&self, now: Instant) -> Hold {
        Hold {
            left: self.call.until.saturating_duration_since(now),
            whole_tool: self.whole_tool,
        }
    }

    fn holds(&self, subject: &Subject) -> bool {
        let refused = &self.call.subject;
        (&refused.toolbox_id, &refused.tool) == (&subject.toolbox_id, &subject.tool)
            && (self.whole_tool || refused.arguments == subject.arguments)
            && (self.by == By::Operator || subject.asker.includes(&refused.asker))
    }
}
