/* choose.c - from Slurm's indexes and core maps to devices of a node.
 *
 * Holds: the n-th device of a gres name is the n-th of the record of the node in Slurm, as it was
 * made (registered.h); a device is chosen only while no other claim has it, because the API server
 * would allocate it twice. */
#include "device/choose.h"

#include "codec/bitmap.h"
#include "device/registered.h"
#include "slurm/gres.h"

#include <inttypes.h>

enum { MAX_INDEX = 1 << 16, MAX_RANGES = 64 << 10, MAX_KEY = 1024, MILLI = 1000 };

struct taken_device {
    const struct slice_device *device;
    struct taken_device *next;
};

struct taken_cores {
    const struct kube_node *node;
    const char *cores;
    struct taken_cores *next;
};

/* ---- what the job has on the node ---- */

/* The indexes of a gres. Without any, a job that has all devices of its node has all indexes. */
static bool read_indexes(const struct slurm_layout_node *given, const struct device_row *row,
                         int64_t first, int64_t total, struct bitmap *ret_indexes)
{
    bitmap_init(ret_indexes, MAX_INDEX);
    for (size_t i = 0; i < given->gres_count; i++) {
        const struct slurm_gres *gres = &given->gres[i];
        auto_bitmap struct bitmap some = { 0 };

        if (strcmp(gres->name, row->gres) != 0 || strcmp(gres->type, row->type) != 0 ||
            gres->count <= 0)
            continue;
        if (gres->index[0]) {
            if (bitmap_parse_ranges(str_of(gres->index), MAX_INDEX, &some, NULL) < 0)
                return false;
            bitmap_or(ret_indexes, &some);
        } else if (gres->count >= total && total > 0 && first + total <= MAX_INDEX) {
            bitmap_set_range(ret_indexes, (size_t)first, (size_t)(first + total - 1));
        } else {
            return false;
        }
    }
    return true;
}

/* The devices of a row that the job has on the node; NULL: ret_why says what is wrong. */
static const struct node_device *job_devices(const struct chooser *chooser,
                                             const struct job_node *where,
                                             const struct device_row *row, unsigned *ret_count,
                                             const char **ret_why)
{
    const struct slurm_layout_node *given = where->given;
    const struct slurm_node *record = where->record;
    const char *name = where->node->object.name;
    auto_bitmap struct bitmap indexes = { 0 };
    struct node_devices devices;
    struct node_device *list;
    int64_t first = 0, total = 0;

    if (!given || !record || !gres_find(record->gres, row->gres, row->type, &first, &total) ||
        !read_indexes(given, row, first, total, &indexes)) {
        *ret_why =
            arena_printf(chooser->arena, "Slurm does not say which %s:%s of node %s it chose",
                         row->gres, row->type, name);
        return NULL;
    }
    registered_of_row(&chooser->view, row, record, name, chooser->arena, &devices);
    if (devices.unknown) {
        *ret_why = devices.unknown;
        return NULL;
    }
    list = arena_alloc_array(chooser->arena, devices.count + 1, sizeof(*list));
    *ret_count = 0;
    for (size_t bit = 0; bitmap_next(&indexes, bit, &bit); bit++) {
        int64_t position = (int64_t)bit - first;

        if (position < 0 || position >= devices.count) {
            *ret_why = arena_printf(chooser->arena,
                                    "Slurm chose %s:%s number %" PRId64
                                    " of node %s, which was made with %u of them",
                                    row->gres, row->type, position, name, devices.count);
            return NULL;
        }
        list[(*ret_count)++] = devices.at[position];
    }
    return list;
}

/* ---- who has a device ---- */

/* Whether the claim is for another pod of the job. */
static bool is_of_job(const struct chooser *chooser, const struct kube_resource_claim *claim)
{
    for (unsigned i = 0; claim->user_count > 0 && i < chooser->pod_count; i++)
        if (strcmp(chooser->pods[i]->object.uid, claim->users[0].uid) == 0)
            return true;
    return false;
}

/* Another claim that has the device; NULL. */
static const struct kube_resource_claim *holder_of(const struct chooser *chooser,
                                                   const struct pod_claim *claim,
                                                   const char *driver,
                                                   const struct node_device *device)
{
    const struct device_view *view = &chooser->view;
    auto_buf struct buf key = { .max = MAX_KEY };
    const struct kube_object *other;
    struct kube_index_walk walk;

    device_key(&key, driver, device->pool, device->device->name);
    walk = kube_cache_by(view->claims, view->indexes.claims_by_device, buf_str(&key));
    while ((other = kube_index_next(&walk)))
        if (!claim->found || other != &claim->found->object)
            return kube_resource_claim_of(other);
    return NULL;
}

