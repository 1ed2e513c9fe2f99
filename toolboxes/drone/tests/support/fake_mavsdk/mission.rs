//! Missions and geofences, as MAVSDK converts them to MAVLink items.

use drone::mavsdk::geofence::geofence_service_server::GeofenceService;
use drone::mavsdk::geofence::{
    Circle, FenceType, GeofenceResult, Point, Polygon, UploadGeofenceRequest, UploadGeofenceResponse,
};
use drone::mavsdk::mission::mission_service_server::MissionService;
use drone::mavsdk::mission::*;
use px4_sim::fence::{Area, Fence};
use px4_sim::log::Cause;
use px4_sim::mission::{CHANGE_SPEED, Item, WAYPOINT};
use px4_sim::{Ack, Mode};
use tonic::Request;

use super::{Answered, FakeMavsdk, Sim, Told};

fn result(ack: Ack) -> Option<MissionResult> {
    let (result, text) = match ack {
        Ack::Accepted => (1, "Success"),
        Ack::Unsupported => (7, "Unsupported"),
        _ => (2, "Error"),
    };
    Some(MissionResult {
        result,
        result_str: text.to_owned(),
    })
}

impl Sim {
    fn upload(&mut self, plan: &[MissionItem]) -> Ack {
        let mut items = Vec::new();
        self.mission_starts.clear();
        for item in plan {
            self.mission_starts.push(items.len());
            let stay = if item.is_fly_through { 0.0 } else { 0.5 };
            items.push(Item {
                command: WAYPOINT,
                params: [stay, item.acceptance_radius_m.into(), 0.0, item.yaw_deg.into()],
                lat: item.latitude_deg,
                lon: item.longitude_deg,
                alt: item.relative_altitude_m.into(),
            });
            if item.speed_m_s.is_finite() {
                items.push(Item {
                    command: CHANGE_SPEED,
                    params: [1.0, item.speed_m_s.into(), -1.0, 0.0],
                    lat: 0.0,
                    lon: 0.0,
                    alt: 0.0,
                });
            }
        }
        self.vehicle.upload_mission(items)
    }

    fn progress(&self) -> MissionProgress {
        let mission = self.vehicle.mission();
        let total = self.mission_starts.len();
        let finished = mission
            .reached
            .is_some_and(|reached| reached + 1 >= mission.items.len());
        let starts = self
            .mission_starts
            .iter()
            .filter(|start| **start <= mission.current)
            .count();
        let current = if finished { total } else { starts.saturating_sub(1) };
        MissionProgress {
            current: current as i32,
            total: total as i32,
        }
    }
}

impl FakeMavsdk {
    /// The answer, or MAVSDK's timeout if it was lost.
    async fn late(&self, answer: Option<MissionResult>) -> Option<MissionResult> {
        let lost = self.lock().unacknowledged;
        if answer.is_some() && !lost {
            return answer;
        }
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        Some(MissionResult {
            result: 5,
            result_str: "Timeout".to_owned(),
        })
    }
}

#[tonic::async_trait]
impl MissionService for FakeMavsdk {
    type SubscribeMissionProgressStream = Told<MissionProgressResponse>;

    async fn upload_mission(
        &self,
        request: Request<UploadMissionRequest>,
    ) -> Answered<UploadMissionResponse> {
        let plan = request
            .into_inner()
            .mission_plan
            .map_or(Vec::new(), |plan| plan.mission_items);
        let mission_result = result(self.lock().upload(&plan));
        Ok(UploadMissionResponse { mission_result }.into())
    }

    async fn start_mission(&self, _: Request<StartMissionRequest>) -> Answered<StartMissionResponse> {
        let step = |sim: &mut Sim| {
            let reachable = sim.reachable();
            reachable.then(|| sim.vehicle.set_mode(Mode::Mission, Cause::Command))
        };
        let ack = self.last_step("mission", step).await;
        let mission_result = self.late(ack.and_then(result)).await;
        Ok(StartMissionResponse { mission_result }.into())
    }

    async fn pause_mission(&self, _: Request<PauseMissionRequest>) -> Answered<PauseMissionResponse> {
        let mission_result = result(self.lock().vehicle.set_mode(Mode::Hold, Cause::Command));
        Ok(PauseMissionResponse { mission_result }.into())
    }

    async fn clear_mission(&self, _: Request<ClearMissionRequest>) -> Answered<ClearMissionResponse> {
        let mission_result = result(self.lock().upload(&[]));
        Ok(ClearMissionResponse { mission_result }.into())
    }

    async fn set_return_to_launch_after_mission(
        &self,
        _: Request<SetReturnToLaunchAfterMissionRequest>,
    ) -> Answered<SetReturnToLaunchAfterMissionResponse> {
        let mission_result = result(Ack::Accepted);
        Ok(SetReturnToLaunchAfterMissionResponse { mission_result }.into())
    }

    async fn subscribe_mission_progress(
        &self,
        _: Request<SubscribeMissionProgressRequest>,
    ) -> Answered<Self::SubscribeMissionProgressStream> {
        let read = |sim: &Sim| {
            let mission_progress = Some(sim.progress());
            Some(MissionProgressResponse { mission_progress })
        };
        Ok(self.every(0.5, read).into())
    }
}

#[tonic::async_trait]
impl GeofenceService for FakeMavsdk {
    async fn upload_geofence(
        &self,
        request: Request<UploadGeofenceRequest>,
    ) -> Answered<UploadGeofenceResponse> {
        let data = request.into_inner().geofence_data.unwrap_or_default();
        let mut sim = self.lock();
        let home = sim.vehicle.home;
        let mut fence = Fence::default();
        let local = |point: &Point| home.to_local(point.latitude_deg, point.longitude_deg);
        for Polygon { points, fence_type } in &data.polygons {
            let area = Area::Polygon(points.iter().map(local).collect());
            side(&mut fence, *fence_type).push(area);
        }
        for Circle {
            point,
            radius,
            fence_type,
        } in &data.circles
        {
            let centre = point.as_ref().map_or((0.0, 0.0), local);
            let radius = f64::from(*radius);
            side(&mut fence, *fence_type).push(Area::Circle { centre, radius });
        }
        let (result, text) = match sim.vehicle.upload_fence(fence) {
            Ack::Accepted => (1, "Success"),
            _ => (2, "Error"),
        };
        Ok(UploadGeofenceResponse {
            geofence_result: Some(GeofenceResult {
                result,
                result_str: text.to_owned(),
            }),
        }
        .into())
    }
}

fn side(fence: &mut Fence, fence_type: i32) -> &mut Vec<Area> {
    if fence_type == FenceType::Exclusion as i32 {
        &mut fence.outside
    } else {
        &mut fence.inside
    }
}
