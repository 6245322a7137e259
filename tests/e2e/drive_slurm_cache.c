/* drive_slurm_cache.c - the poller and its caches on stdin and stdout, for test_slurm_cache.py.
 *
 *     drive_slurm_cache URL TOKENFILE
 *
 * Takes a word and perhaps an argument per line, and prints a JSON object per line: each event as
 * it is told, and what came of each word. Every event must follow on the one before it: its old
 * object is what the key was last told to be. If not, it says so and ends. */
#include "base/map.h"
#include "base/mem.h"
#include "io/http_client.h"
#include "io/loop_real.h"
#include "slurm/calls.h"
#include "slurm/poller.h"
#include "slurm/submit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct slurm_owner owner = { .cluster = { "drive", 5 }, .release = { "r", 1 } };

enum { MS = 1000, SECOND = 1000000, LOOK_US = 2 * MS, MAX_LINE = 4096, CONF_US = 2 * SECOND };

struct drive {
    struct loop *loop;
    struct http_transport *transport;
    struct slurm_token *token;
    struct slurm_client *client;
    struct slurm_poller *poller;
    struct loop_timer look, synced;
    struct buf input;
    struct map told[SLURM_FEEDS]; /* what each key was last told to be */
    struct map wrote;             /* job id: struct wrote */
    int status;
};

struct listener {
    struct drive *drive;
    enum slurm_feed feed;
};

struct wrote { /* a write was answered, and its event has not come yet */
    int64_t at_us;
};

static const char *const feed_names[] = { "jobs", "nodes", "partitions", "reservations" };

static void fail(struct drive *drive, const char *what, const char *more)
{
    printf("{\"fail\":\"%s: %s\"}\n", what, more);
    (void)fflush(stdout);
    drive->status = 1;
    loop_stop(drive->loop);
}

/* ---- events ---- */

static void print_state(const char *name, enum slurm_feed feed, const struct slurm_object *object)
{
    const struct slurm_words *state = NULL;

    if (object && feed == SLURM_FEED_JOBS)
        state = &slurm_job_of(object)->state;
    else if (object && feed == SLURM_FEED_NODES)
        state = &slurm_node_of(object)->state;
    if (state)
        printf(",\"%s\":%" PRIu64, name, state->known);
    else
        printf(",\"%s\":%s", name, object ? "0" : "null");
}

static void tell_visible(struct drive *drive, const char *key)
{
    const struct wrote *wrote = map_get(&drive->wrote, str_of(key));

    if (!wrote)
        return;
    printf("{\"visible\":\"%s\",\"after_ms\":%.3f}\n", key,
           (double)(loop_now_us(drive->loop) - wrote->at_us) / 1e3);
    map_remove(&drive->wrote, str_of(key));
}

static void on_event(void *context, const struct slurm_object *old, const struct slurm_object *next)
{
    const struct listener *listener = context;
    struct drive *drive = listener->drive;
    struct map *told = &drive->told[listener->feed];
    const char *key = (next ? next : old)->key;

    if (map_get(told, str_of(key)) != old)
        fail(drive, "an event does not follow on the last", key);
    printf("{\"feed\":\"%s\",\"key\":\"%s\"", feed_names[listener->feed], key);
    print_state("old", listener->feed, old);
    print_state("new", listener->feed, next);
    printf("}\n");
    if (next)
        (void)map_put(told, str_of(key), (void *)(uintptr_t)slurm_object_ref(next), NULL);
    else
        map_remove(told, str_of(key));
    if (listener->feed == SLURM_FEED_JOBS)
        tell_visible(drive, key);
    (void)fflush(stdout);
}

static void unref(void *object)
{
    slurm_object_unref(object);
}

/* ---- words ---- */

static void wrote(struct drive *drive, const char *key, bool has_ended)
{
    const struct slurm_object *told = map_get(&drive->told[SLURM_FEED_JOBS], str_of(key));
    struct wrote *note = mem_alloc(sizeof(*note));

    note->at_us = loop_now_us(drive->loop);
    (void)map_put(&drive->wrote, str_of(key), note, NULL);
    slurm_poller_wrote(drive->poller, SLURM_FEED_JOBS, key);
    if (told && (!has_ended || slurm_job_has_ended(&slurm_job_of(told)->state)))
        tell_visible(drive, key); /* a poll was faster than the answer: no event will follow */
    (void)fflush(stdout);
}

