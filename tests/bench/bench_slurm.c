/* bench_slurm.c - what our Slurm client, poller and caches cost against a real slurmrestd; prints
 * one line of JSON.
 *
 *     bench_slurm URL KEYFILE poll SECONDS       our poller, from when it is synced
 *     bench_slurm URL KEYFILE full ROUNDS        the reference: whole lists, decoded and kept
 *     bench_slurm URL KEYFILE submit COUNT       slurm_submit, eight at a time
 *     bench_slurm URL KEYFILE notice COUNT JOBS  cancels COUNT of JOBS tracked jobs by another
 *                                                client, and sees how late each event comes
 *     bench_slurm URL KEYFILE wrote COUNT        changes jobs and nodes itself, one after the
 *                                                other, and sees how late the caches show it */
#include "costs.h"

#include "base/mem.h"
#include "io/http_client.h"
#include "io/loop_real.h"
#include "io/reload.h"
#include "slurm/calls.h"
#include "slurm/poller.h"
#include "slurm/submit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct slurm_owner owner = { .cluster = { "bench", 5 }, .release = { "r", 1 } };

enum {
    IN_FLIGHT = 8,
    MS = 1000,
    SECOND = 1000000,
    CANCEL_EVERY_US = 37 * MS, /* not in step with the poller */
    LATE_US = 10 * SECOND,     /* an event that is not there by then will not come */
    MAX_KEY_FILE = 8192,
    MAX_JOBS = 100000,
};

struct bench {
    struct loop *loop;
    struct http_transport *transport;
    struct slurm_token *token;
    struct slurm_client *client;
    struct slurm_poller *poller;
    struct loop_timer timer;
    long count; /* what the command line asks for */
    size_t job_count;

    int64_t begun_us;
    double cpu;
    uint64_t requests, bytes, failures, events;
    struct slurm_feed_stats synced[SLURM_FEEDS];

    struct slurm_list kept[3]; /* of the reference */
    unsigned listing;
    long rounds;

    long sent, answered, noticed;
    int64_t *ids;
    int64_t *answered_us; /* of cancels, by place in ids; 0: not yet */
    int64_t *noticed_us;
    size_t id_count;
    char comment[64]; /* of the last write */
};

/* ---- what it costs ---- */

static void count_answer(void *context, enum slurm_verb verb, enum slurm_endpoint endpoint,
                         const struct slurm_answer *answer)
{
    struct bench *bench = context;

    bench->requests++;
    bench->bytes += answer->bytes;
    bench->failures +=
        answer->error.class != SLURM_DONE && answer->error.class != SLURM_NOT_MODIFIED;
    if (answer->error.class == SLURM_DONE || answer->error.class == SLURM_NOT_MODIFIED)
        return;
    (void)fprintf(stderr, "bench_slurm: %s %s: %s\n", slurm_verb_name(verb),
                  slurm_endpoint(endpoint)->name, answer->error.text);
}

static void start_clock(struct bench *bench)
{
    bench->begun_us = loop_now_us(bench->loop);
    bench->cpu = cpu_seconds();
    bench->requests = bench->bytes = bench->failures = bench->events = 0;
    (void)loop_take_longest_us(bench->loop);
}

static void report(struct bench *bench)
{
    printf(
        "{\"seconds\": %.4f, \"cpu\": %.4f, \"rss\": %.2f, \"peak\": %.2f, \"requests\": %" PRIu64
        ", \"bytes\": %" PRIu64 ", \"failures\": %" PRIu64 ", \"events\": %" PRIu64
        ", \"longest_ms\": %.2f",
        (double)(loop_now_us(bench->loop) - bench->begun_us) / 1e6, cpu_seconds() - bench->cpu,
        memory_mib("VmRSS"), memory_mib("VmHWM"), bench->requests, bench->bytes, bench->failures,
        bench->events, (double)loop_take_longest_us(bench->loop) / 1e3);
    loop_stop(bench->loop);
}

/* ---- our poller ---- */

static void on_event(void *context, const struct slurm_object *old, const struct slurm_object *next)
{
    struct bench *bench = context;

    (void)old;
    (void)next;
    bench->events++;
}

