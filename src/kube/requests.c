/* requests.c - what a pod asks of a node, and its limits, by the rule of Kubernetes' scheduler.
 *
 * Sums are kept in thousandths and rounded up once at the end; they stop at INT64_MAX (9 PB in
 * bytes), which no node has. While memory is counted only the names matter, so no number is read.
 */
#include "kube/requests.h"

#include <stdlib.h>

struct tally {
    struct str name;
    int64_t milli;
};

struct tallies {
    unsigned count;
    struct tally at[KUBE_MAX_RESOURCES];
};

static const char *const columns[] = { "cpu", "memory", "ephemeral-storage", "pods" };

static bool is_column(struct str name)
{
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        if (str_is(name, columns[i]))
            return true;
    return false;
}

/* ---- adding up ---- */

static struct tally *find(struct tallies *tallies, struct str name)
{
    for (unsigned i = 0; i < tallies->count; i++)
        if (str_eq(tallies->at[i].name, name))
            return &tallies->at[i];
    return NULL;
}

static int find_or_add(struct tallies *tallies, struct str name, struct tally **ret_tally,
                       struct err *err)
{
    struct tally *tally = find(tallies, name);

    if (!tally) {
        if (tallies->count == KUBE_MAX_RESOURCES)
            return err_set(err, ERR_TOO_BIG, "more than %d resources", KUBE_MAX_RESOURCES);
        tally = &tallies->at[tallies->count++];
        *tally = (struct tally){ .name = name };
    }
    *ret_tally = tally;
    return 0;
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t second(int64_t a, int64_t b)
{
    (void)a;
    return b;
}

static int64_t plus_where_set(int64_t a, int64_t b)
{
    return a == 0 ? 0 : plus(a, b);
}

typedef int64_t combine(int64_t a, int64_t b);

static int take_tallies(struct tallies *into, const struct tallies *from, combine *how,
                        struct err *err)
{
    for (unsigned i = 0; i < from->count; i++) {
        struct tally *tally;
        int rc = find_or_add(into, from->at[i].name, &tally, err);

        if (rc < 0)
            return rc;
        tally->milli = how(tally->milli, from->at[i].milli);
    }
    return 0;
}

static int read_list(bool counting, const struct json *list, struct tallies *ret_tallies,
                     struct err *err)
{
    struct json_iter iter = json_iter(list);
    const struct json *value;
    struct str name;

    ret_tallies->count = 0;
    while (json_next_member(&iter, &name, &value)) {
        struct tally *tally;
        int rc = find_or_add(ret_tallies, name, &tally, err);

        if (rc == 0 && !counting)
            rc = kube_quantity(value, true, &tally->milli, err);
        if (rc < 0)
            return err_wrap(err, STR_FMT, STR_ARG(name));
    }
    return 0;
}

/* ---- the rule ---- */

struct sums {
    bool counting;
    const char *what;        /* "requests" or "limits" */
    struct tallies total;    /* what runs side by side in the end */
    struct tallies sidecars; /* those started so far, while the init containers run */
    struct tallies init;     /* the most that was needed during the start */
    struct tallies list, step;
};

static int add_containers(struct sums *sums, const struct json *containers, struct err *err)
{
    struct json_iter iter = json_iter(containers);
    const struct json *container;
    int rc = 0;

    while (rc == 0 && json_next_item(&iter, &container)) {
        rc = read_list(sums->counting, json_at(container, "resources", sums->what), &sums->list,
                       err);
        if (rc == 0)
            rc = take_tallies(&sums->total, &sums->list, plus, err);
    }
    return rc;
}

/* A sidecar (an init container that is restarted always) runs from its turn to the end. */
static int add_init_container(struct sums *sums, const struct json *container, struct err *err)
{
    bool sidecar = str_is(json_str(json_get(container, "restartPolicy")), "Always");
    int rc =
        read_list(sums->counting, json_at(container, "resources", sums->what), &sums->list, err);

    if (rc == 0 && sidecar)
        rc = take_tallies(&sums->total, &sums->list, plus, err);
    if (rc == 0 && sidecar)
        rc = take_tallies(&sums->sidecars, &sums->list, plus, err);
    if (rc < 0)
        return rc;
    sums->step.count = 0;
    rc = take_tallies(&sums->step, &sums->sidecars, plus, err);
    if (rc == 0 && !sidecar)
        rc = take_tallies(&sums->step, &sums->list, plus, err);
    return rc < 0 ? rc : take_tallies(&sums->init, &sums->step, larger, err);
}

static int add_init_containers(struct sums *sums, const struct json *containers, struct err *err)
{
    struct json_iter iter = json_iter(containers);
    const struct json *container;
    int rc = 0;

    while (rc == 0 && json_next_item(&iter, &container))
        rc = add_init_container(sums, container, err);
    return rc < 0 ? rc : take_tallies(&sums->total, &sums->init, larger, err);
}

static bool is_pod_level(struct str name)
{
    return str_is(name, "cpu") || str_is(name, "memory") || str_starts(name, STR("hugepages-"));
}

static int set_pod_level(struct sums *sums, const struct json *list, struct err *err)
{
    int rc = read_list(sums->counting, list, &sums->list, err);
    unsigned kept = 0;

    for (unsigned i = 0; rc == 0 && i < sums->list.count; i++)
        if (is_pod_level(sums->list.at[i].name))
            sums->list.at[kept++] = sums->list.at[i];
    sums->list.count = kept;
    return rc < 0 ? rc : take_tallies(&sums->total, &sums->list, second, err);
}

static int add_overhead(struct sums *sums, const struct json *overhead, struct err *err)
{
    int rc = read_list(sums->counting, overhead, &sums->list, err);

    return rc < 0 ? rc : take_tallies(&sums->total, &sums->list, plus, err);
}

static int add_overhead_to_limits(struct sums *sums, const struct json *overhead, struct err *err)
{
    int rc = read_list(sums->counting, overhead, &sums->list, err);
    unsigned kept = 0;

    for (unsigned i = 0; rc == 0 && i < sums->list.count; i++)
        if (find(&sums->total, sums->list.at[i].name))
            sums->list.at[kept++] = sums->list.at[i];
    sums->list.count = kept;
    return rc < 0 ? rc : take_tallies(&sums->total, &sums->list, plus_where_set, err);
}

/* ---- the result ---- */

static int64_t units(int64_t milli)
{
    return milli / 1000 + (milli % 1000 > 0);
}

static int compare_names(const void *left, const void *right)
{
    const struct tally *a = left, *b = right;

    return str_cmp(a->name, b->name);
}

static struct kube_amounts keep_extended(struct kube_decoder *decoder, struct tallies *tallies)
{
    struct kube_amount *amounts;
    unsigned kept = 0;

