/* ctld_rig.h - a poller on virtual time in front of a scripted slurmctld, and a mirror of what its
 * cache of jobs told; shared by the tests of the poller. */
#ifndef SLINC_TESTS_SLURM_CTLD_RIG_H
#define SLINC_TESTS_SLURM_CTLD_RIG_H

#include "base/map.h"
#include "base/rand.h"
#include "slurm/poller.h"
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { JOBS = 40, MS_US = 1000 };

struct ctld_job {
    int64_t id; /* 0: a free place */
    const char *state;
    int restarts, serial; /* serial: unique for ever, the sluid */
};

struct ctld {
    struct world *world;
    struct slurm_poller *poller;
    struct ctld_job jobs[JOBS];
    int64_t next_id, boot_time, delay_us;
    int64_t behind_s; /* its clock was set back by so much */
    int serial;
    int64_t nodes_changed;    /* second */
    const char *node_comment; /* of n1 */
    bool node_there;          /* n2 */
    bool down, broken, jobs_broken, conf_broken, unstamped;
    bool no_layout; /* nobody tells which nodes a job has */
    int64_t layout_delay_us;
    int64_t list_delay_us; /* of a whole job list, beside delay_us */
    int64_t nodes_delay_us;
    int64_t conf_delay_us; /* of the next answer of /conf */
    struct buf body;
    struct map mirror; /* of jobs */
    struct buf log;
    struct rand rand;
    bool random; /* answers and delays are; nothing is certain but the end */
};

/* ---- slurmctld and slurmrestd ---- */

static inline int64_t ctld_second(const struct ctld *ctld)
{
    return loop_now_us(ctld->world->loop) / SECOND_US + 1000 - ctld->behind_s;
}

static inline struct ctld_job *ctld_job(struct ctld *ctld, int64_t id)
{
    for (size_t i = 0; i < JOBS; i++)
        if (ctld->jobs[i].id == id)
            return &ctld->jobs[i];
    return NULL;
}

static inline struct ctld_job *ctld_submit(struct ctld *ctld, const char *state)
{
    struct ctld_job *job = ctld_job(ctld, 0);

    if (job)
        *job = (struct ctld_job){ ctld->next_id++, state, 0, ++ctld->serial };
    return job;
}

static inline void ctld_write_job(struct ctld *ctld, const struct ctld_job *job)
{
    buf_printf(&ctld->body,
               "{\"job_id\":%" PRId64 ",\"step_id\":{\"sluid\":\"s%d\"},\"job_state\":[\"%s\"],"
               "\"restart_cnt\":%d,\"array_job_id\":{\"set\":true,\"number\":0}}",
               job->id, job->serial, job->state, job->restarts);
}

static inline void ctld_write_jobs(struct ctld *ctld, bool states)
{
    const char *between = "";

    buf_add_text(&ctld->body, "{\"jobs\":[");
    for (size_t i = 0; i < JOBS; i++) {
        const struct ctld_job *job = &ctld->jobs[i];

        if (job->id == 0)
            continue;
        buf_add_text(&ctld->body, between);
        between = ",";
        if (states)
            buf_printf(&ctld->body, "{\"job_id\":\"%" PRId64 "\",\"state\":[\"%s\"]}", job->id,
                       job->state);
        else
            ctld_write_job(ctld, job);
    }
    buf_add_text(&ctld->body, "],\"errors\":[]");
    if (!states && !ctld->unstamped)
        buf_printf(&ctld->body, ",\"last_update\":{\"set\":true,\"number\":%" PRId64 "}",
                   ctld_second(ctld));
    buf_add_char(&ctld->body, '}');
}

static inline int ctld_write_one_job(struct ctld *ctld, const char *path)
{
    struct ctld_job *job = ctld_job(ctld, (int64_t)strtoll(strstr(path, "/job/") + 5, NULL, 10));

    if (!job) {
        buf_add_text(&ctld->body, "{\"jobs\":[],\"errors\":[{\"error_number\":2017}]}");
        return 404;
    }
    buf_add_text(&ctld->body, "{\"jobs\":[");
    ctld_write_job(ctld, job);
    buf_add_text(&ctld->body, "],\"errors\":[]}");
    return 200;
}