static void report_poll(void *context)
{
    static const char *const names[] = { "jobs", "nodes", "partitions", "reservations" };
    struct bench *bench = context;

    report(bench);
    for (unsigned i = 0; i < SLURM_FEEDS; i++) {
        struct slurm_feed_stats stats;

        slurm_poller_stats(bench->poller, i, &stats);
        printf(", \"%s\": {\"objects\": %zu, \"bytes\": %" PRIu64 ", \"lists\": %" PRIu64
               ", \"reads\": %" PRIu64 "}",
               names[i], slurm_cache_count(slurm_poller_cache(bench->poller, i)),
               stats.bytes - bench->synced[i].bytes, stats.lists - bench->synced[i].lists,
               stats.reads - bench->synced[i].reads);
    }
    printf(", \"suspicions\": %" PRIu64 "}\n", slurm_poller_suspicions(bench->poller));
}

static void wait_for_sync(void *context)
{
    struct bench *bench = context;

    if (!slurm_poller_is_synced(bench->poller)) {
        loop_timer_start(bench->loop, &bench->timer, 10 * MS, wait_for_sync, bench);
        return;
    }
    printf("{\"sync\": %.4f, \"sync_cpu\": %.4f, \"sync_bytes\": %" PRIu64
           ", \"sync_longest_ms\": %.2f}\n",
           (double)(loop_now_us(bench->loop) - bench->begun_us) / 1e6, cpu_seconds() - bench->cpu,
           bench->bytes, (double)loop_take_longest_us(bench->loop) / 1e3);
    for (unsigned i = 0; i < SLURM_FEEDS; i++)
        slurm_poller_stats(bench->poller, i, &bench->synced[i]);
    start_clock(bench);
    loop_timer_start(bench->loop, &bench->timer, bench->count * SECOND, report_poll, bench);
}

static void make_poller(struct bench *bench, const struct slurm_poller_options *options,
                        slurm_change on_job, slurm_change on_node)
{
    const slurm_change on[SLURM_FEEDS] = {
        [SLURM_FEED_JOBS] = on_job, [SLURM_FEED_NODES] = on_node
    };

    bench->poller = slurm_poller_new(bench->client, options);
    for (unsigned i = 0; i < SLURM_FEEDS; i++)
        slurm_cache_listen(slurm_poller_cache(bench->poller, i), on[i] ? on[i] : on_event, bench);
    start_clock(bench);
    slurm_poller_start(bench->poller);
}

static void poll(struct bench *bench)
{
    make_poller(bench, NULL, on_event, on_event);
    wait_for_sync(bench);
    loop_run(bench->loop);
}

/* ---- the reference: what a client does that asks for everything ---- */

static const struct {
    enum slurm_endpoint list;
    const struct slurm_kind *kind;
} everything[] = {
    { SLURM_JOBS, &slurm_job_kind },
    { SLURM_NODES, &slurm_node_kind },
    { SLURM_PARTITIONS, &slurm_partition_kind },
};

static void list_next(struct bench *bench);

static void on_whole_list(void *context, const struct slurm_answer *answer)
{
    struct bench *bench = context;
    struct slurm_list *kept = &bench->kept[bench->listing];

    if (answer->error.class == SLURM_DONE) {
        slurm_list_done(kept);
        (void)slurm_list_decode(everything[bench->listing].kind, answer->body, kept, NULL);
        bench->events += kept->count;
    }
    bench->listing++;
    list_next(bench);
}

static void list_next(struct bench *bench)
{
    struct slurm_request request = { .verb = SLURM_GET, .once = true, .timeout_us = 300 * SECOND };

    if (bench->listing == sizeof(everything) / sizeof(everything[0])) {
        bench->listing = 0;
        if (++bench->rounds == bench->count) {
            report(bench);
            printf("}\n");
            return;
        }
    }
    request.endpoint = everything[bench->listing].list;
    (void)slurm_send(bench->client, &request, on_whole_list, bench);
}

static void full(struct bench *bench)
{
    start_clock(bench);
    list_next(bench);
    loop_run(bench->loop);
    for (size_t i = 0; i < 3; i++)
        slurm_list_done(&bench->kept[i]);
}

/* ---- submits ---- */

static void submit_next(struct bench *bench);

