//! A pretend driver.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use control::{Effect, Endpoint, Outcome, Refusal, Reply};
use csi::{Call, Code, Response, v1};

/// How the driver behaves.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mood {
    Well,
    Down,
    Refusing(Code, String),
}

/// A driver with volumes by name.
pub(super) struct Driver {
    pub(super) mood: Mood,
    pub(super) volumes: BTreeMap<String, v1::CreateVolumeRequest>,
    pub(super) capacity: Option<i64>,
    /// Where its volumes can be reached from.
    pub(super) places: Vec<BTreeMap<String, String>>,
    /// It says what it made a volume from.
    pub(super) names_source: bool,
    /// What it answers to GetCapacity.
    pub(super) room: i64,
    /// What it was asked with GetCapacity.
    pub(super) asked: Vec<v1::GetCapacityRequest>,
    /// The secrets DeleteVolume came with, by volume id.
    pub(super) deleted_with: BTreeMap<String, BTreeMap<String, String>>,
    /// What it answers to CreateVolume, whatever its mood.
    pub(super) answer: Option<Outcome>,
}

impl Default for Driver {
    fn default() -> Driver {
        Driver {
            mood: Mood::Well,
            volumes: BTreeMap::new(),
            capacity: None,
            places: Vec::new(),
            names_source: true,
            room: i64::MAX,
            asked: Vec::new(),
            deleted_with: BTreeMap::new(),
            answer: None,
        }
    }
}

impl Driver {
    /// The answer of the driver of this name.
    pub(super) fn answer_to(&mut self, name: &str, effect: &Effect) -> Outcome {
        let Effect::Call { to, call } = effect else { panic!("{effect:?} is not the driver's") };
        assert_eq!(*to, Endpoint::Driver(name.into()));
        if let (Call::CreateVolume(_), Some(answer)) = (call, &self.answer) {
            return answer.clone();
        }
        match (&self.mood, call.clone()) {
            (Mood::Down, _) => Outcome::Unknown("connection refused".into()),
            (Mood::Refusing(code, text), _) => Outcome::Refused(Refusal::Driver(*code, text.clone())),
            (Mood::Well, Call::CreateVolume(request)) => self.create_volume(request),
            (Mood::Well, Call::GetCapacity(request)) => {
                self.asked.push(request);
                let answer = v1::GetCapacityResponse { available_capacity: self.room, ..Default::default() };
                Outcome::Done(Reply::Csi(Response::GetCapacity(answer)))
            }
            (Mood::Well, Call::DeleteVolume(request)) => {
                self.deleted_with.insert(request.volume_id.clone(), request.secrets.clone());
                self.volumes.retain(|name, _| id_of(name) != request.volume_id);
                Outcome::Done(Reply::Csi(Response::DeleteVolume(v1::DeleteVolumeResponse {})))
            }
            (Mood::Well, other) => panic!("unexpected {other:?}"),
        }
    }

    /// Reliability 69: the same name with other arguments is refused, as a driver would.
    fn create_volume(&mut self, request: v1::CreateVolumeRequest) -> Outcome {
        let held = self.volumes.entry(request.name.clone()).or_insert(request.clone());
        if *held != request {
            return Outcome::Refused(Refusal::Driver(Code::AlreadyExists, "incompatible".into()));
        }
        let asked = request.capacity_range.map_or(0, |range| range.required_bytes);
        let places = self.places.iter().map(|segments| v1::Topology { segments: segments.clone() });
        let volume = v1::Volume {
            volume_id: id_of(&request.name),
            capacity_bytes: self.capacity.unwrap_or(asked),
            volume_context: [("k".to_string(), "v".to_string())].into(),
            accessible_topology: places.collect(),
            content_source: request.volume_content_source.clone().filter(|_| self.names_source),
        };
        Outcome::Done(Reply::Csi(Response::CreateVolume(v1::CreateVolumeResponse { volume: Some(volume) })))
    }
}

pub(super) fn id_of(name: &str) -> String {
    format!("id-of-{name}")
}
