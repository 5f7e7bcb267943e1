{{/* What the values mean, with everything filled in that they leave open. Read it with fromYaml. */}}
{{- define "longshore.plan" -}}
{{- $values := .Values -}}
{{- $driver := $values.driver.name | default "local.csi.longshore" -}}
{{- $own := eq $driver "local.csi.longshore" -}}
{{- if and $values.driver.image (not $values.driver.name) -}}
{{- fail (printf "driver.image is %s and driver.name is empty; give the name that the driver tells of itself" $values.driver.image) -}}
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
{{- range $gate, $on := $values.sidecar.featureGates -}}{{- $gates = append $gates (printf "%s=%t" $gate $on) -}}{{- end -}}
{{- $gate := $values.sidecar.featureGates -}}
{{- $name := $values.name | default (replace "." "-" $driver) -}}
{{- if gt (len $name) 40 -}}
{{- fail (printf "%s is too long to name objects after; give at most 40 characters as name" $name) -}}
{{- end -}}
{{- $kubelet := trimSuffix "/" $values.kubeletDir -}}
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
  "image" ($values.image | default (printf "longshore:%s" .Chart.AppVersion))
  "driverImage" ($values.driver.image | default (printf "longshore-driver:%s" .Chart.AppVersion))
  "kubelet" $kubelet
  "perNode" $perNode
  "oneSet" (ne $layout "controller-and-nodes")
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
