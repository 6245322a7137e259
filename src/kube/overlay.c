/* overlay.c - what our own writes lay over a cache, until the watch has caught up with them.
 *
 * Over the lower object of an entry there may lie, from top to bottom:
 *   predictions  one per write in flight, or done and not yet shown; a patch is applied to what
 *                lies below it, whatever that is by now
 *   answer       what the server said after a write, newer than what was seen
 *   gone         the server said that this object, by its uid, is no more
 *
 * Holds   a fact goes when the watch has passed its version, never before;
 *         a prediction hides nothing of a newer fact but what its own write changes;
 *         a uid that is gone does not come back, however late its events are;
 *         everything here is in cache->doubts until it is settled. */
#include "base/mem.h"
#include "kube/cache_private.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct kube_overlay {
    struct list link; /* in the cover */
    struct kube_cache *cache;
    struct kube_entry *entry;
    struct json_doc *patch; /* a merge patch; NULL: a create, or a deletion */
    /* When it was laid. */
    const struct kube_object *next;   /* what readers were to see; NULL: a deletion */
    const struct kube_object *before; /* what readers saw there, or NULL */
    const struct kube_object *was; /* the newest that was known to be there, gone or not; or NULL */
    /* Now: the patch over what is known. */
    const struct kube_object *below, *above; /* above is NULL when below is */
    bool covers;
    bool taken; /* done, but not shown by the answer: nobody else has it any more */
    struct kube_doubt doubt;
};

static const struct kube_object *ref_or_null(const struct kube_object *object)
{
    return object ? kube_object_ref(object) : NULL;
}

/* ---- doubts ---- */

static void doubt_begin(struct kube_cache *cache, struct kube_doubt *doubt,
                        struct kube_entry *entry)
{
    list_remove(&doubt->link);
    doubt->entry = entry;
    doubt->begun_us = doubt->since_us = clock_now_us(cache->clock);
    doubt->asked = false;
    list_push_back(&cache->doubts, &doubt->link);
}

/* Named to the owner, who has as long again. */
static void doubt_ask(struct kube_cache *cache, struct kube_doubt *doubt)
{
    list_remove(&doubt->link);
    doubt->since_us = clock_now_us(cache->clock);
    doubt->asked = true;
    list_push_back(&cache->doubts, &doubt->link);
}

static void doubt_end(struct kube_doubt *doubt)
{
    list_remove(&doubt->link);
    doubt->asked = false;
}

/* ---- facts ---- */

int kube_cover_compare(const struct heap_node *a, const struct heap_node *b)
{
    uint64_t left = heap_item(a, const struct kube_cover, node)->passed_by;
    uint64_t right = heap_item(b, const struct kube_cover, node)->passed_by;

    return (left > right) - (left < right);
}

/* Queues the cover for the first version that makes one of its facts old. */
static void queue_facts(struct kube_cache *cache, struct kube_cover *cover)
{
    uint64_t answered = cover->answer ? cover->answer->version_number : 0;
    uint64_t gone = cover->gone ? cover->gone_version : 0;

    heap_remove(&cache->facts, &cover->node);
    if (!cover->answer && !cover->gone)
        doubt_end(&cover->doubt);
    cover->passed_by = answered && gone ? (answered < gone ? answered : gone) : answered | gone;
    if (cover->passed_by == 0)
        return;
    if (heap_push(&cache->facts, &cover->node, NULL) < 0) {
        fprintf(stderr, "cache: too many answers that the watch has not shown\n");
        abort();
    }
}

static void set_answer(struct kube_cover *cover, const struct kube_object *answer)
{
    const struct kube_object *old = cover->answer;

    cover->answer = ref_or_null(answer);
    kube_object_unref(old);
}

static void set_gone(struct kube_cover *cover, const struct kube_object *gone, uint64_t version)
{
    const struct kube_object *old = cover->gone;

    cover->gone = ref_or_null(gone);
    cover->gone_version = version;
    kube_object_unref(old);
}

