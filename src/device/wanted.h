/* wanted.h - the gres that the record of a node in Slurm should have, and whether it does. Pure. */
#ifndef SLINC_DEVICE_WANTED_H
#define SLINC_DEVICE_WANTED_H

#include "device/registered.h"

struct wanted_row { /* of one name and type */
    const char *name, *type;
    const char *driver; /* whose devices have numbers in Slurm; NULL: they are only counted */
    int64_t count;      /* that pods may use */
    int64_t all;        /* with those that are tainted */
    const char *listed; /* as the mark lists them; "": they are not known */
    bool is_shown;      /* by a driver or the kubelet; else a driver is away */
};

struct wanted_gres {
    struct wanted_row *at;
    unsigned count;
    const char *devices; /* as the mark of the record has them; "" for none, or too many */
    const char *tainted; /* devices that are left out, and why; "" */
};

/* record: that Slurm has; NULL. taken: of each extended resource of the node, by pods of others. */
void wanted_gres_of(const struct device_view *view, const struct kube_node *node,
                    const struct slurm_node *record, const int64_t *taken, struct arena *arena,
                    struct wanted_gres *ret_wanted);

/* "gpu:a100:2,nic:1"; NULL without any. */
const char *wanted_gres_text(const struct wanted_gres *wanted, struct arena *arena);
/* The GresConf that goes with it. */
const char *wanted_gres_conf(const struct wanted_gres *wanted, struct arena *arena);

enum wanted_gres_match {
    GRES_RIGHT,
    GRES_OTHERS, /* the node has other devices than the record was made with, or more */
    GRES_FEWER,  /* the node has fewer devices than Slurm was promised */
};
enum wanted_gres_match wanted_gres_match(const struct wanted_gres *wanted,
                                         const struct slurm_node *record);
/* Whether the record has each name and type: then its devices are the wanted ones, though its mark
 * does not say so yet. */
bool wanted_gres_are_of(const struct wanted_gres *wanted, const struct slurm_node *record);
/* Gres that we did not write: the mark does not list them, and the table does not have their name
 * and type. With the record they would be lost. */
bool wanted_gres_are_foreign(const struct device_table *table, const struct slurm_node *record);

#endif
