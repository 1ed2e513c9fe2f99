//! Connection, identification, camera and parameters.

use drone::mavsdk::camera::camera_service_server::CameraService;
use drone::mavsdk::camera::*;
use drone::mavsdk::core::core_service_server::CoreService;
use drone::mavsdk::core::{ConnectionState, ConnectionStateResponse, SubscribeConnectionStateRequest};
use drone::mavsdk::info::info_service_server::InfoService;
use drone::mavsdk::info::*;
use drone::mavsdk::param::param_service_server::ParamService;
use drone::mavsdk::param::*;
use futures_util::StreamExt;
use px4_sim::Ack;
use px4_sim::params::Param;
use tonic::Request;

use super::{Answered, FakeMavsdk, Sim, Told, change_stream};

const CAMERA: i32 = 100;

#[tonic::async_trait]
impl CoreService for FakeMavsdk {
    type SubscribeConnectionStateStream = Told<ConnectionStateResponse>;

    async fn subscribe_connection_state(
        &self,
        _: Request<SubscribeConnectionStateRequest>,
    ) -> Answered<Self::SubscribeConnectionStateStream> {
        let sim = self.clone();
        let clock = tokio::time::interval(std::time::Duration::from_secs(1));
        // The server reports the initial state, and a change after three seconds of silence.
        let start = (clock, None, 0u32);
        let states = futures_util::stream::unfold(start, move |(mut clock, mut known, mut silent)| {
            let sim = sim.clone();
            async move {
                loop {
                    clock.tick().await;
                    silent = if sim.lock().silent { silent + 1 } else { 0 };
                    let is_connected = silent < 3;
                    if known != Some(is_connected) {
                        known = Some(is_connected);
                        return Some((is_connected, (clock, known, silent)));
                    }
                }
            }
        });
        let tell = |is_connected| {
            Ok(ConnectionStateResponse {
                connection_state: Some(ConnectionState { is_connected }),
            })
        };
        let states: Self::SubscribeConnectionStateStream = Box::pin(states.map(tell));
        Ok(states.into())
    }
}

fn known() -> Option<InfoResult> {
    Some(InfoResult {
        result: 1,
        result_str: "Success".to_owned(),
    })
}

#[tonic::async_trait]
impl InfoService for FakeMavsdk {
    async fn get_identification(
        &self,
        _: Request<GetIdentificationRequest>,
    ) -> Answered<GetIdentificationResponse> {
        let uid = self.lock().uid;
        let identification = Some(Identification {
            hardware_uid: format!("{uid:016x}00000000000000000000"),
            legacy_uid: uid,
        });
        Ok(GetIdentificationResponse {
            info_result: known(),
            identification,
        }
        .into())
    }

    async fn get_version(&self, _: Request<GetVersionRequest>) -> Answered<GetVersionResponse> {
        let version = Some(Version {
            flight_sw_major: 1,
            flight_sw_minor: 16,
            flight_sw_patch: 1,
        });
        Ok(GetVersionResponse {
            info_result: known(),
            version,
        }
        .into())
    }
}

impl Sim {
    fn camera(&mut self, component: i32, act: impl FnOnce(&mut Self) -> Ack) -> Option<CameraResult> {
        let ack = if component == CAMERA {
            act(self)
        } else {
            Ack::Unsupported
        };
        let (result, text) = match ack {
            Ack::Accepted => (1, "Success"),
            Ack::Unsupported => (12, "Action Unsupported"),
            _ => (4, "Denied"),
        };
        Some(CameraResult {
            result,
            result_str: text.to_owned(),
        })
    }
}

#[tonic::async_trait]
impl CameraService for FakeMavsdk {
    type SubscribeCameraListStream = Told<CameraListResponse>;
    type SubscribeCaptureInfoStream = Told<CaptureInfoResponse>;
    type SubscribeStorageStream = Told<StorageResponse>;

    async fn take_photo(&self, request: Request<TakePhotoRequest>) -> Answered<TakePhotoResponse> {
        let component = request.into_inner().component_id;
        let camera_result = self.lock().camera(component, |sim| sim.vehicle.take_photo());
        Ok(TakePhotoResponse { camera_result }.into())
    }

