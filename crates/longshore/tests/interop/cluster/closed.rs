//! A cluster in which each node refuses for a reason of its own, with claims that no pod can use.

use super::no_node::{alike, pod};

/// `preventPodSchedulingIfMissing` of a CSIDriver is behind this one.
pub const GATES: &str = "VolumeLimitScaling=true";

/// The nodes that take pods as far as kubelets would say it. `late` is not among them.
pub const READY: [&str; 6] = ["open-a", "open-b", "small", "full", "cordoned", "tainted"];

/// How every message begins once these nodes and `late` are there.
pub const NONE: &str = "0/7 nodes are available: ";

pub const CLUSTER: &str = "
apiVersion: v1
kind: Node
metadata: {name: open-a, labels: {kubernetes.io/hostname: open-a, topology.kubernetes.io/zone: a}}
status:
  allocatable: {cpu: '4', memory: 4Gi, pods: '100'}
  conditions: [{type: Ready, status: 'True', reason: KubeletReady, message: ''}]
---
apiVersion: v1
kind: Node
metadata: {name: open-b, labels: {kubernetes.io/hostname: open-b, topology.kubernetes.io/zone: b}}
status:
  allocatable: {cpu: '4', memory: 4Gi, pods: '100'}
  conditions: [{type: Ready, status: 'True', reason: KubeletReady, message: ''}]
---
apiVersion: v1
kind: Node
metadata: {name: small, labels: {kubernetes.io/hostname: small, topology.kubernetes.io/zone: a}}
status:
  allocatable: {cpu: 500m, memory: 256Mi, pods: '100'}
  conditions: [{type: Ready, status: 'True', reason: KubeletReady, message: ''}]
---
apiVersion: v1
kind: Node
metadata: {name: full, labels: {kubernetes.io/hostname: full, topology.kubernetes.io/zone: b}}
status:
  allocatable: {cpu: '4', memory: 4Gi, pods: '0'}
  conditions: [{type: Ready, status: 'True', reason: KubeletReady, message: ''}]
---
apiVersion: v1
kind: Node
metadata: {name: cordoned, labels: {kubernetes.io/hostname: cordoned, topology.kubernetes.io/zone: a}}
spec: {unschedulable: true}
status:
  allocatable: {cpu: '4', memory: 4Gi, pods: '100'}
  conditions: [{type: Ready, status: 'True', reason: KubeletReady, message: ''}]
---
apiVersion: v1
kind: Node
metadata: {name: tainted, labels: {kubernetes.io/hostname: tainted, topology.kubernetes.io/zone: b}}
spec: {taints: [{key: dedicated, value: db, effect: NoSchedule}]}
status:
  allocatable: {cpu: '4', memory: 4Gi, pods: '100'}
  conditions: [{type: Ready, status: 'True', reason: KubeletReady, message: ''}]
