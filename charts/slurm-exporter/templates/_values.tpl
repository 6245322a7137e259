{{/* _values.tpl - values that are missing, and values in the wrong place. Every template includes "slurm-exporter.values" first. */}}

{{/* What the chart of the Slinky project does not have. `helm upgrade --reuse-values` from that chart brings its values in place of our
defaults, so that these are missing. */}}
{{- define "slurm-exporter.ownDefaults" -}}
imageRegistry: localhost/slinc
exporter:
  server: ""
  serverCa: ""
  jwtKey:
    name: ""
    key: jwt.key
    user: slurm
  jobListSeconds: 30
  staleSeconds: 60
  maxNames: 200
  userLabels: auto
  legacyPath: ""
  metricsSecure: false
  metricsCertSecret: ""
  nodeSelector: {}
  pdb:
    enabled: false
    minAvailable: 1
    maxUnavailable: null
  serviceMonitor:
    labels: {}
  networkPolicy:
    enabled: null
    from: []
externalMetrics:
  enabled: false
view:
  enabled: false
  bridge: ""
  bridgeCaSecret: ""
api:
  existingSecret: ""
  caBundle: ""
ui:
  enabled: false
  port: 0
  openPort: 0
prometheusRule:
  enabled: true
  labels: {}
{{- end }}

{{/* Values in the wrong place, and where they belong. The schema accepts them, so that the error can say it. */}}
{{- define "slurm-exporter.places" -}}
image: exporter.image
imagePullPolicy: exporter.imagePullPolicy
replicas: exporter.replicas
server: exporter.server
serverCa: exporter.serverCa
secretName: exporter.secretName
jwtKey: exporter.jwtKey
logLevel: exporter.logLevel
cacheFrequency: exporter.cacheFrequency
nodeSelector: exporter.nodeSelector
tolerations: exporter.tolerations
affinity: exporter.affinity
resources: exporter.resources
pdb: exporter.pdb
serviceMonitor: exporter.serviceMonitor
networkPolicy: exporter.networkPolicy
exporter.imagePullSecrets: imagePullSecrets
exporter.externalMetrics: externalMetrics
exporter.view: view
exporter.api: api
exporter.grafana: grafana
{{- end }}

{{- define "slurm-exporter.values" -}}
{{- range $wrong, $right := include "slurm-exporter.places" . | fromYaml }}
{{- $path := splitList "." $wrong }}
{{- $block := eq (len $path) 1 | ternary $.Values (default dict (get $.Values (first $path))) }}
{{- if hasKey $block (last $path) }}
{{- fail (printf "%s is in the wrong place: it belongs to %s" $wrong $right) }}
{{- end }}
{{- end }}
{{- include "slurm-exporter.fill" (dict "into" .Values "from" (include "slurm-exporter.ownDefaults" . | fromYaml)) }}
{{- end }}

{{/* Sets what is missing: (dict "into" MAP "from" MAP) */}}
{{- define "slurm-exporter.fill" -}}
{{- $into := .into }}
{{- range $key, $value := .from }}
{{- if not (hasKey $into $key) }}
{{- $_ := set $into $key $value }}
{{- else if and (kindIs "map" $value) (kindIs "map" (get $into $key)) }}
{{- include "slurm-exporter.fill" (dict "into" (get $into $key) "from" $value) }}
{{- end }}
{{- end }}
{{- end }}
