/* show.h - what `slinc queue`, `nodes` and `why` print: documents of the APIs in, text out. Pure.
 */
#ifndef SLINC_CLI_SHOW_H
#define SLINC_CLI_SHOW_H

#include "base/arena.h"
#include "base/buf.h"
#include "cli/story.h"
#include "codec/json.h"

struct show_options {
    const char *partition, *user; /* "": all */
    int64_t now_s;
    bool without_head;
    bool colours;
};

/* What they list, of the documents' items. */
bool show_queue_has(const struct json *job, const struct show_options *options);
bool show_nodes_has(const struct json *node, const struct show_options *options);
int64_t show_count_gpus(const struct json *gres);

void show_queue(const struct json *jobs, const struct show_options *options, struct arena *arena,
                struct buf *out);
void show_nodes(const struct json *nodes, const struct show_options *options, struct arena *arena,
                struct buf *out);

/* What is known about one pod, job or NodeSet. A document is NULL when it could not be read; then
 * its `no_` text says why, or is "" when there is none. */
struct why_facts {
    const struct json *pod, *nodeset; /* one of them, or else job_id */
    int64_t job_id;
    const struct json *events;   /* of the pod or NodeSet */
    const struct json *pods;     /* of the job, or the workers of the NodeSet */
    const struct json *jobs;     /* of the view API */
    const struct json *nodes;    /* of the view API */
    const struct json *decision; /* what the bridge thinks of the pod: GET /debug/why */
    const char *no_jobs, *no_nodes, *no_decision, *no_pods;
};

/* -ERR_NOT_FOUND: Slurm has no such job that has not ended. */
int why_tell(const struct why_facts *facts, const struct show_options *options,
             struct story *ret_story, struct err *err);

#endif
