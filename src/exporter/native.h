/* native.h - the series of slurmctld's own /metrics endpoints (25.11 and later), from our caches.
 *
 * For dashboards that read them, where slurmctld's endpoints are off or hidden by PrivateData. The
 * names and units are slurmctld's: all are gauges, memory is MiB, times of the scheduler are
 * microseconds. They therefore stand on a page of their own. Not there: slurm_sdiag_latency, which
 * no call of slurmrestd tells. */
#ifndef SLINC_EXPORTER_NATIVE_H
#define SLINC_EXPORTER_NATIVE_H

#include "exporter/tally.h"

/* The tally has nodes and jobs where the view has; its accounts and users are shown by name, the
 * others under "other". */
void native_write(const struct tally *tally, struct buf *out);

#endif
