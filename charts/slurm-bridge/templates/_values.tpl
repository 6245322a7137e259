{{/* _values.tpl - values that are missing, and values in the wrong place. Every template includes "slurm-bridge.values" first. */}}

{{/* What the chart of the Slinky project does not have. `helm upgrade --reuse-values` from that chart brings its values in place of our
defaults, so that these are missing. */}}
{{- define "slurm-bridge.ownDefaults" -}}
imageRegistry: localhost/slinc
serviceMonitor:
  enabled: false
  labels: {}
  interval: 30s
metricsSecure: false
metricsCertSecret: ""
networkPolicy:
  enabled: null
  from: []
trustAnnotations: null
nodePolicy:
  mode: null
  namespaces: [kube-system]
  users: ["system:kube-scheduler"]
  kubeletKeys: []
imagePullSecrets: []
sharedConfig:
  slurmRestCa: ""
  slurmJwtKey:
    name: ""
    key: jwt_hs256.key
  slurmToken:
    create: null
    jwtKeyRef:
      name: slurm-auth-jwt
      key: jwt.key
    lifetime: 1h
bridgeConfig: {}
markKey:
  existingSecret: ""
scheduler:
  observeOnly: false
  prologPort: 0
admission:
  separate: false
  existingSecret: ""
  caBundle: ""
dra:
  enabled: false
  image:
    repository: ""
    tag: ""
    pullPolicy: IfNotPresent
  kubeletRoot: /var/lib/kubelet
  cdiRoot: /var/run/cdi
  maxUnavailable: 1
  priorityClassName: system-node-critical
  resources: {}
  nodeSelector: {}
  affinity: {}
  tolerations:
    - operator: Exists
agent:
  enabled: false
  image:
    repository: ""
    tag: ""
    pullPolicy: IfNotPresent
  slurmctld: ""
  workers: 4
  messageTimeout: 10
  resources:
    requests:
      cpu: 10m
      memory: 32Mi
    limits:
      memory: 256Mi
uninstall:
  hook: true
  seconds: 120
{{- end }}

{{/* Values in the wrong place, and where they belong. The schema accepts them, so that the error can say it. */}}
{{- define "slurm-bridge.places" -}}
image: scheduler.image
replicaCount: scheduler.replicaCount
pdb: scheduler.pdb
priorityClassName: scheduler.priorityClassName
resources: scheduler.resources
nodeSelector: scheduler.nodeSelector
affinity: scheduler.affinity
tolerations: scheduler.tolerations
verbosity: scheduler.verbosity
observeOnly: scheduler.observeOnly
replicas: scheduler.replicaCount
scheduler.replicas: scheduler.replicaCount
admission.replicaCount: admission.replicas
schedulerName: schedulerConfig.schedulerName
mcsLabel: schedulerConfig.mcsLabel
partition: schedulerConfig.partition
scheduler.schedulerName: schedulerConfig.schedulerName
scheduler.mcsLabel: schedulerConfig.mcsLabel
scheduler.partition: schedulerConfig.partition
slurmRestApi: sharedConfig.slurmRestApi
slurmRestCa: sharedConfig.slurmRestCa
slurmJwtSecret: sharedConfig.slurmJwtSecret
slurmJwtKey: sharedConfig.slurmJwtKey
managedNamespaces: admission.managedNamespaces
managedNamespaceSelector: admission.managedNamespaceSelector
certManager: admission.certManager
scheduler.imagePullSecrets: imagePullSecrets
admission.imagePullSecrets: imagePullSecrets
controllers.imagePullSecrets: imagePullSecrets
dra.imagePullSecrets: imagePullSecrets
{{- end }}

{{- define "slurm-bridge.values" -}}
{{- range $wrong, $right := include "slurm-bridge.places" . | fromYaml }}
{{- $path := splitList "." $wrong }}
{{- $block := eq (len $path) 1 | ternary $.Values (default dict (get $.Values (first $path))) }}
{{- if hasKey $block (last $path) }}
{{- fail (printf "%s is in the wrong place: it belongs to %s" $wrong $right) }}
{{- end }}
{{- end }}
{{- include "slurm-bridge.fill" (dict "into" .Values "from" (include "slurm-bridge.ownDefaults" . | fromYaml)) }}
{{- include "slurm-bridge.mustSay" . }}
{{- end }}

{{/* Sets what is missing: (dict "into" MAP "from" MAP) */}}
{{- define "slurm-bridge.fill" -}}
{{- $into := .into }}
{{- range $key, $value := .from }}
{{- if not (hasKey $into $key) }}
{{- $_ := set $into $key $value }}
{{- else if and (kindIs "map" $value) (kindIs "map" (get $into $key)) }}
{{- include "slurm-bridge.fill" (dict "into" (get $into $key) "from" $value) }}
{{- end }}
{{- end }}
{{- end }}
