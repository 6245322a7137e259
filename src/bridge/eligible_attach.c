/* eligible_attach.c - which volumes each node has in use, and how many more it takes.
 *
 * Holds   what is attached at a place is a function of the pods on it and of the caches, worked out
 *         again when one of them changed and somebody asks. */
#include "bridge/eligible_private.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VOLUME_TEXT = 4096 };

/* ---- what a node has attached ---- */

size_t eligible_driver_length(const char *text)
{
    return strcspn(text, "\n");
}

static bool is_attached(const struct eligible_place *place, const char *text)
{
    for (unsigned i = 0; i < place->attached_count; i++)
        if (strcmp(place->attached[i], text) == 0)
            return true;
    return false;
}

static void count_use(struct eligible *eligible, const char *text, intptr_t more)
{
    struct str key = str_of(text);
    intptr_t uses = (intptr_t)map_get(&eligible->attached, key) + more;

    if (uses <= 0)
        (void)map_remove(&eligible->attached, key);
    else if (map_put(&eligible->attached, key, (void *)uses, NULL) < 0) {
        fprintf(stderr, "eligible: too many volumes in use\n");
        abort();
    }
}

void eligible_attach_forget(struct eligible *eligible, struct eligible_place *place)
{
    for (unsigned i = 0; i < place->attached_count; i++) {
        count_use(eligible, place->attached[i], -1);
        mem_free(place->attached[i]);
    }
    mem_free(place->attached);
    place->attached = NULL;
    place->attached_count = 0;
}

static void attach(struct eligible *eligible, struct eligible_place *place, const char *text)
{
    if (!text[0] || is_attached(place, text))
        return;
    place->attached =
        mem_resize_array(place->attached, place->attached_count + 1, sizeof(*place->attached));
    place->attached[place->attached_count++] = mem_strdup(text);
    count_use(eligible, text, 1);
}

static void look_at_place(struct eligible *eligible, struct eligible_place *place)
{
    struct eligible_walk walk = eligible_pods_on(eligible, place->node->object.name);
    const struct kube_pod *pod;
    auto_buf struct buf text;

    buf_init(&text, MAX_VOLUME_TEXT);
    eligible_attach_forget(eligible, place);
    place->attached_known = true;
    if (place->claiming == 0)
        return;
    while ((pod = eligible_next_pod(&walk)) != NULL)
        for (unsigned i = 0; pod->rare && i < pod->rare->volume_claim_count; i++) {
            eligible_volume_text(eligible, pod->object.ns, pod->rare->volume_claims[i], &text);
            attach(eligible, place, buf_text(&text));
        }
}

void eligible_attach_refresh(struct eligible *eligible)
{
    if (!eligible->attached_stale)
        return;
    eligible->attached_stale = false;
    for (size_t i = 0; i < eligible->place_count; i++)
        if (eligible->places[i].node && !eligible->places[i].attached_known)
            look_at_place(eligible, &eligible->places[i]);
}

/* ---- limits ---- */

static int64_t limit_of(const struct eligible *eligible, const struct eligible_place *place,
                        struct str driver)
{
    const struct kube_csi_node *node;

    if (!eligible->caches.csi_nodes)
        return -1;
    node =
        kube_csi_node_of(kube_cache_get(eligible->caches.csi_nodes, "", place->node->object.name));
    for (unsigned i = 0; node && i < node->driver_count; i++)
        if (str_is(driver, node->drivers[i].name))
            return node->drivers[i].limit;
    return -1;
}

static int64_t attached_by(const struct eligible_place *place, struct str driver)
{
    int64_t count = 0;

    for (unsigned i = 0; i < place->attached_count; i++)
        count += eligible_driver_length(place->attached[i]) == driver.len &&
                 memcmp(place->attached[i], driver.at, driver.len) == 0;
    return count;
}

bool eligible_attach_over_limit(struct eligible *eligible, const struct eligible_shape *shape,
                                size_t slot)
{
    const struct eligible_place *place = &eligible->places[slot];

    eligible_attach_refresh(eligible);
    for (unsigned i = 0; i < shape->driver_count; i++) {
        struct str driver = str_of(shape->drivers[i].name);
        int64_t limit = limit_of(eligible, place, driver);

        if (limit >= 0 && attached_by(place, driver) + shape->drivers[i].fresh > limit)
            return true;
    }
    return false;
}

/* One volume at a time: those of one driver before it count as attached. */
bool eligible_attach_over_limit_now(struct eligible *eligible, const struct kube_pod *pod,
                                    size_t slot)
{
    const struct eligible_place *place = &eligible->places[slot];
    const struct kube_rare *rare = pod->rare;
    auto_map struct map added;
    auto_buf struct buf text;

    eligible_attach_refresh(eligible);
    map_init(&added, &(struct map_options){ .max = KUBE_MAX_ITEMS });
    buf_init(&text, MAX_VOLUME_TEXT);
    for (unsigned i = 0; rare && i < rare->volume_claim_count; i++) {
        struct str driver;
        int64_t limit, fresh = 0;

        eligible_volume_text(eligible, pod->object.ns, rare->volume_claims[i], &text);
        if (text.len == 0 || is_attached(place, buf_text(&text)))
            continue;
        (void)map_put(&added, buf_str(&text), NULL, NULL);
        driver = (struct str){ text.data, eligible_driver_length(text.data) };
        map_each (item, &added)
            fresh += eligible_driver_length(item->key.at) == driver.len &&
                     memcmp(item->key.at, driver.at, driver.len) == 0;
        limit = limit_of(eligible, place, driver);
        if (limit >= 0 && attached_by(place, driver) + fresh > limit)
            return true;
    }
    return false;
}

/* ---- changes ---- */

/* Of a claim, a volume or a class. */
void eligible_attach_changed(struct eligible *eligible)
{
    for (size_t i = 0; i < eligible->place_count; i++)
        if (eligible->places[i].claiming > 0)
            eligible->places[i].attached_known = false;
    eligible->attached_stale = true;
    eligible_touch(eligible, ELIGIBLE_NO_PLACE);
    eligible->volumes_changed = eligible->sequence;
}
