/* job_desc.h - what is asked of Slurm for one unit, and the annotations by which people say it.
 *
 * A struct job_desc is the whole description, without JSON: translate.c fills it from the pods,
 * then job_desc_annotate lays the annotations over it, and job_desc_json writes it. Text "" and
 * number -1 mean "not said": Slurm's own default applies. */
#ifndef SLINC_BRIDGE_JOB_DESC_H
#define SLINC_BRIDGE_JOB_DESC_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "bridge/world/job_desc_form.h"
#include "codec/json.h"
#include "kube/object.h"
#include "slurm/capacity.h"

#include <stdbool.h>
#include <stdint.h>

struct job_desc {
    const char *name, *account, *partition, *qos, *reservation, *wckey, *constraints, *licenses;
    const char *prefer;             /* features; not beside constraints: Slurm would forget those */
    const char *gres;               /* tres_per_node: "gres/gpu=2,gres/..." */
    const char *gres_per_task;      /* in place of it when pods may share a node */
    const char *user_id, *group_id; /* name or number */
    const char *mcs_label;
    const char *dependency, *comment, *network;
    const char *excluded_nodes; /* a folded hostlist */
    const char *required_nodes; /* only to rebook pods that are bound already */
    int64_t nodes;              /* how many pods; min and max nodes win over it */
    int64_t min_nodes, max_nodes, tasks_per_node, cpus_per_task;
    int64_t tasks;                /* places in all, when several pods share a node; else not said */
    int64_t memory;               /* MiB on each node */
    int64_t time_limit;           /* minutes */
    int64_t priority;             /* 0 holds the job */
    int64_t begin_time, deadline; /* seconds since 1970 */
    int64_t nice;                 /* 0: not said, which is Slurm's own */
    int64_t segment_size, switches;
    int64_t switch_wait; /* seconds for which it waits to get no more switches than that */
    int64_t gang;        /* JOB_DESC_GANG_...; not sent */
    int64_t created;     /* what `begin-time: +1h` counts from, as begin_time; set before the
                            annotations are laid over; neither sent nor in the hash */
    bool exclusive;      /* whole nodes */
};

void job_desc_init(struct job_desc *desc);

/* Every annotation with our prefix; other keys, and suffixes that the table lacks, are ignored.
 * -ERR_INVALID names the annotation, its value and the form that is allowed, and leaves the job
 * description as it was. Texts are copied into the arena. */
int job_desc_annotate(struct job_desc *desc, struct arena *arena,
                      const struct kube_pairs *annotations, struct err *err);

/* Copies all texts into the arena. */
void job_desc_keep(struct job_desc *desc, struct arena *arena);

/* The fewest nodes that will do; 1 where nothing says. */
int64_t job_desc_least_nodes(const struct job_desc *desc);

/* Whether Slurm may only be asked by way of the queue: a job that must wait for something else than
 * nodes is refused as an immediate one, and so is one that cannot have what it prefers; whatever
 * user and group an immediate one names it becomes that of the token's user. */
bool job_desc_must_queue(const struct job_desc *desc);

/* What the job needs of its node. False: only Slurm can say where it fits (several nodes, named
 * nodes, gres per task, constraints, licenses, a reservation, no partition). Borrows its texts. */
bool job_desc_need(const struct job_desc *desc, struct capacity_need *ret_need);

/* For pods that run already: forgets all that would have their job wait, or be refused by now. */
void job_desc_drop_waits(struct job_desc *desc);

/* The `job` object of a request, without the members of slurm_submit_ask (submit.h). */
struct json_mut *job_desc_json(struct json_build *build, const struct job_desc *desc);
/* Equal descriptions have equal hashes, in any process. */
uint64_t job_desc_hash(const struct job_desc *desc);

/* The annotations as Markdown: key, form, Slurm's field, meaning. */
void job_desc_reference(struct buf *out);

#endif
