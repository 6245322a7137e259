/* watch.c - what the webhook reads of the cluster: the caches of one that runs alone, and who
 * we are, by a SelfSubjectReview.
 *
 * Holds: a kind that not every server has is watched once the API server has said that it knows
 * it; until then its cache is not synced. */
#include "admit/watch.h"

#include "base/log.h"
#include "base/mem.h"
#include "engine/watch_set.h"
#include "kube/workload_kinds.h"

enum { SECOND_US = 1000000, RETRY_US = 5 * SECOND_US, ANSWER_US = 10 * SECOND_US };

/* Where each kind that may own a pod is in a world. */
static const struct {
    const struct kube_kind *kind;
    size_t offset; /* of its cache; of a struct optional when it is optional */
    bool is_optional;
} rows[] = {
    { &kube_namespace_kind, offsetof(struct bridge_world, namespaces), false },
    { &kube_job_kind, offsetof(struct bridge_world, jobs), false },
    { &kube_replicaset_kind, offsetof(struct bridge_world, replicasets), false },
    { &kube_statefulset_kind, offsetof(struct bridge_world, statefulsets), false },
    { &kube_jobset_kind, offsetof(struct bridge_world, optional[OPTIONAL_JOBSETS]), true },
    { &kube_lws_kind, offsetof(struct bridge_world, optional[OPTIONAL_LWS]), true },
    { &kube_podgroup_kind, offsetof(struct bridge_world, optional[OPTIONAL_PODGROUPS]), true },
    { &kube_workload_kind, offsetof(struct bridge_world, optional[OPTIONAL_WORKLOADS]), true },
    { &kube_coscheduling_kind, offsetof(struct bridge_world, optional[OPTIONAL_COSCHEDULING]),
      true },
};

enum { KINDS = sizeof(rows) / sizeof(rows[0]) };

struct admit_watch {
    struct loop *loop;
    struct loop_timer refresh;
    struct rand rand;
    struct kube_cache *caches[KINDS];
    struct watch_set *set;
    struct bridge_world world;
};

/* Which of the optional kinds the server has. */
static void refresh(void *context)
{
    struct admit_watch *watch = context;

    for (unsigned i = 0; i < KINDS; i++) {
        struct optional *optional = (void *)((char *)&watch->world + rows[i].offset);

        if (rows[i].is_optional)
            *optional = (struct optional){ watch->caches[i],
                                           watch_set_state(watch->set, watch->caches[i]) };
    }
    loop_timer_start(watch->loop, &watch->refresh, SECOND_US, refresh, watch);
}

struct admit_watch *admit_watch_new(struct kube_client *client, uint64_t seed)
{
    struct admit_watch *watch = mem_alloc(sizeof(*watch));
    struct watch_row watched[KINDS];

    watch->loop = kube_client_loop(client);
    rand_init(&watch->rand, seed);
    for (unsigned i = 0; i < KINDS; i++) {
        watch->caches[i] = kube_cache_new(rows[i].kind, loop_clock(watch->loop));
        watched[i] =
            (struct watch_row){ .cache = watch->caches[i], .is_optional = rows[i].is_optional };
        if (!rows[i].is_optional)
            *(struct kube_cache **)(void *)((char *)&watch->world + rows[i].offset) =
                watch->caches[i];
    }
    watch->set = watch_set_new(client, &watch->rand, watched, KINDS, NULL, 0, 0);
    watch_set_start(watch->set);
    refresh(watch);
    return watch;
}

void admit_watch_free(struct admit_watch *watch)
{
    if (!watch)
        return;
    loop_timer_stop(&watch->refresh);
    watch_set_free(watch->set);
    for (unsigned i = 0; i < KINDS; i++)
        kube_cache_free(watch->caches[i]);
    mem_free(watch);
}

const struct bridge_world *admit_watch_world(const struct admit_watch *watch)
{
    return &watch->world;
}

void admit_watch_add_health(const struct admit_watch *watch, struct health *health)
{
    watch_set_add_health(watch->set, health);
}

/* ---- who we are ---- */

static const struct kube_resource self_subject_reviews = { "authentication.k8s.io", "v1",
                                                           "selfsubjectreviews",
                                                           "SelfSubjectReview", false };

struct admit_self {
    struct kube_client *client;
    struct admit *admit;
    struct kube_call *call;
    struct loop_timer retry;
    bool was_told; /* that it cannot be known */
};

static void ask_who_we_are(void *context);

static void on_who_we_are(void *context, const struct kube_answer *answer)
{
    struct admit_self *self = context;
    struct str user = json_str(json_at(answer->object, "status", "userInfo", "username"));

    self->call = NULL;
    if (answer->outcome == KUBE_DONE && user.len > 0) {
        log_info("updates of pods by this user are never refused", LOG_STR("user", user));
        admit_trust(self->admit, user);
        return;
    }
    if (!self->was_told)
        log_warn("cannot ask who we are: an update of a running pod by the bridge may be refused",
                 LOG_TEXT("outcome", kube_outcome_name(answer->outcome)),
                 LOG_TEXT("error", answer->message));
    self->was_told = true;
    loop_timer_start(kube_client_loop(self->client), &self->retry, RETRY_US, ask_who_we_are, self);
}

static void ask_who_we_are(void *context)
{
    struct admit_self *self = context;
    const struct kube_request request = {
        .verb = KUBE_CREATE,
        .resource = &self_subject_reviews,
        .body = STR("{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}"),
        .timeout_us = ANSWER_US,
    };

    self->call = kube_send(self->client, &request, on_who_we_are, self);
}

struct admit_self *admit_self_new(struct kube_client *client, struct admit *admit)
{
    struct admit_self *self = mem_alloc(sizeof(*self));

    self->client = client;
    self->admit = admit;
    ask_who_we_are(self);
    return self;
}

void admit_self_free(struct admit_self *self)
{
    if (!self)
        return;
    loop_timer_stop(&self->retry);
    if (self->call)
        kube_call_cancel(self->call);
    mem_free(self);
}
