{{/* _webhook.tpl - which requests reach the webhook. The API server decides it, so that all others are untouched by our outage. */}}

{{/* Namespaces that are never managed: ours would wait for itself. */}}
{{- define "slurm-bridge.spared" -}}
{{- list "kube-system" (include "slurm-bridge.namespace" .) | uniq | toYaml -}}
{{- end }}

{{/* the selector of the managed namespaces; empty when there are none */}}
{{- define "slurm-bridge.managed" -}}
{{- $spared := include "slurm-bridge.spared" . | fromYamlArray }}
{{- with .Values.admission.managedNamespaceSelector }}
{{- $rule := dict "key" "kubernetes.io/metadata.name" "operator" "NotIn" "values" $spared }}
{{- $selector := deepCopy . }}
{{- toYaml (set $selector "matchExpressions" (append (default list $selector.matchExpressions) $rule)) }}
{{- else }}
{{- with without (default list .Values.admission.managedNamespaces) "kube-system" (include "slurm-bridge.namespace" $) }}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: In
    values:
      {{- toYaml . | nindent 6 }}
{{- end }}
{{- end }}
{{- end }}

{{/* all others; with a selector of the user's both webhooks may be called, which does no harm */}}
{{- define "slurm-bridge.elsewhere" -}}
{{- $names := include "slurm-bridge.spared" . | fromYamlArray }}
{{- if not .Values.admission.managedNamespaceSelector }}
{{- $names = concat $names (default list .Values.admission.managedNamespaces) | uniq }}
{{- end -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values:
      {{- toYaml $names | nindent 6 }}
{{- end }}

{{/* Of updates only those that a rule of ours looks at; so a finalizer can always go. Never the bridge's own. */}}
{{- define "slurm-bridge.matters" -}}
- name: not-by-the-bridge
  expression: request.userInfo.username != "{{ include "slurm-bridge.user" . }}"
- name: something-to-check
  expression: >-
    request.operation == "CREATE" || request.?subResource.orValue("") == "resize" ||
    object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({}) ||
    object.metadata.?annotations.orValue({}) != oldObject.metadata.?annotations.orValue({})
{{- end }}

{{- define "slurm-bridge.names-us" -}}
- name: names-our-scheduler
  expression: object.spec.schedulerName == "{{ .Values.schedulerConfig.schedulerName }}"
{{- end }}

{{/* the webhooks of one configuration: (dict "root" $ "ca" BASE64 "path" PATH "operations" LIST "resources" LIST "checks" BOOL) */}}
{{- define "slurm-bridge.webhooks" -}}
{{- $managed := include "slurm-bridge.managed" .root | trim }}
{{- $matters := .checks | ternary (include "slurm-bridge.matters" .root) "" }}
webhooks:
  {{- if $managed }}
  - name: pods.slinky.slurm.net
    namespaceSelector:
      {{- $managed | nindent 6 }}
    {{- with $matters }}
    matchConditions:
      {{- . | nindent 6 }}
    {{- end }}
    failurePolicy: Fail
    {{- include "slurm-bridge.call" . | nindent 4 }}
  {{- end }}
  {{- /* Such a pod the bridge itself makes ready, and holds back if it is wrong: nobody need wait for the webhook. */}}
  - name: named.pods.slinky.slurm.net
    namespaceSelector:
      {{- include "slurm-bridge.elsewhere" .root | nindent 6 }}
    matchConditions:
      {{- include "slurm-bridge.names-us" .root | nindent 6 }}
      {{- with $matters }}
      {{- . | nindent 6 }}
      {{- end }}
    failurePolicy: Ignore
    {{- include "slurm-bridge.call" . | nindent 4 }}
  {{- if and $managed (not .checks) }}
  # Who made it. Without that word a pod of theirs would be of whoever made the owner that they name.
  - name: workloads.slinky.slurm.net
    namespaceSelector:
      {{- $managed | nindent 6 }}
    failurePolicy: Fail
    {{- include "slurm-bridge.call" (merge (dict "workloads" true) .) | nindent 4 }}
  {{- end }}
{{- end }}

{{/* what pods have their creator from */}}
{{- define "slurm-bridge.workloads" -}}
apiGroups: [batch, apps, jobset.x-k8s.io, leaderworkerset.x-k8s.io, scheduling.k8s.io, scheduling.x-k8s.io]
apiVersions: ["*"]
resources: [jobs, statefulsets, replicasets, jobsets, leaderworkersets, podgroups]
{{- end }}

{{- define "slurm-bridge.call" -}}
rules:
  {{- if .workloads }}
  - {{- include "slurm-bridge.workloads" .root | nindent 4 }}
  {{- else }}
  - apiGroups: [""]
    apiVersions: [v1]
    resources: {{ toJson .resources }}
  {{- end }}
    operations: {{ toJson .operations }}
    scope: Namespaced
clientConfig:
  {{- with .ca }}
  caBundle: {{ . }}
  {{- end }}
  service:
    name: {{ include "slurm-bridge.admission.name" .root }}
    namespace: {{ include "slurm-bridge.namespace" .root }}
    path: {{ .path }}
    port: 443
admissionReviewVersions: [v1]
sideEffects: None
timeoutSeconds: 10
{{- end }}
