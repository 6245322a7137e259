/* admit_rig.h - a webhook for tests: config, caches, reviews with single quotes, and the answers.
 */
#ifndef SLINC_TESTS_BRIDGE_ADMIT_RIG_H
#define SLINC_TESTS_BRIDGE_ADMIT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admit/admit.h"
#include "bridge/world/names.h"
#include "codec/base64.h"
#include "codec/patch.h"
#include "kube/workload_kinds.h"

#define RIG_UNUSED   __attribute__((unused))
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define SCHEDULER    "slurm-bridge-scheduler"
#define WISH         BRIDGE_ANNOTATION_PREFIX

struct rig {
    struct clock clock;
    struct bridge_config config;
    struct bridge_world world; /* with all kinds that may own a pod */
    struct kube_cache *namespaces, *jobs, *jobsets, *replicasets, *podgroups, *workloads;
    struct admit *admit;
    struct arena arena; /* texts and documents of one test */
    struct json_doc *docs[512];
    unsigned doc_count;
};

/* One review; NULL where nothing is said. */
struct call {
    const char *op; /* NULL: CREATE */
    const char *ns; /* NULL: slurm-bridge, which is managed */
    const char *sub, *user, *pod, *old;
    const char *resource; /* NULL: pods */
    const char *groups;   /* of the user, as a JSON list; NULL: none */
};

struct reply {
    struct admit_answer answer;
    const char *text;            /* all of it */
    const struct json *response; /* NULL unless the status is 200 */
    const struct json *patch;    /* NULL when there is none */
    const char *message;         /* of a denial; "" */
    int64_t code;
};

/* Texts in tests have ' for ". */
RIG_UNUSED static const char *quoted(struct rig *rig, const char *text)
{
    char *copy = arena_strdup(&rig->arena, text);

    for (char *at = copy; *at; at++)
        if (*at == '\'')
            *at = '"';
    return copy;
}

RIG_UNUSED static const struct json *parsed_plain(struct rig *rig, const char *text)
{
    struct err err = { .class = 0 };

    assert_true(rig->doc_count < COUNT(rig->docs));
    if (json_parse(str_of(text), 16 << 20, &rig->docs[rig->doc_count], &err) < 0)
        fail_msg("%s in %s", err.text, text);
    return json_root(rig->docs[rig->doc_count++]);
}

RIG_UNUSED static const struct json *parsed(struct rig *rig, const char *text)
{
    return parsed_plain(rig, quoted(rig, text));
}

RIG_UNUSED static void rig_begin(struct rig *rig, const char *config)
{
    struct err err = { .class = 0 };

    *rig = (struct rig){ .doc_count = 0 };
    clock_init_virtual(&rig->clock, 0);
    arena_init(&rig->arena, 64 << 20);
    if (bridge_config_parse(str_of(config), &rig->config, &err) < 0)
        fail_msg("%s", err.text);
    rig->namespaces = kube_cache_new(&kube_namespace_kind, &rig->clock);
    rig->jobs = kube_cache_new(&kube_job_kind, &rig->clock);
    rig->jobsets = kube_cache_new(&kube_jobset_kind, &rig->clock);
    rig->replicasets = kube_cache_new(&kube_replicaset_kind, &rig->clock);
    rig->podgroups = kube_cache_new(&kube_podgroup_kind, &rig->clock);
    rig->workloads = kube_cache_new(&kube_workload_kind, &rig->clock);
    rig->world = (struct bridge_world){
        .namespaces = rig->namespaces,
        .jobs = rig->jobs,
        .replicasets = rig->replicasets,
        .optional = { [OPTIONAL_JOBSETS] = { rig->jobsets, WATCH_PRESENT },
                      [OPTIONAL_PODGROUPS] = { rig->podgroups, WATCH_PRESENT },
                      [OPTIONAL_WORKLOADS] = { rig->workloads, WATCH_PRESENT },
                      [OPTIONAL_LWS] = { NULL, WATCH_ABSENT },
                      [OPTIONAL_COSCHEDULING] = { NULL, WATCH_ABSENT } },
    };
    assert_int_equal(admit_new(&rig->config, &rig->world, &rig->admit, NULL), 0);
}

