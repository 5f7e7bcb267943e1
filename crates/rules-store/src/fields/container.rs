use wire::messages::*;

use super::tables;

tables! {
    RUN = CONTAINER {
        honoured name: "The name within the pod.";
        warned image ["host"]: "Longshore runs commands of this machine, not images, so nothing is pulled; write \
            image: host, and a command that is there";
        honoured command: "The program and its arguments; a program of this machine.";
        honoured args: "More arguments.";
        honoured workingDir: "The directory it starts in.";
        honoured ports: "For people to read; a container can listen wherever it likes." => PORT;
        honoured env: "Variables of its environment." => VARIABLE;
        honoured envFrom: "Variables from all entries of config maps and secrets." => ALL_OF;
        honoured resources: "What it may use at most, and its share of the processors." => RESOURCES;
        honoured volumeMounts: "Where it sees the pod's volumes." => MOUNT;
        honoured volumeDevices: "Where it sees raw block volumes of the pod." => DEVICE;
        honoured livenessProbe: "Whether it lives; otherwise it is ended and started again." => LOOK;
        honoured readinessProbe: "Whether it does its work, and the pod is ready." => LOOK;
        honoured startupProbe: "Whether it has started; the other probes wait for it." => LOOK;
        honoured lifecycle => HOOKS;
        warned terminationMessagePath ["/dev/termination-log"]: "no message is read from there; see kubectl logs";
        warned terminationMessagePolicy ["File"]: "no message is taken from the log; see kubectl logs";
        honoured imagePullPolicy: "Nothing is pulled, whatever it says.";
        honoured securityContext: "What it may do on the machine." => SECURITY;
        refused stdin, stdinOnce, tty: "nobody can attach to a container here, so its input is at its end when it \
            starts; leave it out, and put what it should do into its command";
        honoured resizePolicy: "Resources of a running container do not change, whatever it says." => RESIZE;
        honoured restartPolicy: "Whether it is started again, in place of the pod's restartPolicy; Always makes an \
            init container a sidecar, which stays beside the containers.";
        refused restartPolicyRules: "containers are started again as restartPolicy says; leave it out";
    }
    PORT = CONTAINER_PORT {
        honoured name, containerPort, protocol: "For people to read.";
        warned hostPort: "no port of this machine leads to a pod, unless the pod has hostNetwork and listens there \
            itself";
        warned hostIP: "no address of this machine leads to a pod, unless the pod has hostNetwork and listens there \
            itself";
    }
    VARIABLE = ENV_VAR {
        honoured name: "The variable.";
        honoured value: "Its text.";
        honoured valueFrom: "Where its text comes from." => FROM;
    }
    ALL_OF = ENV_FROM_SOURCE {
        honoured prefix: "What stands before each entry's name.";
        honoured configMapRef => ALL_OF_MAP;
        honoured secretRef => ALL_OF_SECRET;
    }
    ALL_OF_MAP = CONFIG_MAP_ENV_SOURCE {
        honoured name, optional;
    }
    ALL_OF_SECRET = SECRET_ENV_SOURCE {
        honoured name, optional;
    }
    FROM = ENV_VAR_SOURCE {
        honoured fieldRef => FIELD;
        honoured resourceFieldRef => AMOUNT;
        honoured configMapKeyRef => MAP_KEY;
        honoured secretKeyRef => SECRET_KEY;
        refused fileKeyRef: "variables are not read from files of volumes here; use configMapKeyRef or secretKeyRef";
    }
    FIELD = OBJECT_FIELD_SELECTOR {
        honoured apiVersion: "The pod's, which is v1.";
        honoured fieldPath: "The field, such as metadata.name; a pod's address is that of its loopback device.";
    }
    AMOUNT = RESOURCE_FIELD_SELECTOR {
        honoured containerName, resource, divisor;
    }
    MAP_KEY = CONFIG_MAP_KEY_SELECTOR {
        honoured name, key, optional;
    }
    SECRET_KEY = SECRET_KEY_SELECTOR {
        honoured name, key, optional;
    }
    RESOURCES = RESOURCE_REQUIREMENTS {
        refused limits ["cpu", "memory"]: "nothing limits or counts this resource here; leave it out";
        honoured requests: "What its node must have left; the scheduler counts it, and nothing else does.";
        refused claims: "devices are not claimed here; leave it out";
    }
    RESIZE = CONTAINER_RESIZE_POLICY {
        honoured resourceName, restartPolicy;
    }
    MOUNT = VOLUME_MOUNT {
        honoured name: "The volume, by its name in the pod.";
        honoured mountPath: "Where the container sees it.";
        honoured readOnly: "Whether the container may only read.";
        honoured subPath: "The part of the volume it sees; a directory that is missing is made.";
        honoured subPathExpr: "The same, with variables of its environment in it.";
        honoured mountPropagation: "Which later mounts are seen on the other side; Bidirectional if privileged.";
        refused recursiveReadOnly ["Disabled", "IfPossible"]: "mounts within the volume are not made read-only; leave \
            it out";
        refused bindMountOptions: "a container's mount has no options of its own; set mountOptions in the class or the \
            volume";
    }
    DEVICE = VOLUME_DEVICE {
        honoured name: "The volume, by its name in the pod; its claim has volumeMode Block.";
        honoured devicePath: "Where the container sees the device.";
    }
    HOOKS = LIFECYCLE {
        honoured postStart: "What is done once it has started; if that fails, it is ended." => HOOK;
        honoured preStop: "What is done before it is asked to end, within its grace." => HOOK;
        refused stopSignal ["SIGTERM"]: "containers are always ended with SIGTERM; let the process handle that one";
    }
    HOOK = LIFECYCLE_HANDLER {
        honoured exec: "A command in the container." => EXEC;
        honoured httpGet: "A request in the network of the pod." => HTTP;
        refused tcpSocket: "no connection is made by a hook; use exec, httpGet or sleep";
        honoured sleep: "A pause." => PAUSE;
    }
    LOOK = PROBE {
        honoured exec: "A command in the container, which must end with status 0." => EXEC;
        honoured httpGet: "A request in the network of the pod, which must be answered with a status from 200 to \
            399." => HTTP;
        honoured tcpSocket: "A connection in the network of the pod." => TCP;
        refused grpc: "the health service of gRPC is not asked yet; use exec, httpGet or tcpSocket";
        honoured initialDelaySeconds, timeoutSeconds, periodSeconds, successThreshold, failureThreshold: "When it is \
            done, how long it may take, and how many answers count.";
        honoured terminationGracePeriodSeconds: "How long the container may take to end when it does not live.";
    }
    EXEC = EXEC_ACTION {
        honoured command;
    }
    HTTP = HTTP_GET_ACTION {
        honoured path, port;
        honoured httpHeaders => HEADER;
        honoured host: "An address in the network of the pod; its own if left out.";
        refused scheme ["HTTP"]: "requests are made without TLS here; use exec with a client that knows it, or \
            tcpSocket";
        refused protocol: "requests are made with HTTP/1.1; leave it out";
    }
    HEADER = HTTP_HEADER {
        honoured name, value;
    }
    TCP = TCP_SOCKET_ACTION {
        honoured port;
        honoured host: "An address in the network of the pod; its own if left out.";
    }
    PAUSE = SLEEP_ACTION {
        honoured seconds;
    }
    SECURITY = SECURITY_CONTEXT {
        honoured runAsUser: "The user it runs as.";
        honoured runAsGroup: "The group it runs as.";
        honoured runAsNonRoot: "Whether it must not run as root.";
        honoured privileged: "Whether it may do everything root may; the namespace must allow it.";
        honoured allowPrivilegeEscalation: "Whether a program may give it more rights.";
        honoured readOnlyRootFilesystem: "Whether its root cannot be written; here that is so unless it says false.";
        honoured capabilities: "Capabilities of the kernel, added to and taken from the usual ones." => CAPABILITY;
        honoured seccompProfile: "Which system calls it may make." => SECCOMP;
        honoured appArmorProfile: "Which AppArmor profile it has." => APP_ARMOR;
        refused seLinuxOptions: "containers get no SELinux labels here; leave it out";
        refused procMount ["Default"]: "/proc is always masked here; leave it out";
        refused windowsOptions: "there is no Windows here; leave it out";
    }
    CAPABILITY = CAPABILITIES {
        honoured add, drop;
    }
    SECCOMP = SECCOMP_PROFILE {
        refused type ["RuntimeDefault", "Unconfined"]: "profiles of the node are not loaded here; use RuntimeDefault";
        refused localhostProfile: "profiles of the node are not loaded here; use type RuntimeDefault";
    }
    APP_ARMOR = APP_ARMOR_PROFILE {
        refused type ["RuntimeDefault", "Unconfined"]: "profiles of the node are not loaded here; use RuntimeDefault";
        refused localhostProfile: "profiles of the node are not loaded here; use type RuntimeDefault";
    }
}
