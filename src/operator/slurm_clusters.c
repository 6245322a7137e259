/* slurm_clusters.c - clients of slurmrestd, one per Controller, and what they read.
 *
 * Once a second each Controller is compared with its client, and those whose time has come are
 * asked. A Controller that NodeSets refer to has a poller too, which keeps Slurm's nodes and jobs
 * in caches. */
#include "base/mem.h"
#include "codec/hostlist.h"
#include "operator/hashes.h"
#include "operator/slurm_address.h"
#include "operator/slurm_clusters_private.h"
#include "operator/slurm_view.h"
#include "slurm/calls.h"

#include <stdio.h>

enum {
    MAX_CLUSTERS = 1 << 20,
    MAX_CALLS = 256, /* to one Slurm cluster at once: a slow one holds up no other */
    MAX_SECRET = 64 << 10,
    MIN_CONF_VERSION = 45,
    TOKEN_S = 900,
    MAX_NODES_READ = 256, /* of a job that starts or ends */
    MAX_READS = 128,      /* of nodes, in a second: more cost as much as their list */
    SHORT_LIST = 256,     /* of nodes: comes so soon that none is read alone */
    MAX_HOSTLIST_MEMORY = 1 << 20,
};

static const int64_t look_us = 1000000, ask_us = 10000000, ask_often_us = 2000000,
                     answer_us = 30000000, /* a name that DNS does not have costs 10 s */
    poll_us = 1000000, nodes_us = 500000, expect_us = 5000000;

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

/* Time and reason are those of the first failure. */
static void take_accounting(struct cluster *cluster, enum slurm_accounting accounting,
                            const char *reason)
{
    struct slurm_facts *facts = cluster->facts;

    if (facts->accounting == accounting)
        return;
    facts->accounting = accounting;
    facts->accounting_since_us = wall_us(cluster->clusters);
    (void)snprintf(facts->accounting_reason, sizeof(facts->accounting_reason), "%s", reason);
    tell_changed(cluster);
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
        cluster->lane.client,
        &(struct slurm_request){
            .verb = SLURM_GET, .endpoint = endpoint, .timeout_us = answer_us, .once = true },
        done, cluster);
}

/* A list of slurmdbd comes from its database. A failure without a number of Slurm is one of
 * slurmrestd, of which the ping tells. */
