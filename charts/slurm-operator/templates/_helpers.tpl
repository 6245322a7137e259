{{/* _helpers.tpl - names, labels and the parts that more than one object has. */}}

{{/* cut so that the longest of our names has 63 bytes */}}
{{- define "slurm-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 48 | trimSuffix "-" -}}
{{- end }}

{{- define "slurm-operator.fullname" -}}
{{- $name := include "slurm-operator.name" . }}
{{- $made := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- default $made .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- end }}

{{- define "slurm-operator.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end }}

{{- define "slurm-operator.webhook.name" -}}
{{- printf "%s-webhook" (include "slurm-operator.name" .) -}}
{{- end }}

{{/* an account that is neither created nor named is the one that every namespace has */}}
{{- define "slurm-operator.account" -}}
{{- $account := .Values.operator.serviceAccount }}
{{- default (default false $account.create | ternary (include "slurm-operator.fullname" .) "default") $account.name -}}
{{- end }}

{{- define "slurm-operator.webhook.account" -}}
{{- $account := .Values.webhook.serviceAccount }}
{{- default (default false $account.create | ternary (printf "%s-webhook" (include "slurm-operator.fullname" .)) "default") $account.name -}}
{{- end }}

{{/* labels of one component: (dict "root" $ "name" NAME "component" COMPONENT) */}}
{{- define "slurm-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/part-of: slurm-operator
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/component: {{ .component }}
{{ include "slurm-operator.selector" . }}
{{- end }}

{{/* Labels of pods: (the labels of their owner). No version stands in them, so that a new chart alone replaces no pod. */}}
{{- define "slurm-operator.podLabels" -}}
{{- omit (fromYaml .) "helm.sh/chart" "app.kubernetes.io/version" | toYaml -}}
{{- end }}

{{- define "slurm-operator.selector" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "slurm-operator.operator.labels" -}}
{{- include "slurm-operator.labels" (dict "root" . "name" (include "slurm-operator.name" .) "component" "operator") -}}
{{- end }}

{{- define "slurm-operator.operator.selector" -}}
{{- include "slurm-operator.selector" (dict "root" . "name" (include "slurm-operator.name" .)) -}}
{{- end }}

{{- define "slurm-operator.webhook.labels" -}}
{{- include "slurm-operator.labels" (dict "root" . "name" (include "slurm-operator.webhook.name" .) "component" "webhook") -}}
{{- end }}

{{/* the pods that serve the webhook */}}
{{- define "slurm-operator.webhook.selector" -}}
{{- if .Values.webhook.separate -}}
{{- include "slurm-operator.selector" (dict "root" . "name" (include "slurm-operator.webhook.name" .)) -}}
{{- else -}}
{{- include "slurm-operator.operator.selector" . -}}
{{- end -}}
{{- end }}

{{/* whether there is a webhook at all, and whether the operator serves it */}}
{{- define "slurm-operator.admits" -}}
{{- if and .Values.webhook.enabled (or .Values.webhook.separate .Values.operator.enabled) -}}
true
{{- end -}}
{{- end }}

{{/* Names of namespaces, from a list with commas, as YAML. */}}
{{- define "slurm-operator.split" -}}
{{- $names := list }}
{{- range splitList "," . }}
{{- if trim . }}{{ $names = append $names (trim .) }}{{ end }}
{{- end }}
{{- toYaml (uniq $names) -}}
{{- end }}

{{/* Whether an image, a mapping or a string, is one of the Slinky operator. Its values then count as not given. */}}
{{- define "slurm-operator.isForeign" -}}
{{- $image := kindIs "string" . | ternary . (default "" (get (kindIs "map" . | ternary . dict) "repository")) -}}
{{- if regexMatch "(^|/)slurm-operator(-webhook)?(:[^/]*)?(@.*)?$" $image -}}
true
{{- end -}}
{{- end }}

{{/* (dict "root" $ "image" IMAGE) */}}
{{- define "slurm-operator.image" -}}
{{- $image := include "slurm-operator.isForeign" .image | eq "true" | ternary dict .image }}
{{- if kindIs "string" $image }}
{{- $image -}}
{{- else }}
{{- $repository := default (printf "%s/slinc" (default "localhost/slinc" .root.Values.imageRegistry | trimSuffix "/")) $image.repository }}
{{- $digest := (include "slurm-operator.digests" .root | fromYaml).slinc }}
{{- if $image.digest }}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else if and $digest (not $image.repository) (not $image.tag) }}
{{- printf "%s@%s" $repository $digest -}}
{{- else }}
{{- printf "%s:%s" $repository (default .root.Chart.AppVersion $image.tag | toString) -}}
{{- end }}
{{- end }}
{{- end }}

{{/* one bound: the API server refuses two */}}
{{- define "slurm-operator.bound" -}}
{{- if not (kindIs "invalid" .maxUnavailable) -}}
maxUnavailable: {{ .maxUnavailable }}
{{- else -}}
minAvailable: {{ .minAvailable }}
{{- end -}}
{{- end }}

{{/* where a pod may run, and as whom: (dict "root" $ "values" COMPONENT-VALUES) */}}
{{- define "slurm-operator.pod" -}}
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- range $key := list "nodeSelector" "affinity" "tolerations" "topologySpreadConstraints" }}
{{- with get $.values $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
securityContext:
  {{- $restricted := dict "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532 "fsGroup" 65532 "seccompProfile" (dict "type" "RuntimeDefault") }}
  {{- toYaml (mergeOverwrite $restricted (deepCopy (default dict .values.podSecurityContext))) | nindent 2 }}
{{- end }}

{{/* what every container of ours has: COMPONENT-VALUES */}}
{{- define "slurm-operator.container" -}}
livenessProbe:
  httpGet:
    path: /healthz
    port: health
  initialDelaySeconds: 15
readinessProbe:
  httpGet:
    path: /readyz
    port: health
  periodSeconds: 2
{{- with .resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- $restricted := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) }}
  {{- toYaml (mergeOverwrite $restricted (deepCopy (default dict .securityContext))) | nindent 2 }}
{{- end }}

{{/* A pod that ends answers until no endpoint names it any more. */}}
{{- define "slurm-operator.goodbye" -}}
{{- if semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version -}}
lifecycle:
  preStop:
    sleep:
      seconds: 3
{{- end }}
{{- end }}

{{/* where metrics are served: COMPONENT-VALUES */}}
{{- define "slurm-operator.metricsAddress" -}}
{{- if eq (int .metricsPort) 0 -}}
0
{{- else -}}
:{{ int .metricsPort }}
{{- end -}}
{{- end }}

{{- define "slurm-operator.certificateSecret" -}}
{{- default .Values.certManager.secretName .Values.webhook.existingSecret -}}
{{- end }}

{{- define "slurm-operator.certificateVolume" -}}
- name: certificates
  secret:
    defaultMode: 0440
    secretName: {{ include "slurm-operator.certificateSecret" . }}
{{- end }}

{{- define "slurm-operator.certificateMount" -}}
- name: certificates
  mountPath: /tmp/k8s-webhook-server/serving-certs
  readOnly: true
{{- end }}

{{/* a time such as 43800h0m0s in seconds */}}
{{- define "slurm-operator.seconds" -}}
{{- $time := . }}
{{- $sum := 0 }}
{{- range $unit, $seconds := dict "h" 3600 "m" 60 "s" 1 }}
{{- $sum = regexFind (print "[0-9]+" $unit) $time | trimSuffix $unit | int64 | mul $seconds | add $sum }}
{{- end }}
{{- $sum -}}
{{- end }}

{{/* Whether certificates come from cert-manager. A cluster that can be asked and does not have it gets them from the chart; tools that only
render are not able to ask. */}}
{{- define "slurm-operator.usesCertManager" -}}
{{- if .Values.certManager.enabled }}
{{- if or (.Capabilities.APIVersions.Has "cert-manager.io/v1") (not (lookup "v1" "Namespace" "" "kube-system")) -}}
true
{{- end -}}
{{- end -}}
{{- end }}

{{/* Whether there are network policies. By default a new installation has them, and an upgrade has them if it had them before. A chart that only
renders (GitOps) cannot tell the two apart, and has none unless a value says so. */}}
{{- define "slurm-operator.limitsNetwork" -}}
{{- if kindIs "bool" .Values.networkPolicy.enabled -}}
{{- .Values.networkPolicy.enabled | ternary "true" "" -}}
{{- else }}
{{- $found := lookup "networking.k8s.io/v1" "NetworkPolicy" (include "slurm-operator.namespace" .) "" }}
{{- $limits := and $found .Release.IsInstall }}
{{- range (default dict $found).items }}
{{- if and (eq (default "" (get (default dict .metadata.annotations) "meta.helm.sh/release-name")) $.Release.Name) (eq (get (default dict .metadata.labels) "app.kubernetes.io/managed-by") "Helm") }}
{{- $limits = true }}
{{- end }}
{{- end }}
{{- if $limits }}true{{ end -}}
{{- end }}
{{- end }}

{{/* The certificate that the chart makes, as the data of its Secret and the time at which it was made: (dict "secret" SECRET "name" SERVICE
"namespace" NAMESPACE). It is good for ten years. An upgrade keeps it for five and then makes another, whose ca.crt has the CA before it as well:
pods serve by the old pair until they see the new one. */}}
{{- define "slurm-operator.madeCertificate" -}}
{{- $kept := .secret.data | default dict }}
{{- $made := dig "metadata" "annotations" "slinc.slurm.net/certificate-made" (dig "metadata" "creationTimestamp" "" .secret) .secret }}
{{- $age := 0 }}
{{- if $made }}{{ $age = sub (now | unixEpoch | int64) (toDate "2006-01-02T15:04:05Z07:00" $made | unixEpoch | int64) }}{{ end }}
{{- $whole := and (get $kept "ca.crt") (get $kept "tls.crt") (get $kept "tls.key") }}
{{- if or (not $whole) (gt $age 157680000) }}
{{- $authority := genCA (printf "%s-ca" .name) 3650 }}
{{- $pair := genSignedCert .name nil (list .name (printf "%s.%s" .name .namespace) (printf "%s.%s.svc" .name .namespace)) 3650 $authority }}
{{- $before := regexFind "-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----" (get $kept "ca.crt" | b64dec) }}
{{- $ca := $authority.Cert }}
{{- if $before }}{{ $ca = printf "%s%s\n" $ca $before }}{{ end }}
{{- $kept = dict "ca.crt" (b64enc $ca) "tls.crt" (b64enc $pair.Cert) "tls.key" (b64enc $pair.Key) }}
{{- $made = now | date "2006-01-02T15:04:05Z07:00" }}
{{- end }}
{{- toYaml (dict "made" $made "data" (pick $kept "ca.crt" "tls.crt" "tls.key")) }}
{{- end }}

{{/* The certificate of secure metrics: its Secret, and the files in a pod. */}}
{{- define "slurm-operator.metricsSecret" -}}
{{- default (printf "%s-metrics" (include "slurm-operator.name" .)) .Values.metricsCertSecret -}}
{{- end }}

{{- define "slurm-operator.metricsVolume" -}}
- name: metrics-certificate
  secret:
    defaultMode: 0440
    secretName: {{ include "slurm-operator.metricsSecret" . }}
{{- end }}

{{- define "slurm-operator.metricsMount" -}}
- name: metrics-certificate
  mountPath: /tmp/k8s-metrics-server/metrics-certs
  readOnly: true
{{- end }}

{{/* how Prometheus reads them: SERVICE.NAMESPACE.svc */}}
{{- define "slurm-operator.secureEndpoint" -}}
scheme: https
bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
tlsConfig:
  ca: {secret: {name: {{ include "slurm-operator.metricsSecret" .root }}, key: ca.crt}}
  serverName: {{ .host }}
{{- end }}
