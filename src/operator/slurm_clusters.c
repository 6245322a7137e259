/* slurm_clusters.c - clients of slurmrestd, one per Controller, and the calls to them.
 *
 * Once a second each Controller is compared with its client, and those whose time has come are
 * asked. Holds: a call that was taken on is finished once, also when its client ends before. */
#include "operator/slurm_clusters.h"

#include "base/list.h"
#include "base/mem.h"
#include "codec/digest.h"
#include "operator/slurm_address.h"
#include "slurm/calls.h"

#include <stdio.h>

enum {
    MAX_CLUSTERS = 1 << 20,
    MAX_KEY = 2 * KUBE_MAX_NAME,
    MAX_SECRET = 64 << 10,
    MIN_CONF_VERSION = 45,
    TOKEN_S = 900,
};

static const int64_t look_us = 1000000, ask_us = 10000000, ask_often_us = 2000000,
                     answer_us = 30000000; /* a name that DNS does not have costs 10 s */

/* What a client is made of. */
struct address {
    char url[SLURM_MAX_URL];
    char key_hash[DIGEST_HEX]; /* of the JWT key */
};

struct cluster {
    struct slurm_clusters *clusters;
    char key[MAX_KEY]; /* "namespace/name" */
    struct slurm_facts *facts;
    struct address address;
    struct http_transport *transport; /* all three or none */
    struct slurm_token *token;
    struct slurm_client *client;
    struct slurm_call *call; /* the ping, or the question for the configuration after it */
    struct list works;       /* struct work */
    int64_t ask_from_us;     /* loop time of the next ping */
    bool is_seen;            /* its Controller is there */
};

struct work { /* an action on its way */
    struct list link;
    struct cluster *cluster; /* NULL: there is none, and it ends by the timer */
    struct slurm_call *call;
    struct loop_timer soon;
    const char *version;
    void (*finish)(void *context, const struct kube_answer *answer);
    void *context;
};

struct slurm_clusters {
    struct slurm_clusters_options options;
    struct map all; /* struct cluster by key */
    struct loop_timer timer;
};

static int64_t now_us(const struct slurm_clusters *clusters)
{
    return loop_now_us(clusters->options.loop);
}

static int64_t wall_us(const struct slurm_clusters *clusters)
{
    return clock_wall_us(loop_clock(clusters->options.loop));
}

static void tell_changed(const struct cluster *cluster)
{
    const struct slurm_clusters_options *options = &cluster->clusters->options;

    options->changed(options->changed_context, str_of(cluster->key));
}

/* ---- facts ---- */

/* Time and reason are those of the first failure of a client: else every one would be a write. */
static void take_failure(struct cluster *cluster, const char *reason)
{
    struct slurm_facts *facts = cluster->facts;

    if (facts->is_known && !facts->is_reachable)
        return;
    facts->is_known = true;
    facts->is_reachable = false;
    facts->since_us = wall_us(cluster->clusters);
    (void)snprintf(facts->reason, sizeof(facts->reason), "%s", reason);
    tell_changed(cluster);
}

static void take_active(struct cluster *cluster, int active)
{
    struct slurm_facts *facts = cluster->facts;

    if (facts->is_known && facts->is_reachable && facts->active == active)
        return;
    facts->is_known = facts->is_reachable = true;
    facts->active = active;
    tell_changed(cluster);
}

/* The first slurmctld that responds; -1: none. */
static int first_responding(const struct json *body)
{
    struct json_iter iter = json_iter(json_get(body, "pings"));
    const struct json *ping;

    for (int i = 0; json_next_item(&iter, &ping); i++)
        if (json_bool_or(json_get(ping, "responding"), false))
            return i;
    return -1;
}

