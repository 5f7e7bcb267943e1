use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object, ObjectKey, ObjectRef, Patch, Subresource, Value, Write};
use control::{Action as _, Cache, Decision, Effect, Outcome, Refusal, Reply, Rules, Tick, Why};
use csi::{Call, Response, registration, v1};
use rules_store::{Context, EventType, Failure, Request, Store, find_kind};

use crate::{Key, Local, Memory, Registrar};

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
    pub store: Store,
    pub cache: Cache,
    pub local: Local,
    pub memory: BTreeMap<Key, Memory>,
    pub drivers: BTreeMap<String, Driver>,
    /// Sockets behind which nobody answers.
    pub dead: BTreeSet<String>,
    /// Actions whose answer is lost, once.
    pub lost: BTreeSet<&'static str>,
    pub now: Tick,
    pub log: Vec<String>,
    made: u32,
}

impl World {
    pub fn new() -> World {
        World {
            store: Store::new(),
            cache: Cache::default(),
            local: Local::new("n", "life-1"),
            memory: BTreeMap::new(),
            drivers: BTreeMap::new(),
            dead: BTreeSet::new(),
            lost: BTreeSet::new(),
            now: Tick(1_900_000_000_000),
            log: Vec::new(),
            made: 0,
        }
    }

    pub fn driver(&mut self, socket: &str, driver: Driver) {
        self.drivers.insert(socket.into(), driver);
        self.local.seen(socket);
    }

    pub fn told(&self, socket: &str) -> Vec<(bool, String)> {
        self.drivers[socket].told.clone()
    }

    pub fn get(&self, kind: Kind) -> Option<Value> {
        self.store.get(find_kind(kind), "", "n").map(|stored| stored.value.clone())
    }

    pub fn patch(&mut self, kind: Kind, part: Option<Subresource>, body: Value) {
        let target = ObjectRef { kind, key: ObjectKey::cluster("n") };
        self.write(&Write::Patch { target, subresource: part, patch: Patch::Merge(body) }).unwrap();
    }

    pub fn write(&mut self, write: &Write) -> Result<Reply, Refusal> {
        self.made += 1;
        let uid = format!("uid-{}", self.made);
        let context = Context { now_millis: self.now.0, new_uid: &uid, actor: "test" };
        let applied = self.store.apply(&context, Request::from_write(write)).map_err(|failure| match failure {
            Failure::NotFound { .. } => Refusal::NotFound,
            Failure::AlreadyExists { .. } => Refusal::AlreadyExists,
            Failure::Conflict { .. } => Refusal::Conflict,
            other => Refusal::Denied(other.to_string()),
        })?;
        let mut reply = Reply::Nothing;
        for change in &applied.changes {
            let object = Object::from_json(write.target().kind, change.object.value.clone()).unwrap();
            let gone = change.event == EventType::Deleted;
            if gone {
                self.cache.remove(&object)
            } else {
                self.cache.set(object.clone())
            };
            reply = if gone { Reply::Gone } else { Reply::Object(object) };
        }
        Ok(reply)
    }

    pub fn why(&self, key: &Key) -> Why {
        self.decision(key).why().clone()
    }

    pub fn socket_key(path: &str) -> Key {
        Key::Socket("n".into(), path.into())
    }

    pub fn decision(&self, key: &Key) -> Decision<crate::Action> {
        let view = Registrar::view(key, &self.cache, &self.local);
        Registrar::decide(self.now, &view, self.memory.get(key).unwrap_or(&Memory::default()))
    }

    pub fn step(&mut self, key: &Key) -> bool {
        let Decision::Do(action, _) = self.decision(key) else { return false };
        self.log.push(action.name().into());
        let mut outcome = match action.effect() {
            Effect::Write(write) => self.write(&write).map_or_else(Outcome::Refused, Outcome::Done),
            Effect::Call { socket, call } => self.call(&socket, &call),
            Effect::Read(_) | Effect::Host(_) => panic!("the registrar only writes and calls"),
        };
        if self.lost.remove(action.name()) {
            outcome = Outcome::Unknown("the answer was lost".into());
        }
        Registrar::learn(&mut self.local, &action, &outcome);
        let memory = self.memory.remove(key).unwrap_or_default();
        self.memory.insert(key.clone(), Registrar::remember(self.now, memory, &action, &outcome));
        true
    }

    /// Steps until nothing is due now; pauses are waited for up to a total of so many milliseconds.
    pub fn settle_for(&mut self, mut patience: u64) -> Vec<String> {
        let from = self.log.len();
        for _ in 0..300 {
            let keys = Registrar::keys(&self.cache, &self.local);
            let stepped = keys.iter().filter(|key| self.step(key)).count();
            let waits = keys.iter().filter_map(|key| match self.decision(key) {
                Decision::Wait(until, _) => Some(until.0 - self.now.0),
                Decision::Rest(_) | Decision::Do(..) => None,
            });
            match waits.min() {
                Some(pause) if stepped == 0 && pause <= patience => {
                    patience -= pause;
                    self.now = self.now.after_millis(pause);
                }
                Some(_) | None if stepped == 0 => return self.log[from..].to_vec(),
                Some(_) | None => {}
            }
        }
        panic!("never comes to rest: {:?}", &self.log[self.log.len() - 20..]);
    }

    pub fn settle(&mut self) -> Vec<String> {
        self.settle_for(1_000)
    }

    fn call(&mut self, socket: &str, call: &Call) -> Outcome {
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
