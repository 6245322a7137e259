/* wake.h - what wakes a unit that waits.
 *
 * A unit that waits is planned again when what it waits for may have changed. Each source keeps the
 * units that wait for it (unit_state.h), but for ON_POD, ON_JOB, ON_ANSWER and ON_TIME, which name
 * the unit themselves. */
#ifndef SLINC_BRIDGE_WAKE_H
#define SLINC_BRIDGE_WAKE_H

enum wake {
    ON_OWNER = 1 << 0,    /* an object that pods belong to comes or changes */
    ON_SLURM = 1 << 1,    /* Slurm can be used again, or can no more; all jobs were read */
    ON_NODES = 1 << 2,    /* nodes come or change, in Kubernetes or in Slurm; classes of devices */
    ON_PLACE = 1 << 3,    /* a pod has left its node */
    ON_CLAIM = 1 << 4,    /* a claim for devices changes */
    ON_VOLUME = 1 << 5,   /* a volume, or a claim for one, changes */
    ON_REBOOKED = 1 << 6, /* no bound pod lacks its job any more */
    ON_POD = 1 << 7,      /* one of its pods changes, comes or goes */
    ON_JOB = 1 << 8,      /* the record of its job changes, or is read after a write */
    ON_ANSWER = 1 << 9,   /* its own action has ended */
    ON_TIME = 1 << 10,    /* time alone */
};

enum { WAKE_SOURCES = 7 }; /* those that keep their units */

#endif
