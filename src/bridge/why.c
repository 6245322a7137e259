/* why.c - what the bridge thinks of one pod, as JSON. */
#include "bridge/why.h"

#include "bridge/bridge_private.h"
#include "bridge/submit.h"

#include <inttypes.h>

enum { MAX_ANSWER = 4 << 20, MAX_MEMORY = 64 << 20, MAX_NAME = 1024 };

static void put_text(struct buf *out, const char *key, const char *text)
{
    buf_printf(out, ",\"%s\":", key);
    json_escape(out, str_of(text));
}

/* How Slurm is asked for the unit, or why it cannot be, and the nodes that its pods may use. */
static void write_translation(const struct bridge_world *world, const struct unit *unit,
                              struct arena *arena, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct err err = { .class = 0 };
    struct exclusion exclusion;
    struct job_desc desc;

    if (unit_describe(world, unit, arena, &desc, &err) < 0) {
        put_text(out, "invalid", err.text);
        return;
    }
    buf_add_text(out, ",\"job\":");
    json_mut_write(job_desc_json(build, &desc), out);
    if (unit->stage != POD_WAITS)
        return;
    exclusion = exclusion_of(world, unit, desc.partition, arena);
    buf_printf(out, ",\"nodes\":{\"fit\":%u,\"total\":%u,\"needed\":%" PRId64, exclusion.fit,
               exclusion.total, job_desc_least_nodes(&desc));
    put_text(out, "why", exclusion.why);
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
    phase = unit_phase(world, &unit);
    buf_add_text(out, "{\"unit\":");
    json_escape(out, unit.key);
    buf_printf(out, ",\"phase\":\"%s\",\"pods\":%u,\"needed\":%" PRId64 ",\"bound\":%u",
               unit_phase_name(phase), unit.member_count, unit.needed, unit.in[POD_BOUND]);
    if (unit.job)
        buf_printf(out, ",\"jobId\":%" PRId64, unit.job->id);
    if (unit.pod && !unit.owner)
        put_text(out, "invalid", unit.wanting ? unit.wanting : "its owner is not known yet");
    else if (unit.pod && phase != UNIT_OVER && phase != UNIT_FOREIGN)
        write_translation(world, &unit, arena, out);
    buf_add_char(out, '}');
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
    if (!bridge->poller) {
        http_respond_text(responder, 503, "Kubernetes has not been read yet\n");
        return;
    }
    if (http_view_query(view, "pod", &wanted, NULL) < 0 ||
        !str_cut(buf_str(&wanted), '/', &ns, &name)) {
        http_respond_text(responder, 400, "wants ?pod=NAMESPACE/NAME\n");
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