/* What is older than the one that is gone went before it. */
static bool is_gone(const struct kube_cover *cover, const struct kube_object *object)
{
    return cover->gone && object &&
           (kube_same_uid(cover->gone, object) || !kube_is_newer(object, cover->gone));
}

static bool is_passed(const struct kube_cache *cache, const struct kube_entry *entry,
                      uint64_t version)
{
    return version > 0 && (version <= cache->passed || version <= entry->seen_version);
}

/* The server said so. False when the watch, or another answer, has said something newer. */
static bool learn_object(struct kube_cache *cache, struct kube_entry *entry,
                         const struct kube_object *object)
{
    struct kube_cover *cover = entry->cover;

    if (is_gone(cover, object) || is_passed(cache, entry, object->version_number))
        return false;
    if ((entry->lower && !kube_is_newer(object, entry->lower)) ||
        (cover->answer && !kube_is_newer(object, cover->answer)))
        return false;
    set_answer(cover, object);
    return true;
}

/* `object` is no more. Nothing to learn when the watch is past it already. */
static bool learn_gone(struct kube_cache *cache, struct kube_entry *entry,
                       const struct kube_object *object, uint64_t version)
{
    struct kube_cover *cover = entry->cover;
    bool seen_now = entry->lower && object && kube_same_uid(entry->lower, object);

    if (!object || !object->uid[0] || is_passed(cache, entry, version))
        return false;
    if (!seen_now && is_passed(cache, entry, object->version_number))
        return false;
    if (is_gone(cover, object) && !kube_same_uid(cover->gone, object))
        return false;                 /* long ago */
    set_gone(cover, object, version); /* first: it may be the answer, which goes now */
    if (cover->answer && kube_same_uid(cover->answer, object))
        set_answer(cover, NULL);
    return true;
}

void kube_cover_pass(struct kube_cache *cache, uint64_t version_number)
{
    struct heap_node *node;

    while ((node = heap_first(&cache->facts))) {
        struct kube_cover *cover = heap_item(node, struct kube_cover, node);

        if (cover->passed_by > version_number)
            break;
        if (cover->answer && cover->answer->version_number == cover->passed_by)
            set_answer(cover, NULL);
        if (cover->gone && cover->gone_version == cover->passed_by)
            set_gone(cover, NULL, 0);
        queue_facts(cache, cover);
        kube_entry_refresh(cache, cover->doubt.entry);
    }
}

/* ---- covers ---- */

static struct kube_cover *need_cover(struct kube_entry *entry)
{
    if (!entry->cover) {
        entry->cover = mem_alloc(sizeof(*entry->cover));
        list_init(&entry->cover->overlays);
        entry->cover->doubt.entry = entry;
    }
    return entry->cover;
}

static const struct kube_object *newest_fact(const struct kube_entry *entry, bool gone_too)
{
    const struct kube_cover *cover = entry->cover;
    const struct kube_object *lower = entry->lower;

    if (!cover)
        return lower;
    if (!gone_too && is_gone(cover, lower))
        lower = NULL;
    if (cover->answer && (!lower || kube_is_newer(cover->answer, lower)))
        return cover->answer;
    return lower || !gone_too ? lower : cover->gone;
}

static void uncover(struct kube_overlay *overlay)
{
    overlay->covers = false;
    doubt_end(&overlay->doubt);
}

/* Another object than the one that the prediction is about: it says nothing of this one. */
static bool is_about_another(const struct kube_overlay *overlay, const struct kube_object *object)
{
    if (!overlay->was)
        return true; /* for a create: the object itself, or the one that was faster */
    return !kube_same_uid(overlay->was, object) && kube_is_newer(object, overlay->was);
}

