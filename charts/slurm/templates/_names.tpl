{{/* _names.tpl - names, labels and metadata of our objects. */}}

{{/* F of the documentation: what all names begin with */}}
{{- define "slurm.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "slurm.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end }}

{{/* Labels of pods: no version of the chart stands in them, so that a new chart replaces no pod. */}}
{{- define "slurm.podLabels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: slurm
{{- end }}

{{- define "slurm.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{ include "slurm.podLabels" . }}
{{- end }}

{{/* name, namespace and labels of an object that is no custom resource: (dict "root" $ "name" NAME) */}}
{{- define "slurm.metadata" -}}
name: {{ .name }}
namespace: {{ include "slurm.namespace" .root }}
labels:
  {{- include "slurm.labels" .root | nindent 2 }}
{{- end }}

{{/* A custom resource: (dict "root" $ "kind" KIND "name" NAME "metadata" OF-THE-VALUES "spec" SPEC). The user's labels and annotations go
on the object, and on the pods of a spec that has a template. */}}
{{- define "slurm.object" -}}
{{- $user := default dict .metadata }}
{{- $labels := merge dict (default dict $user.labels) (include "slurm.labels" .root | fromYaml) }}
{{- $metadata := dict "name" .name "namespace" (include "slurm.namespace" .root) "labels" $labels }}
{{- $pods := dict "labels" (merge dict (default dict $user.labels) (include "slurm.podLabels" .root | fromYaml)) }}
{{- with $user.annotations }}
{{- $_ := set $metadata "annotations" . }}
{{- $_ := set $pods "annotations" . }}
{{- end }}
{{- if hasKey .spec "template" }}
{{- $_ := set .spec.template "metadata" $pods }}
{{- end }}
{{- toYaml (dict "apiVersion" "slinky.slurm.net/v1beta1" "kind" .kind "metadata" $metadata "spec" .spec) }}
{{- end }}

{{/* The Secret that holds a key: (dict "root" $ "key" slurmKey|jwtKey "suffix" auth-slurm "file" slurm.key) */}}
{{- define "slurm.keyRef" -}}
{{- $given := default dict (get .root.Values .key).secretRef }}
name: {{ default (printf "%s-%s" (include "slurm.fullname" .root) .suffix) $given.name }}
key: {{ default .file $given.key }}
{{- end }}

{{/* the references that Controller and Accounting share */}}
{{- define "slurm.keyRefs" -}}
slurmKeyRef:
  {{- include "slurm.keyRef" (dict "root" . "key" "slurmKey" "suffix" "auth-slurm" "file" "slurm.key") | nindent 2 }}
jwtKeyRef:
  {{- include "slurm.keyRef" (dict "root" . "key" "jwtKey" "suffix" "auth-jwt" "file" "jwt.key") | nindent 2 }}
{{- if .Values.jwksKeys.enabled }}
{{- $given := default dict .Values.jwksKeys.configMapRef }}
jwksKeyRef:
  name: {{ default (printf "%s-auth-jwks" (include "slurm.fullname" .)) $given.name }}
  key: {{ default "jwks.json" $given.key }}
{{- end }}
{{- end }}

{{- define "slurm.sssdRef" -}}
{{- $given := default dict .Values.sssd.secretRef }}
name: {{ default (printf "%s-sssd-conf" (include "slurm.fullname" .)) $given.name }}
key: {{ default "sssd.conf" $given.key }}
{{- end }}

{{/* Whether there are network policies. By default a new installation has them, and an upgrade has them if it had them before. A chart that only
renders (GitOps) cannot tell the two apart, and has none unless a value says so. */}}
{{- define "slurm.limitsNetwork" -}}
{{- if kindIs "bool" (default dict .Values.networkPolicy).enabled -}}
{{- (default dict .Values.networkPolicy).enabled | ternary "true" "" -}}
{{- else }}
{{- $found := lookup "networking.k8s.io/v1" "NetworkPolicy" (include "slurm.namespace" .) "" }}
{{- $limits := and $found .Release.IsInstall }}
{{- range (default dict $found).items }}
{{- if and (eq (default "" (get (default dict .metadata.annotations) "meta.helm.sh/release-name")) $.Release.Name) (eq (get (default dict .metadata.labels) "app.kubernetes.io/managed-by") "Helm") }}
{{- $limits = true }}
{{- end }}
{{- end }}
{{- if $limits }}true{{ end -}}
{{- end }}
{{- end }}
