/* legacy.h - the series that dashboards made for Slinky's exporter read, under their old names.
 *
 * All are gauges, whatever their suffix says; memory is in MiB and scheduler times are in
 * microseconds, as the old names always had them. They therefore stand on a page of their own. */
#ifndef SLINC_EXPORTER_LEGACY_H
#define SLINC_EXPORTER_LEGACY_H

#include "exporter/tally.h"

/* owners: the tally whose accounts and users are shown by name; the others are under "other". */
void legacy_write(const struct tally_view *view, const struct tally *owners, struct buf *out);

void legacy_reference(struct buf *out); /* the names (Markdown) */

#endif
