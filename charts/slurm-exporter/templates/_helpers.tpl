{{/* _helpers.tpl - names, labels and the parts that more than one object has. */}}

{{/* cut so that the longest of our names has 63 bytes */}}
{{- define "slurm-exporter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 48 | trimSuffix "-" -}}
{{- end }}

{{- define "slurm-exporter.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end }}

{{- define "slurm-exporter.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/part-of: slurm-operator
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/component: metrics
{{ include "slurm-exporter.selector" . }}
{{- end }}

{{/* Labels of pods: (the labels of their owner). No version stands in them, so that a new chart alone replaces no pod. */}}
{{- define "slurm-exporter.podLabels" -}}
{{- omit (fromYaml .) "helm.sh/chart" "app.kubernetes.io/version" | toYaml -}}
{{- end }}

{{- define "slurm-exporter.selector" -}}
app.kubernetes.io/name: {{ include "slurm-exporter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Whether the image is the one that the chart of the Slinky project names. It then counts as not given. */}}
{{- define "slurm-exporter.isForeign" -}}
{{- if regexMatch "(^|/)slurm-exporter$" (default "" (default dict .Values.exporter.image).repository) -}}
true
{{- end -}}
{{- end }}

{{- define "slurm-exporter.image" -}}
{{- $image := include "slurm-exporter.isForeign" . | eq "true" | ternary dict (default dict .Values.exporter.image) }}
{{- $ours := printf "%s/slinc" (default "localhost/slinc" .Values.imageRegistry | trimSuffix "/") }}
{{- $digest := (include "slurm-exporter.digests" . | fromYaml).slinc }}
{{- if and $digest (not $image.repository) (not $image.tag) }}
{{- printf "%s@%s" $ours $digest -}}
{{- else }}
{{- printf "%s:%s" (default $ours $image.repository) (default .Chart.AppVersion $image.tag | toString) -}}
{{- end }}
{{- end }}

{{- define "slurm-exporter.server" -}}
{{- default (printf "http://slurm-restapi.%s:6820" (include "slurm-exporter.namespace" .)) .Values.exporter.server -}}
{{- end }}

{{/* where the bridge tells why a pod waits: its metrics, by the Service of the chart slurm-bridge */}}
{{- define "slurm-exporter.bridge" -}}
{{- default (printf "http://slurm-bridge-controllers.%s:8080" (include "slurm-exporter.namespace" .)) .Values.view.bridge -}}
{{- end }}

{{/* whether there is an aggregated API, its Service, and the Secret with its certificate */}}
{{- define "slurm-exporter.serves" -}}
{{- if and .Values.exporter.enabled (or .Values.externalMetrics.enabled .Values.view.enabled .Values.ui.enabled) -}}
true
{{- end -}}
{{- end }}

{{- define "slurm-exporter.api" -}}
{{- printf "%s-api" (include "slurm-exporter.name" .) -}}
{{- end }}

{{- define "slurm-exporter.apiSecret" -}}
{{- default (printf "%s-cert" (include "slurm-exporter.api" .)) .Values.api.existingSecret -}}
{{- end }}

{{/* Whether there are network policies. By default a new installation has them, and an upgrade has them if it had them before. A chart that only
renders (GitOps) cannot tell the two apart, and has none unless a value says so. */}}
{{- define "slurm-exporter.limitsNetwork" -}}
{{- if kindIs "bool" .Values.exporter.networkPolicy.enabled -}}
{{- .Values.exporter.networkPolicy.enabled | ternary "true" "" -}}
{{- else }}
{{- $found := lookup "networking.k8s.io/v1" "NetworkPolicy" (include "slurm-exporter.namespace" .) "" }}
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
{{- define "slurm-exporter.madeCertificate" -}}
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
{{- define "slurm-exporter.metricsSecret" -}}
{{- default (printf "%s-metrics" (include "slurm-exporter.name" .)) .Values.exporter.metricsCertSecret -}}
{{- end }}

{{- define "slurm-exporter.metricsVolume" -}}
- name: metrics-certificate
  secret:
    defaultMode: 0440
    secretName: {{ include "slurm-exporter.metricsSecret" . }}
{{- end }}

{{- define "slurm-exporter.metricsMount" -}}
- name: metrics-certificate
  mountPath: /tmp/k8s-metrics-server/metrics-certs
  readOnly: true
{{- end }}

{{/* how Prometheus reads them: SERVICE.NAMESPACE.svc */}}
{{- define "slurm-exporter.secureEndpoint" -}}
scheme: https
bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
tlsConfig:
  ca: {secret: {name: {{ include "slurm-exporter.metricsSecret" .root }}, key: ca.crt}}
  serverName: {{ .host }}
{{- end }}
