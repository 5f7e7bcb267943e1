use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::in_tree::sourced;
use crate::{
    AccessMode, Affinity, ClaimPhase, ConfigMapVolume, ContainerPort, DownwardApiVolume, EmptyDir, EnvFromSource,
    EnvVarSource, HostPath, LabelSelector, Lifecycle, Meta, PodPhase, Probe, ProjectedVolume, Quantity, ReadinessGate,
    ReclaimPolicy, SecretVolume, SharedPart, Time, Toleration, Value, VolumeMode, VolumeNodeAffinity, VolumePhase,
};

/// Declares a narrow object part: every field optional on the wire, empty ones left out. Fields that the API requires may
/// come first, as `required { … }`; they are always written.
macro_rules! part {
    ($(#[$doc:meta])* $name:ident { $($fields:tt)* }) => {
        crate::core_v1::part! { $(#[$doc])* $name required {} { $($fields)* } }
    };
    (
        $(#[$doc:meta])* $name:ident
        required { $($(#[$needed_attr:meta])* $needed:ident : $needed_type:ty),* $(,)? }
        { $($(#[$attr:meta])* $field:ident : $type:ty),* $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        #[allow(missing_docs, reason = "fields are the Kubernetes fields of the same name")]
        pub struct $name {
            $($(#[$needed_attr])* pub $needed: $needed_type,)*
            $(
                $(#[$attr])*
                #[serde(skip_serializing_if = "crate::core_v1::is_default")]
                pub $field: $type,
            )*
        }
    };
}
pub(crate) use part;

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Amounts by resource name.
pub type ResourceList = BTreeMap<String, Quantity>;

part! {
    /// A user's request for storage.
    PersistentVolumeClaim { metadata: Meta, spec: ClaimSpec, status: ClaimStatus }
}

part! {
    /// What the user asks for.
    ClaimSpec {
        access_modes: Vec<AccessMode>,
        resources: Resources,
        /// `None` asks for the default class, `Some("")` for no class at all.
        storage_class_name: Option<String>,
        volume_mode: Option<VolumeMode>,
        volume_name: String,
        selector: Option<LabelSelector>,
        data_source: Option<TypedReference>,
        data_source_ref: Option<TypedReference>,
        volume_attributes_class_name: Option<String>,
    }
}

part! {
    /// A reference to an object of any kind in the same namespace.
    TypedReference { api_group: Option<String>, kind: String, name: String, namespace: Option<String> }
}

part! {
    /// Requests and limits.
    Resources { requests: ResourceList, limits: ResourceList }
}

part! {
    /// How far the claim has come.
    ClaimStatus {
        phase: ClaimPhase,
        access_modes: Vec<AccessMode>,
        capacity: ResourceList,
        /// The size a resize is under way to.
        allocated_resources: ResourceList,
        /// How far that resize has come.
        allocated_resource_statuses: BTreeMap<String, String>,
        conditions: Vec<Condition>,
        current_volume_attributes_class_name: Option<String>,
        modify_volume_status: Option<ModifyVolumeStatus>,
    }
}

part! {
    /// How far a change of a volume's attributes has come.
    ModifyVolumeStatus { status: String, target_volume_attributes_class_name: String }
}

part! {
    /// A piece of storage.
    PersistentVolume { metadata: SharedPart<Meta>, spec: VolumeSpec, status: VolumeStatus }
}

sourced! {
    /// What the volume is and whom it is for.
    VolumeSpec, as VolumeSpecWire "VolumeSpecWire" {
        capacity: ResourceList,
        access_modes: Vec<AccessMode>,
        claim_ref: Option<SharedPart<ClaimRef>>,
        persistent_volume_reclaim_policy: ReclaimPolicy,
        storage_class_name: String,
        mount_options: Vec<String>,
        volume_mode: Option<VolumeMode>,
        node_affinity: Option<VolumeNodeAffinity>,
        volume_attributes_class_name: Option<String>,
        csi: Option<CsiSource>,
    }
}

part! {
    /// The claim a volume is bound to or reserved for.
    ClaimRef { kind: String, api_version: String, namespace: String, name: String, uid: String, resource_version: String }
}

part! {
    /// A secret's name and namespace.
    SecretReference { name: String, namespace: String }
}

part! {
    /// A volume made by a CSI driver.
    CsiSource {
        driver: String,
        volume_handle: String,
        read_only: bool,
        fs_type: String,
        volume_attributes: BTreeMap<String, String>,
        controller_publish_secret_ref: Option<SecretReference>,
        node_stage_secret_ref: Option<SecretReference>,
        node_publish_secret_ref: Option<SecretReference>,
        controller_expand_secret_ref: Option<SecretReference>,
        node_expand_secret_ref: Option<SecretReference>,
    }
}

part! {
    /// Where the volume is in its life.
    VolumeStatus { phase: VolumePhase, message: String, reason: String }
}

part! {
    /// A machine that runs pods.
    Node { metadata: Meta, spec: NodeSpec, status: NodeStatus }
}

part! {
    /// What the cluster wants of a node.
    NodeSpec { unschedulable: bool, taints: Vec<Taint> }
}

part! {
    /// A reason to keep pods away.
    Taint { key: String, value: String, effect: String, time_added: Option<Time> }
}

part! {
    /// What the node and the controllers report about it.
    NodeStatus {
        conditions: Vec<Condition>,
        /// What the attach/detach controller says is attached.
        volumes_attached: Option<Vec<AttachedVolume>>,
        /// What the node says it has, or may have, mounted.
        volumes_in_use: Option<Vec<String>>,
        node_info: Option<Box<SystemInfo>>,
        addresses: Vec<NodeAddress>,
        capacity: BTreeMap<String, Quantity>,
        allocatable: BTreeMap<String, Quantity>,
    }
}

part! {
    /// What a machine and its programs are.
    SystemInfo required {
        #[serde(rename = "machineID")]
        machine_id: String,
        #[serde(rename = "systemUUID")]
        system_uuid: String,
        #[serde(rename = "bootID")]
        boot_id: String,
        kernel_version: String,
        os_image: String,
        container_runtime_version: String,
        kubelet_version: String,
        kube_proxy_version: String,
        operating_system: String,
        architecture: String,
    } {}
}

part! {
    /// One way to reach a machine.
    NodeAddress required { r#type: String, address: String } {}
}

part! {
    /// An attached volume as reported in a node's status.
    AttachedVolume required { name: String, device_path: String } {}
}

impl AttachedVolume {
    /// The entry as it is written.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

part! {
    /// A condition of a node or pod.
    Condition {
        r#type: String,
        status: String,
        reason: String,
        message: String,
        last_heartbeat_time: Option<Time>,
        last_transition_time: Option<Time>,
    }
}

part! {
    /// Words about an object, and how often they were said.
    Event { metadata: Meta, count: i64 }
}

part! {
    /// Containers that run together on one node.
    Pod { metadata: Meta, spec: PodSpec, status: PodStatus }
}

part! {
    /// What the pod runs and with which volumes.
    PodSpec {
        node_name: String,
        volumes: Vec<PodVolume>,
        containers: Vec<Container>,
        init_containers: Vec<Container>,
        restart_policy: String,
        service_account_name: String,
        termination_grace_period_seconds: Option<i64>,
        active_deadline_seconds: Option<i64>,
        readiness_gates: Vec<ReadinessGate>,
        hostname: String,
        host_network: bool,
        #[serde(rename = "hostPID")]
        host_pid: bool,
        #[serde(rename = "hostIPC")]
        host_ipc: bool,
        host_users: Option<bool>,
        share_process_namespace: bool,
        security_context: PodSecurityContext,
        node_selector: BTreeMap<String, String>,
        affinity: Option<Affinity>,
        tolerations: Vec<Toleration>,
        scheduler_name: String,
    }
}

sourced! {
    /// A volume of a pod. Exactly one source is set; sources we do not know leave all of them empty.
    PodVolume, as PodVolumeWire "PodVolumeWire" {
        name: String,
        persistent_volume_claim: Option<PodClaim>,
        csi: Option<InlineCsi>,
        ephemeral: Option<Value>,
        empty_dir: Option<EmptyDir>,
        config_map: Option<ConfigMapVolume>,
        secret: Option<SecretVolume>,
        projected: Option<ProjectedVolume>,
        #[serde(rename = "downwardAPI")]
        downward_api: Option<DownwardApiVolume>,
        host_path: Option<HostPath>,
    }
}

part! {
    /// A claim used by a pod.
    PodClaim { claim_name: String, read_only: bool }
}

part! {
    /// A volume that lives and dies with its pod.
    InlineCsi {
        driver: String,
        read_only: Option<bool>,
        fs_type: Option<String>,
        volume_attributes: BTreeMap<String, String>,
        node_publish_secret_ref: Option<LocalReference>,
    }
}

part! {
    /// An object of a known kind in the same namespace.
    LocalReference { name: String }
}

part! {
    /// One process of a pod.
    Container {
        name: String,
        image: String,
        command: Vec<String>,
        args: Vec<String>,
        working_dir: String,
        env: Vec<EnvVar>,
        env_from: Vec<EnvFromSource>,
        volume_mounts: Vec<VolumeMount>,
        volume_devices: Vec<VolumeDevice>,
        resources: Resources,
        security_context: SecurityContext,
        restart_policy: String,
        ports: Vec<ContainerPort>,
        lifecycle: Lifecycle,
        startup_probe: Option<Probe>,
        liveness_probe: Option<Probe>,
        readiness_probe: Option<Probe>,
        termination_message_path: String,
        termination_message_policy: String,
    }
}

part! {
    /// What all containers of a pod may do, unless they say otherwise themselves.
    PodSecurityContext {
        run_as_user: Option<i64>,
        run_as_group: Option<i64>,
        run_as_non_root: Option<bool>,
        supplemental_groups: Vec<i64>,
        fs_group: Option<i64>,
        fs_group_change_policy: Option<String>,
        seccomp_profile: Option<ConfinementProfile>,
        app_armor_profile: Option<ConfinementProfile>,
        se_linux_options: Option<Value>,
        sysctls: Vec<Value>,
    }
}

part! {
    /// What one container may do.
    SecurityContext {
        run_as_user: Option<i64>,
        run_as_group: Option<i64>,
        run_as_non_root: Option<bool>,
        privileged: Option<bool>,
        allow_privilege_escalation: Option<bool>,
        read_only_root_filesystem: Option<bool>,
        capabilities: ContainerCapabilities,
        seccomp_profile: Option<ConfinementProfile>,
        app_armor_profile: Option<ConfinementProfile>,
        se_linux_options: Option<Value>,
        proc_mount: String,
    }
}

part! {
    /// Capabilities of the kernel beside the default ones, and without some of them.
    ContainerCapabilities { add: Vec<String>, drop: Vec<String> }
}

part! {
    /// A seccomp or AppArmor profile: `RuntimeDefault`, `Unconfined` or `Localhost` with the name of one on the node.
    ConfinementProfile { r#type: String, localhost_profile: String }
}

part! {
    /// An environment variable: a text, or where to take one from.
    EnvVar { name: String, value: String, value_from: Option<EnvVarSource> }
}

part! {
    /// Where a container sees a volume.
    VolumeMount {
        name: String,
        mount_path: String,
        read_only: bool,
        sub_path: String,
        sub_path_expr: String,
        mount_propagation: Option<String>,
    }
}

part! {
    /// Where a container sees a raw block volume.
    VolumeDevice { name: String, device_path: String }
}

part! {
    /// How far the pod has come.
    PodStatus {
        phase: PodPhase,
        reason: String,
        message: String,
        conditions: Vec<Condition>,
        init_container_statuses: Vec<ContainerStatus>,
        container_statuses: Vec<ContainerStatus>,
        ephemeral_container_statuses: Vec<ContainerStatus>,
        start_time: Option<Time>,
    }
}

part! {
    /// One container's state.
    ContainerStatus {
        name: String,
        image: String,
        #[serde(rename = "imageID")]
        image_id: String,
        #[serde(rename = "containerID")]
        container_id: String,
        ready: bool,
        started: bool,
        restart_count: i64,
        state: ContainerState,
        last_state: ContainerState,
    }
}

part! {
    /// Waiting, running or terminated.
    ContainerState {
        waiting: Option<ContainerWaiting>,
        running: Option<ContainerRunning>,
        terminated: Option<ContainerTerminated>,
    }
}

part! {
    /// Why a container is not running yet.
    ContainerWaiting { reason: String, message: String }
}

part! {
    /// Since when a container runs.
    ContainerRunning { started_at: Option<Time> }
}

part! {
    /// How a container ended.
    ContainerTerminated {
        exit_code: i64,
        reason: String,
        message: String,
        started_at: Option<Time>,
        finished_at: Option<Time>,
    }
}

impl PersistentVolumeClaim {
    /// The class the claim names: the annotation wins over the field; `None` means none was named.
    pub fn class(&self) -> Option<&str> {
        self.metadata.annotation(crate::names::STORAGE_CLASS_BETA).or(self.spec.storage_class_name.as_deref())
    }

    /// The requested size.
    pub fn requested(&self) -> Option<&Quantity> {
        self.spec.resources.requests.get("storage")
    }

    /// What its volume is to be made from, and the namespace that is in.
    pub fn source(&self) -> Option<(&TypedReference, &str)> {
        let source = self.spec.data_source.as_ref().or(self.spec.data_source_ref.as_ref())?;
        let elsewhere = self.spec.data_source_ref.as_ref().and_then(|reference| reference.namespace.as_deref());
        Some((source, elsewhere.filter(|namespace| !namespace.is_empty()).unwrap_or(&self.metadata.namespace)))
    }

    /// `Filesystem` unless the claim says otherwise.
    pub fn volume_mode(&self) -> &VolumeMode {
        self.spec.volume_mode.as_ref().unwrap_or(&VolumeMode::Filesystem)
    }
}

impl PersistentVolume {
    /// Its claim is gone: it waits to be deleted, or for somebody to look after it.
    pub fn is_released(&self) -> bool {
        matches!(self.status.phase, VolumePhase::Released | VolumePhase::Failed)
    }

    /// The class of the volume; the annotation wins over the field.
    pub fn class(&self) -> &str {
        self.metadata.annotation(crate::names::STORAGE_CLASS_BETA).unwrap_or(&self.spec.storage_class_name)
    }

    /// `Filesystem` unless the volume says otherwise.
    pub fn volume_mode(&self) -> &VolumeMode {
        self.spec.volume_mode()
    }
}

impl VolumeSpec {
    /// `Filesystem` unless the spec says otherwise.
    pub fn volume_mode(&self) -> &VolumeMode {
        self.volume_mode.as_ref().unwrap_or(&VolumeMode::Filesystem)
    }
}

impl ClaimRef {
    /// A reference to a claim as written into a volume.
    pub fn to(claim: &Meta) -> Self {
        ClaimRef {
            kind: "PersistentVolumeClaim".into(),
            api_version: "v1".into(),
            namespace: claim.namespace.clone(),
            name: claim.name.clone(),
            uid: claim.uid.clone(),
            resource_version: String::new(),
        }
    }
}

impl Node {
    /// The node says it is ready.
    pub fn is_ready(&self) -> bool {
        self.status.conditions.iter().any(|c| c.r#type == "Ready" && c.status == "True")
    }

    /// The controller reports this volume (a unique volume name) as attached.
    pub fn reports_attached(&self, volume: &str) -> bool {
        self.status.volumes_attached.iter().flatten().any(|v| v.name == volume)
    }

    /// The node reports this volume (a unique volume name) as in use.
    pub fn reports_in_use(&self, volume: &str) -> bool {
        self.status.volumes_in_use.iter().flatten().any(|v| v == volume)
    }
}

impl Container {
    /// It is an init container that is started again whenever it ends, beside the containers: a sidecar.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy == "Always"
    }
}

impl Pod {
    /// The pod has ended and will not run again.
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Names of the claims the pod uses: those it names, and those that are made for it from templates (PV-61).
    pub fn claim_names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.spec.volumes.iter().filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(claim), _) => Some(Cow::Borrowed(claim.claim_name.as_str())),
            (None, Some(_)) => Some(Cow::Owned(self.ephemeral_claim(&volume.name))),
            (None, None) => None,
        })
    }

    /// It uses the claim of this name only as one that is made from a template, and so only if the claim is its own.
    pub fn templates_claim(&self, claim: &str) -> bool {
        let named = |volume: &PodVolume| volume.persistent_volume_claim.as_ref().is_some_and(|c| c.claim_name == claim);
        let made = |volume: &PodVolume| volume.ephemeral.is_some() && self.ephemeral_claim(&volume.name) == claim;
        !self.spec.volumes.iter().any(named) && self.spec.volumes.iter().any(made)
    }

    /// The name of the claim that is made from the template of one of the pod's volumes (PV-59).
    pub fn ephemeral_claim(&self, volume: &str) -> String {
        format!("{}-{volume}", self.metadata.name)
    }
}