static void on_submitted(void *context, const struct slurm_answer *answer)
{
    struct bench *bench = context;
    struct slurm_submit_outcome outcome;

    slurm_submit_judge(answer, slurm_submit_fence_us(bench->client, 0), &outcome);
    if (outcome.result == SLURM_SUBMITTED)
        bench->ids[bench->id_count++] = outcome.job_id;
    bench->answered++;
    if (bench->sent < bench->count)
        submit_next(bench);
    else if (bench->answered == bench->count)
        report(bench);
}

static void submit_next(struct bench *bench)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *job = json_new_object(build), *memory;
    struct str pod = STR("bench/pod");
    char key[64];

    (void)snprintf(key, sizeof(key), "bench-%d-%ld", (int)getpid(), bench->sent++);
    json_put_text(build, job, "name", "bench");
    json_put_text(build, job, "partition", "slurm-bridge");
    json_put_i64(build, job, "cpus_per_task", 1);
    json_put_i64(build, job, "tasks", 1);
    json_put_text(build, job, "current_working_directory", "/tmp");
    json_push_str(build, json_put_array(build, job, "flags"), STR("EXTERNAL_JOB"));
    memory = json_put_object(build, job, "memory_per_node");
    json_put_bool(build, memory, "set", true);
    json_put_i64(build, memory, "number", 64);

    struct slurm_submit_ask ask = { .build = build,
                                    .job = job,
                                    .key = str_of(key),
                                    .owner = &owner,
                                    .pods = &pod,
                                    .pod_count = 1 };

    (void)slurm_submit(bench->client, &ask, on_submitted, bench);
}

static void on_version_known(void *context, const struct slurm_answer *answer)
{
    struct bench *bench = context;

    (void)answer;
    start_clock(bench);
    for (unsigned i = 0; i < IN_FLIGHT && bench->sent < bench->count; i++)
        submit_next(bench);
}

static void submit(struct bench *bench)
{
    (void)slurm_ping_all(bench->client, on_version_known, bench);
    loop_run(bench->loop);
    printf(", \"ids\": [");
    for (size_t i = 0; i < bench->id_count; i++)
        printf("%s%" PRId64, i ? ", " : "", bench->ids[i]);
    printf("]}\n");
}

/* ---- how late events are ---- */

struct cancel {
    struct bench *bench;
    size_t place;
};

static void on_job_event(void *context, const struct slurm_object *old,
                         const struct slurm_object *next)
{
    struct bench *bench = context;

    if (!old || !next || slurm_job_has_ended(&slurm_job_of(old)->state) ||
        !slurm_job_has_ended(&slurm_job_of(next)->state))
        return;
    for (size_t i = 0; i < bench->id_count; i++)
        if (bench->ids[i] == slurm_job_of(next)->id)
            bench->noticed_us[i] = loop_now_us(bench->loop);
    bench->noticed++;
}

static void on_cancelled(void *context, const struct slurm_answer *answer)
{
    struct cancel *cancel = context;

    if (answer->error.class == SLURM_DONE)
        cancel->bench->answered_us[cancel->place] = loop_now_us(cancel->bench->loop);
    cancel->bench->answered++;
    mem_free(cancel);
}

static void print_delays(struct bench *bench)
{
    const char *between = "";

    report(bench);
    printf(", \"delays_ms\": [");
    for (size_t i = 0; i < bench->id_count; i++) {
        int64_t late_us = bench->noticed_us[i] - bench->answered_us[i];

        if (bench->answered_us[i] == 0)
            continue;
        if (bench->noticed_us[i] == 0)
            late_us = LATE_US;
        printf("%s%.3f", between, (double)(late_us > 0 ? late_us : 0) / 1e3);
        between = ", ";
    }
    printf("]}\n");
}

static void cancel_next(void *context)
{
    struct bench *bench = context;
    struct cancel *cancel;

    if (bench->sent == bench->count) {
        bool all = bench->noticed >= bench->count && bench->answered == bench->count;

        if (all || loop_now_us(bench->loop) - bench->begun_us >
                       LATE_US + bench->count * (int64_t)CANCEL_EVERY_US)
            print_delays(bench);
        else
            loop_timer_start(bench->loop, &bench->timer, 10 * MS, cancel_next, bench);
        return;
    }
    cancel = mem_alloc(sizeof(*cancel));
    *cancel = (struct cancel){ bench, (size_t)bench->sent };
    (void)slurm_job_cancel(bench->client, bench->ids[bench->sent++], on_cancelled, cancel);
    loop_timer_start(bench->loop, &bench->timer, CANCEL_EVERY_US, cancel_next, bench);
}

