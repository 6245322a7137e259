/* cdi.h - the CDI file of a claim: the device that containers name, whose hook pins them.
 *
 * One file per claim, named by the claim's UID. It stays while the claim is prepared, also while
 * the plugin is away: containers start without the plugin. */
#ifndef SLINC_DRA_CDI_H
#define SLINC_DRA_CDI_H

#include "dra/prepared.h"

struct cdi {
    const char *folder;  /* /var/run/cdi */
    const char *hook;    /* the hook program */
    const char *records; /* the folder in which the hook records containers */
};

/* "cores.slinky.slurm.net/cpuset=claim-<uid>" */
void cdi_device_id(struct str uid, struct buf *out);

int cdi_write(const struct cdi *cdi, const struct prepared_claim *claim, struct err *err);
int cdi_remove(const struct cdi *cdi, struct str uid, struct err *err); /* absent is fine */

#endif