static void on_conf(void *context, const struct slurm_answer *answer)
{
    struct cluster *cluster = context;
    struct slurm_facts *facts = cluster->facts;
    int64_t hash = json_i64_or(json_at(answer->body, "slurm_conf_meta", "HashValue"), -1);

    cluster->call = NULL;
    if (answer->error.class != SLURM_DONE || hash < 0 || hash > UINT32_MAX ||
        (facts->has_conf_hash && facts->conf_hash == (uint32_t)hash))
        return;
    facts->has_conf_hash = true;
    facts->conf_hash = (uint32_t)hash;
    tell_changed(cluster);
}

static void ask(struct cluster *cluster, enum slurm_endpoint endpoint, slurm_done done)
{
    cluster->call = slurm_send(
        cluster->client,
        &(struct slurm_request){
            .verb = SLURM_GET, .endpoint = endpoint, .timeout_us = answer_us, .once = true },
        done, cluster);
}

static void on_ping(void *context, const struct slurm_answer *answer)
{
    struct cluster *cluster = context;
    int active = first_responding(answer->body);

    cluster->call = NULL;
    if (answer->error.class != SLURM_DONE) {
        take_failure(cluster, answer->error.text);
    } else if (active < 0) {
        take_failure(cluster, "no slurmctld responds");
    } else {
        take_active(cluster, active);
        if (answer->version >= MIN_CONF_VERSION)
            ask(cluster, SLURM_CONF, on_conf);
    }
}

/* ---- clients ---- */

static void finish_work(struct work *work, enum kube_outcome outcome, const char *message)
{
    struct kube_answer answer = { .outcome = outcome, .reason = "", .message = message };

    loop_timer_stop(&work->soon);
    list_remove(&work->link);
    work->finish(work->context, &answer);
    mem_free(work);
}

static void end_client(struct cluster *cluster)
{
    if (cluster->call)
        slurm_call_cancel(cluster->call);
    cluster->call = NULL;
    list_each (struct work, work, &cluster->works, link) {
        slurm_call_cancel(work->call);
        finish_work(work, KUBE_UNAVAILABLE, "the address or the key of slurmrestd changed");
    }
    slurm_client_free(cluster->client);
    slurm_token_free(cluster->token);
    http_transport_free(cluster->transport);
    cluster->client = NULL;
    cluster->token = NULL;
    cluster->transport = NULL;
    cluster->address = (struct address){ .url = "" };
}

static void free_cluster(void *value)
{
    struct cluster *cluster = value;

    end_client(cluster);
    mem_free(cluster);
}

static int make_client(struct cluster *cluster, const struct address *address, struct str key,
                       struct err *err)
{
    const struct slurm_clusters_options *options = &cluster->clusters->options;
    int result;

    result = slurm_token_new_minted(loop_clock(options->loop), key, "slurm", TOKEN_S,
                                    &cluster->token, err);
    if (result < 0)
        return result;
    cluster->transport = options->connect(options->connect_context, address->url, err);
    if (!cluster->transport) {
        end_client(cluster);
        return -ERR_UNAVAILABLE;
    }
    cluster->client = slurm_client_new(
        options->loop, cluster->transport, cluster->token,
        &(struct slurm_client_options){ .try_timeout_us = answer_us, .seed = options->seed });
    cluster->address = *address;
    if (!cluster->facts->is_reachable)
        cluster->facts->is_known = false; /* what failed before is mended */
    cluster->ask_from_us = now_us(cluster->clusters);
    return 0;
}

/* The client as it should be: one to the address and with the key of this moment. */
static int update_client(struct cluster *cluster, const struct kube_object *controller,
                         const struct kube_object *restapi, struct err *err)
{
    const struct operator_world *world = cluster->clusters->options.world;
    struct address address = { .url = "" };
    struct buf key;
    int result;

    buf_init(&key, MAX_SECRET);
    if ((result = slurm_url(world, restapi, address.url, err)) == 0 &&
        (result = slurm_jwt_key(world, controller, &key, err)) == 0) {
        digest_sha256(buf_str(&key), address.key_hash);
        if (!cluster->client || strcmp(cluster->address.url, address.url) != 0 ||
            strcmp(cluster->address.key_hash, address.key_hash) != 0) {
            end_client(cluster);
            result = make_client(cluster, &address, buf_str(&key), err);
        }
    }
    mem_free_secret(key.data, key.len);
    return result;
}

