/* top.h - which accounts, users and QOS are shown by name; the others are added up under "other".
 *
 * Those with most CPUs, running and pending together, have a name. A name that is shown stays until
 * it falls clearly behind, so that two that are about equal do not take turns. */
#ifndef SLINC_EXPORTER_TOP_H
#define SLINC_EXPORTER_TOP_H

#include "exporter/tally.h"

struct top { /* of one kind of owner; remembers whom it showed last */
    struct map names;
};

void top_init(struct top *top);
void top_done(struct top *top);

/* Leaves at most `max` owners in the map, and one named "other" for the rest if there is any.
 * ret_folded: how many are in it. */
void top_choose(struct top *top, struct tally *tally, enum tally_owner_kind kind, size_t max,
                size_t *ret_folded);

#endif
