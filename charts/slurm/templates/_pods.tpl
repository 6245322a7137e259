{{/* _pods.tpl - images, containers and pods. */}}

{{/* An image as {repository, tag, digest}, however it was written. */}}
{{- define "slurm.imageParts" -}}
{{- $parts := dict "repository" "" "tag" "" "digest" "" }}
{{- if kindIs "string" . }}
{{- $named := regexReplaceAll "@.*$" . "" }}
{{- $_ := set $parts "digest" (regexFind "@.*$" . | trimPrefix "@") }}
{{- $_ := set $parts "tag" (regexFind ":[^:/]+$" $named | trimPrefix ":") }}
{{- $_ := set $parts "repository" (regexReplaceAll ":[^:/]+$" $named "") }}
{{- else }}
{{- range $key := list "repository" "tag" "digest" }}
{{- $_ := set $parts $key (get (default dict $) $key | default "" | toString) }}
{{- end }}
{{- end }}
{{- toYaml $parts }}
{{- end }}

{{/* Whether an image is one that the chart of the Slinky project names: (the parts of an image). A tag of theirs without a repository counts;
a site's mirror does not: what is there is the site's own choice. */}}
{{- define "slurm.isOldImage" -}}
{{- if regexMatch "^ghcr[.]io/slinkyproject/(slurmctld|slurmd|slurmdbd|slurmrestd|sackd|login)$" .repository }}true
{{- else if and (not .repository) (regexMatch "-(ubuntu|rockylinux)[0-9.]+$" .tag) }}true
{{- end }}
{{- end }}

{{/* `helm upgrade --reuse-values` from another chart brings that chart's values alone: ours may be missing, here and elsewhere. */}}
{{- define "slurm.registry" -}}
{{- default "localhost/slinc" .Values.imageRegistry | trimSuffix "/" -}}
{{- end }}

{{/* (dict "root" $ "image" IMAGE "name" NAME "tag" TAG "fallback" IMAGE-TEXT): the fallback is for containers that take another's image */}}
{{- define "slurm.image" -}}
{{- $image := include "slurm.imageParts" .image | fromYaml }}
{{- if include "slurm.isOldImage" $image }}
{{- $kept := dict "repository" (default (printf "ghcr.io/slinkyproject/%s" .name) $image.repository) "tag" $image.tag "digest" $image.digest }}
{{- $image = default false .root.Values.keepOldImages | ternary $kept dict }}
{{- end }}
{{- $tag := default (printf "%s-debian" .root.Chart.AppVersion) .tag }}
{{- if hasPrefix "ghcr.io/slinkyproject/" (default "" $image.repository) }}
{{- $tag = "26.05-ubuntu26.04" }}
{{- else if and $image.repository (not $image.tag) (not $image.digest) (kindIs "map" .image) (not .tag) }}
{{- fail (printf "the image %s needs a tag or a digest" $image.repository) }}
{{- end }}
{{- $repository := default (printf "%s/%s" (include "slurm.registry" .root) .name) $image.repository }}
{{- $digest := index (include "slurm.digests" .root | fromYaml) .name }}
{{- if and (kindIs "string" .image) $image.repository (not $image.tag) (not $image.digest) -}}
{{- .image -}}
{{- else if and .fallback (not $image.repository) (not $image.tag) (not $image.digest) -}}
{{- .fallback -}}
{{- else if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else if and $digest (not $image.repository) (not $image.tag) -}}
{{- printf "%s@%s" $repository $digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default $tag $image.tag) -}}
{{- end -}}
{{- end }}

{{/* A container block of a custom resource: (dict "root" $ "values" BLOCK "name" IMAGE "fallback" IMAGE-TEXT) */}}
{{- define "slurm.container" -}}
{{- $values := default dict .values }}
{{- $image := include "slurm.image" (dict "root" .root "image" $values.image "name" .name "fallback" .fallback) }}
{{- $container := merge (dict "image" $image) (omit (deepCopy $values) "image") }}
{{- if not $container.imagePullPolicy }}
{{- $_ := set $container "imagePullPolicy" .root.Values.imagePullPolicy }}
{{- end }}
{{- toYaml $container }}
{{- end }}

{{/* The spec of a pod template: (dict "root" $ "values" podSpec) */}}
{{- define "slurm.podSpec" -}}
{{- $spec := deepCopy (default dict .values) }}
{{- $secrets := concat (default list $spec.imagePullSecrets) (default list .root.Values.imagePullSecrets) | uniq }}
{{- $_ := unset $spec "imagePullSecrets" }}
{{- with $secrets }}
{{- $_ := set $spec "imagePullSecrets" . }}
{{- end }}
{{- $class := .root.Values.priorityClass }}
{{- $ours := $class.enabled | ternary (include "slurm.priorityClass" .root) "" }}
{{- $_ := set $spec "priorityClassName" (default $ours $spec.priorityClassName) }}
{{- toYaml $spec }}
{{- end }}

{{- define "slurm.priorityClass" -}}
{{- default "slurm-priority-critical" .Values.priorityClass.name -}}
{{- end }}

{{/* a text that ends in one newline, as a block of YAML does */}}
{{- define "slurm.text" -}}
{{- regexReplaceAll "\n+$" (toString .) "" }}
{{ end }}