static void on_submitted(void *context, const struct slurm_answer *answer)
{
    struct drive *drive = context;
    struct slurm_submit_outcome outcome;
    char key[24];

    slurm_submit_judge(answer, 0, &outcome);
    if (outcome.result != SLURM_SUBMITTED) {
        fail(drive, "submit", answer->error.text);
        return;
    }
    (void)snprintf(key, sizeof(key), "%" PRId64, outcome.job_id);
    printf("{\"submitted\":\"%s\"}\n", key);
    wrote(drive, key, false);
}

static void submit(struct drive *drive, const char *argument)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *job = json_new_object(build);
    struct slurm_submit_ask ask = {
        .build = build, .job = job, .key = str_of(argument), .owner = &owner
    };

    json_put_text(build, job, "name", argument);
    json_put_text(build, job, "partition", "slurm-bridge");
    json_put_text(build, job, "current_working_directory", "/tmp");
    json_put_i64(build, job, "memory_per_cpu", 1); /* else it takes all of a node */
    json_push_str(build, json_put_array(build, job, "flags"), STR("EXTERNAL_JOB"));
    (void)slurm_submit(drive->client, &ask, on_submitted, drive);
}

struct cancel {
    struct drive *drive;
    char key[24];
};

static void on_cancelled(void *context, const struct slurm_answer *answer)
{
    struct cancel *cancel = context;

    if (answer->error.class == SLURM_DONE)
        wrote(cancel->drive, cancel->key, true);
    else
        fail(cancel->drive, "cancel", answer->error.text);
    mem_free(cancel);
}

static void cancel(struct drive *drive, const char *argument)
{
    struct cancel *one = mem_alloc(sizeof(*one));
    uint64_t id = 0;

    (void)str_to_u64(str_of(argument), 1, INT64_MAX, &id, NULL);
    one->drive = drive;
    (void)snprintf(one->key, sizeof(one->key), "%" PRIu64, id);
    (void)slurm_job_cancel(drive->client, (int64_t)id, on_cancelled, one);
}

static void expect(struct drive *drive, const char *argument)
{
    (void)argument;
    slurm_poller_expect(drive->poller, INT64_MAX);
}

static void relist(struct drive *drive, const char *argument)
{
    slurm_poller_suspect(drive->poller, argument);
}

static void dump(struct drive *drive, const char *argument)
{
    struct slurm_cache_walk walk =
        slurm_cache_walk(slurm_poller_cache(drive->poller, SLURM_FEED_JOBS));
    const struct slurm_object *object;
    const char *between = "";

    printf("{\"dump\":\"%s\",\"jobs\":{", argument);
    while ((object = slurm_cache_next(&walk))) {
        printf("%s\"%s\":%" PRIu64, between, object->key, slurm_job_of(object)->state.known);
        between = ",";
    }
    printf("}}\n");
}

static void stats(struct drive *drive, const char *argument)
{
    uint64_t failures = 0, lists = 0;

    for (unsigned i = 0; i < SLURM_FEEDS; i++) {
        struct slurm_feed_stats feed;

        slurm_poller_stats(drive->poller, i, &feed);
        failures += feed.failures;
        lists += feed.lists;
    }
    printf("{\"stats\":\"%s\",\"suspicions\":%" PRIu64 ",\"suspicious\":%s,\"why\":\"%s\","
           "\"failures\":%" PRIu64 ",\"lists\":%" PRIu64 ",\"longest_ms\":%.2f}\n",
           argument, slurm_poller_suspicions(drive->poller),
           slurm_poller_is_suspicious(drive->poller) ? "true" : "false",
           slurm_poller_why(drive->poller), failures, lists,
           (double)loop_take_longest_us(drive->loop) / 1e3);
}

