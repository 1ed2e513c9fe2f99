//! Encoders.

use ovos_toolbox_sdk::prelude::*;

use crate::answer::Encoders;
use crate::catalog::Media;
use crate::judge::AnswerText;
use crate::question::Question;
use crate::toolbox::Gstreamer;

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
    /// `h264`, `h265`, `all`, or one such as `x264enc`, with all of its properties.
    #[serde(default = "all")]
    #[schemars(extend("examples" = ["h264", "h265", "all", "x264enc"]))]
    encoder: String,
    #[serde(default = "video")]
    media: Media,
}

fn all() -> String {
    "all".to_owned()
}

fn video() -> Media {
    Media::Video
}

async fn get_encoder_info(
    context: Context<Gstreamer>,
    arguments: EncoderArguments,
) -> Result<AnswerText<Encoders>, ToolError> {
    let EncoderArguments { encoder, media } = arguments;
    context.toolbox().ask(Question::Encoders { encoder, media }).await
}
