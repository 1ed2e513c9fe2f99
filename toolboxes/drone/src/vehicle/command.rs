//! The commands sent to MAVSDK, and its answers.
//!
//! Translates commands to gRPC and answers to a [`Trouble`]. Does not decide whether a command may be sent. Read
//! [`Command`].

use std::time::Duration;

use tonic::transport::Channel;

use crate::geo::Ned;
use crate::guard::Mode;
use crate::mavsdk::action::action_service_client::ActionServiceClient;
use crate::mavsdk::camera::camera_service_client::CameraServiceClient;
use crate::mavsdk::mission::mission_service_client::MissionServiceClient;
use crate::mavsdk::offboard::offboard_service_client::OffboardServiceClient;
use crate::mavsdk::{action, camera, mission, offboard};

/// One command. None of them stops the motors in the air.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Arm,
    Disarm,
    TakeoffAltitude(f64),
    Takeoff,
    Land,
    Return,
    Hold,
    Goto {
        lat: f64,
        lon: f64,
        amsl_m: f64,
        yaw_deg: Option<f64>,
    },
    OffboardStart,
    Position {
        ned: Ned,
        yaw_deg: f64,
    },
    Standstill,
    UploadMission(Vec<Waypoint>),
    StartMission,
    TakePhoto(i32),
    StartVideo(i32),
    StopVideo(i32),
}

/// A waypoint of a mission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Waypoint {
    pub(crate) lat: f64,
    pub(crate) lon: f64,
    pub(crate) alt_m: f64,
    pub(crate) speed_mps: f64,
    pub(crate) last: bool,
}

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Trouble {
    #[error("{what}: the vehicle refuses ({answer})")]
    Refused { what: &'static str, answer: String },
    #[error("{what}: {answer}")]
    Unconfirmed { what: &'static str, answer: String },
    #[error("{what}: mavsdk_server does not answer: {cause}")]
    Server { what: &'static str, cause: String },
}

impl Trouble {
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Refused { .. } => "denied",
            Self::Unconfirmed { .. } => "unconfirmed",
            Self::Server { .. } => "link_down",
        }
    }
}

impl Command {
    /// Its name in answers.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Self::Arm => "arm",
            Self::Disarm => "disarm",
            Self::TakeoffAltitude(_) => "set the take-off altitude",
            Self::Takeoff => "takeoff",
            Self::Land => "land",
            Self::Return => "return to launch",
            Self::Hold => "hold",
            Self::Goto { .. } => "goto",
            Self::OffboardStart => "start offboard control",
            Self::Position { .. } => "position setpoint",
            Self::Standstill => "zero velocity setpoint",
            Self::UploadMission(_) => "upload the path",
            Self::StartMission => "start the path",
            Self::TakePhoto(_) => "take a photo",
            Self::StartVideo(_) => "start the video",
            Self::StopVideo(_) => "stop the video",
        }
    }

    /// The mode that it leads to.
    pub(super) fn mode(&self) -> Option<Mode> {
        Some(match self {
            Self::Takeoff => Mode::Takeoff,
            Self::Land => Mode::Land,
            Self::Return => Mode::ReturnToLaunch,
            Self::Hold | Self::Goto { .. } => Mode::Hold,
            Self::OffboardStart => Mode::Offboard,
            Self::StartMission => Mode::Mission,
            _ => return None,
        })
    }

    /// Whether it would take the vehicle from another party that flies it.
    pub(super) fn takes_control(&self) -> bool {
        self.mode().is_some() || matches!(self, Self::Disarm)
    }

    /// Time limit of the request: MAVSDK tries a command three times for half a second; transfers take longer.
    pub(super) fn limit(&self) -> Duration {
        match self {
            Self::Position { .. } | Self::Standstill => Duration::from_secs(1),
            Self::UploadMission(_) => Duration::from_secs(15),
            Self::TakePhoto(_) | Self::StartVideo(_) | Self::StopVideo(_) => Duration::from_secs(10),
            _ => Duration::from_secs(5),
        }
    }

    /// Sends the command and waits for the answer.
    ///
    /// # Errors
    /// See [`Trouble`].
    ///
    /// # Cancel safety
    /// When dropped, the command may or may not be carried out.
    pub(crate) async fn perform(self, channel: Channel) -> Result<(), Trouble> {
        let (limit, unanswered) = (self.limit(), self.unanswered());
        tokio::time::timeout(limit, self.answered(channel))
            .await
            .unwrap_or(Err(unanswered))
    }

    /// The error when the answer has not come within [`Command::limit`].
    pub(super) fn unanswered(&self) -> Trouble {
        Trouble::Server {
            what: self.what(),
            cause: format!("no answer within {} s", self.limit().as_secs()),
        }
    }

    /// Like [`Command::perform`], without a time limit.
    ///
    /// # Errors
    /// See [`Trouble`].
    ///
    /// # Cancel safety
    /// As [`Command::perform`].
    pub(super) async fn answered(self, channel: Channel) -> Result<(), Trouble> {
        let what = self.what();
        match self.request(channel).await {
            Ok(answer) => answer.judge(what),
            Err(status) => Err(Trouble::Server {
                what,
                cause: status.message().to_string(),
            }),
        }
    }

    async fn request(self, channel: Channel) -> Result<Answer, tonic::Status> {
        macro_rules! action {
            ($method:ident, $request:expr) => {
                Answer::of(
                    ActionServiceClient::new(channel)
                        .$method($request)
                        .await?
                        .into_inner()
                        .action_result
                        .map(|result| (result.result, result.result_str)),
                    &[1],
                    &[8, 3, 2],
                )
            };
        }
        macro_rules! offboard {
            ($method:ident, $request:expr) => {
                Answer::of(
                    OffboardServiceClient::new(channel)
                        .$method($request)
                        .await?
                        .into_inner()
                        .offboard_result
                        .map(|result| (result.result, result.result_str)),
                    &[1],
                    &[6, 3, 2],
                )
            };
        }
        macro_rules! mission {
            ($method:ident, $request:expr) => {
                Answer::of(
                    MissionServiceClient::new(channel)
                        .$method($request)
                        .await?
                        .into_inner()
                        .mission_result
                        .map(|result| (result.result, result.result_str)),
                    &[1],
                    &[5, 13],
                )
            };
        }
        macro_rules! camera {
            ($method:ident, $request:expr) => {
                Answer::of(
                    CameraServiceClient::new(channel)
                        .$method($request)
                        .await?
                        .into_inner()
                        .camera_result
                        .map(|result| (result.result, result.result_str)),
                    &[1],
                    &[6, 8],
                )
            };
        }
        Ok(match self {
            Self::Arm => action!(arm, action::ArmRequest {}),
            Self::Disarm => action!(disarm, action::DisarmRequest {}),
            Self::TakeoffAltitude(metres) => action!(
                set_takeoff_altitude,
                action::SetTakeoffAltitudeRequest {
                    altitude: metres as f32
                }
            ),
            Self::Takeoff => action!(takeoff, action::TakeoffRequest {}),
            Self::Land => action!(land, action::LandRequest {}),
            Self::Return => action!(return_to_launch, action::ReturnToLaunchRequest {}),
            Self::Hold => action!(hold, action::HoldRequest {}),
            Self::Goto {
                lat,
                lon,
                amsl_m,
                yaw_deg,
            } => action!(
                goto_location,
                action::GotoLocationRequest {
                    latitude_deg: lat,
                    longitude_deg: lon,
                    absolute_altitude_m: amsl_m as f32,
                    // NaN keeps the heading.
                    yaw_deg: yaw_deg.map_or(f32::NAN, |yaw| yaw as f32),
                }
            ),
            Self::OffboardStart => offboard!(start, offboard::StartRequest {}),
            Self::Position { ned, yaw_deg } => offboard!(
                set_position_ned,
                offboard::SetPositionNedRequest {
                    position_ned_yaw: Some(offboard::PositionNedYaw {
                        north_m: ned[0] as f32,
                        east_m: ned[1] as f32,
                        down_m: ned[2] as f32,
                        yaw_deg: yaw_deg as f32,
                    }),
                }
            ),
            Self::Standstill => offboard!(
                set_velocity_body,
                offboard::SetVelocityBodyRequest {
                    velocity_body_yawspeed: Some(offboard::VelocityBodyYawspeed::default()),
                }
            ),
            Self::UploadMission(waypoints) => mission!(
                upload_mission,
                mission::UploadMissionRequest {
                    mission_plan: Some(mission::MissionPlan {
                        mission_items: waypoints.iter().map(Waypoint::item).collect(),
                    }),
                }
            ),
            Self::StartMission => mission!(start_mission, mission::StartMissionRequest {}),
            Self::TakePhoto(component_id) => camera!(take_photo, camera::TakePhotoRequest { component_id }),
            Self::StartVideo(component_id) => {
                camera!(start_video, camera::StartVideoRequest { component_id })
            }
            Self::StopVideo(component_id) => camera!(stop_video, camera::StopVideoRequest { component_id }),
        })
    }
}

