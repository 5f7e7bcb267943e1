{{/* What the values mean, with everything filled in that they leave open. Read it with fromYaml. */}}
{{- define "longshore.plan" -}}
{{- $values := .Values -}}
{{- $driver := $values.driver.name | default "local.csi.longshore" -}}
{{- $own := eq $driver "local.csi.longshore" -}}
{{- if and $values.driver.image (not $values.driver.name) -}}
{{- fail (printf "driver.image is %s and driver.name is empty; give the name that the driver tells of itself (local.csi.longshore if it is Longshore's own, whose images of this version registry finds without driver.image)" $values.driver.image) -}}
{{- end -}}
{{- if not (or $own $values.driver.image) -}}
{{- fail (printf "driver.name is %s and driver.image is empty; give the image it runs from" $driver) -}}
{{- end -}}
{{- $layout := $values.layout | default (ternary "node-deployment" "controller-and-nodes" $own) -}}
{{- $perNode := eq $layout "node-deployment" -}}
{{- if and $own (not $perNode) -}}
{{- fail "Longshore's own driver makes volumes on the node it runs on; leave layout empty" -}}
{{- end -}}
{{- $attach := ternary (not $perNode) $values.driver.attachRequired (kindIs "invalid" $values.driver.attachRequired) -}}
{{- if and $perNode $attach -}}
{{- fail "layout node-deployment is for volumes that never leave their node; leave driver.attachRequired out" -}}
{{- end -}}
{{- $usual := ternary (list "provisioner") (list "provisioner" "attacher" "resizer") $perNode -}}
{{- $roles := $values.sidecar.roles | default $usual -}}
{{- if not $attach -}}{{- $roles = without $roles "attacher" -}}{{- end -}}
{{- $ordered := list -}}
{{- range list "provisioner" "attacher" "resizer" -}}
{{- if has . $roles -}}{{- $ordered = append $ordered . -}}{{- end -}}
{{- end -}}
{{- if and $perNode (not (has "provisioner" $ordered)) -}}
{{- fail "layout node-deployment is about the provisioner; add it to sidecar.roles" -}}
{{- end -}}
{{- $gates := list -}}
{{- $known := include "longshore.gates" . | fromJsonArray -}}
{{- range $gate, $on := $values.sidecar.featureGates -}}
{{- if not (has $gate $known) -}}
{{- fail (printf "sidecar.featureGates knows no gate %s; docs/flags.md lists them" $gate) -}}
{{- end -}}
{{- $gates = append $gates (printf "%s=%t" $gate $on) -}}
{{- end -}}
{{- $gate := $values.sidecar.featureGates -}}
{{- $name := $values.name | default (replace "." "-" $driver) -}}
{{- if gt (len $name) 40 -}}
{{- fail (printf "%s is too long to name objects after; give at most 40 characters as name" $name) -}}
{{- end -}}
{{- $kubelet := regexReplaceAll "/+$" $values.kubeletDir "" -}}
{{- $registry := regexReplaceAll "/+$" ($values.registry | default ($values.global).imageRegistry | default "") "" -}}
{{- if $registry -}}{{- $registry = printf "%s/" $registry -}}{{- end -}}
{{- $oneSet := ne $layout "controller-and-nodes" -}}
{{- if $oneSet -}}
{{- $place := $values.controller -}}
{{- if or $place.tolerations $place.affinity $place.priorityClassName (ne (toJson $place.nodeSelector) "{\"kubernetes.io/os\":\"linux\"}") -}}
{{- fail "there is no controller beside the nodes' pods in this layout; leave controller as it is and set node" -}}
{{- end -}}
{{- if and ($values.podDisruptionBudget).enabled (not ($values.controllers).enabled) -}}
{{- fail "a drain leaves pods of a DaemonSet alone, and there are no others in this layout; leave podDisruptionBudget.enabled out" -}}
{{- end -}}
{{- end -}}
{{- $all := append $ordered "liveness" -}}
{{- $all = append $all "registrar" -}}
{{- range $values.sidecar.args -}}{{- include "longshore.arg" (dict "arg" . "roles" $all) -}}{{- end -}}
{{- $first := list -}}
{{- if $own -}}
{{- $first = list "driver" "--endpoint=$(CSI_ENDPOINT)" "--node-id=$(NODE_NAME)" (printf "--state-dir=%s/plugins/%s/state" $kubelet $driver) (printf "--shared-dir=%s/pods" $kubelet) "--no-registration" "--without=publish" -}}
{{- end -}}
{{- $shared := concat $first $values.driver.args -}}
{{- $capacity := ternary $own $values.sidecar.capacity (kindIs "invalid" $values.sidecar.capacity) -}}
{{- if and $capacity (not (has "provisioner" $ordered)) -}}
{{- fail "sidecar.capacity is told by the provisioner; add it to sidecar.roles" -}}
{{- end -}}
{{- dict
  "driver" $driver
  "own" $own
  "name" $name
  "namespace" .Release.Namespace
  "image" ($values.image | default (printf "%slongshore:%s" $registry .Chart.AppVersion))
  "driverImage" ($values.driver.image | default (printf "%slongshore-driver:%s" $registry .Chart.AppVersion))
  "labels" (dict
    "app.kubernetes.io/instance" .Release.Name
    "app.kubernetes.io/managed-by" .Release.Service
    "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_"))
  "kubelet" $kubelet
  "perNode" $perNode
  "oneSet" $oneSet
  "roles" $ordered
  "attachRequired" $attach
  "podInfo" (ternary $own $values.driver.podInfo (kindIs "invalid" $values.driver.podInfo))
  "ephemeral" (ternary $own $values.driver.ephemeral (kindIs "invalid" $values.driver.ephemeral))
  "waitForConsumer" (ternary $own $values.storageClass.waitForConsumer (kindIs "invalid" $values.storageClass.waitForConsumer))
  "class" ($values.storageClass.name | default $driver)
  "capacity" $capacity
  "snapshots" $values.driver.snapshots
  "otherNamespaces" (get $gate "CrossNamespaceVolumeDataSource" | default false)
  "attributesClasses" (ternary (get $gate "VolumeAttributesClass") true (hasKey $gate "VolumeAttributesClass"))
  "topology" (and (not $perNode) (ternary (get $gate "Topology") true (hasKey $gate "Topology")))
  "gates" (join "," $gates)
  "controllerArgs" (concat $shared $values.driver.controllerArgs)
  "nodeArgs" (concat $shared $values.driver.nodeArgs)
  | toYaml -}}
{{- end -}}

