{{/* _helpers.tpl - names, labels and the parts that more than one object has. */}}

{{/* cut so that the longest of our names, of a Service, has 63 bytes */}}
{{- define "slurm-bridge.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 51 | trimSuffix "-" -}}
{{- end }}

{{- define "slurm-bridge.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end }}

{{- define "slurm-bridge.admission.name" -}}
{{- printf "%s-admission" (include "slurm-bridge.name" .) -}}
{{- end }}

{{/* labels of one component: (dict "root" $ "name" NAME "component" COMPONENT) */}}
{{- define "slurm-bridge.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/component: {{ .component }}
{{ include "slurm-bridge.selector" . }}
{{- end }}

{{/* Labels of pods: (the labels of their owner). No version stands in them, so that a new chart alone replaces no pod. */}}
{{- define "slurm-bridge.podLabels" -}}
{{- omit (fromYaml .) "helm.sh/chart" "app.kubernetes.io/version" | toYaml -}}
{{- end }}

{{- define "slurm-bridge.selector" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "slurm-bridge.scheduler.labels" -}}
{{- include "slurm-bridge.labels" (dict "root" . "name" .Values.schedulerConfig.schedulerName "component" "scheduler") -}}
{{- end }}

{{- define "slurm-bridge.scheduler.selector" -}}
{{- include "slurm-bridge.selector" (dict "root" . "name" .Values.schedulerConfig.schedulerName) -}}
{{- end }}

{{- define "slurm-bridge.admission.labels" -}}
{{- include "slurm-bridge.labels" (dict "root" . "name" (include "slurm-bridge.admission.name" .) "component" "admission") -}}
{{- end }}

{{/* whether there is a webhook: one that only looks on changes no pods */}}
{{- define "slurm-bridge.admits" -}}
{{- if and .Values.admission.enabled (not .Values.scheduler.observeOnly) -}}
true
{{- end -}}
{{- end }}

{{/* who the bridge is to the API server */}}
{{- define "slurm-bridge.user" -}}
{{- printf "system:serviceaccount:%s:%s" (include "slurm-bridge.namespace" .) .Values.schedulerConfig.schedulerName -}}
{{- end }}

{{/* the pods that serve the webhook */}}
{{- define "slurm-bridge.admission.selector" -}}
{{- if .Values.admission.separate -}}
{{- include "slurm-bridge.selector" (dict "root" . "name" (include "slurm-bridge.admission.name" .)) -}}
{{- else -}}
{{- include "slurm-bridge.scheduler.selector" . -}}
{{- end -}}
{{- end }}

{{/* the config file. Keys of bridgeConfig stand beside ours; the schema keeps them apart. */}}
{{- define "slurm-bridge.config" -}}
{{- $config := dict "schedulerName" .Values.schedulerConfig.schedulerName "mcsLabel" .Values.schedulerConfig.mcsLabel
    "partition" .Values.schedulerConfig.partition "slurmRestApi" (include "slurm-bridge.restApi" .) }}
{{- if .Values.admission.managedNamespaceSelector }}
{{- $_ := set $config "managedNamespaceSelector" .Values.admission.managedNamespaceSelector }}
{{- else }}
{{- $_ := set $config "managedNamespaces" (default list .Values.admission.managedNamespaces) }}
{{- end }}
{{- if .Values.sharedConfig.slurmRestCa }}
{{- if not (hasPrefix "https://" (include "slurm-bridge.restApi" .)) }}
{{- fail (printf "sharedConfig.slurmRestCa: the address of slurmrestd is %s, and a CA is of use for https:// alone" (include "slurm-bridge.restApi" .)) }}
{{- end }}
{{- $_ := set $config "slurmRestCaFile" "/etc/slurm-bridge/slurm-ca.crt" }}
{{- end }}
{{- if .Values.sharedConfig.slurmJwtKey.name }}
{{- $_ := set $config "jwtKeyFile" "/var/run/secrets/slurm/jwt.key" }}
{{- end }}
{{- $_ := set $config "trustAnnotations" (include "slurm-bridge.trust" .) }}
{{- $more := deepCopy .Values.bridgeConfig }}
{{- range keys $more }}
{{- if eq (lower .) "trustannotations" }}{{ $_ := unset $more . }}{{ end }}
{{- end }}
{{- toYaml (merge $config $more) -}}
{{- end }}

{{/* Without a cluster nobody can tell a new installation from an upgrade. */}}
{{- define "slurm-bridge.mustSay" -}}
{{- if not (lookup "v1" "Namespace" "" "kube-system") }}
{{- $missing := list }}
{{- if not (include "slurm-bridge.saidTrust" .) }}
{{- $missing = append $missing "trustAnnotations: own for a new installation, or all for an upgrade, so that annotations may choose Slurm users as before" }}
{{- end }}
{{- if not (or .Values.nodePolicy.mode .Values.scheduler.observeOnly) }}
{{- $missing = append $missing "nodePolicy.mode: Deny for a new installation, or Warn for an upgrade, until no warning is seen" }}
{{- end }}
{{- with $missing }}
{{- fail (printf "Helm cannot ask a cluster here (helm template, GitOps, --dry-run=client), so these values must be given:\n- %s" (join "\n- " .)) }}
{{- end }}
{{- end }}
{{- end }}

{{/* trustAnnotations of the values, where bridgeConfig may have it as well; "" when they say nothing */}}
{{- define "slurm-bridge.saidTrust" -}}
{{- $word := "" }}
{{- range $key, $value := .Values.bridgeConfig }}
{{- if eq (lower $key) "trustannotations" }}{{ $word = toString $value }}{{ end }}
{{- end }}
{{- default $word .Values.trustAnnotations -}}
{{- end }}

{{/* trustAnnotations: all, own or none; true and false are words of old. What a cluster had before is kept. */}}
{{- define "slurm-bridge.trust" -}}
{{- $there := lookup "v1" "ConfigMap" (include "slurm-bridge.namespace" .) (printf "%s-config" (include "slurm-bridge.name" .)) }}
{{- $word := default (get (dig "data" "config.yaml" "" $there | fromYaml) "trustAnnotations" | toString) (include "slurm-bridge.saidTrust" .) }}
{{- if has $word (list "all" "own" "none") -}}
{{- $word -}}
{{- else if eq $word "false" -}}
none
{{- else if or (eq $word "true") (not .Release.IsInstall) -}}
all
{{- else -}}
own
{{- end -}}
{{- end }}

{{/* the files of its folder */}}
{{- define "slurm-bridge.configData" -}}
config.yaml: |
  {{- include "slurm-bridge.config" . | nindent 2 }}
{{- with .Values.sharedConfig.slurmRestCa }}
slurm-ca.crt: |
  {{- . | trim | nindent 2 }}
{{- end }}
{{- end }}

{{/* Whether an image is one that the chart of the Slinky project names. It then counts as not given. */}}
{{- define "slurm-bridge.isForeign" -}}
{{- if regexMatch "(^|/)slurm-bridge-(scheduler|admission|controllers)$" (default "" (default dict .).repository) -}}
true
{{- end -}}
{{- end }}

{{/* (dict "root" $ "image" IMAGE), and "title" TITLE for another image than that of our own program */}}
{{- define "slurm-bridge.image" -}}
{{- $image := include "slurm-bridge.isForeign" .image | eq "true" | ternary dict (default dict .image) }}
{{- $title := default "slinc" .title }}
{{- $ours := printf "%s/%s" (default "localhost/slinc" .root.Values.imageRegistry | trimSuffix "/") $title }}
{{- $digest := get (include "slurm-bridge.digests" .root | fromYaml) $title }}
{{- if and $digest (not $image.repository) (not $image.tag) }}
{{- printf "%s@%s" $ours $digest -}}
{{- else }}
{{- printf "%s:%s" (default $ours $image.repository) (default .root.Chart.AppVersion $image.tag) -}}
{{- end }}
{{- end }}

{{/* Where the agent finds slurmctld; empty: nobody said it, and it cannot be told from the address of slurmrestd. */}}
{{- define "slurm-bridge.slurmctld" -}}
{{- $rest := regexFind "^https?://[a-z0-9-]+-restapi\\.[a-z0-9.-]+" (include "slurm-bridge.restApi" .) }}
{{- default (regexReplaceAll "^https?://([a-z0-9-]+)-restapi\\." $rest "${1}-controller.") .Values.agent.slurmctld -}}
{{- end }}

{{/* Whether there is an agent. What a cluster had before is kept; only a cluster that can be asked is known to be new. */}}
{{- define "slurm-bridge.hasAgent" -}}
{{- $address := include "slurm-bridge.slurmctld" . }}
{{- $there := false }}
{{- range dig "spec" "template" "spec" "containers" list (lookup "apps/v1" "Deployment" (include "slurm-bridge.namespace" .) .Values.schedulerConfig.schedulerName) }}
{{- if eq .name "agent" }}{{ $there = true }}{{ end }}
{{- end }}
{{- if and (eq "true" (toString .Values.agent.enabled)) (not $address) }}
{{- fail "agent.slurmctld: the agent needs the address of slurmctld, which cannot be told from that of slurmrestd" }}
{{- end }}
{{- if kindIs "bool" .Values.agent.enabled -}}
{{- .Values.agent.enabled | ternary "true" "" -}}
{{- else if and $address (or $there (and .Release.IsInstall (lookup "v1" "Namespace" "" "kube-system"))) -}}
true
{{- end -}}
{{- end }}

{{/* the level of the log: a number of the scheduler's counts as kube-scheduler's --v does */}}
{{- define "slurm-bridge.level" -}}
{{- if not (kindIs "invalid" .Values.controllers.verbosity) -}}
{{- .Values.controllers.verbosity -}}
{{- else if not (kindIs "invalid" .Values.scheduler.verbosity) -}}
{{- ge (int .Values.scheduler.verbosity) 4 | ternary "debug" "info" -}}
{{- else -}}
info
{{- end -}}
{{- end }}

{{/* one bound: the API server refuses two */}}
{{- define "slurm-bridge.bound" -}}
{{- if not (kindIs "invalid" .maxUnavailable) -}}
maxUnavailable: {{ .maxUnavailable }}
{{- else -}}
minAvailable: {{ .minAvailable }}
{{- end -}}
{{- end }}

{{/* where a pod may run: (dict "values" COMPONENT-VALUES "selector" LABELS "root" $) */}}
{{- define "slurm-bridge.placing" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .values.affinity }}
affinity:
  {{- toYaml .values.affinity | nindent 2 }}
{{- else if .selector }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- .selector | nindent 14 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "slurm-bridge.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "slurm-bridge.containerSecurity" -}}
privileged: false
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* A pod that ends answers until no endpoint names it any more: else pods could not be created meanwhile. */}}
{{- define "slurm-bridge.goodbye" -}}
lifecycle:
  preStop:
    sleep:
      seconds: 3
{{- end }}

{{/* Readiness leaves Slurm out: a webhook must answer while Slurm is away. */}}
{{- define "slurm-bridge.probes" -}}
livenessProbe:
  httpGet:
    path: /healthz
    port: health
  initialDelaySeconds: 15
readinessProbe:
  httpGet:
    path: /readyz?exclude=slurm
    port: health
  periodSeconds: 2
{{- end }}

{{/* the file that SLURM_JWT_FILE or jwtKeyFile names, and the Secret it comes from */}}
{{- define "slurm-bridge.secretVolume" -}}
{{- $token := include "slurm-bridge.tokenSecret" . | fromYaml }}
{{- $key := .Values.sharedConfig.slurmJwtKey }}
name: slurm-jwt
secret:
  defaultMode: 0440
  optional: true # the webhook must be served before there is a token
  {{- if $key.name }}
  secretName: {{ $key.name }}
  items: [{key: {{ $key.key | quote }}, path: jwt.key}]
  {{- else }}
  secretName: {{ $token.name }}
  items: [{key: {{ $token.key | quote }}, path: auth-token}]
  {{- end }}
{{- end }}

{{/* The Secret of the webhook's certificate. What cert-manager makes and what we make have different names, for neither may be written over. */}}
{{- define "slurm-bridge.certificateSecret" -}}
{{- $name := include "slurm-bridge.admission.name" . }}
{{- $made := include "slurm-bridge.usesCertManager" . | not | not | ternary $name (printf "%s-own" $name) }}
{{- coalesce .Values.admission.existingSecret .Values.admission.tls.existingSecret $made -}}
{{- end }}

{{/* a time such as 43800h0m0s in seconds */}}
{{- define "slurm-bridge.seconds" -}}
{{- $time := . }}
{{- $sum := 0 }}
{{- range $unit, $seconds := dict "h" 3600 "m" 60 "s" 1 }}
{{- $sum = regexFind (print "[0-9]+" $unit) $time | trimSuffix $unit | int64 | mul $seconds | add $sum }}
{{- end }}
{{- $sum -}}
{{- end }}

{{/* an object that lives only while the release is taken down */}}
{{- define "slurm-bridge.hook" -}}
helm.sh/hook: post-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end }}

{{- define "slurm-bridge.hookBefore" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end }}

{{/* the Secret that proves which jobs are ours, and where it is mounted */}}
{{- define "slurm-bridge.markSecret" -}}
{{- default (printf "%s-marks" (include "slurm-bridge.name" .)) .Values.markKey.existingSecret -}}
{{- end }}

{{- define "slurm-bridge.markVolume" -}}
name: marks
secret:
  defaultMode: 0440
  secretName: {{ include "slurm-bridge.markSecret" . }}
  items: [{key: mark.key, path: mark.key}]
{{- end }}

{{- define "slurm-bridge.markMount" -}}
name: marks
mountPath: /etc/slurm-bridge-marks
readOnly: true
{{- end }}

{{/* Whether certificates come from cert-manager. A cluster that can be asked and does not have it gets them from the chart; tools that only
render are not able to ask. */}}
{{- define "slurm-bridge.usesCertManager" -}}
{{- if .Values.admission.certManager.enabled }}
{{- if or (.Capabilities.APIVersions.Has "cert-manager.io/v1") (not (lookup "v1" "Namespace" "" "kube-system")) -}}
true
{{- end -}}
{{- end -}}
{{- end }}

{{/* the Secret that holds the token: name and key */}}
{{- define "slurm-bridge.tokenSecret" -}}
{{- $token := .Values.sharedConfig.slurmJwtSecret }}
{{- kindIs "string" $token | ternary (dict "name" $token "key" "auth-token") $token | toYaml -}}
{{- end }}

{{/* Whether the chart makes the Token: as the user says, else when the namespace has Slurm's key and no token of somebody else. */}}
{{- define "slurm-bridge.makesToken" -}}
{{- $token := default dict .Values.sharedConfig.slurmToken }}
{{- if kindIs "bool" $token.create }}
{{- if $token.create }}true{{ end }}
{{- else if and (not .Values.sharedConfig.slurmJwtKey.name) (.Capabilities.APIVersions.Has "slinky.slurm.net/v1beta1/Token") }}
{{- $namespace := include "slurm-bridge.namespace" . }}
{{- $key := lookup "v1" "Secret" $namespace (dig "jwtKeyRef" "name" "slurm-auth-jwt" $token) }}
{{- $secret := lookup "v1" "Secret" $namespace (include "slurm-bridge.tokenSecret" . | fromYaml).name }}
{{- $ours := lookup "slinky.slurm.net/v1beta1" "Token" $namespace (include "slurm-bridge.name" .) }}
{{- if and $key (or $ours (not $secret)) }}true{{ end }}
{{- end }}
{{- end }}

{{/* where slurmrestd answers */}}
{{- define "slurm-bridge.restApi" -}}
{{- $given := .Values.sharedConfig.slurmRestApi }}
{{- $key := dig "slurmToken" "jwtKeyRef" "name" "" .Values.sharedConfig }}
{{- if and (eq $given "http://slurm-restapi.slurm:6820") (include "slurm-bridge.makesToken" .) (hasSuffix "-auth-jwt" $key) }}
{{- printf "http://%s-restapi.%s:6820" (trimSuffix "-auth-jwt" $key) (include "slurm-bridge.namespace" .) }}
{{- else }}
{{- $given }}
{{- end }}
{{- end }}

{{/* Whether there are network policies. By default a new installation has them, and an upgrade has them if it had them before. A chart that only
renders (GitOps) cannot tell the two apart, and has none unless a value says so. */}}
{{- define "slurm-bridge.limitsNetwork" -}}
{{- if kindIs "bool" .Values.networkPolicy.enabled -}}
{{- .Values.networkPolicy.enabled | ternary "true" "" -}}
{{- else }}
{{- $found := lookup "networking.k8s.io/v1" "NetworkPolicy" (include "slurm-bridge.namespace" .) "" }}
{{- $limits := and $found .Release.IsInstall }}
{{- range (default dict $found).items }}
{{- if and (eq (default "" (get (default dict .metadata.annotations) "meta.helm.sh/release-name")) $.Release.Name) (eq (get (default dict .metadata.labels) "app.kubernetes.io/managed-by") "Helm") }}
{{- $limits = true }}
{{- end }}
{{- end }}
{{- if $limits }}true{{ end -}}
{{- end }}
{{- end }}

{{- define "slurm-bridge.lentNodes" -}}
{{- printf "%s-lent-nodes" (include "slurm-bridge.name" .) -}}
{{- end }}

{{/* The mode of a policy, Deny, Warn or Off: (dict "root" $ "name" NAME). What a cluster had before is kept. */}}
{{- define "slurm-bridge.policyMode" -}}
{{- $there := lookup "admissionregistration.k8s.io/v1" "ValidatingAdmissionPolicyBinding" "" .name }}
{{- if .root.Values.scheduler.observeOnly -}}
Off
{{- else if .root.Values.nodePolicy.mode -}}
{{- .root.Values.nodePolicy.mode -}}
{{- else if $there -}}
{{- has "Deny" $there.spec.validationActions | ternary "Deny" "Warn" -}}
{{- else -}}
{{- .root.Release.IsInstall | ternary "Deny" "Warn" -}}
{{- end -}}
{{- end }}

{{/* that of the policy for lent nodes */}}
{{- define "slurm-bridge.nodePolicy" -}}
{{- include "slurm-bridge.policyMode" (dict "root" . "name" (include "slurm-bridge.lentNodes" .)) -}}
{{- end }}

{{/* The certificate that the chart makes, as the data of its Secret and the time at which it was made: (dict "secret" SECRET "name" SERVICE
"namespace" NAMESPACE). It is good for ten years. An upgrade keeps it for five and then makes another, whose ca.crt has the CA before it as well:
pods serve by the old pair until they see the new one. */}}
{{- define "slurm-bridge.madeCertificate" -}}
{{- $kept := .secret.data | default dict }}
{{- $made := dig "metadata" "annotations" "slinc.slurm.net/certificate-made" (dig "metadata" "creationTimestamp" "" .secret) .secret }}
{{- $age := 0 }}
{{- if $made }}{{ $age = sub (now | unixEpoch | int64) (toDate "2006-01-02T15:04:05Z07:00" $made | unixEpoch | int64) }}{{ end }}
{{- $whole := and (get $kept "ca.crt") (get $kept "tls.crt") (get $kept "tls.key") }}
{{- if or (not $whole) (gt $age 157680000) }}
{{- $authority := genCA (printf "%s-ca" .name) 3650 }}
{{- $pair := genSignedCert .name nil (list .name (printf "%s.%s" .name .namespace) (printf "%s.%s.svc" .name .namespace)) 3650 $authority }}
{{- $before := regexFind "-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----" (get $kept "ca.crt" | b64dec) }}
{{- $ca := $authority.Cert }}
{{- if $before }}{{ $ca = printf "%s%s\n" $ca $before }}{{ end }}
{{- $kept = dict "ca.crt" (b64enc $ca) "tls.crt" (b64enc $pair.Cert) "tls.key" (b64enc $pair.Key) }}
{{- $made = now | date "2006-01-02T15:04:05Z07:00" }}
{{- end }}
{{- toYaml (dict "made" $made "data" (pick $kept "ca.crt" "tls.crt" "tls.key")) }}
{{- end }}

{{/* The certificate of secure metrics: its Secret, and the files in a pod. */}}
{{- define "slurm-bridge.metricsSecret" -}}
{{- default (printf "%s-metrics" (include "slurm-bridge.name" .)) .Values.metricsCertSecret -}}
{{- end }}

{{- define "slurm-bridge.metricsVolume" -}}
- name: metrics-certificate
  secret:
    defaultMode: 0440
    secretName: {{ include "slurm-bridge.metricsSecret" . }}
{{- end }}

{{- define "slurm-bridge.metricsMount" -}}
- name: metrics-certificate
  mountPath: /tmp/k8s-metrics-server/metrics-certs
  readOnly: true
{{- end }}

{{/* how Prometheus reads them: SERVICE.NAMESPACE.svc */}}
{{- define "slurm-bridge.secureEndpoint" -}}
scheme: https
bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
tlsConfig:
  ca: {secret: {name: {{ include "slurm-bridge.metricsSecret" .root }}, key: ca.crt}}
  serverName: {{ .host }}
{{- end }}
