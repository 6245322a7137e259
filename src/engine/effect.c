/* effect.c - predictions: laid when planned, replaced by the server's words, or taken away.
 *
 * Holds: a deletion is foretold as "being deleted", never as gone. Gone is a fact that others act
 * on, so only the server's answer or the watch may state it. */
#include "engine/effect.h"

#include "codec/timestamp.h"

enum { MAX_JSON = 8 << 20 };

static bool creates(const struct action *action)
{
    return action->request.verb == KUBE_CREATE && !action->request.subresource;
}

static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

/* The object that a create makes; its name may come from the object alone. */
static void lay_create(struct effect *effect, const struct action *action, struct arena *arena)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *next = NULL;

    if (json_parse(action->predicted, MAX_JSON, &doc, NULL) < 0 ||
        kube_object_predicted(kube_cache_kind(effect->cache), json_root(doc), &next, NULL) < 0)
        return;
    effect->name = arena_strdup(arena, next->name);
    effect->overlay = kube_overlay_lay(effect->cache, effect->ns, effect->name, next);
    kube_object_unref(next);
}

static void lay_patch(struct effect *effect, struct str patch)
{
    struct json_doc *doc = NULL;

    if (effect->name && json_parse(patch, MAX_JSON, &doc, NULL) == 0)
        effect->overlay = kube_overlay_patch(effect->cache, effect->ns, effect->name, doc);
}

static void lay_delete(struct effect *effect, const struct clock *clock)
{
    const struct kube_object *now = kube_cache_get(effect->cache, effect->ns, effect->name);
    auto_buf struct buf patch;

    buf_init(&patch, 100);
    if (!now || now->deleted_us)
        return;
    buf_add_text(&patch, "{\"metadata\":{\"deletionTimestamp\":\"");
    (void)timestamp_print(clock_wall_us(clock), &patch, NULL);
    buf_add_text(&patch, "\"}}");
    lay_patch(effect, buf_str(&patch));
}

void effect_lay(struct effect *effect, const struct action *action, struct arena *arena,
                const struct clock *clock)
{
    *effect = (struct effect){ .cache = action->cache };
    if (!action->cache)
        return;
    effect->ns = text_or_empty(action->request.ns);
    effect->name = action->request.name;
    if (creates(action))
        lay_create(effect, action, arena);
    else if (action->request.verb == KUBE_DELETE)
        lay_delete(effect, clock);
    else
        lay_patch(effect, action->predicted);
}

static bool is_kind(const struct kube_answer *answer, const char *kind)
{
    return str_is(json_str(json_get(answer->object, "kind")), kind);
}

/* The object in an answer, if it is one of the cache's kind: a bind or an eviction is answered by a
 * Status, a scale by a Scale. */
static const struct kube_object *object_of(const struct effect *effect,
                                           const struct kube_answer *answer)
{
    const struct kube_kind *kind = kube_cache_kind(effect->cache);
    const struct kube_object *object = NULL;

    if (is_kind(answer, kind->resource->kind))
        (void)kube_object_decode(kind, answer->object, &object, NULL);
    return object;
}

/* A write that takes the last finalizer of an object whose grace is over removes it. The answer
 * still shows it, in the version before. */
static bool was_the_last_finalizer(const struct kube_answer *answer,
                                   const struct kube_object *object)
{
    const struct json *grace = json_at(answer->object, "metadata", "deletionGracePeriodSeconds");

    return object && object->deleted_us && object->finalizer_count == 0 &&
           json_i64_or(grace, -1) == 0;
}

/* The object, when the server removed it at once; a Status, when it did and shows nothing. An
 * object that cannot be read may be one that waits for its finalizers. */
static bool says_gone(const struct action *action, const struct kube_answer *answer,
                      const struct kube_object *object)
{
    if (answer->outcome == KUBE_GONE)
        return true;
    if (action->request.verb != KUBE_DELETE)
        return was_the_last_finalizer(answer, object);
    return object ? !object->deleted_us : is_kind(answer, "Status");
}

void effect_done(struct effect *effect, const struct action *action,
                 const struct kube_answer *answer)
{
    const struct kube_object *object;

    if (!effect->overlay)
        return;
    if (answer->outcome == KUBE_CONFLICT) { /* it exists already, but not as we foretold it */
        effect_failed(effect);
        return;
    }
    object = object_of(effect, answer);
    if (says_gone(action, answer, object))
        kube_overlay_done(effect->overlay, NULL,
                          object && action->request.verb == KUBE_DELETE ? object->version_number
                                                                        : 0);
    else if (object)
        kube_overlay_done(effect->overlay, object, object->version_number);
    else
        kube_overlay_taken(effect->overlay);
    kube_object_unref(object);
    effect->overlay = NULL;
}

void effect_failed(struct effect *effect)
{
    if (effect->overlay)
        kube_overlay_failed(effect->overlay);
    effect->overlay = NULL;
}

void effect_read(struct effect *effect, const struct kube_object *found)
{
    if (effect->overlay)
        kube_overlay_done(effect->overlay, found, found ? found->version_number : 0);
    effect->overlay = NULL;
}

bool effect_can_be_read(const struct effect *effect)
{
    return effect->cache && effect->name;
}
