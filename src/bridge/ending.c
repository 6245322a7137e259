/* ending.c - which pods still run on a node though Slurm has given their place to others.
 *
 * Holds: it reads, and writes no more than an event and a counter. Who may ask learns a number. */
#include "bridge/ending.h"

#include "bridge/bridge_private.h"
#include "bridge/unit/unit.h"
#include "codec/host_set.h"

#include <inttypes.h>

enum {
    MAX_WAITED_MS = 3600000,
    MAX_ARGUMENT = 32,
    MILLISECOND_US = 1000,
    AGAIN_US = 200000,
    MAX_READS = 64, /* in that time */
    MAX_HOSTS_MEMORY = 16 << 20
};

enum { METRIC_STARTED_BESIDE };

const struct metric_family ending_metrics[] = {
    [METRIC_STARTED_BESIDE] = { "slinc_bridge_jobs_started_beside_total",
                                "Jobs that a prolog let start though pods whose jobs Slurm had "
                                "ended still ran on their node.",
                                METRIC_COUNTER,
                                { NULL },
                                NULL,
                                0 },
};
const size_t ending_metric_count = sizeof(ending_metrics) / sizeof(ending_metrics[0]);

/* The job that holds the pod's place there; NULL: Slurm has given it away. */
static const struct slurm_job *holder_of(const struct bridge_world *world,
                                         const struct kube_pod *pod, const char *slurm_name)
{
    auto_arena struct arena arena;
    auto_buf struct buf key;
    struct slurm_index_walk walk;
    const struct slurm_object *object;

    arena_init(&arena, MAX_HOSTS_MEMORY);
    buf_init(&key, SLURM_MAX_KEY);
    world_unit_key(world, pod, &key);
    walk = slurm_cache_by(world->slurm_jobs, SLURM_JOBS_BY_KEY, buf_str(&key));
    while ((object = slurm_index_next(&walk)) != NULL) {
        const struct slurm_job *job = slurm_job_of(object);

        if (slurm_words_has(&job->state, SLURM_JOB_RUNNING) &&
            (!job->nodes[0] || hosts_have(&arena, job->nodes, slurm_name)))
            return job;
    }
    return NULL;
}

struct ending ending_look(const struct bridge_world *world, struct str slurm_name, int64_t since_us,
                          void (*unread)(void *context, const struct slurm_job *job), void *context)
{
    const struct kube_node *node = world_node_by_slurm_name(world, slurm_name);
    struct ending ending = { .first = NULL };
    const struct kube_object *object;
    struct kube_index_walk walk;

    if (!node)
        return ending;
    walk = kube_cache_by(world->pods, world->pods_by_node, str_of(node->object.name));
    while ((object = kube_index_next(&walk)) != NULL) {
        const struct kube_pod *pod = kube_pod_of(object);
        const struct slurm_job *job;

        if (!world_is_ours(world, pod) || pod_stage(world, pod) == POD_OVER)
            continue;
        job = holder_of(world, pod, world_record_name(world, node));
        if (!job) {
            ending.stay++;
            ending.first = ending.first ? ending.first : pod;
        } else if (slurm_cache_known_us(world->slurm_jobs, job->object.key) < since_us) {
            ending.unread++;
            unread(context, job);
        }
    }
    return ending;
}

/* ---- serving ---- */

bool ending_may_read(struct ending_allowance *allowance, int64_t now_us)
{
    if (now_us - allowance->from_us > AGAIN_US)
        *allowance = (struct ending_allowance){ .from_us = now_us };
    return allowance->used < MAX_READS && ++allowance->used > 0;
}

static void read_job(void *context, const struct slurm_job *job)
{
    struct bridge *bridge = context;
    int64_t now_us = loop_now_us(bridge->links.loop);
    int64_t known_us = slurm_cache_known_us(bridge->world.slurm_jobs, job->object.key);

    if (now_us - known_us > AGAIN_US && ending_may_read(&bridge->prolog_reads, now_us))
        slurm_poller_read(bridge->poller, SLURM_FEED_JOBS, job->object.key);
}

static int64_t argument(const struct http_view *view, const char *name, int64_t most)
{
    auto_buf struct buf text;
    int64_t value = 0;

    buf_init(&text, MAX_ARGUMENT);
    if (http_view_query(view, name, &text, NULL) == 0)
        (void)str_to_i64(buf_str(&text), 0, most, &value, NULL);
    return value;
}

static void tell_of_start(struct bridge *bridge, const struct http_view *view, struct str name,
                          const struct ending *ending)
{
    const struct kube_object *pod = &ending->first->object;

    metrics_add(bridge->metrics, &ending_metrics[METRIC_STARTED_BESIDE], 1, NULL);
    kube_event(bridge->recorder,
               &(struct kube_event_object){ "v1", "Pod", pod->ns, pod->name, pod->uid },
               KUBE_EVENT_WARNING, "SlurmJobStartsBeside", NULL,
               "job %" PRId64 " starts on " STR_FMT " though %u pods whose jobs Slurm ended "
               "have not stopped there, this one among them",
               argument(view, "job", UINT32_MAX), STR_ARG(name), ending->stay);
}

static bool is_known(const struct bridge *bridge)
{
    return bridge->poller && slurm_poller_is_synced(bridge->poller) &&
           !slurm_poller_is_suspicious(bridge->poller) &&
           kube_cache_is_synced(bridge->world.pods) && kube_cache_is_synced(bridge->world.nodes);
}

void ending_serve(void *context, const struct http_view *view, struct http_responder *responder)
{
    struct bridge *bridge = context;
    struct str name = str_sub(str_of(view->path), strlen(ENDING_PATH), SIZE_MAX), what = STR("");
    int64_t waited_us = argument(view, "waited", MAX_WAITED_MS) * MILLISECOND_US;
    auto_buf struct buf last, text;
    struct ending ending;

    buf_init(&last, MAX_ARGUMENT);
    buf_init(&text, MAX_ARGUMENT);
    if (!str_is(str_of(view->method), "GET") || !str_cut(name, '/', &name, &what) ||
        !str_is(what, "ending")) {
        http_respond_text(responder, 404, "GET " ENDING_PATH "NAME/ending is all there is\n");
        return;
    }
    if (!is_known(bridge)) {
        http_respond_text(responder, 503, "Kubernetes and Slurm are being read\n");
        return;
    }
    ending = ending_look(&bridge->world, name, loop_now_us(bridge->links.loop) - waited_us,
                         read_job, bridge);
    if (ending.stay > 0 && http_view_query(view, "last", &last, NULL) == 0)
        tell_of_start(bridge, view, name, &ending);
    buf_printf(&text, "%u\n", ending.stay + ending.unread);
    http_respond_text(responder, 200, buf_text(&text));
}
