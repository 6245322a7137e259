/* types.c - the fields of Containers, PodSpecs and ServiceSpecs, by type.
 *
 * One row of the table has all fields of one Kubernetes type that are of one type themselves. A
 * field that no row has is not checked: Kubernetes may be newer than the table. */
#include "kube/types.h"

#include <stdarg.h>
#include <stdio.h>

enum { MAX_PATH = 240, MAX_TEXT = 320, MAX_DEPTH = 16 };

static const struct field_row {
    const char *type;   /* whose fields */
    const char *wanted; /* a type of JSON, "port", "quantity", "map" (of strings), "quantities",
                           the name of another type, or "[]" before one of them; "required": the
                           fields must be given */
    const char *fields; /* separated by blanks */
} rows[] = {
    { "Container", "string",
      "name image imagePullPolicy workingDir terminationMessagePath terminationMessagePolicy "
      "restartPolicy" },
    { "Container", "boolean", "stdin stdinOnce tty" },
    { "Container", "[]string", "command args" },
    { "Container", "[]ContainerPort", "ports" },
    { "Container", "[]EnvVar", "env" },
    { "Container", "[]EnvFrom", "envFrom" },
    { "Container", "[]VolumeMount", "volumeMounts" },
    { "Container", "[]VolumeDevice", "volumeDevices" },
    { "Container", "[]object", "resizePolicy restartPolicyRules" },
    { "Container", "Resources", "resources" },
    { "Container", "Probe", "livenessProbe readinessProbe startupProbe" },
    { "Container", "Lifecycle", "lifecycle" },
    { "Container", "SecurityContext", "securityContext" },

    { "ContainerPort", "number", "containerPort hostPort" },
    { "ContainerPort", "string", "name protocol hostIP" },
    { "ContainerPort", "required", "containerPort" },
    { "EnvVar", "string", "name value" },
    { "EnvVar", "object", "valueFrom" },
    { "EnvVar", "required", "name" },
    { "EnvFrom", "string", "prefix" },
    { "EnvFrom", "object", "configMapRef secretRef" },
    { "VolumeMount", "string",
      "name mountPath subPath subPathExpr mountPropagation recursiveReadOnly" },
    { "VolumeMount", "boolean", "readOnly" },
    { "VolumeMount", "required", "mountPath" },
    { "VolumeDevice", "string", "name devicePath" },
    { "VolumeDevice", "required", "devicePath" },
    { "Resources", "quantities", "limits requests" },
    { "Resources", "[]object", "claims" },

    { "Probe", "number",
      "initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold "
      "terminationGracePeriodSeconds" },
    { "Probe", "ExecAction", "exec" },
    { "Probe", "HTTPGetAction", "httpGet" },
    { "Probe", "TCPSocketAction", "tcpSocket" },
    { "Probe", "GRPCAction", "grpc" },
    { "Lifecycle", "Handler", "postStart preStop" },
    { "Lifecycle", "string", "stopSignal" },
    { "Handler", "ExecAction", "exec" },
    { "Handler", "HTTPGetAction", "httpGet" },
    { "Handler", "TCPSocketAction", "tcpSocket" },
    { "Handler", "object", "sleep" },
    { "ExecAction", "[]string", "command" },
    { "HTTPGetAction", "string", "path host scheme" },
    { "HTTPGetAction", "port", "port" },
    { "HTTPGetAction", "[]object", "httpHeaders" },
    { "TCPSocketAction", "string", "host" },
    { "TCPSocketAction", "port", "port" },
    { "GRPCAction", "number", "port" },
    { "GRPCAction", "string", "service" },

    { "SecurityContext", "boolean",
      "privileged readOnlyRootFilesystem allowPrivilegeEscalation runAsNonRoot" },
    { "SecurityContext", "number", "runAsUser runAsGroup" },
    { "SecurityContext", "string", "procMount" },
    { "SecurityContext", "Capabilities", "capabilities" },
    { "SecurityContext", "object", "seccompProfile appArmorProfile seLinuxOptions windowsOptions" },
    { "Capabilities", "[]string", "add drop" },

    { "PodSpec", "string",
      "restartPolicy dnsPolicy serviceAccountName serviceAccount nodeName hostname subdomain "
      "schedulerName priorityClassName runtimeClassName preemptionPolicy hostnameOverride" },
    { "PodSpec", "boolean",
      "automountServiceAccountToken hostNetwork hostPID hostIPC hostUsers shareProcessNamespace "
      "enableServiceLinks setHostnameAsFQDN" },
    { "PodSpec", "number", "terminationGracePeriodSeconds activeDeadlineSeconds priority" },
    { "PodSpec", "map", "nodeSelector" },
    { "PodSpec", "quantities", "overhead" },
    { "PodSpec", "[]Container", "containers initContainers" },
    { "PodSpec", "[]Volume", "volumes" },
    { "PodSpec", "[]Toleration", "tolerations" },
    { "PodSpec", "[]Named", "imagePullSecrets schedulingGates resourceClaims" },
    { "PodSpec", "[]HostAlias", "hostAliases" },
    { "PodSpec", "[]SpreadConstraint", "topologySpreadConstraints" },
    { "PodSpec", "[]object", "readinessGates ephemeralContainers" },
    { "PodSpec", "Affinity", "affinity" },
    { "PodSpec", "DNSConfig", "dnsConfig" },
    { "PodSpec", "PodSecurityContext", "securityContext" },
    { "PodSpec", "Resources", "resources" },
    { "PodSpec", "object", "os schedulingGroup workloadRef" },

    { "Named", "string", "name" },
    { "Named", "required", "name" },
    { "Volume", "string", "name" },
    { "Volume", "required", "name" },
    { "Volume", "object",
      "configMap secret emptyDir hostPath persistentVolumeClaim projected downwardAPI ephemeral "
      "csi nfs iscsi fc cephfs image" },
    { "Toleration", "string", "key operator value effect" },
    { "Toleration", "number", "tolerationSeconds" },
    { "HostAlias", "string", "ip" },
    { "HostAlias", "[]string", "hostnames" },
    { "HostAlias", "required", "ip" },
    { "SpreadConstraint", "string",
      "topologyKey whenUnsatisfiable nodeAffinityPolicy nodeTaintsPolicy" },
    { "SpreadConstraint", "number", "maxSkew minDomains" },
    { "SpreadConstraint", "object", "labelSelector" },
    { "SpreadConstraint", "[]string", "matchLabelKeys" },
    { "SpreadConstraint", "required", "topologyKey" },
    { "Affinity", "NodeAffinity", "nodeAffinity" },
    { "Affinity", "PodAffinity", "podAffinity podAntiAffinity" },
    { "NodeAffinity", "object", "requiredDuringSchedulingIgnoredDuringExecution" },
    { "NodeAffinity", "[]object", "preferredDuringSchedulingIgnoredDuringExecution" },
    { "PodAffinity", "[]object",
      "requiredDuringSchedulingIgnoredDuringExecution "
      "preferredDuringSchedulingIgnoredDuringExecution" },
    { "DNSConfig", "[]string", "nameservers searches" },
    { "DNSConfig", "[]object", "options" },
    { "PodSecurityContext", "number", "runAsUser runAsGroup fsGroup" },
    { "PodSecurityContext", "boolean", "runAsNonRoot" },
    { "PodSecurityContext", "string", "fsGroupChangePolicy supplementalGroupsPolicy" },
    { "PodSecurityContext", "[]number", "supplementalGroups" },
    { "PodSecurityContext", "[]object", "sysctls" },
    { "PodSecurityContext", "object",
      "seccompProfile appArmorProfile seLinuxOptions windowsOptions" },

    { "ServiceSpec", "string",
      "type clusterIP sessionAffinity loadBalancerIP loadBalancerClass externalTrafficPolicy "
      "internalTrafficPolicy ipFamilyPolicy externalName trafficDistribution" },
    { "ServiceSpec", "boolean", "publishNotReadyAddresses allocateLoadBalancerNodePorts" },
    { "ServiceSpec", "number", "healthCheckNodePort" },
    { "ServiceSpec", "map", "selector" },
    { "ServiceSpec", "[]string", "clusterIPs externalIPs loadBalancerSourceRanges ipFamilies" },
    { "ServiceSpec", "[]ServicePort", "ports" },
    { "ServiceSpec", "object", "sessionAffinityConfig" },
    { "ServicePort", "string", "name protocol appProtocol" },
    { "ServicePort", "number", "port nodePort" },
    { "ServicePort", "port", "targetPort" },
    { "ServicePort", "required", "port" },

    { "PersistentVolumeClaim", "ClaimMetadata", "metadata" },
    { "PersistentVolumeClaim", "ClaimSpec", "spec" },
    { "ClaimMetadata", "string", "name" },
    { "ClaimMetadata", "map", "labels annotations" },
    { "ClaimSpec", "string", "storageClassName volumeName volumeMode volumeAttributesClassName" },
    { "ClaimSpec", "[]string", "accessModes" },
    { "ClaimSpec", "Resources", "resources" },
    { "ClaimSpec", "object", "selector dataSource dataSourceRef" },
};

