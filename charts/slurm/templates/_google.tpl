{{/* _google.tpl - NodeSets on A3 machines of Google's Kubernetes: GPUs, the networks between them, and what NCCL needs. */}}

{{/* What each kind of machine adds to the values of a NodeSet. `first` is the number of the second interface: a3ultra skips eth1. */}}
{{- define "slurm.google.machines" -}}
a3mega:
  first: 1
  add:
    metadata:
      annotations:
        devices.gke.io/container.tcpxo-daemon: |
          {{- range $device := list "nvidia0" "nvidia1" "nvidia2" "nvidia3" "nvidia4" "nvidia5" "nvidia6" "nvidia7" "nvidiactl" "nvidia-uvm" "dmabuf_import_helper" }}
          - path: /dev/{{ $device }}
          {{- end }}
    slurmd:
      env:
        - {name: LD_LIBRARY_PATH, value: /usr/local/nvidia/lib64}
        - {name: NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY, value: /dev/aperture_devices}
      volumeMounts:
        - {name: aperture-devices, mountPath: /dev/aperture_devices}
      resources: {requests: {nvidia.com/gpu: 8}, limits: {nvidia.com/gpu: 8}}
    extraConfMap: {Gres: "gpu:nvidia_h100_80gb_hbm3:8"}
    podSpec:
      containers:
        - name: tcpxo-daemon # receives what the network cards bring, for NCCL; it must fit the GPU driver of the nodes
          image: us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.21
          imagePullPolicy: Always
          command: [/bin/sh, -c]
          args:
            - |
              set -ex
              chmod 755 /fts/entrypoint_rxdm_container.sh
              /fts/entrypoint_rxdm_container.sh --num_hops=2 --num_nics=8 --uid= --alsologtostderr
          securityContext: {capabilities: {add: [NET_ADMIN, NET_BIND_SERVICE]}}
          volumeMounts:
            - {name: libraries, mountPath: /usr/local/nvidia/lib64}
            - {name: sys, mountPath: /hostsysfs}
            - {name: proc-sys, mountPath: /hostprocsysfs}
          env:
            - {name: LD_LIBRARY_PATH, value: /usr/local/nvidia/lib64}
      volumes:
        - {name: libraries, hostPath: {path: /home/kubernetes/bin/nvidia/lib64}}
        - {name: sys, hostPath: {path: /sys}}
        - {name: proc-sys, hostPath: {path: /proc/sys}}
        - {name: aperture-devices, hostPath: {path: /dev/aperture_devices}}
a3ultra:
  first: 2
  add:
    slurmd:
      env:
        - {name: LD_LIBRARY_PATH, value: /usr/local/nvidia/lib64}
        - {name: PATH, value: "/usr/local/nvidia/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
      volumeMounts:
        - {name: library-dir-host, mountPath: /usr/local/nvidia}
        - {name: gib, mountPath: /usr/local/gib}
      resources: {requests: {nvidia.com/gpu: 8}, limits: {nvidia.com/gpu: 8}}
    extraConfMap: {gres: "gpu:nvidia_h200:8"}
    podSpec:
      volumes:
        - {name: library-dir-host, hostPath: {path: /home/kubernetes/bin/nvidia}}
        - {name: gib, hostPath: {path: /home/kubernetes/bin/gib}}
        - {name: sys, hostPath: {path: /sys}}
        - {name: proc-sys, hostPath: {path: /proc/sys}}
{{- end }}

{{/* Lays a map under another, which it changes: (dict "into" MAP "from" MAP). What is given stays; items of lists count as given by their names. */}}
{{- define "slurm.underlay" -}}
{{- $into := .into }}
{{- range $key, $value := .from }}
{{- $given := get $into $key }}
{{- if and (kindIs "map" $value) (kindIs "map" $given) }}
{{- include "slurm.underlay" (dict "into" $given "from" $value) }}
{{- else if and (kindIs "slice" $value) (kindIs "slice" $given) }}
{{- $names := list }}
{{- range $given }}{{ $names = append $names .name }}{{ end }}
{{- range $value }}
{{- if not (has .name $names) }}{{ $given = append $given . }}{{ end }}
{{- end }}
{{- $_ := set $into $key $given }}
{{- else if or (not (hasKey $into $key)) (kindIs "invalid" $given) }}
{{- $_ := set $into $key $value }}
{{- end }}
{{- end }}
{{- end }}

{{/* Adds what the machines of a NodeSet need to its values, which it changes: (dict "root" $ "key" KEY "set" VALUES) */}}
{{- define "slurm.google.add" -}}
{{- $google := default dict .root.Values.vendor.google }}
{{- range $kind, $machine := include "slurm.google.machines" . | fromYaml }}
{{- range $number, $entry := default list (get $google $kind) }}
{{- if eq $entry.targetNodeSet $.key }}
{{- $interfaces := list }}
{{- range $at, $network := $entry.networks }}
{{- $name := printf "eth%d" (eq $at 0 | ternary 0 (add $at $machine.first -1)) }}
{{- $interfaces = append $interfaces (printf "  {\"interfaceName\":%q,\"network\":%q}" $name $network) }}
{{- end }}
{{- $annotations := dict "networking.gke.io/default-interface" "eth0" "networking.gke.io/interfaces" (printf "[\n%s\n]\n" (join ",\n" $interfaces)) }}
{{- with $entry.daemonImage }}
{{- $_ := set (first $machine.add.podSpec.containers) "image" . }}
{{- end }}
{{- include "slurm.underlay" (dict "into" $.set "from" $machine.add) }}
{{- include "slurm.underlay" (dict "into" $.set "from" (dict "metadata" (dict "annotations" $annotations)
    "podSpec" (dict "nodeSelector" (dict "cloud.google.com/gke-nodepool" $entry.nodePool)))) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The ConfigMaps with gres.conf, as names that end in a3mega or a3ultra. A gres.conf of the user goes before them; one suffices. */}}
{{- define "slurm.google.configs" -}}
{{- $google := default dict .Values.vendor.google }}
{{- if not (hasKey (default dict .Values.configFiles) "gres.conf") -}}
{{- if $google.a3mega -}}
- {{ include "slurm.fullname" . }}-config-a3mega
{{- else if $google.a3ultra -}}
- {{ include "slurm.fullname" . }}-config-a3ultra
{{- end -}}
{{- end -}}
{{- end }}