/* Applied anew only when something else lies below. */
static const struct kube_object *apply_patch(struct kube_overlay *overlay,
                                             const struct kube_object *below)
{
    const struct kube_object *above = NULL;

    if (overlay->below == below)
        return overlay->above;
    if (kube_object_patched(below, json_root(overlay->patch), &above, NULL) < 0)
        above = kube_object_ref(below); /* it cannot be foretold what becomes of this one */
    kube_object_unref(overlay->below);
    kube_object_unref(overlay->above);
    overlay->below = kube_object_ref(below);
    overlay->above = above;
    return above;
}

/* A patch changes the object that it is about, and nothing when that is gone. A create changes
 * nothing when there is something already. */
static const struct kube_object *look_through(struct kube_overlay *overlay,
                                              const struct kube_object *below)
{
    if (!overlay->patch)
        return overlay->next && below ? below : overlay->next;
    if (!below || (overlay->was && is_about_another(overlay, below)))
        return below;
    return apply_patch(overlay, below);
}

const struct kube_object *kube_cover_view(const struct kube_entry *entry, bool *ret_predicted)
{
    const struct kube_object *fact = newest_fact(entry, false), *view = fact;

    if (entry->cover)
        list_each (struct kube_overlay, overlay, &entry->cover->overlays, link)
            if (overlay->covers)
                view = look_through(overlay, view);
    *ret_predicted = view != fact;
    return view;
}

void kube_cover_seen(struct kube_cache *cache, struct kube_entry *entry,
                     const struct kube_object *object)
{
    struct kube_cover *cover = entry->cover;

    if (cover->gone && !is_gone(cover, object))
        set_gone(cover, NULL, 0);
    if (cover->answer && !kube_is_newer(cover->answer, object))
        set_answer(cover, NULL);
    queue_facts(cache, cover);
    if (is_gone(cover, object))
        return;
    list_each (struct kube_overlay, overlay, &cover->overlays, link) {
        if (overlay->covers && is_about_another(overlay, object))
            uncover(overlay);
    }
}

/* Whether something that ended at `version` can be, or come after, this object. */
static bool ended_by(const struct kube_object *object, uint64_t version)
{
    return version == 0 || object->version_number == 0 || version >= object->version_number;
}

void kube_cover_gone(struct kube_cache *cache, struct kube_entry *entry, uint64_t version_number)
{
    struct kube_cover *cover = entry->cover;

    if (cover->answer && ended_by(cover->answer, version_number))
        set_answer(cover, NULL);
    if (cover->gone && ended_by(cover->gone, version_number))
        set_gone(cover, NULL, 0);
    queue_facts(cache, cover);
    list_each (struct kube_overlay, overlay, &cover->overlays, link) {
        if (overlay->covers && overlay->before && overlay->was &&
            ended_by(overlay->was, version_number))
            uncover(overlay);
    }
}

static void free_overlay(struct kube_overlay *overlay)
{
    list_remove(&overlay->link);
    doubt_end(&overlay->doubt);
    kube_object_unref(overlay->next);
    kube_object_unref(overlay->before);
    kube_object_unref(overlay->was);
    kube_object_unref(overlay->below);
    kube_object_unref(overlay->above);
    json_doc_free(overlay->patch);
    mem_free(overlay);
}

/* What readers saw may itself have been a prediction; then the last fact is not news either. */
static bool is_shown(const struct kube_overlay *overlay, const struct kube_object *fact)
{
    if (!overlay->next || !overlay->before || !kube_is_shown(overlay->before, overlay->next, fact))
        return false;
    return !overlay->was || overlay->was == overlay->before ||
           kube_is_shown(overlay->was, overlay->next, fact);
}

/* A write that was taken is over when something is known that is newer than it. */
static bool is_over(const struct kube_entry *entry, const struct kube_overlay *overlay)
{
    const struct kube_object *fact = newest_fact(entry, false);

    if (!overlay->taken || !overlay->covers)
        return overlay->taken;
    if (!fact)
        return overlay->before != NULL;
    return is_about_another(overlay, fact) || is_shown(overlay, fact);
}