{{/* Whether an argument is one for some sidecar with these roles: nothing, or the end with a sentence. */}}
{{- define "longshore.arg" -}}
{{- $parts := splitn "=" 2 .arg -}}
{{- $name := regexReplaceAll "^--?" $parts._0 "" -}}
{{- if not (hasPrefix "-" .arg) -}}
{{- fail (printf "sidecar.args: %s is no flag; flags begin with two dashes" .arg) -}}
{{- end -}}
{{- if has $name (include "longshore.flags.decided" . | fromJsonArray) -}}
{{- fail (printf "sidecar.args: --%s is for the chart to say; leave it out" $name) -}}
{{- end -}}
{{- $flag := get (include "longshore.flags" . | fromJson) $name -}}
{{- if not $flag -}}
{{- fail (printf "sidecar.args: there is no flag --%s; docs/flags.md lists them" $name) -}}
{{- end -}}
{{- $known := false -}}
{{- $roles := .roles -}}
{{- range $flag.roles -}}{{- if has . $roles -}}{{- $known = true -}}{{- end -}}{{- end -}}
{{- if not $known -}}
{{- fail (printf "sidecar.args: --%s is a flag of the %s, which is not among the roles here" $name (join " and the " $flag.roles)) -}}
{{- end -}}
{{- if and $flag.value (not (contains "=" .arg)) -}}
{{- fail (printf "sidecar.args: --%s needs a value; write --%s=VALUE" $name $name) -}}
{{- end -}}
{{- end -}}