static bool is_taken(const struct chooser *chooser, const struct slice_device *device)
{
    for (const struct taken_device *taken = chooser->taken; taken; taken = taken->next)
        if (taken->device == device)
            return true;
    return false;
}

/* ---- devices ---- */

/* NULL: it can be. */
static const char *why_not_used(const struct chooser *chooser, const struct device_row *row,
                                const struct node_device *device, const char *node)
{
    if (!device->device)
        return arena_printf(chooser->arena,
                            "Slurm gave device %s of node %s, which driver %s does not show",
                            device->name, node, row->driver);
    if (device->taint[0])
        return arena_printf(chooser->arena,
                            "Slurm gave device %s of node %s, which has the taint %s", device->name,
                            node, device->taint);
    return NULL;
}

static enum choose_state choose_gres(struct chooser *chooser, const struct job_node *where,
                                     const struct pod_claim *claim,
                                     const struct device_request *request, struct choice *choice,
                                     const char **ret_why)
{
    const struct kube_resource_claim *holder = NULL;
    const struct device_row *row = request->row;
    unsigned count = 0, chosen = 0;
    const char *unusable = NULL;
    const struct node_device *devices = job_devices(chooser, where, row, &count, ret_why);

    for (unsigned i = 0; devices && i < count && chosen < request->count; i++) {
        const struct slice_device *device = devices[i].device;
        const char *why = why_not_used(chooser, row, &devices[i], where->node->object.name);
        const struct kube_resource_claim *other =
            device ? holder_of(chooser, claim, row->driver, &devices[i]) : NULL;
        struct taken_device *taken;

        if (other && !is_of_job(chooser, other))
            holder = other;
        if (!other && why)
            unusable = why;
        if (other || why || is_taken(chooser, device))
            continue;
        taken = arena_alloc(chooser->arena, sizeof(*taken));
        *taken = (struct taken_device){ device, chooser->taken };
        chooser->taken = taken;
        choice->devices[choice->count++] =
            (struct chosen_device){ request->name, row->driver, devices[i].pool, device->name, 0 };
        chosen++;
    }
    if (devices && chosen == request->count)
        return CHOOSE_DONE;
    if (!devices)
        return CHOOSE_MISFIT;
    if (unusable)
        *ret_why = unusable;
    else if (holder)
        *ret_why = arena_printf(chooser->arena,
                                "resourceclaim %s/%s still has a device of class %s that Slurm "
                                "chose on node %s",
                                holder->object.ns, holder->object.name, request->class,
                                where->node->object.name);
    else
        *ret_why = arena_printf(chooser->arena,
                                "of class %s Slurm gave %u devices on node %s that can be used, "
                                "and the pod needs %" PRId64,
                                request->class, chosen, where->node->object.name, request->count);
    return holder && !unusable ? CHOOSE_HELD : CHOOSE_MISFIT;
}

/* ---- cores ---- */

static bool read_ranges(const char *text, size_t bits, struct bitmap *ret_map)
{
    return bitmap_parse_ranges(str_of(text), bits, ret_map, NULL) == 0;
}

/* The cores of the other claims on this node: of pods of the job, with what this plan chose for
 * them, and of others. */
static const struct kube_resource_claim *cores_of_others(const struct chooser *chooser,
                                                         const struct kube_node *node,
                                                         const struct pod_claim *claim,
                                                         const struct bitmap *cores,
                                                         struct bitmap *members)
{
    const struct device_view *view = &chooser->view;
    struct kube_index_walk walk =
        kube_cache_by(view->claims, view->indexes.claims_by_cores, str_of(node->object.name));
    const struct kube_resource_claim *holder = NULL;
    const struct kube_object *object;

    while ((object = kube_index_next(&walk))) {
        const struct kube_resource_claim *other = kube_resource_claim_of(object);
        auto_bitmap struct bitmap theirs = { 0 };

        if ((claim->found && object == &claim->found->object) ||
            !read_ranges(other->cores, cores->bits, &theirs))
            continue;
        bitmap_and(&theirs, cores);
        if (is_of_job(chooser, other))
            bitmap_or(members, &theirs);
        else if (bitmap_count(&theirs) > 0)
            holder = other;
    }
    for (const struct taken_cores *taken = chooser->taken_cores; taken; taken = taken->next) {
        auto_bitmap struct bitmap theirs = { 0 };

        if (taken->node == node && read_ranges(taken->cores, cores->bits, &theirs))
            bitmap_or(members, &theirs);
    }
    return holder;
}

