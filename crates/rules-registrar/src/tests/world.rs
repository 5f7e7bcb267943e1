use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Subresource, Value};
use control::{Action as _, Decision, Effect, Endpoint, Outcome, Refusal, Reply, Rules};
use csi::{Call, Response, registration, v1};
use prove_lab::Lab;

use crate::{Key, Local, Registrar};

pub const SOCKET: &str = "/reg/d.sock";
pub const OTHER: &str = "/reg/e.sock";
pub const ENDPOINT: &str = "/plugins/d/csi.sock";

/// How a driver answers.
#[derive(Clone)]
pub struct Driver {
    pub info: registration::PluginInfo,
    pub node: v1::NodeGetInfoResponse,
    pub stages: bool,
    /// What its registrar says it wants to know about pods; `None` if the registrar does not know the question.
    pub wants_pod: Option<bool>,
    /// What it was told: registered or not, and why not.
    pub told: Vec<(bool, String)>,
}

impl Driver {
    pub fn new(name: &str) -> Driver {
        let info = registration::PluginInfo {
            r#type: "CSIPlugin".into(),
            name: name.into(),
            endpoint: ENDPOINT.into(),
            supported_versions: alloc::vec!["1.0.0".into()],
        };
        let node = v1::NodeGetInfoResponse { node_id: "node-7".into(), ..Default::default() };
        Driver { info, node, stages: true, wants_pod: None, told: Vec::new() }
    }
}

pub struct World {
    lab: Lab<Registrar>,
    pub drivers: BTreeMap<String, Driver>,
    /// Sockets behind which nobody answers.
    pub dead: BTreeSet<String>,
    /// Actions whose answer is lost, once.
    pub lost: BTreeSet<&'static str>,
}

prove_lab::world_of!(World, lab: Registrar);

impl World {
    pub fn new() -> World {
        let lab = Lab::new("default", Local::new("n", "life-1"));
        World { lab, drivers: BTreeMap::new(), dead: BTreeSet::new(), lost: BTreeSet::new() }
    }

    pub fn driver(&mut self, socket: &str, driver: Driver) {
        self.drivers.insert(socket.into(), driver);
        self.update_local(|local| local.seen(socket));
    }

    pub fn socket_goes(&mut self, socket: &str) {
        let now = self.now;
        self.update_local(|local| local.gone(socket, now));
    }

    pub fn told(&self, socket: &str) -> Vec<(bool, String)> {
        self.drivers[socket].told.clone()
    }

    pub fn get(&self, kind: Kind) -> Option<Value> {
        self.lab.get(kind, "n")
    }

    pub fn patch(&mut self, kind: Kind, part: Option<Subresource>, body: Value) {
        match part {
            None => self.lab.patch(kind, "n", body),
            Some(Subresource::Status) => self.lab.patch_status(kind, "n", body["status"].clone()),
        }
    }

    pub fn socket_key(path: &str) -> Key {
        Key::Socket("n".into(), path.into())
    }

    pub fn step(&mut self, key: &Key) -> bool {
        let Some((action, effect)) = self.begin(key) else { return false };
        let mut outcome = match &effect {
            Effect::Call { to: Endpoint::Socket(socket), call } => self.call(socket, call),
            Effect::Call { to: Endpoint::Driver(_), .. } => panic!("{effect:?}: no driver has a name yet"),
            effect => self.api(effect).unwrap(),
        };
        if self.lost.remove(action.name()) {
            outcome = Outcome::Unknown("the answer was lost".into());
        }
        self.finish(key, &outcome);
        true
    }

    /// Steps until nothing is due now; pauses are waited for up to a total of so many milliseconds.
    pub fn settle_for(&mut self, mut patience: u64) -> Vec<String> {
        let from = self.log.len();
        for _ in 0..300 {
            let keys = Registrar::keys(&self.cache, self.local());
            let stepped = keys.iter().filter(|key| self.step(key)).count();
            let waits = keys.iter().filter_map(|key| match self.decide(key) {
                Decision::Wait(until, _) => Some(until.0 - self.now.0),
                Decision::Rest(_) | Decision::Do(..) | Decision::Either(..) => None,
            });
            match waits.min() {
                Some(pause) if stepped == 0 && pause <= patience => {
                    patience -= pause;
                    self.pass(pause);
                }
                Some(_) | None if stepped == 0 => return self.log[from..].iter().map(ToString::to_string).collect(),
                Some(_) | None => {}
            }
        }
        panic!("never comes to rest: {:?}", &self.log[self.log.len() - 20..]);
    }

    pub fn settle(&mut self) -> Vec<String> {
        self.settle_for(1_000)
    }

    pub fn call(&mut self, socket: &str, call: &Call) -> Outcome {
        let nobody = Outcome::Unknown("connection refused".into());
        if self.dead.contains(socket) {
            return nobody;
        }
        let by_path = self.drivers.get_mut(socket);
        let response = match (call, by_path) {
            (Call::GetInfo(_), Some(driver)) => Response::GetInfo(driver.info.clone()),
            (Call::GetCSIDriverInfo(_), Some(driver)) => match driver.wants_pod {
                None => return Outcome::Refused(Refusal::Driver(csi::Code::Unimplemented, "unknown method".into())),
                Some(requires_publish_pod) => Response::GetCSIDriverInfo(registration::CsiDriverInfo {
                    csi_endpoint: driver.info.endpoint.clone(),
                    options: Some(registration::CsiDriverOptions { requires_publish_pod }),
                }),
            },
            (Call::NotifyRegistrationStatus(status), Some(driver)) => {
                driver.told.push((status.plugin_registered, status.error.clone()));
                Response::NotifyRegistrationStatus(registration::RegistrationStatusResponse {})
            }
            (Call::NodeGetInfo(_) | Call::NodeGetCapabilities(_), _) => {
                let Some(driver) = self.drivers.values().find(|driver| driver.info.endpoint == socket) else {
                    return nobody;
                };
                answer(driver, call)
            }
            (_, _) => return nobody,
        };
        Outcome::Done(Reply::Csi(response))
    }
}

fn answer(driver: &Driver, call: &Call) -> Response {
    use v1::node_service_capability::{Rpc, Type, rpc};
    match call {
        Call::NodeGetInfo(_) => Response::NodeGetInfo(driver.node.clone()),
        _ => {
            let stage = Rpc { r#type: rpc::Type::StageUnstageVolume as i32 };
            let stage = v1::NodeServiceCapability { r#type: Some(Type::Rpc(stage)) };
            let capabilities = if driver.stages { alloc::vec![stage] } else { Vec::new() };
            Response::NodeGetCapabilities(v1::NodeGetCapabilitiesResponse { capabilities })
        }
    }
}
