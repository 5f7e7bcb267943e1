use std::path::Path;
use std::sync::Mutex;

use super::super::*;
use super::*;
use crate::wire;
use tokio::sync::Notify;

/// A driver that counts what reaches it. What it does with a volume is written in the volume's name.
#[derive(Default)]
struct Tried {
    capabilities: Capabilities,
    ledger: Option<Ledger>,
    reached: Mutex<Vec<&'static str>>,
    begun: Notify,
    go_on: Notify,
}

impl Tried {
    fn reached(&self, what: &'static str) {
        self.reached.lock().unwrap().push(what);
    }
}

impl Identity for Tried {
    fn name(&self) -> String {
        "tried.example".into()
    }
    fn version(&self) -> String {
        "1".into()
    }
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
    async fn probe(&self) -> Result<bool, ProbeError> {
        self.reached("probe");
        Err(ProbeError::Unhealthy("the disk is gone".into()))
    }
}

impl Controller for Tried {
    fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    async fn create_volume(&self, r: v1::CreateVolumeRequest) -> Result<v1::CreateVolumeResponse, CreateVolumeError> {
        self.reached("create");
        let volume_id = match r.name.as_str() {
            "refused" => return Err(CreateVolumeError::OutOfSpace("full".into())),
            "unfinished" => return Err(std::io::Error::other("the disk went away").into()),
            "secret" => return Err(CreateVolumeError::Failed(format!("bad login {}", r.secrets["password"]))),
            "other-id" => "another".into(),
            "large" => "x".repeat(129),
            "slow" => {
                self.begun.notify_one();
                self.go_on.notified().await;
                self.id_of("slow")
            }
            name => self.id_of(name),
        };
        Ok(v1::CreateVolumeResponse { volume: Some(v1::Volume { volume_id, ..Default::default() }) })
    }

    async fn delete_volume(&self, r: v1::DeleteVolumeRequest) -> Result<v1::DeleteVolumeResponse, DeleteVolumeError> {
        self.reached("delete");
        match r.volume_id.as_str() {
            "busy" => Err(DeleteVolumeError::InUse("a pod has it".into())),
            _ => Ok(v1::DeleteVolumeResponse {}),
        }
    }
}

impl Node for Tried {}
impl GroupController for Tried {}

const CREATES: Capabilities = Capabilities::NONE.with(DriverCapability::Controller(ControllerRpc::CreateDeleteVolume));

fn door(tried: Tried) -> Door<Tried> {
    Door::new(tried, Arc::new(AtomicBool::new(true)))
}

fn with_ledger(dir: &Path) -> Door<Tried> {
    let mut capabilities = CREATES;
    capabilities.extend([ControllerRpc::ListVolumes, ControllerRpc::GetVolume]);
    door(Tried { capabilities, ledger: Some(Ledger::open(dir).unwrap()), ..Tried::default() })
}

fn create(name: &str) -> Call {
    use v1::volume_capability::{AccessMode, AccessType, MountVolume, access_mode::Mode};
    Call::CreateVolume(v1::CreateVolumeRequest {
        name: name.into(),
        volume_capabilities: vec![v1::VolumeCapability {
            access_mode: Some(AccessMode { mode: Mode::SingleNodeWriter as i32 }),
            access_type: Some(AccessType::Mount(MountVolume::default())),
        }],
        secrets: [("password".to_string(), "canary-71f0".to_string())].into(),
        ..Default::default()
    })
}

fn delete(id: &str) -> Call {
    Call::DeleteVolume(v1::DeleteVolumeRequest { volume_id: id.into(), ..Default::default() })
}

async fn code(door: &Door<Tried>, call: Call) -> Code {
    door.answer(call).await.err().map_or(Code::Ok, |status| status.code)
}

fn everything() -> Capabilities {
    Method::ALL.iter().filter_map(|method| method.capability()).collect()
}

