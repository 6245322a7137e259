/* what_if.c - asks one question after the other, and tells what was answered. */
#include "slurm/what_if.h"

#include "base/mem.h"
#include "codec/hostlist.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    NEAR_S = 90, /* after the end of the job that it waits for */
    SOON_S = 60, /* what is not that much sooner is no advice */
};

static void ask_next(struct slurm_what_ifs *ifs);

bool slurm_what_if_add(struct slurm_what_ifs *ifs, const char *change, struct str body)
{
    struct slurm_what_if *one;

    if (ifs->count == SLURM_WHAT_IFS || body.len > SLURM_WHAT_IF_BODY)
        return false;
    one = &ifs->at[ifs->count++];
    *one = (struct slurm_what_if){ .body = mem_strndup(body.at, body.len) };
    (void)snprintf(one->change, sizeof(one->change), "%s", change);
    return true;
}

static void on_answered(void *context, const struct slurm_answer *answer)
{
    struct slurm_what_ifs *ifs = context;
    struct slurm_what_if *one = &ifs->at[ifs->next++];
    bool is_refused = answer->error.class == SLURM_UNAVAILABLE;

    ifs->call = NULL;
    if (answer->error.class == SLURM_DONE) {
        one->start_time = json_i64_or(json_get(answer->body, "start_time"), 0);
        (void)snprintf(one->nodes, sizeof(one->nodes), STR_FMT,
                       STR_ARG(json_str(json_get(answer->body, "nodes"))));
    }
    (void)snprintf(one->error, sizeof(one->error), "%s", answer->error.text);
    one->is_answered = !is_refused;
    if (is_refused || ifs->next == ifs->count ||
        (ifs->next == 1 && one->start_time > 0 && one->start_time <= ifs->soon))
        ifs->done(ifs->context);
    else
        ask_next(ifs);
}

static void ask_next(struct slurm_what_ifs *ifs)
{
    ifs->call = slurm_will_run(ifs->client, str_of(ifs->at[ifs->next].body), on_answered, ifs);
}

void slurm_what_ifs_ask(struct slurm_what_ifs *ifs, struct slurm_client *client,
                        void (*done)(void *context), void *context)
{
    ifs->client = client;
    ifs->done = done;
    ifs->context = context;
    ask_next(ifs);
}

void slurm_what_ifs_done(struct slurm_what_ifs *ifs)
{
    slurm_call_cancel(ifs->call);
    for (unsigned i = 0; i < ifs->count; i++)
        mem_free(ifs->at[i].body);
    *ifs = (struct slurm_what_ifs){ .count = 0 };
}

/* ---- the question ---- */

void slurm_change_write(const struct slurm_change *change, struct buf *out)
{
    const char *between = change->time_limit > 0 ? "," : "";

    if (change->time_limit > 0)
        buf_printf(out, "\"time_limit\":{\"set\":true,\"infinite\":false,\"number\":%" PRId64 "}",
                   change->time_limit);
    if (change->cpus > 0)
        buf_printf(out, "%s\"cpus_per_task\":%" PRId64, between, change->cpus);
    between = change->time_limit > 0 || change->cpus > 0 ? "," : "";
    if (change->partition[0]) {
        buf_printf(out, "%s\"partition\":", between);
        json_escape(out, str_of(change->partition));
    }
}

/* ---- telling ---- */

/* The job that holds one of these nodes until then; 0: none is known. */
static int64_t job_before(const struct slurm_cache *jobs, const struct slurm_what_if *one)
{
    auto_arena struct arena arena;
    const struct hostlist *list;
    struct hostlist_iter hosts;
    int64_t last = 0, id = 0;
    struct str host;

    arena_init(&arena, 1 << 20);
    if (hostlist_parse(&arena, str_of(one->nodes), 1024, &list, NULL) < 0)
        return 0;
    hosts = hostlist_iter(list);
    while (hostlist_next(&hosts, &host)) {
        struct slurm_index_walk walk = slurm_cache_by(jobs, SLURM_JOBS_BY_NODE, host);
        const struct slurm_object *object;

        while ((object = slurm_index_next(&walk))) {
            const struct slurm_job *job = slurm_job_of(object);

            if (job->end_time > last && job->end_time <= one->start_time &&
                one->start_time - job->end_time <= NEAR_S) {
                last = job->end_time;
                id = job->id;
            }
        }
    }
    return id;
}

static void write_start(const struct slurm_cache *jobs, const struct slurm_what_if *one,
                        struct buf *out)
{
    int64_t before = one->start_time > 0 ? job_before(jobs, one) : 0;

    buf_add_text(out, "{\"nodes\":");
    json_escape(out, str_of(one->nodes));
    json_add_time(out, "start", one->start_time);
    if (before > 0)
        buf_printf(out, ",\"after\":%" PRId64, before);
    if (one->change[0])
        json_add_text(out, "change", one->change);
    if (one->start_time == 0)
        json_add_text(out, "error", one->error);
    buf_add_char(out, '}');
}

void slurm_what_ifs_write(const struct slurm_what_ifs *ifs, const struct slurm_cache *jobs,
                          bool is_change, struct buf *out)
{
    const struct slurm_what_if *as_it_is = &ifs->at[0];
    const char *between = "";

    if (ifs->count == 0 || !as_it_is->is_answered)
        return;
    buf_printf(out, ",\"%s\":", is_change ? "whatIf" : "willRun");
    write_start(jobs, as_it_is, out);
    if (is_change)
        return;
    buf_add_text(out, ",\"sooner\":[");
    for (unsigned i = 1; i < ifs->count; i++) {
        const struct slurm_what_if *one = &ifs->at[i];

        if (one->start_time == 0 ||
            (as_it_is->start_time > 0 && one->start_time > as_it_is->start_time - SOON_S))
            continue;
        buf_add_text(out, between);
        write_start(jobs, one, out);
        between = ",";
    }
    buf_add_char(out, ']');
}