---
apiVersion: v1
kind: Node
metadata: {name: late, labels: {kubernetes.io/hostname: late, topology.kubernetes.io/zone: a}}
status:
  allocatable: {cpu: '4', memory: 4Gi, pods: '100'}
  conditions: [{type: Ready, status: 'False', reason: KubeletNotReady, message: ''}]
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: open-a}
spec: {drivers: [{name: few.example.com, nodeID: a, topologyKeys: [], allocatable: {count: 1}}]}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: open-b}
spec: {drivers: [{name: few.example.com, nodeID: b, topologyKeys: [], allocatable: {count: 1}}]}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: small}
spec: {drivers: [{name: few.example.com, nodeID: s, topologyKeys: [], allocatable: {count: 1}}]}
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: room.example.com}
spec: {storageCapacity: true}
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: nowhere.example.com}
spec: {preventPodSchedulingIfMissing: true}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: at-once}
provisioner: made.example.com
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: room}
provisioner: room.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: CSIStorageCapacity
metadata: {name: room, namespace: default}
storageClassName: room
nodeTopology: {matchLabels: {topology.kubernetes.io/zone: a}}
capacity: 1Gi
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: by-hand}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: zone-z}
provisioner: made.example.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [z]}]}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: anywhere}
provisioner: made.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: nowhere}
provisioner: nowhere.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: in-z}
spec:
  storageClassName: made
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: made.example.com, volumeHandle: in-z}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [z]}]}]
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: in-a}
spec:
  storageClassName: made
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: few.example.com, volumeHandle: in-a}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a]}]}]
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: labelled, labels: {topology.kubernetes.io/zone: z}}
spec:
  storageClassName: made
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: made.example.com, volumeHandle: labelled}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: few-1}
spec:
  storageClassName: made
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: few.example.com, volumeHandle: few-1}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: few-2}
spec:
  storageClassName: made
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: few.example.com, volumeHandle: few-2}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: there}
spec:
  storageClassName: made
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: few.example.com, volumeHandle: there}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: there}
spec: {attacher: few.example.com, nodeName: open-a, source: {persistentVolumeName: there}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: alone}
spec:
  storageClassName: made
  accessModes: [ReadWriteOncePod]
  capacity: {storage: 1Gi}
  csi: {driver: made.example.com, volumeHandle: alone}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: free-in-z}
spec:
  storageClassName: by-hand
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: made.example.com, volumeHandle: free-in-z}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [z]}]}]
";

/// What a controller of claims would have written.
pub const PHASES: [(&str, &str); 8] = [
    ("in-z", "Bound"),
    ("in-a", "Bound"),
    ("labelled", "Bound"),
    ("few-1", "Bound"),
    ("few-2", "Bound"),
    ("alone", "Bound"),
    ("torn", "Bound"),
    ("lost", "Lost"),
];

/// The claim whose deletion is asked for.
pub const DELETED: &str = "going";

/// The claims in a namespace, and the pod that holds the one that is for one pod at a time.
pub fn claims(place: &str) -> String {
    let claim = |name: &str, more: &str, class: &str, rest: &str| {
        format!(
            "---\napiVersion: v1\nkind: PersistentVolumeClaim\n\
             metadata: {{name: {name}, namespace: {place}{more}}}\n\
             spec: {{storageClassName: {class}, accessModes: [ReadWriteOnce], \
             resources: {{requests: {{storage: 1Gi}}}}{rest}}}\n"
        )
    };
    let bound = |name: &str| {
        let done = ", annotations: {pv.kubernetes.io/bind-completed: 'yes'}";
        claim(name, done, "made", &format!(", volumeName: {name}"))
    };
    let selected = |node: &str| {
        format!(
            ", annotations: {{volume.kubernetes.io/selected-node: {node}, \
             volume.kubernetes.io/storage-provisioner: made.example.com}}"
        )
    };
    let mut all: String = ["in-z", "in-a", "labelled", "few-1", "few-2", "torn", "lost"].map(bound).concat();
    all += &bound("alone").replace("[ReadWriteOnce]", "[ReadWriteOncePod]");
    all += &claim("at-once", "", "at-once", "");
    all += &claim("classless", "", "no-such-class", "");
    all += &claim(DELETED, ", finalizers: [example.com/kept]", "at-once", "");
    all += &claim("by-hand", "", "by-hand", "");
    all += &claim("zone-z", "", "zone-z", "");
    all += &claim("nowhere", "", "nowhere", "");
    all += &claim("large", "", "room", "").replace("1Gi", "5Gi");
    all += &claim("for-small", &selected("small"), "anywhere", "");
    all += &claim("for-cordoned", &selected("cordoned"), "anywhere", "");
    // Of the same name as one that a pod would make.
    all += &claim("foreign-data", "", "at-once", "");
    let holder = alike("holder", "  nodeName: open-b\n", &["alone"], &[]);
    all + &pod(place, false, &holder)
}
