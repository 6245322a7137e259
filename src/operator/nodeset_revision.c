/* nodeset_revision.c - the choice among stored revisions, their numbers and their end. */
#include "operator/nodeset_revision.h"

#include "kube/owners.h"
#include "operator/build.h"
#include "operator/names.h"
#include "operator/nodeset_data.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_DATA = 2 << 20, MAX_COLLISIONS = 100 };

/* FNV-1 with 32 bits, its decimal digits written in letters that spell no words. */
void nodeset_revision_hash(struct str data, int64_t collision_count,
                           char ret_hash[REVISION_HASH_MAX])
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    uint32_t hash = 2166136261U;
    char count[32];

    (void)snprintf(count, sizeof(count), "%lld", (long long)collision_count);
    for (size_t i = 0; i < data.len; i++)
        hash = (uint32_t)((uint64_t)hash * 16777619U) ^ (uint8_t)data.at[i];
    for (size_t i = 0; count[i]; i++)
        hash = (uint32_t)((uint64_t)hash * 16777619U) ^ (uint8_t)count[i];
    (void)snprintf(ret_hash, REVISION_HASH_MAX, "%u", hash);
    for (size_t i = 0; ret_hash[i]; i++)
        ret_hash[i] = letters[(uint8_t)ret_hash[i] % (sizeof(letters) - 1)];
}

/* ---- stored revisions ---- */

static int64_t number_of(const struct kube_object *revision)
{
    return json_i64_or(json_get(operator_tree(revision), "revision"), 0);
}

static struct str hash_of(const struct kube_object *revision, const struct kube_object *nodeset)
{
    struct str name = str_of(revision->name);
    bool found = false;
    struct str hash = kube_pairs_get(&revision->labels, LABEL_REVISION, &found);

    return found ? hash : str_sub(name, strlen(nodeset->name) + 1, name.len);
}

static size_t stored_of(const struct kube_cache *revisions, int by_owner,
                        const struct kube_object *nodeset,
                        const struct kube_object *ret_stored[NODESET_MAX_REVISIONS])
{
    struct kube_index_walk walk = kube_cache_by(revisions, by_owner, str_of(nodeset->uid));
    const struct kube_object *found;
    size_t count = 0;

    while (count < NODESET_MAX_REVISIONS && (found = kube_index_next(&walk)))
        if (found->deleted_us == 0)
            ret_stored[count++] = found;
    return count;
}

static bool means(const struct kube_object *revision, const struct json *meaning)
{
    auto_json_doc struct json_doc *stored =
        nodeset_data_meaning(json_get(operator_tree(revision), "data"));

    return json_equal(json_root(stored), meaning);
}

/* ---- the choice ---- */

static void take_stored(const struct kube_object *stored, const struct kube_object *nodeset,
                        int64_t highest, struct nodeset_revision *revision)
{
    revision->stored = stored;
    revision->name = stored->name;
    revision->number = number_of(stored) == highest ? highest : highest + 1;
    (void)snprintf(revision->hash, sizeof(revision->hash), STR_FMT,
                   STR_ARG(hash_of(stored, nodeset)));
}

/* A name that an object with other data has, or that is not ours to take, is not used. */
static int take_new(const struct kube_cache *revisions, struct arena *arena,
                    const struct kube_object *nodeset, struct str data, const struct json *meaning,
                    int64_t highest, struct nodeset_revision *revision, struct err *err)
{
    for (unsigned tries = 0; tries < MAX_COLLISIONS; tries++, revision->collision_count++) {
        const struct kube_object *taken;

        nodeset_revision_hash(data, revision->collision_count, revision->hash);
        revision->name = arena_printf(arena, "%s-%s", nodeset->name, revision->hash);
        revision->number = highest + 1;
        taken = kube_cache_get(revisions, nodeset->ns, revision->name);
        if (!taken)
            return 0;
        if (taken->deleted_us == 0 && !taken->owner.uid[0] && means(taken, meaning)) {
            revision->stored = taken; /* an orphan */
            revision->equal[revision->equal_count++] = taken;
            return 0;
        }
    }
    return err_set(err, ERR_CONFLICT, "no free name for a revision: the last was %s",
                   revision->name);
}

int nodeset_revision_choose(const struct kube_cache *revisions, int by_owner, struct arena *arena,
                            const struct kube_object *nodeset, const char *mounted,
                            struct nodeset_revision *ret_revision, struct err *err)
{
    const struct kube_object *stored[NODESET_MAX_REVISIONS], *best = NULL;
    size_t count = stored_of(revisions, by_owner, nodeset, stored);
    auto_json_doc struct json_doc *wanted = NULL, *meaning = NULL;
    struct nodeset_revision *revision = ret_revision;
    auto_buf struct buf data;
    int64_t highest = 0;
    int result;

