//! The topics of this service.
//!
//! The only table from message types to requests.

/// Prefix of the toolbox topics.
const PERSONA: &str = "ovos.persona.tools.";

/// The name under which this service answers the status topics.
pub const SERVICE_NAME: &str = "ovos_tools";

/// The topic of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topic {
    /// `ovos.tools.list`
    List,
    /// `ovos.tools.get`
    Get,
    /// `ovos.tools.invoke`
    Invoke,
    /// `ovos.tools.run`
    Run,
    /// `ovos.tools.reload`
    Reload,
    /// `ovos.tools.plan`
    Plan,
    /// `ovos.tools.export`
    Export,
    /// `ovos.tools.cancel`
    Cancel,
    /// `ovos.tools.status`
    Status,
    /// `ovos.tools.resume`
    Resume,
    /// `ovos.persona.tools.discover`
    Discover,
    /// `ovos.persona.tools.call`, or its predecessor `ovos.persona.tools.<toolbox_id>.call`
    Call {
        /// Part of the predecessor's topic.
        toolbox_id: Option<String>,
    },
    /// `mycroft.<name>.is_alive`, `.is_ready`
    IsReady,
    /// `mycroft.<name>.all_loaded`
    AllLoaded,
    /// `configuration.updated`, `configuration.cache.clear`
    ConfigurationUpdated,
    /// `configuration.patch`
    ConfigurationPatch,
    /// `configuration.patch.clear`
    ConfigurationPatchClear,
}

/// A request that must not wait behind others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgent {
    /// `ovos.tools.stop`: emergency stop.
    EmergencyStop,
    /// `ovos.stop`, `mycroft.stop`: the user said "stop".
    UserStop,
}

impl Urgent {
    /// The urgent request of a message type.
    #[must_use]
    pub fn of(kind: &str) -> Option<Self> {
        match kind {
            "ovos.tools.stop" => Some(Self::EmergencyStop),
            "ovos.stop" | "mycroft.stop" => Some(Self::UserStop),
            _ => None,
        }
    }
}

impl Topic {
    /// The topic of a message type; `None` if the message is not for this service.
    #[must_use]
    pub fn of(kind: &str, answer_as_phal: bool) -> Option<Self> {
        if let Some(topic) = kind.strip_prefix("ovos.tools.") {
            return Some(match topic {
                "list" => Self::List,
                "get" => Self::Get,
                "invoke" => Self::Invoke,
                "run" => Self::Run,
                "reload" => Self::Reload,
                "plan" => Self::Plan,
                "export" => Self::Export,
                "cancel" => Self::Cancel,
                "status" => Self::Status,
                "resume" => Self::Resume,
                _ => return None,
            });
        }
        if let Some(topic) = kind.strip_prefix(PERSONA) {
            return match topic {
                "discover" => Some(Self::Discover),
                "call" => Some(Self::Call { toolbox_id: None }),
                _ => topic.strip_suffix(".call").map(|id| Self::Call {
                    toolbox_id: Some(id.to_owned()),
                }),
            };
        }
        if let Some(topic) = kind.strip_prefix("mycroft.") {
            let (name, question) = topic.rsplit_once('.')?;
            let ours = name == SERVICE_NAME || (answer_as_phal && name == "PHAL");
            return match question {
                "is_alive" | "is_ready" if ours => Some(Self::IsReady),
                "all_loaded" if ours => Some(Self::AllLoaded),
                _ => None,
            };
        }
        match kind {
            "configuration.updated" | "configuration.cache.clear" => Some(Self::ConfigurationUpdated),
            "configuration.patch" => Some(Self::ConfigurationPatch),
            "configuration.patch.clear" => Some(Self::ConfigurationPatchClear),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_mean_what_the_contract_says() {
        let rows = [
            ("ovos.tools.list", Some(Topic::List)),
            ("ovos.tools.run", Some(Topic::Run)),
            ("ovos.tools.list.response", None),
            ("ovos.tools.stop", None),
            ("ovos.tools.invoke.progress", None),
            ("ovos.tools.", None),
            ("ovos.persona.tools.call", Some(Topic::Call { toolbox_id: None })),
            (
                "ovos.persona.tools.math.call",
                Some(Topic::Call {
                    toolbox_id: Some("math".to_owned()),
                }),
            ),
            ("ovos.persona.tools.math.call.response", None),
            ("mycroft.ovos_tools.is_ready", Some(Topic::IsReady)),
            ("mycroft.ovos_tools.all_loaded", Some(Topic::AllLoaded)),
            ("mycroft.PHAL.is_ready", None),
            ("mycroft.skills.is_ready", None),
            ("configuration.updated", Some(Topic::ConfigurationUpdated)),
            ("configuration.cache.clear", Some(Topic::ConfigurationUpdated)),
            ("configuration.patch", Some(Topic::ConfigurationPatch)),
            ("configuration.patch.clear", Some(Topic::ConfigurationPatchClear)),
            ("recognizer_loop:utterance", None),
        ];
        for (kind, expected) in rows {
            assert_eq!(Topic::of(kind, false), expected, "{kind}");
        }
        assert_eq!(Topic::of("mycroft.PHAL.is_alive", true), Some(Topic::IsReady));
        assert_eq!(Urgent::of("ovos.tools.stop"), Some(Urgent::EmergencyStop));
        assert_eq!(Urgent::of("mycroft.stop"), Some(Urgent::UserStop));
        assert_eq!(Urgent::of("ovos.stop.response"), None);
    }
}
