//! Pods.

use super::Shape::{
    Boolean, Integer, Keyed, Object, Objects, OpaqueList, Quantity, QuantityMap, Text, TextMap, Texts, Time,
};
use super::container::{
    APP_ARMOR_PROFILE, CONTAINER, EPHEMERAL_CONTAINER, RESOURCE_REQUIREMENTS, SE_LINUX_OPTIONS, SECCOMP_PROFILE,
    WINDOWS_SECURITY_CONTEXT_OPTIONS,
};
use super::meta::{LABEL_SELECTOR, LOCAL_OBJECT_REFERENCE, NODE_SELECTOR, NODE_SELECTOR_TERM, OBJECT_META};
use super::pod_volume::VOLUME;
use super::types;
use super::volume::VOLUME_HEALTH_CONDITION;

types! {
    PREFERRED_SCHEDULING_TERM = "PreferredSchedulingTerm" {
        preference: Object(&NODE_SELECTOR_TERM), weight: Integer,
    }
    NODE_AFFINITY = "NodeAffinity" {
        preferredDuringSchedulingIgnoredDuringExecution: Objects(&PREFERRED_SCHEDULING_TERM),
        requiredDuringSchedulingIgnoredDuringExecution: Object(&NODE_SELECTOR),
    }
    POD_AFFINITY_TERM = "PodAffinityTerm" {
        labelSelector: Object(&LABEL_SELECTOR), matchLabelKeys: Texts, mismatchLabelKeys: Texts,
        namespaceSelector: Object(&LABEL_SELECTOR), namespaces: Texts, topologyKey: Text,
    }
    WEIGHTED_POD_AFFINITY_TERM = "WeightedPodAffinityTerm" {
        podAffinityTerm: Object(&POD_AFFINITY_TERM), weight: Integer,
    }
    POD_AFFINITY = "PodAffinity" {
        preferredDuringSchedulingIgnoredDuringExecution: Objects(&WEIGHTED_POD_AFFINITY_TERM),
        requiredDuringSchedulingIgnoredDuringExecution: Objects(&POD_AFFINITY_TERM),
    }
    POD_ANTI_AFFINITY = "PodAntiAffinity" {
        preferredDuringSchedulingIgnoredDuringExecution: Objects(&WEIGHTED_POD_AFFINITY_TERM),
        requiredDuringSchedulingIgnoredDuringExecution: Objects(&POD_AFFINITY_TERM),
    }
    AFFINITY = "Affinity" {
        nodeAffinity: Object(&NODE_AFFINITY), podAffinity: Object(&POD_AFFINITY),
        podAntiAffinity: Object(&POD_ANTI_AFFINITY),
    }
    POD_DNS_CONFIG_OPTION = "PodDNSConfigOption" {
        name: Text, value: Text,
    }
    POD_DNS_CONFIG = "PodDNSConfig" {
        nameservers: Texts, options: Objects(&POD_DNS_CONFIG_OPTION), searches: Texts,
    }
    EVICTION_RESPONDER = "EvictionResponder" {
        name: Text, priority: Integer,
    }
    HOST_ALIAS = "HostAlias" {
        hostnames: Texts, ip: Text,
    }
    POD_OS = "PodOS" {
        name: Text,
    }
    POD_READINESS_GATE = "PodReadinessGate" {
        conditionType: Text,
    }
    POD_RESOURCE_CLAIM = "PodResourceClaim" {
        name: Text, resourceClaimName: Text, resourceClaimTemplateName: Text,
    }
    POD_SCHEDULING_GATE = "PodSchedulingGate" {
        name: Text,
    }
    POD_SCHEDULING_GROUP = "PodSchedulingGroup" {
        podGroupName: Text,
    }
    SYSCTL = "Sysctl" {
        name: Text, value: Text,
    }
    POD_SECURITY_CONTEXT = "PodSecurityContext" {
        appArmorProfile: Object(&APP_ARMOR_PROFILE), fsGroup: Integer, fsGroupChangePolicy: Text,
        runAsGroup: Integer, runAsNonRoot: Boolean, runAsUser: Integer, seLinuxChangePolicy: Text,
        seLinuxOptions: Object(&SE_LINUX_OPTIONS), seccompProfile: Object(&SECCOMP_PROFILE),
        supplementalGroups: OpaqueList, supplementalGroupsPolicy: Text, sysctls: Objects(&SYSCTL),
        windowsOptions: Object(&WINDOWS_SECURITY_CONTEXT_OPTIONS),
    }
    TOLERATION = "Toleration" {
        effect: Text, key: Text, operator: Text, tolerationSeconds: Integer, value: Text,
    }
    TOPOLOGY_SPREAD_CONSTRAINT = "TopologySpreadConstraint" {
        labelSelector: Object(&LABEL_SELECTOR), matchLabelKeys: Texts, maxSkew: Integer, minDomains: Integer,
        nodeAffinityPolicy: Text, nodeTaintsPolicy: Text, topologyKey: Text, whenUnsatisfiable: Text,
    }
    POD_SPEC = "PodSpec" {
        activeDeadlineSeconds: Integer, affinity: Object(&AFFINITY), automountServiceAccountToken: Boolean,
        containers: Keyed(&CONTAINER, "name"), dnsConfig: Object(&POD_DNS_CONFIG), dnsPolicy: Text,
        enableServiceLinks: Boolean, ephemeralContainers: Keyed(&EPHEMERAL_CONTAINER, "name"),
        evictionResponders: Objects(&EVICTION_RESPONDER), hostAliases: Keyed(&HOST_ALIAS, "ip"),
        hostIPC: Boolean, hostNetwork: Boolean, hostPID: Boolean, hostUsers: Boolean, hostname: Text,
        hostnameOverride: Text, imagePullSecrets: Keyed(&LOCAL_OBJECT_REFERENCE, "name"),
        initContainers: Keyed(&CONTAINER, "name"), nodeName: Text, nodeSelector: TextMap, os: Object(&POD_OS),
        overhead: QuantityMap, preemptionPolicy: Text, priority: Integer, priorityClassName: Text,
        readinessGates: Objects(&POD_READINESS_GATE), resourceClaims: Keyed(&POD_RESOURCE_CLAIM, "name"),
        resources: Object(&RESOURCE_REQUIREMENTS), restartPolicy: Text, runtimeClassName: Text,
        schedulerName: Text, schedulingGates: Keyed(&POD_SCHEDULING_GATE, "name"),
        schedulingGroup: Object(&POD_SCHEDULING_GROUP), securityContext: Object(&POD_SECURITY_CONTEXT),
        serviceAccount: Text, serviceAccountName: Text, setHostnameAsFQDN: Boolean,
        shareProcessNamespace: Boolean, subdomain: Text, terminationGracePeriodSeconds: Integer,
        tolerations: Objects(&TOLERATION),
        topologySpreadConstraints: Keyed(&TOPOLOGY_SPREAD_CONSTRAINT, "topologyKey"),
        volumes: Keyed(&VOLUME, "name"),
    }
    POD_CONDITION = "PodCondition" {
        lastProbeTime: Time, lastTransitionTime: Time, message: Text, observedGeneration: Integer, reason: Text,
        status: Text, type: Text,
    }
    RESOURCE_HEALTH = "ResourceHealth" {
        health: Text, message: Text, resourceID: Text,
    }
    RESOURCE_STATUS = "ResourceStatus" {
        name: Text, resources: Objects(&RESOURCE_HEALTH),
    }
    CONTAINER_STATE_RUNNING = "ContainerStateRunning" {
        startedAt: Time,
    }
    CONTAINER_STATE_TERMINATED = "ContainerStateTerminated" {
        containerID: Text, exitCode: Integer, finishedAt: Time, message: Text, reason: Text, signal: Integer,
        startedAt: Time,
    }
    CONTAINER_STATE_WAITING = "ContainerStateWaiting" {
        message: Text, reason: Text,
    }
    CONTAINER_STATE = "ContainerState" {
        running: Object(&CONTAINER_STATE_RUNNING), terminated: Object(&CONTAINER_STATE_TERMINATED),
        waiting: Object(&CONTAINER_STATE_WAITING),
    }
    LINUX_CONTAINER_USER = "LinuxContainerUser" {
        gid: Integer, supplementalGroups: OpaqueList, uid: Integer,
    }
    CONTAINER_USER = "ContainerUser" {
        linux: Object(&LINUX_CONTAINER_USER),
    }
    IMAGE_VOLUME_STATUS = "ImageVolumeStatus" {
        imageRef: Text,
    }
    VOLUME_STATUS = "VolumeStatus" {
        image: Object(&IMAGE_VOLUME_STATUS),
    }
    VOLUME_MOUNT_STATUS = "VolumeMountStatus" {
        mountPath: Text, name: Text, readOnly: Boolean, recursiveReadOnly: Text,
        volumeStatus: Object(&VOLUME_STATUS),
    }
    CONTAINER_STATUS = "ContainerStatus" {
        allocatedResources: QuantityMap, allocatedResourcesStatus: Objects(&RESOURCE_STATUS), containerID: Text,
        image: Text, imageID: Text, lastState: Object(&CONTAINER_STATE), name: Text, ready: Boolean,
        resources: Object(&RESOURCE_REQUIREMENTS), restartCount: Integer, started: Boolean,
        state: Object(&CONTAINER_STATE), stopSignal: Text, user: Object(&CONTAINER_USER),
        volumeMounts: Objects(&VOLUME_MOUNT_STATUS),
    }
    CONTAINER_EXTENDED_RESOURCE_REQUEST = "ContainerExtendedResourceRequest" {
        containerName: Text, requestName: Text, resourceName: Text,
    }
    POD_EXTENDED_RESOURCE_CLAIM_STATUS = "PodExtendedResourceClaimStatus" {
        requestMappings: Objects(&CONTAINER_EXTENDED_RESOURCE_REQUEST), resourceClaimName: Text,
    }
    HOST_IP = "HostIP" {
        ip: Text,
    }
    NODE_ALLOCATABLE_MAPPED_RESOURCES = "NodeAllocatableMappedResources" {
        name: Text, quantity: Quantity,
    }
    NODE_ALLOCATABLE_OVERHEAD_RESOURCES = "NodeAllocatableOverheadResources" {
        name: Text, perContainer: Quantity, perPod: Quantity,
    }
    NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS = "NodeAllocatableResourceClaimStatus" {
        containers: Texts, mapping: Objects(&NODE_ALLOCATABLE_MAPPED_RESOURCES),
        overhead: Objects(&NODE_ALLOCATABLE_OVERHEAD_RESOURCES), resourceClaimName: Text,
    }
    POD_IP = "PodIP" {
        ip: Text,
    }
    POD_RESOURCE_CLAIM_STATUS = "PodResourceClaimStatus" {
        name: Text, resourceClaimName: Text,
    }
    POD_VOLUME_HEALTH = "PodVolumeHealth" {
        healthConditions: Objects(&VOLUME_HEALTH_CONDITION), lastTransitionTime: Time, name: Text,
    }
    POD_STATUS = "PodStatus" {
        allocatedResources: QuantityMap, conditions: Keyed(&POD_CONDITION, "type"),
        containerStatuses: Objects(&CONTAINER_STATUS), ephemeralContainerStatuses: Objects(&CONTAINER_STATUS),
        extendedResourceClaimStatus: Object(&POD_EXTENDED_RESOURCE_CLAIM_STATUS), hostIP: Text,
        hostIPs: Keyed(&HOST_IP, "ip"), initContainerStatuses: Objects(&CONTAINER_STATUS), message: Text,
        nodeAllocatableResourceClaimStatuses: Objects(&NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS),
        nominatedNodeName: Text, observedGeneration: Integer, phase: Text, podIP: Text,
        podIPs: Keyed(&POD_IP, "ip"), qosClass: Text, reason: Text, resize: Text,
        resourceClaimStatuses: Keyed(&POD_RESOURCE_CLAIM_STATUS, "name"),
        resources: Object(&RESOURCE_REQUIREMENTS), startTime: Time, volumeHealth: Objects(&POD_VOLUME_HEALTH),
    }
    POD = "Pod" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META), spec: Object(&POD_SPEC),
        status: Object(&POD_STATUS),
    }
}