static void track_when_synced(void *context)
{
    struct bench *bench = context;
    struct slurm_cache_walk walk;
    const struct slurm_object *object;

    if (!slurm_poller_is_synced(bench->poller)) {
        loop_timer_start(bench->loop, &bench->timer, 10 * MS, track_when_synced, bench);
        return;
    }
    walk = slurm_cache_walk(slurm_poller_cache(bench->poller, SLURM_FEED_JOBS));
    while ((object = slurm_cache_next(&walk)) && bench->id_count < bench->job_count) {
        const struct slurm_job *job = slurm_job_of(object);

        if (slurm_job_has_ended(&job->state))
            continue;
        bench->ids[bench->id_count++] = job->id;
        slurm_poller_track(bench->poller, job->id);
    }
    slurm_poller_expect(bench->poller, INT64_MAX);
    start_clock(bench);
    loop_timer_start(bench->loop, &bench->timer, SECOND, cancel_next, bench);
}

/* The cancels go past the poller: it learns of them by looking, as of anybody's. */
static void notice(struct bench *bench)
{
    struct slurm_poller_options options = { .tracked_only = true };

    make_poller(bench, &options, on_job_event, on_event);
    track_when_synced(bench);
    loop_run(bench->loop);
}

/* ---- how late the caches show what we wrote ---- */

static bool is_about_job(const struct bench *bench)
{
    return bench->sent % 2 == 0;
}

static void note_shown(struct bench *bench, const char *comment)
{
    if (bench->sent > 0 && strcmp(comment, bench->comment) == 0 &&
        bench->noticed_us[bench->sent] == 0)
        bench->noticed_us[bench->sent] = loop_now_us(bench->loop);
}

static void on_job_shown(void *context, const struct slurm_object *old,
                         const struct slurm_object *next)
{
    (void)old;
    if (next)
        note_shown(context, slurm_job_of(next)->comment);
}

static void on_node_shown(void *context, const struct slurm_object *old,
                          const struct slurm_object *next)
{
    (void)old;
    if (next)
        note_shown(context, slurm_node_of(next)->comment);
}

static const struct slurm_object *written_to(const struct bench *bench)
{
    struct slurm_cache_walk walk = slurm_cache_walk(slurm_poller_cache(
        bench->poller, is_about_job(bench) ? SLURM_FEED_JOBS : SLURM_FEED_NODES));
    const struct slurm_object *object;

    while ((object = slurm_cache_next(&walk)) && is_about_job(bench) &&
           slurm_job_has_ended(&slurm_job_of(object)->state))
        continue;
    return object;
}

static void on_written(void *context, const struct slurm_answer *answer)
{
    struct bench *bench = context;
    const struct slurm_object *object = written_to(bench);

    bench->answered_us[bench->sent] = loop_now_us(bench->loop);
    if (answer->error.class == SLURM_DONE && object)
        slurm_poller_wrote(bench->poller, is_about_job(bench) ? SLURM_FEED_JOBS : SLURM_FEED_NODES,
                           object->key);
}

static void print_writes(struct bench *bench)
{
    report(bench);
    for (long kind = 0; kind < 2; kind++) {
        const char *between = "";

        printf(", \"%s\": [", kind == 0 ? "jobs_ms" : "nodes_ms");
        for (long i = 2 - kind; i <= bench->count; i += 2) {
            int64_t late_us = bench->noticed_us[i] - bench->answered_us[i];

            printf("%s%.3f", between, (double)(late_us > 0 ? late_us : 0) / 1e3);
            between = ", ";
        }
        printf("]");
    }
    printf("}\n");
}