void kube_cover_tidy(struct kube_cache *cache, struct kube_entry *entry)
{
    struct kube_cover *cover = entry->cover;

    if (!cover)
        return;
    list_each (struct kube_overlay, overlay, &cover->overlays, link)
        if (is_over(entry, overlay))
            free_overlay(overlay);
    if (!cover->answer && !cover->gone && list_is_empty(&cover->overlays))
        kube_cover_free(cache, entry);
}

void kube_cover_free(struct kube_cache *cache, struct kube_entry *entry)
{
    struct kube_cover *cover = entry->cover;
    struct list *node;

    if (!cover)
        return;
    while ((node = list_first(&cover->overlays)))
        free_overlay(list_item(node, struct kube_overlay, link));
    set_answer(cover, NULL);
    set_gone(cover, NULL, 0);
    heap_remove(&cache->facts, &cover->node);
    doubt_end(&cover->doubt);
    mem_free(cover);
    entry->cover = NULL;
}

bool kube_cover_is_settled(const struct kube_entry *entry)
{
    const struct kube_cover *cover = entry->cover;

    return !cover || (list_is_empty(&cover->overlays) && !list_is_linked(&cover->doubt.link));
}

/* ---- writes ---- */

/* Takes the patch. */
static struct kube_overlay *lay(struct kube_cache *cache, struct kube_entry *entry,
                                const struct kube_object *next, struct json_doc *patch)
{
    struct kube_cover *cover = need_cover(entry);
    struct kube_overlay *overlay = mem_alloc(sizeof(*overlay));

    assert(!cache->telling);
    overlay->cache = cache;
    overlay->entry = entry;
    overlay->patch = patch;
    overlay->next = ref_or_null(next);
    overlay->was = ref_or_null(newest_fact(entry, true));
    overlay->before = ref_or_null(entry->upper);
    overlay->below = patch ? ref_or_null(entry->upper) : NULL;
    overlay->above = patch ? ref_or_null(next) : NULL;
    overlay->covers = true;
    list_push_back(&cover->overlays, &overlay->link);
    doubt_begin(cache, &overlay->doubt, entry);
    kube_entry_refresh(cache, entry);
    return overlay;
}

struct kube_overlay *kube_overlay_lay(struct kube_cache *cache, const char *ns, const char *name,
                                      const struct kube_object *next)
{
    return lay(cache, kube_entry_need(cache, ns, name), next, NULL);
}

struct kube_overlay *kube_overlay_patch(struct kube_cache *cache, const char *ns, const char *name,
                                        struct json_doc *patch)
{
    struct kube_entry *entry = kube_entry_find(cache, ns, name);
    const struct kube_object *next = NULL;
    struct kube_overlay *overlay = NULL;

    if (entry && entry->upper &&
        kube_object_patched(entry->upper, json_root(patch), &next, NULL) == 0)
        overlay = lay(cache, entry, next, patch);
    else
        json_doc_free(patch);
    kube_object_unref(next);
    return overlay;
}

void kube_overlay_done(struct kube_overlay *overlay, const struct kube_object *object,
                       uint64_t version_number)
{
    struct kube_cache *cache = overlay->cache;
    struct kube_entry *entry = overlay->entry;
    bool learned;

    assert(!cache->telling);
    if (!object && overlay->was && version_number <= overlay->was->version_number)
        version_number = 0; /* the last version that it had, not that of its end */
    learned = object ? learn_object(cache, entry, object)
                     : learn_gone(cache, entry, overlay->was, version_number);
    if (learned)
        doubt_begin(cache, &entry->cover->doubt, entry);
    queue_facts(cache, entry->cover);
    free_overlay(overlay);
    kube_entry_refresh(cache, entry);
}

