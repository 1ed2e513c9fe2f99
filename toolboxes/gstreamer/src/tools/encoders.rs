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

/// Get the encoders of this machine, hardware first: codec, limits, and as many properties as fit.
#[derive(Deserialize, JsonSchema)]
struct EncoderArguments {
    /// `h264`, `h265`, `all`, or one by name, such as `x264enc`, with all of its properties.
    #[serde(default = "all")]
    #[schemars(extend("examples" = ["h264", "h265", "all", "x264enc"]))]
    encoder: String,
    /// What they encode.
    #[serde(default = "video")]
    media: Media,
}

fn all() -> String {
    "all".to_owned()
}

fn video() -> Media {
    Media::Video
}

/// By the name that is used in a pipeline; hardware first, then by rank.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
struct Encoders(#[schemars(with = "std::collections::BTreeMap<String, Encoder>")] Map<String, Value>);

/// Greatest size of an answer in bytes, so that a model can read it; one encoder may take more.
const MOST_BYTES: usize = 16_000;

async fn get_encoder_info(
    context: Context<Gstreamer>,
    arguments: EncoderArguments,
) -> Result<Encoders, ToolError> {
    let EncoderArguments { encoder, media } = arguments;
    let found = look(&context, move |machine| {
        let codec = match encoder.as_str() {
            "h264" => Codec::H264,
            "h265" => Codec::H265,
            "all" => Codec::All,
            name => {
                let one = machine.catalog.encoder(name).ok_or_else(|| {
                    let suggestion = machine.suggestions.element(name);
                    ToolError::bad_args(format!(
                        "no encoder '{name}': expected h264, h265, all or the name of an encoder. {suggestion}"
                    ))
                })?;
                return Ok(vec![one]);
            }
        };
        let mut found = machine.catalog.encoders(codec, Some(media));
        shorten(&mut found, if codec == Codec::All { 0 } else { MOST_BYTES })?;
        Ok::<_, ToolError>(found)
    })
    .await??;
    let mut encoders = Map::new();
    for (name, encoder) in found {
        encoders.insert(name, serde_json::to_value(encoder)?);
    }
    Ok(Encoders(encoders))
}

/// Leaves out the details of encoders, from the last one, until they fit into so many bytes or none is left.
fn shorten(found: &mut [(String, Encoder)], most: usize) -> serde_json::Result<()> {
    let size = |one: &(String, Encoder)| serde_json::to_vec(one).map(|text| text.len());
    let mut sum = found.iter().map(size).sum::<serde_json::Result<usize>>()?;
    for one in found.iter_mut().rev() {
        if sum <= most {
            break;
        }
        sum -= size(one)?;
        one.1.summarize();
        sum += size(one)?;
    }
    Ok(())
}
