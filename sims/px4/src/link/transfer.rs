//! Upload and download of missions and fences, item by item.
//!
//! Start with [`Link::transfer`].

use mavlink::dialects::common::{
    MISSION_ACK_DATA, MISSION_COUNT_DATA, MISSION_ITEM_INT_DATA, MISSION_REQUEST_INT_DATA, MavCmd, MavFrame,
    MavMessage, MavMissionResult, MavMissionType,
};

use num_traits::FromPrimitive;

use super::connection::Link;
use super::upload::Upload;
use crate::{
    fence::{Area, Fence},
    log::Ack,
    mission::Item,
    vehicle::Vehicle,
};

/// Greatest number of items.
const MOST: u16 = 500;
/// Time until a missing item is requested again, simulated seconds.
const RETRY_S: f64 = 0.5;
/// Greatest number of repeated requests.
const RETRIES: u8 = 5;

const FENCE_IN: u16 = 5001;
const FENCE_OUT: u16 = 5002;
const CIRCLE_IN: u16 = 5003;
const CIRCLE_OUT: u16 = 5004;

impl Link {
    pub(super) fn transfer(&mut self, vehicle: &mut Vehicle, message: &MavMessage) {
        match message {
            MavMessage::MISSION_COUNT(count) => self.begin(vehicle, count),
            MavMessage::MISSION_ITEM_INT(item) => self.item(vehicle, item),
            MavMessage::MISSION_CLEAR_ALL(clear) => {
                let all = clear.mission_type == MavMissionType::MAV_MISSION_TYPE_ALL;
                if all || clear.mission_type == MavMissionType::MAV_MISSION_TYPE_MISSION {
                    vehicle.upload_mission(Vec::new());
                }
                if all || clear.mission_type == MavMissionType::MAV_MISSION_TYPE_FENCE {
                    self.fence_items.clear();
                    vehicle.upload_fence(Fence::default());
                }
                self.mission_ack(clear.mission_type, MavMissionResult::MAV_MISSION_ACCEPTED);
            }
            MavMessage::MISSION_SET_CURRENT(set) => {
                vehicle.set_mission_item(usize::from(set.seq));
            }
            MavMessage::MISSION_REQUEST_LIST(request) => {
                let count = self.stored(vehicle, request.mission_type).len() as u16;
                let peer = self.peer;
                self.send(MavMessage::MISSION_COUNT(MISSION_COUNT_DATA {
                    count,
                    target_system: peer.system,
                    target_component: peer.component,
                    mission_type: request.mission_type,
                    opaque_id: 0,
                }));
            }
            MavMessage::MISSION_REQUEST_INT(request) => {
                let stored = self.stored(vehicle, request.mission_type);
                match stored.get(usize::from(request.seq)).copied() {
                    Some(item) => self.send_item(request, &item),
                    None => self.mission_ack(
                        request.mission_type,
                        MavMissionResult::MAV_MISSION_INVALID_SEQUENCE,
                    ),
                }
            }
            _ => {}
        }
    }

    fn stored<'a>(&'a self, vehicle: &'a Vehicle, kind: MavMissionType) -> &'a [Item] {
        match kind {
            MavMissionType::MAV_MISSION_TYPE_MISSION => &vehicle.mission().items,
            MavMissionType::MAV_MISSION_TYPE_FENCE => &self.fence_items,
            _ => &[],
        }
    }

    fn begin(&mut self, vehicle: &mut Vehicle, count: &MISSION_COUNT_DATA) {
        if count.count > MOST {
            self.mission_ack(count.mission_type, MavMissionResult::MAV_MISSION_NO_SPACE);
            return;
        }
        self.upload = Some(Upload {
            kind: count.mission_type,
            count: count.count,
            items: Vec::new(),
            asked: vehicle.time(),
            tries: 0,
        });
        self.ask_or_finish(vehicle);
    }

    fn item(&mut self, vehicle: &mut Vehicle, item: &MISSION_ITEM_INT_DATA) {
        let Some(upload) = &mut self.upload else { return };
        if upload.kind != item.mission_type || usize::from(item.seq) != upload.items.len() {
            return;
        }
        upload.items.push(Item {
            command: item.command as u32 as u16,
            params: [item.param1, item.param2, item.param3, item.param4].map(f64::from),
            lat: f64::from(item.x) / 1e7,
            lon: f64::from(item.y) / 1e7,
            alt: match item.frame as u32 {
                // Above sea level; other frames are relative to home.
                0 | 5 => f64::from(item.z) - vehicle.home_amsl(),
                _ => f64::from(item.z),
            },
        });
        upload.asked = vehicle.time();
        upload.tries = 0;
        self.ask_or_finish(vehicle);
    }