RIG_UNUSED static void rig_end(struct rig *rig)
{
    admit_free(rig->admit);
    kube_cache_free(rig->namespaces);
    kube_cache_free(rig->jobs);
    kube_cache_free(rig->jobsets);
    kube_cache_free(rig->replicasets);
    kube_cache_free(rig->podgroups);
    kube_cache_free(rig->workloads);
    bridge_config_done(&rig->config);
    for (unsigned i = 0; i < rig->doc_count; i++)
        json_doc_free(rig->docs[i]);
    arena_done(&rig->arena);
}

/* The cache has read all there is, and this. */
RIG_UNUSED static void rig_see(struct rig *rig, struct kube_cache *cache, const char *text)
{
    const struct kube_object *object;
    struct err err = { .class = 0 };

    kube_cache_relist_begin(cache);
    if (text) {
        if (kube_object_decode(kube_cache_kind(cache), parsed(rig, text), &object, &err) < 0)
            fail_msg("%s in %s", err.text, text);
        kube_cache_seen(cache, object);
        kube_object_unref(object);
    }
    kube_cache_relist_end(cache, 1);
}

static const char *rig_member(struct rig *rig, const char *key, const char *value, bool is_text)
{
    const char *quote = is_text ? "'" : "";

    return value ? arena_printf(&rig->arena, ",'%s':%s%s%s", key, quote, value, quote) : "";
}

RIG_UNUSED static const char *rig_review(struct rig *rig, const struct call *call)
{
    return quoted(
        rig,
        arena_printf(
            &rig->arena,
            "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','request':{'uid':'u-1'"
            ",'resource':{'group':'','version':'v1','resource':'%s'},'operation':'%s'"
            ",'namespace':'%s','userInfo':{'username':'%s'%s}%s%s%s}}",
            call->resource ? call->resource : "pods", call->op ? call->op : "CREATE",
            call->ns ? call->ns : "slurm-bridge", call->user ? call->user : "",
            rig_member(rig, "groups", call->groups, false),
            rig_member(rig, "subResource", call->sub, true),
            rig_member(rig, "object", call->pod, false),
            rig_member(rig, "oldObject", call->old, false)));
}

static const struct json *rig_patch(struct rig *rig, const struct json *response)
{
    struct str text = json_str(json_get(response, "patch"));
    auto_buf struct buf patch = { .max = 1 << 20 };

    if (text.len == 0)
        return NULL;
    assert_true(str_is(json_str(json_get(response, "patchType")), "JSONPatch"));
    assert_int_equal(base64_decode(text, 0, &patch, NULL), 0);
    return parsed_plain(rig, buf_text(&patch));
}

RIG_UNUSED static struct reply rig_send(struct rig *rig, enum admit_hook hook, struct str body)
{
    auto_buf struct buf out = { .max = ADMIT_MAX_ANSWER };
    struct reply reply = { .answer = admit_review(rig->admit, hook, body, &out) };

    reply.text = arena_strdup(&rig->arena, buf_text(&out));
    reply.message = "";
    if (reply.answer.status != 200)
        return reply;
    reply.response = json_get(parsed_plain(rig, reply.text), "response");
    reply.patch = rig_patch(rig, reply.response);
    reply.message = json_str(json_at(reply.response, "status", "message")).at;
    reply.code = json_i64_or(json_at(reply.response, "status", "code"), 0);
    return reply;
}

RIG_UNUSED static struct reply rig_ask(struct rig *rig, enum admit_hook hook, struct call call)
{
    struct reply reply = rig_send(rig, hook, str_of(rig_review(rig, &call)));

    assert_true(reply.answer.status != 200 ||
                str_is(json_str(json_get(reply.response, "uid")), "u-1"));
    return reply;
}

#endif
