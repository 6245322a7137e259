{{/* _crd.tpl - one CustomResourceDefinition, made from the description of its kind.

The file of each kind describes the kind in YAML; docs/crds.md lists the result:
  kind, plural, shortNames, description
  columns  the print columns: [name, type, JSON path, description, priority (0 if left out)]
  scale    true if the kind has the scale subresource
  spec     the description of the spec; its fields are those of specs/<plural>.json, which PYTHONPATH=dev python3 -m slincdev.crds
           writes from what the operator knows of them
  rules    rules for the spec, or for one of its fields, in CEL
  status   fields of the status, beside conditions and observedGeneration, which all kinds have; and its required list */}}
{{- define "crds.crd" -}}
{{- if .Error }}{{ fail .Error }}{{ end -}}
{{- $columns := list }}
{{- range .columns }}
{{- $column := dict "name" (index . 0) "type" (index . 1) "jsonPath" (index . 2) "description" (index . 3) }}
{{- if gt (len .) 4 }}{{ $_ := set $column "priority" (index . 4) }}{{ end }}
{{- $columns = append $columns $column }}
{{- end }}
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {{ .plural }}.slinky.slurm.net
  annotations:
    # Without its definition every object of the kind is deleted, and with it the cluster that it describes.
    helm.sh/resource-policy: keep
    # Raised when a field comes or goes; the programs want at least theirs (src/cli/definitions.h).
    slinc.slurm.net/definitions: "1"
spec:
  group: slinky.slurm.net
  scope: Namespaced
  names:
    kind: {{ .kind }}
    listKind: {{ .kind }}List
    plural: {{ .plural }}
    singular: {{ lower .kind }}
    shortNames:
      {{- toYaml .shortNames | nindent 6 }}
  versions:
    - name: v1beta1
      served: true
      storage: true
      additionalPrinterColumns:
        {{- toYaml $columns | nindent 8 }}
      subresources:
        status: {}
        {{- if .scale }}
        scale:
          specReplicasPath: .spec.replicas
          statusReplicasPath: .status.replicas
          labelSelectorPath: .status.selector
        {{- end }}
      schema:
        openAPIV3Schema:
          description: {{ quote .description }}
          type: object
          properties:
            apiVersion: {type: string, description: "Version of the schema: slinky.slurm.net/v1beta1."}
            kind: {type: string, description: {{ printf "Kind of the object: %s." .kind | quote }}}
            metadata: {type: object}
            spec:
              {{- toYaml .fields | nindent 14 }}
            status:
              {{- include "crds.status" .status | nindent 14 }}
{{- end }}

{{/* the status of a kind, from its own fields and required list */}}
{{- define "crds.status" -}}
description: Observed state, written by the operator.
type: object
{{- with .required }}
required: {{ toJson . }}
{{- end }}
properties:
  observedGeneration: {type: integer, format: int64, description: Generation of the object that this status describes.}
  conditions:
    description: Conditions of the object, one per type.
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [type]
    items:
      type: object
      required: [lastTransitionTime, message, reason, status, type]
      properties:
        type:
          description: Type of the condition.
          type: string
          maxLength: 316
          pattern: ^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$
        status: {type: string, enum: ["True", "False", Unknown], description: Whether the condition holds.}
        reason:
          description: Why, in one word.
          type: string
          minLength: 1
          maxLength: 1024
          pattern: ^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$
        message: {type: string, maxLength: 32768, description: "Why, in a sentence."}
        lastTransitionTime: {type: string, format: date-time, description: When the status last changed.}
        observedGeneration: {type: integer, format: int64, minimum: 0, description: Generation of the object that the condition describes.}
  {{- with .properties }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* As a part of another chart, a definition that is in the cluster already and belongs to another release, or to none, is left as it is. */}}
{{- define "crds.install" -}}
{{- if .crd.Error }}{{ fail .crd.Error }}{{ end -}}
{{- $there := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" (printf "%s.slinky.slurm.net" .crd.plural) | default dict }}
{{- $release := dig "metadata" "annotations" "meta.helm.sh/release-name" "" $there }}
{{- $fields := .root.Files.Get (printf "specs/%s.json" .crd.plural) | fromJson }}
{{- range $at, $rules := .crd.rules }}
{{- $_ := set (eq $at "spec" | ternary $fields (get $fields.properties $at)) "x-kubernetes-validations" $rules }}
{{- end }}
{{- $_ := set .crd "fields" (merge $fields (dict "type" "object" "description" .crd.spec)) }}
{{- if or .root.Chart.IsRoot (not $there) (eq $release .root.Release.Name) }}
{{- include "crds.crd" .crd | fromYaml | toYaml }}
{{- end }}
{{- end }}
