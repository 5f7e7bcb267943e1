use wire::messages::*;

use super::container::{APP_ARMOR, RUN, SECCOMP};
use super::meta::META;
use super::pod_volume::POD_VOLUME;
use super::tables;
use super::volume::NODES;

tables! {
    POD = wire::messages::POD {
        honoured metadata => META;
        honoured spec: "What the pod runs." => SPEC;
        honoured status: "How far the pod has come.";
    }
    SPEC = POD_SPEC {
        honoured volumes: "What its containers can mount." => POD_VOLUME;
        honoured containers: "What it runs: processes of this machine, each in a sandbox." => RUN;
        honoured initContainers: "What runs before the containers, one after the other." => RUN;
        refused ephemeralContainers: "a container cannot be added to a pod that runs; write another pod";
        honoured restartPolicy: "Whether containers that end are started again: Always, OnFailure or Never.";
        honoured terminationGracePeriodSeconds: "How long a container may take to end after SIGTERM.";
        honoured activeDeadlineSeconds: "How long the pod may be active before it is ended and has failed.";
        refused dnsPolicy ["ClusterFirst", "ClusterFirstWithHostNet", "Default"]: "a pod's resolver cannot be set up \
            here; leave it out";
        refused dnsConfig: "a pod's resolver cannot be set up here; leave it out";
        refused hostAliases: "a pod's /etc/hosts is that of this machine; leave it out";
        honoured nodeSelector: "Labels that the node must have.";
        honoured nodeName: "The node; the scheduler sets it where it is left out.";
        honoured schedulerName: "Who chooses the node; a name that nobody answers to waits.";
        honoured tolerations: "Taints that do not keep it away." => TOLERATE;
        honoured affinity => AFFINITIES;
        refused topologySpreadConstraints: "the scheduler does not spread pods; leave it out, or choose a node with \
            nodeSelector";
        refused schedulingGates: "the scheduler does not wait for gates; make the pod once it may start";
        refused schedulingGroup: "the scheduler places each pod for itself; leave it out";
        warned priorityClassName: "there are no priorities here: no pod gives way to another";
        warned priority [0]: "there are no priorities here: no pod gives way to another";
        warned preemptionPolicy ["PreemptLowerPriority", "Never"]: "there are no priorities here: no pod gives way to \
            another";
        honoured serviceAccountName, serviceAccount: "Whose tokens the pod's volumes and drivers get; drivers with \
            podInfoOnMount are told its name.";
        honoured automountServiceAccountToken: "Whether the pod finds a token where clients look for it. Only true \
            asks for it, here or of the account; Kubernetes gives one to all that do not say false.";
        warned imagePullSecrets: "no images are pulled here, so nobody uses them";
        honoured hostNetwork: "Whether it is on the network of this machine; otherwise it has a loopback device of its \
            own.";
        honoured hostIPC: "Whether it shares System V IPC with this machine.";
        refused hostPID: "a pod never sees the processes of this machine; leave it out";
        refused shareProcessNamespace [false]: "each container has processes of its own; leave it out, or run both in \
            one container";
        refused hostUsers [true]: "pods have no users of their own here; leave it out, and set runAsUser";
        honoured securityContext: "What its containers may do on the machine, unless they say otherwise." =>
            POD_SECURITY;
        honoured hostname: "What the pod calls itself; otherwise its name.";
        warned subdomain: "there is no DNS here, so the pod has no such name";
        refused setHostnameAsFQDN [false]: "there is no DNS here, so the pod has no such name; leave it out";
        refused hostnameOverride: "set hostname instead";
        honoured readinessGates: "Conditions that others set and that the pod must have to be ready." => GATE;
        refused runtimeClassName: "there is one way to run containers here; leave it out";
        refused overhead, resources, resourceClaims: "resources are limited by container here, in \
            containers[].resources; leave it out";
        honoured enableServiceLinks: "There are no Services, so there is nothing to link, whatever it says.";
        honoured os: "The operating system the pod is for." => SYSTEM;
        refused evictionResponders: "pods are evicted by taints and kubectl drain alone, which ask nobody; leave it \
            out";
    }
    GATE = POD_READINESS_GATE {
        honoured conditionType;
    }
    TOLERATE = TOLERATION {
        honoured key, operator, value, effect;
        honoured tolerationSeconds: "For how long the pod stays beside a taint with effect NoExecute.";
    }
    AFFINITIES = AFFINITY {
        honoured nodeAffinity => TO_NODES;
        honoured podAffinity => TO_PODS;
        honoured podAntiAffinity => AWAY_FROM_PODS;
    }
    TO_NODES = NODE_AFFINITY {
        honoured requiredDuringSchedulingIgnoredDuringExecution: "What the node must be like." => NODES;
        warned preferredDuringSchedulingIgnoredDuringExecution: "the scheduler has no preferences";
    }
    TO_PODS = POD_AFFINITY {
        refused requiredDuringSchedulingIgnoredDuringExecution: "the scheduler does not look at it, so the pod could \
            go anywhere; use nodeSelector";
        warned preferredDuringSchedulingIgnoredDuringExecution: "the scheduler has no preferences";
    }
    AWAY_FROM_PODS = POD_ANTI_AFFINITY {
        refused requiredDuringSchedulingIgnoredDuringExecution: "the scheduler does not look at it, so the pod could \
            go anywhere; use nodeSelector";
        warned preferredDuringSchedulingIgnoredDuringExecution: "the scheduler has no preferences";
    }
    SYSTEM = POD_OS {
        refused name ["linux"]: "nodes run Linux here; leave it out";
    }
    POD_SECURITY = POD_SECURITY_CONTEXT {
        honoured runAsUser: "The user containers run as.";
        honoured runAsGroup: "The group containers run as.";
        honoured runAsNonRoot: "Whether containers must not run as root.";
        honoured supplementalGroups: "More groups of their processes.";
        honoured supplementalGroupsPolicy: "Groups of an image are never added, as with Strict.";
        honoured seccompProfile: "Which system calls containers may make." => SECCOMP;
        honoured appArmorProfile: "Which AppArmor profile containers have." => APP_ARMOR;
        honoured fsGroup: "The group that volumes are given to and processes are in.";
        honoured fsGroupChangePolicy: "Whether all files of a volume are looked at each time, or its root alone.";
        refused sysctls: "settings of the kernel are not changed for a pod; leave it out";
        refused seLinuxOptions: "containers get no SELinux labels here; leave it out";
        warned seLinuxChangePolicy: "containers and volumes get no SELinux labels here";
        refused windowsOptions: "there is no Windows here; leave it out";
    }
}
