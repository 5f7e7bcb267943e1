//! Pods.

use super::container::{
    APP_ARMOR_PROFILE, CONTAINER, EPHEMERAL_CONTAINER, RESOURCE_REQUIREMENTS, SE_LINUX_OPTIONS, SECCOMP_PROFILE,
    WINDOWS_SECURITY_CONTEXT_OPTIONS,
};
use super::meta::{LABEL_SELECTOR, OBJECT_META};
use super::pod_volume::{LOCAL_OBJECT_REFERENCE, VOLUME};
use super::volume::{NODE_SELECTOR, NODE_SELECTOR_TERM, OBJECT_REFERENCE, VOLUME_HEALTH_CONDITION};
use crate::Type::{
    Bool, Int32, Int64, Int64s, Keyed, Message, Messages, Quantity, QuantityMap, String, StringMap, Strings, Time,
};
use crate::messages;

messages! {
    in "k8s.io.api.core.v1";

    SYSCTL = "Sysctl" { 1 name! String, 2 value! String }
    POD_SECURITY_CONTEXT = "PodSecurityContext" {
        1 seLinuxOptions? Message(&SE_LINUX_OPTIONS), 2 runAsUser? Int64, 3 runAsNonRoot? Bool,
        4 supplementalGroups: Int64s, 5 fsGroup? Int64, 6 runAsGroup? Int64, 7 sysctls: Messages(&SYSCTL),
        8 windowsOptions? Message(&WINDOWS_SECURITY_CONTEXT_OPTIONS), 9 fsGroupChangePolicy? String,
        10 seccompProfile? Message(&SECCOMP_PROFILE), 11 appArmorProfile? Message(&APP_ARMOR_PROFILE),
        12 supplementalGroupsPolicy? String, 13 seLinuxChangePolicy? String,
    }
    PREFERRED_SCHEDULING_TERM = "PreferredSchedulingTerm" {
        1 weight! Int32, 2 preference: Message(&NODE_SELECTOR_TERM),
    }
    NODE_AFFINITY = "NodeAffinity" {
        1 requiredDuringSchedulingIgnoredDuringExecution? Message(&NODE_SELECTOR),
        2 preferredDuringSchedulingIgnoredDuringExecution: Messages(&PREFERRED_SCHEDULING_TERM),
    }
    POD_AFFINITY_TERM = "PodAffinityTerm" {
        1 labelSelector? Message(&LABEL_SELECTOR), 2 namespaces: Strings, 3 topologyKey! String,
        4 namespaceSelector? Message(&LABEL_SELECTOR), 5 matchLabelKeys: Strings, 6 mismatchLabelKeys: Strings,
    }
    WEIGHTED_POD_AFFINITY_TERM = "WeightedPodAffinityTerm" {
        1 weight! Int32, 2 podAffinityTerm: Message(&POD_AFFINITY_TERM),
    }
    POD_AFFINITY = "PodAffinity" {
        1 requiredDuringSchedulingIgnoredDuringExecution: Messages(&POD_AFFINITY_TERM),
        2 preferredDuringSchedulingIgnoredDuringExecution: Messages(&WEIGHTED_POD_AFFINITY_TERM),
    }
    POD_ANTI_AFFINITY = "PodAntiAffinity" {
        1 requiredDuringSchedulingIgnoredDuringExecution: Messages(&POD_AFFINITY_TERM),
        2 preferredDuringSchedulingIgnoredDuringExecution: Messages(&WEIGHTED_POD_AFFINITY_TERM),
    }
    AFFINITY = "Affinity" {
        1 nodeAffinity? Message(&NODE_AFFINITY), 2 podAffinity? Message(&POD_AFFINITY),
        3 podAntiAffinity? Message(&POD_ANTI_AFFINITY),
    }
    TOLERATION = "Toleration" {
        1 key: String, 2 operator: String, 3 value: String, 4 effect: String, 5 tolerationSeconds? Int64,
    }
    HOST_ALIAS = "HostAlias" { 1 ip! String, 2 hostnames: Strings }
    POD_DNS_CONFIG_OPTION = "PodDNSConfigOption" { 1 name: String, 2 value? String }
    POD_DNS_CONFIG = "PodDNSConfig" {
        1 nameservers: Strings, 2 searches: Strings, 3 options: Messages(&POD_DNS_CONFIG_OPTION),
    }
    POD_READINESS_GATE = "PodReadinessGate" { 1 conditionType! String }
    TOPOLOGY_SPREAD_CONSTRAINT = "TopologySpreadConstraint" {
        1 maxSkew! Int32, 2 topologyKey! String, 3 whenUnsatisfiable! String, 4 labelSelector? Message(&LABEL_SELECTOR),
        5 minDomains? Int32, 6 nodeAffinityPolicy? String, 7 nodeTaintsPolicy? String, 8 matchLabelKeys: Strings,
    }
    POD_OS = "PodOS" { 1 name! String }
    POD_SCHEDULING_GATE = "PodSchedulingGate" { 1 name! String }
    POD_RESOURCE_CLAIM = "PodResourceClaim" {
        1 name! String, 3 resourceClaimName? String, 4 resourceClaimTemplateName? String,
    }
    POD_SCHEDULING_GROUP = "PodSchedulingGroup" { 1 podGroupName? String }
    EVICTION_RESPONDER = "EvictionResponder" { 1 name! String, 2 priority? Int32 }
    POD_SPEC = "PodSpec" {
        1 volumes: Keyed(&VOLUME, "name"), 2 containers: Keyed(&CONTAINER, "name"), 3 restartPolicy: String,
        4 terminationGracePeriodSeconds? Int64, 5 activeDeadlineSeconds? Int64, 6 dnsPolicy: String,
        7 nodeSelector: StringMap, 8 serviceAccountName: String, 9 serviceAccount: String, 10 nodeName: String,
        11 hostNetwork: Bool, 12 hostPID: Bool, 13 hostIPC: Bool, 14 securityContext? Message(&POD_SECURITY_CONTEXT),
        15 imagePullSecrets: Keyed(&LOCAL_OBJECT_REFERENCE, "name"), 16 hostname: String, 17 subdomain: String,
        18 affinity? Message(&AFFINITY), 19 schedulerName: String, 20 initContainers: Keyed(&CONTAINER, "name"),
        21 automountServiceAccountToken? Bool, 22 tolerations: Messages(&TOLERATION),
        23 hostAliases: Keyed(&HOST_ALIAS, "ip"), 24 priorityClassName: String, 25 priority? Int32,
        26 dnsConfig? Message(&POD_DNS_CONFIG), 27 shareProcessNamespace? Bool,
        28 readinessGates: Messages(&POD_READINESS_GATE), 29 runtimeClassName? String, 30 enableServiceLinks? Bool,
        31 preemptionPolicy? String, 32 overhead: QuantityMap,
        33 topologySpreadConstraints: Keyed(&TOPOLOGY_SPREAD_CONSTRAINT, "topologyKey"),
        34 ephemeralContainers: Keyed(&EPHEMERAL_CONTAINER, "name"), 35 setHostnameAsFQDN? Bool,
        36 os? Message(&POD_OS), 37 hostUsers? Bool, 38 schedulingGates: Keyed(&POD_SCHEDULING_GATE, "name"),
        39 resourceClaims: Keyed(&POD_RESOURCE_CLAIM, "name"), 40 resources? Message(&RESOURCE_REQUIREMENTS),
        41 hostnameOverride? String, 43 schedulingGroup? Message(&POD_SCHEDULING_GROUP),
        44 evictionResponders: Keyed(&EVICTION_RESPONDER, "name"),
    }
    POD_CONDITION = "PodCondition" {
        1 type! String, 2 status! String, 3 lastProbeTime: Time, 4 lastTransitionTime: Time, 5 reason: String,
        6 message: String, 7 observedGeneration: Int64,
    }
    HOST_IP = "HostIP" { 1 ip! String }
    POD_IP = "PodIP" { 1 ip! String }
    CONTAINER_STATE_WAITING = "ContainerStateWaiting" { 1 reason: String, 2 message: String }
    CONTAINER_STATE_RUNNING = "ContainerStateRunning" { 1 startedAt: Time }
    CONTAINER_STATE_TERMINATED = "ContainerStateTerminated" {
        1 exitCode! Int32, 2 signal: Int32, 3 reason: String, 4 message: String, 5 startedAt: Time, 6 finishedAt: Time,
        7 containerID: String,
    }
    CONTAINER_STATE = "ContainerState" {
        1 waiting? Message(&CONTAINER_STATE_WAITING), 2 running? Message(&CONTAINER_STATE_RUNNING),
        3 terminated? Message(&CONTAINER_STATE_TERMINATED),
    }
    IMAGE_VOLUME_STATUS = "ImageVolumeStatus" { 1 imageRef: String }
    VOLUME_STATUS = "VolumeStatus" { 1 image? Message(&IMAGE_VOLUME_STATUS) }
    VOLUME_MOUNT_STATUS = "VolumeMountStatus" {
        1 name! String, 2 mountPath! String, 3 readOnly: Bool, 4 recursiveReadOnly? String,
        5 volumeStatus? Message(&VOLUME_STATUS),
    }
    LINUX_CONTAINER_USER = "LinuxContainerUser" { 1 uid! Int64, 2 gid! Int64, 3 supplementalGroups: Int64s }
    CONTAINER_USER = "ContainerUser" { 1 linux? Message(&LINUX_CONTAINER_USER) }
    RESOURCE_HEALTH = "ResourceHealth" { 1 resourceID! String, 2 health: String, 6 message? String }
    RESOURCE_STATUS = "ResourceStatus" { 1 name! String, 2 resources: Messages(&RESOURCE_HEALTH) }
    CONTAINER_STATUS = "ContainerStatus" {
        1 name! String, 2 state: Message(&CONTAINER_STATE), 3 lastState: Message(&CONTAINER_STATE), 4 ready! Bool,
        5 restartCount! Int32, 6 image! String, 7 imageID! String, 8 containerID: String, 9 started? Bool,
        10 allocatedResources: QuantityMap, 11 resources? Message(&RESOURCE_REQUIREMENTS),
        12 volumeMounts: Keyed(&VOLUME_MOUNT_STATUS, "mountPath"), 13 user? Message(&CONTAINER_USER),
        14 allocatedResourcesStatus: Keyed(&RESOURCE_STATUS, "name"), 15 stopSignal? String,
    }
    POD_RESOURCE_CLAIM_STATUS = "PodResourceClaimStatus" { 1 name! String, 2 resourceClaimName? String }
    CONTAINER_EXTENDED_RESOURCE_REQUEST = "ContainerExtendedResourceRequest" {
        1 containerName! String, 2 resourceName! String, 3 requestName! String,
    }
    POD_EXTENDED_RESOURCE_CLAIM_STATUS = "PodExtendedResourceClaimStatus" {
        1 requestMappings: Messages(&CONTAINER_EXTENDED_RESOURCE_REQUEST), 2 resourceClaimName! String,
    }
    NODE_ALLOCATABLE_MAPPED_RESOURCES = "NodeAllocatableMappedResources" { 1 name! String, 2 quantity? Quantity }
    NODE_ALLOCATABLE_OVERHEAD_RESOURCES = "NodeAllocatableOverheadResources" {
        1 name! String, 2 perPod? Quantity, 3 perContainer? Quantity,
    }
    NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS = "NodeAllocatableResourceClaimStatus" {
        1 resourceClaimName! String, 2 containers: Strings,
        4 mapping: Keyed(&NODE_ALLOCATABLE_MAPPED_RESOURCES, "name"),
        5 overhead: Keyed(&NODE_ALLOCATABLE_OVERHEAD_RESOURCES, "name"),
    }
    POD_VOLUME_HEALTH = "PodVolumeHealth" {
        1 name! String, 2 healthConditions: Keyed(&VOLUME_HEALTH_CONDITION, "status"), 3 lastTransitionTime: Time,
    }
    POD_STATUS = "PodStatus" {
        1 phase: String, 2 conditions: Keyed(&POD_CONDITION, "type"), 3 message: String, 4 reason: String,
        5 hostIP: String, 6 podIP: String, 7 startTime? Time, 8 containerStatuses: Messages(&CONTAINER_STATUS),
        9 qosClass: String, 10 initContainerStatuses: Messages(&CONTAINER_STATUS), 11 nominatedNodeName: String,
        12 podIPs: Keyed(&POD_IP, "ip"), 13 ephemeralContainerStatuses: Messages(&CONTAINER_STATUS), 14 resize: String,
        15 resourceClaimStatuses: Keyed(&POD_RESOURCE_CLAIM_STATUS, "name"), 16 hostIPs: Keyed(&HOST_IP, "ip"),
        17 observedGeneration: Int64, 18 extendedResourceClaimStatus? Message(&POD_EXTENDED_RESOURCE_CLAIM_STATUS),
        19 allocatedResources: QuantityMap, 20 resources? Message(&RESOURCE_REQUIREMENTS),
        21 nodeAllocatableResourceClaimStatuses: Keyed(&NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS, "resourceClaimName"),
        22 volumeHealth: Messages(&POD_VOLUME_HEALTH),
    }
    POD = "Pod" { 1 metadata: Message(&OBJECT_META), 2 spec: Message(&POD_SPEC), 3 status: Message(&POD_STATUS) }
    BINDING = "Binding" { 1 metadata: Message(&OBJECT_META), 2 target: Message(&OBJECT_REFERENCE) }
}
