//! Encoders.

use ovos_toolbox_sdk::prelude::*;
use serde_json::Map;

use super::look;
use crate::Gstreamer;
use crate::catalog::{Codec, Encoder, Media};

/// The tools of this family.
pub(super) fn tools() -> Vec<Tool<Gstreamer>> {
    vec![
        Tool::read("get_encoder_info", get_encoder_info)
            .category("discovery")
            .timeout(Duration::from_secs(30)),
    ]
}

/// Get detailed information about the encoders of this machine, hardware and software: codec, limits and the properties
/// that can be set. Ask for one codec: all encoders are a long answer.
#[derive(Deserialize, JsonSchema)]
struct EncoderArguments {
    /// Which encoders to query.
    #[serde(default)]
    encoder: Codec,
    /// What they encode; video when not given.
    #[serde(default = "video")]
    media: Media,
}

fn video() -> Media {
    Media::Video
}

/// By the name that is used in a pipeline; hardware first, then by rank.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
struct Encoders(#[schemars(with = "std::collections::BTreeMap<String, Encoder>")] Map<String, Value>);

async fn get_encoder_info(
    context: Context<Gstreamer>,
    arguments: EncoderArguments,
) -> Result<Encoders, ToolError> {
    let found = look(&context, move |machine| {
        machine.catalog.encoders(arguments.encoder, Some(arguments.media))
    })
    .await?;
    let mut encoders = Map::new();
    for (name, encoder) in found {
        encoders.insert(name, serde_json::to_value(encoder)?);
    }
    Ok(Encoders(encoders))
}
