{{/* _types.tpl - what more than one kind has. */}}

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
