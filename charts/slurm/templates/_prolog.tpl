{{/* _prolog.tpl - jobs of Slurm's own wait for pods that leave their node (nodes with kubelet and slurmd): a prolog asks the bridge. */}}

{{- define "slurm.bridge.prologAddress" -}}
{{- (default dict .Values.bridge).prologAddress | default "" -}}
{{- end }}

{{- define "slurm.bridge.prologWait" -}}
{{- $bridge := default dict .Values.bridge }}
{{- hasKey $bridge "prologWaitSeconds" | ternary $bridge.prologWaitSeconds 60 | default 0 | int -}}
{{- end }}

{{/* slurmctld must not take a batch job for missing, nor slurmd end the prolog, while it waits. (dict "root" $ "lines" LINES) */}}
{{- define "slurm.bridge.prologLines" -}}
{{- if include "slurm.bridge.prologAddress" .root }}
{{- $wait := include "slurm.bridge.prologWait" .root | int }}
{{- range $key := list "BatchStartTimeout" "PrologEpilogTimeout" "PrologTimeout" }}
{{- with regexFind (printf "(?im)^ *%s *= *[0-9]+" $key) $.lines }}
{{- if lt (regexFind "[0-9]+" . | int) (add $wait 10 | int) }}
{{- fail (printf "controller.extraConf: %s is less than bridge.prologWaitSeconds and 10 s more: jobs would fail while their prolog waits" (trim .)) }}
{{- end }}
{{- end }}
{{- end }}
{{- if not (regexMatch "(?im)^ *BatchStartTimeout *=" .lines) }}BatchStartTimeout={{ add $wait 10 }}{{ end }}
{{- end }}
{{- end }}

{{- define "slurm.bridge.prolog" -}}
#!/bin/bash
# Holds this job back while pods whose jobs Slurm has ended still stop on this node, for at most {{ include "slurm.bridge.prologWait" . }} s. It never fails:
# without an answer in that time the job starts as well.
PATH=/usr/bin:/bin
address={{ include "slurm.bridge.prologAddress" . | squote }}
most_ms={{ mul (include "slurm.bridge.prologWait" . | int) 1000 }}
begin_us=${EPOCHREALTIME/[.,]/}
# The number of such pods; nothing when nobody says.
ask() {
    timeout 3 bash -c 'exec 3<>"/dev/tcp/$0/$1" && printf "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" "$2" "$0" >&3 && cat <&3' \
        "${address%:*}" "${address##*:}" "/v1/nodes/$SLURMD_NODENAME/ending?job=$SLURM_JOB_ID&waited=$waited_ms$1" 2>/dev/null | tail -n 1
}
while :; do
    waited_ms=$(( (${EPOCHREALTIME/[.,]/} - begin_us) / 1000 ))
    if (( waited_ms >= most_ms )); then
        ask '&last=1' >/dev/null
        exit 0
    fi
    [ "$(ask '')" = 0 ] && exit 0
    sleep 0.3
done
{{- end }}
