/* why_start.c - the questions, cheapest change first. */
#include "bridge/why_start.h"

#include "bridge/unit/describe.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    SOON_S = 60, /* what starts within it needs no advice, and what is that much sooner is none */
    NEAR_S = 90, /* after the end of the job that it waits for */
    SHORT_LIMIT = 4, /* minutes: a shorter time limit is no advice */
    MAX_BODY = 32 << 10,
};

/* ---- asking ---- */

/* A job that waits, but for the change; else the one that would be submitted. */
static void add(struct slurm_what_ifs *ifs, const struct unit *unit, const struct job_desc *desc,
                const struct slurm_change *change, const char *words)
{
    auto_json_build struct json_build *build = json_build_new();
    struct job_desc changed = *desc;
    auto_buf struct buf body;

    buf_init(&body, MAX_BODY);
    if (unit->job) {
        buf_printf(&body, "{\"job_id\":%" PRId64 ",\"job\":{", unit->job->id);
        slurm_change_write(change, &body);
        buf_add_text(&body, "}}");
    } else {
        if (change->time_limit > 0)
            changed.time_limit = change->time_limit;
        if (change->cpus > 0)
            changed.cpus_per_task = change->cpus;
        if (change->partition[0])
            changed.partition = change->partition;
        buf_add_text(&body, "{\"job\":");
        json_mut_write(job_desc_json(build, &changed), &body);
        buf_add_char(&body, '}');
    }
    if (!body.overflowed)
        (void)slurm_what_if_add(ifs, words, buf_str(&body));
}

/* In the words of annotations and requests, which are what a person changes. */
static void add_advice(const struct bridge_world *world, const struct unit *unit,
                       const struct job_desc *desc, struct slurm_what_ifs *ifs)
{
    int64_t limit = unit->job && unit->job->time_limit.set ? (int64_t)unit->job->time_limit.number
                                                           : desc->time_limit;
    struct slurm_cache_walk walk = slurm_cache_walk(world->slurm_partitions);
    const struct slurm_object *object;
    char words[96];

    for (unsigned part = 2; part <= 4; part += 2)
        if (limit >= (int64_t)part * SHORT_LIMIT) {
            (void)snprintf(words, sizeof(words), "a time limit of %" PRId64 " minutes",
                           limit / part);
            add(ifs, unit, desc, &(struct slurm_change){ .time_limit = limit / part }, words);
        }
    if (desc->cpus_per_task > 1) {
        (void)snprintf(words, sizeof(words), "%" PRId64 " CPUs", desc->cpus_per_task / 2);
        add(ifs, unit, desc, &(struct slurm_change){ .cpus = desc->cpus_per_task / 2 }, words);
    }
    while ((object = slurm_cache_next(&walk))) {
        struct slurm_change change = { .time_limit = 0 };

        if (str_is(str_of(object->key), desc->partition) ||
            strlen(object->key) >= sizeof(change.partition) - 1)
            continue;
        (void)snprintf(change.partition, sizeof(change.partition), "%s", object->key);
        (void)snprintf(words, sizeof(words), "partition %.80s", object->key);
        add(ifs, unit, desc, &change, words);
    }
}

bool why_start_ask(const struct bridge_world *world, const struct unit *unit,
                   const struct slurm_change *change, struct arena *arena,
                   struct slurm_what_ifs *ret_ifs)
{
    struct slurm_what_ifs ifs = { .soon = change ? 0 : world->facts.wall_us / SECOND_US + SOON_S };
    struct err err = { .class = 0 };
    struct job_desc desc;

    if (unit->stage != POD_WAITS || (unit->job && job_phase(unit->job) != JOB_WAITS) ||
        (!unit->job && !change) || !unit->owner.object ||
        unit_describe(world, unit, DESCRIBE_BOTH, arena, &desc, &err) < 0)
        return false;
    add(&ifs, unit, &desc, change ? change : &(struct slurm_change){ .time_limit = 0 }, "");
    if (!change)
        add_advice(world, unit, &desc, &ifs);
    *ret_ifs = ifs;
    return ifs.count > 0;
}
