/* source.h - reads Slurm for everybody who looks at it: one poller, its caches, slurmctld's
 * statistics and licenses, and whether our user sees everything.
 *
 * Nobody who looks causes a request: what is read depends on time alone. */
#ifndef SLINC_EXPORTER_SOURCE_H
#define SLINC_EXPORTER_SOURCE_H

#include "engine/metrics.h"
#include "exporter/layouts.h"
#include "exporter/tally.h"
#include "slurm/poller.h"
#include "slurm/sight.h"

enum source_users { SOURCE_USERS_AUTO, SOURCE_USERS_SHOWN, SOURCE_USERS_HIDDEN };

struct source_options {
    int64_t poll_us;         /* between polls; 0 = 5 s */
    int64_t list_us;         /* between whole job lists; 0 = 30 s */
    int64_t stale_us;        /* older than this is not shown; 0 = 60 s */
    enum source_users users; /* AUTO: shown unless PrivateData hides users */
    uint64_t seed;           /* 0: random */
};

struct source;

/* Loop, transport, token and metrics are borrowed and outlive it. */
struct source *source_new(struct loop *loop, struct http_transport *transport,
                          struct slurm_token *token, struct metrics *metrics,
                          const struct source_options *options);
void source_start(struct source *source);
void source_free(struct source *source); /* takes NULL */

/* What may be shown now; borrowed until the loop goes on. ret_health is filled, and the view's
 * health points to it. */
void source_view(struct source *source, struct tally_health *ret_health,
                 struct tally_view *ret_view);

/* Slurm's version as slurmctld tells it, "" while unknown; borrowed. */
const char *source_slurm_version(const struct source *source);

/* Which cores the jobs have; they are read from the first call on. Borrowed. */
struct layouts *source_layouts(struct source *source);

/* Pure: what is hidden from a user, by what slurmctld says of itself (NULL: not known). */
void source_judge(const struct slurm_site *site, enum slurm_sight sight,
                  struct tally_health *health);

#endif
