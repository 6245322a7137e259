/* show.c - tells a group's own object what became of it. */
#include "bridge/show.h"

#include "codec/timestamp.h"

enum { TIME_TEXT = 64 };

static struct json_mut *put_condition(struct json_build *build, struct json_mut *status)
{
    struct json_mut *condition = json_new_object(build);

    json_push(json_put_array(build, status, "conditions"), condition);
    json_put_text(build, condition, "type", "PodGroupScheduled");
    json_put_text(build, condition, "status", "True");
    return condition;
}

void plan_show_group(const struct bridge_world *world, const struct unit *unit, struct plan *plan)
{
    const struct kube_group *group = unit->group;
    struct kube_cache *cache = world->optional[OPTIONAL_PODGROUPS].cache;
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build), *predicted = json_new_object(build), *said;
    auto_buf struct buf now = { .max = TIME_TEXT };

    if (unit->kind != GROUP_PODGROUP || !group || group->is_scheduled ||
        unit->in[POD_BOUND] < (uint64_t)unit->needed || unit->in[POD_WAITS] > 0)
        return;
    (void)timestamp_print(world->facts.wall_us, &now, NULL);
    json_put_text(build, json_put_object(build, patch, "metadata"), "uid", group->object.uid);
    said = put_condition(build, json_put_object(build, patch, "status"));
    json_put_text(build, said, "reason", "Scheduled");
    json_put_text(
        build, said, "message",
        arena_printf(plan->arena, "Pod group admitted by %s", world->config->scheduler_name));
    json_put_i64(build, said, "observedGeneration", group->object.generation);
    json_put_str(build, said, "lastTransitionTime", buf_str(&now));
    (void)put_condition(build, json_put_object(build, predicted, "status"));
    plan_strategic_patch(plan, cache, group->object.kind->resource, group->object.ns,
                         group->object.name, "status", NULL, patch, predicted);
}
