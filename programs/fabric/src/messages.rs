//! What a mount asks a host, and what the host answers: JSON in the queries and replies of Zenoh. Read [`Ask`].
//!
//! The last part of a query's key is the right that it needs, the part before it the name of who asks. Access control compares that
//! name with the one in the certificate, and delivers no query whose name is not the sender's, or whose right the sender lacks.

use ovos_toolbox_wire::{Content, Event, Object, Progress, Report, Start};
use protocol::{Raw, RunEnd};
use serde::{Deserialize, Serialize};

use crate::peers::Role;

/// The beginning of every key.
const PREFIX: &str = "ovos-tools/v1";

/// The newest version of these messages that this release speaks.
pub(crate) const NEWEST: u32 = 1;
/// The oldest.
pub(crate) const OLDEST: u32 = 1;

/// How long a lease lasts after the beat that renewed it, in milliseconds.
pub(crate) const LEASE_MS: u64 = 500;
/// How often a mount sends a beat, which asks for a sign of life and renews its lease, in milliseconds.
pub(crate) const BEAT_MS: u64 = 100;
/// How old a start may be when the host takes it, in milliseconds.
pub(crate) const START_AGE_MS: u64 = 250;

/// What a query is allowed to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// To look, to start what only reads, to cancel, and to stop.
    Read,
    /// To start what changes or moves something.
    Command,
    /// To lift an emergency stop.
    Resume,
}

impl Right {
    pub(crate) const ALL: [Self; 3] = [Self::Read, Self::Command, Self::Resume];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Command => "command",
            Self::Resume => "resume",
        }
    }

    /// Whether a machine of this role has it.
    pub(crate) fn is_of(self, role: Role) -> bool {
        match self {
            Self::Read => true,
            Self::Command => role >= Role::Commander,
            Self::Resume => role >= Role::Operator,
        }
    }
}

/// The key of what `peer` asks `host` for with this right.
pub(crate) fn key(host: &str, peer: &str, right: Right) -> String {
    format!("{PREFIX}/{host}/{peer}/{}", right.as_str())
}

/// The key of everything that this host is asked.
pub(crate) fn every_key(host: &str) -> String {
    format!("{PREFIX}/{host}/*/*")
}

/// Who asks with this key, and with which right.
pub(crate) fn parse_key(key: &str) -> Option<(&str, Right)> {
    let mut parts = key.rsplit('/');
    let right = parts.next()?;
    let right = Right::ALL.into_iter().find(|known| known.as_str() == right)?;
    Some((parts.next()?, right))
}

/// What a mount asks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", content = "body", rename_all = "snake_case")]
pub(crate) enum Ask {
    /// Who the host is; answered by [`Hello`].
    Hello(Versions),
    /// The tools of a toolbox; answered by a `ToolList`.
    Tools { toolbox: String },
    /// A sign of life; answered by [`Pulse`].
    Beat(Beat),
    /// The actions of a call; answered by `Option<Plan>`.
    Plan {
        toolbox: String,
        tool: String,
        args: Raw<Object>,
    },
    /// Starts an action; answered by [`RunUpdate`]s, the last of which is its end.
    Start(Box<StartAsk>),
    /// The result of a call; answered by `Option<Conclusion>`.
    Conclude {
        toolbox: String,
        tool: String,
        args: Raw<Object>,
        report: Raw<Report>,
    },
    /// Asks a run to end; answered by `null`.
    Cancel {
        toolbox: String,
        mount: String,
        run: u64,
    },
    /// Ends motion without an emergency; answered by `null`.
    Halt {
        toolbox: String,
        subsystems: Vec<String>,
    },
    /// An emergency stop, repeated with the same `id` until it is answered by [`StopAnswer`].
    Stop {
        toolbox: String,
        id: String,
        reason: String,
        /// The host's own stop that this one repeats; missing for a new stop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mirrors: Option<String>,
    },
    /// Lifts the stop `stop_id`, the newest that the asker knows; answered by [`ResumeAnswer`], also where nothing is stopped.
    Resume {
        toolbox: String,
        stop_id: Option<String>,
    },
    /// Lifts a stop wherever it holds on the host; answered by [`ResumeAnswer`].
    ResumeAll { stop_id: String },
    /// The mount ends: its lease is over; answered by `null`.
    Leave { toolbox: String, mount: String },
}

