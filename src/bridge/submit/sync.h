/* sync.h - how a job that waits differs from what its unit would submit now. */
#ifndef SLINC_BRIDGE_SYNC_H
#define SLINC_BRIDGE_SYNC_H

#include "bridge/run/exclude.h"
#include "bridge/unit/job_change.h"
#include "bridge/unit/job_desc.h"

struct sync {
    struct json_build *build;
    struct json_mut *fields;    /* of the update */
    struct job_desc desc;       /* as the job is then */
    struct field_hashes hashes; /* what it was submitted with */
    struct field_hashes noted;  /* the same until the update was made */
    struct exclusion exclusion;
    const char *invalid; /* why the unit cannot be described; NULL: it can */
    const char *anew;    /* an annotation that Slurm cannot change of a job; NULL: there is none */
    bool is_remembered;  /* this process knows the hashes */
    bool differs;        /* from what the unit would submit now */
    bool is_refused;     /* Slurm refused this very change, and nothing that matters changed */
    bool has_nodes;      /* Kubernetes' rules leave enough nodes */
    bool remembers;      /* the unit state gets the hashes, with an update or without */
    bool nodes_differ;   /* from those that the job excludes or prefers */
};

/* For a unit whose job waits. */
void sync_look(const struct bridge_world *world, const struct unit *unit, struct arena *arena,
               struct sync *ret_sync);
void sync_done(struct sync *sync);

bool sync_has_update(const struct sync *sync);
/* Only while the record of the job is fresh. */
void plan_sync(const struct unit *unit, struct plan *plan, const struct sync *sync);

#endif
