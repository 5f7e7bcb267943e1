{{/* The pods of a part: the driver, and beside it one sidecar. Takes plan, values, account, roles, args, onNodes, controls. */}}
{{- define "longshore.pod" -}}
{{- $plan := .plan -}}
{{- $place := ternary .values.node .values.controller .onNodes -}}
{{- $sockets := "/var/lib/csi/sockets/pluginproxy" -}}
{{- $own := printf "%s/plugins/%s" $plan.kubelet $plan.driver -}}
{{- $roles := append (ternary .roles list .controls) (ternary "registrar" "liveness" .onNodes) -}}
{{- if .onNodes }}{{ $roles = append $roles "liveness" }}{{ end -}}
{{- $flags := include "longshore.flags" . | fromJson -}}
{{- $electing := without .roles (ternary "provisioner" "" $plan.perNode) -}}
serviceAccountName: {{ .account | quote }}
automountServiceAccountToken: false
priorityClassName: {{ $place.priorityClassName | default (ternary "system-node-critical" "system-cluster-critical" .onNodes) | quote }}
{{- with .values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with $place.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with $place.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with $place.affinity }}
affinity: {{ toJson . }}
{{- end }}
containers:
- name: driver
  image: {{ $plan.driverImage | quote }}
  {{- with .values.imagePullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  {{- with .args }}
  args:
  {{- range . }}
  - {{ . | quote }}
  {{- end }}
  {{- end }}
  env:
  - {name: CSI_ENDPOINT, value: "unix://{{ $sockets }}/csi.sock"}
  - {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
  {{- range .values.driver.env }}
  - {{ toJson . }}
  {{- end }}
  livenessProbe: # answered by the sidecar, which asks the driver
    httpGet: {path: /healthz, port: 9808}
    initialDelaySeconds: 10
    periodSeconds: 10
    timeoutSeconds: 3
    failureThreshold: 5
  resources: {{ toJson .values.driver.resources }}
  {{- /* On nodes it mounts filesystems for pods; nothing else here is privileged. */}}
  {{- $context := dict "allowPrivilegeEscalation" false "seccompProfile" (dict "type" "RuntimeDefault") }}
  {{- if .onNodes }}{{ $context = dict "privileged" true }}{{ end }}
  securityContext: {{ mergeOverwrite $context (.values.driver.securityContext | default dict) | toJson }}
  volumeMounts:
  - {name: socket, mountPath: {{ $sockets }}}
  {{- if .onNodes }}
  - {name: pods, mountPath: {{ $plan.kubelet }}/pods, mountPropagation: Bidirectional}
  - {name: plugins, mountPath: {{ $plan.kubelet }}/plugins, mountPropagation: Bidirectional}
  - {name: devices, mountPath: /dev}
  {{- end }}
  {{- range .values.driver.volumeMounts }}
  - {{ toJson . }}
  {{- end }}
- name: longshore
  image: {{ $plan.image | quote }}
  {{- with .values.imagePullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  args:
  - sidecar
  - --roles={{ join "," $roles }}
  - --csi-address={{ $sockets }}/csi.sock
  - --http-endpoint=:9808
  {{- if and .controls $electing }}
  - --leader-election
  {{- end }}
  {{- if and .controls $plan.perNode }}
  - --node-deployment
  {{- end }}
  {{- if and .controls $plan.gates }}
  - {{ printf "--feature-gates=%s" $plan.gates | quote }}
  {{- end }}
  {{- if and .controls $plan.capacity }}
  - --enable-capacity
  {{- end }}
  {{- if .onNodes }}
  - --kubelet-registration-path={{ $own }}/csi.sock
  - --plugin-registration-path=/registration
  {{- end }}
  {{- range .values.sidecar.args }}
  {{- $arg := . }}
  {{- $flag := get $flags (regexReplaceAll "^--?" (splitn "=" 2 $arg)._0 "") }}
  {{- $known := false }}
  {{- range $flag.roles }}{{ if has . $roles }}{{ $known = true }}{{ end }}{{ end }}
  {{- if $known }}
  - {{ $arg | quote }}
  {{- end }}
  {{- end }}
  {{- if and .controls (or $plan.perNode $plan.capacity) }}
  env:
  {{- if $plan.perNode }}
  - {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}} # whose volumes it makes
  {{- end }}
  {{- if $plan.capacity }}
  - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}} # whose capacity objects they are
  - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
  {{- end }}
  {{- end }}
  {{- include "longshore.probed" "/livez" | nindent 2 }}
  resources: {{ toJson .values.sidecar.resources }}
  {{- /* The owner of the driver's socket and of kubelet's folder, without any of root's capabilities. */}}
  {{- $context := dict "runAsUser" 0 "readOnlyRootFilesystem" true "allowPrivilegeEscalation" false
    "capabilities" (dict "drop" (list "ALL")) "seccompProfile" (dict "type" "RuntimeDefault") }}
  securityContext: {{ mergeOverwrite $context (.values.sidecar.securityContext | default dict) | toJson }}
  volumeMounts:
  - {name: socket, mountPath: {{ $sockets }}}
  {{- if .onNodes }}
  - {name: registration, mountPath: /registration}
  {{- end }}
  {{- if .controls }}
  - {name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
  {{- end }}
{{- if .controls }}
{{- range .values.containers }}
- {{ toJson . }}
{{- end }}
{{- end }}
volumes:
{{- if .onNodes }}
- {name: socket, hostPath: {path: {{ $own | quote }}, type: DirectoryOrCreate}}
- {name: registration, hostPath: {path: {{ $plan.kubelet }}/plugins_registry, type: Directory}}
- {name: pods, hostPath: {path: {{ $plan.kubelet }}/pods, type: Directory}}
- {name: plugins, hostPath: {path: {{ $plan.kubelet }}/plugins, type: Directory}}
- {name: devices, hostPath: {path: /dev, type: Directory}}
{{- else }}
- {name: socket, emptyDir: {}}
{{- end }}
{{- range .values.driver.volumes }}
- {{ toJson . }}
{{- end }}
{{- if .controls }}
{{- /* For the sidecar alone: the driver has no business with the API. */}}
{{ include "longshore.token" . }}
{{- end }}
{{- end -}}

{{/* Where our own container answers, and its probe. Takes the path. */}}
{{- define "longshore.probed" -}}
ports:
- {name: health, containerPort: 9808}
livenessProbe: # of this process alone
  httpGet: {path: {{ . }}, port: health}
  initialDelaySeconds: 10
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 4
  terminationGracePeriodSeconds: 10
{{- end -}}

{{/* The volume with what programs know the API server and themselves by. */}}
{{- define "longshore.token" -}}
- name: token
  projected:
    sources:
    - {serviceAccountToken: {path: token, expirationSeconds: 3607}}
    - {configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}}
    - {downwardAPI: {items: [{path: namespace, fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}]}}
{{- end -}}
