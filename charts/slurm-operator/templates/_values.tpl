{{/* _values.tpl - values that are missing, and values in the wrong place. Every template includes "slurm-operator.values" first. */}}

{{/* What the chart of the Slinky project does not have. `helm upgrade --reuse-values` from that chart brings its values in place of our
defaults, so that these are missing. */}}
{{- define "slurm-operator.ownDefaults" -}}
imageRegistry: localhost/slinc
serviceMonitor:
  enabled: false
  labels: {}
  interval: 30s
metricsCertSecret: ""
networkPolicy:
  enabled: null
  from: []
webhook:
  separate: true
  existingSecret: ""
  caBundle: ""
testImage: busybox
{{- end }}

{{/* Values in the wrong place, and where they belong. The schema accepts them, so that the error can say it. */}}
{{- define "slurm-operator.places" -}}
replicas: operator.replicas or webhook.replicas
image: operator.image or webhook.image
serviceAccount: operator.serviceAccount or webhook.serviceAccount
nodeSelector: operator.nodeSelector or webhook.nodeSelector
affinity: operator.affinity or webhook.affinity
tolerations: operator.tolerations or webhook.tolerations
topologySpreadConstraints: operator.topologySpreadConstraints or webhook.topologySpreadConstraints
podSecurityContext: operator.podSecurityContext or webhook.podSecurityContext
securityContext: operator.securityContext or webhook.securityContext
resources: operator.resources or webhook.resources
pdb: operator.pdb or webhook.pdb
logLevel: operator.logLevel or webhook.logLevel
healthPort: operator.healthPort or webhook.healthPort
metricsPort: operator.metricsPort or webhook.metricsPort
namespaces: operator.namespaces or webhook.namespaces
timeoutSeconds: webhook.timeoutSeconds
serverPort: webhook.serverPort
validating: webhook.validating
mutating: webhook.mutating
podsBinding: webhook.podsBinding
operator.imagePullSecrets: imagePullSecrets
operator.priorityClassName: priorityClassName
webhook.imagePullSecrets: imagePullSecrets
webhook.priorityClassName: priorityClassName
operator.propagatedNodeConditions: propagatedNodeConditions
webhook.certManager: certManager
{{- end }}

{{- define "slurm-operator.values" -}}
{{- range $wrong, $right := include "slurm-operator.places" . | fromYaml }}
{{- $path := splitList "." $wrong }}
{{- $block := eq (len $path) 1 | ternary $.Values (default dict (get $.Values (first $path))) }}
{{- if hasKey $block (last $path) }}
{{- fail (printf "%s is in the wrong place: it belongs to %s" $wrong $right) }}
{{- end }}
{{- end }}
{{- include "slurm-operator.fill" (dict "into" .Values "from" (include "slurm-operator.ownDefaults" . | fromYaml)) }}
{{- end }}

{{/* Sets what is missing: (dict "into" MAP "from" MAP) */}}
{{- define "slurm-operator.fill" -}}
{{- $into := .into }}
{{- range $key, $value := .from }}
{{- if not (hasKey $into $key) }}
{{- $_ := set $into $key $value }}
{{- else if and (kindIs "map" $value) (kindIs "map" (get $into $key)) }}
{{- include "slurm-operator.fill" (dict "into" (get $into $key) "from" $value) }}
{{- end }}
{{- end }}
{{- end }}