static inline int ctld_write_nodes(struct ctld *ctld, const char *path)
{
    const char *since = strstr(path, "update_time=");

    if (since && strtoll(since + 12, NULL, 10) > ctld->nodes_changed)
        return 304;
    if (since && strstr(path, "/v0.0.44/")) { /* so does a real 25.11 */
        buf_add_text(&ctld->body, "{\"errors\":[{\"error_number\":-1,\"source\":\"_dump_nodes\","
                                  "\"description\":\"Unable to query partitions\"}]}");
        return 500;
    }
    buf_printf(&ctld->body, "{\"nodes\":[{\"name\":\"n1\",\"comment\":\"%s\"}%s],\"errors\":[],",
               ctld->node_comment, ctld->node_there ? ",{\"name\":\"n2\"}" : "");
    buf_printf(&ctld->body, "\"last_update\":{\"set\":true,\"number\":%" PRId64 "}}",
               ctld_second(ctld));
    return 200;
}

static inline int ctld_write_conf(struct ctld *ctld)
{
    buf_printf(&ctld->body,
               "{\"slurm_conf\":{\"PrivateData\":[],\"SlurmUser\":\"slurm\"},"
               "\"slurm_conf_meta\":{\"BOOT_TIME\":%" PRId64 ",\"NEXT_JOB_ID\":%" PRId64
               ",\"LastUpdate\":%" PRId64 "},\"errors\":[]}",
               ctld->boot_time, ctld->next_id, ctld_second(ctld));
    return 200;
}

static inline int ctld_write_layout(struct ctld *ctld)
{
    if (ctld->no_layout) {
        buf_add_text(&ctld->body, "{\"errors\":[{\"error_number\":2017}]}");
        return 404;
    }
    buf_add_text(&ctld->body, "{\"nodes\":[{\"node\":\"n1\"},{\"node\":\"n2\"}],\"errors\":[]}");
    return 200;
}

/* At random times it says that nothing has changed since. */
static inline int ctld_write_list(struct ctld *ctld, const char *path)
{
    bool says_unchanged = ctld->random && rand_chance(&ctld->rand, 20);

    if (says_unchanged && !strstr(path, "state"))
        buf_add_text(&ctld->body,
                     "{\"jobs\":[],\"errors\":[],\"last_update\":{\"set\":true,\"number\":0}}");
    else
        ctld_write_jobs(ctld, strstr(path, "/state/"));
    return 200;
}

/* Partitions and reservations: none, for ever. */
static inline int ctld_write_none(struct ctld *ctld, const char *path)
{
    if (strstr(path, "update_time="))
        return 304;
    buf_printf(&ctld->body, "{\"%s\":[],\"errors\":[],\"last_update\":{\"set\":true,\"number\":9}}",
               strstr(path, "/partitions/") ? "partitions" : "reservations");
    return 200;
}

static inline int ctld_respond(struct ctld *ctld, const char *path)
{
    if (ctld->down) {
        buf_add_text(&ctld->body, "{\"errors\":[{\"error_number\":1800}]}");
        return 502;
    }
    if (ctld->broken || (ctld->jobs_broken && strstr(path, "/jobs/")) ||
        (ctld->conf_broken && strstr(path, "/conf")) ||
        (ctld->random && rand_chance(&ctld->rand, 30)))
        return 500;
    if (strstr(path, "/conf"))
        return ctld_write_conf(ctld);
    if (strstr(path, "/job/"))
        return ctld_write_one_job(ctld, path);
    if (strstr(path, "/resources/"))
        return ctld_write_layout(ctld);
    if (strstr(path, "/nodes/"))
        return ctld_write_nodes(ctld, path);
    if (strstr(path, "/jobs/"))
        return ctld_write_list(ctld, path);
    return ctld_write_none(ctld, path);
}

static inline struct fake_answer ctld_serve(void *context, const struct fake_sent *sent)
{
    struct ctld *ctld = context;
    struct fake_answer answer = { .delay_us = ctld->delay_us, .ends = true };

    buf_clear(&ctld->body);
    answer.status = ctld_respond(ctld, sent->path);
    answer.body = buf_text(&ctld->body);
    if (ctld->random)
        answer.delay_us = rand_range(&ctld->rand, 0, 300 * MS_US);
    if (strstr(sent->path, "/resources/"))
        answer.delay_us += ctld->layout_delay_us;
    if (strstr(sent->path, "/jobs/?"))
        answer.delay_us += ctld->list_delay_us;
    if (strstr(sent->path, "/nodes/") && answer.status == 200)
        answer.delay_us += ctld->nodes_delay_us;
    if (strstr(sent->path, "/conf")) {
        answer.delay_us += ctld->conf_delay_us;
        ctld->conf_delay_us = 0;
    }
    return answer;
}

/* ---- what the cache tells ---- */

static inline void ctld_free_object(void *object)
{
    slurm_object_unref(object);
}

static inline const char *ctld_state_of(const struct slurm_object *object)
{
    static const char *const names[] = { "P", "R", "S", "C", "X", "F" };

    if (!object)
        return "-";
    for (unsigned i = 0; i < 6; i++)
        if (slurm_words_has(&slurm_job_of(object)->state, i))
            return names[i];
    return "?";
}

