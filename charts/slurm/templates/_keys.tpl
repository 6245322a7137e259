{{/* _keys.tpl - the pod of the Jobs that make and delete keys. */}}

{{/* an object that lives only while the Job runs: (dict "on" HOOK "weight" WEIGHT) */}}
{{- define "slurm.hook" -}}
helm.sh/hook: {{ .on }}
helm.sh/hook-weight: {{ .weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end }}

{{/* (dict "root" $ "job" JOB); keys.podSpec is laid over it */}}
{{- define "slurm.keysPod" -}}
{{- $values := default dict .root.Values.keys }}
{{- $container := dict
    "name" "keys"
    "image" (include "slurm.image" (dict "root" .root "image" $values.image "name" "slinc" "tag" .root.Chart.Version))
    "imagePullPolicy" .root.Values.imagePullPolicy
    "args" (concat (list "keys" (printf "--namespace=%s" (include "slurm.namespace" .root)) (printf "--release=%s" .root.Release.Name)
        (printf "--release-namespace=%s" .root.Release.Namespace)) .job.args)
    "securityContext" (dict "privileged" false "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL"))) }}
{{- with $values.resources }}
{{- $_ := set $container "resources" . }}
{{- end }}
{{- $pod := dict
    "restartPolicy" "Never"
    "serviceAccountName" .job.name
    "enableServiceLinks" false
    "nodeSelector" (dict "kubernetes.io/os" "linux")
    "securityContext" (dict "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532 "seccompProfile" (dict "type" "RuntimeDefault"))
    "containers" (list $container) }}
{{- with .root.Values.imagePullSecrets }}
{{- $_ := set $pod "imagePullSecrets" . }}
{{- end }}
{{- include "slurm.overwrite" (dict "into" $pod "over" (deepCopy (default dict $values.podSpec))) }}
{{- toYaml $pod }}
{{- end }}
