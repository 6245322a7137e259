/* claim.c - from an allocation to CPUs of this machine; pure. */
#include "dra/claim.h"

#include "dra/cpuset.h"
#include "dra/names.h"

#include <stdio.h>

enum { MAX_TEXT = 64 * 1024 };

void claim_device_name(const struct topology_numa *numa, char ret_name[CLAIM_MAX_DEVICE])
{
    (void)snprintf(ret_name, CLAIM_MAX_DEVICE, "socket%u-numa%u", numa->socket, numa->number);
}

/* ---- the opaque entry ---- */

static int find_entry(const struct json *allocation, const struct json **ret_parameters,
                      struct err *err)
{
    struct json_iter iter = json_iter(json_at(allocation, "devices", "config"));
    const struct json *entry, *found = NULL;

    while (json_next_item(&iter, &entry)) {
        if (!str_is(json_str(json_at(entry, "opaque", "driver")), DRA_DRIVER))
            continue;
        if (!str_is(json_str(json_get(entry, "source")), "FromClass"))
            return err_set(err, ERR_INVALID,
                           "the claim itself configures " DRA_DRIVER
                           ": only Slurm chooses cores, remove that config from the claim");
        if (found)
            return err_set(err, ERR_INVALID, "the allocation has two entries of cores");
        found = json_at(entry, "opaque", "parameters");
    }
    if (!found)
        return err_set(err, ERR_INVALID,
                       "the allocation names no cores chosen by Slurm: was the pod not placed by "
                       "slurm-bridge?");
    *ret_parameters = found;
    return 0;
}

static int read_choice(const struct json *parameters, struct topology_choice *ret_choice,
                       struct err *err)
{
    uint64_t sockets, cores, threads;
    int result;

    if (!str_is(json_str(json_get(parameters, "apiVersion")), DRA_CONFIG_VERSION) ||
        !str_is(json_str(json_get(parameters, "kind")), DRA_CONFIG_KIND))
        return err_set(err, ERR_INVALID, "wants " DRA_CONFIG_KIND " of " DRA_CONFIG_VERSION);
    if ((result = json_want_str(parameters, "cores", &ret_choice->cores, err)) < 0 ||
        (result = json_want_u64(parameters, "sockets", 1, TOPOLOGY_MAX_CORES, &sockets, err)) < 0 ||
        (result = json_want_u64(parameters, "coresPerSocket", 1, TOPOLOGY_MAX_CORES, &cores, err)) <
            0 ||
        (result = json_want_u64(parameters, "threadsPerCore", 1, TOPOLOGY_MAX_THREADS, &threads,
                                err)) < 0)
        return result;
    ret_choice->sockets = (unsigned)sockets;
    ret_choice->cores_per_socket = (unsigned)cores;
    ret_choice->threads_per_core = (unsigned)threads;
    return 0;
}

/* ---- the devices ---- */

/* Adds the cores of the device to `allowed`; false: there is no such device. */
static bool add_device_cores(const struct topology *topology, struct str device,
                             struct bitmap *allowed)
{
    struct topology_numa numas[TOPOLOGY_MAX_NUMA];
    unsigned count = topology_numas(topology, numas);
    char name[CLAIM_MAX_DEVICE];

    for (unsigned i = 0; i < count; i++) {
        claim_device_name(&numas[i], name);
        if (!str_is(device, name))
            continue;
        bitmap_set_range(allowed, numas[i].first_core,
                         numas[i].first_core + numas[i].core_count - 1);
        return true;
    }
    return false;
}

static int read_results(const struct json *allocation, const char *node,
                        const struct topology *topology, struct json_build *build,
                        struct json_mut *devices, struct bitmap *allowed, struct err *err)
{
    struct json_iter iter = json_iter(json_at(allocation, "devices", "results"));
    const struct json *result;

    while (json_next_item(&iter, &result)) {
        struct str device = json_str(json_get(result, "device"));
        struct str pool = json_str(json_get(result, "pool"));
        struct str share = json_str(json_get(result, "shareID"));
        struct json_mut *row;

        if (!str_is(json_str(json_get(result, "driver")), DRA_DRIVER))
            continue;
        if (!str_is(pool, node))
            return err_set(err, ERR_INVALID, "device " STR_FMT " is of node " STR_FMT ", not of %s",
                           STR_ARG(device), STR_ARG(pool), node);
        if (!add_device_cores(topology, device, allowed))
            return err_set(err, ERR_INVALID, "this node has no device " STR_FMT, STR_ARG(device));
        row = json_new_object(build);
        json_put_str(build, row, "pool", pool);
        json_put_str(build, row, "device", device);
        json_put_str(build, row, "shareID", share);
        json_push(devices, row);
    }
    if (json_mut_len(devices) == 0)
        return err_set(err, ERR_INVALID, "the allocation has no device of " DRA_DRIVER);
    return 0;
}

/* ---- the claim ---- */

static void put_ranges(struct json_build *build, struct json_mut *object, const char *key,
                       const struct bitmap *set)
{
    auto_buf struct buf text;

    buf_init(&text, MAX_TEXT);
    bitmap_print_ranges(set, &text);
    json_put_str(build, object, key, buf_str(&text));
}

static int build_claim(const struct json *object, const struct json *allocation, const char *node,
                       const struct topology *topology, struct json_build *build,
                       struct json_mut *root, struct err *err)
{
    auto_bitmap struct bitmap allowed, cpus = { 0 }, cores = { 0 };
    const struct json *parameters = NULL, *metadata = json_get(object, "metadata");
    struct topology_choice choice = { .sockets = 0 };
    struct json_mut *devices = json_put_array(build, root, "devices");
    int result;

    bitmap_init(&allowed, topology->core_count);
    if ((result = find_entry(allocation, &parameters, err)) < 0 ||
        (result = read_choice(parameters, &choice, err)) < 0 ||
        (result = topology_cpus(topology, &choice, &cpus, &cores, err)) < 0 ||
        (result = read_results(allocation, node, topology, build, devices, &allowed, err)) < 0)
        return result;
    json_put_str(build, root, "namespace", json_str(json_get(metadata, "namespace")));
    json_put_str(build, root, "name", json_str(json_get(metadata, "name")));
    json_put_str(build, root, "uid", json_str(json_get(metadata, "uid")));
    json_put_str(build, root, "job", json_str(json_get(parameters, "job")));
    put_ranges(build, root, "cores", &cores);
    put_ranges(build, root, "cpus", &cpus);
    bitmap_andnot(&cores, &allowed);
    if (bitmap_count(&cores) > 0)
        return err_set(err, ERR_INVALID,
                       "cores '" STR_FMT "' are not all on the devices that the "
                       "claim has",
                       STR_ARG(choice.cores));
    return 0;
}

int claim_read(const struct json *object, struct str uid, const char *node,
               const struct topology *topology, struct prepared_claim **ret_claim, struct err *err)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);
    const struct json *allocation = json_at(object, "status", "allocation");
    int result;

    if (!str_eq(json_str(json_at(object, "metadata", "uid")), uid))
        return err_set(err, ERR_CONFLICT, "another claim has this name now");
    if (!json_is_object(allocation))
        return err_set(err, ERR_UNAVAILABLE, "the claim is not allocated");
    if ((result = build_claim(object, allocation, node, topology, build, root, err)) < 0)
        return result;
    return prepared_claim_new(json_freeze(root), ret_claim, err);
}
