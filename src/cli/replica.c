/* replica.c - which pod of ours to ask, and how. */
#include "cli/replica.h"

#include <inttypes.h>

bool replica_runs(const struct json *pod, const char *command)
{
    struct json_iter containers = json_iter(json_at(pod, "spec", "containers"));
    const struct json *container;

    while (json_next_item(&containers, &container))
        if (str_is(json_str(json_item(json_get(container, "args"), 0)), command))
            return true;
    return false;
}

/* By the name that the charts give the port; 0: it has none. */
static int64_t metrics_port(const struct json *pod)
{
    struct json_iter containers = json_iter(json_at(pod, "spec", "containers"));
    const struct json *container, *port;

    while (json_next_item(&containers, &container)) {
        struct json_iter ports = json_iter(json_get(container, "ports"));

        while (json_next_item(&ports, &port))
            if (str_is(json_str(json_get(port, "name")), "metrics"))
                return json_i64_or(json_get(port, "containerPort"), 0);
    }
    return 0;
}

static bool holds_one_of(const struct json *leases, struct str pod)
{
    struct json_iter iter = json_iter(json_get(leases, "items"));
    const struct json *lease;

    while (json_next_item(&iter, &lease))
        if (str_starts(json_str(json_at(lease, "spec", "holderIdentity")), pod))
            return true;
    return false;
}

const struct json *replica_choose(const struct json *pods, const struct json *leases,
                                  const char *command)
{
    struct json_iter iter = json_iter(json_get(pods, "items"));
    const struct json *pod, *chosen = NULL;

    while (json_next_item(&iter, &pod)) {
        if (!str_is(json_str(json_at(pod, "status", "phase")), "Running") ||
            metrics_port(pod) == 0 || (command && !replica_runs(pod, command)))
            continue;
        if (!chosen)
            chosen = pod;
        if (holds_one_of(leases, json_str(json_at(pod, "metadata", "name"))))
            return pod;
    }
    return chosen;
}

bool replica_is_secure(const struct json *pod)
{
    struct json_iter containers = json_iter(json_at(pod, "spec", "containers"));
    const struct json *container, *arg;

    while (json_next_item(&containers, &container)) {
        struct json_iter args = json_iter(json_get(container, "args"));

        while (json_next_item(&args, &arg))
            if (str_is(json_str(arg), "--metrics-secure") ||
                str_is(json_str(arg), "--metrics-secure=true"))
                return true;
    }
    return false;
}

const char *replica_path(struct arena *arena, const struct json *pod, const char *path)
{
    return arena_printf(
        arena, "/api/v1/namespaces/" STR_FMT "/pods/%s" STR_FMT ":%" PRId64 "/proxy%s",
        STR_ARG(json_str(json_at(pod, "metadata", "namespace"))),
        replica_is_secure(pod) ? "https:" : "", STR_ARG(json_str(json_at(pod, "metadata", "name"))),
        metrics_port(pod), path);
}