impl Waypoint {
    fn item(&self) -> mission::MissionItem {
        mission::MissionItem {
            latitude_deg: self.lat,
            longitude_deg: self.lon,
            relative_altitude_m: self.alt_m as f32,
            speed_m_s: self.speed_mps as f32,
            is_fly_through: !self.last,
            gimbal_pitch_deg: f32::NAN,
            gimbal_yaw_deg: f32::NAN,
            camera_action: 0,
            loiter_time_s: f32::NAN,
            camera_photo_interval_s: f64::NAN,
            acceptance_radius_m: 1.0,
            yaw_deg: f32::NAN,
            camera_photo_distance_m: f32::NAN,
            vehicle_action: 0,
        }
    }
}

/// MAVSDK's answer.
enum Answer {
    Done,
    Unconfirmed(String),
    Refused(String),
}

impl Answer {
    /// `done` are the result numbers of success, `lost` those that say nothing about the vehicle.
    fn of(result: Option<(i32, String)>, done: &[i32], lost: &[i32]) -> Self {
        match result {
            None => Self::Unconfirmed("mavsdk_server gave no result".to_string()),
            Some((number, _)) if done.contains(&number) => Self::Done,
            Some((number, words)) if lost.contains(&number) => Self::Unconfirmed(words),
            Some((_, words)) => Self::Refused(words),
        }
    }

    fn judge(self, what: &'static str) -> Result<(), Trouble> {
        match self {
            Self::Done => Ok(()),
            Self::Unconfirmed(answer) => Err(Trouble::Unconfirmed { what, answer }),
            Self::Refused(answer) => Err(Trouble::Refused { what, answer }),
        }
    }
}
