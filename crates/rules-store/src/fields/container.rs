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
        refused envFrom: "variables are not taken from config maps or secrets yet; write them in env";
        honoured resources: "What it may use at most, and its share of the processors." => RESOURCES;
        honoured volumeMounts: "Where it sees the pod's volumes." => MOUNT;
        refused volumeDevices: "raw block volumes cannot be given to containers yet; use a claim with volumeMode \
            Filesystem and volumeMounts";
        refused livenessProbe: "nothing probes containers here, so a container that hangs would not be started again; \
            leave it out, and let the process exit when it cannot go on";
        refused readinessProbe: "nothing probes containers here, so it would count as ready as soon as it runs; leave \
            it out";
        refused startupProbe: "nothing probes containers here; leave it out";
        honoured lifecycle => HOOKS;
        warned terminationMessagePath ["/dev/termination-log"]: "no message is read from there; see kubectl logs";
        warned terminationMessagePolicy ["File"]: "no message is taken from the log; see kubectl logs";
        honoured imagePullPolicy: "Nothing is pulled, whatever it says.";
        honoured securityContext: "What it may do on the machine." => SECURITY;
        refused stdin, stdinOnce, tty: "nobody can attach to a container here, so its input is at its end when it \
            starts; leave it out, and put what it should do into its command";
        honoured resizePolicy: "Resources of a running container do not change, whatever it says." => RESIZE;
        refused restartPolicy, restartPolicyRules: "containers are started again as the restartPolicy of the pod says; \
            leave it out";
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
        refused valueFrom: "variables are not taken from fields, config maps or secrets yet; write the text in value";
    }
    RESOURCES = RESOURCE_REQUIREMENTS {
        refused limits ["cpu", "memory"]: "nothing limits or counts this resource here; leave it out";
        warned requests ["cpu", "memory", "ephemeral-storage"]: "nothing counts this resource here";
        refused claims: "devices are not claimed here; leave it out";
    }
    RESIZE = CONTAINER_RESIZE_POLICY {
        honoured resourceName, restartPolicy;
    }
    MOUNT = VOLUME_MOUNT {
        honoured name: "The volume, by its name in the pod.";
        honoured mountPath: "Where the container sees it.";
        honoured readOnly: "Whether the container may only read.";
        refused subPath, subPathExpr: "a volume is mounted whole here, so the container would see more than it asks \
            for; leave it out, and use the directory below mountPath";
        refused mountPropagation ["None"]: "mounts do not travel between the machine and containers; leave it out";
        refused recursiveReadOnly ["Disabled", "IfPossible"]: "mounts within the volume are not made read-only; leave \
            it out";
        refused bindMountOptions: "a container's mount has no options of its own; set mountOptions in the class or the \
            volume";
    }
    HOOKS = LIFECYCLE {
        refused postStart: "nothing is run after the start; put it at the beginning of the command";
        refused preStop: "nothing is run before the end; let the process handle SIGTERM";
        refused stopSignal ["SIGTERM"]: "containers are always ended with SIGTERM; let the process handle that one";
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
