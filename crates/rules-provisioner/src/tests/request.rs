use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Kind, Object, PersistentVolumeClaim, StorageClass};
use control::{Cache, Reason as _, Secrets};
use csi::v1::CreateVolumeRequest;
use csi::v1::volume_capability::{AccessType, access_mode::Mode};
use csi::{ControllerRpc, DriverCapability, PluginService};
use serde_json::{Value, json};

use crate::terms::terms;
use crate::{Local, Obstacle, Settings, Terms, Unfit};

pub(super) fn claim(spec: Value) -> PersistentVolumeClaim {
    let mut body = json!({
        "metadata": { "namespace": "n", "name": "c", "uid": "u", "annotations": { "team": "blue" } },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    rules_store::merge_patch(&mut body, &json!({ "spec": spec }));
    serde_json::from_value(body).unwrap()
}

pub(super) fn class(parameters: &[(&str, &str)]) -> StorageClass {
    let parameters: BTreeMap<&str, &str> = parameters.iter().copied().collect();
    let body = json!({
        "metadata": { "name": "fast", "uid": "cu" }, "provisioner": "d", "parameters": parameters,
        "mountOptions": ["noatime"],
    });
    serde_json::from_value(body).unwrap()
}

/// The terms under some settings and capabilities, in a cluster with these objects.
pub(super) fn under(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    local: &Local,
    objects: &[(Kind, Value)],
) -> Result<Terms, &'static str> {
    let mut cache = Cache::default();
    for (kind, body) in objects {
        let mut body = body.clone();
        body["metadata"]["resourceVersion"] = "1".into();
        cache.set(Object::from_json(*kind, body).unwrap());
    }
    terms(claim, class, None, &cache, local).map_err(|unfit| match unfit {
        Unfit::Obstacle(Obstacle { code, .. }) => code.name(),
        Unfit::Reschedule(_) => "Reschedule",
    })
}

pub(super) fn local(change: impl FnOnce(&mut Settings)) -> Local {
    let mut settings = Settings::default();
    change(&mut settings);
    Local { settings: Arc::new(settings), ..Local::new("d") }
}

pub(super) fn good(parameters: &[(&str, &str)]) -> Terms {
    under(&claim(json!({})), &class(parameters), &local(|_| {}), &[]).unwrap()
}

fn bad(spec: Value, parameters: &[(&str, &str)]) -> &'static str {
    under(&claim(spec), &class(parameters), &local(|_| {}), &[]).expect_err("accepted")
}

fn sent(terms: &Terms) -> CreateVolumeRequest {
    terms.request.to_csi(&Secrets::default())
}

fn modes(request: &CreateVolumeRequest) -> Vec<i32> {
    request.volume_capabilities.iter().map(|c| c.access_mode.as_ref().unwrap().mode).collect()
}

// P1, P15, P16, P17, P18, P19; S0-24 to S0-27.
#[test]
fn the_request_says_what_the_claim_and_class_say() {
    let all = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];
    let claim = claim(json!({ "accessModes": all, "resources": { "requests": { "storage": "1.5" } } }));
    let mut local = local(|_| {});
    let terms = under(&claim, &class(&[("type", "ssd")]), &local, &[]).unwrap();
    let request = sent(&terms);
    assert_eq!(request.name, "pvc-u");
    let range = request.capacity_range.unwrap();
    assert_eq!((range.required_bytes, range.limit_bytes), (2, 0));
    let plain = [Mode::SingleNodeWriter, Mode::MultiNodeReaderOnly, Mode::MultiNodeMultiWriter, Mode::SingleNodeWriter];
    assert_eq!(modes(&request), plain.map(i32::from));
    let Some(AccessType::Mount(mount)) = &request.volume_capabilities[0].access_type else { panic!() };
    assert_eq!(mount.mount_flags, ["noatime"]);
    assert_eq!(request.parameters, BTreeMap::from([("type".to_string(), "ssd".to_string())]));
    assert!(request.secrets.is_empty() && request.volume_content_source.is_none());
    assert!(request.accessibility_requirements.is_none());
    local.capabilities.extend([ControllerRpc::SingleNodeMultiWriter]);
    let apart = [
        Mode::SingleNodeMultiWriter,
        Mode::MultiNodeReaderOnly,
        Mode::MultiNodeMultiWriter,
        Mode::SingleNodeSingleWriter,
    ];
    assert_eq!(modes(&sent(&under(&claim, &class(&[]), &local, &[]).unwrap())), apart.map(i32::from));
}

// P1, P2, P3.
#[test]
fn the_name_follows_the_flags() {
    let name = |prefix: &str, length: Option<usize>| {
        let local = local(|settings| {
            settings.volume_name_prefix = prefix.into();
            settings.volume_name_uuid_length = length;
        });
        let mut claim = claim(json!({}));
        claim.metadata.uid = "12-34-56".into();
        under(&claim, &class(&[]), &local, &[]).map(|terms| terms.request.name)
    };
    assert_eq!(name("vol", None), Ok("vol-12-34-56".into()));
    assert_eq!(name("vol", Some(4)), Ok("vol-1234".into()));
    assert_eq!(name("", None), Err("NoNamePrefix"));
}

