/* nodeset_mounted.c - the content of ConfigMaps and Secrets that workers mount or have in their
 * environment. With the annotation reload-on-change its hash is part of the revision, so that
 * another content replaces workers as any other update does: drained first, a few at a time. */
#include "operator/nodeset_mounted.h"

#include "codec/digest.h"
#include "operator/names.h"

#include <stdlib.h>

enum { MAX_SOURCES = 256, MAX_CONTENT = 16 << 20, MAX_DEPTH = 32, HASH_DIGITS = 16 };

/* How pods refer to them, wherever it stands: the member, and the one inside with the name. */
static const struct {
    const char *member, *name;
    bool is_secret;
} references[] = {
    { "configMap", "name", false },       { "configMapRef", "name", false },
    { "configMapKeyRef", "name", false }, { "secret", "secretName", true },
    { "secret", "name", true },           { "secretRef", "name", true },
    { "secretKeyRef", "name", true },     { "sssdConfRef", "name", true },
};

struct source {
    const char *name;
    bool is_secret;
};

struct sources {
    struct arena *arena;
    struct source at[MAX_SOURCES];
    size_t count;
    bool is_full;
};

bool nodeset_reloads(const struct kube_object *nodeset)
{
    return str_is(kube_pairs_get(&nodeset->annotations, ANNOTATION_RELOAD_ON_CHANGE, NULL), "true");
}

/* ---- which ---- */

static void add_source(struct sources *sources, struct str name, bool is_secret)
{
    for (size_t i = 0; i < sources->count; i++)
        if (sources->at[i].is_secret == is_secret && str_is(name, sources->at[i].name))
            return;
    sources->is_full = sources->is_full || sources->count == MAX_SOURCES;
    if (!sources->is_full)
        sources->at[sources->count++] =
            (struct source){ arena_strndup(sources->arena, name.at, name.len), is_secret };
}

static void find_sources(struct sources *sources, const struct json *value, int depth)
{
    struct json_iter iter = json_iter(value);
    const struct json *inner;
    struct str key;

    if (depth == MAX_DEPTH)
        return;
    while (json_is_array(value) && json_next_item(&iter, &inner))
        find_sources(sources, inner, depth + 1);
    while (json_is_object(value) && json_next_member(&iter, &key, &inner)) {
        for (size_t i = 0; i < sizeof(references) / sizeof(references[0]); i++) {
            struct str name = json_str(json_get(inner, references[i].name));

            if (str_is(key, references[i].member) && name.len > 0)
                add_source(sources, name, references[i].is_secret);
        }
        find_sources(sources, inner, depth + 1);
    }
}

static int compare_sources(const void *a, const void *b)
{
    const struct source *left = a, *right = b;

    return left->is_secret != right->is_secret ? left->is_secret - right->is_secret
                                               : strcmp(left->name, right->name);
}

/* ---- their content ---- */

static void add_content(const struct operator_world *world, const char *ns,
                        const struct source *source, struct buf *out)
{
    const struct kube_object *object =
        kube_cache_get(source->is_secret ? world->secrets : world->configmaps, ns, source->name);

    buf_printf(out, "%s %s ", source->is_secret ? "Secret" : "ConfigMap", source->name);
    if (!object) {
        buf_add_text(out, "absent\n");
        return;
    }
    json_write_canonical(json_get(operator_tree(object), "data"), out);
    json_write_canonical(json_get(operator_tree(object), "binaryData"), out);
    buf_add_char(out, '\n');
}

int nodeset_mounted_hash(const struct operator_world *world, struct arena *arena,
                         const struct kube_object *nodeset, const char **ret_hash, struct err *err)
{
    static const char *const parts[] = { "template", "slurmd", "logfile", "ssh" };
    struct sources sources = { .arena = arena };
    auto_buf struct buf content = { .max = MAX_CONTENT };
    char digest[DIGEST_HEX];

    if (!nodeset_reloads(nodeset)) {
        *ret_hash = NULL;
        return 0;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        find_sources(&sources, json_get(operator_spec(nodeset), parts[i]), 0);
    if (sources.is_full)
        return err_set(err, ERR_TOO_BIG, "workers refer to more than %d ConfigMaps and Secrets",
                       MAX_SOURCES);
    qsort(sources.at, sources.count, sizeof(sources.at[0]), compare_sources);
    for (size_t i = 0; i < sources.count; i++)
        add_content(world, nodeset->ns, &sources.at[i], &content);
    if (buf_check(&content, "content of ConfigMaps and Secrets", err) < 0)
        return -ERR_TOO_BIG;
    digest_sha256(buf_str(&content), digest);
    *ret_hash = arena_strndup(arena, digest, HASH_DIGITS);
    return 0;
}
