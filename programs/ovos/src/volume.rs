//! The loudness of the device, which OVOS's plugins for ALSA and PulseAudio set. Read [`set`].

use ovos_toolbox_sdk::schemars::JsonSchema;
use ovos_toolbox_wire::{Failure, FailureKind};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{Duration, Instant, sleep};

use crate::line::{ANSWER_WAIT, Call, Line};

/// How far what a mixer says may be from what it was set to, in percent: some have few steps.
const STEP: u32 = 3;

/// How often the plugin is asked whether it has done it.
const AGAIN: Duration = Duration::from_millis(100);

/// Return the volume of the device, and whether it is muted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetVolumeArgs {}

/// Set the volume of the device, or mute and unmute it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetVolumeArgs {
    /// From 0, which is silent, to 100.
    #[schemars(range(min = 0, max = 100))]
    percent: Option<u32>,
    /// Whether the device is mute.
    muted: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Volume {
    /// From 0 to 100, as the device says it is.
    percent: u32,
    /// Whether the device is mute; null if it does not say.
    muted: Option<bool>,
}

/// Asks how loud it is.
pub(crate) async fn get(line: Line, _: Call, _: GetVolumeArgs) -> Result<Volume, Failure> {
    read(&line).await
}

/// Sets how loud it is, and waits until the device says that it is so.
pub(crate) async fn set(line: Line, _: Call, args: SetVolumeArgs) -> Result<Volume, Failure> {
    if args.percent.is_none() && args.muted.is_none() {
        let text = "expected `percent` (0 to 100), `muted` (true or false) or both";
        return Err(Failure::new(FailureKind::ValueError, text));
    }
    read(&line).await?;
    if let Some(percent) = args.percent {
        let data = json!({"percent": f64::from(percent) / 100.0, "play_sound": false});
        line.send(&line.message("mycroft.volume.set", data, None))?;
    }
    match args.muted {
        Some(true) => line.send(&line.message("mycroft.volume.mute", json!({}), None))?,
        Some(false) => line.send(&line.message("mycroft.volume.unmute", json!({}), None))?,
        None => {}
    }
    let end = Instant::now() + ANSWER_WAIT;
    loop {
        let now = read(&line).await?;
        let is_set = args
            .percent
            .is_none_or(|percent| percent.abs_diff(now.percent) <= STEP);
        if is_set && args.muted.is_none_or(|muted| now.muted == Some(muted)) {
            return Ok(now);
        }
        if Instant::now() >= end {
            let muted = match now.muted {
                Some(true) => "muted",
                Some(false) => "not muted",
                None => "it does not say whether it is muted",
            };
            let text = format!(
                "the device did not do all of it: it is at {} percent, {muted}",
                now.percent
            );
            return Err(Failure::new(FailureKind::StateError, text));
        }
        sleep(AGAIN).await;
    }
}

async fn read(line: &Line) -> Result<Volume, Failure> {
    let topic = "mycroft.volume.get";
    let answer = line
        .ask(topic, json!({}), &["mycroft.volume.get.response"])
        .await?;
    let percent = answer
        .as_ref()
        .and_then(|answer| answer.data.get("percent")?.as_f64());
    let Some((percent, answer)) = percent.zip(answer) else {
        let text = format!(
            "nothing answers {topic}, so nothing was changed; install ovos-PHAL-plugin-alsa or ovos-PHAL-plugin-pulseaudio, and start \
             ovos-PHAL"
        );
        return Err(Failure::new(FailureKind::StateError, text));
    };
    Ok(Volume {
        // At most 100, so it fits.
        percent: (percent * 100.0).round().clamp(0.0, 100.0) as u32,
        muted: answer.data.get("muted").and_then(serde_json::Value::as_bool),
    })
}
