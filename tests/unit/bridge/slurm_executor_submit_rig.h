/* slurm_executor_submit_rig.h - the executor of slurm_executor_rig.h asks for jobs; for the unit
 * "ns/uid" where nothing else is said. */
#ifndef SLINC_TESTS_BRIDGE_SLURM_EXECUTOR_SUBMIT_RIG_H
#define SLINC_TESTS_BRIDGE_SLURM_EXECUTOR_SUBMIT_RIG_H

#include "slurm_executor_rig.h"

#define DONE_BODY "{\"job_id\":7,\"step_id\":{\"sluid\":\"s\"},\"errors\":[],\"warnings\":[]}"

/* Another rig in place of the test's own, for the next case of a table. */
static inline struct rig *rig_fresh(void **state)
{
    rig_down(state);
    rig_up(state);
    return *state;
}

static inline struct end *ask_as(struct rig *rig, const char *key, bool at_once)
{
    static const struct str pods[] = { { "ns/pod", 6 } };

    if (at_once && slurm_cache_count(rig->nodes) == 0)
        rig_see(rig, rig->nodes,
                "{\"name\":\"room\",\"cpus\":64,\"real_memory\":9,\"state\":[\"IDLE\"],"
                "\"partitions\":\"p\"}");
    return rig_do(rig,
                  plan_slurm_submit(&rig->plan, &(struct submit_request){ .key = str_of(key),
                                                                          .attempt = 1,
                                                                          .job = &rig->job,
                                                                          .pods = pods,
                                                                          .pod_count = 1,
                                                                          .at_once = at_once }));
}

static inline struct end *ask(struct rig *rig, bool at_once)
{
    return ask_as(rig, "ns/uid", at_once);
}

/* And an answer that needs no time is there. */
static inline struct end *ask_and_run(struct rig *rig, bool at_once)
{
    struct end *end = ask(rig, at_once);

    rig_run(rig, MS_US);
    return end;
}

/* The next ask that may queue gets job 7. */
static inline void submit_is_done(struct rig *rig, int64_t delay_us)
{
    fake_answer(rig->fake, "POST", V45 "/job/submit",
                (struct fake_answer){ .status = 200, .body = DONE_BODY, .delay_us = delay_us });
}

static inline const struct unit_state *unit_of(const struct rig *rig)
{
    const struct unit_state *unit = unit_states_get(rig->unit_states, STR("ns/uid"));

    assert_non_null(unit);
    return unit;
}

static inline const struct submit_record *remembered(const struct rig *rig)
{
    return &unit_of(rig)->submit;
}

#endif
