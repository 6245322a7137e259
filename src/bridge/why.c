/* why.c - what the bridge thinks of one pod, as JSON. */
#include "bridge/why.h"

#include "bridge/bridge_private.h"
#include "bridge/place.h"
#include "bridge/submit/submit.h"
#include "bridge/world/names.h"

#include <inttypes.h>

enum { MAX_ANSWER = 4 << 20, MAX_MEMORY = 64 << 20, MAX_NAME = 1024 };

/* The job as Slurm showed it last, with the keys of a job in the exporter's view API. A unit's own
 * job may be shown to whoever may read its pods. */
static void write_job(const struct slurm_job *job, struct buf *out)
{
    bool waits = slurm_words_has(&job->state, SLURM_JOB_PENDING);

    buf_printf(out, ",\"slurm\":{\"id\":%" PRId64 ",\"state\":\"%s\",\"holder\":\"pod\"", job->id,
               waits                              ? "pending"
               : slurm_job_has_ended(&job->state) ? "ended"
                                                  : "running");
    json_add_text(out, "partition", job->partition);
    json_add_text(out, "user", job->user);
    json_add_text(out, "account", job->account);
    json_add_text(out, "qos", job->qos);
    json_add_time(out, "submitted", job->submit_time);
    if (job->node_count > 0)
        buf_printf(out, ",\"nodes\":%" PRId64 ",\"cpus\":%" PRId64, job->node_count, job->cpus);
    if (job->priority.set)
        buf_printf(out, ",\"priority\":%" PRId64, (int64_t)job->priority.number);
    if (job->time_limit.set)
        buf_printf(out, ",\"timeLimitSeconds\":%" PRId64, 60 * (int64_t)job->time_limit.number);
    if (waits) {
        json_add_text(out, "reason", job->reason[0] ? job->reason : "None");
        json_add_time(out, "expectedStart", slurm_job_expected_start(job));
        json_add_text(out, "expectedNodes", job->scheduled_nodes);
    } else {
        json_add_time(out, "started", job->start_time);
        json_add_text(out, "nodeList", job->nodes);
    }
    buf_add_char(out, '}');
}

/* The objects whose annotations make the job, and what each says; the last one wins. */
static void write_annotations(const struct unit *unit, struct buf *out)
{
    buf_add_text(out, ",\"annotations\":[");
    for (unsigned i = 0; i <= unit->owner.more_count; i++) {
        const struct kube_object *object = i == 0 ? unit->owner.object : unit->owner.more[i - 1];
        const char *between = "";

        buf_printf(out, "%s{\"kind\":\"%s\",\"name\":\"%s\",\"values\":{", i > 0 ? "," : "",
                   object->kind->resource->kind, object->name);
        for (unsigned k = 0; k < object->annotations.count; k++) {
            const struct kube_pair *pair = &object->annotations.at[k];

            if (!str_starts(pair->key, STR(BRIDGE_ANNOTATION_PREFIX)))
                continue;
            buf_add_text(out, between);
            json_escape(out, pair->key);
            buf_add_char(out, ':');
            json_escape(out, pair->value);
            between = ",";
        }
        buf_add_text(out, "}}");
    }
    buf_add_char(out, ']');
}

/* How Slurm is asked for the unit, or why it cannot be, and the nodes that its pods may use. */
static void write_translation(const struct bridge_world *world, const struct unit *unit,
                              struct arena *arena, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct err err = { .class = 0 };
    struct exclusion exclusion;
    struct job_desc desc;

    if (unit_describe(world, unit, DESCRIBE_BOTH, arena, &desc, &err) < 0) {
        json_add_text(out, "invalid", err.text);
        return;
    }
    buf_add_text(out, ",\"job\":");
    json_mut_write(job_desc_json(build, &desc), out);
    if (unit->stage != POD_WAITS)
        return;
    exclusion = exclusion_of(world, unit, desc.partition, arena);
    buf_printf(out, ",\"nodes\":{\"fit\":%u,\"total\":%u,\"needed\":%" PRId64, exclusion.fit,
               exclusion.total, job_desc_least_nodes(&desc));
    json_add_text(out, "why", exclusion.why);
    buf_add_char(out, '}');
}

void why_write(const struct bridge_world *world, const struct kube_pod *pod, struct arena *arena,
               struct buf *out)
{
    auto_buf struct buf key;
    enum unit_phase phase;
    struct unit unit;

    buf_init(&key, MAX_NAME);
    world_unit_key(world, pod, &key);
    unit_gather(world, buf_str(&key), arena, &unit);
    phase = unit_phase(world, &unit, arena);
    buf_add_text(out, "{\"unit\":");
    json_escape(out, unit.key);
    buf_printf(out, ",\"phase\":\"%s\",\"pods\":%u,\"needed\":%" PRId64 ",\"bound\":%u",
               unit_phase_name(phase), unit.member_count, unit.owner.needed, unit.in[POD_BOUND]);
    if (unit.job)
        write_job(unit.job, out);
    if (unit.owner.object)
        write_annotations(&unit, out);
    if (unit.pod && !unit.owner.object)
        json_add_text(out, "invalid",
                      unit.owner.wanting ? unit.owner.wanting : "its owner is not known yet");
    else if (unit.pod && phase != UNIT_OVER && phase != UNIT_FOREIGN)
        write_translation(world, &unit, arena, out);
    buf_add_char(out, '}');
}

/* The table that decides, for people. */
static void serve_rules(struct http_responder *responder)
{
    auto_buf struct buf out;

    buf_init(&out, MAX_ANSWER);
    place_reference(&out);
    http_respond_text(responder, 200, buf_text(&out));
}

void why_serve(void *context, const struct http_view *view, struct http_responder *responder)
{
    const struct bridge *bridge = context;
    const struct kube_object *pod;
    struct str ns, name;
    auto_arena struct arena arena;
    auto_buf struct buf wanted, out;

    arena_init(&arena, MAX_MEMORY);
    buf_init(&wanted, MAX_NAME);
    buf_init(&out, MAX_ANSWER);
    if (http_view_query(view, "rules", &wanted, NULL) == 0) {
        serve_rules(responder);
        return;
    }
    buf_clear(&wanted);
    if (!bridge->poller) {
        http_respond_text(responder, 503, "Kubernetes has not been read yet\n");
        return;
    }
    if (http_view_query(view, "pod", &wanted, NULL) < 0 ||
        !str_cut(buf_str(&wanted), '/', &ns, &name)) {
        http_respond_text(responder, 400, "wants ?pod=NAMESPACE/NAME, or ?rules\n");
        return;
    }
    pod = kube_cache_get(bridge->world.pods, arena_strndup(&arena, ns.at, ns.len),
                         arena_strndup(&arena, name.at, name.len));
    if (!pod) {
        http_respond_text(responder, 404, "the bridge has no such pod\n");
        return;
    }
    why_write(&bridge->world, kube_pod_of(pod), &arena, &out);
    if (out.overflowed)
        http_respond_text(responder, 500, "the answer is too big\n");
    else
        http_respond_json(responder, 200, buf_str(&out));
}
