//! Pods that no node takes, each for reasons of its own, and what is said of them.

use super::closed::DELETED;

/// One pod, and what both schedulers say of it.
pub struct Case {
    pub name: &'static str,
    /// More of its `spec`, in YAML at one level of indentation.
    spec: &'static str,
    /// The claims it uses.
    claims: &'static [&'static str],
    /// Why no node takes it, in kube-scheduler's words and order; but for names in parentheses and preemption.
    pub theirs: &'static [&'static str],
    /// The same in ours.
    pub ours: &'static [&'static str],
}

/// A pod of which both say the same.
pub const fn alike(
    name: &'static str,
    spec: &'static str,
    claims: &'static [&'static str],
    said: &'static [&'static str],
) -> Case {
    Case { name, spec, claims, theirs: said, ours: said }
}

/// A pod that comes before the first node.
pub const EARLY: Case = alike("early", "", &["absent"], &["no nodes available to schedule pods"]);

/// The pod of a case; for the scheduler of the namespace's name, or for none by name.
pub fn pod(place: &str, named: bool, case: &Case) -> String {
    let scheduler = if named { format!("  schedulerName: {place}\n") } else { String::new() };
    let volume = |claim: &&str| format!("{{name: {claim}, persistentVolumeClaim: {{claimName: {claim}}}}}");
    let volumes: Vec<String> = case.claims.iter().map(volume).collect();
    let volumes = if case.spec.contains("volumes:") || volumes.is_empty() {
        String::new()
    } else {
        format!("  volumes: [{}]\n", volumes.join(", "))
    };
    let containers = if case.spec.contains("containers:") { "" } else { "  containers: [{name: main, image: none}]\n" };
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {}, namespace: {place}}}\nspec:\n\
         {scheduler}{volumes}{containers}{}",
        case.name, case.spec
    )
}

/// The pod that comes before the first node.
pub fn early(place: &str) -> String {
    pod(place, place == "theirs", &EARLY)
}

// What most pods hear, whatever they ask for.
const FULL: &str = "1 Too many pods";
const CORDONED: &str = "1 node(s) were unschedulable";
const TAINTED: &str = "2 node(s) had untolerated taint(s)";

/// Every taint but those of a node that is not ready.
const TOLERANT: &str = "  tolerations: [{key: dedicated, operator: Exists}, \
                        {key: node.kubernetes.io/unschedulable, operator: Exists}]\n";
const IN_Z: &str = "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: \
                    [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [z]}]}]}}}\n";
const CPU_9: &str = "  containers: [{name: main, image: none, resources: {requests: {cpu: '9'}}}]\n";
const CPU_1: &str = "  containers: [{name: main, image: none, resources: {requests: {cpu: '1'}}}]\n";
const MEMORY_9: &str = "  containers: [{name: main, image: none, resources: {requests: {memory: 9Gi}}}]\n";
const BOTH_9: &str = "  tolerations: [{operator: Exists}]\n\
                      \x20 containers: [{name: main, image: none, resources: {requests: {cpu: '9', memory: 9Gi}}}]\n";
const GPU: &str = "  tolerations: [{key: dedicated, operator: Exists}]\n\
                   \x20 containers: [{name: main, image: none, resources: {limits: {example.com/gpu: '1'}}}]\n";
const TEMPLATE: &str = "  volumes: [{name: data, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: anywhere, \
                        accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]\n";

