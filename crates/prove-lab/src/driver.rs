use std::collections::{BTreeSet, VecDeque};

use control::{Outcome, Refusal, Reply};
use csi::{Call, Code, Finality, Method, Response, Status, classify, registration, v1};

/// A driver that does what it is asked, unless it was told to answer something else first.
#[derive(Clone)]
pub struct ScriptedDriver {
    /// What is there, a fact an entry: `volume h`, `h published to id-a`, `h staged at /path`.
    pub truth: BTreeSet<String>,
    /// Every call it got.
    pub calls: Vec<Call>,
    /// Growing a volume needs the node's part.
    pub needs_node: bool,
    /// What it says of itself when it registers.
    pub plugin: registration::PluginInfo,
    /// What it says of the node it is on.
    pub node: v1::NodeGetInfoResponse,
    /// What its registrar says it wants to know about pods; `None` if the registrar does not know the question.
    pub wants_pod: Option<bool>,
    answers: VecDeque<(Method, Outcome)>,
}

impl Default for ScriptedDriver {
    fn default() -> ScriptedDriver {
        let plugin = registration::PluginInfo {
            r#type: "CSIPlugin".into(),
            name: "d".into(),
            endpoint: "/csi.sock".into(),
            supported_versions: vec!["1.0.0".into()],
        };
        let node = v1::NodeGetInfoResponse { node_id: "node-7".into(), ..Default::default() };
        let (truth, calls, answers) = (BTreeSet::new(), Vec::new(), VecDeque::new());
        ScriptedDriver { truth, calls, needs_node: false, plugin, node, wants_pod: None, answers }
    }
}

impl ScriptedDriver {
    /// The next call of a method comes to this instead of being done.
    pub fn answer_next(&mut self, method: Method, outcome: Outcome) {
        self.answers.push_back((method, outcome));
    }

    /// The next call of a method is answered with this code, and means what that code means.
    pub fn fail_next(&mut self, method: Method, code: Code) {
        let text = "told to fail";
        let outcome = match classify(method, &Status::from_driver(code, text)) {
            Finality::Done => Outcome::Done(Reply::Nothing),
            Finality::Refused => Outcome::Refused(Refusal::Driver(code, text.into())),
            Finality::Unknown => Outcome::Unknown(format!("the driver answered {code:?}: {text}")),
        };
        self.answer_next(method, outcome);
    }

    /// What was told, but not asked for.
    pub fn left(&self) -> usize {
        self.answers.len()
    }

    /// Does what is asked.
    pub fn answer(&mut self, call: &Call) -> Outcome {
        self.calls.push(call.clone());
        match self.answers.iter().position(|(method, _)| *method == call.method()) {
            Some(told) => self.answers.remove(told).unwrap().1,
            None if matches!(call, Call::GetCSIDriverInfo(_)) && self.wants_pod.is_none() => {
                Outcome::Refused(Refusal::Driver(Code::Unimplemented, "unknown method".into()))
            }
            None => Outcome::Done(Reply::Csi(self.respond(call))),
        }
    }

