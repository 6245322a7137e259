/* choose.h - which devices and cores of its node a claim gets: those that Slurm gave to the
 * job there. Pure. */
#ifndef SLINC_DEVICE_CHOOSE_H
#define SLINC_DEVICE_CHOOSE_H

#include "device/needs.h"
#include "device/nodes.h"
#include "slurm/object.h"

struct chosen_device {
    const char *request, *driver, *pool, *device;
    int64_t cores; /* that the claim has of a device for several pods; 0 of others */
};

struct choice {
    struct chosen_device *devices;
    unsigned count;
    const char *cores; /* Slurm's numbers as ranges; "" where none are pinned */
    int64_t sockets, cores_per_socket, threads;
};

/* A node, and what a job has on it. */
struct job_node {
    const struct kube_node *node;
    const struct slurm_node *record;       /* in Slurm; NULL: there is none */
    const struct slurm_layout_node *given; /* by the layout of the job; NULL: the job has nothing */
};

/* One for all pods of a plan: what it chose for one it does not choose for another. */
struct chooser {
    struct device_view view;
    const struct kube_pod *const *pods; /* of the job: they share what it has on a node */
    unsigned pod_count;
    struct arena *arena;
    struct taken_device *taken; /* private, as the next */
    struct taken_cores *taken_cores;
};

enum choose_state {
    CHOOSE_DONE,
    CHOOSE_HELD,   /* another claim still has one of them */
    CHOOSE_MISFIT, /* the node does not have what Slurm chose */
};

/* sharers: pods of the job on the node, with this one. why: in the arena, for people. */
enum choose_state choose_devices(struct chooser *chooser, const struct kube_pod *pod,
                                 const struct job_node *where, const struct pod_claim *claim,
                                 unsigned sharers, struct choice *ret_choice, const char **ret_why);

/* Whether what the claim was allocated is what the job has on the node. */
bool choose_agrees(struct chooser *chooser, const struct job_node *where,
                   const struct pod_claim *claim);

#endif