#[tokio::test]
async fn what_is_not_written_is_unimplemented() {
    let door = door(Tried { capabilities: everything(), ..Tried::default() });
    for method in Method::ALL {
        let told = door.dispatch(wire::decode_call(*method, &[]).unwrap()).await;
        let written = matches!(method, Method::CreateVolume | Method::DeleteVolume);
        let code = told.err().map_or(Code::Ok, |status| status.code);
        assert_eq!(code, if written { Code::Ok } else { Code::Unimplemented }, "{}", method.name());
    }
}

// Reliability 72: answers about capabilities and answers to calls come from one list.
#[tokio::test]
async fn what_is_not_declared_is_not_answered_although_it_is_written() {
    let nothing = door(Tried::default());
    assert_eq!(code(&nothing, create("a")).await, Code::Unimplemented);
    assert_eq!(
        code(&nothing, wire::decode_call(Method::ControllerGetCapabilities, &[]).unwrap()).await,
        Code::Unimplemented
    );
    assert!(nothing.plugin.reached.lock().unwrap().is_empty());

    let creates = door(Tried { capabilities: CREATES, ..Tried::default() });
    assert_eq!(code(&creates, create("a")).await, Code::Ok);
    let Ok(Response::GetPluginCapabilities(told)) =
        creates.answer(wire::decode_call(Method::GetPluginCapabilities, &[]).unwrap()).await
    else {
        panic!("no capabilities")
    };
    assert_eq!(Capabilities::from(&told), Capabilities::from_iter([PluginService::ControllerService]));
}

// Reliability 79.
#[tokio::test]
async fn a_driver_that_is_not_ready_says_so_and_does_nothing() {
    let tried = Tried { capabilities: CREATES, ..Tried::default() };
    let door = Door::new(tried, Arc::new(AtomicBool::new(false)));
    let Ok(Response::Probe(probe)) = door.answer(Call::Probe(v1::ProbeRequest {})).await else { panic!("no probe") };
    assert_eq!(probe.ready, Some(false));
    assert_eq!(code(&door, delete("a")).await, Code::Unavailable);
    assert_eq!(code(&door, wire::decode_call(Method::GetPluginInfo, &[]).unwrap()).await, Code::Ok);
    assert!(door.plugin.reached.lock().unwrap().is_empty());
    // From then on the author says how it is.
    door.ready.store(true, Ordering::Release);
    assert_eq!(code(&door, Call::Probe(v1::ProbeRequest {})).await, Code::FailedPrecondition);
    assert_eq!(code(&door, delete("a")).await, Code::Ok);
}

#[tokio::test]
async fn an_incomplete_request_does_not_reach_the_author() {
    let door = door(Tried { capabilities: everything(), ..Tried::default() });
    // The calls that need no field at all.
    let plain = [
        "GetPluginInfo",
        "GetPluginCapabilities",
        "Probe",
        "ListVolumes",
        "GetCapacity",
        "ControllerGetCapabilities",
        "ListSnapshots",
        "ControllerListVolumeHealth",
        "GroupControllerGetCapabilities",
        "NodeGetStorageHealth",
        "NodeGetCapabilities",
        "NodeGetInfo",
        "GetInfo",
        "GetCSIDriverInfo",
        "NotifyRegistrationStatus",
    ];
    for method in Method::ALL {
        let code = code(&door, wire::decode_call(*method, &[]).unwrap()).await;
        assert_eq!(code == Code::InvalidArgument, !plain.contains(&method.name()), "{} {code:?}", method.name());
    }
    assert_eq!(*door.plugin.reached.lock().unwrap(), ["probe"]);
}

