/* takeover.c - `slinc doctor --takeover`: compares the release that is there with the one that Helm
 * would make, and asks the operator's own plans and webhook what that means for the objects in the
 * cluster. Nothing is written, and of Secrets nothing is told. */
#include "cmd/takeover.h"

#include "base/mem.h"
#include "cli/takeover.h"
#include "io/reload.h"
#include "operator/names.h"
#include "operator/rehearse.h"

#include <stdio.h>

enum { MAX_FILE = 64 << 20, MAX_KINDS = 32, MAX_PAIRS = 1024, ANSWER_US = 10 * 1000000 };

struct pair { /* a custom resource as it is, and as it would be */
    const char *kind;
    const struct json *old;
    struct json_doc *next;
};

struct switching {
    struct terminal *terminal;
    struct takeover_release before, after;
    struct takeover_report report;
    const char *ns;
    struct operator_world world;
    struct fetch fetches[MAX_KINDS];
    struct pair pairs[MAX_PAIRS];
    size_t pair_count;
};

static int read_release(const char *flag, const char *path, struct takeover_release *ret_release,
                        struct err *err)
{
    char *bytes;
    size_t length;
    int result = reload_read(path, MAX_FILE, &bytes, &length, err);

    if (result == 0) {
        result = takeover_read((struct str){ bytes, length }, ret_release, err);
        mem_free_secret(bytes, length + 1);
    }
    return result < 0 ? err_wrap(err, "%s: %s", flag, path) : 0;
}

/* ---- the world as it would be ---- */

static bool is_ours(const struct kube_resource *resource)
{
    return strcmp(resource->group, OPERATOR_GROUP) == 0;
}

/* The namespace of the custom resources; NULL: the release has none. */
static const char *find_namespace(const struct switching *all)
{
    for (size_t i = 0; i < all->after.objects.count; i++) {
        const struct json *object = json_root(all->after.objects.docs[i]);
        struct str api = json_str(json_get(object, "apiVersion"));

        if (str_starts(api, STR(OPERATOR_GROUP "/")))
            return json_str_or(json_at(object, "metadata", "namespace"),
                               takeover_namespace(&all->after))
                .at;
    }
    return NULL;
}

static void read_lists(struct switching *all)
{
    for (size_t i = 0; i < operator_kind_count; i++) {
        const char *selector = operator_kinds[i].selector;

        all->fetches[i] = (struct fetch){
            .request = { KUBE_LIST, operator_kinds[i].kind->resource,
                         operator_kinds[i].kind->resource->namespaced ? all->ns : NULL,
                         .timeout_us = ANSWER_US },
        };
        if (selector)
            all->fetches[i].request.query =
                arena_printf(&all->terminal->arena, "labelSelector=%s",
                             terminal_escape(all->terminal, str_of(selector)));
    }
    terminal_fetch(all->terminal, all->fetches, operator_kind_count);
}

/* False: something was not read, and is named. */
static bool is_all_read(struct switching *all)
{
    bool result = true;

    for (size_t i = 0; i < operator_kind_count; i++) {
        struct fetch *fetch = &all->fetches[i];

        if (fetch->doc || operator_kinds[i].is_optional) /* which replaces no pod */
            continue;
        takeover_tell(&all->report, TAKEOVER_UNKNOWN, "which pods are replaced: %s",
                      terminal_lacks(all->terminal, fetch));
        result = false;
    }
    return result;
}

/* A custom resource of the cluster as Helm would leave it; NULL: Helm does not touch it. */
static struct json_doc *next_of(const struct switching *all, const char *kind,
                                const struct json *live)
{
    struct str name = json_str(json_at(live, "metadata", "name"));
    const struct json *before = takeover_find(&all->before, str_of(kind), name);
    const struct json *after = takeover_find(&all->after, str_of(kind), name);
    auto_json_doc struct json_doc *changed = NULL;
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *copy;

    if (!after)
        return NULL;
    changed = takeover_changed(live, before, after);
    copy = json_copy(build, json_root(changed));
    if (!json_equal(json_get(live, "spec"), json_get(json_root(changed), "spec")))
        json_put_i64(build, json_object_at(build, copy, "metadata"), "generation",
                     json_i64_or(json_at(live, "metadata", "generation"), 0) + 1);
    return json_freeze(copy);
}

static void take(struct switching *all, struct kube_cache *cache, const struct json *live)
{
    const struct kube_resource *resource = kube_cache_kind(cache)->resource;
    const struct kube_object *object = NULL;
    const struct json *root = live;
    struct err err = { .class = 0 };

    if (is_ours(resource) && all->pair_count < MAX_PAIRS) {
        struct json_doc *next = next_of(all, resource->kind, live);

        if (next) {
            all->pairs[all->pair_count++] = (struct pair){ resource->kind, live, next };
            root = json_root(next);
        }
    }
    if (kube_object_decode(kube_cache_kind(cache), root, &object, &err) < 0) {
        takeover_tell(&all->report, TAKEOVER_UNKNOWN, "%s: %s", resource->kind, err.text);
        return;
    }
    kube_cache_seen(cache, object);
    kube_object_unref(object);
}