static void quit(struct drive *drive, const char *argument)
{
    (void)argument;
    loop_stop(drive->loop);
}

static const struct {
    const char *name;
    void (*run)(struct drive *drive, const char *argument);
} words[] = {
    { "submit", submit }, { "cancel", cancel }, { "expect", expect }, { "relist", relist },
    { "dump", dump },     { "stats", stats },   { "quit", quit },
};

static void obey(struct drive *drive, struct str line)
{
    struct str word = line, argument = STR("");
    char text[MAX_LINE];

    (void)str_cut(line, ' ', &word, &argument);
    (void)snprintf(text, sizeof(text), STR_FMT, STR_ARG(argument));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (str_is(word, words[i].name)) {
            words[i].run(drive, text);
            (void)fflush(stdout);
            return;
        }
    fail(drive, "not a word", "see drive_slurm_cache.c");
}

static void look(void *context)
{
    struct drive *drive = context;
    struct str line, rest;
    char bytes[512];
    ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));

    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        loop_stop(drive->loop);
        return;
    }
    if (got > 0)
        buf_add(&drive->input, bytes, (size_t)got);
    while (str_cut(buf_str(&drive->input), '\n', &line, &rest)) {
        auto_free char *copy = mem_strndup(line.at, line.len);

        buf_drop_front(&drive->input, line.len + 1);
        obey(drive, str_of(copy));
    }
    loop_timer_start(drive->loop, &drive->look, LOOK_US, look, drive);
}

static void wait_for_sync(void *context)
{
    struct drive *drive = context;

    if (!slurm_poller_is_synced(drive->poller)) {
        loop_timer_start(drive->loop, &drive->synced, 10 * MS, wait_for_sync, drive);
        return;
    }
    printf("{\"synced\":true}\n");
    (void)fflush(stdout);
}

/* ---- */

static int make(struct drive *drive, const char *url, const char *token_file, struct err *err)
{
    struct http_client_options http = { .base_url = url, .max_connections = 4 };
    int result = loop_new_real(&drive->loop, err);

    if (result == 0)
        result = slurm_token_new_file(drive->loop, token_file, &drive->token, err);
    if (result == 0)
        result = http_client_new(drive->loop, &http, &drive->transport, err);
    return result;
}

static void run(struct drive *drive)
{
    struct slurm_poller_options options = { .owner = &owner, .conf_us = CONF_US };
    struct map_options told = { .max = 1000000, .free_value = unref };
    struct map_options noted = { .max = 1000000, .free_value = mem_free };
    struct listener listeners[SLURM_FEEDS];

    drive->client = slurm_client_new(drive->loop, drive->transport, drive->token, NULL);
    drive->poller = slurm_poller_new(drive->client, &options);
    buf_init(&drive->input, MAX_LINE);
    map_init(&drive->wrote, &noted);
    for (unsigned i = 0; i < SLURM_FEEDS; i++) {
        listeners[i] = (struct listener){ drive, i };
        map_init(&drive->told[i], &told);
        slurm_cache_listen(slurm_poller_cache(drive->poller, i), on_event, &listeners[i]);
    }
    slurm_poller_start(drive->poller);
    wait_for_sync(drive);
    look(drive);
    loop_run(drive->loop);
    slurm_poller_free(drive->poller);
    slurm_client_free(drive->client);
    for (unsigned i = 0; i < SLURM_FEEDS; i++)
        map_done(&drive->told[i]);
    map_done(&drive->wrote);
    buf_done(&drive->input);
}

int main(int argc, char **argv)
{
    struct drive drive = { 0 };
    struct err err = { 0 };

    if (argc != 3) {
        (void)fprintf(stderr, "usage: drive_slurm_cache URL TOKENFILE\n");
        return 2;
    }
    (void)fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    if (make(&drive, argv[1], argv[2], &err) < 0) {
        (void)fprintf(stderr, "drive_slurm_cache: %s\n", err.text);
        drive.status = 1;
    } else {
        run(&drive);
    }
    http_transport_free(drive.transport);
    slurm_token_free(drive.token);
    loop_free(drive.loop);
    return drive.status;
}
