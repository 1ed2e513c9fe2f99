//! Photos and videos, through the camera that MAVSDK reports.
//!
//! A camera's acknowledgement proves neither photo nor video: the tools wait for its report.

use std::time::Duration;

use ovos_toolbox_sdk::prelude::Content;
use tokio::time::Instant;

use super::arguments::NoArgs;
use crate::answer::{Outcome, Reply};
use crate::guard::{Refusal, Row, refuse};
use crate::vehicle::{Call, Command};

/// How long a camera may take to report a photo, vehicle time.
const PHOTO: Duration = Duration::from_secs(5);
/// How long to wait for the camera's report on its recording, wall time: mavsdk_server asks every 5 s and needs two
/// answers for one report.
const VIDEO: Duration = Duration::from_secs(12);

fn camera(call: &Call) -> Result<i32, Refusal> {
    call.vehicle
        .telemetry()
        .camera
        .map_or_else(|| refuse("no_camera", "the vehicle has no camera"), Ok)
}

pub(crate) async fn capture_photo(call: &Call, _: &Row, _: NoArgs) -> Outcome {
    let before = call.vehicle.telemetry();
    call.send(Command::TakePhoto(camera(call)?)).await?;
    let taken = call
        .wait(PHOTO, |heard| {
            if heard.captures > before.captures {
                return Some(Some(heard.photo_url.clone()));
            }
            (heard.failed_captures > before.failed_captures).then_some(None)
        })
        .await?;
    match taken {
        Some(Some(url)) => {
            if let Some(picture) = picture(&url) {
                call.show(picture);
            }
            Ok(Reply::done("a photo was taken"))
        }
        Some(None) => refuse("denied", "the camera reports that the photo failed"),
        None => refuse("unconfirmed", "the camera acknowledged and reported no photo"),
    }
}

/// The picture, if the camera serves it over HTTP; most cameras only store their pictures. A path to a local file names
/// a file of the vehicle, never one of this machine.
fn picture(url: &str) -> Option<Content> {
    let is_served = ["http://", "https://"]
        .iter()
        .any(|scheme| url.starts_with(scheme));
    let mime_type = match url.rsplit('.').next().map(str::to_ascii_lowercase).as_deref() {
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("png") => "image/png",
        _ => "application/octet-stream",
    };
    is_served.then(|| Content::link(mime_type, url).titled("The photo, on the camera"))
}

pub(crate) async fn start_video(call: &Call, _: &Row, _: NoArgs) -> Outcome {
    call.send(Command::StartVideo(camera(call)?)).await?;
    recording(call, true).await
}

pub(crate) async fn stop_video(call: &Call, _: &Row, _: NoArgs) -> Outcome {
    call.send(Command::StopVideo(camera(call)?)).await?;
    recording(call, false).await
}

/// Waits until the camera reports that it records, or that it does not.
async fn recording(call: &Call, wanted: bool) -> Outcome {
    let acknowledged = Instant::now();
    let mut reported = None;
    let report = call
        .wait(call.vehicle.clock.vehicle(VIDEO), |heard| {
            // An earlier report says nothing about this command.
            reported = heard
                .recording
                .filter(|seen| seen.at > acknowledged)
                .map(|seen| seen.value);
            (reported == Some(wanted)).then_some(())
        })
        .await?;
    let (done, contrary) = if wanted {
        ("recording", "it is not recording")
    } else {
        ("not recording any more", "it is still recording")
    };
    match (report, reported) {
        (Some(()), _) => Ok(Reply::done(done)),
        (None, Some(_)) => refuse(
            "unconfirmed",
            format!("the camera acknowledged and reports that {contrary}"),
        ),
        (None, None) => refuse(
            "unconfirmed",
            "the camera acknowledged and has not reported whether it records",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::picture;

    #[test]
    fn only_a_picture_that_the_camera_serves_is_returned() {
        for (url, mime_type) in [
            ("http://192.168.0.10/DCIM/0001.JPG", Some("image/jpeg")),
            ("https://camera.local/1.png", Some("image/png")),
            ("http://camera.local/last", Some("application/octet-stream")),
            ("simulated://photo/0", None),
            ("file:///etc/passwd", None),
            ("/DCIM/0001.JPG", None),
            ("", None),
        ] {
            let found = picture(url);
            let found = found.map(|item| (item.mime_type, item.uri, item.path));
            let expected = mime_type.map(|it| (it.to_owned(), Some(url.to_owned()), None));
            assert_eq!(found, expected, "{url}");
        }
    }
}
