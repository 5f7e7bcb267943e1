{{/* What each role may do, computed from its rules: written by `make record`, never by hand. */}}

{{- define "longshore.rights.provisioner" }}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
- {apiGroups: [""], resources: [persistentvolumeclaims], verbs: [get, list, patch, watch]}
- {apiGroups: [""], resources: [persistentvolumes], verbs: [create, delete, get, list, patch, watch]}
- {apiGroups: [storage.k8s.io], resources: [storageclasses], verbs: [list, watch]}
- {apiGroups: [storage.k8s.io], resources: [volumeattachments], verbs: [list, watch]}
{{- if .attributesClasses }}
- {apiGroups: [storage.k8s.io], resources: [volumeattributesclasses], verbs: [list, watch]}
{{- end }}
{{- if .otherNamespaces }}
- {apiGroups: [gateway.networking.k8s.io], resources: [referencegrants], verbs: [list, watch]}
{{- end }}
{{- if .snapshots }}
- {apiGroups: [snapshot.storage.k8s.io], resources: [volumesnapshotcontents], verbs: [list, watch]}
- {apiGroups: [snapshot.storage.k8s.io], resources: [volumesnapshots], verbs: [list, patch, watch]}
{{- end }}
{{- if .topology }}
- {apiGroups: [""], resources: [nodes], verbs: [list, watch]}
- {apiGroups: [storage.k8s.io], resources: [csinodes], verbs: [list, watch]}
{{- end }}
{{- end }}

{{- define "longshore.rights.provisioner.beside" }}
{{- if .capacity }}
- {apiGroups: [""], resources: [pods], verbs: [get]}
- {apiGroups: [storage.k8s.io], resources: [csistoragecapacities], verbs: [create, delete, list, patch, watch]}
{{- end }}
{{- end }}

{{- define "longshore.rights.attacher" }}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
- {apiGroups: [""], resources: [nodes], verbs: [list, watch]}
- {apiGroups: [""], resources: [persistentvolumes], verbs: [list, patch, watch]}
- {apiGroups: [storage.k8s.io], resources: [csinodes], verbs: [list, watch]}
- {apiGroups: [storage.k8s.io], resources: [volumeattachments], verbs: [get, list, patch, watch]}
- {apiGroups: [storage.k8s.io], resources: [volumeattachments/status], verbs: [patch]}
{{- end }}

{{- define "longshore.rights.attacher.beside" }}
{{- end }}

{{- define "longshore.rights.resizer" }}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
- {apiGroups: [""], resources: [persistentvolumeclaims], verbs: [list, watch]}
- {apiGroups: [""], resources: [persistentvolumeclaims/status], verbs: [patch]}
- {apiGroups: [""], resources: [persistentvolumes], verbs: [list, patch, watch]}
- {apiGroups: [""], resources: [pods], verbs: [list, watch]}
{{- if .attributesClasses }}
- {apiGroups: [storage.k8s.io], resources: [volumeattributesclasses], verbs: [list, watch]}
{{- end }}
{{- end }}

{{- define "longshore.rights.resizer.beside" }}
{{- end }}

{{- define "longshore.rights.controllers.binding" }}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
- {apiGroups: [""], resources: [persistentvolumeclaims], verbs: [create, get, list, patch, watch]}
- {apiGroups: [""], resources: [persistentvolumeclaims/status], verbs: [patch]}
- {apiGroups: [""], resources: [persistentvolumes], verbs: [get, list, patch, watch]}
- {apiGroups: [""], resources: [persistentvolumes/status], verbs: [patch]}
- {apiGroups: [""], resources: [pods], verbs: [list, watch]}
- {apiGroups: [storage.k8s.io], resources: [storageclasses], verbs: [list, watch]}
- {apiGroups: [storage.k8s.io], resources: [volumeattributesclasses], verbs: [list, patch, watch]}
{{- end }}

{{- define "longshore.rights.controllers.attachdetach" }}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
- {apiGroups: [""], resources: [nodes], verbs: [get, list, patch, watch]}
- {apiGroups: [""], resources: [nodes/status], verbs: [patch]}
- {apiGroups: [""], resources: [persistentvolumeclaims], verbs: [list, watch]}
- {apiGroups: [""], resources: [persistentvolumes], verbs: [list, watch]}
- {apiGroups: [""], resources: [pods], verbs: [list, watch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get]}
- {apiGroups: [storage.k8s.io], resources: [csidrivers], verbs: [list, watch]}
- {apiGroups: [storage.k8s.io], resources: [csinodes], verbs: [get, list, watch]}
- {apiGroups: [storage.k8s.io], resources: [storageclasses], verbs: [list, watch]}
- {apiGroups: [storage.k8s.io], resources: [volumeattachments], verbs: [create, delete, list, patch, watch]}
{{- end }}

{{- define "longshore.rights.controllers.scheduler" }}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
- {apiGroups: [""], resources: [nodes], verbs: [list, watch]}
- {apiGroups: [""], resources: [persistentvolumeclaims], verbs: [list, patch, watch]}
- {apiGroups: [""], resources: [persistentvolumes], verbs: [list, patch, watch]}
- {apiGroups: [""], resources: [pods], verbs: [list, watch]}
- {apiGroups: [""], resources: [pods/binding], verbs: [create]}
- {apiGroups: [""], resources: [pods/status], verbs: [patch]}
- {apiGroups: [storage.k8s.io], resources: [csidrivers], verbs: [list, watch]}
- {apiGroups: [storage.k8s.io], resources: [csinodes], verbs: [list, watch]}
- {apiGroups: [storage.k8s.io], resources: [csistoragecapacities], verbs: [list, watch]}
- {apiGroups: [storage.k8s.io], resources: [storageclasses], verbs: [list, watch]}
- {apiGroups: [storage.k8s.io], resources: [volumeattachments], verbs: [list, watch]}
{{- end }}

{{- define "longshore.rights.controllers.nodelifecycle" }}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
- {apiGroups: [""], resources: [nodes], verbs: [get, list, patch, watch]}
- {apiGroups: [""], resources: [nodes/status], verbs: [patch]}
- {apiGroups: [""], resources: [pods], verbs: [delete, list, watch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch]}
{{- end }}

{{- define "longshore.rights.secrets" }}{{ if or (has "provisioner" .) (has "attacher" .) (has "resizer" .) }}true{{ end }}{{- end }}
