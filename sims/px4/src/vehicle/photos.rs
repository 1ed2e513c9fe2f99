//! What the vehicle does with its camera.
//!
//! Start with [`Vehicle::take_photo`].

use super::notice::Notice;
use super::payload::Photo;
use super::state::Vehicle;
use crate::log::Ack;

impl Vehicle {
    /// Takes a photo. Unsupported without a camera.
    pub fn take_photo(&mut self) -> Ack {
        if let Some(ack) = self.idle_camera() {
            return self.command("take_photo", ack);
        }
        let (lat, lon, alt) = self.global();
        let photo = Photo {
            index: self.payload.photos,
            lat,
            lon,
            alt,
            height: self.height(),
            yaw: self.body.yaw,
        };
        self.payload.photos += 1;
        self.notify(Notice::Photo(photo));
        self.command("take_photo", Ack::Accepted)
    }

    /// Starts a recording; a second start is denied.
    pub fn start_video(&mut self) -> Ack {
        let ack = match (self.idle_camera(), self.payload.recording_since) {
            (Some(ack), _) => ack,
            (None, Some(_)) => Ack::Denied,
            (None, None) => {
                self.payload.recording_since = Some(self.time);
                self.payload.videos += 1;
                Ack::Accepted
            }
        };
        self.command("start_video", ack)
    }

    /// Ends the recording; denied when there is none.
    pub fn stop_video(&mut self) -> Ack {
        let ack = match self.idle_camera() {
            Some(ack) => ack,
            None if self.payload.recording_since.take().is_some() => Ack::Accepted,
            None => Ack::Denied,
        };
        self.command("stop_video", ack)
    }

    /// The answer of a camera that takes no action: there is none, or it only acknowledges.
    fn idle_camera(&self) -> Option<Ack> {
        match (self.payload.present, self.payload.obeys) {
            (false, _) => Some(Ack::Unsupported),
            (true, false) => Some(Ack::Accepted),
            (true, true) => None,
        }
    }
}