    fn respond(&mut self, call: &Call) -> Response {
        match call {
            Call::CreateVolume(request) => Response::CreateVolume(self.create(request)),
            Call::DeleteVolume(request) => {
                self.forget(&format!("volume {}", request.volume_id));
                Response::DeleteVolume(v1::DeleteVolumeResponse {})
            }
            Call::ControllerPublishVolume(request) => {
                self.truth.insert(format!("{} published to {}", request.volume_id, request.node_id));
                let publish_context = [("at".to_string(), request.node_id.clone())].into();
                Response::ControllerPublishVolume(v1::ControllerPublishVolumeResponse { publish_context })
            }
            Call::ControllerUnpublishVolume(request) => {
                self.forget(&format!("{} published to {}", request.volume_id, request.node_id));
                Response::ControllerUnpublishVolume(v1::ControllerUnpublishVolumeResponse {})
            }
            Call::ControllerExpandVolume(request) => {
                let capacity_bytes = request.capacity_range.as_ref().map_or(0, |range| range.required_bytes);
                self.forget(&format!("{} has ", request.volume_id));
                self.truth.insert(format!("{} has {capacity_bytes} bytes", request.volume_id));
                let node_expansion_required = self.needs_node;
                let response = v1::ControllerExpandVolumeResponse { capacity_bytes, node_expansion_required };
                Response::ControllerExpandVolume(response)
            }
            Call::ControllerModifyVolume(request) => {
                self.forget(&format!("{} is like ", request.volume_id));
                self.truth.insert(format!("{} is like {:?}", request.volume_id, request.mutable_parameters));
                Response::ControllerModifyVolume(v1::ControllerModifyVolumeResponse {})
            }
            Call::GetCapacity(_) => {
                let response = v1::GetCapacityResponse { available_capacity: 10 << 30, ..Default::default() };
                Response::GetCapacity(response)
            }
            node => self.respond_on_node(node),
        }
    }

    fn respond_on_node(&mut self, call: &Call) -> Response {
        match call {
            Call::NodeStageVolume(request) => {
                self.truth.insert(format!("{} staged at {}", request.volume_id, request.staging_target_path));
                Response::NodeStageVolume(v1::NodeStageVolumeResponse {})
            }
            Call::NodeUnstageVolume(request) => {
                self.forget(&format!("{} staged at {}", request.volume_id, request.staging_target_path));
                Response::NodeUnstageVolume(v1::NodeUnstageVolumeResponse {})
            }
            Call::NodePublishVolume(request) => {
                self.truth.insert(format!("{} mounted at {}", request.volume_id, request.target_path));
                Response::NodePublishVolume(v1::NodePublishVolumeResponse {})
            }
            Call::NodeUnpublishVolume(request) => {
                self.forget(&format!("{} mounted at {}", request.volume_id, request.target_path));
                Response::NodeUnpublishVolume(v1::NodeUnpublishVolumeResponse {})
            }
            Call::GetInfo(_) => Response::GetInfo(self.plugin.clone()),
            Call::NotifyRegistrationStatus(_) => {
                Response::NotifyRegistrationStatus(registration::RegistrationStatusResponse {})
            }
            Call::GetCSIDriverInfo(_) => {
                let requires_publish_pod = self.wants_pod.unwrap_or_default();
                let options = Some(registration::CsiDriverOptions { requires_publish_pod });
                let csi_endpoint = self.plugin.endpoint.clone();
                Response::GetCSIDriverInfo(registration::CsiDriverInfo { csi_endpoint, options })
            }
            Call::NodeGetInfo(_) => Response::NodeGetInfo(self.node.clone()),
            Call::NodeGetCapabilities(_) => Response::NodeGetCapabilities(stages()),
            other => panic!("{other:?} is not what a controller calls"),
        }
    }

    fn create(&mut self, request: &v1::CreateVolumeRequest) -> v1::CreateVolumeResponse {
        let volume_id = format!("id-of-{}", request.name);
        self.truth.insert(format!("volume {volume_id}"));
        let volume = v1::Volume {
            volume_id,
            capacity_bytes: request.capacity_range.as_ref().map_or(0, |range| range.required_bytes),
            content_source: request.volume_content_source.clone(),
            ..Default::default()
        };
        v1::CreateVolumeResponse { volume: Some(volume) }
    }

    fn forget(&mut self, fact: &str) {
        self.truth.retain(|known| !known.starts_with(fact));
    }
}

fn stages() -> v1::NodeGetCapabilitiesResponse {
    use v1::node_service_capability::{Rpc, Type, rpc};
    let scene = Rpc { r#type: rpc::Type::StageUnstageVolume as i32 };
    v1::NodeGetCapabilitiesResponse { capabilities: vec![v1::NodeServiceCapability { r#type: Some(Type::Rpc(scene)) }] }
}
