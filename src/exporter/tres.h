/* tres.h - the amounts that Slurm writes as text: trackable resources ("cpu=4,mem=8G,gres/gpu=2")
 * and generic resources ("gpu:h100:8(S:0-1),shard:4"). */
#ifndef SLINC_EXPORTER_TRES_H
#define SLINC_EXPORTER_TRES_H

#include "base/str.h"

enum { TRES_MAX_GRES = 16 }; /* kinds of generic resources in one text; more are left out */

struct tres_gres {
    struct str name; /* "gpu" or "gpu:h100"; borrowed from the text */
    int64_t count;
};

struct tres {
    int64_t cpus, nodes, billing;
    double memory_bytes;
    struct tres_gres gres[TRES_MAX_GRES];
    unsigned gres_count;
};

/* Of "gres/gpu=4,gres/gpu:h100=3" one gpu has no type and three are of type h100. What cannot be
 * read is left out. */
void tres_read(struct str text, struct tres *ret_tres);

/* Adds so many of one kind. */
void tres_add(struct tres *tres, struct str name, int64_t count);

/* Adds the generic resources of a node's "gpu:h100:8(S:0-1)" or of a job's "gres/gpu:h100:2", each
 * so many times. */
void tres_add_gres(struct tres *tres, struct str text, int64_t times);

#endif