static void fill_world(struct switching *all)
{
    for (size_t i = 0; i < operator_kind_count; i++) {
        struct kube_cache *cache =
            operator_world_cache(&all->world, operator_kinds[i].kind->resource->kind);
        struct json_iter iter = json_iter(json_get(fetch_root(&all->fetches[i]), "items"));
        const struct json *item;

        if (!all->fetches[i].doc)
            continue;
        kube_cache_relist_begin(cache);
        while (json_next_item(&iter, &item))
            take(all, cache, item);
        kube_cache_relist_end(cache, 1);
    }
}

/* ---- what it means ---- */

static void on_rehearsed(void *context, enum rehearsed what, const char *text)
{
    static const enum takeover_topic topics[] = {
        [REHEARSED_ROLLS] = TAKEOVER_ROLLS,    [REHEARSED_CHANGES] = TAKEOVER_CHANGES,
        [REHEARSED_FAILS] = TAKEOVER_UNKNOWN,  [REHEARSED_REFUSED] = TAKEOVER_REFUSED,
        [REHEARSED_WARNED] = TAKEOVER_IGNORED,
    };
    struct switching *all = context;

    takeover_tell(&all->report, topics[what], "%s", text);
}

static void tell_created(struct switching *all)
{
    for (size_t i = 0; i < all->after.objects.count; i++) {
        const struct json *object = json_root(all->after.objects.docs[i]);
        struct str kind = json_str(json_get(object, "kind"));
        struct str name = json_str(json_at(object, "metadata", "name"));
        struct kube_cache *cache = operator_world_cache(&all->world, kind.at);

        if (cache && is_ours(kube_cache_kind(cache)->resource) &&
            !kube_cache_get(cache, all->ns, name.at))
            takeover_tell(&all->report, TAKEOVER_CHANGES, STR_FMT " " STR_FMT " is created",
                          STR_ARG(kind), STR_ARG(name));
    }
}

static void rehearse(struct switching *all)
{
    struct process_api *api = &all->terminal->api;

    operator_world_init(&all->world, loop_clock(api->loop));
    all->world.wall_us = clock_wall_us(loop_clock(api->loop));
    all->world.loop_us = loop_now_us(api->loop);
    all->world.speaks_slurm = true;
    if (api->config->cluster_domain)
        all->world.dns_domain = api->config->cluster_domain;
    read_lists(all);
    if (is_all_read(all)) {
        fill_world(all);
        operator_rehearse(&all->world, on_rehearsed, all);
        for (size_t i = 0; i < all->pair_count; i++)
            operator_rehearse_review(&all->world, all->pairs[i].kind, all->pairs[i].old,
                                     json_root(all->pairs[i].next), on_rehearsed, all);
        tell_created(all);
    }
    for (size_t i = 0; i < all->pair_count; i++)
        json_doc_free(all->pairs[i].next);
    fetch_done(all->fetches, operator_kind_count);
    operator_world_done(&all->world);
}

static enum doctor_result worst_of(const struct takeover_report *report)
{
    return report->first[TAKEOVER_REFUSED] ? DOCTOR_FAILS
           : report->first[TAKEOVER_ROLLS] || report->first[TAKEOVER_IGNORED] ||
                   report->first[TAKEOVER_IMAGES] || report->first[TAKEOVER_UNKNOWN]
               ? DOCTOR_WARNS
               : DOCTOR_OK;
}

int takeover_examine(struct terminal *terminal, enum doctor_result *ret_worst)
{
    struct switching *all = arena_alloc(&terminal->arena, sizeof(*all));
    struct err err = { .class = 0 };

    all->terminal = terminal;
    all->report.arena = &terminal->arena;
    if (!terminal->flags.from || !terminal->flags.from[0])
        return terminal_fail(terminal, TERMINAL_USAGE,
                             "--takeover needs --from: the release that is there");
    if (read_release("--from", terminal->flags.from, &all->before, &err) < 0 ||
        read_release("--takeover", terminal->flags.takeover, &all->after, &err) < 0) {
        takeover_done(&all->before);
        return terminal_fail(terminal, TERMINAL_USAGE, err.text);
    }
    takeover_compare(&all->before, &all->after, &all->report);
    all->ns = find_namespace(all);
    if (all->ns)
        rehearse(all);
    takeover_write(&all->report, terminal->flags.is_json, &terminal->out);
    *ret_worst = worst_of(&all->report);
    takeover_done(&all->before);
    takeover_done(&all->after);
    return TERMINAL_OK;
}
