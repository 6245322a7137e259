{{/* _dcgm.tpl - which job has which GPU, for the DCGM exporter: one file per GPU index that holds the id of the job. */}}

{{- define "slurm.dcgm.prolog" -}}
#!/bin/sh
# Writes the id of the job into one file for each of its GPUs.
dir={{ .Values.vendor.nvidia.dcgm.jobMappingDir | squote }}
gpus=${SLURM_JOB_GPUS:-${CUDA_VISIBLE_DEVICES:-}}
[ -n "$gpus" ] || exit 0
mkdir -p "$dir" || exit 0
for gpu in $(printf '%s' "$gpus" | tr ',' ' '); do
    printf '%s\n' "$SLURM_JOB_ID" > "$dir/$gpu"
done
exit 0
{{- end }}

{{- define "slurm.dcgm.epilog" -}}
#!/bin/sh
# Removes the files of the job's GPUs; a file that names another job stays.
dir={{ .Values.vendor.nvidia.dcgm.jobMappingDir | squote }}
gpus=${SLURM_JOB_GPUS:-${CUDA_VISIBLE_DEVICES:-}}
[ -n "$gpus" ] || exit 0
for gpu in $(printf '%s' "$gpus" | tr ',' ' '); do
    if [ "$(cat "$dir/$gpu" 2>/dev/null)" = "$SLURM_JOB_ID" ]; then rm -f "$dir/$gpu"; fi
done
exit 0
{{- end }}

{{/* Mounts the folder into the workers of a NodeSet that asks for GPUs: (dict "root" $ "set" VALUES). The values are changed. */}}
{{- define "slurm.dcgm.mount" -}}
{{- $dcgm := .root.Values.vendor.nvidia.dcgm }}
{{- $slurmd := default dict .set.slurmd }}
{{- $pod := default dict .set.podSpec }}
{{- $gpus := false }}
{{- range list $slurmd.resources $pod.resources }}
{{- range list (default dict .).requests (default dict .).limits }}
{{- if get (default dict .) "nvidia.com/gpu" }}{{ $gpus = true }}{{ end }}
{{- end }}
{{- end }}
{{- if and $dcgm.enabled $gpus }}
{{- $mount := dict "name" "dcgm-job-mapping" "mountPath" $dcgm.jobMappingDir }}
{{- $volume := dict "name" "dcgm-job-mapping" "hostPath" (dict "path" $dcgm.jobMappingDir "type" "DirectoryOrCreate") }}
{{- $_ := set $slurmd "volumeMounts" (append (default list $slurmd.volumeMounts) $mount) }}
{{- $_ := set $pod "volumes" (append (default list $pod.volumes) $volume) }}
{{- $_ := set .set "slurmd" $slurmd }}
{{- $_ := set .set "podSpec" $pod }}
{{- end }}
{{- end }}
