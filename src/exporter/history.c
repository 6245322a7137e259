/* history.c - counts starts and ends of jobs into histograms.
 *
 * Holds: of one submission a start is counted once for each start time, and an end once. */
#include "exporter/history.h"

#include "base/map.h"
#include "base/mem.h"
#include "exporter/families.h"

struct known_job {
    int64_t submit_time, start_time; /* start_time: of the start that was counted */
    bool ended;                      /* and its end */
};

struct history {
    struct metrics *metrics;
    int64_t since_s;
    struct map jobs; /* struct known_job, by the key of the cache */
};

struct history *history_new(struct metrics *metrics, int64_t since_s)
{
    struct history *history = mem_alloc(sizeof(*history));

    history->metrics = metrics;
    history->since_s = since_s;
    map_init(&history->jobs,
             &(struct map_options){ .max = SLURM_MAX_LIST, .free_value = mem_free });
    return history;
}

void history_free(struct history *history)
{
    if (!history)
        return;
    map_done(&history->jobs);
    mem_free(history);
}

/* The record of this submission; a job that has taken over an id begins anew. */
static struct known_job *find(struct history *history, const struct slurm_job *job)
{
    struct known_job *known = map_get(&history->jobs, str_of(job->object.key));

    if (known && known->submit_time == job->submit_time)
        return known;
    if (!known) {
        known = mem_alloc(sizeof(*known));
        if (map_put(&history->jobs, str_of(job->object.key), known, NULL) < 0) {
            mem_free(known);
            return NULL;
        }
    }
    *known = (struct known_job){ .submit_time = job->submit_time };
    return known;
}

static const char *result_of(const struct slurm_job *job)
{
    static const struct {
        enum slurm_job_state state;
        const char *name;
    } results[] = {
        { SLURM_JOB_COMPLETED, "completed" },
        { SLURM_JOB_CANCELLED, "cancelled" },
        { SLURM_JOB_FAILED, "failed" },
        { SLURM_JOB_TIMED_OUT, "timeout" },
        { SLURM_JOB_NODE_FAIL, "node_fail" },
        { SLURM_JOB_PREEMPTED, "preempted" },
        { SLURM_JOB_BOOT_FAIL, "boot_fail" },
        { SLURM_JOB_DEADLINE, "deadline" },
        { SLURM_JOB_OUT_OF_MEMORY, "out_of_memory" },
        { SLURM_JOB_LAUNCH_FAILED, "launch_failed" },
    };

    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (slurm_words_has(&job->state, results[i].state))
            return results[i].name;
    return "other";
}

/* A job that never ran has no nodes, although Slurm gives a cancelled one a start time. */
static void count_start(struct history *history, struct known_job *known,
                        const struct slurm_job *job)
{
    int64_t from_s = job->eligible_time > 0 ? job->eligible_time : job->submit_time;
    int64_t waited_s = job->start_time - from_s;

    if (!job->nodes[0] || job->start_time < history->since_s ||
        job->start_time == known->start_time || slurm_words_has(&job->state, SLURM_JOB_PENDING))
        return;
    known->start_time = job->start_time;
    metrics_observe(history->metrics, &families[FAMILY_JOB_WAIT].row,
                    (double)(waited_s > 0 ? waited_s : 0), job->partition,
                    tally_holder_names[tally_holder_of(job)], NULL);
}

static void count_end(struct history *history, struct known_job *known, const struct slurm_job *job)
{
    int64_t ran_s = job->end_time - job->start_time;
    const char *result = result_of(job);

    if (known->ended || !slurm_job_has_ended(&job->state) || job->end_time < history->since_s)
        return;
    known->ended = true;
    metrics_add(history->metrics, &families[FAMILY_JOBS_FINISHED].row, 1, job->partition, result,
                NULL);
    if (!job->nodes[0] || job->start_time <= 0 || ran_s < 0)
        return;
    metrics_observe(history->metrics, &families[FAMILY_JOB_RUN].row, (double)ran_s, job->partition,
                    result, NULL);
    if (job->time_limit.set && job->time_limit.number > 0)
        metrics_observe(history->metrics, &families[FAMILY_JOB_LIMIT_USED].row,
                        (double)ran_s / (60.0 * (double)job->time_limit.number), job->partition,
                        NULL);
}

void history_take(void *context, const struct slurm_object *old, const struct slurm_object *next)
{
    struct history *history = context;
    struct known_job *known = next ? find(history, slurm_job_of(next)) : NULL;

    if (!next) {
        map_remove(&history->jobs, str_of(old->key));
        return;
    }
    if (!known)
        return;
    count_start(history, known, slurm_job_of(next));
    count_end(history, known, slurm_job_of(next));
}
