//! Namespaces, nodes, the small namespaced kinds, events and leases.

use super::Shape::{
    Boolean, BytesMap, Integer, Keyed, Object, Objects, QuantityMap, Text, TextMap, TextSet, Texts, Time,
};
use super::meta::{LOCAL_OBJECT_REFERENCE, OBJECT_META, OBJECT_REFERENCE};
use super::types;

types! {
    NAMESPACE_SPEC = "NamespaceSpec" {
        finalizers: Texts,
    }
    NAMESPACE_CONDITION = "NamespaceCondition" {
        lastTransitionTime: Time, message: Text, reason: Text, status: Text, type: Text,
    }
    NAMESPACE_STATUS = "NamespaceStatus" {
        conditions: Keyed(&NAMESPACE_CONDITION, "type"), phase: Text,
    }
    NAMESPACE = "Namespace" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META), spec: Object(&NAMESPACE_SPEC),
        status: Object(&NAMESPACE_STATUS),
    }
    CONFIG_MAP_NODE_CONFIG_SOURCE = "ConfigMapNodeConfigSource" {
        kubeletConfigKey: Text, name: Text, namespace: Text, resourceVersion: Text, uid: Text,
    }
    NODE_CONFIG_SOURCE = "NodeConfigSource" {
        configMap: Object(&CONFIG_MAP_NODE_CONFIG_SOURCE),
    }
    NODE_POD_PREEMPTION_POLICY = "NodePodPreemptionPolicy" {
        disableResizePreemption: Texts,
    }
    TAINT = "Taint" {
        effect: Text, key: Text, timeAdded: Time, value: Text,
    }
    NODE_SPEC = "NodeSpec" {
        configSource: Object(&NODE_CONFIG_SOURCE), externalID: Text, podCIDR: Text, podCIDRs: TextSet,
        podPreemptionPolicy: Object(&NODE_POD_PREEMPTION_POLICY), providerID: Text, taints: Objects(&TAINT),
        unschedulable: Boolean,
    }
    NODE_ADDRESS = "NodeAddress" {
        address: Text, type: Text,
    }
    NODE_CONDITION = "NodeCondition" {
        lastHeartbeatTime: Time, lastTransitionTime: Time, message: Text, reason: Text, status: Text,
        type: Text,
    }
    NODE_CONFIG_STATUS = "NodeConfigStatus" {
        active: Object(&NODE_CONFIG_SOURCE), assigned: Object(&NODE_CONFIG_SOURCE), error: Text,
        lastKnownGood: Object(&NODE_CONFIG_SOURCE),
    }
    DAEMON_ENDPOINT = "DaemonEndpoint" {
        Port: Integer,
    }
    NODE_DAEMON_ENDPOINTS = "NodeDaemonEndpoints" {
        kubeletEndpoint: Object(&DAEMON_ENDPOINT),
    }
    NODE_FEATURES = "NodeFeatures" {
        supplementalGroupsPolicy: Boolean,
    }
    CONTAINER_IMAGE = "ContainerImage" {
        names: Texts, sizeBytes: Integer,
    }
    NODE_SWAP_STATUS = "NodeSwapStatus" {
        capacity: Integer,
    }
    NODE_SYSTEM_INFO = "NodeSystemInfo" {
        architecture: Text, bootID: Text, containerRuntimeVersion: Text, kernelVersion: Text,
        kubeProxyVersion: Text, kubeletVersion: Text, machineID: Text, operatingSystem: Text, osImage: Text,
        runningInUserNamespace: Boolean, swap: Object(&NODE_SWAP_STATUS), systemUUID: Text,
    }
    NODE_RUNTIME_HANDLER_FEATURES = "NodeRuntimeHandlerFeatures" {
        recursiveReadOnlyMounts: Boolean, userNamespaces: Boolean,
    }
    NODE_RUNTIME_HANDLER = "NodeRuntimeHandler" {
        features: Object(&NODE_RUNTIME_HANDLER_FEATURES), name: Text,
    }
    ATTACHED_VOLUME = "AttachedVolume" {
        devicePath: Text, name: Text,
    }
    NODE_STATUS = "NodeStatus" {
        addresses: Keyed(&NODE_ADDRESS, "type"), allocatable: QuantityMap, capacity: QuantityMap,
        conditions: Keyed(&NODE_CONDITION, "type"), config: Object(&NODE_CONFIG_STATUS),
        daemonEndpoints: Object(&NODE_DAEMON_ENDPOINTS), declaredFeatures: Texts,
        features: Object(&NODE_FEATURES), images: Objects(&CONTAINER_IMAGE),
        nodeInfo: Object(&NODE_SYSTEM_INFO), phase: Text, runtimeHandlers: Objects(&NODE_RUNTIME_HANDLER),
        volumesAttached: Objects(&ATTACHED_VOLUME), volumesInUse: Texts,
    }
    NODE = "Node" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META), spec: Object(&NODE_SPEC),
        status: Object(&NODE_STATUS),
    }
    SECRET = "Secret" {
        apiVersion: Text, kind: Text, data: BytesMap, immutable: Boolean, metadata: Object(&OBJECT_META),
        stringData: TextMap, type: Text,
    }
    CONFIG_MAP = "ConfigMap" {
        apiVersion: Text, kind: Text, binaryData: BytesMap, data: TextMap, immutable: Boolean,
        metadata: Object(&OBJECT_META),
    }
    SERVICE_ACCOUNT = "ServiceAccount" {
        apiVersion: Text, kind: Text, automountServiceAccountToken: Boolean,
        imagePullSecrets: Objects(&LOCAL_OBJECT_REFERENCE), metadata: Object(&OBJECT_META),
        secrets: Keyed(&OBJECT_REFERENCE, "name"),
    }
    EVENT_SERIES = "EventSeries" {
        count: Integer, lastObservedTime: Time,
    }
    EVENT_SOURCE = "EventSource" {
        component: Text, host: Text,
    }
    EVENT = "Event" {
        apiVersion: Text, kind: Text, action: Text, count: Integer, eventTime: Time, firstTimestamp: Time,
        involvedObject: Object(&OBJECT_REFERENCE), lastTimestamp: Time, message: Text,
        metadata: Object(&OBJECT_META), reason: Text, related: Object(&OBJECT_REFERENCE),
        reportingComponent: Text, reportingInstance: Text, series: Object(&EVENT_SERIES),
        source: Object(&EVENT_SOURCE), type: Text,
    }
    LEASE_SPEC = "LeaseSpec" {
        acquireTime: Time, holderIdentity: Text, leaseDurationSeconds: Integer, leaseTransitions: Integer,
        preferredHolder: Text, renewTime: Time, strategy: Text,
    }
    LEASE = "Lease" {
        apiVersion: Text, kind: Text, metadata: Object(&OBJECT_META), spec: Object(&LEASE_SPEC),
    }
}