static void on_database(void *context, const struct slurm_answer *answer)
{
    struct cluster *cluster = context;

    cluster->database_call = NULL;
    if (answer->error.class == SLURM_DONE)
        take_accounting(cluster, ACCOUNTING_ANSWERS, "");
    else if (answer->error.number != 0 || answer->error.class == SLURM_TIMEOUT)
        take_accounting(cluster, ACCOUNTING_LOST, answer->error.text);
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

/* What a reconfigure changed is to be seen soon. */
void slurm_cluster_reconfigured(struct cluster *cluster, const char *version)
{
    struct slurm_facts *facts = cluster->facts;

    (void)snprintf(facts->reconfigured, sizeof(facts->reconfigured), "%s", version);
    facts->reconfigured_us = wall_us(cluster->clusters);
    cluster->ask_from_us = now_us(cluster->clusters);
    if (!cluster->call && slurm_client_version(cluster->lane.client) >= MIN_CONF_VERSION)
        ask(cluster, SLURM_CONF, on_conf);
    tell_changed(cluster);
}

/* ---- caches of nodes, jobs and reservations ---- */

static void on_node(void *context, const struct slurm_object *old, const struct slurm_object *next)
{
    const struct cluster *cluster = context;
    const struct slurm_clusters_options *options = &cluster->clusters->options;

    (void)old;
    (void)next;
    if (options->nodes_changed)
        options->nodes_changed(options->changed_context, str_of(cluster->key));
}

/* Plans of NodeSets read where jobs run, since when, and how long they may. */
static bool concerns_workers(const struct slurm_job *a, const struct slurm_job *b)
{
    return slurm_words_has(&a->state, SLURM_JOB_RUNNING) !=
               slurm_words_has(&b->state, SLURM_JOB_RUNNING) ||
           slurm_job_has_ended(&a->state) != slurm_job_has_ended(&b->state) ||
           strcmp(a->nodes, b->nodes) != 0 || a->start_time != b->start_time ||
           !slurm_number_equal(a->time_limit, b->time_limit);
}

/* Whether this job was on nodes and leaves them: it has ended, or its last processes are ending. */
static bool leaves_nodes(const struct slurm_object *old, const struct slurm_object *next)
{
    const struct slurm_job *was = old ? slurm_job_of(old) : NULL;

    return was && was->nodes[0] &&
           (!slurm_job_has_ended(&was->state) ||
            slurm_words_has(&was->state, SLURM_JOB_COMPLETING)) &&
           (!next || slurm_job_has_ended(&slurm_job_of(next)->state));
}

static bool starts(const struct slurm_object *old, const struct slurm_object *next)
{
    return next && slurm_words_has(&slurm_job_of(next)->state, SLURM_JOB_RUNNING) &&
           (!old || !slurm_words_has(&slurm_job_of(old)->state, SLURM_JOB_RUNNING));
}

/* Whether reading this node alone is worth it: a worker whose state comes with a long list. Nodes
 * that are no workers have jobs, too. */
static bool is_read_alone(const struct cluster *cluster, const struct slurm_node *node)
{
    return slurm_cache_count(cluster->facts->nodes) > SHORT_LIST && cluster->reads_left > 0 &&
           strstr(node->comment, "nodeSetUID");
}

/* The state of a node changes with its jobs. Conditions of pods show it, and a worker that drains
 * is deleted when its last job has ended: a list of thousands of nodes tells it seconds later. */
static void read_nodes(struct cluster *cluster, const struct slurm_job *job)
{
    const struct slurm_object *node;
    const struct hostlist *list;
    auto_arena struct arena arena;
    struct hostlist_iter iter;
    bool is_draining;
    struct str name;

    arena_init(&arena, MAX_HOSTLIST_MEMORY);
    if (hostlist_parse(&arena, str_of(job->nodes), MAX_NODES_READ, &list, NULL) < 0)
        return; /* the list tells */
    iter = hostlist_iter(list);
    while (hostlist_next(&iter, &name)) {
        node = slurm_cache_get(cluster->facts->nodes, name.at);
        is_draining = node && slurm_node_is_draining(slurm_node_of(node));
        if (!node || (!is_draining && !is_read_alone(cluster, slurm_node_of(node))))
            continue;
        slurm_poller_read(cluster->lane.poller, SLURM_FEED_NODES, name.at);
        if (is_draining)
            slurm_poller_expect(cluster->lane.poller, now_us(cluster->clusters) + expect_us);
        else
            cluster->reads_left--;
    }
}

static void on_job(void *context, const struct slurm_object *old, const struct slurm_object *next)
{
    struct cluster *cluster = context;

    if (leaves_nodes(old, next))
        read_nodes(cluster, slurm_job_of(old));
    else if (starts(old, next) && slurm_cache_is_synced(cluster->facts->jobs))
        read_nodes(cluster, slurm_job_of(next));
    if (!old || !next || concerns_workers(slurm_job_of(old), slurm_job_of(next)))
        on_node(context, old, next);
}

static void start_poller(struct cluster *cluster)
{
    struct slurm_facts *facts = cluster->facts;
    struct slurm_poller *poller = slurm_poller_new(
        cluster->lane.client,
        &(struct slurm_poller_options){ .slow_us = poll_us, .nodes_us = nodes_us });

    cluster->lane.poller = poller;
    facts->nodes = slurm_poller_cache(poller, SLURM_FEED_NODES);
    facts->jobs = slurm_poller_cache(poller, SLURM_FEED_JOBS);
    facts->partitions = slurm_poller_cache(poller, SLURM_FEED_PARTITIONS);
    facts->reservations = slurm_poller_cache(poller, SLURM_FEED_RESERVATIONS);
    slurm_cache_listen(facts->nodes, on_node, cluster);
    slurm_cache_listen(facts->jobs, on_job, cluster);
    slurm_cache_listen(facts->reservations, on_node, cluster);
    slurm_poller_start(poller);
}

static void end_poller(struct cluster *cluster)
{
    slurm_poller_free(cluster->lane.poller);
    cluster->lane.poller = NULL;
    cluster->facts->nodes = cluster->facts->jobs = NULL;
    cluster->facts->partitions = cluster->facts->reservations = NULL;
}

static void update_poller(struct cluster *cluster)
{
    const struct operator_world *world = cluster->clusters->options.world;
    bool is_wanted =
        kube_cache_count_by(world->nodesets, world->by_controller, str_of(cluster->key)) > 0;

    if (is_wanted && !cluster->lane.poller)
        start_poller(cluster);
    else if (!is_wanted && cluster->lane.poller)
        end_poller(cluster);
    cluster->facts->is_suspicious =
        cluster->lane.poller && slurm_poller_is_suspicious(cluster->lane.poller);
}

/* ---- clients ---- */

static void end_client(struct cluster *cluster)
{
    struct slurm_client *client = cluster->lane.client;

    if (cluster->call)
        slurm_call_cancel(cluster->call);
    cluster->call = NULL;
    if (cluster->database_call)
        slurm_call_cancel(cluster->database_call);
    cluster->database_call = NULL;
    end_poller(cluster);
    slurm_lane_close(&cluster->lane, "the address or the key of slurmrestd changed");
    slurm_client_free(client);
    slurm_token_free(cluster->token);
    http_transport_free(cluster->transport);
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
    cluster->lane.client = slurm_client_new(
        options->loop, cluster->transport, cluster->token,
        &(struct slurm_client_options){ .try_timeout_us = answer_us,
                                        .seed = options->seed,
                                        .may_write = options->may_act,
                                        .may_write_context = options->changed_context });
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
        if (!cluster->lane.client || strcmp(cluster->address.url, address.url) != 0 ||
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
    slurm_lane_init(&cluster->lane, clusters->options.loop);
    cluster->lane.max_tasks = MAX_CALLS;
    cluster->lane.may_act = clusters->options.may_act;
    cluster->lane.context = clusters->options.changed_context;
    (void)map_put(&clusters->all, str_of(key), cluster, NULL);
    tell_changed(cluster);
    return cluster;
}

/* A fail-over, or Slurm's return, is to be seen soon. */
static bool is_asked_often(const struct cluster *cluster, const struct kube_object *controller)
{
    return !cluster->facts->is_reachable || spec_flag(controller, "ha.enabled");
}

static void ask_database_when_due(struct cluster *cluster, const struct kube_object *controller)
{
    const struct operator_world *world = cluster->clusters->options.world;
    int64_t now = now_us(cluster->clusters);

    if (!operator_world_ref(world->accountings, controller, "accountingRef")) {
        take_accounting(cluster, ACCOUNTING_NOT_KNOWN, "");
        return;
    }
    if (!cluster->facts->is_reachable || cluster->database_call || now < cluster->database_from_us)
        return;
    cluster->database_from_us =
        now + (cluster->facts->accounting == ACCOUNTING_ANSWERS ? ask_us : ask_often_us);
    cluster->database_call = slurm_send(
        cluster->lane.client,
        &(struct slurm_request){
            .verb = SLURM_GET, .endpoint = SLURM_DB_QOS, .timeout_us = answer_us, .once = true },
        on_database, cluster);
}

static void ask_when_due(struct cluster *cluster, const struct kube_object *controller)
{
    int64_t now = now_us(cluster->clusters);

    if (cluster->call || now < cluster->ask_from_us)
        return;
    cluster->ask_from_us = now + (is_asked_often(cluster, controller) ? ask_often_us : ask_us);
    ask(cluster, SLURM_PING, on_ping);
}

/* Names the Secret with the key to those who read Secrets; NULL: none any more. */
static enum kube_known look_for_key(const struct cluster *cluster,
                                    const struct kube_object *controller, struct err *err)
{
    const struct operator_world *world = cluster->clusters->options.world;
    char who[SLURM_MAX_CLUSTER_KEY + 16];

    (void)snprintf(who, sizeof(who), "slurm %s", cluster->key);
    kube_reader_begin(world->secret_reader, str_of(who));
    if (controller)
        (void)operator_world_ref(world->secrets, controller, jwt_key_ref(controller));
    return kube_reader_end(world->secret_reader, err);
}

static void look_at(struct slurm_clusters *clusters, const struct kube_object *controller)
{
    struct cluster *cluster;
    const struct kube_object *restapi;
    struct err err = { .class = 0 };
    enum kube_known known;
    char key[SLURM_MAX_CLUSTER_KEY];

    (void)snprintf(key, sizeof(key), "%s/%s", controller->ns, controller->name);
    cluster = cluster_of(clusters, key);
    cluster->is_seen = true;
    cluster->reads_left = MAX_READS;
    restapi = slurm_restapi(clusters->options.world, key);
    if (cluster->facts->has_restapi != (restapi != NULL)) {
        end_client(cluster);
        *cluster->facts = (struct slurm_facts){ .has_restapi = restapi != NULL,
                                                .active = -1,
                                                .since_us = wall_us(clusters) };
        tell_changed(cluster);
    }
    known = look_for_key(cluster, restapi ? controller : NULL, &err);
    if (!restapi) {
        end_client(cluster);
    } else if (known == KUBE_UNREADABLE && !cluster->lane.client) {
        take_failure(cluster, err.text);
    } else if (known != KUBE_KNOWN) {
        return; /* the key of this moment is not known: the client stays */
    } else if (update_client(cluster, controller, restapi, &err) < 0) {
        end_client(cluster);
        take_failure(cluster, err.text);
    } else {
        ask_when_due(cluster, controller);
        ask_database_when_due(cluster, controller);
        update_poller(cluster);
    }
}

/* What is not listed yet is not missing. */
static bool is_synced(const struct operator_world *world)
{
    return kube_cache_is_synced(world->controllers) && kube_cache_is_synced(world->restapis) &&
           kube_cache_is_synced(world->secrets);
}

/* The facts go last: a client that ends takes its caches out of them. */
static void forget(struct slurm_clusters *clusters, const struct cluster *cluster)
{
    char key[SLURM_MAX_CLUSTER_KEY];

    (void)snprintf(key, sizeof(key), "%s", cluster->key);
    (void)look_for_key(cluster, NULL, NULL);
    (void)map_remove(&clusters->all, str_of(key));
    (void)map_remove(&clusters->options.world->slurm, str_of(key));
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
        forget(clusters, cluster);
    }
}

static void on_look(void *context)
{
    struct slurm_clusters *clusters = context;

    if (is_synced(clusters->options.world))
        look_at_all(clusters);
    loop_timer_start(clusters->options.loop, &clusters->timer, look_us, on_look, clusters);
}

static struct slurm_lane *lane_of(struct slurm_service *service, const struct slurm_action *action)
{
    struct slurm_clusters *clusters = list_item(service, struct slurm_clusters, service);
    struct cluster *cluster = map_get(&clusters->all, str_of(action->cluster));

    return cluster ? &cluster->lane : &clusters->nowhere;
}

struct slurm_clusters *slurm_clusters_new(const struct slurm_clusters_options *options)
{
    struct slurm_clusters *clusters = mem_alloc(sizeof(*clusters));

    clusters->service.lane_of = lane_of;
    clusters->options = *options;
    slurm_lane_init(&clusters->nowhere, options->loop);
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
    slurm_lane_done(&clusters->nowhere);
    mem_free(clusters);
}