void kube_overlay_taken(struct kube_overlay *overlay)
{
    struct kube_cache *cache = overlay->cache;
    struct kube_entry *entry = overlay->entry;

    assert(!cache->telling);
    overlay->taken = true;
    if (overlay->covers)
        doubt_begin(cache, &overlay->doubt, entry);
    kube_entry_refresh(cache, entry);
}

void kube_overlay_failed(struct kube_overlay *overlay)
{
    struct kube_cache *cache = overlay->cache;
    struct kube_entry *entry = overlay->entry;

    assert(!cache->telling);
    free_overlay(overlay);
    kube_entry_refresh(cache, entry);
}

/* One read settles everything about a place, so all of it is named at once. */
static void ask_all(struct kube_cache *cache, struct kube_entry *entry)
{
    struct kube_cover *cover = entry->cover;

    if (list_is_linked(&cover->doubt.link))
        doubt_ask(cache, &cover->doubt);
    list_each (struct kube_overlay, overlay, &cover->overlays, link)
        if (list_is_linked(&overlay->doubt.link))
            doubt_ask(cache, &overlay->doubt);
}

bool kube_cache_doubt(struct kube_cache *cache, const char **ret_ns, const char **ret_name)
{
    struct list *first = list_first(&cache->doubts);
    struct kube_doubt *oldest = first ? list_item(first, struct kube_doubt, link) : NULL;

    if (!oldest || clock_now_us(cache->clock) - oldest->since_us < KUBE_OVERLAY_DOUBT_US)
        return false;
    *ret_ns = oldest->entry->key.at;
    *ret_name = *ret_ns + strlen(*ret_ns) + 1;
    ask_all(cache, oldest->entry);
    return true;
}

static void settle_facts(struct kube_cache *cache, struct kube_entry *entry,
                         const struct kube_object *found)
{
    struct kube_cover *cover = entry->cover;

    if (!found) {
        learn_gone(cache, entry, cover->answer, 0);
    } else {
        set_answer(cover, NULL);
        if (is_gone(cover, found))
            set_gone(cover, NULL, 0);
    }
    doubt_end(&cover->doubt);
}

static bool is_answered(const struct kube_doubt *doubt, int64_t read_us)
{
    return doubt->asked && doubt->begun_us < read_us;
}

/* A read that finds things as they were before a write in flight says nothing of the write: it may
 * come yet, and its place must not be given to another meanwhile. It has a deadline of its own. */
static bool may_come_yet(const struct kube_overlay *overlay, const struct kube_object *found)
{
    if (overlay->taken)
        return false;
    if (!found)
        return !overlay->before;
    return !is_about_another(overlay, found) && !is_shown(overlay, found);
}

/* What the owner was asked about is no more in doubt: a uid known before the read, and not found by
 * it, is gone; answers and predictions are overtaken by what was found. */
static void settle_asked(struct kube_cache *cache, struct kube_entry *entry,
                         const struct kube_object *found, int64_t read_us)
{
    struct kube_cover *cover = entry->cover;

    if (is_answered(&cover->doubt, read_us))
        settle_facts(cache, entry, found);
    list_each (struct kube_overlay, overlay, &cover->overlays, link) {
        if (!is_answered(&overlay->doubt, read_us))
            continue;
        if (!found)
            learn_gone(cache, entry, overlay->was, 0);
        if (may_come_yet(overlay, found))
            doubt_begin(cache, &overlay->doubt, entry);
        else
            uncover(overlay);
    }
}

void kube_cache_settle_read(struct kube_cache *cache, const char *ns, const char *name,
                            const struct kube_object *found, int64_t read_us)
{
    struct kube_entry *entry = kube_entry_find(cache, ns, name);

    assert(!cache->telling);
    if (!entry || !entry->cover)
        return; /* the watch was faster */
    settle_asked(cache, entry, found, read_us);
    if (found)
        learn_object(cache, entry, found);
    queue_facts(cache, entry->cover);
    kube_entry_refresh(cache, entry);
}
