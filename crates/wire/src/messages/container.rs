//! The containers of a pod.

use super::pod_volume::{LOCAL_OBJECT_REFERENCE, OBJECT_FIELD_SELECTOR, RESOURCE_FIELD_SELECTOR};
use crate::Type::{
    Bool, Inline, Int32, Int32s, Int64, IntOrString, Keyed, Message, Messages, QuantityMap, String, Strings,
};
use crate::messages;

messages! {
    in "k8s.io.api.core.v1";

    CONTAINER_PORT = "ContainerPort" {
        1 name: String, 2 hostPort: Int32, 3 containerPort! Int32, 4 protocol: String, 5 hostIP: String,
    }
    CONFIG_MAP_ENV_SOURCE = "ConfigMapEnvSource" {
        1 localObjectReference: Inline(&LOCAL_OBJECT_REFERENCE), 2 optional? Bool,
    }
    SECRET_ENV_SOURCE = "SecretEnvSource" { 1 localObjectReference: Inline(&LOCAL_OBJECT_REFERENCE), 2 optional? Bool }
    ENV_FROM_SOURCE = "EnvFromSource" {
        1 prefix: String, 2 configMapRef? Message(&CONFIG_MAP_ENV_SOURCE), 3 secretRef? Message(&SECRET_ENV_SOURCE),
    }
    CONFIG_MAP_KEY_SELECTOR = "ConfigMapKeySelector" {
        1 localObjectReference: Inline(&LOCAL_OBJECT_REFERENCE), 2 key! String, 3 optional? Bool,
    }
    SECRET_KEY_SELECTOR = "SecretKeySelector" {
        1 localObjectReference: Inline(&LOCAL_OBJECT_REFERENCE), 2 key! String, 3 optional? Bool,
    }
    FILE_KEY_SELECTOR = "FileKeySelector" { 1 volumeName! String, 2 path! String, 3 key! String, 4 optional? Bool }
    ENV_VAR_SOURCE = "EnvVarSource" {
        1 fieldRef? Message(&OBJECT_FIELD_SELECTOR), 2 resourceFieldRef? Message(&RESOURCE_FIELD_SELECTOR),
        3 configMapKeyRef? Message(&CONFIG_MAP_KEY_SELECTOR), 4 secretKeyRef? Message(&SECRET_KEY_SELECTOR),
        5 fileKeyRef? Message(&FILE_KEY_SELECTOR),
    }
    ENV_VAR = "EnvVar" { 1 name! String, 2 value: String, 3 valueFrom? Message(&ENV_VAR_SOURCE) }
    RESOURCE_CLAIM = "ResourceClaim" { 1 name! String, 2 request: String }
    RESOURCE_REQUIREMENTS = "ResourceRequirements" {
        1 limits: QuantityMap, 2 requests: QuantityMap, 3 claims: Messages(&RESOURCE_CLAIM),
    }
    CONTAINER_RESIZE_POLICY = "ContainerResizePolicy" { 1 resourceName! String, 2 restartPolicy! String }
    CONTAINER_RESTART_RULE_ON_EXIT_CODES = "ContainerRestartRuleOnExitCodes" { 1 operator: String, 2 values: Int32s }
    CONTAINER_RESTART_RULE = "ContainerRestartRule" {
        1 action: String, 2 exitCodes? Message(&CONTAINER_RESTART_RULE_ON_EXIT_CODES),
    }
    VOLUME_MOUNT = "VolumeMount" {
        1 name! String, 2 readOnly: Bool, 3 mountPath! String, 4 subPath: String, 5 mountPropagation? String,
        6 subPathExpr: String, 7 recursiveReadOnly? String, 8 bindMountOptions: Strings,
    }
    VOLUME_DEVICE = "VolumeDevice" { 1 name! String, 2 devicePath! String }
    EXEC_ACTION = "ExecAction" { 1 command: Strings }
    HTTP_HEADER = "HTTPHeader" { 1 name! String, 2 value! String }
    HTTP_GET_ACTION = "HTTPGetAction" {
        1 path: String, 2 port: IntOrString, 3 host: String, 4 scheme: String, 5 httpHeaders: Messages(&HTTP_HEADER),
        6 protocol? String,
    }
    TCP_SOCKET_ACTION = "TCPSocketAction" { 1 port: IntOrString, 2 host: String }
    GRPC_ACTION = "GRPCAction" { 1 port! Int32, 2 service? String, 3 mode? String }
    PROBE_HANDLER = "ProbeHandler" {
        1 exec? Message(&EXEC_ACTION), 2 httpGet? Message(&HTTP_GET_ACTION), 3 tcpSocket? Message(&TCP_SOCKET_ACTION),
        4 grpc? Message(&GRPC_ACTION),
    }
    PROBE = "Probe" {
        1 handler: Inline(&PROBE_HANDLER), 2 initialDelaySeconds: Int32, 3 timeoutSeconds: Int32,
        4 periodSeconds: Int32, 5 successThreshold: Int32, 6 failureThreshold: Int32,
        7 terminationGracePeriodSeconds? Int64,
    }
    SLEEP_ACTION = "SleepAction" { 1 seconds! Int64 }
    LIFECYCLE_HANDLER = "LifecycleHandler" {
        1 exec? Message(&EXEC_ACTION), 2 httpGet? Message(&HTTP_GET_ACTION), 3 tcpSocket? Message(&TCP_SOCKET_ACTION),
        4 sleep? Message(&SLEEP_ACTION),
    }
    LIFECYCLE = "Lifecycle" {
        1 postStart? Message(&LIFECYCLE_HANDLER), 2 preStop? Message(&LIFECYCLE_HANDLER), 3 stopSignal? String,
    }
    CAPABILITIES = "Capabilities" { 1 add: Strings, 2 drop: Strings }
    SE_LINUX_OPTIONS = "SELinuxOptions" { 1 user: String, 2 role: String, 3 type: String, 4 level: String }
    WINDOWS_SECURITY_CONTEXT_OPTIONS = "WindowsSecurityContextOptions" {
        1 gmsaCredentialSpecName? String, 2 gmsaCredentialSpec? String, 3 runAsUserName? String, 4 hostProcess? Bool,
    }
    SECCOMP_PROFILE = "SeccompProfile" { 1 type! String, 2 localhostProfile? String }
    APP_ARMOR_PROFILE = "AppArmorProfile" { 1 type! String, 2 localhostProfile? String }
    SECURITY_CONTEXT = "SecurityContext" {
        1 capabilities? Message(&CAPABILITIES), 2 privileged? Bool, 3 seLinuxOptions? Message(&SE_LINUX_OPTIONS),
        4 runAsUser? Int64, 5 runAsNonRoot? Bool, 6 readOnlyRootFilesystem? Bool, 7 allowPrivilegeEscalation? Bool,
        8 runAsGroup? Int64, 9 procMount? String, 10 windowsOptions? Message(&WINDOWS_SECURITY_CONTEXT_OPTIONS),
        11 seccompProfile? Message(&SECCOMP_PROFILE), 12 appArmorProfile? Message(&APP_ARMOR_PROFILE),
    }
    CONTAINER = "Container" {
        1 name! String, 2 image: String, 3 command: Strings, 4 args: Strings, 5 workingDir: String,
        6 ports: Keyed(&CONTAINER_PORT, "containerPort"), 7 env: Keyed(&ENV_VAR, "name"),
        8 resources: Message(&RESOURCE_REQUIREMENTS), 9 volumeMounts: Keyed(&VOLUME_MOUNT, "mountPath"),
        10 livenessProbe? Message(&PROBE), 11 readinessProbe? Message(&PROBE), 12 lifecycle? Message(&LIFECYCLE),
        13 terminationMessagePath: String, 14 imagePullPolicy: String, 15 securityContext? Message(&SECURITY_CONTEXT),
        16 stdin: Bool, 17 stdinOnce: Bool, 18 tty: Bool, 19 envFrom: Messages(&ENV_FROM_SOURCE),
        20 terminationMessagePolicy: String, 21 volumeDevices: Keyed(&VOLUME_DEVICE, "devicePath"),
        22 startupProbe? Message(&PROBE), 23 resizePolicy: Messages(&CONTAINER_RESIZE_POLICY), 24 restartPolicy? String,
        25 restartPolicyRules: Messages(&CONTAINER_RESTART_RULE),
    }
    EPHEMERAL_CONTAINER_COMMON = "EphemeralContainerCommon" {
        1 name! String, 2 image: String, 3 command: Strings, 4 args: Strings, 5 workingDir: String,
        6 ports: Keyed(&CONTAINER_PORT, "containerPort"), 7 env: Keyed(&ENV_VAR, "name"),
        8 resources: Message(&RESOURCE_REQUIREMENTS), 9 volumeMounts: Keyed(&VOLUME_MOUNT, "mountPath"),
        10 livenessProbe? Message(&PROBE), 11 readinessProbe? Message(&PROBE), 12 lifecycle? Message(&LIFECYCLE),
        13 terminationMessagePath: String, 14 imagePullPolicy: String, 15 securityContext? Message(&SECURITY_CONTEXT),
        16 stdin: Bool, 17 stdinOnce: Bool, 18 tty: Bool, 19 envFrom: Messages(&ENV_FROM_SOURCE),
        20 terminationMessagePolicy: String, 21 volumeDevices: Keyed(&VOLUME_DEVICE, "devicePath"),
        22 startupProbe? Message(&PROBE), 23 resizePolicy: Messages(&CONTAINER_RESIZE_POLICY), 24 restartPolicy? String,
        25 restartPolicyRules: Messages(&CONTAINER_RESTART_RULE),
    }
    EPHEMERAL_CONTAINER = "EphemeralContainer" {
        1 ephemeralContainerCommon: Inline(&EPHEMERAL_CONTAINER_COMMON), 2 targetContainerName: String,
    }
}