/// What a side of the fabric speaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Versions {
    /// The newest version of the messages.
    pub(crate) newest: u32,
    /// The oldest.
    pub(crate) oldest: u32,
    /// Its release, for people.
    pub(crate) release: String,
    /// What it can do beyond the version; what the other side does not know is ignored.
    #[serde(default)]
    pub(crate) features: Vec<String>,
}

impl Versions {
    /// Those of this release.
    pub(crate) fn own() -> Self {
        Self {
            newest: NEWEST,
            oldest: OLDEST,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            features: Vec::new(),
        }
    }

    /// The version in which two sides speak to each other; `here` and `there` are their names.
    ///
    /// # Errors
    /// There is none; the text names the side that is too old.
    pub(crate) fn agree(&self, here: &str, other: &Self, there: &str) -> Result<u32, String> {
        let common = self.newest.min(other.newest);
        let too_old = |old: (&str, &Self), new: (&str, &Self)| {
            format!(
                "{} is too old: its release {} of ovos-tools speaks version {} of the fabric at most, and {} (release {}) version {} \
                 at least; install a newer ovos-tools on {}",
                old.0, old.1.release, old.1.newest, new.0, new.1.release, new.1.oldest, old.0
            )
        };
        if common < other.oldest {
            return Err(too_old((here, self), (there, other)));
        }
        if common < self.oldest {
            return Err(too_old((there, other), (here, self)));
        }
        Ok(common)
    }
}

/// Who a host is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) versions: Versions,
    /// A random id of this run of the host. A different one means that the host was restarted and no earlier run goes on.
    pub(crate) boot: String,
    /// What the asker may do.
    pub(crate) role: Role,
    /// Seconds since 1970 by the host's wall clock, for `doctor` alone.
    pub(crate) wall_clock: u64,
    /// When the host's certificate ends, in seconds since 1970.
    pub(crate) valid_until: u64,
    /// How many connections by unknown machines the host has refused since it started.
    pub(crate) strangers: u64,
    /// Why the host refuses calls that change or move something: the error in its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) closed: Option<String>,
    pub(crate) toolboxes: Vec<ToolboxView>,
}

/// A toolbox of a host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ToolboxView {
    pub(crate) id: String,
    pub(crate) description: String,
    pub(crate) state: String,
    pub(crate) tools: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<StopView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commander: Option<String>,
}

/// The stop that holds a toolbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StopView {
    pub(crate) stop_id: String,
    pub(crate) reason: String,
}

/// A mount's sign of life.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Beat {
    pub(crate) toolbox: String,
    /// Drawn when the mount's program starts.
    pub(crate) mount: String,
    /// Until when the mount wants the lease, by the host's clock; missing if it wants none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lease: Option<u64>,
    /// The host's `boot` that the mount knows; missing on the first beat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) boot: Option<String>,
    /// The last event of that boot that arrived; missing on the first beat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<u64>,
    /// The largest number of a run that the mount has started.
    pub(crate) started: u64,
    /// The runs among those up to `started` whose caller still waits. The host ends all others.
    pub(crate) open: Vec<u64>,
    /// Those that were asked to end.
    pub(crate) cancelled: Vec<u64>,
}

