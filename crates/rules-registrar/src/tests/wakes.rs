//! Who is looked at after a change, and who is not.

use api::{Kind, Object};
use control::Cache;
use prove_lab::{check_wakes, object};
use serde_json::json;

use super::facts::{able, local};
use crate::{NODE_LEASES, Registrar};

fn cluster(kind: Kind, name: &str) -> Option<Object> {
    Some(object(kind, json!({ "metadata": { "name": name } })))
}

fn lease(namespace: &str, name: &str) -> Option<Object> {
    Some(object(Kind::Lease, json!({ "metadata": { "namespace": namespace, "name": name } })))
}

fn attachment(driver: &str, node: &str, failed: bool) -> Option<Object> {
    let spec = json!({ "attacher": driver, "nodeName": node, "source": { "persistentVolumeName": "v" } });
    let error = if failed { json!({ "message": "no room" }) } else { json!(null) };
    let body =
        json!({ "metadata": { "name": "x" }, "spec": spec, "status": { "attached": false, "attachError": error } });
    Some(object(Kind::VolumeAttachment, body))
}

// KL-5 to KL-9: what is written about this node is put right whoever changed it, and nothing that happens to another
// node is looked at here. A driver is asked for its limit again when an attachment to this node fails.
#[test]
fn every_change_and_whom_it_wakes() {
    let mut local = local(able("e", "1.0.0"));
    local.keeps_lease = true;
    let changes = [
        ("node", None, cluster(Kind::Node, "n")),
        ("node-gone", cluster(Kind::Node, "n"), None),
        ("node-of-others", None, cluster(Kind::Node, "m")),
        ("csi-node", None, cluster(Kind::CSINode, "n")),
        ("csi-node-gone", cluster(Kind::CSINode, "n"), None),
        ("csi-node-of-others", None, cluster(Kind::CSINode, "m")),
        ("lease", None, lease(NODE_LEASES, "n")),
        ("lease-gone", lease(NODE_LEASES, "n"), None),
        ("lease-of-another-node", None, lease(NODE_LEASES, "m")),
        ("lease-of-a-leader", None, lease("default", "n")),
        ("driver", None, cluster(Kind::CSIDriver, "d")),
        ("driver-gone", cluster(Kind::CSIDriver, "e"), None),
        ("driver-that-is-not-here", None, cluster(Kind::CSIDriver, "f")),
        ("attachment-failed", attachment("d", "n", false), attachment("d", "n", true)),
        ("attachment-did-not-fail", None, attachment("d", "n", false)),
        ("attachment-failed-elsewhere", None, attachment("d", "m", true)),
        ("attachment-of-a-driver-that-is-not-here", None, attachment("f", "n", true)),
    ];
    check_wakes::<Registrar>(env!("CARGO_MANIFEST_DIR"), &Cache::default(), &local, &changes);
}
