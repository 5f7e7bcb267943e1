//! Nodes.

use super::meta::OBJECT_META;
use crate::Type::{Bool, Int32, Int64, Keyed, Message, Messages, QuantityMap, String, StringSet, Strings, Time};
use crate::messages;

messages! {
    in "k8s.io.api.core.v1";

    TAINT = "Taint" { 1 key! String, 2 value: String, 3 effect! String, 4 timeAdded? Time }
    CONFIG_MAP_NODE_CONFIG_SOURCE = "ConfigMapNodeConfigSource" {
        1 namespace! String, 2 name! String, 3 uid: String, 4 resourceVersion: String, 5 kubeletConfigKey! String,
    }
    NODE_CONFIG_SOURCE = "NodeConfigSource" { 2 configMap? Message(&CONFIG_MAP_NODE_CONFIG_SOURCE) }
    NODE_POD_PREEMPTION_POLICY = "NodePodPreemptionPolicy" { 1 disableResizePreemption: Strings }
    NODE_SPEC = "NodeSpec" {
        1 podCIDR: String, 2 externalID: String, 3 providerID: String, 4 unschedulable: Bool,
        5 taints: Messages(&TAINT), 6 configSource? Message(&NODE_CONFIG_SOURCE), 7 podCIDRs: StringSet,
        8 podPreemptionPolicy? Message(&NODE_POD_PREEMPTION_POLICY),
    }
    NODE_CONDITION = "NodeCondition" {
        1 type! String, 2 status! String, 3 lastHeartbeatTime: Time, 4 lastTransitionTime: Time, 5 reason: String,
        6 message: String,
    }
    NODE_ADDRESS = "NodeAddress" { 1 type! String, 2 address! String }
    DAEMON_ENDPOINT = "DaemonEndpoint" { 1 Port! Int32 }
    NODE_DAEMON_ENDPOINTS = "NodeDaemonEndpoints" { 1 kubeletEndpoint: Message(&DAEMON_ENDPOINT) }
    NODE_SWAP_STATUS = "NodeSwapStatus" { 1 capacity? Int64 }
    NODE_SYSTEM_INFO = "NodeSystemInfo" {
        1 machineID! String, 2 systemUUID! String, 3 bootID! String, 4 kernelVersion! String, 5 osImage! String,
        6 containerRuntimeVersion! String, 7 kubeletVersion! String, 8 kubeProxyVersion! String,
        9 operatingSystem! String, 10 architecture! String, 11 swap? Message(&NODE_SWAP_STATUS),
        12 runningInUserNamespace? Bool,
    }
    CONTAINER_IMAGE = "ContainerImage" { 1 names: Strings, 2 sizeBytes: Int64 }
    ATTACHED_VOLUME = "AttachedVolume" { 1 name! String, 2 devicePath! String }
    NODE_CONFIG_STATUS = "NodeConfigStatus" {
        1 assigned? Message(&NODE_CONFIG_SOURCE), 2 active? Message(&NODE_CONFIG_SOURCE),
        3 lastKnownGood? Message(&NODE_CONFIG_SOURCE), 4 error: String,
    }
    NODE_RUNTIME_HANDLER_FEATURES = "NodeRuntimeHandlerFeatures" {
        1 recursiveReadOnlyMounts? Bool, 2 userNamespaces? Bool,
    }
    NODE_RUNTIME_HANDLER = "NodeRuntimeHandler" { 1 name! String, 2 features? Message(&NODE_RUNTIME_HANDLER_FEATURES) }
    NODE_FEATURES = "NodeFeatures" { 1 supplementalGroupsPolicy? Bool }
    NODE_STATUS = "NodeStatus" {
        1 capacity: QuantityMap, 2 allocatable: QuantityMap, 3 phase: String,
        4 conditions: Keyed(&NODE_CONDITION, "type"), 5 addresses: Keyed(&NODE_ADDRESS, "type"),
        6 daemonEndpoints: Message(&NODE_DAEMON_ENDPOINTS), 7 nodeInfo: Message(&NODE_SYSTEM_INFO),
        8 images: Messages(&CONTAINER_IMAGE), 9 volumesInUse: Strings, 10 volumesAttached: Messages(&ATTACHED_VOLUME),
        11 config? Message(&NODE_CONFIG_STATUS), 12 runtimeHandlers: Messages(&NODE_RUNTIME_HANDLER),
        13 features? Message(&NODE_FEATURES), 14 declaredFeatures: Strings,
    }
    NODE = "Node" { 1 metadata: Message(&OBJECT_META), 2 spec: Message(&NODE_SPEC), 3 status: Message(&NODE_STATUS) }
}