#[tokio::test]
async fn a_malformed_request_does_not_reach_the_author() {
    let door = door(Tried { capabilities: everything(), ..Tried::default() });
    let Call::CreateVolume(good) = create("a") else { panic!() };
    let range = |required_bytes, limit_bytes| Some(v1::CapacityRange { required_bytes, limit_bytes });
    let mut no_mode = good.clone();
    no_mode.volume_capabilities[0].access_mode = None;
    let mut no_type = good.clone();
    no_type.volume_capabilities[0].access_type = None;
    let bad = [
        (Code::InvalidArgument, v1::CreateVolumeRequest { name: "a\0b".into(), ..good.clone() }),
        // Reliability 73.
        (Code::InvalidArgument, v1::CreateVolumeRequest { name: "x".repeat(129), ..good.clone() }),
        (Code::InvalidArgument, no_mode),
        (Code::InvalidArgument, no_type),
        (Code::OutOfRange, v1::CreateVolumeRequest { capacity_range: range(2, 1), ..good.clone() }),
        (Code::OutOfRange, v1::CreateVolumeRequest { capacity_range: range(-1, 0), ..good.clone() }),
        (Code::InvalidArgument, v1::CreateVolumeRequest { volume_content_source: Some(Default::default()), ..good }),
    ];
    for (expected, request) in bad {
        assert_eq!(code(&door, Call::CreateVolume(request)).await, expected);
    }
    for path in ["relative", "/a/../b", "/a\0b"] {
        let request = v1::NodeUnpublishVolumeRequest { volume_id: "v".into(), target_path: path.into() };
        assert_eq!(code(&door, Call::NodeUnpublishVolume(request)).await, Code::InvalidArgument, "{path:?}");
    }
    let Call::CreateVolume(good) = create("a") else { panic!() };
    let request = v1::NodePublishVolumeRequest {
        volume_id: "v".into(),
        target_path: "/t".into(),
        volume_capability: good.volume_capabilities.first().cloned(),
        ..Default::default()
    };
    // It stages, so it must be told where.
    assert_eq!(code(&door, Call::NodePublishVolume(request)).await, Code::FailedPrecondition);
    assert!(door.plugin.reached.lock().unwrap().is_empty());
}

// Reliability 81.
#[tokio::test]
async fn calls_for_one_volume_exclude_each_other_and_others_do_not_wait() {
    let door = Arc::new(door(Tried { capabilities: CREATES, ..Tried::default() }));
    let slow = tokio::spawn({
        let door = door.clone();
        async move { code(&door, create("slow")).await }
    });
    door.plugin.begun.notified().await;
    assert_eq!(code(&door, create("slow")).await, Code::Aborted);
    assert_eq!(code(&door, delete(&id_of("slow"))).await, Code::Aborted);
    assert_eq!(code(&door, create("quick")).await, Code::Ok);
    door.plugin.go_on.notify_one();
    assert_eq!(slow.await.unwrap(), Code::Ok);
    assert_eq!(code(&door, delete(&id_of("slow"))).await, Code::Ok);
}

// Reliability 73: what was done must not read as refused because its answer is too large.
#[tokio::test]
async fn an_answer_that_is_too_large_is_no_refusal() {
    let door = door(Tried { capabilities: CREATES, ..Tried::default() });
    let status = door.answer(create("large")).await.err().unwrap();
    assert_eq!(csi::classify(Method::CreateVolume, &status), csi::Finality::Unknown, "{status}");
    assert!(status.message.contains("volume_id has 129 bytes"), "{status}");
}

// Reliability 121.
#[tokio::test]
async fn a_secret_in_the_authors_words_is_covered() {
    let door = door(Tried { capabilities: CREATES, ..Tried::default() });
    let status = door.answer(create("secret")).await.err().unwrap();
    assert_eq!(status.message, "bad login [secret]");
}

// Reliability 76.
#[tokio::test]
async fn with_a_ledger_a_volume_is_made_once_and_deleted_once() {
    let dir = tempfile::tempdir().unwrap();
    let first = with_ledger(dir.path());
    let one = first.answer(create("a")).await.ok().unwrap();
    assert!(first.answer(create("a")).await.ok().unwrap() == one);
    assert_eq!(*first.plugin.reached.lock().unwrap(), ["create"]);
    drop(first);

    let second = with_ledger(dir.path());
    assert!(second.answer(create("a")).await.ok().unwrap() == one);
    let Call::CreateVolume(mut other) = create("a") else { panic!() };
    other.parameters.insert("tier".into(), "fast".into());
    assert_eq!(code(&second, Call::CreateVolume(other)).await, Code::AlreadyExists);
    assert_eq!(code(&second, delete("unknown")).await, Code::Ok);
    assert_eq!(code(&second, delete("../a")).await, Code::Ok);
    assert!(second.plugin.reached.lock().unwrap().is_empty());
    assert_eq!(code(&second, delete("a")).await, Code::Ok);
    assert_eq!(code(&second, delete("a")).await, Code::Ok);
    assert_eq!(*second.plugin.reached.lock().unwrap(), ["delete"]);
}