static const size_t row_count = sizeof(rows) / sizeof(rows[0]);

struct walk {
    kube_type_report report;
    void *context;
    char path[MAX_PATH];
    size_t length;
    unsigned depth;
};

static void check_value(struct walk *walk, const struct json *value, const char *wanted);

/* ---- paths and findings ---- */

static size_t enter(struct walk *walk, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static size_t enter(struct walk *walk, const char *format, ...)
{
    size_t before = walk->length;
    va_list args;
    int written;

    va_start(args, format);
    written = vsnprintf(walk->path + before, MAX_PATH - before, format, args);
    va_end(args);
    if (written > 0)
        walk->length =
            before + (size_t)written < MAX_PATH ? before + (size_t)written : MAX_PATH - 1;
    return before;
}

static void leave(struct walk *walk, size_t before)
{
    walk->length = before;
    walk->path[before] = '\0';
}

static void report_type(const struct walk *walk, const char *wanted, const struct json *found)
{
    char text[MAX_TEXT];

    (void)snprintf(text, sizeof(text), "%s: wants %s, found %s", walk->path, wanted,
                   json_type_name(json_type(found)));
    walk->report(walk->context, text);
}

static void report_missing(const struct walk *walk)
{
    char text[MAX_TEXT];

    (void)snprintf(text, sizeof(text), "%s: is missing", walk->path);
    walk->report(walk->context, text);
}

/* ---- values ---- */

static void check_members(struct walk *walk, const struct json *value, const char *wanted)
{
    struct json_iter iter = json_iter(value);
    const struct json *member;
    struct str key;

    while (json_next_member(&iter, &key, &member)) {
        size_t before = enter(walk, "." STR_FMT, STR_ARG(key));

        check_value(walk, member, wanted);
        leave(walk, before);
    }
}

static void check_items(struct walk *walk, const struct json *value, const char *wanted)
{
    struct json_iter iter = json_iter(value);
    const struct json *item;

    for (unsigned i = 0; json_next_item(&iter, &item); i++) {
        size_t before = enter(walk, "[%u]", i);

        check_value(walk, item, wanted);
        leave(walk, before);
    }
}

static void check_fields(struct walk *walk, const struct json *value, const struct field_row *row)
{
    struct str rest = str_of(row->fields), field;

    while (str_next(&rest, ' ', &field)) {
        size_t before = enter(walk, "." STR_FMT, STR_ARG(field));

        if (strcmp(row->wanted, "required") != 0)
            check_value(walk, json_get_str(value, field), row->wanted);
        else if (!json_exists(json_get_str(value, field)))
            report_missing(walk);
        leave(walk, before);
    }
}

static void check_object(struct walk *walk, const struct json *value, const char *type)
{
    if (++walk->depth <= MAX_DEPTH)
        for (size_t i = 0; i < row_count; i++)
            if (strcmp(rows[i].type, type) == 0)
                check_fields(walk, value, &rows[i]);
    walk->depth--;
}

/* Whether the wanted type is one of JSON's, or either of two: then the value is checked here. */
static bool is_plain(struct walk *walk, const struct json *value, const char *wanted)
{
    static const struct {
        const char *name, *shown;
        enum json_type type, or ;
    } plain[] = {
        { "string", "string", JSON_STRING, JSON_STRING },
        { "number", "number", JSON_NUMBER, JSON_NUMBER },
        { "boolean", "boolean", JSON_BOOL, JSON_BOOL },
        { "object", "object", JSON_OBJECT, JSON_OBJECT },
        { "port", "number or string", JSON_NUMBER, JSON_STRING },
        { "quantity", "number or string", JSON_NUMBER, JSON_STRING },
    };

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (strcmp(plain[i].name, wanted) == 0) {
            if (json_type(value) != plain[i].type && json_type(value) != plain[i].or)
                report_type(walk, plain[i].shown, value);
            return true;
        }
    return false;
}

static void check_value(struct walk *walk, const struct json *value, const char *wanted)
{
    if (!json_exists(value) || is_plain(walk, value, wanted))
        return;
    if (wanted[0] == '[') {
        if (json_is_array(value))
            check_items(walk, value, wanted + 2);
        else
            report_type(walk, "array", value);
    } else if (!json_is_object(value)) {
        report_type(walk, "object", value);
    } else if (strcmp(wanted, "map") == 0 || strcmp(wanted, "quantities") == 0) {
        check_members(walk, value, strcmp(wanted, "map") == 0 ? "string" : "quantity");
    } else {
        check_object(walk, value, wanted);
    }
}

bool kube_type_is_known(const char *type)
{
    for (size_t i = 0; i < row_count; i++)
        if (strcmp(rows[i].type, type[0] == '[' ? type + 2 : type) == 0)
            return true;
    return false;
}

bool kube_type_has(const char *type, struct str name)
{
    for (size_t i = 0; i < row_count; i++) {
        struct str rest = str_of(rows[i].fields), field;

        if (strcmp(rows[i].type, type) == 0)
            while (str_next(&rest, ' ', &field))
                if (str_eq(field, name))
                    return true;
    }
    return false;
}

void kube_type_check(const char *type, const char *path, const struct json *value,
                     kube_type_report report, void *context)
{
    struct walk walk = { .report = report, .context = context };

    (void)enter(&walk, "%s", path);
    check_value(&walk, value, type);
}