/* Of several pods of one job on a node each has as many cores as it asks CPUs for, at least one. */
static int64_t cores_wanted(const struct kube_pod *pod, const struct pod_claim *claim,
                            int64_t threads)
{
    int64_t cpus = 0;

    for (unsigned i = 0; claim->kind == POD_CLAIM_EXTENDED && i < claim->request_count; i++)
        if (device_row_is_cpu(claim->requests[i].row))
            cpus += claim->requests[i].count;
    if (cpus == 0)
        cpus = (pod->requests.cpu_milli + MILLI - 1) / MILLI;
    return cpus > threads ? (cpus + threads - 1) / threads : 1;
}

/* One result for each device that has some of the cores: Kubernetes knows which they are. The
 * machine may have more cores than Slurm counts. It stops at more results than a claim may have,
 * which choose_devices refuses. */
static bool choose_core_devices(const struct device_request *request,
                                const struct node_devices *devices, const struct bitmap *cores,
                                struct choice *choice)
{
    size_t covered = 0;

    for (unsigned i = 0; i < devices->count && choice->count <= CLAIM_MAX_RESULTS; i++) {
        const struct slice_device *device = devices->at[i].device;
        auto_bitmap struct bitmap theirs = { 0 };
        size_t count;

        if (!read_ranges(kube_pairs_get(&device->attributes, "cores", NULL).at, MAX_INDEX, &theirs))
            return false;
        bitmap_and(&theirs, cores);
        count = bitmap_count(&theirs);
        if (count == 0)
            continue;
        covered += count;
        choice->devices[choice->count++] =
            (struct chosen_device){ request->name, request->row->driver, devices->at[i].pool,
                                    device->name, (int64_t)count };
    }
    return covered == bitmap_count(cores) || choice->count > CLAIM_MAX_RESULTS;
}

static enum choose_state choose_cores(struct chooser *chooser, const struct kube_pod *pod,
                                      const struct job_node *where, const struct pod_claim *claim,
                                      const struct device_request *request, unsigned sharers,
                                      struct choice *choice, const char **ret_why)
{
    const struct slurm_layout_node *given = where->given;
    const struct slurm_node *record = where->record;
    const struct kube_node *node = where->node;
    const struct kube_resource_claim *holder;
    auto_bitmap struct bitmap cores = { 0 }, members = { 0 };
    auto_buf struct buf text = { .max = MAX_RANGES };
    struct node_devices devices = { .unknown = "the bridge's config has no row for cores" };
    struct taken_cores *taken;
    int64_t wanted;
    struct err err = { .class = 0 };

    if (request->row)
        devices_of_node(&chooser->view, request->row, node->object.name, chooser->arena, &devices);
    if (devices.unknown || devices.count == 0) {
        *ret_why = devices.unknown
                       ? devices.unknown
                       : arena_printf(chooser->arena, "node %s cannot pin pods to cores",
                                      node->object.name);
        return CHOOSE_MISFIT;
    }
    if (!given || !record || slurm_layout_cores(given, &cores, &err) < 0) {
        *ret_why =
            arena_printf(chooser->arena, "Slurm does not say which cores of node %s it chose",
                         node->object.name);
        return CHOOSE_MISFIT;
    }
    bitmap_init(&members, cores.bits);
    holder = cores_of_others(chooser, node, claim, &cores, &members);
    choice->threads = record->threads > 0 ? record->threads : 1;
    if (sharers > 1) {
        bitmap_andnot(&cores, &members);
        wanted = cores_wanted(pod, claim, choice->threads);
        for (size_t bit = 0; bitmap_next(&cores, bit, &bit); bit++)
            if (wanted-- <= 0)
                bitmap_clear(&cores, bit);
    }
    bitmap_print_ranges(&cores, &text);
    if (holder) {
        *ret_why = arena_printf(chooser->arena,
                                "resourceclaim %s/%s still has cores that Slurm chose on node %s",
                                holder->object.ns, holder->object.name, node->object.name);
        return CHOOSE_HELD;
    }
    if (bitmap_count(&cores) == 0 || text.overflowed ||
        !choose_core_devices(request, &devices, &cores, choice)) {
        *ret_why = arena_printf(chooser->arena,
                                "the cores %s that Slurm chose are not all cores of node %s",
                                buf_text(&text), node->object.name);
        return CHOOSE_MISFIT;
    }
    choice->cores = arena_strdup(chooser->arena, buf_text(&text));
    choice->sockets = given->sockets;
    choice->cores_per_socket = given->cores_per_socket;
    taken = arena_alloc(chooser->arena, sizeof(*taken));
    *taken = (struct taken_cores){ node, choice->cores, chooser->taken_cores };
    chooser->taken_cores = taken;
    return CHOOSE_DONE;
}