/* ---- once a second ---- */

static struct cluster *cluster_of(struct slurm_clusters *clusters, const char *key)
{
    struct cluster *cluster = map_get(&clusters->all, str_of(key));

    if (cluster)
        return cluster;
    cluster = mem_alloc(sizeof(*cluster));
    cluster->clusters = clusters;
    (void)snprintf(cluster->key, sizeof(cluster->key), "%s", key);
    cluster->facts = operator_world_slurm_put(clusters->options.world, str_of(key));
    list_init(&cluster->works);
    (void)map_put(&clusters->all, str_of(key), cluster, NULL);
    tell_changed(cluster);
    return cluster;
}

/* A fail-over, or Slurm's return, is to be seen soon. */
static bool is_asked_often(const struct cluster *cluster, const struct kube_object *controller)
{
    return !cluster->facts->is_reachable ||
           json_bool_or(json_at(operator_spec(controller), "ha", "enabled"), false);
}

static void ask_when_due(struct cluster *cluster, const struct kube_object *controller)
{
    int64_t now = now_us(cluster->clusters);

    if (cluster->call || now < cluster->ask_from_us)
        return;
    cluster->ask_from_us = now + (is_asked_often(cluster, controller) ? ask_often_us : ask_us);
    ask(cluster, SLURM_PING, on_ping);
}

static void look_at(struct slurm_clusters *clusters, const struct kube_object *controller)
{
    struct cluster *cluster;
    const struct kube_object *restapi;
    struct err err = { .class = 0 };
    char key[MAX_KEY];

    (void)snprintf(key, sizeof(key), "%s/%s", controller->ns, controller->name);
    cluster = cluster_of(clusters, key);
    cluster->is_seen = true;
    restapi = slurm_restapi(clusters->options.world, key);
    if (cluster->facts->has_restapi != (restapi != NULL)) {
        *cluster->facts = (struct slurm_facts){ .has_restapi = restapi != NULL, .active = -1 };
        tell_changed(cluster);
    }
    if (!restapi) {
        end_client(cluster);
    } else if (update_client(cluster, controller, restapi, &err) < 0) {
        end_client(cluster);
        take_failure(cluster, err.text);
    } else {
        ask_when_due(cluster, controller);
    }
}

/* What is not listed yet is not missing. */
static bool is_synced(const struct operator_world *world)
{
    return kube_cache_is_synced(world->controllers) && kube_cache_is_synced(world->restapis) &&
           kube_cache_is_synced(world->services) && kube_cache_is_synced(world->secrets);
}

static void look_at_all(struct slurm_clusters *clusters)
{
    struct kube_cache_walk walk = kube_cache_walk(clusters->options.world->controllers);
    const struct kube_object *controller;

    map_each (item, &clusters->all)
        ((struct cluster *)item->value)->is_seen = false;
    while ((controller = kube_cache_next(&walk)))
        if (controller->deleted_us == 0)
            look_at(clusters, controller);
    map_each (item, &clusters->all) {
        struct cluster *cluster = item->value;

        if (cluster->is_seen)
            continue;
        (void)map_remove(&clusters->options.world->slurm, str_of(cluster->key));
        (void)map_remove(&clusters->all, item->key);
    }
}

static void on_look(void *context)
{
    struct slurm_clusters *clusters = context;

    if (is_synced(clusters->options.world))
        look_at_all(clusters);
    loop_timer_start(clusters->options.loop, &clusters->timer, look_us, on_look, clusters);
}

