{{/* _places.tpl - values in the wrong place: the error says where they belong. */}}

{{/* (dict "values" BLOCK "path" controller "containers" (list "slurmctld" ...)) */}}
{{- define "slurm.checkPlaces" -}}
{{- $pod := list "volumes" "nodeSelector" "affinity" "tolerations" "initContainers" "topologySpreadConstraints" "hostNetwork" "hostPID" "hostIPC"
    "dnsPolicy" "dnsConfig" "hostAliases" "serviceAccountName" "automountServiceAccountToken" "runtimeClassName" "schedulerName"
    "priorityClassName" "imagePullSecrets" "terminationGracePeriodSeconds" "shareProcessNamespace" "resourceClaims" "hostname" }}
{{- $container := list "volumeMounts" "env" "envFrom" "args" "command" "image" "imagePullPolicy" "lifecycle" "livenessProbe" "readinessProbe" "startupProbe" "ports" "volumeDevices" }}
{{- $values := default dict .values }}
{{- $main := first .containers }}
{{- $path := .path }}
{{- range $key := $pod }}
{{- if hasKey $values $key }}
{{- fail (printf "%s.%s is in the wrong place: it belongs to %s.podSpec.%s" $path $key $path $key) }}
{{- end }}
{{- range $block := $.containers }}
{{- if hasKey (default dict (get $values $block)) $key }}
{{- fail (printf "%s.%s.%s is in the wrong place: it belongs to %s.podSpec.%s" $path $block $key $path $key) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $key := $container }}
{{- if hasKey $values $key }}
{{- fail (printf "%s.%s is in the wrong place: it belongs to %s.%s.%s" $path $key $path $main $key) }}
{{- end }}
{{- if hasKey (default dict $values.podSpec) $key }}
{{- fail (printf "%s.podSpec.%s is in the wrong place: it belongs to %s.%s.%s" $path $key $path $main $key) }}
{{- end }}
{{- end }}
{{- range $key := list "resources" "securityContext" }}
{{- if hasKey $values $key }}
{{- fail (printf "%s.%s is in the wrong place: it belongs to %s.%s.%s (the container) or %s.podSpec.%s (the pod)" $path $key $path $main $key $path $key) }}
{{- end }}
{{- end }}
{{- end }}
