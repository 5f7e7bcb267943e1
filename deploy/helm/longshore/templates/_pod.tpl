{{/* The pods of a part: the driver, and beside it one sidecar. Takes plan, values, account, roles, args, onNodes, controls. */}}
{{- define "longshore.pod" -}}
{{- $plan := .plan -}}
{{- $place := ternary .values.node .values.controller .onNodes -}}
{{- $sockets := "/var/lib/csi/sockets/pluginproxy" -}}
{{- $own := printf "%s/plugins/%s" $plan.kubelet $plan.driver -}}
{{- $roles := append (ternary .roles list .controls) (ternary "registrar" "liveness" .onNodes) -}}
{{- if .onNodes }}{{ $roles = append $roles "liveness" }}{{ end -}}
{{- $electing := without .roles (ternary "provisioner" "" $plan.perNode) -}}
serviceAccountName: {{ .account | quote }}
automountServiceAccountToken: false
priorityClassName: {{ ternary "system-node-critical" "system-cluster-critical" .onNodes }}
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
  ports:
  - {name: health, containerPort: 9808}
  livenessProbe: # answered by the sidecar, which asks the driver
    httpGet: {path: /healthz, port: health}
    initialDelaySeconds: 10
    periodSeconds: 10
    timeoutSeconds: 3
    failureThreshold: 5
  resources: {{ toJson .values.driver.resources }}
  {{- if .onNodes }}
  securityContext: {privileged: true} # mounts filesystems for pods; nothing else here is privileged
  {{- else }}
  securityContext: {allowPrivilegeEscalation: false, seccompProfile: {type: RuntimeDefault}}
  {{- end }}
  volumeMounts:
  - {name: socket, mountPath: {{ $sockets }}}
  {{- if .onNodes }}
  - {name: pods, mountPath: {{ $plan.kubelet }}/pods, mountPropagation: Bidirectional}
  - {name: plugins, mountPath: {{ $plan.kubelet }}/plugins, mountPropagation: Bidirectional}
  - {name: devices, mountPath: /dev}
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
  resources: {{ toJson .values.sidecar.resources }}
  securityContext:
    runAsUser: 0 # the owner of the driver's socket and of kubelet's folder, without any of root's capabilities
    readOnlyRootFilesystem: true
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]}
    seccompProfile: {type: RuntimeDefault}
  volumeMounts:
  - {name: socket, mountPath: {{ $sockets }}}
  {{- if .onNodes }}
  - {name: registration, mountPath: /registration}
  {{- end }}
  {{- if .controls }}
  - {name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
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
{{- if .controls }}
- name: token # for the sidecar alone: the driver has no business with the API
  projected:
    sources:
    - {serviceAccountToken: {path: token, expirationSeconds: 3607}}
    - {configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}}
    - {downwardAPI: {items: [{path: namespace, fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}]}}
{{- end }}
{{- end -}}