// P11, P12, P13.
#[test]
fn the_filesystem_type_is_found_under_either_name() {
    let prefixed = good(&[("csi.storage.k8s.io/fstype", "xfs")]).request;
    assert_eq!((prefixed.fs_type.as_str(), prefixed.parameters.len()), ("xfs", 0));
    let plain = good(&[("FsType", "ext4")]).request;
    assert_eq!((plain.fs_type.as_str(), plain.parameters["FsType"].as_str()), ("ext4", "ext4"));
    assert_eq!(good(&[]).request.fs_type, "");
    let default = local(|settings| settings.default_fstype = "btrfs".into());
    let fs_type = |parameters: &[(&str, &str)]| {
        under(&claim(json!({})), &class(parameters), &default, &[]).unwrap().request.fs_type
    };
    assert_eq!((fs_type(&[]).as_str(), fs_type(&[("fstype", "xfs")]).as_str()), ("btrfs", "xfs"));
}

#[test]
fn a_raw_device_is_asked_for_as_one() {
    let block = claim(json!({ "volumeMode": "Block" }));
    let request = sent(&under(&block, &class(&[]), &local(|_| {}), &[]).unwrap());
    assert!(matches!(request.volume_capabilities[0].access_type, Some(AccessType::Block(_))));
}

// P8, P9, P10.
#[test]
fn what_cannot_be_served_is_said() {
    assert_eq!(bad(json!({}), &[("csi.storage.k8s.io/nonsense", "x")]), "UnknownParameter");
    assert_eq!(bad(json!({}), &[("fstype", "xfs"), ("csi.storage.k8s.io/fstype", "xfs")]), "TwoFilesystemTypes");
    assert_eq!(bad(json!({ "accessModes": [] }), &[]), "NoAccessMode");
    assert_eq!(bad(json!({ "accessModes": ["Sometimes"] }), &[]), "BadAccessMode");
    assert_eq!(bad(json!({ "volumeMode": "Tape" }), &[]), "BadVolumeMode");
    assert_eq!(bad(json!({ "resources": { "requests": { "storage": "much" } } }), &[]), "BadSize");
    assert_eq!(bad(json!({ "resources": { "requests": null } }), &[]), "NoSize");
    assert_eq!(bad(json!({ "selector": {} }), &[]), "SelectorNotSupported");
}

// Sidecars 2.4 step 6: what the driver cannot do is not asked of it.
#[test]
fn a_driver_is_asked_only_for_what_it_can_do() {
    let cannot = |lost: &[DriverCapability], spec: Value| {
        let mut local = local(|_| {});
        local.capabilities = local.capabilities.difference(lost.iter().copied().collect());
        under(&claim(spec), &class(&[]), &local, &[])
    };
    let source = |kind: &str, group: Value| json!({ "dataSource": { "kind": kind, "name": "s", "apiGroup": group } });
    assert_eq!(cannot(&[PluginService::ControllerService.into()], json!({})), Err("DriverCannot"));
    assert_eq!(cannot(&[ControllerRpc::CreateDeleteVolume.into()], json!({})), Err("DriverCannot"));
    assert_eq!(cannot(&[], source("VolumeSnapshot", "snapshot.storage.k8s.io".into())), Err("DriverCannot"));
    assert_eq!(cannot(&[], source("PersistentVolumeClaim", Value::Null)), Err("DriverCannot"));
    assert_eq!(cannot(&[], json!({ "volumeAttributesClassName": "gold" })), Err("DriverCannot"));
}

// P77.
#[test]
fn the_driver_is_told_for_whom_it_works_if_asked_to() {
    let told = local(|settings| settings.extra_create_metadata = true);
    let parameters = under(&claim(json!({})), &class(&[("type", "ssd")]), &told, &[]).unwrap().request.parameters;
    let expected = [
        ("csi.storage.k8s.io/pv/name", "pvc-u"),
        ("csi.storage.k8s.io/pvc/name", "c"),
        ("csi.storage.k8s.io/pvc/namespace", "n"),
        ("type", "ssd"),
    ];
    assert_eq!(parameters, expected.map(|(key, value)| (String::from(key), String::from(value))).into());
}

// P78.
#[test]
fn attributes_come_from_the_attributes_class_of_this_driver() {
    let mut able = local(|_| {});
    able.capabilities.extend([ControllerRpc::ModifyVolume]);
    let gold = claim(json!({ "volumeAttributesClassName": "gold" }));
    let named = |driver: &str| {
        let body = json!({ "metadata": { "name": "gold" }, "driverName": driver, "parameters": { "iops": "9" } });
        under(&gold, &class(&[]), &able, &[(Kind::VolumeAttributesClass, body)])
    };
    let terms = named("d").unwrap();
    assert_eq!(sent(&terms).mutable_parameters["iops"], "9");
    assert_eq!(terms.attributes_class.as_deref(), Some("gold"));
    assert_eq!(named("other"), Err("AttributesClassOfAnother"));
    assert_eq!(under(&gold, &class(&[]), &able, &[]), Err("AttributesClassMissing"));
    let off =
        Local { settings: Arc::new(Settings { attributes_classes: false, ..Settings::default() }), ..able.clone() };
    assert_eq!(under(&gold, &class(&[]), &off, &[]).unwrap().attributes_class, None);
}
