use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use api::{ClaimSpec, Meta, PersistentVolumeClaim, Quantity, Resources, StorageClass, TypedReference};
use csi::v1::volume_capability::{AccessType, access_mode::Mode};
use serde_json::json;

use crate::terms::{recorded, terms};
use crate::{Obstacle, Terms};

fn claim(modes: &[&str], size: &str) -> PersistentVolumeClaim {
    let requests = [("storage".to_string(), Quantity(size.into()))].into();
    PersistentVolumeClaim {
        metadata: Meta { uid: "u".into(), ..Meta::in_namespace("n", "c") },
        spec: ClaimSpec {
            access_modes: modes.iter().map(|mode| (*mode).into()).collect(),
            resources: Resources { requests, ..Resources::default() },
            ..ClaimSpec::default()
        },
        ..PersistentVolumeClaim::default()
    }
}

fn class(parameters: &[(&str, &str)]) -> StorageClass {
    let parameters = parameters.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    StorageClass {
        metadata: Meta { uid: "cu".into(), ..Meta::named("fast") },
        provisioner: "d".into(),
        parameters,
        mount_options: vec!["noatime".into()],
        ..StorageClass::default()
    }
}

fn good(parameters: &[(&str, &str)]) -> Terms {
    terms(&claim(&["ReadWriteOnce"], "1Gi"), &class(parameters)).unwrap()
}

fn bad(claim: &PersistentVolumeClaim, parameters: &[(&str, &str)]) -> &'static str {
    let Err(Obstacle { code, .. }) = terms(claim, &class(parameters)) else { panic!("accepted") };
    code
}

// P1, P15, P16, P17, P18, P19.
#[test]
fn the_request_says_what_the_claim_and_class_say() {
    let all = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];
    let request = terms(&claim(&all, "1.5"), &class(&[("type", "ssd")])).unwrap().request.to_csi();
    assert_eq!(request.name, "pvc-u");
    let range = request.capacity_range.unwrap();
    assert_eq!((range.required_bytes, range.limit_bytes), (2, 0));
    let modes: Vec<i32> = request.volume_capabilities.iter().map(|c| c.access_mode.as_ref().unwrap().mode).collect();
    let expected =
        [Mode::SingleNodeWriter, Mode::MultiNodeReaderOnly, Mode::MultiNodeMultiWriter, Mode::SingleNodeWriter];
    assert_eq!(modes, expected.map(i32::from));
    let Some(AccessType::Mount(mount)) = &request.volume_capabilities[0].access_type else { panic!() };
    assert_eq!(mount.mount_flags, ["noatime"]);
    assert_eq!(request.parameters, BTreeMap::from([("type".to_string(), "ssd".to_string())]));
    assert!(request.secrets.is_empty());
}

// P11, P12.
#[test]
fn the_filesystem_type_is_found_under_either_name() {
    let prefixed = good(&[("csi.storage.k8s.io/fstype", "xfs")]).request;
    assert_eq!((prefixed.fs_type.as_str(), prefixed.parameters.len()), ("xfs", 0));
    let plain = good(&[("FsType", "ext4")]).request;
    assert_eq!((plain.fs_type.as_str(), plain.parameters["FsType"].as_str()), ("ext4", "ext4"));
    assert_eq!(good(&[]).request.fs_type, "");
}

#[test]
fn a_raw_device_is_asked_for_as_one() {
    let mut claim = claim(&["ReadWriteOnce"], "1Gi");
    claim.spec.volume_mode = Some("Block".into());
    let request = terms(&claim, &class(&[])).unwrap().request.to_csi();
    assert!(matches!(request.volume_capabilities[0].access_type, Some(AccessType::Block(_))));
}

// P8, P9, P10, and what is not supported is said rather than ignored.
#[test]
fn what_cannot_be_served_is_said() {
    let plain = claim(&["ReadWriteOnce"], "1Gi");
    assert_eq!(bad(&plain, &[("csi.storage.k8s.io/nonsense", "x")]), "UnknownParameter");
    assert_eq!(bad(&plain, &[("csi.storage.k8s.io/provisioner-secret-name", "x")]), "SecretsNotSupported");
    assert_eq!(bad(&plain, &[("fstype", "xfs"), ("csi.storage.k8s.io/fstype", "xfs")]), "TwoFilesystemTypes");
    assert_eq!(bad(&claim(&[], "1Gi"), &[]), "NoAccessMode");
    assert_eq!(bad(&claim(&["Sometimes"], "1Gi"), &[]), "BadAccessMode");
    assert_eq!(bad(&claim(&["ReadWriteOnce"], "much"), &[]), "BadSize");
    let mut selects = plain.clone();
    selects.spec.selector = Some(json!({}));
    assert_eq!(bad(&selects, &[]), "SelectorNotSupported");
    let mut copies = plain.clone();
    copies.spec.data_source_ref = Some(TypedReference { kind: "VolumeSnapshot".into(), ..Default::default() });
    assert_eq!(bad(&copies, &[]), "DataSourceNotSupported");
    let mut sizeless = plain;
    sizeless.spec.resources = Resources::default();
    assert_eq!(bad(&sizeless, &[]), "NoSize");
}

// Reliability 14, 69: what is recorded gives back the very same request.
#[test]
fn the_record_gives_back_the_same_request() {
    let terms = good(&[("csi.storage.k8s.io/fstype", "xfs"), ("type", "ssd")]);
    let mut claim = claim(&["ReadWriteOnce"], "1Gi");
    let record = terms.request.record(&terms.class_uid);
    claim.metadata.annotations.insert(api::names::PROVISIONING_TERMS.into(), record);
    assert_eq!(recorded(&claim), Some(("cu".into(), terms.request)));
    claim.metadata.annotations.insert(api::names::PROVISIONING_TERMS.into(), "{}".into());
    assert_eq!(recorded(&claim), None);
}
