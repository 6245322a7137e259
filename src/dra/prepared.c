/* prepared.c - prepared claims in memory and in the checkpoint file. */
#include "dra/prepared.h"

#include "base/map.h"
#include "base/mem.h"
#include "dra/cpuset.h"
#include "dra/files.h"

#include <sys/stat.h>

enum { VERSION = 1 };

struct prepared {
    char *path;
    struct map claims; /* struct prepared_claim by UID */
};

/* ---- one claim ---- */

int prepared_claim_new(struct json_doc *doc, struct prepared_claim **ret_claim, struct err *err)
{
    static const char *const wanted[] = { "namespace", "name", "uid", "cpus" };
    const struct json *root = json_root(doc);
    struct prepared_claim *claim = mem_alloc(sizeof(*claim));
    struct str text;
    int result = 0;

    claim->doc = doc;
    for (size_t i = 0; result == 0 && i < sizeof(wanted) / sizeof(wanted[0]); i++)
        result = json_want_str(root, wanted[i], &text, err);
    if (result == 0)
        result = bitmap_parse_ranges(json_str(json_get(root, "cpus")), CPUSET_MAX_CPUS,
                                     &claim->cpus, err);
    if (result < 0) {
        prepared_claim_free(claim);
        (void)err_wrap(err, "prepared claim");
        return result;
    }
    claim->ns = json_str(json_get(root, "namespace")).at;
    claim->name = json_str(json_get(root, "name")).at;
    claim->uid = json_str(json_get(root, "uid")).at;
    *ret_claim = claim;
    return 0;
}

void prepared_claim_free(struct prepared_claim *claim)
{
    if (!claim)
        return;
    json_doc_free(claim->doc);
    bitmap_done(&claim->cpus);
    mem_free(claim);
}

static void free_claim(void *claim)
{
    prepared_claim_free(claim);
}

/* ---- the file ---- */

static int save(const struct prepared *prepared, struct err *err)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);
    struct json_mut *claims;
    auto_buf struct buf text;
    int result;

    json_put_i64(build, root, "version", VERSION);
    claims = json_put_array(build, root, "claims");
    map_each (item, &prepared->claims) {
        const struct prepared_claim *claim = item->value;

        json_push(claims, json_copy(build, json_root(claim->doc)));
    }
    buf_init(&text, PREPARED_MAX_BYTES);
    json_mut_write_pretty(root, &text);
    if ((result = buf_check(&text, "the checkpoint", err)) < 0)
        return result;
    return file_replace(prepared->path, buf_str(&text), S_IRUSR | S_IWUSR, err);
}

static int load(struct prepared *prepared, struct str text, struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *item, *list;
    struct json_iter iter;
    int64_t version;
    int result;

    if ((result = json_parse(text, PREPARED_MAX_BYTES, &doc, err)) < 0 ||
        (result = json_want_i64(json_root(doc), "version", VERSION, VERSION, &version, err)) < 0 ||
        (result = json_want_array(json_root(doc), "claims", &list, err)) < 0)
        return result;
    iter = json_iter(list);
    while (json_next_item(&iter, &item)) {
        struct prepared_claim *claim = NULL;

        if ((result = prepared_claim_new(json_clone(item), &claim, err)) < 0)
            return result;
        if ((result = map_put(&prepared->claims, str_of(claim->uid), claim, err)) < 0) {
            prepared_claim_free(claim);
            return result;
        }
    }
    return 0;
}

int prepared_open(const char *path, struct prepared **ret_prepared, struct err *err)
{
    struct prepared *prepared = mem_alloc(sizeof(*prepared));
    auto_buf struct buf text;
    int result;

    prepared->path = mem_strdup(path);
    map_init(&prepared->claims,
             &(struct map_options){ .max = PREPARED_MAX_CLAIMS, .free_value = free_claim });
    buf_init(&text, PREPARED_MAX_BYTES);
    result = file_read(path, &text, err);
    if (result == -ERR_NOT_FOUND)
        result = 0;
    else if (result == 0 && (result = load(prepared, buf_str(&text), err)) < 0)
        result = err_wrap(err, "checkpoint %s", path);
    if (result < 0) {
        prepared_free(prepared);
        return result;
    }
    *ret_prepared = prepared;
    return 0;
}

void prepared_free(struct prepared *prepared)
{
    if (!prepared)
        return;
    map_done(&prepared->claims);
    mem_free(prepared->path);
    mem_free(prepared);
}

/* ---- reading and changing ---- */

size_t prepared_count(const struct prepared *prepared)
{
    return prepared->claims.count;
}

const struct prepared_claim *prepared_get(const struct prepared *prepared, struct str uid)
{
    return map_get(&prepared->claims, uid);
}

const struct prepared_claim *prepared_at(const struct prepared *prepared, size_t index)
{
    map_each (item, &prepared->claims) {
        if (index-- == 0)
            return item->value;
    }
    return NULL;
}

const struct prepared_claim *prepared_overlap(const struct prepared *prepared,
                                              const struct prepared_claim *claim)
{
    map_each (item, &prepared->claims) {
        const struct prepared_claim *other = item->value;
        auto_bitmap struct bitmap both = { 0 };

        if (strcmp(other->uid, claim->uid) == 0)
            continue;
        bitmap_copy(&both, &other->cpus);
        bitmap_and(&both, &claim->cpus);
        if (bitmap_count(&both) > 0)
            return other;
    }
    return NULL;
}

int prepared_put(struct prepared *prepared, struct prepared_claim *claim, struct err *err)
{
    int result = map_put(&prepared->claims, str_of(claim->uid), claim, err);

    if (result < 0) {
        prepared_claim_free(claim);
        return err_wrap(err, "prepared claims");
    }
    if ((result = save(prepared, err)) < 0)
        (void)map_remove(&prepared->claims, str_of(claim->uid));
    return result;
}

int prepared_remove(struct prepared *prepared, struct str uid, struct err *err)
{
    struct prepared_claim *claim = map_take(&prepared->claims, uid);
    int result;

    if (!claim)
        return 0;
    if ((result = save(prepared, err)) < 0) {
        if (map_put(&prepared->claims, str_of(claim->uid), claim, NULL) == 0)
            return result;
    }
    prepared_claim_free(claim);
    return result;
}