/* Nothing goes that slurmctld still has, nor anything while it is suspected. */
static inline void ctld_on_job(void *context, const struct slurm_object *old,
                               const struct slurm_object *next)
{
    struct ctld *ctld = context;
    const struct slurm_object *any = next ? next : old;

    assert_ptr_equal(map_get(&ctld->mirror, str_of(any->key)), old);
    if (old == next)
        return; /* a read after a write, and it shows the job unchanged */
    buf_printf(&ctld->log, "%s:%s>%s ", any->key, ctld_state_of(old), ctld_state_of(next));
    if (next) {
        assert_int_equal(
            map_put(&ctld->mirror, str_of(next->key), (void *)slurm_object_ref(next), NULL), 0);
        return;
    }
    for (size_t i = 0; i < JOBS; i++) {
        char sluid[16];

        snprintf(sluid, sizeof(sluid), "s%d", ctld->jobs[i].serial);
        if (ctld->jobs[i].id != 0)
            assert_string_not_equal(sluid, slurm_job_of(old)->sluid);
    }
    assert_false(slurm_poller_is_suspicious(ctld->poller) && !ctld->random);
    assert_true(map_remove(&ctld->mirror, str_of(old->key)));
}

/* ---- the poller ---- */

/* Another one in place of that of ctld_up. */
static inline void ctld_poller(struct ctld *ctld, const struct slurm_poller_options *options)
{
    slurm_poller_free(ctld->poller);
    ctld->poller = slurm_poller_new(ctld->world->client, options);
    slurm_cache_listen(slurm_poller_cache(ctld->poller, SLURM_FEED_JOBS), ctld_on_job, ctld);
}

static inline int ctld_up(void **state)
{
    struct map_options options = { .max = 10000, .free_value = ctld_free_object };
    struct ctld *ctld = mem_alloc(sizeof(*ctld));
    void *world;

    world_up(&world);
    ctld->world = world;
    ctld->next_id = 1;
    ctld->boot_time = 5;
    ctld->delay_us = MS_US;
    ctld->node_comment = "a";
    ctld->node_there = true;
    buf_init(&ctld->body, 1 << 20);
    buf_init(&ctld->log, 1 << 24);
    map_init(&ctld->mirror, &options);
    rand_init(&ctld->rand, 3);
    fake_serve(ctld->world->fake, ctld_serve, ctld);
    ctld_poller(ctld, NULL);
    *state = ctld;
    return 0;
}

static inline int ctld_down(void **state)
{
    struct ctld *ctld = *state;
    void *world = ctld->world;

    slurm_poller_free(ctld->poller);
    map_done(&ctld->mirror);
    buf_done(&ctld->body);
    buf_done(&ctld->log);
    mem_free(ctld);
    return world_down(&world);
}

static inline void ctld_run(struct ctld *ctld, int64_t ms)
{
    fake_run_for(ctld->world->fake, ms * MS_US);
}

/* Started, listed, and nothing yet to tell but what is there. */
static inline void ctld_begin(struct ctld *ctld)
{
    slurm_poller_start(ctld->poller);
    ctld_run(ctld, 500);
    assert_true(slurm_poller_is_synced(ctld->poller));
    buf_clear(&ctld->log);
    fake_forget_sent(ctld->world->fake);
}

static inline void ctld_expect(struct ctld *ctld, int64_t ms)
{
    slurm_poller_expect(ctld->poller, loop_now_us(ctld->world->loop) + ms * MS_US);
}

/* NULL: not in the cache. */
static inline const struct slurm_job *ctld_shown(struct ctld *ctld, const char *key)
{
    const struct slurm_object *object =
        slurm_cache_get(slurm_poller_cache(ctld->poller, SLURM_FEED_JOBS), key);

    return object ? slurm_job_of(object) : NULL;
}

/* How many requests had this in their paths. */
static inline unsigned ctld_sent(struct ctld *ctld, const char *part)
{
    unsigned count = 0;

    for (size_t i = 0; i < fake_sent_count(ctld->world->fake); i++)
        count += strstr(fake_sent(ctld->world->fake, i)->path, part) != NULL;
    return count;
}

/* The changes of jobs since the last call: "id:old>next " each. */
#define assert_told(ctld, want)                                                                    \
    do {                                                                                           \
        assert_string_equal(buf_text(&(ctld)->log), want);                                         \
        buf_clear(&(ctld)->log);                                                                   \
    } while (0)

#define TEST(name) cmocka_unit_test_setup_teardown(name, ctld_up, ctld_down)

#endif
