{{/* _types.tpl - schemas that more than one kind has. Each takes the description of the field. A type of one line is a flow mapping;
a longer one is a block, for nindent. */}}

{{/* a core Container or PodSpec, whose schema is the API server's own: nothing is pruned, nothing is checked here */}}
{{- define "crds.schemaless" -}}
{type: object, nullable: true, x-kubernetes-preserve-unknown-fields: true, description: {{ quote . }}}
{{- end }}

{{- define "crds.stringMap" -}}
{type: object, nullable: true, additionalProperties: {type: string}, description: {{ quote . }}}
{{- end }}

{{/* a reference to another object of the same namespace */}}
{{- define "crds.ref" -}}
{type: object, x-kubernetes-map-type: atomic, properties: {name: {type: string, default: "", description: Name of the object.}}, description: {{ quote . }}}
{{- end }}

{{- define "crds.refList" -}}
{type: array, nullable: true, items: {{ include "crds.ref" "Name of a ConfigMap." }}, description: {{ quote . }}}
{{- end }}

{{/* one key of a Secret or ConfigMap */}}
{{- define "crds.keyRef" -}}
{type: object, x-kubernetes-map-type: atomic, required: [key], properties: {name: {type: string, default: "", description: Name of the object.}, key: {type: string, description: Key in the object.}, optional: {type: boolean, description: "Accepted, without effect."}}, description: {{ quote . }}}
{{- end }}

{{- define "crds.intOrString" -}}
{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], description: {{ quote . }}}
{{- end }}

{{- define "crds.replicas" -}}
{type: integer, format: int32, default: 1, description: {{ quote . }}}
{{- end }}

{{/* labels and annotations are all that a child takes from the user's metadata */}}
{{- define "crds.metadata" -}}
description: {{ quote . }}
type: object
properties:
  labels: {{ include "crds.stringMap" "Labels to add." }}
  annotations: {{ include "crds.stringMap" "Annotations to add." }}
{{- end }}

{{- define "crds.podTemplate" -}}
description: {{ quote . }}
type: object
properties:
  metadata:
    {{- include "crds.metadata" "Labels and annotations of the pods." | nindent 4 }}
  spec: {{ include "crds.schemaless" "A PodSpec, which is merged into the pods." }}
{{- end }}

{{- define "crds.service" -}}
description: {{ quote . }}
type: object
properties:
  metadata:
    {{- include "crds.metadata" "Labels and annotations of the Service." | nindent 4 }}
  spec: {{ include "crds.schemaless" "A ServiceSpec. The operator adds its port and its selector." }}
  port: {type: integer, description: Port of the Service. 0 is the default of the component.}
  nodePort: {type: integer, description: Port on the nodes. 0 leaves the choice to the API server.}
{{- end }}

{{/* the keys of Slurm, of a Controller and an Accounting */}}
{{- define "crds.keys" -}}
slurmKeyRef: {{ include "crds.keyRef" "Secret with the key of auth/slurm. Needed unless external." }}
jwtKeyRef: {{ include "crds.keyRef" "Secret with the HS256 key of auth/jwt. Needed unless external. Cannot be changed." }}
jwtHs256KeyRef: {{ include "crds.keyRef" "Former name of jwtKeyRef. Ignored if jwtKeyRef is set." }}
jwksKeyRef: {{ include "crds.keyRef" "ConfigMap with a JWKS file, for tokens signed elsewhere." }}
{{- end }}

{{/* the daemon runs outside the cluster; the argument is its name */}}
{{- define "crds.external" -}}
external: {type: boolean, default: false, description: {{ printf "True if %s runs outside Kubernetes." . | quote }}}
externalConfig:
  description: {{ printf "Where the external %s listens. Needed if external." . | quote }}
  type: object
  required: [host, port]
  properties:
    host: {type: string, description: Host name or address.}
    port: {type: integer, description: Port.}
{{- end }}

{{- define "crds.externalRules" -}}
- rule: (has(self.external) && self.external) || has(self.slurmKeyRef)
  message: slurmKeyRef is needed unless external is true
  fieldPath: .slurmKeyRef
  reason: FieldValueRequired
- rule: (has(self.external) && self.external) || has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)
  message: jwtKeyRef is needed unless external is true
  fieldPath: .jwtKeyRef
  reason: FieldValueRequired