    async fn start_video(&self, request: Request<StartVideoRequest>) -> Answered<StartVideoResponse> {
        let component = request.into_inner().component_id;
        let camera_result = self.lock().camera(component, |sim| sim.vehicle.start_video());
        Ok(StartVideoResponse { camera_result }.into())
    }

    async fn stop_video(&self, request: Request<StopVideoRequest>) -> Answered<StopVideoResponse> {
        let component = request.into_inner().component_id;
        let camera_result = self.lock().camera(component, |sim| sim.vehicle.stop_video());
        Ok(StopVideoResponse { camera_result }.into())
    }

    async fn subscribe_camera_list(
        &self,
        _: Request<SubscribeCameraListRequest>,
    ) -> Answered<Self::SubscribeCameraListStream> {
        let present = {
            let mut sim = self.lock();
            sim.asks_for_cameras = true;
            sim.vehicle.payload.present
        };
        let cameras = present.then(|| Information {
            component_id: CAMERA,
            vendor_name: "px4-sim".to_owned(),
            model_name: "simulated camera".to_owned(),
        });
        let list = CameraListResponse {
            camera_list: Some(CameraList {
                cameras: cameras.into_iter().collect(),
            }),
        };
        let once = futures_util::stream::iter([Ok(list)]).chain(futures_util::stream::pending());
        let list: Self::SubscribeCameraListStream = Box::pin(once);
        Ok(list.into())
    }

    async fn subscribe_capture_info(
        &self,
        _: Request<SubscribeCaptureInfoRequest>,
    ) -> Answered<Self::SubscribeCaptureInfoStream> {
        let photos = self.lock().photos.subscribe();
        let make = |photo: px4_sim::vehicle::Photo| CaptureInfoResponse {
            capture_info: Some(CaptureInfo {
                component_id: CAMERA,
                position: Some(Position {
                    latitude_deg: photo.lat,
                    longitude_deg: photo.lon,
                    absolute_altitude_m: photo.alt as f32,
                    relative_altitude_m: photo.height as f32,
                }),
                time_utc_us: 0,
                is_success: true,
                index: photo.index,
                file_url: format!("simulated://photo/{}", photo.index),
            }),
        };
        Ok(change_stream(photos, make).into())
    }

    async fn subscribe_storage(
        &self,
        _: Request<SubscribeStorageRequest>,
    ) -> Answered<Self::SubscribeStorageStream> {
        let read = |sim: &Sim| {
            sim.vehicle.payload.present.then(|| StorageResponse {
                update: Some(StorageUpdate {
                    component_id: CAMERA,
                    storage: Some(Storage {
                        component_id: CAMERA,
                        video_on: sim.vehicle.payload.recording_since.is_some(),
                    }),
                }),
            })
        };
        // Interval at which the server asks the camera.
        Ok(self.every(5.0, read).into())
    }
}

fn found(known: bool) -> Option<ParamResult> {
    let (result, text) = if known {
        (1, "Success")
    } else {
        (9, "Does Not Exist")
    };
    Some(ParamResult {
        result,
        result_str: text.to_owned(),
    })
}

#[tonic::async_trait]
impl ParamService for FakeMavsdk {
    async fn get_param_int(&self, request: Request<GetParamIntRequest>) -> Answered<GetParamIntResponse> {
        let value = match self.lock().vehicle.params.get(&request.into_inner().name) {
            Some(Param::Int(value)) => Some(value),
            _ => None,
        };
        Ok(GetParamIntResponse {
            param_result: found(value.is_some()),
            value: value.unwrap_or_default(),
        }
        .into())
    }

    async fn get_param_float(
        &self,
        request: Request<GetParamFloatRequest>,
    ) -> Answered<GetParamFloatResponse> {
        let value = match self.lock().vehicle.params.get(&request.into_inner().name) {
            Some(Param::Float(value)) => Some(value),
            _ => None,
        };
        Ok(GetParamFloatResponse {
            param_result: found(value.is_some()),
            value: value.unwrap_or_default(),
        }
        .into())
    }
}
