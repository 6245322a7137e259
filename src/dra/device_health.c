/* device_health.c - the streams on which the kubelet watches devices. */
#include "dra/device_health.h"

#include "dra/claim.h"
#include "dra/kubelet_api.h"

enum {
    REPEAT_US = 10000000,
    TIMEOUT_S = 30,
    US_PER_SECOND = 1000000,
    MAX_MESSAGE = 64 * 1024,
    ARENA = 1 << 20,
};

static void send_list(struct device_health *health, struct grpc_call *call)
{
    struct topology_numa numas[TOPOLOGY_MAX_NUMA];
    unsigned count = health->topology ? topology_numas(health->topology, numas) : 0;
    auto_arena struct arena arena;
    auto_buf struct buf out;
    struct kubelet_device_health *rows;

    arena_init(&arena, ARENA);
    buf_init(&out, MAX_MESSAGE);
    rows = arena_alloc_array(&arena, count, sizeof(*rows));
    for (unsigned i = 0; i < count; i++) {
        char *name = arena_alloc(&arena, CLAIM_MAX_DEVICE);
        struct kubelet_health_device *device = arena_alloc(&arena, sizeof(*device));

        claim_device_name(&numas[i], name);
        *device = (struct kubelet_health_device){ str_of(health->node), str_of(name) };
        rows[i] = (struct kubelet_device_health){
            .device = device,
            .health = health->problem ? KUBELET_UNHEALTHY : KUBELET_HEALTHY,
            .updated_s = clock_wall_us(loop_clock(health->loop)) / US_PER_SECOND,
            .timeout_s = TIMEOUT_S,
            .message = str_of(health->problem),
        };
    }
    protobuf_encode(&kubelet_healths_message, &(struct kubelet_healths){ { rows, count } }, &out);
    grpc_send(call, buf_str(&out));
}

/* Ends streams that the kubelet left, and repeats the list on the others. */
static void repeat(void *context)
{
    struct device_health *health = context;

    for (unsigned i = 0; i < DEVICE_HEALTH_STREAMS; i++) {
        struct grpc_call *call = health->streams[i];

        if (call && grpc_call_is_gone(call)) {
            grpc_fail(call, GRPC_UNAVAILABLE, "the kubelet left");
            health->streams[i] = NULL;
        } else if (call) {
            send_list(health, call);
        }
    }
    loop_timer_start(health->loop, &health->timer, REPEAT_US, repeat, health);
}

void device_health_start(struct device_health *health, struct loop *loop, const char *node)
{
    health->loop = loop;
    health->node = node;
    loop_timer_start(loop, &health->timer, REPEAT_US, repeat, health);
}

void device_health_set(struct device_health *health, const struct topology *topology,
                       const char *problem)
{
    health->topology = topology;
    health->problem = problem;
}

void device_health_watch(struct device_health *health, struct grpc_call *call)
{
    for (unsigned i = 0; i < DEVICE_HEALTH_STREAMS; i++) {
        if (health->streams[i])
            continue;
        health->streams[i] = call;
        send_list(health, call);
        return;
    }
    grpc_fail(call, GRPC_RESOURCE_EXHAUSTED, "too many streams");
}

void device_health_end(struct device_health *health)
{
    loop_timer_stop(&health->timer);
    for (unsigned i = 0; i < DEVICE_HEALTH_STREAMS; i++) {
        if (health->streams[i])
            grpc_fail(health->streams[i], GRPC_UNAVAILABLE, "the plugin stops");
        health->streams[i] = NULL;
    }
}