pub const CASES: [Case; 29] = [
    alike(
        "selector",
        "  nodeSelector: {disk: ssd}\n",
        &[],
        &[CORDONED, TAINTED, "4 node(s) didn't match Pod's node affinity/selector"],
    ),
    alike("affinity", IN_Z, &[], &[CORDONED, TAINTED, "4 node(s) didn't match Pod's node affinity/selector"]),
    alike("cpu", CPU_9, &[], &[FULL, CORDONED, TAINTED, "4 Insufficient cpu"]),
    alike("memory", MEMORY_9, &[], &[FULL, CORDONED, TAINTED, "4 Insufficient memory"]),
    Case {
        name: "tolerant",
        spec: BOTH_9,
        claims: &[],
        theirs: &[FULL, "7 Insufficient cpu", "7 Insufficient memory"],
        // Whatever a pod tolerates, nobody would run it there.
        ours: &[FULL, "1 node(s) were not ready", "6 Insufficient cpu", "6 Insufficient memory"],
    },
    alike(
        "extended",
        GPU,
        &[],
        &[FULL, "1 node(s) had untolerated taint(s)", CORDONED, "5 Insufficient example.com/gpu"],
    ),
    alike(
        "on-cordoned",
        "  nodeSelector: {kubernetes.io/hostname: cordoned}\n",
        &[],
        &[CORDONED, TAINTED, "4 node(s) didn't match Pod's node affinity/selector"],
    ),
    alike(
        "on-full",
        "  nodeSelector: {kubernetes.io/hostname: full}\n",
        &[],
        &[FULL, CORDONED, TAINTED, "3 node(s) didn't match Pod's node affinity/selector"],
    ),
    alike("missing", "", &["absent"], &["persistentvolumeclaim \"absent\" not found"]),
    alike(
        "template",
        TEMPLATE,
        &[],
        &["waiting for ephemeral volume controller to create the persistentvolumeclaim \"template-data\""],
    ),
    alike("foreign", TEMPLATE, &[], &["PVC PLACE/foreign-data was not created for pod PLACE/foreign"]),
    alike("going", "", &[DELETED], &["persistentvolumeclaim \"going\" is being deleted"]),
    alike("lost", "", &["lost"], &["persistentvolumeclaim \"lost\" bound to non-existent persistentvolume \"lost\""]),
    alike("at-once", "", &["at-once"], &["pod has unbound immediate PersistentVolumeClaims"]),
    alike("classless", "", &["classless"], &["pod has unbound immediate PersistentVolumeClaims"]),
    alike("several", "", &["at-once", DELETED, "absent"], &["persistentvolumeclaim \"absent\" not found"]),
    alike("torn", "", &["torn"], &["persistentvolume \"torn\" not found"]),
    alike(
        "out-of-reach",
        "",
        &["in-z"],
        &[FULL, CORDONED, TAINTED, "3 node(s) didn't match PersistentVolume's node affinity"],
    ),
    alike(
        "two-obstacles",
        "",
        &["in-z", "by-hand"],
        &[
            FULL,
            CORDONED,
            TAINTED,
            "3 node(s) didn't find available persistent volumes to bind",
            "3 node(s) didn't match PersistentVolume's node affinity",
        ],
    ),
    alike("other-zone", "", &["labelled"], &[FULL, CORDONED, TAINTED, "3 node(s) had no available volume zone"]),
    alike(
        "by-hand",
        "",
        &["by-hand"],
        &[FULL, CORDONED, TAINTED, "3 node(s) didn't find available persistent volumes to bind"],
    ),
    alike(
        "zone-z",
        TOLERANT,
        &["zone-z"],
        &[FULL, "1 node(s) had untolerated taint(s)", "5 node(s) didn't find available persistent volumes to bind"],
    ),
    alike(
        "no-driver",
        "",
        &["nowhere"],
        &[FULL, CORDONED, TAINTED, "3 nowhere.example.com CSI driver is not installed on the node"],
    ),
    alike("no-room", "", &["large"], &[FULL, CORDONED, TAINTED, "3 node(s) did not have enough free storage"]),
    alike("limit", "", &["few-1", "few-2"], &[FULL, CORDONED, TAINTED, "3 node(s) exceed max volume count"]),
    alike(
        "taken",
        "",
        &["alone"],
        &[
            FULL,
            CORDONED,
            TAINTED,
            "3 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by \
             another pod",
        ],
    ),
    alike(
        "mixed",
        CPU_1,
        &["in-a"],
        &[
            "1 Insufficient cpu",
            FULL,
            "1 node(s) didn't match PersistentVolume's node affinity",
            "1 node(s) exceed max volume count",
            CORDONED,
            TAINTED,
        ],
    ),
    alike(
        "selected",
        CPU_1,
        &["for-small"],
        &["1 Insufficient cpu", FULL, CORDONED, "2 node(s) didn't find available persistent volumes to bind", TAINTED],
    ),
    alike(
        "selected-closed",
        "",
        &["for-cordoned"],
        &[FULL, CORDONED, TAINTED, "3 node(s) didn't find available persistent volumes to bind"],
    ),
];
