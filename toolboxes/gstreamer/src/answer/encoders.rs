//! Encoders.

use ovos_toolbox_sdk::prelude::*;
use serde_json::Map;

use crate::catalog::{Codec, Encoder, Media};
use crate::machine::Machine;

/// By the name that is used in a pipeline; hardware first, then by rank.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Encoders(
    #[schemars(with = "std::collections::BTreeMap<String, Encoder>")] Map<String, Value>,
);

/// Greatest size of an answer in bytes, so that a model can read it; one encoder may take more.
const MOST_BYTES: usize = 16_000;

/// The encoders of a codec, or one by name.
///
/// # Errors
/// There is no such encoder.
pub(super) fn find(machine: &Machine, encoder: &str, media: Media) -> Result<Encoders, ToolError> {
    let codec = match encoder {
        "h264" => Some(Codec::H264),
        "h265" => Some(Codec::H265),
        "all" => Some(Codec::All),
        _ => None,
    };
    let found = if let Some(codec) = codec {
        let mut found = machine.catalog.encoders(codec, Some(media));
        shorten(&mut found, if codec == Codec::All { 0 } else { MOST_BYTES })?;
        found
    } else {
        let one = machine.catalog.encoder(encoder).ok_or_else(|| {
            let suggestion = machine.suggestions.element(encoder);
            ToolError::bad_args(format!(
                "no encoder '{encoder}': expected h264, h265, all or the name of an encoder. {suggestion}"
            ))
        })?;
        vec![one]
    };
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
