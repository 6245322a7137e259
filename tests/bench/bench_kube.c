/* bench_kube.c - does with our client what apiref/clientgo does with client-go, and prints what it
 * cost as JSON.
 *
 *     bench_kube https://127.0.0.1:1234 ca.crt list|watch|world|patch|idle */
#include "costs.h"

#include "base/mem.h"
#include "io/http_client.h"
#include "io/loop_real.h"
#include "kube/informer.h"
#include "kube/kinds.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATCHES = 2000, IN_FLIGHT = 64 };

struct source {
    struct kube_cache *cache;
    struct kube_informer *informer;
};

struct bench {
    struct loop *loop;
    struct kube_client *client;
    struct source sources[2];
    unsigned source_count;
    struct loop_timer poll;
    bool follow; /* wait for the last event of the watch, not just for the list */
    bool synced;
    uint64_t changes;
    unsigned sent, answered;
    int64_t begun_us;
    double cpu;
};

static void start_clock(struct bench *bench)
{
    bench->begun_us = loop_now_us(bench->loop);
    bench->cpu = cpu_seconds();
}

static void report(struct bench *bench, uint64_t objects)
{
    printf("{\"seconds\": %.4f, \"cpu\": %.4f, \"rss\": %.2f, \"anon\": %.2f, \"peak\": %.2f, "
           "\"objects\": %llu}\n",
           (double)(loop_now_us(bench->loop) - bench->begun_us) / 1e6, cpu_seconds() - bench->cpu,
           memory_mib("VmRSS"), memory_mib("RssAnon"), memory_mib("VmHWM"),
           (unsigned long long)objects);
    loop_stop(bench->loop);
}

/* ---- list and watch ---- */

static void changed(void *context, const struct kube_object *old, const struct kube_object *next)
{
    struct bench *bench = context;

    if (!bench->synced || !next || !old)
        return;
    bench->changes++;
    if (str_is(str_of(next->name), "last"))
        report(bench, bench->changes);
}

/* The caches' objects when all lists have ended, else 0. */
static uint64_t cached(const struct bench *bench)
{
    uint64_t objects = 0;

    for (unsigned i = 0; i < bench->source_count; i++) {
        if (!kube_cache_is_synced(bench->sources[i].cache))
            return 0;
        objects += kube_cache_count(bench->sources[i].cache);
    }
    return objects;
}

static void look(void *context)
{
    struct bench *bench = context;
    uint64_t objects = cached(bench);

    if (objects == 0) {
        loop_timer_start(bench->loop, &bench->poll, 1000, look, bench);
        return;
    }
    if (!bench->follow) {
        report(bench, objects);
        return;
    }
    start_clock(bench);
    bench->synced = true;
}

static void add_source(struct bench *bench, struct rand *rand, const struct kube_kind *kind)
{
    struct source *source = &bench->sources[bench->source_count++];

    source->cache = kube_cache_new(kind, loop_clock(bench->loop));
    kube_cache_listen(source->cache, changed, bench);
    source->informer =
        kube_informer_new(bench->client, source->cache, rand, &(struct kube_informer_options){ 0 });
    kube_informer_start(source->informer);
}

static void observe(struct bench *bench, struct rand *rand, bool with_nodes)
{
    start_clock(bench);
    add_source(bench, rand, &kube_pod_kind);
    if (with_nodes)
        add_source(bench, rand, &kube_node_kind);
    loop_timer_start(bench->loop, &bench->poll, 1000, look, bench);
    loop_run(bench->loop);
    for (unsigned i = 0; i < bench->source_count; i++) {
        kube_informer_free(bench->sources[i].informer);
        kube_cache_free(bench->sources[i].cache);
    }
}

/* ---- patches ---- */

static void send_patch(struct bench *bench);

static void patched(void *context, const struct kube_answer *answer)
{
    struct bench *bench = context;

    if (answer->outcome != KUBE_DONE) {
        (void)fprintf(stderr, "patch: %s: %s\n", kube_outcome_name(answer->outcome),
                      answer->message);
        exit(1);
    }
    if (++bench->answered == PATCHES)
        report(bench, PATCHES);
    else if (bench->sent < PATCHES)
        send_patch(bench);
}

static void send_patch(struct bench *bench)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "p%u", ++bench->sent);
    struct kube_request request = {
        .verb = KUBE_MERGE_PATCH,
        .resource = &kube_pods,
        .ns = "team-1",
        .name = name,
        .body = STR("{\"metadata\":{\"labels\":{\"slurmjob.slinky.slurm.net/jobid\":\"12345\"}}}"),
    };
    (void)kube_send(bench->client, &request, patched, bench);
}

static void patch(struct bench *bench)
{
    start_clock(bench);
    while (bench->sent < IN_FLIGHT)
        send_patch(bench);
    loop_run(bench->loop);
}

/* ---- nothing at all ---- */

static void idle_over(void *context)
{
    report(context, 0);
}

static void idle(struct bench *bench)
{
    start_clock(bench);
    loop_timer_start(bench->loop, &bench->poll, 2000000, idle_over, bench);
    loop_run(bench->loop);
}

static struct str token(void *context)
{
    (void)context;
    return STR("token");
}

int main(int argc, char **argv)
{
    struct bench bench = { 0 };
    struct http_transport *transport;
    struct rand rand;
    struct err err;

    if (argc < 4) {
        (void)fprintf(stderr, "usage: bench_kube URL CA list|watch|world|patch|idle\n");
        return 2;
    }
    rand_init_real(&rand);
    struct http_client_options options = { .base_url = argv[1], .bearer_token = token };
    options.tls.ca_file = argv[2];
    if (loop_new_real(&bench.loop, &err) < 0 ||
        http_client_new(bench.loop, &options, &transport, &err) < 0) {
        (void)fprintf(stderr, "bench_kube: %s\n", err.text);
        return 1;
    }
    bench.client = kube_client_new(bench.loop, transport);
    struct str mode = str_of(argv[3]);

    bench.follow = str_is(mode, "watch");
    if (str_is(mode, "patch"))
        patch(&bench);
    else if (str_is(mode, "idle"))
        idle(&bench);
    else
        observe(&bench, &rand, str_is(mode, "world"));
    kube_client_free(bench.client);
    http_transport_free(transport);
    loop_free(bench.loop);
    return 0;
}
