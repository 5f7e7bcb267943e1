//! Objects the tests apply.

/// The kinds of snapshots, without a schema: what they hold is up to those who write them.
pub fn definitions() -> String {
    let kinds = [
        ("VolumeSnapshot", "volumesnapshots", "Namespaced"),
        ("VolumeSnapshotContent", "volumesnapshotcontents", "Cluster"),
        ("VolumeSnapshotClass", "volumesnapshotclasses", "Cluster"),
    ];
    let define = |(kind, plural, scope): (&str, &str, &str)| {
        format!(
            "
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {plural}.snapshot.storage.k8s.io
  annotations: {{api-approved.kubernetes.io: 'unapproved, for a test'}}
spec:
  group: snapshot.storage.k8s.io
  scope: {scope}
  names: {{kind: {kind}, plural: {plural}, singular: {}, listKind: {kind}List}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {{status: {{}}}}
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
",
            kind.to_lowercase()
        )
    };
    kinds.map(define).concat()
}

/// A class of a driver's volumes.
pub fn class(name: &str, driver: &str, more: &str) -> String {
    format!(
        "
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: {name}}}
provisioner: {driver}
allowVolumeExpansion: true
{more}
"
    )
}

/// A class of a driver's snapshots.
pub fn snapshot_class(name: &str, driver: &str) -> String {
    format!(
        "
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {{name: {name}}}
driver: {driver}
deletionPolicy: Delete
"
    )
}

/// A class of what of a driver's volumes can be changed.
#[cfg(feature = "e2e")]
pub fn attributes_class(name: &str, driver: &str, parameters: &str) -> String {
    format!(
        "
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {{name: {name}}}
driverName: {driver}
parameters: {{{parameters}}}
"
    )
}

/// A claim; `more` are further fields of its `spec`, in flow style: `volumeMode: Block, …`.
pub fn claim(name: &str, class: &str, size: &str, mode: &str, more: &str) -> String {
    format!(
        "
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}}}
spec: {{storageClassName: {class}, accessModes: [{mode}], resources: {{requests: {{storage: {size}}}}}, {more}}}
"
    )
}

/// A pod that sleeps, with a claim's volume at `/data`.
pub fn pod(name: &str, claim: &str) -> String {
    pod_with(name, &format!("{{name: data, persistentVolumeClaim: {{claimName: {claim}}}}}"), "", "")
}

/// The same of any volume; `of_pod` are further fields of the pod's `spec`, `of_main` of its container.
pub fn pod_with(name: &str, volume: &str, of_pod: &str, of_main: &str) -> String {
    let devices = of_main.contains("volumeDevices");
    let mounts = if devices { "" } else { "volumeMounts: [{name: data, mountPath: /data}], " };
    format!(
        "
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec: {{terminationGracePeriodSeconds: 1, volumes: [{volume}], {of_pod} containers: [{{name: main, image: busybox,
  imagePullPolicy: IfNotPresent, command: [sh, -c, 'trap exit TERM; sleep 100000 & wait'], {mounts}{of_main}}}]}}
"
    )
}

/// A snapshot of a claim.
pub fn snapshot(name: &str, class: &str, claim: &str) -> String {
    format!(
        "
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {{name: {name}}}
spec: {{volumeSnapshotClassName: {class}, source: {{persistentVolumeClaimName: {claim}}}}}
"
    )
}
