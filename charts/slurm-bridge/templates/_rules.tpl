{{/* _rules.tpl - what our accounts may do: what the program calls, and no more. tests/charts compares the two. */}}

{{/* Whoever plans sees all this, and writes to pods and nodes. */}}
{{- define "slurm-bridge.planRules" -}}
- apiGroups: [""]
  resources: [pods, nodes]
  verbs: [get, list, watch, patch]
- apiGroups: [""]
  resources: [nodes/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [persistentvolumeclaims, persistentvolumes]
  verbs: [list, watch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [daemonsets, replicasets, statefulsets]
  verbs: [list, watch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch]
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [list, watch]
- apiGroups: [leaderworkerset.x-k8s.io]
  resources: [leaderworkersets]
  verbs: [list, watch]
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses, resourceclaims, resourceslices]
  verbs: [list, watch]
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups, workloads]
  verbs: [list, watch]
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [list, watch]
{{- end }}

{{/* Whoever places pods does this as well; the process that gives everything back does not. */}}
{{- define "slurm-bridge.placeRules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [patch]
- apiGroups: [""]
  resources: [persistentvolumes]
  verbs: [get, patch]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [create, get, patch]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims/binding, resourceclaims/status]
  verbs: [patch]
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups]
  verbs: [get]
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups/status]
  verbs: [patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{/* The webhook in pods of its own. */}}
{{- define "slurm-bridge.admission.rules" -}}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch]
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [list, watch]
{{- end }}

{{/* The parameter of the policy. */}}
{{- define "slurm-bridge.lentNodesRules" -}}
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ include "slurm-bridge.lentNodes" . }}]
  verbs: [patch]
{{- end }}

{{/* A right to create cannot be narrowed to a name. */}}
{{- define "slurm-bridge.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ .Values.schedulerConfig.schedulerName }}]
  verbs: [get, update]
{{- end }}