    *revision = (struct nodeset_revision){
        .mounted = mounted,
        .collision_count =
            json_i64_or(json_at(operator_tree(nodeset), "status", "collisionCount"), 0),
    };
    buf_init(&data, MAX_DATA);
    if ((result = nodeset_data(nodeset, mounted, &data, err)) < 0 ||
        (result = json_parse(buf_str(&data), MAX_DATA, &wanted, err)) < 0)
        return result;
    meaning = nodeset_data_meaning(json_root(wanted));
    for (size_t i = 0; i < count; i++) {
        if (number_of(stored[i]) > highest)
            highest = number_of(stored[i]);
        if (!means(stored[i], json_root(meaning)))
            continue;
        revision->equal[revision->equal_count++] = stored[i];
        if (!best || number_of(stored[i]) > number_of(best))
            best = stored[i];
    }
    if (best)
        take_stored(best, nodeset, highest, revision);
    else
        result = take_new(revisions, arena, nodeset, buf_str(&data), json_root(meaning), highest,
                          revision, err);
    for (size_t i = 0; i < revision->equal_count; i++)
        revision->equal_hashes[i] = hash_of(revision->equal[i], nodeset);
    return result;
}

bool nodeset_revision_is_current(const struct nodeset_revision *revision, struct str hash)
{
    for (size_t i = 0; i < revision->equal_count; i++)
        if (str_eq(hash, revision->equal_hashes[i]))
            return true;
    return str_is(hash, revision->hash);
}

/* ---- the object ---- */

static struct json_mut *labels_of(struct json_build *build, const struct kube_object *nodeset,
                                  const char *hash)
{
    const struct json *own = json_at(operator_spec(nodeset), "template", "metadata", "labels");
    struct json_mut *labels = json_is_object(own) ? json_copy(build, own) : json_new_object(build);

    json_put_text(build, labels, LABEL_INSTANCE, nodeset->name);
    json_put_text(build, labels, LABEL_NAME, component_slurmd.app);
    json_put_text(build, labels, LABEL_REVISION, hash);
    return labels;
}

int nodeset_revision_object(struct json_build *build, const struct kube_object *nodeset,
                            const struct nodeset_revision *revision, struct json_mut **ret_object,
                            struct err *err)
{
    struct json_mut *metadata = build_metadata(build, &component_slurmd, nodeset, "", META_OWNER);
    auto_json_doc struct json_doc *data = NULL;
    auto_buf struct buf text;
    int result;

    buf_init(&text, MAX_DATA);
    if ((result = nodeset_data(nodeset, revision->mounted, &text, err)) < 0 ||
        (result = json_parse(buf_str(&text), MAX_DATA, &data, err)) < 0)
        return result;
    json_put_text(build, metadata, "name", revision->name);
    json_put(build, metadata, "labels", labels_of(build, nodeset, revision->hash));
    json_put(build, metadata, "ownerReferences",
             json_format(build, "[%m]", kube_owner_reference(build, nodeset)));
    *ret_object = json_format(build, "{'metadata':%m,'data':%j,'revision':%l}", metadata,
                              json_root(data), revision->number);
    return 0;
}

struct json_mut *nodeset_revision_patch(struct json_build *build, const struct kube_object *nodeset,
                                        const struct nodeset_revision *revision)
{
    const struct kube_object *stored = revision->stored;
    const struct json *tree = operator_tree(stored);
    auto_json_doc struct json_doc *selector =
        json_freeze(build_selector(build, &component_slurmd, nodeset));
    struct json_iter iter = json_iter(json_root(selector));
    struct json_mut *patch = json_new_object(build), *owners;
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value))
        if (!str_eq(kube_pairs_get(&stored->labels, key.at, NULL), json_str(value)))
            json_put_at(build, patch, json_copy(build, value), "metadata", "labels", key.at);
    if (!kube_is_controlled_by(stored, nodeset)) {
        const struct json *others = json_at(tree, "metadata", "ownerReferences");

        owners = json_is_array(others) ? json_copy(build, others) : json_new_array(build);
        json_push(owners, kube_owner_reference(build, nodeset));
        json_put_at(build, patch, owners, "metadata", "ownerReferences");
    }
    if (number_of(stored) != revision->number)
        json_put_i64(build, patch, "revision", revision->number);
    return json_mut_len(patch) > 0 ? patch : NULL;
}

/* ---- history ---- */

static int compare_numbers(const void *a, const void *b)
{
    int64_t left = number_of(*(const struct kube_object *const *)a);
    int64_t right = number_of(*(const struct kube_object *const *)b);

    return (left > right) - (left < right);
}

static bool is_used(struct str hash, const struct kube_object *const *pods, size_t pod_count)
{
    for (size_t i = 0; i < pod_count; i++)
        if (str_eq(kube_pairs_get(&pods[i]->labels, LABEL_REVISION, NULL), hash))
            return true;
    return false;
}

size_t nodeset_revision_surplus(const struct kube_cache *revisions, int by_owner,
                                const struct kube_object *nodeset,
                                const struct nodeset_revision *revision,
                                const struct kube_object *const *pods, size_t pod_count,
                                const struct kube_object *ret_surplus[NODESET_MAX_REVISIONS])
{
    const struct kube_object *stored[NODESET_MAX_REVISIONS];
    size_t count = stored_of(revisions, by_owner, nodeset, stored), unused = 0;
    int64_t limit = spec_number(nodeset, "revisionHistoryLimit");

    for (size_t i = 0; i < count; i++)
        if (stored[i] != revision->stored && !is_used(hash_of(stored[i], nodeset), pods, pod_count))
            ret_surplus[unused++] = stored[i];
    qsort(ret_surplus, unused, sizeof(ret_surplus[0]), compare_numbers);
    return limit <= 0 ? unused : unused > (size_t)limit ? unused - (size_t)limit : 0;
}
