/* show.h - what `slinc queue`, `nodes` and `why` print: documents of the APIs in, text out. Pure.
 *
 * jobs and nodes are documents of view.slinky.slurm.net; NULL where they could not be read, and
 * then `missing` says why. */
#ifndef SLINC_CLI_SHOW_H
#define SLINC_CLI_SHOW_H

#include "base/arena.h"
#include "base/buf.h"
#include "codec/json.h"

struct show_options {
    const char *partition, *user; /* "": all */
    int64_t now_s;
    bool without_head;
    bool colours;
};

void show_queue(const struct json *jobs, const struct show_options *options, struct arena *arena,
                struct buf *out);
void show_nodes(const struct json *nodes, const struct show_options *options, struct arena *arena,
                struct buf *out);

struct show_story {            /* what is known about one pod or job */
    const struct json *pod;    /* NULL: it is about a job */
    const struct json *events; /* of the pod; may be NULL */
    const struct json *jobs;   /* may be NULL */
    const char *missing;       /* why jobs could not be read; "" */
    int64_t job_id;            /* without a pod */
};
/* -ERR_NOT_FOUND: there is no such job among those that have not ended. */
int show_why(const struct show_story *story, const struct show_options *options,
             struct arena *arena, struct buf *out, struct err *err);

#endif
