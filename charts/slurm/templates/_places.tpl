{{/* _places.tpl - values in the wrong place: what is told says where they belong. */}}

{{/* (dict "values" ALL "found" HOLDER) */}}
{{- define "slurm.allPlaces" -}}
{{- range $block, $containers := dict "controller" (list "slurmctld" "reconfigure" "logfile") "restapi" (list "slurmrestd") "accounting" (list "slurmdbd")
    "loginsetDefaults" (list "login" "initconf") "nodesetDefaults" (list "slurmd" "logfile") }}
{{- include "slurm.places" (dict "values" (get $.values $block) "path" $block "containers" $containers "found" $.found) }}
{{- end }}
{{- range $block, $containers := dict "loginsets" (list "login" "initconf") "nodesets" (list "slurmd" "logfile") }}
{{- range $key, $set := default dict (get $.values $block) }}
{{- include "slurm.places" (dict "values" $set "path" (printf "%s.%s" $block $key) "containers" $containers "found" $.found) }}
{{- end }}
{{- end }}
{{- end }}

{{/* (dict "values" BLOCK "path" controller "containers" (list "slurmctld" ...) "found" HOLDER) */}}
{{- define "slurm.places" -}}
{{- $pod := list "volumes" "nodeSelector" "affinity" "tolerations" "initContainers" "topologySpreadConstraints" "hostNetwork" "hostPID" "hostIPC"
    "dnsPolicy" "dnsConfig" "hostAliases" "serviceAccountName" "automountServiceAccountToken" "runtimeClassName" "schedulerName"
    "priorityClassName" "imagePullSecrets" "terminationGracePeriodSeconds" "shareProcessNamespace" "resourceClaims" "hostname" }}
{{- $container := list "volumeMounts" "env" "envFrom" "args" "command" "image" "imagePullPolicy" "lifecycle" "livenessProbe" "readinessProbe" "startupProbe" "ports" "volumeDevices" }}
{{- $values := default dict .values }}
{{- $main := first .containers }}
{{- $path := .path }}
{{- range $key := $pod }}
{{- if hasKey $values $key }}
{{- include "slurm.problem" (dict "found" $.found "text" (printf "%s.%s is in the wrong place: it belongs to %s.podSpec.%s" $path $key $path $key)) }}
{{- end }}
{{- range $block := $.containers }}
{{- if hasKey (default dict (get $values $block)) $key }}
{{- include "slurm.problem" (dict "found" $.found "text" (printf "%s.%s.%s is in the wrong place: it belongs to %s.podSpec.%s" $path $block $key $path $key)) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $key := $container }}
{{- if hasKey $values $key }}
{{- include "slurm.problem" (dict "found" $.found "text" (printf "%s.%s is in the wrong place: it belongs to %s.%s.%s" $path $key $path $main $key)) }}
{{- end }}
{{- if hasKey (default dict $values.podSpec) $key }}
{{- include "slurm.problem" (dict "found" $.found "text" (printf "%s.podSpec.%s is in the wrong place: it belongs to %s.%s.%s" $path $key $path $main $key)) }}
{{- end }}
{{- end }}
{{- range $key := list "resources" "securityContext" }}
{{- if hasKey $values $key }}
{{- include "slurm.problem" (dict "found" $.found "text" (printf "%s.%s is in the wrong place: it belongs to %s.%s.%s (the container) or %s.podSpec.%s (the pod)" $path $key $path $main $key $path $key)) }}
{{- end }}
{{- end }}
{{- end }}
