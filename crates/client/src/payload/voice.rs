//! What the voice door is asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `ovos.tools.voice.join`: the voice door joins a conversation that runs elsewhere. Answered only while such a door runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VoiceJoinRequest {
    /// The speech service: `hume` or `openai`.
    pub dialect: String,
    /// Of `hume`: the id of the chat, 1 to 256 of `[A-Za-z0-9_-]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<String>,
    /// Of `openai`: the id of the call, 1 to 256 of `[A-Za-z0-9_-]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

/// The answer to `ovos.tools.voice.join`, where it is no error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VoiceJoinResponse {
    /// As it was given.
    #[serde(flatten)]
    pub request: VoiceJoinRequest,
    /// True: its calls are answered from now on.
    pub joined: bool,
}