    for (unsigned i = 0; i < tallies->count; i++)
        if (!is_column(tallies->at[i].name))
            tallies->at[kept++] = tallies->at[i];
    if (kept == 0)
        return (struct kube_amounts){ 0 };
    qsort(tallies->at, kept, sizeof(tallies->at[0]), compare_names);
    amounts = kube_decoder_alloc(decoder, kept * sizeof(*amounts));
    for (unsigned i = 0; i < kept; i++)
        amounts[i] = (struct kube_amount){ kube_decoder_str(decoder, tallies->at[i].name),
                                           units(tallies->at[i].milli) };
    return (struct kube_amounts){ amounts, kept };
}

static int64_t milli_of(struct tallies *tallies, const char *name)
{
    const struct tally *tally = find(tallies, str_of(name));

    return tally ? tally->milli : 0;
}

struct parts { /* of a pod's spec, looked up once for requests and limits and both passes */
    const struct json *containers, *init_containers, *pod_level, *overhead;
};

typedef int add_overhead_to(struct sums *sums, const struct json *overhead, struct err *err);

static int decode_sums(struct kube_decoder *decoder, const struct parts *parts, const char *what,
                       add_overhead_to *overhead_to, struct kube_requests *ret_sums,
                       struct err *err)
{
    struct sums sums; /* 8 kB, of which only the counts need to be set */
    const struct json *pod_level = json_get(parts->pod_level, what);
    int rc;

    sums.counting = kube_decoder_is_counting(decoder);
    sums.what = what;
    sums.total.count = sums.sidecars.count = sums.init.count = 0;
    rc = add_containers(&sums, parts->containers, err);
    if (rc == 0 && parts->init_containers)
        rc = add_init_containers(&sums, parts->init_containers, err);
    if (rc == 0 && pod_level)
        rc = set_pod_level(&sums, pod_level, err);
    if (rc == 0 && parts->overhead)
        rc = overhead_to(&sums, parts->overhead, err);
    if (rc < 0)
        return err_wrap(err, "%s", what);
    ret_sums->cpu_milli = milli_of(&sums.total, "cpu");
    ret_sums->memory = units(milli_of(&sums.total, "memory"));
    ret_sums->ephemeral = units(milli_of(&sums.total, "ephemeral-storage"));
    ret_sums->extended = keep_extended(decoder, &sums.total);
    return 0;
}

int kube_requests_decode(struct kube_decoder *decoder, const struct json *spec,
                         struct kube_requests *ret_requests, struct kube_requests *ret_limits,
                         struct err *err)
{
    struct parts parts = {
        .containers = kube_decoder_get(decoder, spec, "containers"),
        .init_containers = kube_decoder_get(decoder, spec, "initContainers"),
        .pod_level = kube_decoder_get(decoder, spec, "resources"),
        .overhead = kube_decoder_get(decoder, spec, "overhead"),
    };
    int rc = decode_sums(decoder, &parts, "requests", add_overhead, ret_requests, err);

    return rc < 0 ? rc
                  : decode_sums(decoder, &parts, "limits", add_overhead_to_limits, ret_limits, err);
}

int kube_extended_decode(struct kube_decoder *decoder, const struct json *list,
                         const struct kube_amounts *base, struct kube_amounts *ret_amounts,
                         struct err *err)
{
    struct tallies old, changes;
    int rc = read_list(kube_decoder_is_counting(decoder), list, &changes, err);

    old.count = 0;
    for (unsigned i = 0; rc == 0 && i < base->count; i++)
        if (!json_get(list, base->at[i].name))
            old.at[old.count++] =
                (struct tally){ str_of(base->at[i].name), base->at[i].amount > INT64_MAX / 1000
                                                              ? INT64_MAX
                                                              : base->at[i].amount * 1000 };
    if (rc == 0)
        rc = take_tallies(&old, &changes, second, err);
    if (rc == 0)
        *ret_amounts = keep_extended(decoder, &old);
    return rc;
}