static void write_next(struct bench *bench)
{
    auto_buf struct buf body = { .max = 256 };
    const struct slurm_object *object;

    bench->sent++;
    object = written_to(bench);
    (void)snprintf(bench->comment, sizeof(bench->comment), "bench %d %ld", (int)getpid(),
                   bench->sent);
    buf_printf(&body, "{\"comment\":\"%s\"}", bench->comment);
    if (object && is_about_job(bench))
        (void)slurm_job_update(bench->client, slurm_job_of(object)->id, buf_str(&body), on_written,
                               bench);
    else if (object)
        (void)slurm_node_update(bench->client, object->key, buf_str(&body), on_written, bench);
}

static void write_when_shown(void *context)
{
    struct bench *bench = context;
    bool is_shown = bench->answered_us[bench->sent] && bench->noticed_us[bench->sent];
    bool is_late = bench->answered_us[bench->sent] &&
                   loop_now_us(bench->loop) - bench->answered_us[bench->sent] > LATE_US;

    if (is_late)
        bench->noticed_us[bench->sent] = loop_now_us(bench->loop);
    if (bench->sent == bench->count && (is_shown || is_late)) {
        print_writes(bench);
        return;
    }
    if (slurm_poller_is_synced(bench->poller) && (bench->sent == 0 || is_shown || is_late))
        write_next(bench);
    loop_timer_start(bench->loop, &bench->timer, 10 * MS, write_when_shown, bench);
}

static void wrote(struct bench *bench)
{
    make_poller(bench, NULL, on_job_shown, on_node_shown);
    write_when_shown(bench);
    loop_run(bench->loop);
}

/* ---- */

static int make_client(struct bench *bench, const char *url, const char *key_file, struct err *err)
{
    struct http_client_options http = { .base_url = url, .max_connections = IN_FLIGHT };
    size_t length;
    char *key;
    int result = reload_read(key_file, MAX_KEY_FILE, &key, &length, err);

    if (result < 0)
        return result;
    result = slurm_token_new_minted(loop_clock(bench->loop), (struct str){ key, length }, "slurm",
                                    900, &bench->token, err);
    mem_free_secret(key, length + 1);
    if (result == 0)
        result = http_client_new(bench->loop, &http, &bench->transport, err);
    if (result < 0)
        return result;
    bench->client = slurm_client_new(bench->loop, bench->transport, bench->token, NULL);
    slurm_client_observe(bench->client, count_answer, bench);
    return 0;
}

static bool run_mode(struct bench *bench, struct str mode)
{
    static const struct {
        const char *name;
        void (*run)(struct bench *bench);
    } modes[] = { { "poll", poll },
                  { "full", full },
                  { "submit", submit },
                  { "notice", notice },
                  { "wrote", wrote } };

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (str_is(mode, modes[i].name)) {
            modes[i].run(bench);
            return true;
        }
    return false;
}

static void free_all(struct bench *bench)
{
    slurm_poller_free(bench->poller);
    slurm_client_free(bench->client);
    http_transport_free(bench->transport);
    slurm_token_free(bench->token);
    loop_free(bench->loop);
    mem_free(bench->ids);
    mem_free(bench->answered_us);
    mem_free(bench->noticed_us);
}

static uint64_t number_at(int argc, char **argv, int place)
{
    uint64_t number = 0;

    if (argc > place)
        (void)str_to_u64(str_of(argv[place]), 1, MAX_JOBS, &number, NULL);
    return number;
}

int main(int argc, char **argv)
{
    struct bench bench = { .count = (long)number_at(argc, argv, 4),
                           .job_count = number_at(argc, argv, 5) };
    struct err err = { 0 };
    int status = 2;

    bench.ids = mem_alloc_array(MAX_JOBS + 1, sizeof(int64_t));
    bench.answered_us = mem_alloc_array(MAX_JOBS + 1, sizeof(int64_t));
    bench.noticed_us = mem_alloc_array(MAX_JOBS + 1, sizeof(int64_t));
    if (bench.count == 0) {
        (void)fprintf(stderr,
                      "usage: bench_slurm URL KEYFILE poll|full|submit|notice|wrote N [JOBS]\n");
    } else if (loop_new_real(&bench.loop, &err) < 0 ||
               make_client(&bench, argv[1], argv[2], &err) < 0) {
        (void)fprintf(stderr, "bench_slurm: %s\n", err.text);
        status = 1;
    } else {
        status = run_mode(&bench, str_of(argv[3])) ? 0 : 2;
    }
    free_all(&bench);
    return status;
}
