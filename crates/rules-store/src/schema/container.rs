//! Containers.

use super::Shape::{Boolean, IntOrText, Integer, Keyed, Object, Objects, OpaqueList, QuantityMap, Text, Texts};
use super::pod_volume::{OBJECT_FIELD_SELECTOR, RESOURCE_FIELD_SELECTOR};
use super::types;

types! {
    CONFIG_MAP_KEY_SELECTOR = "ConfigMapKeySelector" {
        key: Text, name: Text, optional: Boolean,
    }
    FILE_KEY_SELECTOR = "FileKeySelector" {
        key: Text, optional: Boolean, path: Text, volumeName: Text,
    }
    SECRET_KEY_SELECTOR = "SecretKeySelector" {
        key: Text, name: Text, optional: Boolean,
    }
    ENV_VAR_SOURCE = "EnvVarSource" {
        configMapKeyRef: Object(&CONFIG_MAP_KEY_SELECTOR), fieldRef: Object(&OBJECT_FIELD_SELECTOR),
        fileKeyRef: Object(&FILE_KEY_SELECTOR), resourceFieldRef: Object(&RESOURCE_FIELD_SELECTOR),
        secretKeyRef: Object(&SECRET_KEY_SELECTOR),
    }
    ENV_VAR = "EnvVar" {
        name: Text, value: Text, valueFrom: Object(&ENV_VAR_SOURCE),
    }
    CONFIG_MAP_ENV_SOURCE = "ConfigMapEnvSource" {
        name: Text, optional: Boolean,
    }
    SECRET_ENV_SOURCE = "SecretEnvSource" {
        name: Text, optional: Boolean,
    }
    ENV_FROM_SOURCE = "EnvFromSource" {
        configMapRef: Object(&CONFIG_MAP_ENV_SOURCE), prefix: Text, secretRef: Object(&SECRET_ENV_SOURCE),
    }
    EXEC_ACTION = "ExecAction" {
        command: Texts,
    }
    HTTP_HEADER = "HTTPHeader" {
        name: Text, value: Text,
    }
    HTTP_GET_ACTION = "HTTPGetAction" {
        host: Text, httpHeaders: Objects(&HTTP_HEADER), path: Text, port: IntOrText, protocol: Text,
        scheme: Text,
    }
    SLEEP_ACTION = "SleepAction" {
        seconds: Integer,
    }
    TCP_SOCKET_ACTION = "TCPSocketAction" {
        host: Text, port: IntOrText,
    }
    LIFECYCLE_HANDLER = "LifecycleHandler" {
        exec: Object(&EXEC_ACTION), httpGet: Object(&HTTP_GET_ACTION), sleep: Object(&SLEEP_ACTION),
        tcpSocket: Object(&TCP_SOCKET_ACTION),
    }
    LIFECYCLE = "Lifecycle" {
        postStart: Object(&LIFECYCLE_HANDLER), preStop: Object(&LIFECYCLE_HANDLER), stopSignal: Text,
    }
    GRPC_ACTION = "GRPCAction" {
        mode: Text, port: Integer, service: Text,
    }
    PROBE = "Probe" {
        exec: Object(&EXEC_ACTION), failureThreshold: Integer, grpc: Object(&GRPC_ACTION),
        httpGet: Object(&HTTP_GET_ACTION), initialDelaySeconds: Integer, periodSeconds: Integer,
        successThreshold: Integer, tcpSocket: Object(&TCP_SOCKET_ACTION),
        terminationGracePeriodSeconds: Integer, timeoutSeconds: Integer,
    }
    CONTAINER_PORT = "ContainerPort" {
        containerPort: Integer, hostIP: Text, hostPort: Integer, name: Text, protocol: Text,
    }
    CONTAINER_RESIZE_POLICY = "ContainerResizePolicy" {
        resourceName: Text, restartPolicy: Text,
    }
    RESOURCE_CLAIM = "ResourceClaim" {
        name: Text, request: Text,
    }
    RESOURCE_REQUIREMENTS = "ResourceRequirements" {
        claims: Objects(&RESOURCE_CLAIM), limits: QuantityMap, requests: QuantityMap,
    }
    CONTAINER_RESTART_RULE_ON_EXIT_CODES = "ContainerRestartRuleOnExitCodes" {
        operator: Text, values: OpaqueList,
    }
    CONTAINER_RESTART_RULE = "ContainerRestartRule" {
        action: Text, exitCodes: Object(&CONTAINER_RESTART_RULE_ON_EXIT_CODES),
    }
    APP_ARMOR_PROFILE = "AppArmorProfile" {
        localhostProfile: Text, type: Text,
    }
    CAPABILITIES = "Capabilities" {
        add: Texts, drop: Texts,
    }
    SE_LINUX_OPTIONS = "SELinuxOptions" {
        level: Text, role: Text, type: Text, user: Text,
    }
    SECCOMP_PROFILE = "SeccompProfile" {
        localhostProfile: Text, type: Text,
    }
    WINDOWS_SECURITY_CONTEXT_OPTIONS = "WindowsSecurityContextOptions" {
        gmsaCredentialSpec: Text, gmsaCredentialSpecName: Text, hostProcess: Boolean, runAsUserName: Text,
    }
    SECURITY_CONTEXT = "SecurityContext" {
        allowPrivilegeEscalation: Boolean, appArmorProfile: Object(&APP_ARMOR_PROFILE),
        capabilities: Object(&CAPABILITIES), privileged: Boolean, procMount: Text,
        readOnlyRootFilesystem: Boolean, runAsGroup: Integer, runAsNonRoot: Boolean, runAsUser: Integer,
        seLinuxOptions: Object(&SE_LINUX_OPTIONS), seccompProfile: Object(&SECCOMP_PROFILE),
        windowsOptions: Object(&WINDOWS_SECURITY_CONTEXT_OPTIONS),
    }
    VOLUME_DEVICE = "VolumeDevice" {
        devicePath: Text, name: Text,
    }
    VOLUME_MOUNT = "VolumeMount" {
        bindMountOptions: Texts, mountPath: Text, mountPropagation: Text, name: Text, readOnly: Boolean,
        recursiveReadOnly: Text, subPath: Text, subPathExpr: Text,
    }
    CONTAINER = "Container" {
        args: Texts, command: Texts, env: Keyed(&ENV_VAR, "name"), envFrom: Objects(&ENV_FROM_SOURCE),
        image: Text, imagePullPolicy: Text, lifecycle: Object(&LIFECYCLE), livenessProbe: Object(&PROBE),
        name: Text, ports: Keyed(&CONTAINER_PORT, "containerPort"), readinessProbe: Object(&PROBE),
        resizePolicy: Objects(&CONTAINER_RESIZE_POLICY), resources: Object(&RESOURCE_REQUIREMENTS),
        restartPolicy: Text, restartPolicyRules: Objects(&CONTAINER_RESTART_RULE),
        securityContext: Object(&SECURITY_CONTEXT), startupProbe: Object(&PROBE), stdin: Boolean,
        stdinOnce: Boolean, terminationMessagePath: Text, terminationMessagePolicy: Text, tty: Boolean,
        volumeDevices: Keyed(&VOLUME_DEVICE, "devicePath"), volumeMounts: Keyed(&VOLUME_MOUNT, "mountPath"),
        workingDir: Text,
    }
    EPHEMERAL_CONTAINER = "EphemeralContainer" {
        args: Texts, command: Texts, env: Keyed(&ENV_VAR, "name"), envFrom: Objects(&ENV_FROM_SOURCE),
        image: Text, imagePullPolicy: Text, lifecycle: Object(&LIFECYCLE), livenessProbe: Object(&PROBE),
        name: Text, ports: Keyed(&CONTAINER_PORT, "containerPort"), readinessProbe: Object(&PROBE),
        resizePolicy: Objects(&CONTAINER_RESIZE_POLICY), resources: Object(&RESOURCE_REQUIREMENTS),
        restartPolicy: Text, restartPolicyRules: Objects(&CONTAINER_RESTART_RULE),
        securityContext: Object(&SECURITY_CONTEXT), startupProbe: Object(&PROBE), stdin: Boolean,
        stdinOnce: Boolean, targetContainerName: Text, terminationMessagePath: Text,
        terminationMessagePolicy: Text, tty: Boolean, volumeDevices: Keyed(&VOLUME_DEVICE, "devicePath"),
        volumeMounts: Keyed(&VOLUME_MOUNT, "mountPath"), workingDir: Text,
    }
}