/* ---- a claim ---- */

static unsigned most_devices(const struct pod_claim *claim)
{
    unsigned count = 0;

    for (unsigned i = 0; i < claim->request_count; i++)
        count += claim->requests[i].count < CLAIM_MAX_RESULTS ? (unsigned)claim->requests[i].count
                                                              : CLAIM_MAX_RESULTS;
    return count + CLAIM_MAX_RESULTS;
}

static bool is_of_cores(const struct pod_claim *claim, const struct device_request *request)
{
    return claim->kind == POD_CLAIM_CPU || device_row_is_cpu(request->row);
}

enum choose_state choose_devices(struct chooser *chooser, const struct kube_pod *pod,
                                 const struct job_node *where, const struct pod_claim *claim,
                                 unsigned sharers, struct choice *ret_choice, const char **ret_why)
{
    enum choose_state state = CHOOSE_DONE;
    bool has_cores = false;

    *ret_choice = (struct choice){ .cores = "",
                                   .devices = arena_alloc_array(chooser->arena, most_devices(claim),
                                                                sizeof(*ret_choice->devices)) };
    for (unsigned i = 0; state == CHOOSE_DONE && i < claim->request_count; i++) {
        const struct device_request *request = &claim->requests[i];

        if (!is_of_cores(claim, request) && request->count > CLAIM_MAX_RESULTS) {
            *ret_why = arena_printf(
                chooser->arena,
                "a claim has at most %d devices, and %" PRId64 " of class %s are needed on node %s",
                CLAIM_MAX_RESULTS, request->count, request->class, where->node->object.name);
            return CHOOSE_MISFIT;
        }
        if (!is_of_cores(claim, request))
            state = choose_gres(chooser, where, claim, request, ret_choice, ret_why);
        else if (!has_cores) /* all containers of the claim share them */
            state = choose_cores(chooser, pod, where, claim, request, sharers, ret_choice, ret_why);
        has_cores |= is_of_cores(claim, request);
    }
    if (state == CHOOSE_DONE && ret_choice->count > CLAIM_MAX_RESULTS) {
        *ret_why = arena_printf(chooser->arena,
                                "a claim has at most %d devices, and on node %s it needs more",
                                CLAIM_MAX_RESULTS, where->node->object.name);
        return CHOOSE_MISFIT;
    }
    return state;
}

/* ---- whether an allocation still is right ---- */

static bool agrees_gres(const struct chooser *chooser, const struct job_node *where,
                        const struct pod_claim *claim, const struct device_request *request)
{
    const char *why;
    unsigned count = 0;
    const struct node_device *devices = job_devices(chooser, where, request->row, &count, &why);
    int64_t found = 0;

    for (unsigned i = 0; i < claim->found->result_count; i++) {
        const struct claim_result *result = &claim->found->results[i];
        bool is_given = false;

        if (strcmp(result->request, request->name) != 0)
            continue;
        for (unsigned k = 0; devices && !is_given && k < count; k++)
            is_given = devices[k].device && strcmp(devices[k].device->name, result->device) == 0 &&
                       strcmp(devices[k].pool, result->pool) == 0;
        if (!is_given)
            return false;
        found++;
    }
    return found == request->count;
}

static bool agrees_cores(const struct job_node *where, const struct pod_claim *claim)
{
    const struct slurm_layout_node *given = where->given;
    auto_bitmap struct bitmap cores = { 0 }, theirs = { 0 };

    if (!claim->found->cores[0] || !given || slurm_layout_cores(given, &cores, NULL) < 0 ||
        !read_ranges(claim->found->cores, cores.bits, &theirs))
        return false;
    bitmap_andnot(&theirs, &cores);
    return bitmap_count(&theirs) == 0;
}

bool choose_agrees(struct chooser *chooser, const struct job_node *where,
                   const struct pod_claim *claim)
{
    if (strcmp(claim->found->node, where->node->object.name) != 0)
        return false;
    for (unsigned i = 0; i < claim->request_count; i++)
        if (is_of_cores(claim, &claim->requests[i])
                ? !agrees_cores(where, claim)
                : !agrees_gres(chooser, where, claim, &claim->requests[i]))
            return false;
    return true;
}
