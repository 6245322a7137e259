{{/* _schema.tpl - the values beside schema.json. Helm would enforce a values.schema.json at an upgrade as well, where values that another
chart took are no reason to stop: there they are told (NOTES), and a quoted number counts as the number. */}}

{{/* Every template includes this first. A first install stops at values that are wrong. */}}
{{- define "slurm.values" -}}
{{- if not (hasKey .Values "problems") }}
{{- $schema := .Files.Get "schema.json" | fromJson }}
{{- $found := dict "list" list }}
{{- include "slurm.match" (dict "root" $schema "found" $found "schema" $schema "value" .Values "path" "") }}
{{- include "slurm.allPlaces" (dict "values" .Values "found" $found) }}
{{- if and $found.list (not .Release.IsUpgrade) }}
{{- fail (join "\n" (prepend $found.list "")) }}
{{- end }}
{{- $_ := set .Values "problems" $found.list }}
{{- end }}
{{- end }}

{{/* (dict "found" HOLDER "path" PATH "text" TEXT); the path may stand in the text */}}
{{- define "slurm.problem" -}}
{{- $text := hasKey . "path" | ternary (printf "%s: %s" (trimPrefix "." (default "" .path)) .text) .text }}
{{- $_ := set .found "list" (append .found.list $text) }}
{{- end }}

{{- define "slurm.typeOf" -}}
{{- if kindIs "invalid" . }}null
{{- else if kindIs "map" . }}object
{{- else if kindIs "slice" . }}array
{{- else if kindIs "bool" . }}boolean
{{- else if kindIs "string" . }}string
{{- else if eq (float64 .) (floor .) }}integer
{{- else }}number
{{- end }}
{{- end }}

{{/* Compares a value with a part of the schema: (dict "root" SCHEMA "found" HOLDER "schema" PART "value" VALUE "path" PATH "into" MAP "key" KEY).
A quoted number or boolean is replaced in the map that holds it. */}}
{{- define "slurm.match" -}}
{{- $schema := .schema }}
{{- range until 3 }}
{{- with get $schema "$ref" }}{{ $schema = get $.root.definitions (base .) }}{{ end }}
{{- end }}
{{- $value := .value }}
{{- $type := include "slurm.typeOf" $value }}
{{- $wanted := kindIs "slice" $schema.type | ternary $schema.type (list (default "" $schema.type)) | compact }}
{{- $text := "" }}
{{- if not (or (not $wanted) (has $type $wanted) (and (eq $type "integer") (has "number" $wanted))) }}
{{- $text = printf "got %s, want %s" $type (join " or " $wanted) }}
{{- if and .into (has "integer" $wanted) (regexMatch "^[0-9]+$" (toString $value)) }}{{ $_ := set .into .key (int64 $value) }}{{ end }}
{{- if and .into (has "boolean" $wanted) (has $value (list "true" "false")) }}{{ $_ := set .into .key (eq $value "true") }}{{ end }}
{{- else if eq $type "object" }}
{{- include "slurm.matchObject" (dict "root" .root "found" .found "schema" $schema "value" $value "path" .path) }}
{{- else if eq $type "array" }}
{{- range $number, $item := $value }}
{{- with $schema.items }}{{ include "slurm.match" (dict "root" $.root "found" $.found "schema" . "value" $item "path" (printf "%s[%d]" $.path $number)) }}{{ end }}
{{- end }}
{{- if or (lt (len $value) (int $schema.minItems)) (gt (len $value) (int (default 100000 $schema.maxItems))) }}
{{- $text = printf "has %d items" (len $value) }}
{{- end }}
{{- else if eq $type "string" }}
{{- if or (lt (len $value) (int $schema.minLength)) (gt (len $value) (int (default 1000000 $schema.maxLength))) }}
{{- $text = printf "has %d characters" (len $value) }}
{{- else if not (regexMatch (default "" $schema.pattern) $value) }}
{{- $text = printf "%q does not match %s" $value $schema.pattern }}
{{- end }}
{{- else if eq $type "integer" }}
{{- $low := hasKey $schema "minimum" | ternary $schema.minimum $value }}
{{- if or (lt (float64 $value) (float64 $low)) (gt (float64 $value) (float64 (default $value $schema.maximum))) }}
{{- $text = printf "%v is out of range" $value }}
{{- end }}
{{- end }}
{{- if and $schema.enum (not $text) (not (has $value $schema.enum)) }}
{{- $text = printf "%v is none of %s" $value (join ", " $schema.enum) }}
{{- end }}
{{- with $schema.anyOf }}
{{- $fits := false }}
{{- range . }}
{{- $try := dict "list" list }}
{{- include "slurm.match" (dict "root" $.root "found" $try "schema" . "value" $value "path" $.path) }}
{{- $fits = or $fits (not $try.list) }}
{{- end }}
{{- if not $fits }}{{ $text = "no such value can be here" }}{{ end }}
{{- end }}
{{- if $text }}{{ include "slurm.problem" (dict "found" .found "path" .path "text" $text) }}{{ end }}
{{- end }}

{{- define "slurm.matchObject" -}}
{{- $schema := .schema }}
{{- range $key, $item := .value }}
{{- $path := printf "%s.%s" $.path $key }}
{{- $part := get (default dict $schema.properties) $key }}
{{- range $pattern, $of := $schema.patternProperties }}
{{- if and (not $part) (regexMatch $pattern $key) }}{{ $part = $of }}{{ end }}
{{- end }}
{{- if not $part }}{{ $part = $schema.additionalProperties }}{{ end }}
{{- if kindIs "map" $part }}
{{- include "slurm.match" (dict "root" $.root "found" $.found "schema" $part "value" $item "path" $path "into" $.value "key" $key) }}
{{- else if and (hasKey $schema "additionalProperties") (not (hasPrefix ".x-" $path)) }}
{{- include "slurm.problem" (dict "found" $.found "path" $path "text" "is no value of this chart") }}
{{- end }}
{{- end }}
{{- range $schema.required }}
{{- if not (hasKey $.value .) }}{{ include "slurm.problem" (dict "found" $.found "path" (printf "%s.%s" $.path .) "text" "is missing") }}{{ end }}
{{- end }}
{{- if and $schema.then .value.external }}
{{- include "slurm.match" (dict "root" .root "found" .found "schema" $schema.then "value" .value "path" .path) }}
{{- end }}
{{- end }}
