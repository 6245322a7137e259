{{/* _webhook.tpl - which requests reach the webhook. The API server decides it, so that all others are untouched by our outage. */}}

{{/* the selector of the namespaces */}}
{{- define "slurm-operator.checked" -}}
{{- with .Values.webhook.validating.namespaceSelector }}
{{- toYaml . }}
{{- else -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: [kube-system, kube-public, kube-node-lease]
  {{- with include "slurm-operator.split" .Values.webhook.namespaces | fromYamlArray }}
  - key: kubernetes.io/metadata.name
    operator: In
    values: {{ toJson . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Of updates only those of the spec; so a finalizer can always go. */}}
{{- define "slurm-operator.matters" -}}
- name: not-being-deleted
  expression: "!has(object.metadata.deletionTimestamp)"
- name: spec-is-new
  expression: request.operation == "CREATE" || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec
{{- with .Values.webhook.validating.matchConditions }}
{{ toYaml . }}
{{- end }}
{{- end }}
