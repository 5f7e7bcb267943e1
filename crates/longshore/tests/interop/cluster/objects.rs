//! Objects the tests apply.

/// A node without a kubelet. Pods are placed on it and never run.
pub const NODE: &str = "
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels: {kubernetes.io/os: linux, kubernetes.io/hostname: n1, topology.local.csi.longshore/node: n1, topology.hostpath.csi/node: n1}
  annotations: {volumes.kubernetes.io/controller-managed-attach-detach: 'true'}
status:
  allocatable: {cpu: '4', memory: 4Gi, pods: '100'}
  capacity: {cpu: '4', memory: 4Gi, pods: '100'}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: n1}
spec:
  drivers:
  - {name: local.csi.longshore, nodeID: n1, topologyKeys: [topology.local.csi.longshore/node]}
  - {name: hostpath.csi.k8s.io, nodeID: n1, topologyKeys: [topology.hostpath.csi/node]}
";

/// The kinds that are not Kubernetes' own, without a schema: what they hold is up to those who write them.
pub const KINDS: [(&str, &str, &str, &str); 4] = [
    ("VolumeSnapshot", "volumesnapshots", "snapshot.storage.k8s.io/v1", "Namespaced"),
    ("VolumeSnapshotContent", "volumesnapshotcontents", "snapshot.storage.k8s.io/v1", "Cluster"),
    ("VolumeSnapshotClass", "volumesnapshotclasses", "snapshot.storage.k8s.io/v1", "Cluster"),
    ("ReferenceGrant", "referencegrants", "gateway.networking.k8s.io/v1beta1", "Namespaced"),
];

/// Their definitions.
pub fn definitions() -> String {
    let define = |(name, plural, version, scope): (&str, &str, &str, &str)| {
        let (group, version) = version.split_once('/').unwrap();
        format!(
            "
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {plural}.{group}
  annotations: {{api-approved.kubernetes.io: 'unapproved, for a test'}}
spec:
  group: {group}
  scope: {scope}
  names: {{kind: {name}, plural: {plural}, singular: {}, listKind: {name}List}}
  versions:
  - name: {version}
    served: true
    storage: true
    subresources: {{status: {{}}}}
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
",
            name.to_lowercase()
        )
    };
    KINDS.map(define).concat()
}

/// A namespace, a class and a snapshot class of a driver, all with one name. `parameters` are the class's.
pub fn place(name: &str, driver: &str, parameters: &[(&str, &str)]) -> String {
    let parameters: Vec<String> = parameters.iter().map(|(key, value)| format!("  {key}: {value}\n")).collect();
    let parameters = if parameters.is_empty() { "  {}\n".to_string() } else { parameters.concat() };
    format!(
        "
apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: {name}}}
provisioner: {driver}
allowVolumeExpansion: true
parameters:
{parameters}
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {{name: {name}}}
driver: {driver}
deletionPolicy: Delete
"
    )
}

/// A claim; `source` is `VolumeSnapshot/x`, `PersistentVolumeClaim/x` or empty.
pub fn claim(place: &str, name: &str, source: &str) -> String {
    let source = match source.split_once('/') {
        Some((kind, name)) if kind == "VolumeSnapshot" => {
            format!("\n  dataSource: {{apiGroup: snapshot.storage.k8s.io, kind: {kind}, name: {name}}}")
        }
        Some((kind, name)) => format!("\n  dataSource: {{kind: {kind}, name: {name}}}"),
        None => String::new(),
    };
    format!(
        "
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}, namespace: {place}}}
spec:
  storageClassName: {place}
  accessModes: [ReadWriteOnce]
  resources: {{requests: {{storage: 16Mi}}}}{source}
"
    )
}

/// A pod that wants a claim.
pub fn pod(place: &str, name: &str, claim: &str) -> String {
    format!(
        "
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {place}}}
spec:
  automountServiceAccountToken: false
  containers: [{{name: main, image: none, volumeMounts: [{{name: data, mountPath: /data}}]}}]
  volumes: [{{name: data, persistentVolumeClaim: {{claimName: {claim}}}}}]
"
    )
}

/// A snapshot of a claim.
pub fn snapshot(place: &str, name: &str, claim: &str) -> String {
    format!(
        "
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {{name: {name}, namespace: {place}}}
spec: {{volumeSnapshotClassName: {place}, source: {{persistentVolumeClaimName: {claim}}}}}
"
    )
}

/// A volume by hand.
pub fn volume(name: &str, driver: &str, handle: &str, more: &str) -> String {
    format!(
        "
---
apiVersion: v1
kind: PersistentVolume
metadata:
  name: {name}
  annotations: {{pv.kubernetes.io/provisioned-by: {driver}}}
spec:
  storageClassName: elsewhere
  accessModes: [ReadWriteOnce]
  capacity: {{storage: 1Gi}}
  persistentVolumeReclaimPolicy: Retain
  csi: {{driver: {driver}, volumeHandle: '{handle}'{more}}}
"
    )
}

/// An attachment by hand.
pub fn attachment(name: &str, attacher: &str, volume: &str, node: &str) -> String {
    format!(
        "
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {{name: {name}}}
spec: {{attacher: {attacher}, nodeName: {node}, source: {{persistentVolumeName: {volume}}}}}
"
    )
}

/// Parameters by which the driver gets a secret with every call.
pub fn with_secrets(place: &'static str) -> Vec<(&'static str, &'static str)> {
    let calls = [
        ["csi.storage.k8s.io/provisioner-secret-name", "csi.storage.k8s.io/provisioner-secret-namespace"],
        ["csi.storage.k8s.io/controller-publish-secret-name", "csi.storage.k8s.io/controller-publish-secret-namespace"],
        ["csi.storage.k8s.io/controller-expand-secret-name", "csi.storage.k8s.io/controller-expand-secret-namespace"],
    ];
    calls.iter().flat_map(|[name, namespace]| [(*name, "key"), (*namespace, place)]).collect()
}
