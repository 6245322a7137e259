{{/* _sets.tpl - the LoginSets and NodeSets that are on, each laid over its defaults. */}}

{{/* Lays one map over another, which it changes: (dict "into" MAP "over" MAP). Lists are replaced as a whole. */}}
{{- define "slurm.overwrite" -}}
{{- $into := .into }}
{{- range $key, $value := .over }}
{{- if and (kindIs "map" $value) (kindIs "map" (get $into $key)) }}
{{- include "slurm.overwrite" (dict "into" (get $into $key) "over" $value) }}
{{- else }}
{{- $_ := set $into $key $value }}
{{- end }}
{{- end }}
{{- end }}

{{/* (dict "root" $ "kind" "nodeset"|"loginset"): a map from key to values */}}
{{- define "slurm.sets" -}}
{{- $sets := dict }}
{{- range $key, $values := default dict (get .root.Values (printf "%ss" .kind)) }}
{{- $set := deepCopy (get $.root.Values (printf "%sDefaults" $.kind)) }}
{{- include "slurm.overwrite" (dict "into" $set "over" (deepCopy (default dict $values))) }}
{{- if $set.enabled }}
{{- if eq $.kind "nodeset" }}
{{- include "slurm.dcgm.mount" (dict "root" $.root "set" $set) }}
{{- include "slurm.google.add" (dict "root" $.root "key" $key "set" $set) }}
{{- end }}
{{- $_ := set $sets $key $set }}
{{- end }}
{{- end }}
{{- toYaml $sets }}
{{- end }}

{{/* Adds to a spec the values that have the name and the meaning of a field; those that are not given are left out. schema.json lists them:
(dict "root" $ "kind" "nodeset"|"loginset" "set" VALUES "into" SPEC) */}}
{{- define "slurm.asIs" -}}
{{- range $field := (index (.root.Files.Get "schema.json" | fromJson).definitions .kind).asIs }}
{{- $value := get $.set $field }}
{{- if and (hasKey $.set $field) (not (kindIs "invalid" $value)) (or $value (not (or (kindIs "slice" $value) (kindIs "map" $value)))) }}
{{- $_ := set $.into $field $value }}
{{- end }}
{{- end }}
{{- end }}

{{/* whether some pod reads sssd.conf */}}
{{- define "slurm.needsSssd" -}}
{{- if include "slurm.sets" (dict "root" . "kind" "loginset") | fromYaml -}}
true
{{- else -}}
{{- range include "slurm.sets" (dict "root" . "kind" "nodeset") | fromYaml }}
{{- if (default dict .ssh).enabled }}true{{ end }}
{{- end -}}
{{- end -}}
{{- end }}
