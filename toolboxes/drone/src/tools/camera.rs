//! Photos and videos, through the camera that MAVSDK has found.

use std::time::Duration;

use super::{NoArgs, Outcome};
use crate::answer::Reply;
use crate::guard::{Refusal, Row, refuse};
use crate::vehicle::{Call, Command};

fn camera(call: &Call) -> Result<i32, Refusal> {
    call.vehicle
        .telemetry()
        .camera
        .map_or_else(|| refuse("no_camera", "the vehicle has no camera"), Ok)
}

pub(crate) async fn capture_photo(call: &Call, _: &Row, _: NoArgs) -> Outcome {
    let before = call.vehicle.telemetry().captures;
    call.send(Command::TakePhoto(camera(call)?)).await?;
    let taken = call
        .wait(Duration::from_secs(5), |heard| {
            (heard.captures > before).then_some(())
        })
        .await?;
    match taken {
        Some(()) => Ok(Reply::done("a photo was taken")),
        None => refuse("unconfirmed", "the camera acknowledged and reported no photo"),
    }
}

pub(crate) async fn start_video(call: &Call, _: &Row, _: NoArgs) -> Outcome {
    call.send(Command::StartVideo(camera(call)?)).await?;
    Ok(Reply::done("recording"))
}

pub(crate) async fn stop_video(call: &Call, _: &Row, _: NoArgs) -> Outcome {
    call.send(Command::StopVideo(camera(call)?)).await?;
    Ok(Reply::done("not recording any more"))
}