- rule: "!has(self.external) || !self.external || has(self.externalConfig)"
  message: externalConfig is needed when external is true
  fieldPath: .externalConfig
  reason: FieldValueRequired
{{- end }}

{{/* the print columns that show the condition Ready, of the kinds that have no count of ready replicas, and the age */}}
{{- define "crds.readyColumns" -}}
- [READY, string, '.status.conditions[?(@.type=="Ready")].status', Whether the object is ready.]
- [STATUS, string, '.status.conditions[?(@.type=="Ready")].reason', Why the object is ready or not.]
{{ include "crds.ageColumn" . }}
{{- end }}

{{- define "crds.ageColumn" -}}
- [AGE, date, .metadata.creationTimestamp, Time since the object was created.]
{{- end }}

{{- define "crds.duration" -}}
{type: string, pattern: '^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$', description: {{ quote . }}}
{{- end }}

{{- define "crds.metrics" -}}
description: {{ quote . }}
type: object
properties:
  enabled: {type: boolean, default: false, description: True if slurmctld serves metrics.}
  serviceMonitor:
    description: The ServiceMonitor for the Prometheus operator.
    type: object
    nullable: true
    properties:
      enabled: {type: boolean, default: false, description: True if there is a ServiceMonitor.}
      labels: {{ include "crds.stringMap" "Labels of the ServiceMonitor." }}
      annotations: {{ include "crds.stringMap" "Annotations of the ServiceMonitor." }}
      interval: {{ include "crds.duration" "Time between two scrapes." }}
      scrapeTimeout: {{ include "crds.duration" "Time limit of one scrape." }}
      endpoints:
        description: The paths to scrape.
        type: array
        nullable: true
        items:
          type: object
          required: [path]
          properties:
            path: {type: string, description: HTTP path of the metrics.}
            interval: {{ include "crds.duration" "Time between two scrapes of this path." }}
            scrapeTimeout: {{ include "crds.duration" "Time limit of one scrape of this path." }}
{{- end }}

{{- define "crds.quantities" -}}
description: {{ quote . }}
type: object
additionalProperties:
  x-kubernetes-int-or-string: true
  anyOf: [{type: integer}, {type: string}]
  pattern: ^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$
{{- end }}

{{/* the fields of a PersistentVolumeClaimSpec */}}
{{- define "crds.claimSpec" -}}
accessModes: {type: array, x-kubernetes-list-type: atomic, items: {type: string}, description: Access modes of the volume.}
dataSource:
  description: What the volume is filled from.
  type: object
  x-kubernetes-map-type: atomic
  required: [kind, name]
  properties:
    apiGroup: {type: string, description: API group of the source.}
    kind: {type: string, description: Kind of the source.}
    name: {type: string, description: Name of the source.}
dataSourceRef:
  description: What the volume is filled from; any kind, in any namespace.
  type: object
  required: [kind, name]
  properties:
    apiGroup: {type: string, description: API group of the source.}
    kind: {type: string, description: Kind of the source.}
    name: {type: string, description: Name of the source.}
    namespace: {type: string, description: Namespace of the source.}
resources:
  description: Size of the volume.
  type: object
  properties:
    limits:
      {{- include "crds.quantities" "Largest size." | nindent 6 }}
    requests:
      {{- include "crds.quantities" "Smallest size." | nindent 6 }}
selector:
  description: Labels of the volumes to choose from.
  type: object
  x-kubernetes-map-type: atomic
  properties:
    matchLabels: {type: object, additionalProperties: {type: string}, description: Labels and their values.}
    matchExpressions:
      description: Conditions on labels.
      type: array
      x-kubernetes-list-type: atomic
      items:
        type: object
        required: [key, operator]
        properties:
          key: {type: string, description: Label.}
          operator: {type: string, description: "In, NotIn, Exists or DoesNotExist."}
          values: {type: array, x-kubernetes-list-type: atomic, items: {type: string}, description: Values of the label.}
storageClassName: {type: string, description: StorageClass of the volume.}
volumeAttributesClassName: {type: string, description: VolumeAttributesClass of the volume.}
volumeMode: {type: string, description: Filesystem or Block.}
volumeName: {type: string, description: Name of the PersistentVolume.}
{{- end }}
