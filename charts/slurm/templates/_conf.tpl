{{/* _conf.tpl - lines of slurm.conf from values. */}}

{{/* One item, Key=v1,v2; nothing for a value that is not given. What YAML takes for true or false was most often written YES or NO. */}}
{{- define "slurm.confItem" -}}
{{- $words := list }}
{{- range kindIs "slice" .value | ternary .value (list .value) }}
{{- if kindIs "bool" . }}
{{- $words = append $words (ternary "YES" "NO" .) }}
{{- else if kindIs "string" . }}
{{- $words = append $words . }}
{{- else if not (kindIs "invalid" .) }}
{{- $words = append $words (toJson .) }}
{{- end }}
{{- end }}
{{- $text := join "," $words }}
{{- if $text }}
{{- printf "%s=%s" .key $text }}
{{- end }}
{{- end }}

{{/* (dict "text" TEXT "map" MAP "separator" SEPARATOR): the text if there is one, else the items of the map in the order of their keys */}}
{{- define "slurm.conf" -}}
{{- if .text -}}
{{- regexReplaceAll "\n+$" .text "" -}}
{{- else -}}
{{- $items := list }}
{{- range $key, $value := default dict .map }}
{{- with include "slurm.confItem" (dict "key" $key "value" $value) }}
{{- $items = append $items . }}
{{- end }}
{{- end }}
{{- join .separator $items -}}
{{- end -}}
{{- end }}

{{/* PartitionName=... lines of the partitions that are on */}}
{{- define "slurm.partitions" -}}
{{- $nodesets := include "slurm.sets" (dict "root" . "kind" "nodeset") | fromYaml }}
{{- $lines := list }}
{{- range $name, $partition := default dict .Values.partitions }}
{{- if $partition.enabled }}
{{- if not $partition.nodesets }}
{{- fail (printf "partitions.%s.nodesets is empty: name keys of nodesets, or ALL" $name) }}
{{- end }}
{{- range $partition.nodesets }}
{{- if and (ne . "ALL") (not (hasKey $nodesets .)) }}
{{- $why := hasKey (default dict $.Values.nodesets) . | ternary "is not enabled" "is no key of nodesets" }}
{{- fail (printf "partitions.%s.nodesets: %s %s" $name . $why) }}
{{- end }}
{{- end }}
{{- $config := include "slurm.conf" (dict "text" $partition.config "map" $partition.configMap "separator" " ") }}
{{- $lines = append $lines (printf "PartitionName=%s Nodes=%s %s" $name (join "," $partition.nodesets) $config | trim) }}
{{- end }}
{{- end }}
{{- join "\n" $lines -}}
{{- end }}

{{/* extraConf of the Controller: the user's lines, then the partitions */}}
{{- define "slurm.controllerConf" -}}
{{- $own := include "slurm.conf" (dict "text" .Values.controller.extraConf "map" .Values.controller.extraConfMap "separator" "\n") }}
{{- $partitions := include "slurm.partitions" . }}
{{- $prolog := include "slurm.bridge.prologLines" (dict "root" . "lines" $own) }}
{{- list $own $partitions (include "slurm.bridge" (dict "root" . "lines" (print $own "\n" $partitions))) $prolog | compact | join "\n" -}}
{{- end }}

{{/* What the bridge needs: a partition of the nodes that it shares, a scheduler that looks each second because the end of an external job
does not wake it. GresTypes is the operator's work. (dict "root" $ "lines" LINES): lines that the user gave stay as they are. */}}
{{- define "slurm.bridge" -}}
{{- $wanted := (default dict .root.Values.bridge).enabled }}
{{- if kindIs "invalid" $wanted }}
{{- $nodesets := include "slurm.sets" (dict "root" .root "kind" "nodeset") | fromYaml }}
{{- $wanted = not (or $nodesets (regexMatch "(?i)PartitionName" .lines)) }}
{{- end }}
{{- if $wanted }}
{{- $lines := list }}
{{- if not (regexMatch "(?im)^ *SchedulerParameters" .lines) }}{{ $lines = append $lines "SchedulerParameters=sched_interval=1,bf_interval=5" }}{{ end }}
{{- if not (regexMatch "(?im)^ *NodeSet=slurm-bridge( |$)" .lines) }}{{ $lines = append $lines "NodeSet=slurm-bridge Feature=slurm-bridge" }}{{ end }}
{{- if not (regexMatch "(?im)^ *PartitionName=slurm-bridge( |$)" .lines) }}{{ $lines = append $lines "PartitionName=slurm-bridge Nodes=slurm-bridge MaxTime=UNLIMITED" }}{{ end }}
{{- join "\n" $lines -}}
{{- end -}}
{{- end }}

{{/* The ConfigMaps of one list of scripts: (dict "root" $ "values" prologScripts "name" prolog "vendor" BOOL) */}}
{{- define "slurm.scriptRefs" -}}
{{- $full := include "slurm.fullname" .root }}
{{- $refs := list }}
{{- if get .root.Values .values }}
{{- $refs = append $refs (dict "name" (printf "%s-%s-scripts" $full .name)) }}
{{- end }}
{{- $refs = concat $refs (default list (get .root.Values (printf "%sRefs" (trimSuffix "s" .values)))) }}
{{- if and (eq .name "prolog") (include "slurm.bridge.prologAddress" .root) }}
{{- $refs = append $refs (dict "name" (printf "%s-prolog-bridge" $full)) }}
{{- end }}
{{- if and .vendor .root.Values.vendor.nvidia.dcgm.enabled }}
{{- $refs = append $refs (dict "name" (printf "%s-%s-dcgm" $full .name)) }}
{{- end }}
{{- toYaml (dict "refs" $refs) }}
{{- end }}