#[tokio::test]
async fn with_a_ledger_only_a_refusal_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let door = with_ledger(dir.path());
    let ledger = door.plugin.ledger.clone().unwrap();
    assert_eq!(code(&door, create("refused")).await, Code::ResourceExhausted);
    assert!(!ledger.knows("refused"));
    assert_eq!(code(&door, create("unfinished")).await, Code::Unavailable);
    assert_eq!(code(&door, create("other-id")).await, Code::Unavailable);
    for begun in ["other-id", "unfinished"] {
        assert!(ledger.knows(begun) && ledger.get(begun).is_none(), "{begun}");
    }
    // What was begun can be deleted, and a deletion that is refused deletes nothing.
    assert_eq!(code(&door, delete("unfinished")).await, Code::Ok);
    assert!(!ledger.knows("unfinished"));
    assert_eq!(code(&door, create("busy")).await, Code::Ok);
    assert_eq!(code(&door, delete("busy")).await, Code::FailedPrecondition);
    assert!(ledger.knows("busy"));
}

// Reliability 80.
#[tokio::test]
async fn with_a_ledger_lists_and_descriptions_need_no_author() {
    let dir = tempfile::tempdir().unwrap();
    let door = with_ledger(dir.path());
    for name in ["a", "b", "c"] {
        assert_eq!(code(&door, create(name)).await, Code::Ok);
    }
    let page = |max_entries, starting_token: &str| {
        Call::ListVolumes(v1::ListVolumesRequest { max_entries, starting_token: starting_token.into() })
    };
    let (mut token, mut seen) = (String::new(), Vec::new());
    loop {
        let Ok(Response::ListVolumes(answer)) = door.answer(page(2, &token)).await else { panic!("no list") };
        seen.extend(answer.entries.into_iter().filter_map(|entry| entry.volume).map(|volume| volume.volume_id));
        token = answer.next_token;
        if token.is_empty() {
            break;
        }
        // The last one on the page goes; the next page is where it would have been.
        assert_eq!(code(&door, delete("b")).await, Code::Ok);
    }
    assert_eq!(seen, ["a", "b", "c"]);
    assert_eq!(code(&door, page(0, "nonsense")).await, Code::Aborted);
    assert_eq!(code(&door, page(-1, "")).await, Code::InvalidArgument);
    let get = |id: &str| Call::ControllerGetVolume(v1::ControllerGetVolumeRequest { volume_id: id.into() });
    assert_eq!((code(&door, get("a")).await, code(&door, get("b")).await), (Code::Ok, Code::NotFound));

    let Call::CreateVolume(made) = create("a") else { panic!() };
    let mut request = v1::ValidateVolumeCapabilitiesRequest {
        volume_id: "a".into(),
        volume_capabilities: made.volume_capabilities,
        ..Default::default()
    };
    let validate = |r: &v1::ValidateVolumeCapabilitiesRequest| Call::ValidateVolumeCapabilities(r.clone());
    let Ok(Response::ValidateVolumeCapabilities(yes)) = door.answer(validate(&request)).await else { panic!() };
    assert!(yes.confirmed.is_some_and(|confirmed| confirmed.volume_capabilities == request.volume_capabilities));
    request.volume_capabilities[0].access_mode.as_mut().unwrap().mode = 5;
    let Ok(Response::ValidateVolumeCapabilities(no)) = door.answer(validate(&request)).await else { panic!() };
    assert!(no.confirmed.is_none() && !no.message.is_empty());
    request.volume_id = "none".into();
    assert_eq!(code(&door, validate(&request)).await, Code::NotFound);
}