struct slurm_clusters *slurm_clusters_new(const struct slurm_clusters_options *options)
{
    struct slurm_clusters *clusters = mem_alloc(sizeof(*clusters));

    clusters->options = *options;
    map_init(&clusters->all,
             &(struct map_options){ .max = MAX_CLUSTERS, .free_value = free_cluster });
    return clusters;
}

void slurm_clusters_start(struct slurm_clusters *clusters)
{
    if (!loop_timer_is_armed(&clusters->timer))
        loop_timer_start(clusters->options.loop, &clusters->timer, 0, on_look, clusters);
}

void slurm_clusters_free(struct slurm_clusters *clusters)
{
    if (!clusters)
        return;
    loop_timer_stop(&clusters->timer);
    map_done(&clusters->all);
    mem_free(clusters);
}

/* ---- calls as actions ---- */

struct reconfigure { /* detail of an action */
    const char *key, *version;
};

static void on_reconfigured(void *context, const struct slurm_answer *answer)
{
    struct work *work = context;
    struct cluster *cluster = work->cluster;
    struct slurm_facts *facts = cluster->facts;

    if (answer->error.class != SLURM_DONE) {
        finish_work(work, KUBE_UNAVAILABLE, answer->error.text);
        return;
    }
    (void)snprintf(facts->reconfigured, sizeof(facts->reconfigured), "%s", work->version);
    facts->reconfigured_us = wall_us(cluster->clusters);
    cluster->ask_from_us = now_us(cluster->clusters);
    if (!cluster->call && slurm_client_version(cluster->client) >= MIN_CONF_VERSION)
        ask(cluster, SLURM_CONF, on_conf);
    finish_work(work, KUBE_DONE, "");
    tell_changed(cluster);
}

static void on_no_client(void *context)
{
    finish_work(context, KUBE_UNAVAILABLE, "no slurmrestd is known");
}

static void *start(void *service, const struct action *action,
                   void (*finish)(void *context, const struct kube_answer *answer), void *context)
{
    struct slurm_clusters *clusters = service;
    const struct reconfigure *reconfigure = action->detail;
    struct cluster *cluster = map_get(&clusters->all, str_of(reconfigure->key));
    struct work *work = mem_alloc(sizeof(*work));

    *work = (struct work){ .version = reconfigure->version, .finish = finish, .context = context };
    list_init(&work->link);
    if (!cluster || !cluster->client) {
        loop_timer_start(clusters->options.loop, &work->soon, 0, on_no_client, work);
        return work;
    }
    work->cluster = cluster;
    list_push_back(&cluster->works, &work->link);
    work->call = slurm_reconfigure(cluster->client, on_reconfigured, work);
    return work;
}

static void cancel(void *service, void *handle)
{
    struct work *work = handle;

    (void)service;
    loop_timer_stop(&work->soon);
    if (work->call)
        slurm_call_cancel(work->call);
    list_remove(&work->link);
    mem_free(work);
}

static void write_detail(const struct action *action, struct buf *out)
{
    const struct reconfigure *reconfigure = action->detail;

    buf_printf(out, "{\"version\":\"%s\"}", reconfigure->version);
}

/* Each Controller has its own calls and its own pause after one that failed: a slow Slurm holds up
 * no other. */
const struct action_type action_slurmctld = {
    .name = "slurm",
    .max_in_flight = 256,
    .start = start,
    .cancel = cancel,
    .write = write_detail,
};

void plan_slurm_reconfigure(struct plan *plan, const struct kube_object *controller,
                            const char *version)
{
    struct reconfigure *reconfigure = arena_alloc(plan->arena, sizeof(*reconfigure));

    reconfigure->key = arena_printf(plan->arena, "%s/%s", controller->ns, controller->name);
    reconfigure->version = arena_strdup(plan->arena, version);
    (void)plan_add(plan, &action_slurmctld,
                   arena_printf(plan->arena, "reconfigure %s", reconfigure->key), reconfigure);
}
