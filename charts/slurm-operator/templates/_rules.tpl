{{/* _rules.tpl - what our accounts may do: what the program calls, and no more. tests/charts compares the two. */}}

{{/* The operator, in the namespaces of its custom resources. */}}
{{- define "slurm-operator.rules" -}}
- apiGroups: [slinky.slurm.net]
  resources: [controllers, accountings, restapis, loginsets, nodesets, tokens]
  verbs: [get, list, watch]
- apiGroups: [slinky.slurm.net]
  resources: [controllers/status, accountings/status, restapis/status, loginsets/status, nodesets/status, tokens/status]
  verbs: [patch]
{{- /* Children block the deletion of their owner, which some clusters allow only to whoever may change its finalizers. */}}
- apiGroups: [slinky.slurm.net]
  resources: [controllers/finalizers, accountings/finalizers, restapis/finalizers, loginsets/finalizers, nodesets/finalizers, tokens/finalizers]
  verbs: [update]
- apiGroups: [slinky.slurm.net]
  resources: [nodesets]
  verbs: [patch]
- apiGroups: [""]
  resources: [configmaps, services]
  verbs: [get, list, watch, create, patch]
{{- /* Secrets are read by the names that custom resources give, never listed. */}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, patch]
- apiGroups: [""]
  resources: [services]
  verbs: [delete]
- apiGroups: [""]
  resources: [pods, persistentvolumeclaims]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch]
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [monitoring.coreos.com]
  resources: [servicemonitors]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{/* Nodes and definitions belong to no namespace. */}}
{{- define "slurm-operator.nodeRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get]
{{- end }}

{{/* The webhook in pods of its own. */}}
{{- define "slurm-operator.webhook.rules" -}}
- apiGroups: [""]
  resources: [configmaps, persistentvolumeclaims]
  verbs: [get]
{{- end }}

{{/* A right to create cannot be narrowed to a name. */}}
{{- define "slurm-operator.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [slurm-operator]
  verbs: [get, update]
{{- end }}

{{/* A role and its binding: (dict "root" $ "account" NAME "labels" LABELS "ns" NAMESPACE-OR-EMPTY "name" NAME "rules" RULES) */}}
{{- define "slurm-operator.role" -}}
{{- $kind := empty .ns | ternary "ClusterRole" "Role" }}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ .name }}
  {{- with .ns }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- .labels | nindent 4 }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .ns }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- .labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ include "slurm-operator.namespace" .root }}
{{- end }}
