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

/// Get the encoders of this machine, hardware first: codec, limits and properties. Ask for one codec; all are long.
#[derive(Deserialize, JsonSchema)]
struct EncoderArguments {
    /// Which codec.
    #[serde(default)]
    encoder: Codec,
    /// What they encode.
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
