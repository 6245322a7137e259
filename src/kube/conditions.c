/* conditions.c - conditions that others than Kubernetes write, told apart by their type.
 *
 * Holds   an object without such conditions needs no memory for them; a patch changes those that it
 *         names and leaves the rest; every text is asked for in both passes alike, whatever was
 *         found: while memory is counted, types cannot be compared. */
#include "kube/conditions.h"

static bool is_in(const char *const *types, struct str type)
{
    for (; types && *types; types++)
        if (str_is(type, *types))
            return true;
    return false;
}

static bool is_kept(const struct kube_conditions *conditions, const struct json *item)
{
    struct str type = json_str(json_get(item, "type"));

    return type.len > 0 && !is_in(conditions->known, type) &&
           (!is_in(conditions->quiet, type) || str_is(json_str(json_get(item, "status")), "True"));
}

/* How many are kept; finds Ready on the way. Most objects need no more than this. */
static unsigned scan(struct kube_decoder *decoder, const struct json *list,
                     struct kube_conditions *conditions)
{
    struct json_iter iter = json_iter(list);
    const struct json *item;
    unsigned kept = 0;

    while (json_next_item(&iter, &item)) {
        struct str type = json_str(kube_decoder_get(decoder, item, "type"));

        if (str_is(type, "Ready"))
            conditions->ready = item;
        kept += is_kept(conditions, item);
    }
    return kept;
}

static void take_text(struct kube_decoder *decoder, const struct json *item, const char *key,
                      const char **text)
{
    const struct json *value = json_get(item, key);

    if (value)
        *text = kube_decoder_str(decoder, json_str(value));
}

/* Over the one of its type, or behind the others. Returns the new count. */
static unsigned take_condition(struct kube_decoder *decoder, const struct json *item,
                               struct kube_condition *at, unsigned count)
{
    struct kube_condition next = { "", "", "", "" };
    unsigned place = 0;

    take_text(decoder, item, "type", &next.type);
    while (place < count && strcmp(at[place].type, next.type) != 0)
        place++;
    if (place < count)
        next = at[place];
    take_text(decoder, item, "status", &next.status);
    take_text(decoder, item, "reason", &next.reason);
    take_text(decoder, item, "message", &next.message);
    if (!str_is(json_str(json_get(item, "$patch")), "delete")) {
        at[place] = next;
        return place < count ? count : count + 1;
    }
    if (place == count)
        return count;
    memmove(&at[place], &at[place + 1], (count - place - 1) * sizeof(*at));
    return count - 1;
}

static void take_conditions(struct kube_decoder *decoder, const struct json *list,
                            struct kube_conditions *conditions, unsigned kept)
{
    struct json_iter iter = json_iter(list);
    struct kube_condition *at =
        kube_decoder_alloc(decoder, (*conditions->count + kept) * sizeof(*at));
    const struct json *item;

    if (*conditions->count > 0)
        memcpy(at, *conditions->at, *conditions->count * sizeof(*at));
    while (json_next_item(&iter, &item))
        if (is_kept(conditions, item))
            *conditions->count = take_condition(decoder, item, at, *conditions->count);
    *conditions->at = at;
}

int kube_conditions_decode(struct kube_decoder *decoder, const struct json *list,
                           struct kube_conditions *conditions, struct err *err)
{
    unsigned kept = scan(decoder, list, conditions);

    if (!json_is_array(list))
        *conditions->count = 0;
    if (*conditions->count + kept > KUBE_MAX_ITEMS)
        return err_set(err, ERR_TOO_BIG, "more than %d conditions", KUBE_MAX_ITEMS);
    if (kept > 0)
        take_conditions(decoder, list, conditions, kept);
    return 0;
}

const struct kube_condition *kube_condition_of(const struct kube_condition *at, unsigned count,
                                               const char *type)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(at[i].type, type) == 0)
            return &at[i];
    return NULL;
}
