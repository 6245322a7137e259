/* device_choose.h - which devices and cores of its node a claim gets: those that Slurm gave to the
 * job there. Pure. */
#ifndef SLINC_BRIDGE_DEVICE_CHOOSE_H
#define SLINC_BRIDGE_DEVICE_CHOOSE_H

#include "bridge/device_needs.h"
#include "bridge/device_nodes.h"
#include "bridge/unit.h"

enum { CLAIM_MAX_RESULTS = 32 }; /* of an allocation, in Kubernetes */

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

/* One for all pods of a plan: what it chose for one it does not choose for another. */
struct chooser {
    const struct bridge_world *world;
    const struct unit *unit;
    const struct slurm_layout *layout;
    struct arena *arena;
    struct taken_device *taken; /* private, as the next */
    struct taken_cores *taken_cores;
};

enum choose_state {
    CHOOSE_DONE,
    CHOOSE_HELD,   /* another claim still has one of them */
    CHOOSE_MISFIT, /* the node does not have what Slurm chose */
};

/* sharers: pods of the unit on the node, with this one. why: in the arena, for people. */
enum choose_state choose_devices(struct chooser *chooser, const struct kube_pod *pod,
                                 const struct kube_node *node, const struct pod_claim *claim,
                                 unsigned sharers, struct choice *ret_choice, const char **ret_why);

/* Whether what the claim was allocated is what the job has on the node. */
bool choose_agrees(struct chooser *chooser, const struct kube_node *node,
                   const struct pod_claim *claim);

/* The key of a device in world.claims_by_device. */
void device_key(struct buf *out, const char *driver, const char *pool, const char *device);

#endif
