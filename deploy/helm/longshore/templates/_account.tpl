{{/* The service account of a part, and what it may do. Takes plan, values, account, roles and secrets. */}}
{{- define "longshore.account" -}}
{{- $plan := .plan -}}
{{- $about := dict "account" .account "namespace" $plan.namespace -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .account | quote }}
  namespace: {{ $plan.namespace | quote }}
  labels: {{ toJson $plan.labels }}
automountServiceAccountToken: false # the container that needs it mounts it
{{- if .roles }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .account | quote }}
  labels: {{ toJson $plan.labels }}
rules:
{{- range .roles }}
{{- include (printf "longshore.rights.%s" .) $plan }}
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .account | quote }}
  labels: {{ toJson $plan.labels }}
{{ include "longshore.bound" (merge (dict "kind" "ClusterRole" "role" .account) $about) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .account | quote }}
  namespace: {{ $plan.namespace | quote }}
  labels: {{ toJson $plan.labels }}
rules:
{{- range .roles }}
{{- include (printf "longshore.rights.%s.beside" .) $plan }}
{{- end }}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
{{- $leases := list }}
{{- $plain := regexReplaceAll "[^A-Za-z0-9]" $plan.driver "-" }}
{{- if and (has "provisioner" .roles) (not $plan.perNode) }}{{ $leases = append $leases $plain }}{{ end }}
{{- if has "attacher" .roles }}{{ $leases = append $leases (printf "external-attacher-leader-%s" $plain) }}{{ end }}
{{- if has "resizer" .roles }}{{ $leases = append $leases (printf "external-resizer-%s" $plain) }}{{ end }}
{{- with $leases }}
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: {{ toJson . }}, verbs: [get, update]}
{{- end }}
{{- if has "provisioner" .roles }}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  {{- if not $plan.perNode }}
  resourceNames: [{{ printf "longshore-journal-%s" $plan.driver | quote }}]
  {{- end }}
  verbs: [get, list, patch, watch]
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .account | quote }}
  namespace: {{ $plan.namespace | quote }}
  labels: {{ toJson $plan.labels }}
{{ include "longshore.bound" (merge (dict "kind" "Role" "role" .account) $about) }}
{{- if include "longshore.rights.secrets" .roles }}
{{- $name := printf "%s-secrets" .account }}
{{- $places := dict }}
{{- range .secrets }}{{ $_ := set $places .namespace (append (get $places .namespace | default list) .name) }}{{ end }}
{{- range $place, $names := $places }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name | quote }}
  namespace: {{ $place | quote }}
  labels: {{ toJson $plan.labels }}
rules:
- {apiGroups: [""], resources: [secrets], resourceNames: {{ $names | uniq | sortAlpha | toJson }}, verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name | quote }}
  namespace: {{ $place | quote }}
  labels: {{ toJson $plan.labels }}
{{ include "longshore.bound" (merge (dict "kind" "Role" "role" $name) $about) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "longshore.bound" -}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: {{ .kind }}, name: {{ .role | quote }}}
subjects:
- {kind: ServiceAccount, name: {{ .account | quote }}, namespace: {{ .namespace | quote }}}
{{- end -}}
