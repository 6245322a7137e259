/* device_health.h - tells the kubelet how the devices are: a stream that repeats the whole list.
 *
 * The kubelet opens the stream whether it is offered or not, shows the state in the status of
 * containers, and counts a device as unknown when nothing came for 30 s. */
#ifndef SLINC_DRA_DEVICE_HEALTH_H
#define SLINC_DRA_DEVICE_HEALTH_H

#include "dra/topology.h"
#include "io/grpc_server.h"

enum { DEVICE_HEALTH_STREAMS = 8 };

struct device_health {
    struct loop *loop;
    const char *node;
    const struct topology *topology; /* NULL: there are no devices */
    const char *problem;             /* why they are not well; NULL: they are */
    struct grpc_call *streams[DEVICE_HEALTH_STREAMS];
    struct loop_timer timer;
};

/* Everything is borrowed. */
void device_health_start(struct device_health *health, struct loop *loop, const char *node);
void device_health_end(struct device_health *health);

/* What is told from now on. */
void device_health_set(struct device_health *health, const struct topology *topology,
                       const char *problem);

void device_health_watch(struct device_health *health, struct grpc_call *call);

#endif