/// The host's sign of life: what is true of the toolbox now.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Pulse {
    pub(crate) boot: String,
    /// The host's clock, in milliseconds.
    pub(crate) clock: u64,
    /// Counts emergency stops since `boot`; a start of an older one is refused.
    pub(crate) epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<StopView>,
    /// Whether the asker holds the lease.
    pub(crate) held: bool,
    /// Whether the asker, which does not hold the lease, gets it soon: with its next beat or, where another mount of its machine holds
    /// it, with the first beat after that mount has ended.
    #[serde(default)]
    pub(crate) lease_comes: bool,
    /// The machine that holds the lease; missing if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commander: Option<String>,
    /// The state of the toolbox: `ready`, or why it takes no calls.
    pub(crate) state: String,
    /// Changes whenever the list of tools changes.
    pub(crate) tools: u64,
    /// The number of the last event.
    pub(crate) last: u64,
    /// Whether motion whose commander is lost is halted there, and not stopped in an emergency.
    #[serde(default)]
    pub(crate) halts_on_loss: bool,
    /// Events after the one that the beat names with their numbers, oldest first; on the first beat those that still hold.
    pub(crate) events: Vec<(u64, Event)>,
}

/// What starts an action.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StartAsk {
    pub(crate) toolbox: String,
    pub(crate) mount: String,
    pub(crate) run: u64,
    pub(crate) boot: String,
    pub(crate) epoch: u64,
    /// Until when the host may begin it, by the host's clock.
    pub(crate) until: u64,
    pub(crate) progress: bool,
    pub(crate) start: Start,
}

/// What a host says of a run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunUpdate {
    Progress(Progress),
    Ended {
        end: RunEnd,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        content: Vec<Content>,
    },
}

/// The answer to a stop: the toolbox is latched in every case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StopAnswer {
    /// The stop that holds the toolbox.
    pub(crate) stop_id: String,
    /// The host's clock once it was stopped: what it said of stops before is out of date.
    pub(crate) clock: u64,
    /// Its count of emergency stops then.
    pub(crate) epoch: u64,
    /// Why its halt was not confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unreached: Option<String>,
}

/// The answer to a resume.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ResumeAnswer {
    /// The host's clock after the stop was lifted: what it said of stops before is out of date.
    pub(crate) clock: u64,
    /// Its count of emergency stops of the toolbox then; missing after a resume of the whole host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) epoch: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_releases_speak_to_each_other_or_say_which_is_too_old() {
        let of = |oldest, newest| Versions {
            newest,
            oldest,
            release: format!("{newest}.0.0"),
            features: vec!["something new".to_owned()],
        };
        for (here, there, expected) in [
            (of(1, 1), of(1, 1), Ok(1)),
            (of(1, 3), of(2, 4), Ok(3)),
            (of(1, 4), of(2, 2), Ok(2)),
            (of(1, 1), of(2, 3), Err("laptop is too old")),
            (of(3, 4), of(1, 2), Err("robot1 is too old")),
        ] {
            let agreed = here.agree("laptop", &there, "robot1");
            match expected {
                Ok(version) => assert_eq!(agreed, Ok(version)),
                Err(text) => assert!(agreed.as_ref().unwrap_err().starts_with(text), "{agreed:?}"),
            }
            // Both sides come to the same result.
            let other = there.agree("robot1", &here, "laptop");
            assert_eq!(other, agreed);
        }
    }

    #[test]
    fn keys_name_who_asks_and_the_right_and_nothing_else_does() {
        for right in Right::ALL {
            assert_eq!(
                parse_key(&key("robot1", "laptop", right)),
                Some(("laptop", right))
            );
        }
        for wrong in ["", "read", "ovos-tools/v1/robot1/laptop/write", "a/b/"] {
            assert_eq!(parse_key(wrong), None, "{wrong}");
        }
        for (role, rights) in [(Role::Viewer, 1), (Role::Commander, 2), (Role::Operator, 3)] {
            let has = Right::ALL.into_iter().filter(|right| right.is_of(role));
            assert_eq!(has.count(), rights, "{role:?}");
        }
    }

    #[test]
    fn an_ask_survives_the_trip() {
        let args = Raw::from_text(r#"{"n":123456789012345678901234567890}"#.to_owned()).unwrap();
        let ask = Ask::Plan {
            toolbox: "arm".to_owned(),
            tool: "wave".to_owned(),
            args,
        };
        let text = serde_json::to_string(&ask).unwrap();
        let back: Ask = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        assert!(text.contains("123456789012345678901234567890"), "{text}");
    }
}