    fn ask_or_finish(&mut self, vehicle: &mut Vehicle) {
        let Some(upload) = self.upload.take() else { return };
        if upload.items.len() < usize::from(upload.count) {
            self.request_item(&upload);
            self.upload = Some(upload);
            return;
        }
        let ack = match upload.kind {
            MavMissionType::MAV_MISSION_TYPE_MISSION => vehicle.upload_mission(upload.items),
            MavMissionType::MAV_MISSION_TYPE_FENCE => {
                let fence = fence_of(&upload.items, vehicle);
                let ack = fence.map_or(Ack::Denied, |fence| vehicle.upload_fence(fence));
                if ack == Ack::Accepted {
                    self.fence_items = upload.items;
                }
                ack
            }
            _ => Ack::Unsupported,
        };
        let result = match ack {
            Ack::Accepted => MavMissionResult::MAV_MISSION_ACCEPTED,
            Ack::Unsupported => MavMissionResult::MAV_MISSION_UNSUPPORTED,
            _ => MavMissionResult::MAV_MISSION_ERROR,
        };
        self.mission_ack(upload.kind, result);
    }

    /// Requests a lost item again, and gives up after some attempts.
    pub(super) fn retry_upload(&mut self, now: f64) {
        let Some(mut upload) = self.upload.take() else {
            return;
        };
        if now - upload.asked > RETRY_S {
            if upload.tries == RETRIES {
                self.mission_ack(upload.kind, MavMissionResult::MAV_MISSION_OPERATION_CANCELLED);
                return;
            }
            upload.tries += 1;
            upload.asked = now;
            self.request_item(&upload);
        }
        self.upload = Some(upload);
    }

    fn request_item(&mut self, upload: &Upload) {
        let peer = self.peer;
        self.send(MavMessage::MISSION_REQUEST_INT(MISSION_REQUEST_INT_DATA {
            seq: upload.items.len() as u16,
            target_system: peer.system,
            target_component: peer.component,
            mission_type: upload.kind,
        }));
    }

    fn mission_ack(&mut self, mission_type: MavMissionType, result: MavMissionResult) {
        let peer = self.peer;
        self.send(MavMessage::MISSION_ACK(MISSION_ACK_DATA {
            target_system: peer.system,
            target_component: peer.component,
            mavtype: result,
            mission_type,
            opaque_id: 0,
        }));
    }

    fn send_item(&mut self, request: &MISSION_REQUEST_INT_DATA, item: &Item) {
        let command = MavCmd::from_u16(item.command).unwrap_or(MavCmd::MAV_CMD_NAV_WAYPOINT);
        let peer = self.peer;
        let [param1, param2, param3, param4] = item.params.map(|value| value as f32);
        self.send(MavMessage::MISSION_ITEM_INT(MISSION_ITEM_INT_DATA {
            param1,
            param2,
            param3,
            param4,
            x: (item.lat * 1e7).round() as i32,
            y: (item.lon * 1e7).round() as i32,
            z: item.alt as f32,
            seq: request.seq,
            command,
            target_system: peer.system,
            target_component: peer.component,
            frame: MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT,
            current: 0,
            autocontinue: 1,
            mission_type: request.mission_type,
        }));
    }
}

/// The areas of an uploaded fence; `None` when corners are missing.
fn fence_of(items: &[Item], vehicle: &Vehicle) -> Option<Fence> {
    let mut fence = Fence::default();
    let mut rest = items;
    while let Some(first) = rest.first() {
        let local = |item: &Item| vehicle.home.to_local(item.lat, item.lon);
        let (area, used) = match first.command {
            CIRCLE_IN | CIRCLE_OUT => (
                Area::Circle {
                    centre: local(first),
                    radius: first.params[0],
                },
                1,
            ),
            FENCE_IN | FENCE_OUT => {
                let count = first.params[0] as usize;
                let corners = rest.get(..count).filter(|_| count >= 3)?;
                (Area::Polygon(corners.iter().map(local).collect()), count)
            }
            _ => return None,
        };
        let areas = match first.command {
            FENCE_IN | CIRCLE_IN => &mut fence.inside,
            _ => &mut fence.outside,
        };
        areas.push(area);
        rest = &rest[used..];
    }
    Some(fence)
}
